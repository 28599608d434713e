//! The one interval of a median of slices, for stopping and for reporting: slices of a trial resemble each other, and so do
//! trials that are near in time.
//!
//! The interval is distribution-free, as one of order statistics is: it holds every value q of which the slices do not refute
//! that half of all slices are below it, on any scale (Woodruff 1952 does so for samples taken in clusters). The share below q is a mean over
//! *sections*, which are trials or groups of successive trials, and is judged by a t test between sections (sectioning: Asmussen
//! and Glynn, *Stochastic Simulation*, III.5). What neighbouring sections have in common is estimated and allowed for. An interval around the median whose width
//! comes from the spread of the sections' medians covers much less where a host has two speeds: simulated, 82% where this has 95%.
//!
//! What a case takes in a run is in `run`.

use crate::stats::{self, student_quantile};
use model::estimate::Estimate;
use serde::Serialize;

/// With fewer trials the spread between them is a matter of chance.
pub const FEWEST_TRIALS: usize = 6;
/// More sections would hardly narrow the interval, and resemble their neighbours more.
const MOST_SECTIONS: usize = 16;
/// What an interval misses on each side.
pub(crate) const TAIL: f64 = 0.025;

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
        let MeanError { mean, variance, degrees } = MeanError::of(values);
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
    /// Of at least two values in the order of time, of which neighbours may have something in common.
    fn of(values: &[f64]) -> Self {
        Self::without(0, values)
    }

    /// The trimmed mean of one value a trial, in the order of time; `None` of fewer than [`FEWEST_TRIALS`]. A fifth of the values on each
    /// side counts as the next value does, so that trials that went wrong count little (Yuen 1974). Of many trials it is that of
    /// the medians of groups of successive ones.
    pub(crate) fn of_trials(values: &[f64]) -> Option<Self> {
        const LEAST_IN_SECTION: usize = 3;
        if values.len() < LEAST_IN_SECTION * MOST_SECTIONS {
            return (values.len() >= FEWEST_TRIALS).then(|| Self::trimmed(values));
        }
        let median = |section: Vec<&f64>| stats::median(&section.into_iter().copied().collect::<Vec<f64>>());
        let medians: Option<Vec<f64>> = sections(values, |_| false)?.into_iter().map(median).collect();
        medians.map(|medians| Self::trimmed(&medians))
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
        let likeness = Likeness::of(&drawn_in);
        let count = kept.len() as f64;
        let variance = stats::squares(&drawn_in) / (count - 1.0) / count * likeness.inflation;
        let degrees = ((count - 1.0) / likeness.inflation).max(2.0);
        Self { mean: stats::mean(kept), variance, degrees }
    }
}

/// The median of all values with its 95% interval, from the values of each trial in the order of time; `None` of no value.
/// There is no interval of fewer than [`FEWEST_TRIALS`].
pub fn median_over_trials(trials: &[Vec<f64>]) -> Option<Estimate> {
    let (estimate, drift) = median_and_drift(trials, TAIL)?;
    Some(drifting(estimate, drift))
}

/// The same of values that are all above 0, such as times: so are the bounds of their interval.
pub fn median_time_over_trials(trials: &[Vec<f64>]) -> Option<Estimate> {
    let (estimate, drift) = median_and_drift(trials, TAIL)?;
    Some(widened(estimate, drift / estimate.median))
}

/// `estimate` with an error that is not in its interval yet, `half` the width of the interval that this error has by itself.
fn drifting(estimate: Estimate, half: f64) -> Estimate {
    let median = estimate.median;
    let wider =
        |(low, high): (f64, f64)| (median - (median - low).hypot(half), median + (high - median).hypot(half));
    Estimate { median, interval: estimate.interval.map(wider) }
}

/// `estimate` of times with an error that is not in its interval yet; `half` is half the width of the interval that this error has by
/// itself, on logarithms.
fn widened(estimate: Estimate, half: f64) -> Estimate {
    /// A factor of 5e8: an interval as wide as that says nothing, and a wider one might have no end, which no file can hold.
    const WIDEST: f64 = 20.0;
    let half = half.min(WIDEST);
    let wider = |bound: f64| {
        let log = (bound / estimate.median).ln();
        estimate.median * log.hypot(half).copysign(log).exp()
    };
    // A bound that is the median itself is the lower or the upper one all the same.
    let interval = estimate.interval.map(|(low, high)| {
        (wider(low).min(estimate.median * (-half).exp()), wider(high).max(estimate.median * half.exp()))
    });
    Estimate { interval, ..estimate }
}

