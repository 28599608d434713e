//! `cargo xtask bench bare`: ipcmark against minimal loops written by hand. The loops are no part of what users install.
//!
//! The loops, in `endpoint`, are a source of trials of their own: two processes that stay alive, so that their slices are
//! interleaved with ipcmark's as those of two mechanisms are.

pub(super) mod descriptors;
mod endpoint;
mod trials;

use super::setup::{Bench, PRECISION, SLICE, TIME, shown};
use analysis::compare::round_log_ratios;
use analysis::stats::{median, median_interval};
use harness::clock::Timer;
use harness::coordinator::compare::{self, CasePair};
use harness::coordinator::schedule::TimeBudget;
use model::units::format_ns;
use model::{Case, Placement, Sample, Workload};
use trials::ByHandTrials;

pub use endpoint::{BY_HAND, main as endpoint};

/// The cases of which there is a loop written by hand: mechanism, workload, bytes.
const CASES: [(&str, Workload, u64); 6] = [
    ("pipe", Workload::Latency, 1),
    ("unix-stream", Workload::Latency, 1),
    ("tcp", Workload::Latency, 1),
    ("context-switch", Workload::Latency, 1),
    ("pipe", Workload::Throughput, 65_536),
    ("unix-stream", Workload::Throughput, 65_536),
];

/// Prints the time of ipcmark over that of each loop whose case begins with `only`.
pub fn run(bench: &Bench, only: &str) -> Result<(), String> {
    println!("ipcmark over a minimal loop written by hand, both alive, slices of {SLICE:?} in ABBA order");
    println!("{:<34} {:>11} {:>11}  ratio (95% interval), rounds", "", "by hand", "ipcmark");
    for placement in [Placement::SameCore, Placement::SameLlc] {
        for (spec, workload, size) in CASES {
            // Two CPUs need no context switch, so that this floor exists on one CPU only.
            if spec == "context-switch" && placement != Placement::SameCore {
                continue;
            }
            match bench.case(spec, workload, size, placement) {
                Ok(case) if !case.key().starts_with(only) => {}
                Ok(case) => against_loop(bench, &case)?,
                Err(reason) => println!("{reason}"),
            }
        }
    }
    Ok(())
}

fn against_loop(bench: &Bench, case: &Case) -> Result<(), String> {
    let mut pairs = [CasePair::new(case.clone(), case.clone())];
    let known = |a: &[Sample], b: &[Sample]| is_known(&round_log_ratios(a, b));
    let budget = TimeBudget { clock: &Timer::start(), time: TIME };
    compare::measure(&mut pairs, [&ByHandTrials, &bench.trials()], budget, SLICE, &known, |_| {});
    let [CasePair { samples: [by_hand, ours], failure, .. }] = &pairs;
    if let Some(failure) = failure {
        return Err(failure.clone());
    }
    let time = |samples: &[Sample]| {
        let times: Vec<f64> = samples.iter().map(Sample::iteration_ns).collect();
        format_ns(median(&times).unwrap_or(f64::NAN))
    };
    let logs = round_log_ratios(by_hand, ours);
    let ratio = median_interval(&logs).map(|estimate| estimate.map(f64::exp));
    println!("{:<34} {:>11} {:>11}  {}, {}", case.key(), time(by_hand), time(ours), shown(ratio), logs.len());
    Ok(())
}

/// Whether the ratio of which `log_ratios` has one a round is known to within [`PRECISION`].
fn is_known(log_ratios: &[f64]) -> bool {
    const LEAST_ROUNDS: usize = 100;
    let interval = median_interval(log_ratios).and_then(|estimate| estimate.interval);
    log_ratios.len() >= LEAST_ROUNDS && interval.is_some_and(|(low, high)| (high - low) / 2.0 <= PRECISION)
}
