//! How many slices a trial should have: few where trials differ and cost little to start, many where starting costs more than a slice.
//!
//! The rule is that of Kalibera and Jones, *Rigorous benchmarking in reasonable time* (2013): it makes the variance of the
//! mean least for the time spent. When to stop is in `stopping`.

use crate::stats;
use model::record::Sample;
use std::collections::BTreeMap;

/// The fewest slices of a trial: of few slices, the variances are known so badly that they would have many trials started by chance.
pub const FEWEST_SLICES: u32 = 4;
/// The most slices of a trial: beyond, a case has too few trials to show how trials vary.
pub const MOST_SLICES: u32 = 30;
/// What is taken before trials and slices show how they vary.
const FIRST_SLICES: u32 = 20;

/// How many slices of `slice_cost_ns` a trial should have whose start costs `start_cost_ns`, by the variance between trials and
/// within them of the logarithms of `samples`.
pub fn slices_per_trial(start_cost_ns: f64, slice_cost_ns: f64, samples: &[Sample]) -> u32 {
    let Some(Variances { between, within }) = Variances::from_samples(samples) else { return FIRST_SLICES };
    let best = (start_cost_ns / slice_cost_ns * within / between).sqrt();
    // Where neither trials nor slices differ, one number is as good as another.
    if best.is_nan() {
        return FIRST_SLICES;
    }
    best.round().clamp(f64::from(FEWEST_SLICES), f64::from(MOST_SLICES)) as u32
}

/// The variances of the logarithms of times.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Variances {
    /// Between trials, without what slices add to it.
    between: f64,
    /// Between the slices of a trial.
    within: f64,
}

impl Variances {
    /// `None` with fewer than two trials of two slices.
    fn from_samples(samples: &[Sample]) -> Option<Self> {
        let mut trials: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for sample in samples {
            trials.entry(sample.trial).or_default().push(sample.iteration_ns().ln());
        }
        trials.retain(|_, logs| logs.len() >= 2);
        if trials.len() < 2 {
            return None;
        }
        let spare: f64 = trials.values().map(|logs| logs.len() as f64 - 1.0).sum();
        let within = trials.values().map(|logs| stats::squares(logs)).sum::<f64>() / spare;
        let means: Vec<f64> = trials.values().map(|logs| stats::mean(logs)).collect();
        let shares: f64 = trials.values().map(|logs| 1.0 / logs.len() as f64).sum();
        let of_slices = within * shares / trials.len() as f64;
        let between = (stats::deviation(&means).powi(2) - of_slices).max(0.0);
        Some(Self { between, within })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Random;
    use model::testing;

    fn samples(between: f64, within: f64) -> Vec<Sample> {
        let mut random = Random(11);
        let mut samples = Vec::new();
        for trial in 0..200 {
            let of_trial = between * random.normal();
            for _ in 0..10 {
                let log = of_trial + within * random.normal();
                samples.push(testing::sample(trial, 1000.0 * log.exp(), None));
            }
        }
        samples
    }

    #[test]
    fn costs_and_variances_are_weighed() {
        // The square root of 9 · (0.04 / 0.01)² is 12, and of 25 · (0.04 / 0.01)² it is 20.
        let count = slices_per_trial(9e6, 1e6, &samples(0.01, 0.04));
        assert!((10..=14).contains(&count), "{count}");
        let count = slices_per_trial(25e6, 1e6, &samples(0.01, 0.04));
        assert!((18..=23).contains(&count), "{count}");
    }

    #[test]
    fn extremes_are_bounded() {
        assert_eq!(slices_per_trial(4e6, 1e6, &samples(0.1, 0.001)), FEWEST_SLICES);
        assert!(slices_per_trial(4e6, 1e6, &samples(0.0, 0.05)) > 15);
        assert_eq!(slices_per_trial(4e9, 1e6, &samples(0.01, 0.05)), MOST_SLICES);
        assert_eq!(slices_per_trial(4e6, 1e6, &[]), FIRST_SLICES);
    }
}