/// The median with the interval of a host that does not drift, which misses `tail` on each side, and what the median may be off by
/// because the host does.
fn median_and_drift(trials: &[Vec<f64>], tail: f64) -> Option<(Estimate, f64)> {
    let all: Vec<f64> = trials.iter().flatten().copied().collect();
    let median = stats::median(&all)?;
    let sections: Option<Vec<Vec<f64>>> = sections(trials, |trial| trial.is_empty()).map(|sections| {
        sections.iter().map(|section| section.iter().copied().flatten().copied().collect()).collect()
    });
    let interval = sections.as_deref().map(|sections| interval(median, sections, tail));
    Some((Estimate { median, interval }, sections.as_deref().map_or(0.0, slow_drift)))
}

/// As [`median_over_trials`], with the coverage `confidence`, as when several intervals are to hold together. The t test says too
/// little of the tails of few trials: so the interval also holds that of order statistics of the trials' medians, and is absent
/// where there are too few trials for that one.
pub fn median_over_trials_at_confidence(trials: &[Vec<f64>], confidence: f64) -> Option<Estimate> {
    let medians: Vec<f64> = trials.iter().filter_map(|trial| stats::median(trial)).collect();
    let by_order = stats::median_interval_at(&medians, confidence)?.interval;
    let (estimate, drift) = median_and_drift(trials, (1.0 - confidence) / 2.0)?;
    let Estimate { median, interval } = drifting(estimate, drift);
    let both = by_order.zip(interval);
    let interval = both.map(|((a, b), (c, d))| (a.min(c).min(median), b.max(d).max(median)));
    Some(Estimate { median, interval })
}

/// Trials, less those that are empty, in groups of successive ones; `None` where there are too few.
pub(crate) fn sections<T>(trials: &[T], is_empty: impl Fn(&T) -> bool) -> Option<Vec<Vec<&T>>> {
    let trials: Vec<&T> = trials.iter().filter(|trial| !is_empty(trial)).collect();
    let (n, count) = (trials.len(), trials.len().min(MOST_SECTIONS));
    (n >= FEWEST_TRIALS)
        .then(|| (0..count).map(|nth| trials[nth * n / count..(nth + 1) * n / count].to_vec()).collect())
}

/// All values of which it is not refuted that half of the values are below them.
fn interval(median: f64, sections: &[Vec<f64>], tail: f64) -> (f64, f64) {
    let count = sections.len() as f64;
    let total: f64 = sections.iter().map(|section| section.len() as f64).sum();
    let quantiles = TQuantiles::up_to(sections.len(), tail);
    let values = sections.iter().enumerate();
    let mut values: Vec<(f64, usize)> =
        values.flat_map(|(at, section)| section.iter().map(move |value| (*value, at))).collect();
    values.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));

    let mut at_most = vec![0.0; sections.len()];
    let mut excess = vec![0.0; sections.len()];
    let (mut low, mut high) = (median, median);
    for (nth, (value, at)) in values.iter().enumerate() {
        at_most[*at] += 1.0;
        let next = values.get(nth + 1).map_or(*value, |(next, _)| *next);
        if next <= *value {
            continue;
        }
        let share = (nth + 1) as f64 / total;
        for ((excess, at_most), section) in excess.iter_mut().zip(&at_most).zip(sections) {
            *excess = (at_most - section.len() as f64 * share) * count / total;
        }
        let likeness = Likeness::of(&excess);
        let squares: f64 = excess.iter().map(|excess| excess * excess).sum();
        let error = (squares / (count - 1.0) / count * likeness.inflation).sqrt();
        if (share - 0.5).abs() <= quantiles.at(likeness.degrees) * error {
            low = low.min(*value);
            high = high.max(next);
        }
    }
    (low, high)
}

