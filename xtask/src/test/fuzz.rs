//! `cargo xtask fuzz`: every fuzz target for a while. That they can be built, the lints tell.

use crate::steps::{cargo, root, step};
use std::process::Command;

pub const TARGETS: [&str; 8] =
    ["units", "params", "formula", "suite", "results", "names", "protocol", "scenario"];

/// Runs every target for `seconds`. cargo-fuzz is installed if it is missing; a nightly toolchain must be there.
pub fn run(seconds: &str) -> Result<(), String> {
    if !cargo(&["fuzz", "--version"]).output().is_ok_and(|output| output.status.success()) {
        step("install cargo-fuzz", &mut cargo(&["install", "--locked", "cargo-fuzz"]))?;
    }
    for target in TARGETS {
        let limit = format!("-max_total_time={seconds}");
        step(&format!("fuzz {target} for {seconds} s"), &mut command(target, &[limit])?)?;
    }
    Ok(())
}

/// Builds every target. The campaign does it before its time begins.
#[cfg(feature = "crates")]
pub fn build() -> Result<(), String> {
    step("fuzz targets", &mut cargo_fuzz("build"))
}

/// The command that runs `target` with the fuzzer's `options`.
pub fn command(target: &str, options: &[String]) -> Result<Command, String> {
    let corpus = root().join("fuzz/corpus").join(target);
    std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    let mut command = cargo_fuzz("run");
    command.arg(target).arg(&corpus).arg(root().join("fuzz/seeds").join(target)).arg("--").args(options);
    Ok(command)
}

/// `cargo fuzz VERB`. What is fuzzed has no unsafe code, in which the address sanitizer would find something.
fn cargo_fuzz(verb: &str) -> Command {
    // A program that cargo runs keeps to cargo's toolchain; what fuzzing instruments with is in nightly alone.
    let mut command = Command::new("cargo");
    command.current_dir(root().join("fuzz")).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command.args(["+nightly", "fuzz", verb, "--sanitizer", "none"]);
    command
}
