//! `cargo xtask bench`: how ipcmark compares with other ways to do the same work, as ratios measured interleaved.
//!
//! Nothing here passes or fails: these hosts are shared, and a number is for people to judge.

mod advise;
pub mod by_hand;
mod coverage;
mod explain;
mod ipcmark;
mod languages;
mod layers;
mod memory;
mod others;
mod page;
pub mod probes;
mod remote;
mod run_model;
mod setup;
mod static_binary;
mod stream;
mod tried;
mod verdicts;

use analysis::stats::median;
use harness::clock::Timer;
use harness::coordinator::schedule::Trials;
use harness::coordinator::trial_error::TrialError;
use harness::protocol::orders::{Singly, SliceOrders};
use model::units::format_ns;
use model::{Placement, Workload};
use setup::{Bench, SLICE, filling};

/// Runs the benchmark `name` with what is said behind it; `None` if there is none of this name.
pub fn run(name: &str, arguments: &[&str]) -> Option<Result<(), String>> {
    if cfg!(debug_assertions) {
        return Some(Err("this build is not optimised: run `cargo xtask bench`".to_owned()));
    }
    // Only the cases, or the programs, whose name begins with it.
    let only = arguments.first().copied().unwrap_or_default();
    Some(match name {
        "advise" => advise::run(arguments),
        "page" => page::bench(),
        "coverage" => coverage::run(arguments),
        "same" => verdicts::same(arguments),
        "power" => verdicts::power(arguments),
        "bare" => on_bench(by_hand::run, only),
        "trial" => Bench::new().and_then(|bench| trial_cost(&bench)),
        "others" => on_bench(others::run, only),
        "remote" => on_bench(remote::run, only),
        "explain" => on_bench(explain::run, only),
        "probes" => Bench::new().and_then(|bench| probes::run(&bench)),
        "languages" => languages::run(only),
        "layers" => layers::run(arguments),
        "memory" => memory::run(arguments),
        "model" => run_model::run(arguments),
        "static" => static_binary::run(arguments),
        "stream" => on_bench(stream::run, only),
        "try" => tried::run(arguments),
        "predict" => tried::predicted::run(arguments),
        _ => return None,
    })
}

fn on_bench(run: fn(&Bench, &str) -> Result<(), String>, only: &str) -> Result<(), String> {
    run(&Bench::new()?, only)
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
