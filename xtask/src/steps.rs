//! Running other programs, step by step, and saying which step failed.

use std::process::{Command, ExitStatus};

/// The root of the workspace.
pub fn root() -> &'static std::path::Path {
    std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// What cargo builds at `path`, where its target directory is.
pub fn target(path: &str) -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into).join(path)
}

/// A cargo command at the root, by the same cargo that runs this program.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// Runs `command`, whose purpose is `name`; its failure ends the task.
pub fn step(name: &str, command: &mut Command) -> Result<(), String> {
    println!("== {name}");
    let status = command.status().map_err(|error| format!("{name}: {command:?} cannot be run: {error}"))?;
    ended(name, command, status)
}

/// What the end of `command` means to the task.
pub fn ended(name: &str, command: &Command, status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("{name}: {command:?} ended with {status}")) }
}
