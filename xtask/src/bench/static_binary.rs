//! `cargo xtask bench static`: the static binary that users install beside the build that cargo makes, both in turn.

use crate::release;
use crate::steps::{cargo, step, target};
use std::process::Command;

/// Mechanisms whose loops call the kernel, copy, and do neither.
const MECHANISMS: [&str; 4] = ["pipe", "unix-stream", "tcp", "shm-ring:wait=spin"];

/// Measures for `seconds`, which are 60 if nothing is said.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let time = format!("{}s", arguments.first().unwrap_or(&"60"));
    let packed = release::native_binary()?;
    step("cargo's own build", &mut cargo(&["build", "--release", "--package", "ipcmark"]))?;
    let mut compare = Command::new(target("release/ipcmark"));
    compare.arg("compare").arg("--against").arg(packed).args(["-s", "1,4K,64K", "--time", &time]);
    compare.args(MECHANISMS);
    println!("A is the static binary, B cargo's own build");
    step("both builds in turn", &mut compare)
}
