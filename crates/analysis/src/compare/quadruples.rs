//! The log ratio of each quadruple of slices A B B A, and what a trial pair makes of its quadruples.
//!
//! What drifts evenly over a quadruple drops out of its ratio. What changes within it does not, but the speed readings beside its
//! slices tell how much faster the CPUs were for one side: see [`adjusted`].

use crate::stats;
use model::sample::Sample;
use model::speed::SpeedReadings;
use std::collections::BTreeMap;

/// One quadruple: ln B − ln A of the times, and of the speed readings where every slice has them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Quadruple {
    pub(super) log_ratio: f64,
    pub(super) readings_log_ratio: Option<f64>,
}

/// The quadruples of each trial pair, in order. A quadruple without slices of both sides is left out.
pub(super) fn quadruples(a: &[Sample], b: &[Sample]) -> Vec<Vec<Quadruple>> {
    let by_round = |samples: &[Sample]| {
        let mut slices: BTreeMap<(u32, u32), Vec<(f64, Option<f64>)>> = BTreeMap::new();
        for sample in samples {
            let slice = (sample.iteration_ns().ln(), sample.speed.as_ref().map(log_of_readings));
            slices.entry((sample.trial, sample.round)).or_default().push(slice);
        }
        slices
    };
    let of_b = by_round(b);
    let mut by_trial: BTreeMap<u32, Vec<Quadruple>> = BTreeMap::new();
    for ((trial, round), a) in by_round(a) {
        let Some(b) = of_b.get(&(trial, round)) else { continue };
        by_trial.entry(trial).or_default().push(Quadruple::between(&a, b));
    }
    by_trial.into_values().collect()
}

impl Quadruple {
    /// Between the slices of A and of B, each with the logarithms of its time and of its readings.
    fn between(a: &[(f64, Option<f64>)], b: &[(f64, Option<f64>)]) -> Self {
        let time = |slices: &[(f64, Option<f64>)]| {
            stats::mean(&slices.iter().map(|(log, _)| *log).collect::<Vec<_>>())
        };
        let readings = |slices: &[(f64, Option<f64>)]| {
            slices.iter().map(|(_, reading)| *reading).collect::<Option<Vec<f64>>>().map(|logs| stats::mean(&logs))
        };
        Self {
            log_ratio: time(b) - time(a),
            readings_log_ratio: readings(a).zip(readings(b)).map(|(a, b)| b - a),
        }
    }
}

/// The mean logarithm of what was read beside one slice, of the CPUs and of their pair.
fn log_of_readings(readings: &SpeedReadings) -> f64 {
    let read = [Some(readings.client), readings.server, readings.pair];
    stats::mean(&read.into_iter().flatten().map(|reading| reading.mean_ns().ln()).collect::<Vec<_>>())
}

/// The log ratios of the quadruples of each trial pair, less what the readings explain of them: the slope of the log ratio of
/// times over that of readings, through all quadruples, times the latter.
///
/// Simulated, that is better than leaving out the quadruples in which a reading changed: where a host changes every 0.1 s too few are
/// left, and where it wanders all change a little. With readings that explain nothing the slope is near 0, and nothing changes.
pub(super) fn adjusted(pairs: &[Vec<Quadruple>]) -> Vec<Vec<f64>> {
    let all: Vec<&Quadruple> = pairs.iter().flatten().collect();
    let points: Vec<(f64, f64)> =
        all.iter().filter_map(|quadruple| Some((quadruple.readings_log_ratio?, quadruple.log_ratio))).collect();
    let slope = slope(&points);
    let adjust = |quadruple: &Quadruple| {
        quadruple.log_ratio - quadruple.readings_log_ratio.map_or(0.0, |readings| slope * readings)
    };
    pairs.iter().map(|pair| pair.iter().map(adjust).collect()).collect()
}

