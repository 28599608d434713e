//! The version, and small steps with files and commands, for all that is made. It decides nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The version of every crate of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What `command` writes to its standard output; `None` if it cannot be run, or fails.
pub fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// Makes `directory`, and those above it.
pub fn make(directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))
}

/// Copies a file, with its mode.
pub fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

/// Writes `text` to a new file.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
