//! What moves all cases of a group together within a run and no reading tells.

use crate::stats;
use std::collections::BTreeMap;

/// The time over which residuals are put together.
const WINDOW_NS: u64 = 10_000_000_000;
/// With fewer windows nothing is seen of how they differ.
const FEWEST_WINDOWS: usize = 3;
/// With fewer slices the middle of a window varies by chance.
const FEWEST_SLICES: usize = 20;

/// The variance of what windows of a run differ by, less what they do by chance. Each slice has its time, what the model leaves of
/// it, and what that is worth.
pub(super) fn drift(slices: impl Iterator<Item = (u64, f64, f64)>) -> f64 {
    let mut windows: BTreeMap<u64, (usize, f64, f64)> = BTreeMap::new();
    for (started_ns, left, worth) in slices {
        let (count, sum, worths) = windows.entry(started_ns / WINDOW_NS).or_default();
        *count += 1;
        *sum += left * worth;
        *worths += worth;
    }
    let windows = windows.into_values().filter(|(count, ..)| *count >= FEWEST_SLICES);
    let (means, by_chance): (Vec<f64>, Vec<f64>) =
        windows.map(|(_, sum, worth)| (sum / worth, 1.0 / worth)).unzip();
    if means.len() < FEWEST_WINDOWS {
        return 0.0;
    }
    (stats::deviation(&means).powi(2) - stats::mean(&by_chance)).max(0.0)
}
