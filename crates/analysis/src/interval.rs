//! The one interval of a median of slices, for stopping and for reporting: slices of a trial resemble each other, and so do
//! trials that are near in time.
//!
//! The interval is distribution-free, as one of order statistics is: it holds every value q of which the slices do not refute
//! that half of all slices are below it, on any scale (Woodruff 1952 does so for samples taken in clusters). The share below q is a mean over
//! *sections*, which are trials or groups of successive trials, and is judged by a t test between sections (sectioning: Asmussen
//! and Glynn, *Stochastic Simulation*, III.5). What neighbouring sections have in common is estimated and allowed for. An interval around the median whose width
//! comes from the spread of the sections' medians covers much less where a host has two speeds: simulated, 82% where this has 95%.
//!
//! Which slices are taken is said in `host_view`.

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
    let mean = stats::mean(values);
    let interval = (values.len() >= FEWEST_TRIALS).then(|| {
        let likeness = Likeness::of(values);
        let error = (stats::squares(values) / (values.len() as f64 - 1.0) / values.len() as f64
            * likeness.inflation)
            .sqrt();
        let half = student_quantile(TAIL, likeness.degrees) * error;
        (mean - half, mean + half)
    });
    Some(MeanEstimate { mean, interval })
}

/// The median of all values with its 95% interval, from the values of each trial in the order of time; `None` of no value.
/// There is no interval of fewer than [`FEWEST_TRIALS`].
pub fn median_over_trials(trials: &[Vec<f64>]) -> Option<Estimate> {
    let all: Vec<f64> = trials.iter().flatten().copied().collect();
    let median = stats::median(&all)?;
    let interval = sections(trials, |trial| trial.is_empty()).map(|sections| {
        let sections: Vec<Vec<f64>> =
            sections.iter().map(|section| section.iter().copied().flatten().copied().collect()).collect();
        interval(median, &sections)
    });
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
fn interval(median: f64, sections: &[Vec<f64>]) -> (f64, f64) {
    let count = sections.len() as f64;
    let total: f64 = sections.iter().map(|section| section.len() as f64).sum();
    let quantiles = TQuantiles::up_to(sections.len());
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
    fn up_to(degrees: usize) -> Self {
        Self((1..=degrees.max(2)).map(|degrees| student_quantile(TAIL, degrees as f64)).collect())
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
    fn trials_of_one_slice_have_the_interval_of_order_statistics() {
        // Of eight to ten independent values the second from the least and from the greatest, of six and seven the first.
        for (n, low, high) in [(6, 0.0, 5.0), (9, 1.0, 7.0), (10, 1.0, 8.0)] {
            let scrambled: Vec<Vec<f64>> = (0..n).map(|i| vec![f64::from(i * 7 % n)]).collect();
            if n != 6 {
                assert_eq!(median_over_trials(&scrambled).unwrap().interval, Some((low, high)), "{n}");
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
    fn neighbours_that_are_alike_widen_the_interval() {
        let width = |order: fn(u32) -> u32| {
            let trials: Vec<Vec<f64>> = (0..64).map(|trial| vec![f64::from(order(trial))]).collect();
            let (low, high) = median_over_trials(&trials).unwrap().interval.unwrap();
            high - low
        };
        let (scrambled, waves) = (width(|n| n * 37 % 64), width(|n| (n / 16 * 37 + n) % 64));
        assert!(waves > 1.2 * scrambled, "{waves} {scrambled}");
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
