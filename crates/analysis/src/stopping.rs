//! When a case has been measured enough. The interval is that of the summary; here is how long a run must have gone on for it
//! to be believed.

use model::estimate::Estimate;
use model::record::Sample;

/// The trials that a case has before it is asked whether it is settled. An interval of fewer is narrow by chance too often.
pub const LEAST_TRIALS: usize = 8;
/// How long a case is measured at least before it may end early. A shared host may stay in one state for ten seconds. A run that ends within a few such stays has not seen what the
/// host does: simulated, a case that may settle after ten seconds covers the truth in 64%. Readings that stay the same are no sign of
/// a quiet host, because it may be slow for as long.
pub const LEAST_SPAN_NS: u64 = 30_000_000_000;
/// What share of the width that is asked for an interval may have for a case to end early. What the rest of the run shows of the host widens
/// it, and the case has no further slices then.
const EARLY_SHARE: f64 = 0.8;

/// Whether the time that `estimate` gives for `samples` is known to within the fraction `precision`, by as many trials as an
/// interval needs. It is asked for the estimate only then. This is for a run that is over: its length was chosen beforehand.
pub fn is_settled(samples: &[Sample], precision: f64, estimate: impl FnOnce() -> Option<Estimate>) -> bool {
    trials(samples) >= LEAST_TRIALS && estimate().is_some_and(|estimate| is_narrow(estimate, precision))
}

/// Whether a case is settled and may end before the run does. To end when the interval happens to be narrow is to choose among intervals,
/// so that the run must have been long enough for that to be no matter.
pub fn ends_early(samples: &[Sample], precision: f64, estimate: impl FnOnce() -> Option<Estimate>) -> bool {
    span_ns(samples) >= LEAST_SPAN_NS && is_settled(samples, EARLY_SHARE * precision, estimate)
}

/// Whether the interval of `estimate` is as narrow as `precision` asks.
pub fn is_narrow(estimate: Estimate, precision: f64) -> bool {
    estimate.half_width().is_some_and(|half| half <= precision)
}

/// How many trials `samples` are of.
fn trials(samples: &[Sample]) -> usize {
    let mut trials: Vec<u32> = samples.iter().map(|sample| sample.trial).collect();
    trials.sort_unstable();
    trials.dedup();
    trials.len()
}

fn span_ns(samples: &[Sample]) -> u64 {
    let starts = || samples.iter().map(|sample| sample.started_ns);
    starts().max().unwrap_or(0) - starts().min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::testing::sample;

    #[test]
    fn a_case_is_settled_by_enough_trials_and_a_narrow_interval() {
        let of_trial = |trial| Sample { trial, ..sample(0, 100.0, None) };
        let samples = |trials: u32| (0..trials).map(of_trial).collect::<Vec<_>>();
        let known_to = |half: f64| {
            move || Some(Estimate { median: 100.0, interval: Some((100.0 - half, 100.0 + half)) })
        };
        assert!(is_settled(&samples(8), 0.02, known_to(2.0)));
        assert!(!is_settled(&samples(8), 0.02, known_to(2.1)));
        assert!(!is_settled(&samples(7), 0.02, known_to(2.0)));
        assert!(!is_settled(&samples(8), 0.02, || Some(Estimate { median: 100.0, interval: None })));
        // These were all taken at once.
        assert!(!ends_early(&samples(8), 0.02, known_to(1.0)));
        let over = |span_ns: u64| {
            let last = Sample { started_ns: span_ns, ..of_trial(8) };
            samples(8).into_iter().chain([last]).collect::<Vec<_>>()
        };
        assert!(!ends_early(&over(LEAST_SPAN_NS - 1), 0.02, known_to(1.0)));
        assert!(ends_early(&over(LEAST_SPAN_NS), 0.02, known_to(1.6)));
        assert!(!ends_early(&over(LEAST_SPAN_NS), 0.02, known_to(1.7)));
    }
}
