//! How much of the drift of a case remains when its times are divided by its floor. Pure.

use crate::stats;
use model::record::Sample;

/// The variance of the logarithm of the multiple of the floor over the variance of the logarithm of the time: 0 when the
/// floor drifts as the case does, 1 when dividing by it does not help, more when it makes things worse.
///
/// The floor is the one that wakes a sleeper, where `samples` have that. `None` with fewer than three samples that have a
/// floor, and when the time does not vary.
pub fn floor_drift(samples: &[Sample]) -> Option<f64> {
    let floor_ns = |sample: &Sample| sample.wake_floor_ns.or(sample.floor_ns);
    let logs = |of: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        let of_sample = |sample: &Sample| Some(of(sample.iteration_ns(), floor_ns(sample)?).ln());
        samples.iter().filter_map(of_sample).collect()
    };
    let (times, multiples) = (logs(&|time, _| time), logs(&|time, floor| time / floor));
    let (time, multiple) = (stats::squares(&times), stats::squares(&multiples));
    // Both are sums over the same samples, so that their ratio is that of the variances.
    (times.len() >= 3 && time > 0.0).then_some(multiple / time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::testing::sample;

    /// Samples of 1000 ns times each of `times`, with a floor of 100 ns times each of `floors`.
    fn samples(times: &[f64], floors: &[f64]) -> Vec<Sample> {
        let both = times.iter().zip(floors).enumerate();
        both.map(|(at, (time, floor))| sample(at as u32, 1000.0 * time, Some(100.0 * floor))).collect()
    }

    const DRIFT: [f64; 4] = [1.0, 1.5, 2.0, 0.8];

    #[test]
    fn a_floor_that_drifts_with_its_case_leaves_nothing() {
        assert!(floor_drift(&samples(&DRIFT, &DRIFT)).unwrap() < 1e-12);
    }

    #[test]
    fn a_floor_that_stays_leaves_all_and_one_that_drifts_the_other_way_makes_it_worse() {
        let drift = |floors: &[f64]| floor_drift(&samples(&DRIFT, floors)).unwrap();
        assert!((drift(&[1.0; 4]) - 1.0).abs() < 1e-12);
        // The logarithm of the multiple is twice that of the time, and its variance four times.
        assert!((drift(&DRIFT.map(|d| 1.0 / d)) - 4.0).abs() < 1e-12);
        // Half of the drift, as a logarithm, leaves a quarter of the variance.
        assert!((drift(&DRIFT.map(f64::sqrt)) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn the_floor_that_wakes_a_sleeper_is_the_one_that_counts() {
        let mut samples = samples(&DRIFT, &[1.0; 4]);
        samples.iter_mut().zip(DRIFT).for_each(|(s, drift)| s.wake_floor_ns = Some(500.0 * drift));
        assert!(floor_drift(&samples).unwrap() < 1e-12);
    }

    #[test]
    fn there_is_none_without_floors_variation_or_enough_samples() {
        let without: Vec<Sample> = (0..5).map(|at| sample(at, 1000.0, None)).collect();
        assert_eq!(floor_drift(&without), None);
        assert_eq!(floor_drift(&samples(&[1.0; 5], &[1.0, 1.1, 1.2, 0.9, 1.0])), None);
        assert_eq!(floor_drift(&samples(&DRIFT[..2], &DRIFT[..2])), None);
        assert_eq!(floor_drift(&[]), None);
    }
}
