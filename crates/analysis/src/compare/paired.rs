//! Two cases that one run measured interleaved: the verdict on each pair, and how long one will take.
//!
//! Both sides of a quadruple had the same host within milliseconds, so that no floor is needed.

use super::any_time::{p_at_any_time, tail_at_any_time};
use super::discoveries::levels;
use super::quadruples::{adjusted, midmean, quadruples};
use super::result::{ComparisonOptions, ComparisonVerdict};
use super::statistics::{MISS, POWER_TAIL};
use crate::stats::{self, student_quantile};
use model::estimate::Estimate;
use model::sample::Sample;
use model::units::Percent;
use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// The fewest trial pairs that allow a verdict.
pub const FEWEST_TRIAL_PAIRS: usize = 8;

/// Two cases measured interleaved in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedRatios {
    /// What is compared, such as `pipe against unix-stream, latency 64`.
    pub name: String,
    /// The mechanism, of which one run may compare several cases.
    pub mechanism: String,
    /// ln B − ln A of every quadruple, by trial pair, in order.
    pub log_ratios: Vec<Vec<f64>>,
}

impl PairedRatios {
    /// Of the slices of both sides: [`Sample::trial`] is the number of the trial pair, [`Sample::round`] that of the quadruple. What
    /// speed readings explain of a quadruple is taken out.
    pub fn of(name: String, mechanism: String, a: &[Sample], b: &[Sample]) -> Self {
        Self { name, mechanism, log_ratios: adjusted(&quadruples(a, b)) }
    }
}

/// The comparison of two cases measured interleaved.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PairedComparison {
    /// What is compared.
    pub name: String,
    /// How many pairs of trials there were.
    pub trial_pairs: u32,
    /// How many quadruples of slices.
    pub quadruples: u32,
    /// B's time over A's, with the interval by which it is called different; absent with too few trial pairs.
    pub ratio: Option<Estimate>,
    /// Its 95% interval by which no difference is found.
    pub own_interval: Option<(f64, f64)>,
    /// The smallest difference that this comparison finds with a chance of 80%.
    pub finds: Option<Percent>,
    /// What follows.
    pub verdict: ComparisonVerdict,
    /// Why it cannot be told.
    pub reason: Option<String>,
}

/// What a pilot says of how long a comparison takes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlannedComparison {
    /// What is compared.
    pub name: String,
    /// How many trial pairs the pilot had.
    pub trial_pairs: u32,
    /// How many find the difference asked for with a chance of 80%; absent where the pilot had too few to tell.
    pub needs_trial_pairs: Option<u32>,
    /// The same if the pilot was lucky: with the variance at the upper end of its one-sided 90% interval.
    pub needs_at_most: Option<u32>,
    /// How long `needs_trial_pairs` take of this pair alone, in nanoseconds.
    pub time_ns: Option<f64>,
    /// How long `needs_at_most` take, in nanoseconds.
    pub time_at_most_ns: Option<f64>,
}

/// The mean log ratio of a pair's trial pairs, with its standard error.
#[derive(Debug, Clone, Copy)]
struct MeanRatio {
    blocks: f64,
    log: f64,
    error: f64,
    degrees: f64,
}

