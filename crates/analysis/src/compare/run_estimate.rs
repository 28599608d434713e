//! The variance between runs, from replicates, or else from the differences of all cases, most of which do not differ.

use super::options::ComparisonOptions;
use super::run_variance::{RunVariance, RunVarianceSource};
use super::statistics::{Replicates, Shift};
use crate::stats;
use model::units::Percent;

/// The fewest cases whose differences say what is usual.
const FEWEST_CASES: usize = 10;
/// Cases of one run have the host of that run in common, so that many cases do not make many degrees of freedom.
const MOST_DEGREES: f64 = 20.0;
/// What is assumed counts as much as an estimate of so many degrees of freedom: a few runs may agree by chance.
const ASSUMED_DEGREES: f64 = 8.0;

/// What multiples of floors are assumed to deviate by at the least, as a share of what times are.
const LEAST_OF_MULTIPLES: f64 = 0.5;

/// The variance between runs of the multiples of cases that have `shifts`, and that moved by `drift` together within a run: where floors
/// share little of how the host moves, that shows within a run too.
pub(super) fn run_variance_of_multiples(
    shifts: &[Shift],
    drift: Option<f64>,
    options: ComparisonOptions,
) -> RunVariance {
    let assumed = drift
        .map_or(options.repeatability.0, |drift| drift.max(LEAST_OF_MULTIPLES * options.repeatability.0));
    run_variance(shifts, ComparisonOptions { repeatability: Percent(assumed), ..options })
}

/// The variance between runs of the cases that have `shifts`.
pub(super) fn run_variance(shifts: &[Shift], options: ComparisonOptions) -> RunVariance {
    let assumed = options.repeatability.0.powi(2);
    let estimated = |variance: f64, degrees: f64, source| {
        let degrees = degrees.clamp(1.0, MOST_DEGREES);
        let together = degrees + ASSUMED_DEGREES;
        let variance = (degrees * variance.max(0.0) + ASSUMED_DEGREES * assumed) / together;
        RunVariance { variance, degrees: together, source }
    };
    let replicates =
        shifts.iter().map(|shift| shift.replicates).fold(Replicates::default(), |sum, more| sum + more);
    if replicates.degrees > 0.0 {
        let variance = (replicates.squares - replicates.within) / replicates.degrees;
        return estimated(variance, replicates.degrees, RunVarianceSource::Replicates);
    }
    if shifts.len() >= FEWEST_CASES {
        // Robust, so that cases that do differ count little, and around what all have in common, which is for floors and
        // neighbours to explain.
        let logs: Vec<f64> = shifts.iter().map(|shift| shift.log).collect();
        let centre = stats::median(&logs).unwrap_or(0.0);
        let distances: Vec<f64> = logs.iter().map(|log| (log - centre).abs()).collect();
        let deviation = 1.4826 * stats::median(&distances).unwrap_or(0.0);
        let within: Vec<f64> = shifts.iter().map(|shift| shift.variance).collect();
        let between = deviation.powi(2) - stats::median(&within).unwrap_or(0.0);
        let mean_share = stats::mean(&shifts.iter().map(|shift| shift.run_share).collect::<Vec<_>>());
        // Such a deviation is worth that of a little more than a third as many cases.
        return estimated(between / mean_share, 0.37 * shifts.len() as f64, RunVarianceSource::Differences);
    }
    RunVariance { variance: assumed, degrees: f64::INFINITY, source: RunVarianceSource::Assumed }
}
