//! Running other programs, step by step, and saying which step failed.

use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

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

/// How long each step of a task took.
#[derive(Default)]
pub struct Times(Vec<(&'static str, Duration)>);

impl Times {
    /// Does `step`, and keeps how long that took.
    pub fn measure<T>(&mut self, name: &'static str, step: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = step();
        self.0.push((name, began.elapsed()));
        done
    }

    /// Prints them as a table.
    pub fn print(&self) {
        println!("== time of each step");
        self.0.iter().for_each(|(name, took)| println!("{:>7.1} s  {name}", took.as_secs_f64()));
        println!("{:>7.1} s  in all", self.0.iter().map(|(_, took)| took.as_secs_f64()).sum::<f64>());
    }
}
