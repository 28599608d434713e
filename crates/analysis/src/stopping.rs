//! When a case has been measured enough. The interval is that of the summary; here is how long a run must have gone on for it
//! to be believed.

use model::estimate::Estimate;
use model::record::Sample;

/// The trials that a case has before it is asked whether it is settled. An interval of fewer is narrow by chance too often.
pub const LEAST_TRIALS: usize = 8;
/// A shared host may stay in one state for ten seconds. A run that ends within a few such stays has not seen what the
/// host does: simulated, a case that may settle after ten seconds covers the truth in 64%. Readings that stay the same are no sign of
/// a quiet host, because it may be slow for as long.
pub const LEAST_SPAN_NS: u64 = 30_000_000_000;

/// Whether the time that `estimate` gives for `samples` is known to within the fraction `precision`, by a run that was long
/// enough to be believed. It is asked for the estimate only then.
pub fn is_settled(samples: &[Sample], precision: f64, estimate: impl FnOnce() -> Option<Estimate>) -> bool {
    let mut trials: Vec<u32> = samples.iter().map(|sample| sample.trial).collect();
    trials.sort_unstable();
    trials.dedup();
    let is_long = trials.len() >= LEAST_TRIALS && span_ns(samples) >= LEAST_SPAN_NS;
    is_long && estimate().is_some_and(|estimate| is_narrow(estimate, precision))
}

/// Whether the interval of `estimate` is as narrow as `precision` asks.
pub fn is_narrow(estimate: Estimate, precision: f64) -> bool {
    estimate.half_width().is_some_and(|half| half <= precision)
}

fn span_ns(samples: &[Sample]) -> u64 {
    let starts = || samples.iter().map(|sample| sample.started_ns);
    starts().max().unwrap_or(0) - starts().min().unwrap_or(0)
}