/// What the median may be off by because the host drifts slowly: half the width of the interval that this error has by itself. The
/// Allan variance of sections, one by one, two together, four, …, is fitted as a part that falls with their number and a part
/// that does not. The second is what a longer run would go on to wander by.
fn slow_drift(sections: &[Vec<f64>]) -> f64 {
    /// Chosen with the help of real runs (`cargo xtask bench coverage`): three quarters of a normal interval, because a
    /// run goes on to wander by less than the longest time that it saw.
    const HALF: f64 = 1.5;
    let medians: Vec<f64> = sections.iter().filter_map(|section| stats::median(section)).collect();
    let together = std::iter::successors(Some(1), |count| Some(2 * count));
    let variances: Vec<AllanVariance> =
        together.map_while(|together| AllanVariance::of(&medians, together)).collect();
    HALF * lasting_part(&variances).sqrt()
}

/// The Allan variance of means of so many successive sections.
#[derive(Debug, Clone, Copy)]
struct AllanVariance {
    together: f64,
    differences: f64,
    variance: f64,
}

impl AllanVariance {
    /// `None` where there are not two means.
    fn of(medians: &[f64], together: usize) -> Option<Self> {
        let means: Vec<f64> = medians.chunks_exact(together).map(stats::mean).collect();
        let squares: Vec<f64> = means.windows(2).map(|pair| (pair[1] - pair[0]).powi(2) / 2.0).collect();
        let (together, differences) = (together as f64, squares.len() as f64);
        (!squares.is_empty()).then(|| Self { together, differences, variance: stats::mean(&squares) })
    }
}

/// The part of the variances that does not fall with the number of sections, by weighted least squares; not below 0.
fn lasting_part(variances: &[AllanVariance]) -> f64 {
    let sum = |of: fn(&AllanVariance) -> f64| -> f64 {
        // Its relative error is the same for all but for the number of differences, and its size falls with the number together.
        let weighted =
            |variance: &AllanVariance| variance.differences * variance.together.powi(2) * of(variance);
        variances.iter().map(weighted).sum()
    };
    let (ones, falls, squares) = (sum(|_| 1.0), sum(|v| 1.0 / v.together), sum(|v| v.together.powi(-2)));
    let (variance, product) = (sum(|v| v.variance), sum(|v| v.variance / v.together));
    let determinant = squares * ones - falls * falls;
    if determinant <= 0.0 {
        return 0.0;
    }
    let falling = product * ones - variance * falls;
    let lasting =
        if falling < 0.0 { variance / ones } else { (variance * squares - product * falls) / determinant };
    lasting.max(0.0)
}

/// What neighbouring sections have in common.
struct Likeness {
    /// By how much the variance of the mean exceeds that of independent sections.
    inflation: f64,
    /// The degrees of freedom of an estimate of that variance.
    degrees: f64,
}

impl Likeness {
    /// Of the deviations of sections in the order of time: those of an autoregressive process of the first order. Its
    /// coefficient is corrected for the bias of few sections (Kendall 1954), and ignored below half of its standard error.
    fn of(deviations: &[f64]) -> Self {
        let count = deviations.len() as f64;
        let mean = stats::mean(deviations);
        let squares: f64 = deviations.iter().map(|d| (d - mean).powi(2)).sum();
        let products: f64 = deviations.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
        let found = if squares > 0.0 { products / squares } else { 0.0 };
        let coefficient = if found > 0.5 / count.sqrt() { found + (1.0 + 3.0 * found) / count } else { 0.0 };
        let inflation = (1.0 + coefficient.min(0.9)) / (1.0 - coefficient.min(0.9));
        Self { inflation, degrees: ((count - 1.0) / inflation).max(2.0) }
    }
}

/// The t quantiles of the first degrees of freedom, which are asked for once for every value.
struct TQuantiles(Vec<f64>);

impl TQuantiles {
    fn up_to(degrees: usize, tail: f64) -> Self {
        Self((1..=degrees.max(2)).map(|degrees| student_quantile(tail, degrees as f64)).collect())
    }

