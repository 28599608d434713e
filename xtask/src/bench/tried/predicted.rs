//! `cargo xtask bench predict [NAME [PASSES [SECONDS]]]`: what an exchange does to servers that people use, as `try` does it, and whether
//! that lies within the bounds that `ipcmark predict` gives from a recording over TCP.

use super::ratio::{change, ratio_words, said};
use super::workload::{self, Workload};
use super::{AS_IT_IS, EXCHANGED, first_of, in_turn};
use crate::bench::ipcmark::Ipcmark;
use crate::bench::setup::numbers;
use analysis::interval::MeanEstimate;
use harness::programs::Programs;
use harness::programs::started::{StartedProgram, Variant};
use mechanisms::registry::CARDS;
use model::Scenario;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long a program is recorded.
const RECORDING: &str = "5s";

/// Measures, records and predicts all workloads, or those whose name begins so.
pub(in crate::bench) fn run(arguments: &[&str]) -> Result<(), String> {
    let (only, rest) = arguments.split_first().map_or(("", arguments), |(only, rest)| (*only, rest));
    let [passes, seconds] = numbers(rest, [8, 40])?;
    let ipcmark = Ipcmark::build("bench-predict")?;
    println!(
        "| program | connections | measured | bounds | as if alone | as if waiting for the busiest | within |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let all = sched_getaffinity(None).map_err(|errno| errno.to_string())?;
    for workload in workload::read(only)? {
        let prepared = match workload.prepare() {
            Ok(prepared) => prepared,
            Err(why) => {
                println!("| {} | | {why} | | | | |", workload.name);
                continue;
            }
        };
        for run in &workload.runs {
            let connections = run.get("CONNECTIONS").copied().unwrap_or(1);
            let cpus = if connections == 1 { first_of(&all) } else { all };
            sched_setaffinity(None, &cpus).map_err(|errno| errno.to_string())?;
            let [programs, _] = prepared.programs(run)?;
            // What happens comes first, so that nobody knows what was predicted.
            let starts = in_turn(&workload, &prepared, run, passes as u32, &[AS_IT_IS, EXCHANGED]);
            let measured = starts.ok().and_then(|starts| change(&starts, AS_IT_IS, EXCHANGED));
            let file = ipcmark.file(&format!("{}-{connections}", workload.name)).with_extension("toml");
            let recorded = record(&ipcmark, &programs, &file);
            sched_setaffinity(None, &all).map_err(|errno| errno.to_string())?;
            let predicted = recorded.and_then(|()| predicted(&ipcmark, &workload, &file, seconds));
            let predicted = match predicted {
                Ok(prediction) => columns(&prediction, measured),
                Err(why) => format!("{} | | | ", why.replace(['\n', '|'], " ")),
            };
            println!("| {} | {connections} | {} | {predicted} |", workload.name, ratio_words(measured));
        }
    }
    Ok(())
}

/// A command that is run again and again, until it is dropped.
struct Again(Child);

impl Drop for Again {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Records the servers and their client, over TCP and without a filter, into `file`.
fn record(ipcmark: &Ipcmark, programs: &Programs, file: &Path) -> Result<(), String> {
    let nobody = AtomicBool::new(false);
    let started = StartedProgram::new(programs, &Variant::Free, &nobody).map_err(said)?;
    let mut again = Command::new("sh");
    again.args(["-c", &format!("while {} >/dev/null 2>&1; do :; done", programs.command_line())]);
    again.stdin(Stdio::null());
    let again = Again(again.spawn().map_err(|error| format!("sh: {error}"))?);
    std::thread::sleep(Duration::from_secs(1));
    let mut pids: Vec<String> = started.server_parents().iter().map(ToString::to_string).collect();
    pids.push(again.0.id().to_string());
    let mut record = Command::new(&ipcmark.program);
    record.args(["record", "--time", RECORDING, "--pid", &pids.join(","), "--overwrite", "-o"]).arg(file);
    let recorded = ipcmark.said_by(&mut record).map(drop);
    drop(again);
    started.end().map_err(said)?;
    recorded
}

/// What is predicted of what was recorded in `file`.
fn predicted(ipcmark: &Ipcmark, workload: &Workload, file: &Path, seconds: u64) -> Result<Value, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let scenario =
        Scenario::parse(&text, CARDS).map_err(|invalid| format!("{}: {invalid}", file.display()))?;
    let mut command = Command::new(&ipcmark.program);
    command.arg("predict").arg(file).args(["--format", "json", "--time", &format!("{seconds}s")]);
    let is_of_the_load = |name: &str| ["load", "wrk"].iter().any(|load| name.starts_with(load));
    for flow in scenario.flows.iter().filter(|flow| flow.mechanism.name == "tcp") {
        // Only the hop behind the proxy is exchanged of the one.
        if workload.exchanges == "tcp=unix-stream" || !is_of_the_load(&scenario.processes[flow.from].name) {
            command.args(["--set", &format!("{}=unix-stream", flow.name)]);
        }
    }
    let said = ipcmark.said_by(&mut command)?;
    let found: Value = serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))?;
    Ok(found["prediction"].clone())
}

/// The bounds, both limits, and whether what was measured lies within the bounds.
fn columns(prediction: &Value, measured: Option<MeanEstimate>) -> String {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let [low, high] = [0, 1].map(|at| number(&prediction["ratio_bounds"][at]));
    let [alone, busiest] = ["alone", "busiest"].map(|limit| number(&prediction[limit]["ratio"]));
    let within =
        measured.map_or("-", |ratio| if (low..=high).contains(&ratio.mean) { "yes" } else { "**no**" });
    format!("{low:.3} to {high:.3} | {alone:.3} | {busiest:.3} | {within}")
}
