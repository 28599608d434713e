//! Comparison of two results: is B faster than A, slower, or can it not be told?
//!
//! Machines drift: they move between speeds within seconds and from run to run, one trial resembles
//! the next, and a second run of the same program is off by some per cent for reasons of its own.
//! A comparison that takes trials for independent calls half of all cases different on such a host.
//! This comparison works as follows.
//!
//! 1. Everything is on logarithms: a shift is ln B − ln A, and its exponential a ratio.
//! 2. The times of a run are those of its model (`run`), at one state of the host for all runs. A multiple of a floor is the
//!    trimmed mean of its trials, in time order, and the error comes from what they differ by, with what neighbours have in
//!    common (`interval::MeanError`). Degrees of freedom are Welch's and Satterthwaite's, quantiles Student's.
//! 3. Each run adds the variance between runs, from replicates or from the differences of all cases (`run_estimate`), with what
//!    multiples of floors move by together within a run (`common_drift`).
//! 4. Which cases are called different is decided over mechanisms and their cases, so that few of those called are false
//!    (`discoveries`); the interval of each is of the level by which it is judged.
//! 5. Each case is judged by several ratios: of its time, of its time as a multiple of its floor in the
//!    same round, and as multiples of the run's other floors that resemble it. It is faster or slower
//!    when its multiple of the floor is, and its time is too, and nothing else explains the change:
//!    neither another floor nor, where the floor does not do as the case does, the other mechanisms with its workload and
//!    placement, if they moved as much. Where the time varied too much to say, and the floor is a switch on one CPU as the case is,
//!    it is enough that the time does not contradict; but then the floor has a variance between runs of its own.
//! 6. There is no difference when the case's own 95% interval lies within [`ComparisonOptions::margin`]: of its multiple of the floor where it
//!    has one, of its time where the speed of the host was read beside it, or of its time beside the other mechanisms between the same
//!    CPUs, whichever is the narrowest. None of these depends on how fast the host was.
//!
//! What this cannot tell: a speed that changes from run to run for one mechanism alone looks like a change of that
//! mechanism; and a real change of all mechanisms with one workload and placement, whose floor does not do as they do, is taken for one of
//! the host. Only further runs of A and B, in turn, can tell.
//!
//! Two sides measured interleaved need none of this: see [`compare_paired`].

mod any_time;
mod case_shifts;
mod chosen_pair;
mod common_drift;
mod comparison;
mod discoveries;
mod mean_ratio;
mod options;
mod paired;
#[cfg(test)]
mod paired_tests;
mod pairing;
mod quadruples;
mod references;
mod result;
mod run_estimate;
mod run_variance;
#[cfg(test)]
mod simulation;
mod statistics;
#[cfg(test)]
mod tests;
mod totals;
mod verdict;

pub use self::comparison::{compare, gate};
pub use self::mean_ratio::FEWEST_TRIAL_PAIRS;
pub(crate) use self::mean_ratio::MeanRatio;
pub use self::options::ComparisonOptions;
pub(crate) use self::paired::time_of;
pub use self::paired::{
    ComparisonPlan, PairedComparison, PairedRatios, PlannedComparison, compare_paired, gate_paired,
    is_paired_verdict_reached, plan_paired,
};
pub use self::quadruples::{QuadrupleRatio, QuadrupleSpeed, round_log_ratios};
pub use self::result::{
    AdjustedRatio, ComparedCase, Comparison, ComparisonTotals, ComparisonVerdict, Difference, Gate, Ratio,
    RunDeviation, RunMedian,
};
pub use self::run_variance::RunVarianceSource;
pub use self::statistics::FEWEST_TRIALS;
