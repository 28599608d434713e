//! Running the Rust tests: a few that fail are run once more, each by itself, and named at the end. It does not choose which tests there are.
//!
//! Some tests measure, on a host that others use too. A fault of the code fails both times; what fails only beside other tests is
//! shown in the last lines, to be mended too.

use crate::skipped::Skipped;
use crate::steps::{cargo, ended};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// So many tests at most may fail beside others. Where more fail, there is a cause that running them again would hide.
const AT_MOST: usize = 3;

/// Runs every Rust test that cargo's arguments `all` select.
pub fn run(all: &[&str], skipped: &Skipped) -> Result<(), String> {
    let mut every = cargo(&["test", "--no-fail-fast"]);
    let (outcome, lines) = shown("tests", skipped.noted_by(every.args(all)))?;
    let failed = match (outcome, failed(&lines)) {
        (Ok(()), _) => return Ok(()),
        (Err(_), Some(names)) if (1..=AT_MOST).contains(&names.len()) => names,
        (Err(error), _) => return Err(error),
    };
    for name in &failed {
        let mut alone = cargo(&["test"]);
        alone.args(all).args(["--", "--exact", "--test-threads", "1", name]);
        let (outcome, lines) = shown(&format!("{name}, by itself"), skipped.noted_by(&mut alone))?;
        outcome?;
        if !lines.iter().any(|line| line.starts_with(&format!("test {name} ")) && line.ends_with("ok")) {
            return Err(format!("{name} was not found again; run it by itself"));
        }
    }
    println!(
        "== failed beside other tests and passed alone, which is a fault of the test: {}",
        failed.join(", ")
    );
    Ok(())
}

/// Runs `command` and shows what it writes to its standard output: how it ended, and those lines.
fn shown(name: &str, command: &mut Command) -> Result<(Result<(), String>, Vec<String>), String> {
    println!("== {name}");
    let failed = |error: std::io::Error| format!("{name}: {error}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut lines = Vec::new();
    for line in BufReader::new(child.stdout.take().expect("a pipe was asked for")).split(b'\n') {
        let line = String::from_utf8_lossy(&line.map_err(failed)?).into_owned();
        println!("{line}");
        lines.push(line);
    }
    let status = child.wait().map_err(failed)?;
    Ok((ended(name, command, status), lines))
}

/// The tests that failed, from what the programs of tests wrote; `None` if one of the programs did not say.
fn failed(lines: &[String]) -> Option<Vec<String>> {
    let programs = lines.iter().filter(|line| line.starts_with("running ") && line.contains(" test")).count();
    let results: Vec<&String> = lines.iter().filter(|line| line.starts_with("test result: ")).collect();
    let count = |line: &&String| -> Option<usize> {
        line.split("; ").find_map(|part| part.strip_suffix(" failed")).and_then(|count| count.parse().ok())
    };
    let counts: Option<Vec<usize>> = results.iter().map(count).collect();
    // Every program lists the output of what failed, and then the names alone.
    let mut names = Vec::new();
    for list in lines.split(|line| line == "failures:").skip(1) {
        let block: Vec<&String> =
            list.iter().skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty()).collect();
        if block.iter().all(|line| line.starts_with("    ")) {
            names.extend(block.iter().map(|line| line.trim().to_owned()));
        }
    }
    let is_whole = results.len() == programs && counts?.iter().sum::<usize>() == names.len();
    is_whole.then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSED: &str = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
    const FAILED: &str = "\
running 2 tests
test b ... ok
test c::d ... FAILED

failures:

---- c::d stdout ----
thread 'c::d' panicked: no

failures:
    c::d

test result: FAILED. 1 passed; 1 failed; 0 ignored
";

    fn failed_of(text: &str) -> Option<Vec<String>> {
        failed(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_tests_that_failed_are_named() {
        assert_eq!(failed_of(PASSED), Some(vec![]));
        assert_eq!(failed_of(&[PASSED, FAILED, PASSED].concat()), Some(vec!["c::d".to_owned()]));
    }

    #[test]
    fn a_program_that_ended_early_is_no_failure_of_a_test() {
        assert_eq!(failed_of(&[FAILED, "running 2 tests\ntest e ... ok\n"].concat()), None);
        assert_eq!(failed_of(&FAILED.replace("    c::d\n", "")), None);
    }
}
