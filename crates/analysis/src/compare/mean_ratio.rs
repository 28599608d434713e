//! The mean log ratio of two cases measured interleaved, with its standard error: over all states of the host, or at full speed.
//!
//! Quadruples of one trial pair resemble each other, and neighbouring trial pairs may, so that the error comes from trial pairs.

use super::any_time::{errors_at_any_time, p_at_any_time};
use super::quadruples::QuadrupleRatio;
use super::statistics::POWER_TAIL;
use crate::stats::student_quantile;

/// The fewest trial pairs that allow a verdict.
pub const FEWEST_TRIAL_PAIRS: usize = 8;

/// A log ratio beyond which an interval says nothing: a ratio whose ends are numbers, so that programs can read them.
const WIDEST: f64 = 100.0;

/// The mean log ratio with its standard error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeanRatio {
    /// How many trial pairs it is of.
    pub(crate) pairs: f64,
    pub(crate) log: f64,
    error: f64,
    degrees: f64,
    /// Whether it is the ratio at full speed.
    pub(super) at_full_speed: bool,
}

/// The constant, the two differences of readings, and their two levels.
const TERMS: usize = 5;
const AS_FOUND: usize = 3;

type Terms = [f64; TERMS];

impl MeanRatio {
    /// Of the quadruples of each trial pair; `None` with fewer than [`FEWEST_TRIAL_PAIRS`].
    ///
    /// The log ratio is regressed on the differences of the speed readings, and, for the ratio at full speed, on their levels:
    /// where the host slows one side more than the other, the ratio over all states of the host varies with them. Of both, that
    /// with the narrower interval is taken. Quadruples beyond Tukey's fences, of which one slice was interrupted, are left out.
    /// Simulated, to leave out each quadruple in which a reading changed is worse on a host that wanders fast, and about the same
    /// elsewhere. Where readings never change, the result is that without them.
    pub(crate) fn from_pairs(pairs: &[Vec<QuadrupleRatio>]) -> Option<Self> {
        let pairs: Vec<&Vec<QuadrupleRatio>> = pairs.iter().filter(|pair| !pair.is_empty()).collect();
        if pairs.len() < FEWEST_TRIAL_PAIRS {
            return None;
        }
        let rows: Vec<Vec<(Terms, f64)>> =
            pairs.iter().map(|pair| pair.iter().map(|quadruple| row(*quadruple)).collect()).collect();
        let as_found = Self::regressed(&rows, AS_FOUND);
        let has_levels = rows.iter().flatten().any(|(terms, _)| terms[AS_FOUND..].iter().any(|x| *x != 0.0));
        let at_full_speed = has_levels.then(|| Self::regressed(&rows, TERMS));
        let narrower = |other: &Self| other.half(0.05) < as_found.half(0.05);
        Some(at_full_speed.filter(narrower).unwrap_or(as_found))
    }

    /// The constant of the regression on the first `terms` terms.
    fn regressed(rows: &[Vec<(Terms, f64)>], terms: usize) -> Self {
        let blocks = kept(rows, terms);
        let whole = blocks.iter().fold(Normal::default(), |sum, block| sum.plus(block, 1.0));
        let log = whole.solve(terms)[0];
        // What the result is without one trial pair, for each: the jackknife, which has the errors of all slopes in it.
        let n = blocks.len() as f64;
        let moved: Vec<f64> =
            blocks.iter().map(|block| log - whole.plus(block, -1.0).solve(terms)[0]).collect();
        let together = |lag: usize| moved.iter().zip(&moved[lag..]).map(|(a, b)| a * b).sum::<f64>();
        // Newey and West's estimator with a cube-root bandwidth, never less than the variance of independent trial pairs.
        let lags = n.cbrt().floor();
        let neighbours: f64 =
            (1..=lags as usize).map(|lag| 2.0 * (1.0 - lag as f64 / (lags + 1.0)) * together(lag)).sum();
        let variance = (n - 1.0) / n * (together(0) + neighbours.max(0.0));
        // Both levels take their part of what trial pairs can tell.
        let degrees = (degrees(n) - (terms - AS_FOUND) as f64).max(1.0);
        Self { pairs: n, log, error: variance.sqrt(), degrees, at_full_speed: terms == TERMS }
    }

