//! `cargo xtask bench probes`: what it costs to record the CPUs, what each probe of an endpoint costs, and what strace costs, as
//! ratios measured interleaved.
//!
//! The endpoint itself reads the clock at the beginning and the end of its iterations, with and without a probe.

use super::setup::{Bench, shown};
use analysis::stats::median_interval;
use harness::coordinator::schedule::{Trial, Trials};
use harness::coordinator::trial_error::TrialError;
use harness::protocol::orders::{Singly, Sizing, SliceOrders};
use model::estimate::Estimate;
use model::observation::{EventSet, Probe, ProbeRequest, RecordingWay};
use model::{Case, Placement, Workload};
use std::process::Command;

/// The hidden task that makes one trial of the case and prints the time of an iteration; strace follows it.
pub const ONE_TRIAL: &str = "__one_trial";

const ROUNDS: u64 = 12;
/// The most that a probe observes in one trial.
const ITERATIONS: Sizing = Sizing::Iterations(2000);

/// A pipe's round trip of 4 KiB on one core: each iteration is four system calls and two switches.
fn case(bench: &Bench) -> Result<Case, String> {
    bench.case("pipe", Workload::Latency, 4096, Placement::SameCore)
}

/// Makes one trial and prints nanoseconds per iteration.
pub fn one_trial() -> Result<(), String> {
    let bench = Bench::new()?;
    println!("{}", by(&bench, &case(&bench)?, None, 0)?);
    Ok(())
}

/// What is recorded of the CPUs, step by step.
const RECORDED: [(&str, &[EventSet]); 5] = [
    ("no event", &[]),
    ("switches", &[EventSet::Switches]),
    ("scheduler", &[EventSet::Switches, EventSet::WakeUps]),
    ("path", &[EventSet::Switches, EventSet::WakeUps, EventSet::Calls]),
    ("all events", EventSet::ALL),
];
/// How it is recorded.
const WAYS: [(&str, RecordingWay); 2] = [
    ("by programs in the kernel (bpf)", RecordingWay::Programs),
    ("by perf records", RecordingWay::PerfRecords),
];
/// How many trials a step has, and how many ratios each.
const TRIALS: u64 = 4;
const RATIOS_A_TRIAL: usize = 8;

/// Prints the ratios.
pub fn run(bench: &Bench) -> Result<(), String> {
    let case = case(bench)?;
    println!("{case}: an iteration with a probe over one without, each between two of those");
    for (how, way) in WAYS {
        println!("recorded on the CPUs {how}:");
        for (name, sets) in RECORDED {
            print(name, &recorded(bench, &case, sets, way));
        }
    }
    println!("by the endpoints, of their own threads:");
    let probes = Probe::ALL
        .iter()
        .map(|&probe| (probe.name(), ratio(bench, &case, |number| by(bench, &case, Some(probe), number))));
    let probes: Vec<_> = probes.collect();
    let strace = ratio(bench, &case, |_| strace());
    for (name, ratio) in &probes {
        print(name, ratio);
    }
    print("strace -f -c", &strace);
    if let (Ok(strace), Some((_, Ok(syscalls)))) =
        (strace, probes.iter().find(|(name, _)| *name == "syscalls"))
    {
        println!(
            "strace makes an iteration {:.1} times as long as the tracepoints of the same calls do; it adds {:.1} times as much",
            strace.median / syscalls.median,
            (strace.median - 1.0) / (syscalls.median - 1.0)
        );
    }
    Ok(())
}

fn print(name: &str, ratio: &Result<Estimate, String>) {
    match ratio {
        Ok(ratio) => println!("{name:<14} {}", shown(Some(*ratio))),
        Err(reason) => println!("{name:<14} not here: {reason}"),
    }
}

/// The time of an iteration while `sets` are recorded, over that of those before and after it in the same trial.
fn recorded(bench: &Bench, case: &Case, sets: &[EventSet], way: RecordingWay) -> Result<Estimate, String> {
    let mut logs = Vec::new();
    for number in 0..TRIALS {
        let trials = bench.trials();
        let mut of_trial = || -> Result<(), TrialError> {
            let mut trial = trials.start(case, number, None)?;
            bare(&mut *trial)?;
            for _ in 0..RATIOS_A_TRIAL {
                let before = bare(&mut *trial)?;
                let (report, trace) = trial.traced_slice(ITERATIONS, sets, way)?;
                let after = bare(&mut *trial)?;
                logs.push(report.sample.iteration_ns().ln() - (before.ln() + after.ln()) / 2.0);
                trace.no_programs.iter().chain(&trace.unavailable).for_each(|reason| println!("  {reason}"));
                if trace.lost > 0 {
                    println!("  {} records were lost", trace.lost);
                }
            }
            trial.end()
        };
        of_trial().map_err(|error| format!("{case}: {error}"))?;
    }
    let estimate = median_interval(&logs).map(|logs| logs.map(f64::exp));
    estimate.ok_or_else(|| "nothing was measured".to_owned())
}

/// The time of an iteration that nothing observes.
fn bare(trial: &mut dyn Trial) -> Result<f64, TrialError> {
    let report = trial.slice(SliceOrders { size: ITERATIONS, singly: Singly::Omitted })?;
    Ok(report.sample.iteration_ns())
}

/// The time of an iteration that `probed` returns, over that of the same iteration without probes before and after.
fn ratio(
    bench: &Bench,
    case: &Case,
    probed: impl Fn(u64) -> Result<f64, String>,
) -> Result<Estimate, String> {
    // The first warms up.
    probed(0)?;
    let log = |round: u64| -> Result<f64, String> {
        let before = by(bench, case, None, 3 * round)?;
        let with_probe = probed(3 * round + 1)?;
        let after = by(bench, case, None, 3 * round + 2)?;
        Ok(with_probe.ln() - (before.ln() + after.ln()) / 2.0)
    };
    let logs = (0..ROUNDS).map(log).collect::<Result<Vec<_>, _>>()?;
    let estimate = median_interval(&logs).map(|logs| logs.map(f64::exp));
    estimate.ok_or_else(|| "nothing was measured".to_owned())
}

fn by(bench: &Bench, case: &Case, probe: Option<Probe>, number: u64) -> Result<f64, String> {
    let request = ProbeRequest { probe, ..ProbeRequest::default() };
    let observation = bench.trial(case, ITERATIONS, number, Some(&request))?.observation;
    observation.map(|observation| observation.iteration_ns()).ok_or_else(|| format!("{case}: no observation"))
}

/// The time of an iteration in a program that strace follows, with all its endpoints.
fn strace() -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output =
        Command::new("strace").args(["-f", "-c", "-o", "/dev/null"]).arg(program).arg(ONE_TRIAL).output();
    let output = output.map_err(|error| format!("strace cannot be started: {error}; install it"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim().parse().map_err(|_| format!("strace said {}", String::from_utf8_lossy(&output.stderr).trim()))
}