impl MeanRatio {
    /// Each trial pair counts as the mean of the middle half of its quadruples, so that quadruples of one trial pair, which
    /// resemble each other, are one observation. What neighbouring trial pairs have in common is in the error: the variance of the
    /// mean by Newey and West's estimator with a cube-root bandwidth, never less than that of independent trial pairs.
    fn of(log_ratios: &[Vec<f64>]) -> Option<Self> {
        let counts: Vec<f64> = log_ratios.iter().map(|pair| pair.len() as f64).collect();
        // A trial pair that was cut off, such as the last, would count as much as a whole one.
        let whole = stats::median(&counts)? / 2.0;
        let blocks: Vec<f64> = log_ratios
            .iter()
            .filter(|pair| pair.len() as f64 >= whole)
            .filter_map(|pair| midmean(pair))
            .collect();
        if blocks.len() < FEWEST_TRIAL_PAIRS {
            return None;
        }
        let n = blocks.len() as f64;
        let mean = stats::mean(&blocks);
        let lags = n.cbrt().floor();
        let covariance = |lag: usize| {
            blocks.iter().zip(&blocks[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / (n - 1.0)
        };
        let with_neighbours: f64 =
            (1..=lags as usize).map(|lag| 2.0 * (1.0 - lag as f64 / (lags + 1.0)) * covariance(lag)).sum();
        let variance = covariance(0) + with_neighbours.max(0.0);
        Some(Self {
            blocks: n,
            log: mean,
            error: (variance / n).sqrt(),
            degrees: (1.5 * n / (lags + 1.0)).min(n - 1.0),
        })
    }

    fn p(self) -> f64 {
        match self.error > 0.0 {
            true => p_at_any_time(self.log / self.error, self.degrees, self.blocks),
            false if self.log == 0.0 => 1.0,
            false => f64::MIN_POSITIVE,
        }
    }

    /// Half the width of the interval that holds at any time.
    fn half(self, miss: f64) -> f64 {
        student_quantile(tail_at_any_time(miss, self.blocks), self.degrees) * self.error
    }

    /// The log ratio that an interval of `level` excludes from 0 with a chance of 80%.
    fn finds(self, level: f64) -> f64 {
        self.half(level) + student_quantile(POWER_TAIL, self.degrees) * self.error
    }

    /// The trial pairs with which it would find a log ratio of `log`, its error being `times` that of the pilot.
    fn needed_blocks(self, log: f64, times: f64, level: f64) -> u32 {
        let with = |blocks: u32| {
            let n = f64::from(blocks);
            let degrees = (1.5 * n / (n.cbrt().floor() + 1.0)).min(n - 1.0);
            Self { blocks: n, degrees, error: times * self.error * (self.blocks / n).sqrt(), ..self }
        };
        let fewest = FEWEST_TRIAL_PAIRS as u32;
        let more = std::iter::successors(Some(fewest), |blocks| blocks.checked_add(blocks.div_ceil(50)));
        let mut enough = more.into_iter().filter(|blocks| with(*blocks).finds(level) <= log);
        enough.next().unwrap_or(u32::MAX)
    }
}

/// Compares two mechanisms, in one or more cases, that one run measured interleaved.
///
/// The intervals hold at whatever time the run stopped, also because of them. Which pairs are called different is decided so that
/// of those called at most the share [`ComparisonOptions::false_discoveries`] is false, over mechanisms and their cases.
pub fn compare_paired(pairs: &[PairedRatios], options: ComparisonOptions) -> Vec<PairedComparison> {
    let means: Vec<Option<MeanRatio>> = pairs.iter().map(|pair| MeanRatio::of(&pair.log_ratios)).collect();
    let cases: Vec<(&str, Option<f64>)> = pairs
        .iter()
        .zip(&means)
        .map(|(pair, mean)| (pair.mechanism.as_str(), mean.map(MeanRatio::p)))
        .collect();
    let levels = levels(&cases, options.false_discoveries.0);
    let judged = pairs.iter().zip(means).zip(levels);
    judged.map(|((pair, mean), level)| judge_paired(pair, mean, level, options)).collect()
}

/// Whether the verdict on a pair is reached, whatever the other pairs of the run turn out to be: its interval excludes 0 at the least
/// level that it can be judged by, or lies within the margin. `among` is how many mechanisms the run compares times the cases of
/// the pair's mechanism.
pub fn is_paired_verdict_reached(pair: &PairedRatios, among: usize, options: ComparisonOptions) -> bool {
    let level = options.false_discoveries.0 / among.max(1) as f64;
    MeanRatio::of(&pair.log_ratios)
        .is_some_and(|mean| verdict(mean, level, options) != ComparisonVerdict::CannotTell)
}

fn verdict(mean: MeanRatio, level: f64, options: ComparisonOptions) -> ComparisonVerdict {
    let within_margin = mean.log.abs() + mean.half(MISS) <= options.margin.0.ln_1p();
    match () {
        () if mean.log.abs() > mean.half(level) && mean.log > 0.0 => ComparisonVerdict::Slower,
        () if mean.log.abs() > mean.half(level) => ComparisonVerdict::Faster,
        () if within_margin => ComparisonVerdict::NoDifference,
        () => ComparisonVerdict::CannotTell,
    }
}

fn judge_paired(
    pair: &PairedRatios,
    mean: Option<MeanRatio>,
    level: f64,
    options: ComparisonOptions,
) -> PairedComparison {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let ends = |mean: MeanRatio, half: f64| ((mean.log - half).exp(), (mean.log + half).exp());
    let verdict = mean.map_or(ComparisonVerdict::CannotTell, |mean| verdict(mean, level, options));
    let reason = match (verdict, mean) {
        (ComparisonVerdict::CannotTell, Some(_)) => {
            Some(format!("its interval reaches beyond ±{}: give it more time", options.margin))
        }
        (ComparisonVerdict::CannotTell, None) => Some(format!(
            "{} pairs of trials are fewer than the {FEWEST_TRIAL_PAIRS} needed: give it more time",
            pair.log_ratios.len()
        )),
        _ => None,
    };
    PairedComparison {
        name: pair.name.clone(),
        trial_pairs: count(pair.log_ratios.len()),
        quadruples: count(pair.log_ratios.iter().map(Vec::len).sum()),
        ratio: mean
            .map(|mean| Estimate { median: mean.log.exp(), interval: Some(ends(mean, mean.half(level))) }),
        own_interval: mean.map(|mean| ends(mean, mean.half(MISS))),
        finds: mean.map(|mean| Percent(mean.finds(level).exp_m1())),
        verdict,
        reason,
    }
}

/// How many trial pairs, and how much time, finding a difference of `find` takes, from a pilot in which one trial pair took
/// `trial_pair_ns`.
pub fn plan_paired(
    pilot: &[PairedRatios],
    find: Percent,
    trial_pair_ns: f64,
    options: ComparisonOptions,
) -> Vec<PlannedComparison> {
    /// The part of pilots whose variance is lower than the upper end says.
    const LUCK: f64 = 0.1;
    let level = options.false_discoveries.0 / pilot.len().max(1) as f64;
    let planned = |pair: &PairedRatios| {
        let mean = MeanRatio::of(&pair.log_ratios);
        let needs = |times: fn(MeanRatio) -> f64| {
            mean.map(|mean| mean.needed_blocks(find.0.ln_1p(), times(mean), level))
        };
        let (needs_trial_pairs, needs_at_most) = (
            needs(|_| 1.0),
            needs(|mean| {
                ChiSquared::new(mean.degrees).map_or(1.0, |chi| (mean.degrees / chi.inverse_cdf(LUCK)).sqrt())
            }),
        );
        PlannedComparison {
            name: pair.name.clone(),
            trial_pairs: u32::try_from(pair.log_ratios.len()).unwrap_or(u32::MAX),
            needs_trial_pairs,
            needs_at_most,
            time_ns: needs_trial_pairs.map(|pairs| f64::from(pairs) * trial_pair_ns),
            time_at_most_ns: needs_at_most.map(|pairs| f64::from(pairs) * trial_pair_ns),
        }
    };
    pilot.iter().map(planned).collect()
}
