//! `cargo xtask bench bare`: ipcmark against minimal loops written by hand. The loops are no part of what users install.
//!
//! The loops, in `endpoint`, are a source of trials of their own: two processes that stay alive, so that their slices are
//! interleaved with ipcmark's as those of two mechanisms are.

pub(super) mod descriptors;
mod endpoint;
mod trials;

use super::setup::{Bench, PRECISION, SLICE, TIME, shown};
use analysis::compare::{ComparisonOptions, PairedComparison, PairedRatios, compare_paired};
use analysis::stats::median;
use harness::clock::Timer;
use harness::coordinator::compare::{self, CasePair};
use harness::coordinator::schedule::{TimeBudget, Trials};
use model::estimate::Estimate;
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

/// The argument by which the loop is tried with a delay.
const DELAY: &str = "delay";

/// The delays that are tried, in nanoseconds: up to some percent of a round trip.
const DELAYS_NS: [(Placement, [u64; 8]); 2] = [
    (Placement::SameCore, [0, 50, 100, 150, 200, 300, 400, 600]),
    (Placement::SameLlc, [0, 500, 1000, 1500, 2000, 3000, 4000, 6000]),
];

/// Prints the time of ipcmark over that of each loop whose case begins with `only`. With [`DELAY`] it is what a round trip takes
/// longer by a delay before each message: in the loop by hand, for what is asked is whether the mechanism hides a delay.
pub fn run(bench: &Bench, only: &str) -> Result<(), String> {
    if only == DELAY {
        println!(
            "a loop written by hand with a delay before each message, over the same loop with one of 0 ns"
        );
        println!("{:<34} {:>11} {:>11}  ratio (95% interval), quadruples of slices", "", "0 ns", "delayed");
        for (placement, delays_ns) in DELAYS_NS {
            for spec in ["pipe", "unix-stream", "tcp"] {
                let case = bench.case(spec, Workload::Latency, 1, placement)?;
                for delay_ns in delays_ns {
                    print!("{delay_ns:>4} ns: ");
                    let delayed = |ns| ByHandTrials { delay_ns: Some(ns) };
                    print_ratio(&case, [&delayed(0), &delayed(delay_ns)])?;
                }
            }
        }
        return Ok(());
    }
    println!("ipcmark over a minimal loop written by hand, both alive, slices of {SLICE:?} in ABBA order");
    println!("{:<34} {:>11} {:>11}  ratio (95% interval), quadruples of slices", "", "by hand", "ipcmark");
    for placement in [Placement::SameCore, Placement::SameLlc] {
        for (spec, workload, size) in CASES {
            // Two CPUs need no context switch, so that this floor exists on one CPU only.
            if spec == "context-switch" && placement != Placement::SameCore {
                continue;
            }
            match bench.case(spec, workload, size, placement) {
                Ok(case) if !case.key().starts_with(only) => {}
                Ok(case) => print_ratio(&case, [&ByHandTrials::default(), &bench.trials()])?,
                Err(reason) => println!("{reason}"),
            }
        }
    }
    Ok(())
}

/// Measures `case` by two sources of trials, and prints the time of the second over that of the first.
fn print_ratio(case: &Case, sources: [&dyn Trials; 2]) -> Result<(), String> {
    let mut pairs = [CasePair::new(case.clone(), case.clone())];
    let budget = TimeBudget { clock: &Timer::start(), time: TIME };
    compare::measure(&mut pairs, sources, budget, SLICE, &is_known, |_| {});
    let [pair] = &pairs;
    if let Some(failure) = &pair.failure {
        return Err(failure.clone());
    }
    let time = |samples: &[Sample]| {
        let times: Vec<f64> = samples.iter().map(Sample::iteration_ns).collect();
        format_ns(median(&times).unwrap_or(f64::NAN))
    };
    let [first, second] = pair.samples.each_ref().map(|samples| time(samples));
    let compared = compared(pair);
    let ratio = compared.ratio.map(|ratio| Estimate { interval: compared.own_interval, ..ratio });
    println!(
        "{:<34} {first:>11} {second:>11}  {}, {}{}",
        case.key(),
        shown(ratio),
        compared.quadruples,
        if compared.at_full_speed { ", at full speed" } else { "" }
    );
    Ok(())
}

fn compared(pair: &CasePair) -> PairedComparison {
    let [a, b] = &pair.samples;
    let ratios = PairedRatios::new(pair.cases[1].key(), pair.cases.each_ref(), [a, b]);
    let elapsed_ns = TIME.as_nanos() as f64;
    let mut compared = compare_paired(&[ratios], elapsed_ns, ComparisonOptions::interleaved());
    compared.remove(0)
}

/// Whether the ratio is known to within [`PRECISION`].
fn is_known(pair: &CasePair) -> bool {
    compared(pair).own_interval.is_some_and(|(low, high)| (high - low) / 2.0 <= PRECISION)
}
