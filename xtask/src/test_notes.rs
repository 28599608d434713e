//! What a test says of itself: that it is skipped, in full or in part, or why it takes long. Tests of several crates include this file
//! by its path, and so does xtask, which prints what they say. It decides nothing about what is tested.
#![allow(dead_code, reason = "each program that includes it uses a part of it")]

use std::fs::OpenOptions;
use std::io::Write;

/// The environment variables with the paths of the files to which each skip, and each reason of slowness, adds a line.
pub const SKIPS: &str = "IPCMARK_SKIPS";
pub const REASONS: &str = "IPCMARK_SLOW_TESTS";

/// Says that the test that runs skips something: `lacks` is what this host's kernel, hardware or privileges do not allow and, after
/// a semicolon, what makes the test run; `untested` what is not tested for that reason.
pub fn skip(lacks: &str, untested: &str) {
    assert!(lacks.contains("; "), "a skip says what makes the test run: {lacks}");
    let line = format!("{}: {untested}: {lacks}", test()).replace('\n', " ");
    // By the descriptor: what goes through the macros is hidden when a test passes.
    let _ = std::io::stderr().write_all(format!("\nSKIPPED: {line}\n").as_bytes());
    add(SKIPS, &line);
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

/// Says why the test that runs takes longer than a few seconds.
pub fn slow(why: &str) {
    add(REASONS, &format!("{}: {why}", test()));
}

/// The harness of tests calls each thread by its test; a thread that the test started has no name.
fn test() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

/// Adds `line` to the file that the environment variable `file` names, if there is one.
fn add(file: &str, line: &str) {
    let file =
        std::env::var_os(file).and_then(|path| OpenOptions::new().append(true).create(true).open(path).ok());
    if let Some(mut file) = file {
        // One write for each line: tests in several processes add to the same file.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}
