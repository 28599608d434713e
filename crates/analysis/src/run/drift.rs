//! What moves all cases of a group together within a run and no reading tells.

use crate::stats;
use std::collections::BTreeMap;

/// The time over which residuals are put together.
const WINDOW_NS: u64 = 10_000_000_000;
/// With fewer windows nothing is seen of how they differ.
const FEWEST_WINDOWS: usize = 3;
/// With fewer cases little is seen of what they have in common.
const FEWEST_CASES: usize = 3;
/// With fewer slices the middle of a window varies by chance.
const FEWEST_SLICES: usize = 20;

/// The window of a run in which something began so many nanoseconds after it: of a run of days, all of the last are one.
pub(super) fn window_of(started_ns: u64) -> usize {
    const MOST: u64 = 20_000;
    (started_ns / WINDOW_NS).min(MOST) as usize
}

/// What moves all cases together.
#[derive(Debug, Clone, Default)]
pub(super) struct Drift {
    /// By window, as logarithms.
    moved: Vec<f64>,
    /// The variance from window to window.
    pub(super) variance: f64,
    /// The windows that it was found in, less one.
    pub(super) spare_windows: f64,
}

/// What the slices of one trial in one window are off by when all else is taken off.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrialInWindow {
    pub(super) window: usize,
    pub(super) slices: usize,
    pub(super) deviation: f64,
    /// The variance of `deviation` by chance: of the trial's own effect, and of the noise of its slices.
    pub(super) variance: f64,
}

/// The sums of one window.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    slices: usize,
    sum: f64,
    worth: f64,
}

impl Drift {
    /// What a slice is off by that began in a window.
    pub(super) fn at(&self, window: usize) -> f64 {
        self.moved.get(window).copied().unwrap_or_default()
    }

    /// A window moves as much as the trials of so many cases in it say, drawn to 0 as far as chance may have made that.
    pub(super) fn update(&mut self, trials: impl Iterator<Item = TrialInWindow>, cases: usize) {
        let mut windows: BTreeMap<usize, Window> = BTreeMap::new();
        for trial in trials {
            let window = windows.entry(trial.window).or_default();
            window.slices += trial.slices;
            window.sum += trial.deviation / trial.variance;
            window.worth += 1.0 / trial.variance;
        }
        windows.retain(|_, window| window.slices >= FEWEST_SLICES);
        self.moved.clear();
        (self.variance, self.spare_windows) = (0.0, 0.0);
        if windows.len() < FEWEST_WINDOWS {
            return;
        }
        let means: Vec<f64> = windows.values().map(|window| window.sum / window.worth).collect();
        let by_chance: Vec<f64> = windows.values().map(|window| 1.0 / window.worth).collect();
        self.spare_windows = windows.len() as f64 - 1.0;
        let (chance, variance) = (stats::mean(&by_chance), stats::deviation(&means).powi(2));
        // Of few cases what moves them together is hardly told from what their trials differ by, and is that unless more is seen.
        self.variance = match cases < FEWEST_CASES {
            true => (variance - chance).max(0.0),
            false => variance_beyond(chance, variance, self.spare_windows),
        };
        let all: f64 = windows.values().map(|window| window.worth).sum();
        let mut moved = vec![0.0; windows.keys().next_back().map_or(0, |last| last + 1)];
        let mut middle = 0.0;
        for ((at, window), mean) in windows.iter().zip(means) {
            moved[*at] = mean * self.variance / (self.variance + 1.0 / window.worth);
            middle += moved[*at] * window.worth / all;
        }
        // What moves all windows alike is in the levels of the cases.
        self.moved = moved.into_iter().map(|moved| moved - middle).collect();
    }
}

/// What values vary by beyond `chance`, of a variance that was found with so many degrees of freedom. Of few values it would often be found to be
/// none: it is about a standard error above that, by a prior in proportion to the standard deviation (Chung, Rabe-Hesketh, Dorie,
/// Gelman and Liu, *Psychometrika* 78, 2013).
fn variance_beyond(chance: f64, variance: f64, degrees: f64) -> f64 {
    let half = (degrees * variance - (degrees - 2.0) * chance) / 2.0;
    (half + (half * half + (degrees - 1.0) * chance * chance).sqrt()) / (degrees - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variance_is_never_none_and_of_many_values_what_is_beyond_chance() {
        assert!((variance_beyond(1.0, 5.0, 1e6) - 4.0).abs() < 1e-3);
        assert!((variance_beyond(0.0, 4.0, 1e6) - 4.0).abs() < 1e-3);
        let of_few = variance_beyond(1.0, 0.5, 5.0);
        assert!(0.0 < of_few && of_few < 1.0, "{of_few}");
        assert!(variance_beyond(1.0, 1.0, 1000.0) < 0.1);
    }
}
