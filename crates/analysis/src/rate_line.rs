//! What a probe would have seen at another rate: a line through the trials at several rates, with an interval clustered by trial.
//!
//! The line is always drawn. To pool the trials where the slope's interval contains 0 would be a test before the estimate: a slope of two
//! standard errors passes it, and shifts the pooled value by several of its own.

use crate::interval::{FEWEST_TRIALS, MeanEstimate, TAIL};
use crate::stats::student_quantile;

/// A trial whose leverage leaves less than this of itself decides the line alone.
const LEAST_REST: f64 = 1e-6;

/// What one trial says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TrialPoint {
    /// The rate, as a share of the highest.
    pub(crate) rate: f64,
    /// What was seen.
    pub(crate) value: f64,
    /// How many samples it rests on.
    pub(crate) weight: f64,
}

/// The value of the line through `trials` at `rate`: weighted least squares, and an interval in which each trial counts once. Its
/// errors are of any size (White's, with each residual over what its trial leaves of itself, as if the trial were left out): they
/// are not taken from the number of samples, of which those of one trial resemble each other.
///
/// Without an interval it is the mean of all trials, whatever their rates: there are too few trials for a line, there is one rate, or
/// all trials are the same, as where nothing was found in any of them: they say nothing of the error then.
pub(crate) fn value_at(rate: f64, trials: &[TrialPoint]) -> Option<MeanEstimate> {
    let trials: Vec<TrialPoint> = trials.iter().copied().filter(|trial| trial.weight > 0.0).collect();
    let sum =
        |of: &dyn Fn(&TrialPoint) -> f64| trials.iter().map(|trial| trial.weight * of(trial)).sum::<f64>();
    let weight = sum(&|_| 1.0);
    if trials.is_empty() {
        return None;
    }
    let (mean_rate, mean) = (sum(&|trial| trial.rate) / weight, sum(&|trial| trial.value) / weight);
    let pooled = MeanEstimate { mean, interval: None };
    let squares = sum(&|trial| (trial.rate - mean_rate).powi(2));
    let leverage =
        |trial: &TrialPoint| trial.weight * (1.0 / weight + (trial.rate - mean_rate).powi(2) / squares);
    let is_line = trials.len() >= FEWEST_TRIALS
        && squares > 0.0
        && trials.iter().any(|trial| trial.value != trials[0].value)
        && trials.iter().all(|trial| 1.0 - leverage(trial) > LEAST_REST);
    if !is_line {
        return Some(pooled);
    }
    let slope = sum(&|trial| (trial.rate - mean_rate) * (trial.value - mean)) / squares;
    let value = mean + slope * (rate - mean_rate);
    let error = |trial: &TrialPoint| {
        let residual = trial.value - mean - slope * (trial.rate - mean_rate);
        let pull = 1.0 / weight + (rate - mean_rate) * (trial.rate - mean_rate) / squares;
        trial.weight * pull * residual / (1.0 - leverage(trial))
    };
    let variance: f64 = trials.iter().map(|trial| error(trial).powi(2)).sum();
    let half = student_quantile(TAIL, trials.len() as f64 - 2.0) * variance.sqrt();
    Some(MeanEstimate { mean: value, interval: Some((value - half, value + half)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    const RATES: [f64; 3] = [0.25, 0.5, 1.0];
    /// How many worlds are simulated.
    const WORLDS: u64 = 200;

    /// A world in which a share of samples depends on the rate.
    struct World {
        at_none: f64,
        slope: f64,
        /// How much the share of a whole trial differs from that of others.
        between_trials: f64,
        /// Samples of a trial at the highest rate.
        samples: u32,
        trials: usize,
    }

    impl World {
        fn trials(&self, seed: u64) -> Vec<TrialPoint> {
            let mut random = SmallRng::seed_from_u64(seed);
            let trial = |at: usize| {
                let rate = RATES[at % RATES.len()];
                let off: f64 = (0..3).map(|_| random.random_range(-1.0..1.0)).sum();
                let share = self.at_none + self.slope * rate + self.between_trials * off;
                let samples = (f64::from(self.samples) * rate) as u32;
                let hits = (0..samples).filter(|_| random.random::<f64>() < share).count();
                TrialPoint { rate, value: hits as f64 / f64::from(samples), weight: f64::from(samples) }
            };
            (0..self.trials).map(trial).collect()
        }

        /// The mean over all worlds, and the share of them whose interval holds what there is without samples.
        fn found(&self) -> (f64, f64) {
            let value_in_world = |seed| value_at(0.0, &self.trials(seed)).unwrap();
            let estimates: Vec<MeanEstimate> = (0..WORLDS).map(value_in_world).collect();
            let holds = |estimate: &&MeanEstimate| {
                estimate.interval.is_some_and(|(low, high)| low <= self.at_none && self.at_none <= high)
            };
            let covered = estimates.iter().filter(holds).count() as f64 / WORLDS as f64;
            (estimates.iter().map(|estimate| estimate.mean).sum::<f64>() / WORLDS as f64, covered)
        }
    }

    #[test]
    fn shares_that_depend_on_the_rate_are_recovered_at_none_and_intervals_cover() {
        for slope in [0.0, 0.02, 0.1, -0.2] {
            for (between_trials, samples, trials) in
                [(0.0, 600, 12), (0.02, 600, 12), (0.03, 200, 6), (0.01, 2000, 9)]
            {
                let world = World { at_none: 0.4, slope, between_trials, samples, trials };
                let (mean, covered) = world.found();
                assert!((mean - 0.4).abs() < 0.012, "slope {slope}, {trials} trials: {mean}");
                assert!((0.9..=0.99).contains(&covered), "slope {slope}, {trials} trials: {covered}");
            }
        }
    }

    #[test]
    fn pooling_where_the_slope_may_be_none_would_miss_too_often() {
        // Why the line is always drawn: a slope that a test of it lets pass shifts the mean of all trials.
        let world = World { at_none: 0.4, slope: 0.06, between_trials: 0.0, samples: 600, trials: 12 };
        let (mut pooled, mut covered) = (0, 0);
        for seed in 0..WORLDS {
            let trials = world.trials(seed);
            let sum = |of: &dyn Fn(&TrialPoint) -> f64| {
                trials.iter().map(|trial| trial.weight * of(trial)).sum::<f64>()
            };
            let all = sum(&|_| 1.0);
            let (mean, mean_rate) = (sum(&|trial| trial.value) / all, sum(&|trial| trial.rate) / all);
            let squares = sum(&|trial| (trial.rate - mean_rate).powi(2));
            let slope = sum(&|trial| (trial.rate - mean_rate) * trial.value) / squares;
            let (deviation, t) = ((mean * (1.0 - mean)).sqrt(), student_quantile(TAIL, 10.0));
            if slope.abs() < t * deviation / squares.sqrt() {
                pooled += 1;
                let half = t * deviation / all.sqrt();
                covered += u64::from((mean - half..=mean + half).contains(&world.at_none));
            }
        }
        assert!(pooled > WORLDS / 4 && covered < pooled / 2, "{covered} of {pooled}");
        assert!(world.found().1 >= 0.9);
    }

    #[test]
    fn an_exact_line_is_found_at_every_rate_without_error() {
        let trial = |at: usize| {
            let rate = RATES[at % 3];
            TrialPoint { rate, value: 0.2 + 0.3 * rate, weight: 100.0 * rate }
        };
        let trials: Vec<TrialPoint> = (0..9).map(trial).collect();
        for (rate, expected) in [(0.0, 0.2), (1.0, 0.5)] {
            let MeanEstimate { mean, interval } = value_at(rate, &trials).unwrap();
            let (low, high) = interval.unwrap();
            assert!((mean - expected).abs() < 1e-12 && high - low < 1e-9, "{mean} {low} {high}");
        }
    }

    #[test]
    fn too_few_trials_or_one_rate_are_pooled_and_have_no_interval() {
        let trial = |rate, value, weight| TrialPoint { rate, value, weight };
        assert_eq!(value_at(0.0, &[]), None);
        assert_eq!(value_at(0.0, &[trial(1.0, 0.5, 0.0)]), None);
        let few = [trial(0.5, 0.2, 10.0), trial(1.0, 0.5, 20.0)];
        assert_eq!(value_at(0.0, &few), Some(MeanEstimate { mean: 0.4, interval: None }));
        let one_rate = [trial(1.0, 0.5, 20.0); 8];
        assert_eq!(value_at(0.0, &one_rate).unwrap().interval, None);
        let same = RATES.into_iter().cycle().take(9).map(|rate| trial(rate, 0.0, 100.0));
        assert_eq!(
            value_at(0.0, &same.collect::<Vec<_>>()),
            Some(MeanEstimate { mean: 0.0, interval: None })
        );
        // One trial alone at its rate would lie on the line whatever it saw.
        let mut alone = one_rate.to_vec();
        alone.push(trial(0.25, 0.9, 5.0));
        assert_eq!(value_at(0.0, &alone).unwrap().interval, None);
    }
}
