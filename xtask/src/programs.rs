//! The programs that some tests need beside the toolchain. It installs what can be installed, and tests nothing.

#[path = "../../crates/report/tests/browser/viewer.rs"]
mod viewer;

use crate::steps::step;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

/// What is needed: whether it is here, and its package in Debian and its kin.
fn needed() -> [(bool, &'static str); 4] {
    [
        (any_runs(&["strace"]), "strace"),
        (any_runs(&["perf"]), "linux-perf"),
        (any_runs(&["chromium", "chromium-browser", "google-chrome"]), "chromium"),
        (viewer::directory().is_some(), viewer::PACKAGE),
    ]
}

/// Installs what is missing, where that can be done. The tests that miss something say so themselves.
pub fn install() -> Result<(), String> {
    let missing = needed().into_iter().filter(|(is_here, _)| !is_here);
    let missing: Vec<&str> = missing.map(|(_, package)| package).collect();
    if missing.is_empty() || !is_root() || !runs("apt-get", "--version") {
        return Ok(());
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    // Without a network the tests run all the same, and say what they miss. One by one: Debian's kin lack some of them.
    let mut installed = vec![step("package lists", &mut apt(&["update", "-q"]))];
    installed.extend(missing.iter().map(|package| step(package, &mut apt(&["install", "-qy", package]))));
    for error in installed.into_iter().filter_map(Result::err) {
        println!("not installed: {error}");
    }
    Ok(())
}

/// Whether this process may install packages.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn any_runs(names: &[&str]) -> bool {
    names.iter().any(|name| runs(name, "--version"))
}

fn runs(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