    /// The probability that chance alone would ever lead so far from 0.
    pub(super) fn p(self) -> f64 {
        match self.error > 0.0 {
            true => p_at_any_time(self.log / self.error, self.degrees, self.pairs),
            false if self.log == 0.0 => 1.0,
            false => f64::MIN_POSITIVE,
        }
    }

    /// Half the width of the interval that misses with probability `miss` at any time at all, or [`WIDEST`].
    pub(crate) fn half(self, miss: f64) -> f64 {
        // Without an error an infinite number of them is none.
        (errors_at_any_time(miss, self.degrees, self.pairs).min(f64::MAX) * self.error).min(WIDEST)
    }

    /// The log ratio that the interval of `level` excludes from 0 with a chance of 80%.
    pub(super) fn finds(self, level: f64) -> f64 {
        self.half(level) + student_quantile(POWER_TAIL, self.degrees) * self.error
    }

    /// How many trial pairs find a log ratio of `log`, where one of these has an error that is `times` as large as it seems.
    pub(crate) fn needed_pairs(self, log: f64, times: f64, level: f64) -> u32 {
        let with = |pairs: u32| {
            let n = f64::from(pairs);
            Self {
                pairs: n,
                degrees: degrees(n),
                error: times * self.error * (self.pairs / n).sqrt(),
                ..self
            }
        };
        let more = std::iter::successors(Some(FEWEST_TRIAL_PAIRS as u32), |pairs| {
            pairs.checked_add(pairs.div_ceil(50))
        });
        more.into_iter().find(|pairs| with(*pairs).finds(level) <= log).unwrap_or(u32::MAX)
    }

    /// The degrees of freedom of its error.
    pub(super) fn degrees(self) -> f64 {
        self.degrees
    }
}

/// The degrees of freedom of the variance of Newey and West from `n` trial pairs with a cube-root bandwidth.
fn degrees(n: f64) -> f64 {
    (1.5 * n / (n.cbrt().floor() + 1.0)).min(n - 1.0)
}

fn row(quadruple: QuadrupleRatio) -> (Terms, f64) {
    let speed = quadruple.speed.unwrap_or_default();
    let terms = [1.0, speed.cpus_difference, speed.pair_difference, speed.cpus_level, speed.pair_level];
    (terms, quadruple.log_ratio)
}

/// The sums of each trial pair over its quadruples that lie within the fences: 1.5 interquartile ranges beyond the quartiles of
/// what the regression leaves.
fn kept(rows: &[Vec<(Terms, f64)>], terms: usize) -> Vec<Normal> {
    let sums = |rows: &[(Terms, f64)], keep: &dyn Fn(&(Terms, f64)) -> bool| {
        rows.iter().filter(|row| keep(row)).fold(Normal::default(), |sum, row| sum.with(row))
    };
    let mut blocks: Vec<Normal> = rows.iter().map(|rows| sums(rows, &|_| true)).collect();
    for _ in 0..2 {
        let solution = blocks.iter().fold(Normal::default(), |sum, block| sum.plus(block, 1.0)).solve(terms);
        let rest =
            |(x, y): &(Terms, f64)| y - x.iter().zip(&solution).map(|(x, slope)| x * slope).sum::<f64>();
        let mut all: Vec<f64> = rows.iter().flatten().map(rest).collect();
        all.sort_unstable_by(f64::total_cmp);
        let (low, high) = (all[all.len() / 4], all[all.len() * 3 / 4]);
        let reach = 1.5 * (high - low);
        let within = |row: &(Terms, f64)| (low - reach..=high + reach).contains(&rest(row));
        blocks = rows.iter().map(|rows| sums(rows, &within)).collect();
    }
    blocks
}

/// The normal equations of a regression by least squares, as sums over rows, so that rows can be taken out again.
#[derive(Debug, Clone, Copy, Default)]
struct Normal {
    products: [Terms; TERMS],
    right: Terms,
}

impl Normal {
    fn with(mut self, (x, y): &(Terms, f64)) -> Self {
        for (at, one) in x.iter().enumerate() {
            self.right[at] += one * y;
            x.iter().zip(&mut self.products[at]).for_each(|(other, sum)| *sum += one * other);
        }
        self
    }

