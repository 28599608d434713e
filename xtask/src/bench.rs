//! `cargo xtask bench`: how ipcmark compares with other ways to do the same work, as ratios measured interleaved.
//!
//! Nothing here passes or fails: these hosts are shared, and a number is for people to judge.

pub mod by_hand;
mod others;
mod page;
pub mod probes;
mod ring;
mod setup;
pub mod speed;

use crate::steps::{cargo, root, step};
use analysis::compare::ComparisonVerdict;
use analysis::stats::median;
use harness::clock::Timer;
use harness::coordinator::schedule::Trials;
use harness::coordinator::trial_error::TrialError;
use harness::protocol::orders::{Singly, SliceOrders};
use model::units::format_ns;
use model::{Placement, Workload};
use setup::{Bench, SLICE, filling};
use std::process::Stdio;

/// Runs the benchmark `name`. Of `bare` and `others` it runs only the cases or the programs whose name begins with `only`.
pub fn run(name: &str, only: &str) -> Result<(), String> {
    if cfg!(debug_assertions) {
        return Err("this build is not optimised: run `cargo xtask bench`".to_owned());
    }
    if name == "page" {
        return page::bench();
    }
    let bench = Bench::new()?;
    match name {
        "bare" => by_hand::run(&bench, only),
        "ring" => ring::run(&bench),
        "trial" => trial_cost(&bench),
        "same" => repeat_default_suite(),
        "others" => others::run(&bench, only),
        "probes" => probes::run(&bench),
        "speed" => speed::run(&bench),
        _ => Err("known benchmarks: bare, ring, trial, same, others, probes, page, speed".to_owned()),
    }
}

/// Prints what a trial and a slice of it cost beside the iterations that are timed.
fn trial_cost(bench: &Bench) -> Result<(), String> {
    const TRIALS: u64 = 40;
    const SLICES: usize = 16;
    let trials = bench.trials();
    println!("{TRIALS} trials of {SLICES} slices of {SLICE:?} each; medians");
    for placement in [Placement::SameCore, Placement::SameLlc] {
        let case = bench.case("pipe", Workload::Latency, 1, placement)?;
        let (mut starting, mut first, mut further) = (Vec::new(), Vec::new(), Vec::new());
        let said = |error: TrialError| format!("{case}: {error}");
        for number in 0..TRIALS {
            let (trial, start_ns) = timed(|| trials.start(&case, number, None));
            let mut trial = trial.map_err(said)?;
            for slice in 0..SLICES {
                let orders = SliceOrders { size: filling(SLICE, None), singly: Singly::Omitted };
                let (report, whole_ns) = timed(|| trial.slice(orders));
                let beside_ns = whole_ns - report.map_err(said)?.sample.elapsed_ns;
                // The first slice of a trial begins with its warm-up.
                if slice == 0 { first.push(beside_ns) } else { further.push(beside_ns) }
            }
            let (ended, end_ns) = timed(|| trial.end());
            ended.map_err(said)?;
            starting.push(start_ns + end_ns);
        }
        let time = |values: &[f64]| format_ns(median(values).unwrap_or(f64::NAN));
        println!(
            "{case}: to start and to end a trial takes {}; beside its timed iterations its first slice takes {}, each further {}",
            time(&starting),
            time(&first),
            time(&further)
        );
    }
    Ok(())
}

/// What `work` returns, and how long it took in nanoseconds.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let timer = Timer::start();
    let done = work();
    (done, timer.elapsed().as_nanos() as f64)
}

/// Runs the default suite eleven times and compares each run with the next.
fn repeat_default_suite() -> Result<(), String> {
    const RUNS: usize = 11;
    let directory = root().join("target/bench-same");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let file = |run: usize| directory.join(format!("{run}.jsonl"));
    let read = |run: usize| -> Result<model::record::Results, String> {
        let file = std::fs::File::open(file(run)).map_err(|error| error.to_string())?;
        model::results::parse(std::io::BufReader::new(file), "run").map_err(|invalid| invalid.to_string())
    };
    let (mut cases, mut different) = (0, 0);
    for run in 0..RUNS {
        let mut command =
            cargo(&["run", "--quiet", "--release", "--package", "ipcmark", "--", "run", "--output"]);
        step(&format!("run {run}"), command.arg(file(run)).stdout(Stdio::null()).stderr(Stdio::null()))?;
        if run == 0 {
            continue;
        }
        let compared = analysis::compare::compare(
            &read(run - 1)?,
            &read(run)?,
            analysis::compare::ComparisonOptions::default(),
        );
        let totals = &compared.totals;
        cases += compared.cases.len();
        different += (totals.faster + totals.slower) as usize;
        println!(
            "pair {run}: {} cases, {} faster, {} slower, {} no difference, {} cannot tell",
            compared.cases.len(),
            totals.faster,
            totals.slower,
            totals.no_difference,
            totals.cannot_tell
        );
        for case in compared
            .cases
            .iter()
            .filter(|case| matches!(case.verdict, ComparisonVerdict::Faster | ComparisonVerdict::Slower))
        {
            println!("  {} {} {}", case.key, case.verdict, case.ratio.map_or(f64::NAN, |ratio| ratio.ratio));
        }
    }
    println!(
        "{different} of {cases} cases called different: 1 in {:.0}",
        cases as f64 / different.max(1) as f64
    );
    Ok(())
}
