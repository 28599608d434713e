//! What moves all cases of a group together within a run and no reading tells.

use crate::stats;
use std::collections::BTreeMap;

/// The time over which residuals are put together.
const WINDOW_NS: u64 = 10_000_000_000;
/// With fewer windows nothing is seen of how they differ.
const FEWEST_WINDOWS: usize = 3;
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
}

/// What the slices of one trial in one window are off by when all else is taken off.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrialInWindow {
    pub(super) window: usize,
    pub(super) slices: usize,
    pub(super) off: f64,
    /// The variance of `off` by chance: of the trial's own effect, and of the noise of its slices.
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

    /// A window moves as much as its trials say, drawn to 0 as far as chance may have made that.
    pub(super) fn update(&mut self, trials: impl Iterator<Item = TrialInWindow>) {
        let mut windows: BTreeMap<usize, Window> = BTreeMap::new();
        for trial in trials {
            let window = windows.entry(trial.window).or_default();
            window.slices += trial.slices;
            window.sum += trial.off / trial.variance;
            window.worth += 1.0 / trial.variance;
        }
        windows.retain(|_, window| window.slices >= FEWEST_SLICES);
        self.moved.clear();
        if windows.len() < FEWEST_WINDOWS {
            self.variance = 0.0;
            return;
        }
        let means: Vec<f64> = windows.values().map(|window| window.sum / window.worth).collect();
        let by_chance: Vec<f64> = windows.values().map(|window| 1.0 / window.worth).collect();
        self.variance = (stats::deviation(&means).powi(2) - stats::mean(&by_chance)).max(0.0);
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
