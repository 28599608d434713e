//! `cargo xtask fuzz`: every fuzz target for a while.

use crate::steps::{cargo, root, step};

const TARGETS: [&str; 4] = ["units", "params", "suite", "results"];

/// Runs every target for `seconds`. cargo-fuzz is installed if it is missing; a nightly toolchain must be there.
pub fn run(seconds: &str) -> Result<(), String> {
    if !cargo(&["fuzz", "--version"]).output().is_ok_and(|output| output.status.success()) {
        step("install cargo-fuzz", &mut cargo(&["install", "--locked", "cargo-fuzz"]))?;
    }
    for target in TARGETS {
        let corpus = root().join("fuzz/corpus").join(target);
        std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
        let limit = format!("-max_total_time={seconds}");
        // A program that cargo runs keeps to cargo's toolchain; the sanitizer that fuzzing needs is in nightly alone.
        let mut command = std::process::Command::new("cargo");
        command.current_dir(root().join("fuzz")).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
        command.args(["+nightly", "fuzz", "run", target]).arg(&corpus);
        command.arg(root().join("fuzz/seeds").join(target)).args(["--", &limit]);
        step(&format!("fuzz {target} for {seconds} s"), &mut command)?;
    }
    Ok(())
}
