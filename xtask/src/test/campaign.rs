//! `cargo xtask campaign`: what would take too long for the tests. It prints one table for docs/lab/reliability.md.
//!
//! Processes are killed at random moments, with full disks, few descriptors and little memory in between, and links between two hosts
//! are cut; every fuzz target and Miri run where the toolchain has them, and where it has not, the table says so. Nothing here is a
//! measurement.

mod kills;
mod place;
mod row;
mod two_hosts;

use super::fuzz;
use crate::steps::{cargo, root};
use row::Row;
use rustix::process::{Pid, Signal, kill_process_group, setpriority_process};
use std::num::NonZero;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// After so many executions a fuzz target has done enough.
const ENOUGH_EXECUTIONS: u64 = 10_000_000;
/// An input that takes longer is a fault.
const LONGEST_EXECUTION_S: u64 = 10;
/// The environment variable by which the campaign knows that it is in namespaces of its own.
const INSIDE: &str = "IPCMARK_CAMPAIGN_INSIDE";

/// What a campaign consists of, by the names that the command line knows.
const PARTS: [&str; 4] = ["miri", "kills", "hosts", "fuzz"];

/// Runs `parts` of the campaign, or all of it if none is named, for about `minutes`.
pub fn run(minutes: &str, parts: &[&str]) -> Result<(), String> {
    let minutes: u64 = minutes.parse().map_err(|_| format!("'{minutes}' is no number of minutes"))?;
    if let Some(unknown) = parts.iter().find(|part| !PARTS.contains(part)) {
        return Err(format!("a campaign has no part '{unknown}'; name some of {}", PARTS.join(", ")));
    }
    if std::env::var_os(INSIDE).is_none() {
        return again_in_namespaces();
    }
    let all = Duration::from_secs(60 * minutes);
    let has = |part: &str| parts.is_empty() || parts.contains(&part);
    // Of the parts that are one after the other, each has its share, or all where it is the only one.
    let share = |hundredths: u32| if parts.len() == 1 { all } else { all * hundredths / 100 };
    build()?;
    let rows = std::thread::scope(|scope| {
        let fuzzed = scope.spawn(|| if has("fuzz") { fuzzed(all) } else { Vec::new() });
        let mut rows = Vec::new();
        if has("miri") {
            rows.push(miri(share(20)));
        }
        // They stop when they are enough.
        if has("kills") {
            rows.extend(kills::rows(share(60))?);
        }
        if has("hosts") {
            rows.extend(two_hosts::rows(share(20)));
        }
        rows.extend(fuzzed.join().map_err(|_| "the thread that fuzzes panicked")?);
        Ok::<_, String>(rows)
    })?;
    print(&rows, minutes);
    Ok(())
}

/// Starts this program again where kernel objects and temporary files are nobody else's, so that what is left can be counted.
fn again_in_namespaces() -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("unshare");
    command.args(["--ipc", "--mount", "sh", "-c"]);
    command.arg("mount -t tmpfs none /dev/shm && mount -t tmpfs -o mode=1777 none /mnt && mkdir /mnt/mqueue && mount -t mqueue none /mnt/mqueue && exec \"$@\"");
    command.arg("sh").arg(own).args(std::env::args().skip(1)).env(INSIDE, "yes").env("TMPDIR", "/mnt");
    let status = command.status().map_err(|error| format!("unshare: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the campaign ended with {status}; it needs root, for namespaces"))
    }
}

fn build() -> Result<(), String> {
    let status = cargo(&["build", "--workspace", "--all-features", "--bin", "ipcmark"])
        .status()
        .map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err("ipcmark does not build".to_owned()) }
}

/// The pure crates under Miri, which finds undefined behaviour.
fn miri(limit: Duration) -> Row {
    const PART: &str = "Miri over the tests of `sys` and `model` that it can run";
    if !runs(&mut nightly(&["miri", "--version"])) {
        return Row::new(PART, "not run", "a nightly toolchain with Miri is not installed");
    }
    let mut command = nightly(&["miri", "test", "--package", "sys", "--package", "model", "--lib"]);
    command.env("CARGO_TARGET_DIR", crate::steps::target("miri")).env("PROPTEST_CASES", "4");
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
    tests(PART, &mut command, limit)
}

/// A line for the tests that `command` runs, within `limit`.
fn tests(part: &str, command: &mut Command, limit: Duration) -> Row {
    let (said, ended) = said_within(command, limit);
    let passed: u64 = said
        .lines()
        .filter(|line| line.starts_with("test result: "))
        .filter_map(|line| line.split(" passed").next()?.rsplit(' ').next()?.parse::<u64>().ok())
        .sum();
    match ended {
        Some(true) => Row::new(part, format!("{passed} tests"), "nothing"),
        Some(false) => {
            Row::new(part, format!("{passed} tests passed"), format!("**failed**: {}", last_line(&said)))
        }
        None => Row::new(part, format!("stopped after {} s", limit.as_secs()), "nothing by then"),
    }
}

