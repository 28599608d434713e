//! `cargo xtask bench stream`: whether the rate of a stream depends on how long a slice is. It must not: filling the channel and
//! draining it are outside of what is timed.
//!
//! Slices of one length and of twice that are taken in turn from the same live trials, A B B A. Elapsed time against messages is
//! a line; where it meets no messages is what is in the time beside them.

use super::setup::{Bench, filling, shown};
use analysis::stats::{median, median_interval};
use harness::coordinator::schedule::{Trial, Trials};
use harness::coordinator::trial_error::TrialError;
use harness::protocol::orders::{Singly, SliceOrders};
use model::estimate::Estimate;
use model::{Case, Placement, Workload};
use std::time::Duration;

const SPECS: [&str; 6] = ["pipe", "unix-stream", "unix-dgram", "tcp", "shm-ring", "shm-ring:wait=spin"];
const SIZES: [u64; 2] = [4096, 65_536];
const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_millis(4);
const TRIALS: u64 = 12;
const QUADRUPLES: usize = 10;

/// The messages of a slice, and how long they took.
#[derive(Clone)]
struct Slice {
    messages: f64,
    elapsed_ns: f64,
}

/// Prints, for each stream, the time of a message in long slices over that in short ones, and the intercept.
pub fn run(bench: &Bench, only: &str) -> Result<(), String> {
    println!(
        "{TRIALS} trials of {QUADRUPLES} quadruples of slices of {SHORT:?} and {LONG:?}, medians over trials"
    );
    println!("{:<44} {:<28} intercept over a short slice", "", "long over short, a message");
    for placement in [Placement::SameCore, Placement::SameLlc] {
        // Two endpoints that spin on one CPU proceed only at the scheduler's tick.
        let is_possible = |spec: &&str| placement != Placement::SameCore || !spec.ends_with("wait=spin");
        for spec in SPECS.into_iter().filter(is_possible) {
            for size in SIZES {
                match bench.case(spec, Workload::Throughput, size, placement) {
                    Ok(case) if case.key().starts_with(only) => print(bench, &case),
                    Ok(_) => {}
                    Err(reason) => println!("{reason}"),
                }
            }
        }
    }
    Ok(())
}

fn print(bench: &Bench, case: &Case) {
    let trials = bench.trials();
    let measured: Result<Vec<[Vec<Slice>; 2]>, TrialError> =
        (0..TRIALS).map(|number| slices(trials.start(case, number, None)?)).collect();
    let trials = match measured {
        Ok(trials) => trials,
        Err(error) => return println!("{case}: {error}"),
    };
    let ratios: Vec<f64> = trials.iter().map(|[short, long]| ns(long) / ns(short)).collect();
    let intercepts: Vec<f64> = trials.iter().filter_map(|[short, long]| intercept(short, long)).collect();
    let intercept = match median_interval(&intercepts) {
        Some(Estimate { median, interval: Some((low, high)) }) => {
            format!("{median:+.4} ({low:+.4} to {high:+.4})")
        }
        _ => "none: slices are lengthened until the server has waited often enough".to_owned(),
    };
    println!("{:<44} {:<28} {intercept}", case.key(), shown(median_interval(&ratios)));
}

/// The short slices of a trial and the long ones, in the order short, long, long, short.
fn slices(mut trial: Box<dyn Trial + '_>) -> Result<[Vec<Slice>; 2], TrialError> {
    let mut of_length = [Vec::new(), Vec::new()];
    let mut hint_ns = None;
    for length in [0, 1, 1, 0].into_iter().cycle().take(4 * QUADRUPLES + 1) {
        let size = filling([SHORT, LONG][length], hint_ns);
        let sample = trial.slice(SliceOrders { size, singly: Singly::Omitted })?.sample;
        // The first slice begins with the warm-up, and sizes those that follow.
        if hint_ns.is_some() {
            let slice = Slice { messages: sample.iterations as f64, elapsed_ns: sample.elapsed_ns };
            of_length[length].push(slice);
        }
        hint_ns = Some(sample.iteration_ns());
    }
    trial.end()?;
    Ok(of_length)
}

/// What a message takes in the median slice.
fn ns(slices: &[Slice]) -> f64 {
    let times: Vec<f64> = slices.iter().map(|slice| slice.elapsed_ns / slice.messages).collect();
    median(&times).unwrap_or(f64::NAN)
}

/// What the line through the median short slice and the median long one says of no messages, over the time of the short one. `None`
/// where both have about as many messages, and so no line.
fn intercept(short: &[Slice], long: &[Slice]) -> Option<f64> {
    let median_of = |slices: &[Slice], of: fn(&Slice) -> f64| {
        median(&slices.iter().map(of).collect::<Vec<f64>>()).unwrap_or(f64::NAN)
    };
    let [few, many] = [short, long].map(|slices| median_of(slices, |slice| slice.messages));
    let [brief, lasting] = [short, long].map(|slices| median_of(slices, |slice| slice.elapsed_ns));
    (many > 1.5 * few).then(|| 1.0 - (lasting - brief) / (many - few) * few / brief)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_time_beside_the_messages_is_the_intercept() {
        let slices = |messages: f64, beside_ns: f64| {
            vec![Slice { messages, elapsed_ns: 10.0 * messages + beside_ns }; 1]
        };
        assert!(intercept(&slices(100.0, 0.0), &slices(200.0, 0.0)).unwrap().abs() < 1e-12);
        let beside = intercept(&slices(100.0, 250.0), &slices(200.0, 250.0)).unwrap();
        assert!((beside - 0.2).abs() < 1e-12, "250 of 1250 ns: {beside}");
        assert_eq!(intercept(&slices(100.0, 0.0), &slices(110.0, 0.0)), None);
    }
}
