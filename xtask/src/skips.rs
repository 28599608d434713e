//! How a test says that it is skipped, in full or in part. Tests of several crates include this file by its path, and so
//! does xtask, which counts what they say. It decides nothing about what is tested.
#![allow(dead_code, reason = "each program that includes it uses a part of it")]

use std::fs::OpenOptions;
use std::io::Write;

/// The environment variable with the path of the file to which every skip adds a line.
pub const FILE: &str = "IPCMARK_SKIPS";

/// Says that the test that runs skips something: `lacks` is what this host's kernel, hardware or privileges do not allow,
/// `untested` what is not tested for that reason.
pub fn skip(lacks: &str, untested: &str) {
    let thread = std::thread::current();
    // The harness of tests calls each thread by its test; a thread that the test started has no name.
    let line = format!("{}: {untested}: {lacks}\n", thread.name().unwrap_or("a test")).replace("\n\n", "\n");
    // By the descriptor: what goes through the macros is hidden when a test passes.
    let _ = std::io::stderr().write_all(format!("\nSKIPPED: {line}").as_bytes());
    let file =
        std::env::var_os(FILE).and_then(|path| OpenOptions::new().append(true).create(true).open(path).ok());
    if let Some(mut file) = file {
        // One write for each line: tests in several processes add to the same file.
        let _ = file.write_all(format!("{}\n", line.trim_end().replace('\n', " ")).as_bytes());
    }
}

/// Says that `tool` is missing, which `package` would install, and that `untested` is not tested for that reason. With `CI=true` that
/// is a failure: there every tool must be there.
pub fn tool_is_missing(tool: &str, package: &str, untested: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "CI=true, and {tool} cannot be run: {untested}; install {package}"
    );
    skip(&format!("{tool} cannot be run here; install {package}"), untested);
}
