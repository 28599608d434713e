//! Means over trials, with their errors: trials that are near in time resemble each other.
//!
//! What a case takes in a run is in `run`. Here is what a model of times does not know: CPU time, counts, ratios of slices to their floors,
//! differences of pairs.

use crate::stats::{self, student_quantile};
use model::estimate::Estimate;
use serde::Serialize;

/// With fewer trials the spread between them is a matter of chance.
pub const FEWEST_TRIALS: usize = 6;
/// More sections would hardly narrow the interval, and resemble their neighbours more.
const MOST_SECTIONS: usize = 16;
/// With how much confidence an interval that is shown holds its number.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// What it misses on each side.
pub(crate) const TAIL: f64 = (1.0 - CONFIDENCE) / 2.0;

/// A mean and its 95% interval over trials. Means add up, as medians do not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanEstimate {
    /// The mean.
    pub mean: f64,
    /// The interval, low and high; absent with fewer than six trials.
    pub interval: Option<(f64, f64)>,
}

impl MeanEstimate {
    /// Its interval lies above `bound`.
    pub fn is_above(self, bound: f64) -> bool {
        self.interval.is_some_and(|(low, _)| low > bound)
    }

    /// The same of another unit: `change` keeps the order of values.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        let interval = self.interval.map(|(low, high)| (change(low), change(high)));
        Self { mean: change(self.mean), interval }
    }

    /// Half of the width of its interval.
    pub fn half_width(self) -> Option<f64> {
        self.interval.map(|(low, high)| (high - low) / 2.0)
    }

    /// Its interval lies on one side of 0.
    pub fn is_sure(self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// The mean of one value a trial, in the order of time, with an interval by t that allows for what neighbouring trials have in
/// common; `None` of no value.
pub fn mean_over_trials(values: &[f64]) -> Option<MeanEstimate> {
    if values.is_empty() {
        return None;
    }
    let interval = (values.len() >= FEWEST_TRIALS).then(|| {
        let MeanError { mean, variance, degrees } = MeanError::from_values(values);
        let half = student_quantile(TAIL, degrees) * variance.sqrt();
        (mean - half, mean + half)
    });
    Some(MeanEstimate { mean: stats::mean(values), interval })
}

/// A mean with the variance of its error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeanError {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
    /// The degrees of freedom of `variance`.
    pub(crate) degrees: f64,
}

impl MeanError {
    /// The sum of independent ones, with the degrees of freedom of Welch and Satterthwaite.
    pub(crate) fn of_sum(parts: impl IntoIterator<Item = Self>) -> Self {
        let (mut mean, mut variance, mut worth, mut least) = (0.0, 0.0, 0.0, f64::INFINITY);
        for part in parts {
            mean += part.mean;
            variance += part.variance;
            worth += part.variance * part.variance / part.degrees;
            least = part.degrees.min(least);
        }
        let degrees = if worth > 0.0 { variance * variance / worth } else { least };
        Self { mean, variance, degrees }
    }

    /// Of at least two values in the order of time, of which neighbours may have something in common.
    fn from_values(values: &[f64]) -> Self {
        Self::without(0, values)
    }

    /// The trimmed mean of one value a trial, in the order of time; `None` of fewer than two. A fifth of the values on each side counts as
    /// the next value does, so that trials that went wrong count little (Yuen 1974). Of many trials it is that of the medians of
    /// groups of successive ones (sectioning: Asmussen and Glynn, *Stochastic Simulation*, III.5).
    pub(crate) fn of_trials(values: &[f64]) -> Option<Self> {
        const LEAST_IN_SECTION: usize = 3;
        if values.len() < LEAST_IN_SECTION * MOST_SECTIONS {
            return (values.len() >= 2).then(|| Self::trimmed(values));
        }
        let (n, count) = (values.len(), MOST_SECTIONS);
        let section = |nth| stats::median(&values[nth * n / count..(nth + 1) * n / count]);
        (0..count).map(section).collect::<Option<Vec<f64>>>().map(|medians| Self::trimmed(&medians))
    }

    fn trimmed(values: &[f64]) -> Self {
        Self::without(values.len() / 5, values)
    }

    /// With the `off` least and the `off` greatest of `values` drawn in to the next.
    fn without(off: usize, values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let kept = &sorted[off..sorted.len() - off];
        let (low, high) = (kept[0], kept[kept.len() - 1]);
        let drawn_in: Vec<f64> = values.iter().map(|value| value.max(low).min(high)).collect();
        let inflation = inflation(&drawn_in);
        let count = kept.len() as f64;
        let variance = stats::squares(&drawn_in) / (count - 1.0) / count * inflation;
        let degrees = ((count - 1.0) / inflation).max(2.0).min(count - 1.0);
        Self { mean: stats::mean(kept), variance, degrees }
    }
}

