//! The programs that some tests need beside the toolchain. It installs what can be installed, and tests nothing.

use crate::steps::step;
use std::process::{Command, Stdio};

/// What is needed: the names under which it may be found, and its package in Debian and its kin.
const PROGRAMS: [(&[&str], &str); 2] =
    [(&["strace"], "strace"), (&["chromium", "chromium-browser", "google-chrome"], "chromium")];

/// Installs what is missing, where that can be done. The tests that miss something say so themselves.
pub fn install() -> Result<(), String> {
    let missing = PROGRAMS.iter().filter(|(names, _)| !names.iter().any(|name| runs(name, "--version")));
    let missing: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if missing.is_empty() || !rustix::process::geteuid().is_root() || !runs("apt-get", "--version") {
        return Ok(());
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    // Without a network the tests run all the same, and say what they miss.
    let installed = step("package lists", &mut apt(&["update", "-q"]))
        .and_then(|()| step("programs", apt(&["install", "-qy"]).args(&missing)));
    installed.unwrap_or_else(|error| println!("not installed: {}: {error}", missing.join(", ")));
    Ok(())
}

fn runs(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
