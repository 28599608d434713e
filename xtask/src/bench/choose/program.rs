//! A real program: recorded as it runs, what an exchanged mechanism would give it predicted, and then really changed.

use super::costs::{compared, predicted};
use crate::bench::ipcmark::Ipcmark;
use mechanisms::registry::CARDS;
use model::Scenario;
use model::scenario::Flow;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};

/// How many pairs of runs there are, before and after the change. What a program does in a second differs by several percent from one
/// start to the next, so that many short runs say more than few long ones.
const PAIRS: usize = 30;
/// How long costs are measured for a prediction.
const MEASURE: &str = "120s";

/// A program that can do the same work over two mechanisms.
pub(super) trait Program {
    /// What it is, and how much of it.
    fn name(&self) -> String;

    /// Whether `flow` of `scenario` goes over another mechanism after the change.
    fn is_exchanged(&self, scenario: &Scenario, flow: &Flow) -> bool;

    /// What it goes over then.
    fn after(&self) -> &str;

    /// Starts the work, and records it into `file`.
    fn record(&self, ipcmark: &Ipcmark, file: &Path) -> Result<(), String>;

    /// How much work it does in a second, after the change or before it.
    fn rate(&self, is_after: bool) -> Result<f64, String>;
}

/// Prints what was predicted of `program` beside what really changed.
pub(super) fn tried(ipcmark: &Ipcmark, program: &dyn Program) -> Result<(), String> {
    let file = ipcmark.file(&program.name().replace([' ', ','], "-")).with_extension("toml");
    program.record(ipcmark, &file)?;
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let scenario =
        Scenario::parse(&text, CARDS).map_err(|invalid| format!("{}: {invalid}", file.display()))?;
    let flows = scenario.flows.iter().enumerate();
    let exchanged: Vec<(usize, &Flow)> =
        flows.filter(|(_, flow)| program.is_exchanged(&scenario, flow)).collect();
    let per_s = |flow: &Flow| flow.recorded.as_ref().map_or(0.0, |recorded| recorded.per_s);
    let busiest = exchanged.iter().max_by(|(_, a), (_, b)| per_s(a).total_cmp(&per_s(b)));
    let (busiest, _) = busiest.ok_or_else(|| format!("{}: no flow is to be exchanged", file.display()))?;
    let exchanges: Vec<String> =
        exchanged.iter().map(|(_, flow)| format!("{}={}", flow.name, program.after())).collect();
    let found = predicted(ipcmark, &file, &exchanges, &["--measure", MEASURE])?;
    let ratios = in_pairs(|is_after| program.rate(is_after))?;
    // Several clients do their work together.
    let together = &found["prediction"]["together_per_s"];
    let of_busiest = &found["prediction"]["flows"][*busiest]["per_s"];
    let predicted = if together.is_null() { of_busiest } else { together };
    println!("{}", compared(&program.name(), predicted, &ratios));
    Ok(())
}

/// The ratios of what `rate` gives after a change and before it, in turn and in both orders, so that what drifts is in both.
pub(super) fn in_pairs(mut rate: impl FnMut(bool) -> Result<f64, String>) -> Result<Vec<f64>, String> {
    let mut ratio = |pair: usize| {
        let first = pair % 2 == 1;
        let (first_rate, second_rate) = (rate(first)?, rate(!first)?);
        Ok(if first { first_rate / second_rate } else { second_rate / first_rate })
    };
    (0..PAIRS).map(&mut ratio).collect()
}

/// How long processes are recorded, as ipcmark takes it.
const RECORDING: &str = "6s";

/// Records processes that run, with all that they have started, into `file`.
pub(super) fn record_processes(ipcmark: &Ipcmark, pids: &[u32], file: &Path) -> Result<(), String> {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let mut record = Command::new(&ipcmark.program);
    record.args(["record", "--time", RECORDING, "--pid", &pids.join(","), "-o"]).arg(file);
    ipcmark.said_by(&mut record).map(drop)
}

/// All CPUs, as taskset takes it.
pub(super) const ALL_CPUS: &str = "0-1023";

/// Holds the process `pid`, the processes that it has started, and those that it will start, to `cpus`.
pub(super) fn hold(pid: u32, cpus: &str) -> Result<(), String> {
    let to_cpus = |pid: &str| said(Command::new("taskset").args(["-a", "-p", "-c", cpus, pid])).map(drop);
    to_cpus(&pid.to_string())?;
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    // One may have ended meanwhile.
    children.split_whitespace().for_each(|child| to_cpus(child).unwrap_or_default());
    Ok(())
}

/// `program` on `cpus`.
pub(super) fn on(cpus: &str, program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", cpus, program]);
    command
}

/// Whether `program` can be run.
pub(super) fn is_here(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// What `command` prints, or what it complains of.
pub(super) fn said(command: &mut Command) -> Result<String, String> {
    let wrong = |error: std::io::Error| error.to_string();
    // A server that goes on keeps no pipe of ours open.
    let mut log = tempfile::tempfile().map_err(wrong)?;
    let copy = |file: &File| file.try_clone().map_err(wrong);
    let status = command.stdin(Stdio::null()).stdout(copy(&log)?).stderr(copy(&log)?).status();
    let status = status.map_err(|error| format!("{command:?}: {error}"))?;
    let mut text = String::new();
    log.rewind().and_then(|()| log.read_to_string(&mut text)).map_err(wrong)?;
    if status.success() { Ok(text) } else { Err(format!("{command:?}: {status}: {}", text.trim())) }
}

/// The first number after `label` at the beginning of a line of `text`.
pub(super) fn number_after(text: &str, label: &str) -> Result<f64, String> {
    let found =
        text.lines().find_map(|line| line.strip_prefix(label)?.split_whitespace().next()?.parse().ok());
    found.ok_or_else(|| format!("nobody says '{label}': {text}"))
}