/// The trimmed mean of one value a trial, in the order of time, with an interval that holds it with `confidence`; `None` of no value, and no
/// interval of one.
pub(crate) fn over_trials(values: &[f64], confidence: f64) -> Option<Estimate> {
    let Some(error) = MeanError::of_trials(values) else {
        return values.first().map(|only| Estimate { median: *only, interval: None });
    };
    let half = student_quantile((1.0 - confidence) / 2.0, error.degrees) * error.variance.sqrt();
    let interval = half.is_finite().then_some((error.mean - half, error.mean + half));
    Some(Estimate { median: error.mean, interval })
}

/// The same of values above 0, by their logarithms: so are the bounds of the interval.
pub(crate) fn ratio_over_trials(values: &[f64], confidence: f64) -> Option<Estimate> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).filter(|log| log.is_finite()).collect();
    over_trials(&logs, confidence).map(|logs| logs.map(f64::exp))
}

/// By how much the variance of the mean of `values` exceeds that of independent ones, taken as those of an autoregressive process of the
/// first order. Its coefficient is corrected for the bias of few values (Kendall 1954), and ignored below half of its standard error.
fn inflation(values: &[f64]) -> f64 {
    const MOST: f64 = 0.9;
    let count = values.len() as f64;
    let mean = stats::mean(values);
    let squares = stats::squares(values);
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let found = if squares > 0.0 { products / squares } else { 0.0 };
    let coefficient = if found > 0.5 / count.sqrt() { found + (1.0 + 3.0 * found) / count } else { 0.0 };
    (1.0 + coefficient.min(MOST)) / (1.0 - coefficient.min(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn trials_that_went_wrong_count_little_and_those_without_a_time_are_no_panic() {
        let mut trials: Vec<f64> = (0..20).map(|nth| f64::from(nth * 7 % 5)).collect();
        let before = MeanError::of_trials(&trials).unwrap();
        (trials[3], trials[11]) = (1e6, 1e7);
        let after = MeanError::of_trials(&trials).unwrap();
        assert!((after.mean - before.mean).abs() < 0.5 && after.variance < 1.0, "{before:?} {after:?}");
        // A file from elsewhere may have iterations that took no time, and a floor that did not either.
        assert!(MeanError::of_trials(&[f64::NAN; 8]).unwrap().mean.is_nan());
        assert!(MeanError::of_trials(&[1.0]).is_none());
    }

    #[test]
    fn a_mean_is_known_better_by_more_trials_and_less_surely_at_a_higher_confidence() {
        let width = |trials: u32, confidence| {
            let values: Vec<f64> = (0..trials).map(|nth| f64::from(nth * 7 % 10)).collect();
            let (low, high) = over_trials(&values, confidence).unwrap().interval.unwrap();
            high - low
        };
        assert!(width(40, 0.95) < 0.6 * width(10, 0.95));
        assert!(width(10, 0.999) > 1.5 * width(10, 0.95));
        // Of two trials nearly nothing is known, of one nothing.
        assert!(width(2, 0.95) > 10.0 * width(10, 0.95));
        assert_eq!(over_trials(&[1.0], 0.95), Some(Estimate { median: 1.0, interval: None }));
        assert_eq!(over_trials(&[], 0.95), None);
        assert_eq!(over_trials(&[1.0; 8], 0.95).unwrap().interval, Some((1.0, 1.0)));
    }

    #[test]
    fn neighbours_that_are_alike_widen_the_interval() {
        let width = |order: fn(u32) -> u32| {
            let values: Vec<f64> = (0..64).map(|trial| f64::from(order(trial))).collect();
            let (low, high) = over_trials(&values, 0.95).unwrap().interval.unwrap();
            high - low
        };
        let (scrambled, waves) = (width(|n| n * 37 % 64), width(|n| (n / 16 * 37 + n) % 64));
        assert!(waves > 1.2 * scrambled, "{waves} {scrambled}");
    }

    #[test]
    fn errors_of_independent_parts_add_up() {
        let part = |variance, degrees| MeanError { mean: 2.0, variance, degrees };
        let sum = MeanError::of_sum([part(3.0, 9.0), part(3.0, 9.0)]);
        assert_eq!((sum.mean, sum.variance, sum.degrees), (4.0, 6.0, 18.0));
        assert_eq!(MeanError::of_sum([part(0.0, 7.0)]).degrees, 7.0);
    }

    proptest! {
        #[test]
        fn the_mean_lies_in_its_interval(values in proptest::collection::vec(-1e3..1e3f64, 2..80)) {
            let estimate = over_trials(&values, 0.95).unwrap();
            let (low, high) = estimate.interval.unwrap();
            prop_assert!(low <= estimate.median && estimate.median <= high);
        }
    }
}