/// Every fuzz target, as many at once as there are CPUs, at the lowest priority: everything else goes on meanwhile.
fn fuzzed(time: Duration) -> Vec<Row> {
    // On Linux this is of the calling thread and of what it starts.
    let _ = setpriority_process(None, 19);
    const PART: &str = "fuzz targets";
    if !runs(&mut nightly(&["fuzz", "--version"])) {
        return vec![Row::new(PART, "not run", "cargo-fuzz, or a nightly toolchain, is not installed")];
    }
    if let Err(error) = fuzz::build() {
        return vec![Row::new(PART, "not run", format!("**not built**: {error}"))];
    }
    let at_once = available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        let every_so_many =
            |first| fuzz::TARGETS.into_iter().skip(first).step_by(at_once).collect::<Vec<_>>();
        let threads: Vec<_> = (0..at_once)
            .map(|first| scope.spawn(move || fuzzed_in_turn(&every_so_many(first), time)))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it does not panic")).collect()
    })
}

/// `targets` one after the other. What one leaves of its part of `time` is for the others.
fn fuzzed_in_turn(targets: &[&str], time: Duration) -> Vec<Row> {
    let start = Instant::now();
    let row = |(done, target): (usize, &&str)| {
        let left = time.saturating_sub(start.elapsed()) / (targets.len() - done) as u32;
        fuzzed_target(target, left)
    };
    targets.iter().enumerate().map(row).collect()
}

fn fuzzed_target(target: &str, time: Duration) -> Row {
    let part = format!("fuzz target `{target}`");
    let limits = [
        // No time would be no limit.
        format!("-max_total_time={}", time.as_secs().max(1)),
        format!("-runs={ENOUGH_EXECUTIONS}"),
        format!("-timeout={LONGEST_EXECUTION_S}"),
        "-print_final_stats=1".to_owned(),
    ];
    let mut command = match fuzz::command(target, &limits) {
        Ok(command) => command,
        Err(error) => return Row::new(part, "not run", error),
    };
    // It begins with all that it knows, and ends with an input, not within one.
    let (said, ended) = said_within(&mut command, time + Duration::from_secs(120));
    let count = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let count = count.map_or("0", str::trim);
    match ended {
        Some(true) => Row::new(part, format!("{count} executions"), "nothing"),
        _ => Row::new(part, format!("{count} executions"), format!("**stopped**: {}", last_line(&said))),
    }
}

/// What `command` says, and whether it succeeded; `None`: it was killed after `limit`.
fn said_within(command: &mut Command, limit: Duration) -> (String, Option<bool>) {
    let refused = |error: std::io::Error| (error.to_string(), Some(false));
    let file = match tempfile::NamedTempFile::new() {
        Ok(file) => file,
        Err(error) => return refused(error),
    };
    // One description for both streams, so that neither writes over the other.
    let streams = file.reopen().and_then(|out| Ok((out.try_clone()?, out)));
    let child = streams
        .and_then(|(out, err)| command.process_group(0).stdin(Stdio::null()).stdout(out).stderr(err).spawn());
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return refused(error),
    };
    let start = Instant::now();
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status.success()),
            Err(_) => break Some(false),
            Ok(None) if start.elapsed() > limit => {
                // With the compilers and programs that it has started.
                let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                let _ = group.map(|group| kill_process_group(group, Signal::KILL));
                let _ = child.wait();
                break None;
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    (
        std::fs::read(file.path())
            .map(|said| String::from_utf8_lossy(&said).into_owned())
            .unwrap_or_default(),
        ended,
    )
}

fn last_line(said: &str) -> String {
    let telling = said
        .lines()
        .rev()
        .find(|line| line.contains("panicked") || line.contains("ERROR") || line.contains("error"));
    telling.or_else(|| said.lines().last()).unwrap_or("it said nothing").chars().take(200).collect()
}

/// Cargo of the nightly toolchain. A program that cargo runs keeps to cargo's toolchain otherwise.
fn nightly(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(root())
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .arg("+nightly")
        .args(arguments);
    command
}

fn runs(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn print(rows: &[Row], minutes: u64) {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(root()).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let commit = said("git", &["rev-parse", "--short", "HEAD"]);
    let changed = if said("git", &["status", "--porcelain"]).is_empty() {
        ""
    } else {
        ", with changes that are not committed"
    };
    println!(
        "A campaign of {minutes} minutes, {}, commit {commit}{changed}, Linux {}:\n",
        said("date", &["+%F"]),
        said("uname", &["-r"])
    );
    println!("| what | done | found |\n| --- | --- | --- |");
    for Row { part, done, found } in rows {
        println!("| {part} | {done} | {found} |");
    }
}
