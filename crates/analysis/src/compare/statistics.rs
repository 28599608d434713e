//! Shifts between two runs, on logarithms, with the intervals by which they are judged.

use super::result::{ComparisonOptions, ComparisonVerdict, Ratio};
use crate::stats::{self, student_quantile};
use model::record::Record;
use model::sample::Sample;

/// The fewest trials of a case, in each run, that allow a verdict.
pub const FEWEST_TRIALS: usize = 6;
/// The probability that any interval of a comparison misses what it should cover.
pub(super) const MISS: f64 = 0.05;
/// The chance of not finding the smallest difference that a comparison is said to find.
pub(super) const POWER_TAIL: f64 = 0.2;

/// How cautiously to judge.
#[derive(Clone, Copy)]
pub(super) struct Caution {
    /// Over how many cases the intervals hold together.
    pub(super) together: usize,
    pub(super) options: ComparisonOptions,
}

impl Caution {
    /// The variance of a shift between two runs by `quantities` that differ from run to run.
    pub(super) fn repeat_variance(self, quantities: f64) -> f64 {
        2.0 * quantities * self.options.repeatability.0.powi(2)
    }

    /// The probability on each side of a simultaneous interval.
    pub(super) fn tail(self) -> f64 {
        MISS / 2.0 / self.together.max(1) as f64
    }

    /// Whether a shift of `log` with an interval of half-width `half` lies within the margin.
    pub(super) fn within_margin(self, log: f64, half: f64) -> bool {
        log.abs() + half <= self.options.margin.0.ln_1p()
    }
}

/// The mean of a run's batches, on logarithms.
#[derive(Clone, Copy)]
struct BatchMean {
    mean: f64,
    variance: f64,
    degrees: f64,
}

impl BatchMean {
    /// Of at least [`FEWEST_TRIALS`] logarithms in time order.
    fn of(logs: &[f64]) -> Option<Self> {
        let n = logs.len();
        if n < FEWEST_TRIALS {
            return None;
        }
        let batches = (n / 4).clamp(3, 10);
        let medians: Option<Vec<f64>> = (0..batches)
            .map(|nth| stats::median(&logs[nth * n / batches..(nth + 1) * n / batches]))
            .collect();
        let medians = medians?;
        let degrees = (batches - 1) as f64;
        Some(Self {
            mean: stats::mean(&medians),
            variance: stats::squares(&medians) / degrees / batches as f64,
            degrees,
        })
    }
}

/// ln B − ln A, with its variance from the trials.
#[derive(Clone, Copy)]
pub(super) struct Shift {
    pub(super) log: f64,
    pub(super) variance: f64,
    /// The sum of squared variances, each over its degrees of freedom.
    pub(super) spread: f64,
}

impl Shift {
    /// Between the logarithms of two runs, in time order; `None` where either has too few.
    pub(super) fn between(a: &[f64], b: &[f64]) -> Option<Self> {
        let (a, b) = (BatchMean::of(a)?, BatchMean::of(b)?);
        Some(Self {
            log: b.mean - a.mean,
            variance: a.variance + b.variance,
            spread: a.variance.powi(2) / a.degrees + b.variance.powi(2) / b.degrees,
        })
    }

    /// Half the width of the interval that misses with `tail` on each side, with the variance
    /// `known` beside that of the trials.
    pub(super) fn half(self, known: f64, tail: f64) -> f64 {
        let variance = self.variance + known;
        student_quantile(tail, variance.powi(2) / self.spread) * variance.sqrt()
    }
}

/// A shift with the half-widths of the intervals by which it is judged.
#[derive(Clone, Copy)]
pub(super) struct ShiftEstimate {
    pub(super) shift: Shift,
    /// Of the simultaneous interval with repeatability.
    pub(super) half: f64,
    /// The same with the floor's repeatability too.
    pub(super) strict_half: f64,
    /// Of the case's own interval, from the trials alone.
    pub(super) own_half: f64,
}

impl ShiftEstimate {
    /// Of the logarithms of each run, in time order; `None` where either has too few.
    pub(super) fn of(a: &[f64], b: &[f64], caution: Caution) -> Option<Self> {
        let shift = Shift::between(a, b)?;
        Some(Self {
            shift,
            half: shift.half(caution.repeat_variance(1.0), caution.tail()),
            strict_half: shift.half(caution.repeat_variance(2.0), caution.tail()),
            own_half: shift.half(0.0, MISS / 2.0),
        })
    }

    /// Faster or slower, if the whole interval lies on one side of 1.
    pub(super) fn direction(self) -> Option<ComparisonVerdict> {
        direction(self.shift.log, self.half)
    }

    /// Whether this leaves room for `other`: both on one side of 1, or the shift of `other` in this interval.
    pub(super) fn allows(self, other: ShiftEstimate) -> bool {
        self.direction().is_some_and(|direction| other.direction() == Some(direction))
            || (self.shift.log - other.shift.log).abs() <= self.half
    }

    pub(super) fn ratio(self) -> Ratio {
        let ends = |half: f64| ((self.shift.log - half).exp(), (self.shift.log + half).exp());
        Ratio { ratio: self.shift.log.exp(), interval: ends(self.half), own_interval: ends(self.own_half) }
    }
}

/// Faster or slower, if an interval of half-width `half` around `log` lies on one side of 0.
pub(super) fn direction(log: f64, half: f64) -> Option<ComparisonVerdict> {
    match () {
        () if log - half > 0.0 => Some(ComparisonVerdict::Slower),
        () if log + half < 0.0 => Some(ComparisonVerdict::Faster),
        () => None,
    }
}

/// The logarithms of `samples` as multiples of `floor_ns`, in time order; without those that have no floor.
pub(super) fn logs(samples: &[Sample], floor_ns: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
    let mut timed: Vec<(u64, f64)> =
        samples.iter().filter_map(|s| Some((s.started_ns, (s.iteration_ns() / floor_ns(s)?).ln()))).collect();
    timed.sort_by_key(|(started_ns, _)| *started_ns);
    timed.into_iter().map(|(_, log)| log).collect()
}

/// The logarithms of the times of a record.
pub(super) fn times(record: &Record) -> Vec<f64> {
    logs(&record.samples, |_| Some(1.0))
}
