//! `ipcmark clean`: removes what killed runs left behind.

use crate::exit::{Error, Exit};
use crate::output::print;

/// Removes it, and prints what it was.
pub fn run() -> Result<Exit, Error> {
    let cleaned = harness::coordinator::run_directory::clean()?;
    let mut text = String::new();
    for (path, outcome) in &cleaned {
        text += &match outcome {
            Ok(()) => format!("removed {}\n", path.display()),
            Err(failure) => format!("not removed: {failure}\n"),
        };
    }
    if cleaned.is_empty() {
        text += "nothing to clean: no killed run left anything\n";
    }
    print(&text)?;
    Ok(if cleaned.iter().all(|(_, outcome)| outcome.is_ok()) { Exit::Success } else { Exit::CaseFailed })
}
