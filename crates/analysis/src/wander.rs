//! How what is measured moves from one part of a run to the next, beyond what chance makes of it: what moves within a run goes on after it.
//!
//! What it is taken for is for `host_speed` (times) and `compare` (multiples of floors) to say.

use crate::stats;
use std::collections::BTreeMap;

/// The time over which values are put together.
pub(crate) const WINDOW_NS: u64 = 5_000_000_000;
/// With fewer windows little is known of how they differ.
pub(crate) const FEWEST_WINDOWS: usize = 6;
/// What is not seen in few windows may be there all the same.
const LEAST_SHARE: f64 = 0.25;
/// The variance of a median over that of a mean, of normal values.
const OF_MEDIAN: f64 = 1.57;

/// One part of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// The median of its values.
    pub(crate) middle: f64,
    /// What they deviate by.
    pub(crate) deviation: f64,
    pub(crate) values: f64,
}

impl Window {
    /// Of `values`; `None` of fewer than `fewest`.
    pub(crate) fn of(values: &[f64], fewest: usize) -> Option<Self> {
        let known = (values.len() >= fewest).then(|| stats::median(values)).flatten();
        let deviation = stats::deviation_of_most(values)?;
        known.map(|middle| Self { middle, deviation, values: values.len() as f64 })
    }
}

/// The values of all `cases` of a run by the window in which they began, each less the median of its case. A value stands with the time in
/// the run at which it began, in nanoseconds.
pub(crate) fn by_window(cases: impl Iterator<Item = Vec<(u64, f64)>>) -> BTreeMap<u64, Vec<f64>> {
    let mut windows: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for case in cases {
        let values: Vec<f64> = case.iter().map(|(_, value)| *value).collect();
        let Some(middle) = stats::median(&values) else { continue };
        for (started_ns, value) in case {
            windows.entry(window_of(started_ns)).or_default().push(value - middle);
        }
    }
    windows
}

/// The number of the window in which something is that began so many nanoseconds after the run.
pub(crate) fn window_of(started_ns: u64) -> u64 {
    started_ns / WINDOW_NS
}

/// The standard deviation of what most `windows` say, less what it would be by chance; `None` of fewer than [`FEWEST_WINDOWS`].
pub(crate) fn wander(windows: &[Window]) -> Option<f64> {
    let middles: Vec<f64> = windows.iter().map(|window| window.middle).collect();
    let seen = stats::deviation_of_most(&middles).filter(|_| middles.len() >= FEWEST_WINDOWS)?.powi(2);
    let by_chance = windows.iter().map(|window| OF_MEDIAN * window.deviation.powi(2) / window.values);
    let by_chance = stats::median(&by_chance.collect::<Vec<_>>())?;
    Some((seen - by_chance).max(LEAST_SHARE * seen).sqrt())
}
