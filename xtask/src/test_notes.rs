//! How a test says that it is skipped, in full or in part. Tests of several crates include this file by its path, and so does xtask, which
//! lists what they say. It decides nothing about what is tested.
#![allow(dead_code, reason = "each program that includes it uses a part of it")]

use std::fs::OpenOptions;
use std::io::Write;

/// The environment variable with the path of the file to which every skip adds a line.
pub const SKIPS: &str = "IPCMARK_SKIPS";

/// Says that the test that runs skips something: `lacks` is what this host's kernel, hardware or privileges do not allow and, after
/// a semicolon, what makes the test run; `untested` what is not tested for that reason.
pub fn skip(lacks: &str, untested: &str) {
    assert!(lacks.contains("; "), "a skip says what makes the test run: {lacks}");
    let line = format!("{}: {untested}: {lacks}", test()).replace('\n', " ");
    // By the descriptor: what goes through the macros is hidden when a test passes.
    let _ = std::io::stderr().write_all(format!("\nSKIPPED: {line}\n").as_bytes());
    let file =
        std::env::var_os(SKIPS).and_then(|path| OpenOptions::new().append(true).create(true).open(path).ok());
    if let Some(mut file) = file {
        // One write for each line: tests in several processes add to the same file.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

/// Says that `tool` is missing, which `package` would install, and that `untested` is not tested for that reason. With `CI=true` that
/// is a failure: there every tool must be there.
pub fn tool_is_missing(tool: &str, package: &str, untested: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "CI=true, and {tool} cannot be run: {untested}; install {package}"
    );
    skip(&format!("{tool} cannot be run here; apt-get install {package}"), untested);
}

/// What makes a test run that needs root.
pub const AS_ROOT: &str = "run `sudo cargo xtask test`";

/// The harness of tests calls each thread by its test; a thread that the test started has no name.
fn test() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}