/// The slope of y over x by least squares, of points whose y lies within the outer fences of Tukey (three interquartile ranges
/// beyond the quartiles), so that an interrupted slice does not tilt it; 0 where x does not vary.
fn slope(points: &[(f64, f64)]) -> f64 {
    let mut ys: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
    ys.sort_unstable_by(f64::total_cmp);
    let Some((low, high)) = ys.get(ys.len() / 4).zip(ys.get(ys.len() * 3 / 4)) else { return 0.0 };
    let reach = 3.0 * (high - low);
    let (x, y): (Vec<f64>, Vec<f64>) =
        points.iter().filter(|(_, y)| (low - reach..=high + reach).contains(y)).copied().unzip();
    let (mean_x, mean_y) = (stats::mean(&x), stats::mean(&y));
    let products: f64 = x.iter().zip(&y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let squares = stats::squares(&x);
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// The mean of the middle half of `values`, which no quarter of disturbed quadruples moves far; `None` of nothing.
pub(super) fn midmean(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let outer = sorted.len() / 4;
    (!sorted.is_empty()).then(|| stats::mean(&sorted[outer..sorted.len() - outer]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::speed::SpeedReading;
    use model::testing;

    fn slice(trial: u32, round: u32, ns: f64, reading_ns: Option<f64>) -> Sample {
        let speed = reading_ns.map(|ns| SpeedReadings {
            client: SpeedReading { before_ns: ns, after_ns: ns },
            server: None,
            pair: None,
        });
        Sample { trial, speed, ..testing::sample(round, ns, None) }
    }

    #[test]
    fn drift_within_a_quadruple_drops_out_and_one_that_lacks_a_side_is_left_out() {
        // A B B A under a drift of 2% a slice; B takes 10% more.
        let at = |round: u32, place: u32, ns: f64| {
            slice(round / 4, round, ns * (0.02 * f64::from(4 * round + place)).exp(), None)
        };
        let a: Vec<Sample> = (0..12).flat_map(|round| [at(round, 0, 100.0), at(round, 3, 100.0)]).collect();
        let mut b: Vec<Sample> = (0..12).flat_map(|round| [at(round, 1, 110.0), at(round, 2, 110.0)]).collect();
        b.truncate(22);
        let pairs = quadruples(&a, &b);
        assert_eq!(pairs.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 3]);
        assert!(pairs.iter().flatten().all(|quadruple| (quadruple.log_ratio - 1.1f64.ln()).abs() < 1e-9));
    }

    #[test]
    fn what_the_readings_explain_is_taken_out() {
        // In every third quadruple the host is slower by half for B alone; times follow with a slope of 0.6.
        let speed = |round: u32| if round % 3 == 0 { 1.5 } else { 1.0 };
        let a: Vec<Sample> = (0..30).map(|round| slice(round / 10, round, 100.0, Some(7000.0))).collect();
        let b: Vec<Sample> = (0..30u32)
            .map(|round| {
                slice(round / 10, round, 110.0 * f64::powf(speed(round), 0.6), Some(7000.0 * speed(round)))
            })
            .collect();
        let pairs = adjusted(&quadruples(&a, &b));
        assert!(pairs.iter().flatten().all(|log| (log - 1.1f64.ln()).abs() < 1e-9), "{pairs:?}");
        // Where nothing was read, or nothing changed, the ratios stay.
        let steady: Vec<Sample> = b.iter().map(|sample| Sample { speed: a[0].speed, ..sample.clone() }).collect();
        let found = quadruples(&a, &steady);
        let logs: Vec<f64> = found.iter().flatten().map(|quadruple| quadruple.log_ratio).collect();
        assert_eq!(adjusted(&found).concat(), logs);
    }

    #[test]
    fn the_middle_half_is_what_counts() {
        assert_eq!(midmean(&[1.0, 2.0, 3.0, 100.0]), Some(2.5));
        assert_eq!(midmean(&[5.0]), Some(5.0));
        assert_eq!(midmean(&[]), None);
        assert_eq!(slope(&[]), 0.0);
    }
}
