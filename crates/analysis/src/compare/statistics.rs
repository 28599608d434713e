//! Shifts between the runs of two sides, on logarithms, with the intervals by which they are judged.

use super::options::ComparisonOptions;
use super::result::{ComparisonVerdict, Ratio};
use super::run_variance::RunVariance;
use crate::interval::MeanError;
use crate::stats::{self, student_quantile, student_tail};

/// The fewest trials of a case, in each run, that allow a verdict.
pub const FEWEST_TRIALS: usize = 6;
/// The probability that the interval of a case alone misses what it should cover.
pub(super) const MISS: f64 = 0.05;
/// The chance of not finding the smallest difference that a comparison is said to find.
pub(super) const POWER_TAIL: f64 = 0.2;

/// How cautiously to judge one case.
#[derive(Clone, Copy)]
pub(super) struct Caution {
    /// The probability that the interval by which the case is called different misses, from `discoveries`.
    pub(super) level: f64,
    /// How times differ from run to run, and how multiples of a floor do.
    pub(super) times: RunVariance,
    pub(super) multiples: RunVariance,
    pub(super) options: ComparisonOptions,
}

impl Caution {
    /// Whether a shift of `log` with an interval of half-width `half` lies within the margin.
    pub(super) fn within_margin(self, log: f64, half: f64) -> bool {
        log.abs() + half <= self.options.margin.0.ln_1p()
    }
}

/// The runs of one side: the mean of their means.
#[derive(Clone, Copy)]
struct SideMean {
    mean: f64,
    variance: f64,
    spread: f64,
    runs: f64,
    replicates: Replicates,
}

/// What several runs of one side say of the variance between runs.
#[derive(Clone, Copy, Default)]
pub(super) struct Replicates {
    /// The squared distances of the runs' means from the mean of their side.
    pub(super) squares: f64,
    /// What the variance within runs adds to them.
    pub(super) within: f64,
    /// How many runs there are beyond the first of each side.
    pub(super) degrees: f64,
}

impl std::ops::Add for Replicates {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            squares: self.squares + other.squares,
            within: self.within + other.within,
            degrees: self.degrees + other.degrees,
        }
    }
}

impl SideMean {
    /// Of what each run says; `None` of no run.
    fn from_runs(runs: &[MeanError]) -> Option<Self> {
        let count = runs.len() as f64;
        let sum = |of: &dyn Fn(&MeanError) -> f64| runs.iter().map(of).sum::<f64>();
        let means: Vec<f64> = runs.iter().map(|run| run.mean).collect();
        let within = sum(&|run| run.variance);
        (!runs.is_empty()).then(|| Self {
            mean: stats::mean(&means),
            variance: within / count.powi(2),
            spread: sum(&|run| (run.variance / count.powi(2)).powi(2) / run.degrees),
            runs: count,
            replicates: Replicates {
                squares: stats::squares(&means),
                within: within * (1.0 - 1.0 / count),
                degrees: count - 1.0,
            },
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
    /// How much of the variance between runs it has: 2 where each side has one run.
    pub(super) run_share: f64,
    pub(super) replicates: Replicates,
}

impl Shift {
    /// Between the logarithms of the runs of two sides, each in time order; `None` where a side has too few.
    pub(super) fn between_trials(a: &[Vec<f64>], b: &[Vec<f64>]) -> Option<Self> {
        let means = |runs: &[Vec<f64>]| -> Vec<MeanError> {
            runs.iter().filter_map(|logs| MeanError::of_trials(logs)).collect()
        };
        Self::between(&means(a), &means(b))
    }

    /// Between what the runs of two sides say; `None` where no run of a side does.
    pub(super) fn between(a: &[MeanError], b: &[MeanError]) -> Option<Self> {
        let (a, b) = (SideMean::from_runs(a)?, SideMean::from_runs(b)?);
        Some(Self {
            log: b.mean - a.mean,
            variance: a.variance + b.variance,
            spread: a.spread + b.spread,
            run_share: 1.0 / a.runs + 1.0 / b.runs,
            replicates: a.replicates + b.replicates,
        })
    }

    /// Its variance with that between runs in it, and the degrees of freedom by Welch and Satterthwaite.
    fn with_runs(self, runs: RunVariance) -> (f64, f64) {
        let between = runs.variance * self.run_share;
        let variance = self.variance + between;
        (variance, variance.powi(2) / (self.spread + between.powi(2) / runs.degrees))
    }

    /// Half the width of the interval that misses with `tail` on each side.
    pub(super) fn half(self, runs: RunVariance, tail: f64) -> f64 {
        let (variance, degrees) = self.with_runs(runs);
        student_quantile(tail, degrees) * variance.sqrt()
    }

    /// The probability of a shift so far from 0 by chance.
    pub(super) fn p(self, runs: RunVariance) -> f64 {
        let (variance, degrees) = self.with_runs(runs);
        match variance > 0.0 {
            true => 2.0 * student_tail(self.log.abs() / variance.sqrt(), degrees),
            false if self.log == 0.0 => 1.0,
            false => f64::MIN_POSITIVE,
        }
    }

    /// With the intervals by which a verdict is given.
    pub(super) fn estimate(self, runs: RunVariance, caution: Caution) -> ShiftEstimate {
        ShiftEstimate {
            shift: self,
            half: self.half(runs, caution.level / 2.0),
            strict_half: self.half(runs.doubled(), caution.level / 2.0),
            own_half: self.half(runs, MISS / 2.0),
            finds: self.half(runs, caution.level / 2.0) + self.half(runs, POWER_TAIL),
        }
    }
}

/// A shift with the half-widths of the intervals by which it is judged.
#[derive(Clone, Copy)]
pub(super) struct ShiftEstimate {
    pub(super) shift: Shift,
    /// Of the interval by which the case is called different.
    pub(super) half: f64,
    /// The same with the floor's own variance between runs too.
    pub(super) strict_half: f64,
    /// Of the 95% interval of the case alone.
    pub(super) own_half: f64,
    /// The shift that is found with a chance of 80%.
    pub(super) finds: f64,
}

impl ShiftEstimate {
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