    fn plus(mut self, other: &Self, times: f64) -> Self {
        for at in 0..TERMS {
            self.right[at] += times * other.right[at];
            self.products[at]
                .iter_mut()
                .zip(&other.products[at])
                .for_each(|(sum, more)| *sum += times * more);
        }
        self
    }

    /// The constant and the slopes of the first `terms` terms, by Gauss-Jordan elimination. A term that varies no more than
    /// rounding does beside those before it has a slope of 0.
    fn solve(&self, terms: usize) -> Terms {
        let (mut products, mut right) = (self.products, self.right);
        let mut is_used = [false; TERMS];
        for pivot in 0..terms {
            if products[pivot][pivot] <= 1e-9 * self.products[pivot][pivot] || products[pivot][pivot] <= 0.0 {
                continue;
            }
            is_used[pivot] = true;
            for at in (0..terms).filter(|at| *at != pivot) {
                let times = products[at][pivot] / products[pivot][pivot];
                right[at] -= times * right[pivot];
                let row = products[pivot];
                products[at].iter_mut().zip(row).for_each(|(sum, of_pivot)| *sum -= times * of_pivot);
            }
        }
        let mut solution = [0.0; TERMS];
        for at in (0..terms).filter(|at| is_used[*at]) {
            solution[at] = right[at] / products[at][at];
        }
        solution
    }
}

#[cfg(test)]
mod tests {
    use super::super::quadruples::QuadrupleSpeed;
    use super::*;

    /// Nine trial pairs of ten quadruples of a ratio of 1.1, of which the host's slowness takes a part by these slopes.
    fn pairs(difference_slope: f64, level_slope: f64) -> Vec<Vec<QuadrupleRatio>> {
        let quadruple = |nth: u32| {
            let cpus_level = if nth.is_multiple_of(3) { 0.4 } else { 0.0 };
            let cpus_difference = 0.1 * (f64::from(nth * 7 % 10) - 4.5);
            let ripple = 1e-6 * (f64::from(nth * 11 % 7) - 3.0);
            let speed = QuadrupleSpeed { cpus_difference, cpus_level, ..QuadrupleSpeed::default() };
            let log_ratio = 0.1 + difference_slope * cpus_difference + level_slope * cpus_level + ripple;
            QuadrupleRatio { log_ratio, speed: Some(speed) }
        };
        (0..9).map(|pair| (0..10).map(|nth| quadruple(10 * pair + nth)).collect()).collect()
    }

    #[test]
    fn what_the_readings_explain_is_taken_out() {
        let both = MeanRatio::from_pairs(&pairs(0.6, -0.2)).unwrap();
        assert!((both.log - 0.1).abs() < 1e-5 && both.half(0.05) < 1e-4 && both.at_full_speed, "{both:?}");
        let difference = MeanRatio::from_pairs(&pairs(0.6, 0.0)).unwrap();
        assert!((difference.log - 0.1).abs() < 1e-5 && difference.half(0.05) < 1e-4, "{difference:?}");
    }

    #[test]
    fn readings_that_never_change_are_as_none() {
        let with = |speed: Option<QuadrupleSpeed>| {
            let pairs: Vec<Vec<QuadrupleRatio>> = pairs(0.0, 0.1)
                .into_iter()
                .map(|pair| pair.into_iter().map(|quadruple| QuadrupleRatio { speed, ..quadruple }).collect())
                .collect();
            let mean = MeanRatio::from_pairs(&pairs).unwrap();
            (mean.log, mean.half(0.05), mean.at_full_speed)
        };
        assert_eq!(with(None), with(Some(QuadrupleSpeed::default())));
    }

    #[test]
    fn an_interrupted_slice_counts_for_nothing_and_too_few_trial_pairs_for_no_mean() {
        let mut pairs = pairs(0.6, 0.0);
        let clean = MeanRatio::from_pairs(&pairs).unwrap().log;
        pairs[3][4].log_ratio += 5.0;
        assert!((MeanRatio::from_pairs(&pairs).unwrap().log - clean).abs() < 1e-6);
        assert!(MeanRatio::from_pairs(&pairs[..7]).is_none());
        assert!(MeanRatio::from_pairs(&[]).is_none());
        pairs.truncate(7);
        pairs.push(Vec::new());
        assert!(MeanRatio::from_pairs(&pairs).is_none(), "an empty trial pair is none");
    }
}
