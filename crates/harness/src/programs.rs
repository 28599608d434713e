//! Programs that ipcmark did not write, started with other mechanisms in the place of their own: servers, and a command that uses them.

pub mod ready;
pub mod started;

use ready::Ready;
use std::ffi::OsString;
use std::time::Duration;

/// Servers, and a command that is run again and again.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The servers, started in this order.
    pub servers: Vec<Vec<OsString>>,
    /// When they can be used.
    pub ready: Ready,
    /// The command.
    pub command: Vec<OsString>,
    /// How long one start or one run may take.
    pub timeout: Duration,
}

impl Programs {
    /// The command as it was typed.
    pub fn command_line(&self) -> String {
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}
