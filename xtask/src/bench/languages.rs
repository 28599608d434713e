//! `cargo xtask bench languages`: the drivers in each language against loops that are written by hand in it, which exchange messages over pipes and
//! measure nothing else.

use super::page::read;
use crate::steps::{cargo, root, step, target};
use analysis::interval::{MeanEstimate, mean_over_trials};
use analysis::stats::median;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How often each of both is run, one after the other.
const PASSES: usize = 12;
const SIZE: &str = "64";
/// How long ipcmark measures in a pass, and how long a loop by hand should take.
const MEASURE: &str = "10s";
const BY_HAND_NS: f64 = 1e9;
/// The first loop, which finds out how many iterations take that long.
const FEW: u64 = 20_000;

/// A loop by hand: the driver that it stands beside, how it is built, with its directory as `$1`, and the command, with that for `DIR`.
type ByHand = (&'static str, &'static str, &'static str);

const ALL: [ByHand; 7] = [
    ("c", "cc -O2 -o \"$1/c\" pingpong.c", "DIR/c"),
    ("cpp", "c++ -O2 -std=c++17 -o \"$1/cpp\" pingpong.cpp", "DIR/cpp"),
    (
        "rust",
        "cargo build --quiet --release --locked --manifest-path pingpong-rust/Cargo.toml --target-dir \"$1/cargo\"",
        "DIR/cargo/release/pingpong",
    ),
    ("go", "go build -o \"$1/go\" pingpong.go", "DIR/go"),
    ("java", "javac -d \"$1\" PingPong.java", "java -XX:+UseSerialGC -cp DIR PingPong"),
    ("node", "true", "node pingpong.js"),
    ("python", "true", "python3 pingpong.py"),
];

/// Prints what each driver takes over its loop; `only` those whose name begins so.
pub(super) fn run(only: &str) -> Result<(), String> {
    step("ipcmark", &mut cargo(&["build", "--quiet", "--release", "--package", "ipcmark"]))?;
    let directory = target("handwritten");
    std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    println!("{PASSES} passes of each, interleaved; round trips of {SIZE} bytes over pipes on one CPU");
    for by_hand in ALL.iter().filter(|(name, ..)| name.starts_with(only)) {
        match compared(by_hand, &directory) {
            Ok(line) => println!("{line}"),
            Err(why) => println!("{}: NOT MEASURED: {why}", by_hand.0),
        }
    }
    Ok(())
}

fn compared((name, build, command): &ByHand, directory: &Path) -> Result<String, String> {
    let sources = root().join("drivers/handwritten");
    said(Command::new("sh").args(["-c", build, "sh"]).arg(directory).current_dir(&sources))?;
    said(ipcmark(directory).args(["driver", "build", name]))?;
    let words = command.replace("DIR", &directory.display().to_string());
    let by_hand_ns = |iterations: u64| -> Result<f64, String> {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).args(words.split(' ')).args([SIZE, &iterations.to_string()]);
        let text = said(command.current_dir(&sources))?;
        text.trim().parse().map_err(|_| format!("{words} says '{}'", text.trim()))
    };
    let iterations = (BY_HAND_NS / by_hand_ns(FEW)?) as u64;
    let (mut ratios, mut both) = (Vec::new(), [Vec::new(), Vec::new()]);
    for pass in 0..PASSES {
        let mut pair = [0.0; 2];
        // Each is first as often as the other.
        for which in if pass % 2 == 0 { [0, 1] } else { [1, 0] } {
            pair[which] = if which == 0 { by_hand_ns(iterations)? } else { driver_ns(name, directory)? };
            both[which].push(pair[which]);
        }
        ratios.push((pair[1] / pair[0]).ln());
    }
    let [by_hand, driver] = both.map(|all| median(&all).unwrap_or(f64::NAN) / 1e3);
    let ratio = mean_over_trials(&ratios).map(|ratio| ratio.map(f64::exp));
    let ratio = with_interval(ratio);
    Ok(format!("{name:<7} driver over loop {ratio}; medians {driver:.2} µs and {by_hand:.2} µs"))
}

/// `1.120 (1.098 to 1.144)`.
pub(super) fn with_interval(of: Option<MeanEstimate>) -> String {
    match of {
        Some(MeanEstimate { mean, interval: Some((low, high)) }) => {
            format!("{mean:.3} ({low:.3} to {high:.3})")
        }
        Some(MeanEstimate { mean, .. }) => format!("{mean:.3}"),
        None => "-".to_owned(),
    }
}

/// The median slice of the driver `name`.
fn driver_ns(name: &str, directory: &Path) -> Result<f64, String> {
    let file: PathBuf = directory.join("driver.jsonl");
    let case = format!("{name}/pipe");
    let line = [
        "run",
        &case,
        "-s",
        SIZE,
        "-p",
        "cpus=0,0",
        "--time",
        MEASURE,
        "--precision",
        "0.001%",
        "--overwrite",
        "-o",
    ];
    said(ipcmark(directory).args(line).arg(&file))?;
    let all = read(&file)?;
    let records = all.records.iter().filter(|record| !record.case.spec.drivers.are_none());
    let times: Vec<f64> =
        records.flat_map(|record| &record.samples).map(|sample| sample.iteration_ns()).collect();
    median(&times).ok_or_else(|| "no slice was measured".to_owned())
}

pub(super) fn ipcmark(directory: &Path) -> Command {
    let mut command = Command::new(target("release/ipcmark"));
    command.env("XDG_DATA_HOME", directory);
    command
}

/// What `command` says on standard output, or on standard error if it fails.
pub(super) fn said(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
