//! `ipcmark clean`: removes what killed runs of this user left behind.

use crate::exit::{Error, Exit};
use crate::output::print;
use harness::coordinator::leftovers::{Cleaned, clean};

/// Removes it, and prints what it was.
pub fn run() -> Result<Exit, Error> {
    let Cleaned { own, foreign } = clean()?;
    let mut text = String::new();
    for (path, outcome) in &own {
        text += &match outcome {
            Ok(()) => format!("removed {}\n", path.display()),
            Err(failure) => format!("not removed: {failure}\n"),
        };
    }
    if own.is_empty() {
        text += "nothing to clean: no killed run left anything\n";
    }
    if foreign > 0 {
        text +=
            &format!("left alone: {foreign} named like it that another user made, or that is no directory\n");
    }
    print(&text)?;
    Ok(if own.iter().all(|(_, outcome)| outcome.is_ok()) { Exit::Success } else { Exit::CaseFailed })
}