    /// That of the next lower whole number, which is wider.
    fn at(&self, degrees: f64) -> f64 {
        self.0[(degrees as usize).clamp(1, self.0.len()) - 1]
    }
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
        assert!(MeanError::of_trials(&[1.0; 5]).is_none());
    }

    #[test]
    fn an_interval_has_an_end_whatever_times_drift_by() {
        // An endpoint that was stopped for a while: what times drift by is a million times their median.
        let estimate = Estimate { median: 100.0, interval: Some((99.0, 101.0)) };
        let (low, high) = widened(estimate, 1e6).interval.unwrap();
        assert!(low > 0.0 && high.is_finite(), "{low} {high}");
    }

    #[test]
    fn trials_of_one_slice_have_the_interval_of_order_statistics() {
        // Of eight to ten independent values the second from the least and from the greatest, of six and seven the first.
        for (n, low, high) in [(6, 0.0, 5.0), (9, 1.0, 7.0), (10, 1.0, 8.0)] {
            let scrambled: Vec<Vec<f64>> = (0..n).map(|i| vec![f64::from(i * 7 % n)]).collect();
            if n != 6 {
                let (estimate, _) = median_and_drift(&scrambled, TAIL).unwrap();
                assert_eq!(estimate.interval, Some((low, high)), "{n}");
            }
        }
        assert_eq!(median_over_trials(&vec![vec![1.0]; 5]).unwrap().interval, None);
        assert_eq!(median_over_trials(&[]), None);
        assert_eq!(median_over_trials(&vec![vec![1.0; 3]; 8]).unwrap().interval, Some((1.0, 1.0)));
    }

    #[test]
    fn slices_that_resemble_those_of_their_trial_count_once() {
        let value = |trial: u32, slice: u32| f64::from(trial * 7 % 10) + 0.001 * f64::from(slice);
        let of = |slices: u32| {
            let trials: Vec<Vec<f64>> =
                (0..10).map(|trial| (0..slices).map(|slice| value(trial, slice)).collect()).collect();
            let (low, high) = median_over_trials(&trials).unwrap().interval.unwrap();
            high - low
        };
        assert!(of(100) > 0.8 * of(1), "{} {}", of(100), of(1));
    }

    #[test]
    fn what_falls_with_the_number_of_sections_is_no_drift() {
        let of = |variance: fn(f64) -> f64| {
            let at = |together: f64| AllanVariance {
                together,
                differences: 16.0 / together - 1.0,
                variance: variance(together),
            };
            lasting_part(&[1.0, 2.0, 4.0, 8.0].map(at))
        };
        assert!(of(|together| 9.0 / together).abs() < 1e-12);
        assert!((of(|together| 9.0 / together + 4.0) - 4.0).abs() < 1e-9);
        // Rising variances are all drift.
        assert!(of(|together| together) > 1.0);
        assert_eq!(lasting_part(&[]), 0.0);
    }

    #[test]
    fn neighbours_that_are_alike_widen_the_interval() {
        let width = |order: fn(u32) -> u32| {
            let trials: Vec<Vec<f64>> = (0..64).map(|trial| vec![f64::from(order(trial))]).collect();
            let (low, high) = median_over_trials(&trials).unwrap().interval.unwrap();
            high - low
        };
        let (scrambled, waves) = (width(|n| n * 37 % 64), width(|n| (n / 16 * 37 + n) % 64));
        assert!(waves > 1.2 * scrambled, "{waves} {scrambled}");
    }

    #[test]
    fn a_higher_confidence_takes_more_trials_and_is_wider() {
        let trials: Vec<Vec<f64>> =
            (0..12).map(|n| vec![f64::from(n * 7 % 12), f64::from(n * 7 % 12) + 0.1]).collect();
        let at = |confidence| median_over_trials_at_confidence(&trials, confidence).unwrap().interval;
        let (low, high) = at(0.95).unwrap();
        let (lower, higher) = at(0.999).unwrap();
        assert!(lower < low && high < higher, "{low} {high} {lower} {higher}");
        assert_eq!(at(0.9999), None);
    }

    #[test]
    fn slices_of_few_trials_are_no_interval_of_many() {
        let five: Vec<Vec<f64>> = vec![vec![1.0; 100]; 5];
        assert_eq!(median_over_trials_at_confidence(&five, 0.95).unwrap().interval, None);
    }

    proptest! {
        #[test]
        fn the_median_lies_in_its_interval(
            trials in proptest::collection::vec(proptest::collection::vec(-1e3..1e3f64, 0..20), 0..30)
        ) {
            let Some(estimate) = median_over_trials(&trials) else { return Ok(()) };
            let filled = trials.iter().filter(|trial| !trial.is_empty()).count();
            prop_assert_eq!(estimate.interval.is_some(), filled >= FEWEST_TRIALS);
            if let Some((low, high)) = estimate.interval {
                prop_assert!(low <= estimate.median && estimate.median <= high);
            }
        }
    }
}
