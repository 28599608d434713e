//! The log ratio of each quadruple of slices A B B A, and what the speed readings beside its slices say.
//!
//! What drifts evenly over a quadruple drops out of its ratio. What the readings explain of the rest is for `mean_ratio`.

use crate::host_speed::{FullSpeed, SliceSpeed};
use crate::stats;
use model::case::Case;
use model::sample::Sample;
use std::collections::BTreeMap;

/// One quadruple of slices A B B A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuadrupleRatio {
    /// ln B − ln A of the times, each side by the mean of its logarithms.
    pub log_ratio: f64,
    /// What was read beside its slices; absent where a slice lacks readings.
    pub speed: Option<QuadrupleSpeed>,
}

/// The slowness of the host beside the slices of a quadruple: logarithms of readings over those at full speed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct QuadrupleSpeed {
    /// Of the CPUs, beside B's slices less beside A's.
    pub cpus_difference: f64,
    /// Of the pair of CPUs, likewise.
    pub pair_difference: f64,
    /// Of the CPUs, beside all four slices; 0 where all were undisturbed, so that the noise of readings counts for nothing.
    pub cpus_level: f64,
    /// Of the pair of CPUs, likewise.
    pub pair_level: f64,
}

/// The time of one slice, and what was read beside it.
struct Slice {
    log: f64,
    speed: Option<SliceSpeed>,
}

/// The quadruples of each trial pair, in order. A quadruple without slices of both sides is left out.
pub(super) fn quadruples(cases: [&Case; 2], samples: [&[Sample]; 2]) -> Vec<Vec<QuadrupleRatio>> {
    let full_speed = FullSpeed::of_records(cases.into_iter().zip(samples));
    let by_quadruple = |side: usize| {
        let mut slices: BTreeMap<(u32, u32), Vec<Slice>> = BTreeMap::new();
        for sample in samples[side] {
            let speed = full_speed.beside(cases[side], sample);
            let slice = Slice { log: sample.iteration_ns().ln(), speed };
            slices.entry((sample.trial, sample.round)).or_default().push(slice);
        }
        slices
    };
    let of_b = by_quadruple(1);
    let mut by_trial: BTreeMap<u32, Vec<QuadrupleRatio>> = BTreeMap::new();
    for ((trial, round), a) in by_quadruple(0) {
        let Some(b) = of_b.get(&(trial, round)) else { continue };
        by_trial.entry(trial).or_default().push(QuadrupleRatio::between(&a, b));
    }
    by_trial.into_values().collect()
}

/// The log ratio of every round in which both sides have slices, in order.
pub fn round_log_ratios(a: &[Sample], b: &[Sample]) -> Vec<f64> {
    let by_round = |samples: &[Sample]| {
        let mut logs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for sample in samples {
            logs.entry(sample.round).or_default().push(sample.iteration_ns().ln());
        }
        logs
    };
    let of_b = by_round(b);
    let in_both = by_round(a).into_iter().filter_map(|(round, a)| Some((a, of_b.get(&round)?)));
    in_both.map(|(a, b)| stats::mean(b) - stats::mean(&a)).collect()
}

impl QuadrupleRatio {
    fn between(a: &[Slice], b: &[Slice]) -> Self {
        let mean_log =
            |slices: &[Slice]| stats::mean(&slices.iter().map(|slice| slice.log).collect::<Vec<_>>());
        Self { log_ratio: mean_log(b) - mean_log(a), speed: QuadrupleSpeed::between(a, b) }
    }
}

impl QuadrupleSpeed {
    fn between(a: &[Slice], b: &[Slice]) -> Option<Self> {
        let speeds = |slices: &[Slice]| slices.iter().map(|slice| slice.speed).collect::<Option<Vec<_>>>();
        let (a, b) = (speeds(a)?, speeds(b)?);
        let mean = |speeds: &[SliceSpeed], of: fn(&SliceSpeed) -> f64| {
            stats::mean(&speeds.iter().map(of).collect::<Vec<_>>())
        };
        let (cpus, pair) = (|speed: &SliceSpeed| speed.cpus, |speed: &SliceSpeed| speed.pair);
        let all = [a.as_slice(), &b].concat();
        let disturbed = f64::from(u8::from(all.iter().any(|speed| !speed.undisturbed)));
        Some(Self {
            cpus_difference: mean(&b, cpus) - mean(&a, cpus),
            pair_difference: mean(&b, pair) - mean(&a, pair),
            cpus_level: disturbed * mean(&all, cpus),
            pair_level: disturbed * mean(&all, pair),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::floor;
    use model::speed::{SpeedReading, SpeedReadings};
    use model::testing;

    fn slice(trial: u32, round: u32, ns: f64, reading_ns: Option<f64>) -> Sample {
        let speed = reading_ns.map(|ns| SpeedReadings {
            client: SpeedReading { before_ns: ns, after_ns: ns },
            server: None,
            pair: None,
        });
        Sample { trial, speed, ..testing::sample(round, ns, None) }
    }

    fn between(a: &[Sample], b: &[Sample]) -> Vec<Vec<QuadrupleRatio>> {
        let case = floor::operation("pipe", 1);
        quadruples([&case, &case], [a, b])
    }

    #[test]
    fn drift_within_a_quadruple_drops_out_and_one_that_lacks_a_side_is_left_out() {
        // A B B A under a drift of 2% a slice; B takes 10% more.
        let at = |round: u32, place: u32, ns: f64| {
            slice(round / 4, round, ns * (0.02 * f64::from(4 * round + place)).exp(), None)
        };
        let a: Vec<Sample> = (0..12).flat_map(|round| [at(round, 0, 100.0), at(round, 3, 100.0)]).collect();
        let mut b: Vec<Sample> =
            (0..12).flat_map(|round| [at(round, 1, 110.0), at(round, 2, 110.0)]).collect();
        b.truncate(22);
        let pairs = between(&a, &b);
        assert_eq!(pairs.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 3]);
        assert!(pairs.iter().flatten().all(|quadruple| (quadruple.log_ratio - 1.1f64.ln()).abs() < 1e-9));
        assert!(pairs.iter().flatten().all(|quadruple| quadruple.speed.is_none()));
        assert_eq!(round_log_ratios(&a, &b), pairs.concat().iter().map(|q| q.log_ratio).collect::<Vec<_>>());
    }

    #[test]
    fn readings_count_by_their_difference_and_where_they_are_disturbed_by_their_level() {
        // The host is 1.02 times slower beside B in even rounds, which is within what an undisturbed CPU reads, and 1.5 times
        // in odd ones.
        let speed = |round: u32| if round.is_multiple_of(2) { 1.02 } else { 1.5 };
        let a: Vec<Sample> = (0..200).map(|round| slice(0, round, 100.0, Some(7000.0))).collect();
        let b: Vec<Sample> =
            (0..200).map(|round| slice(0, round, 100.0, Some(7000.0 * speed(round)))).collect();
        let found = between(&a, &b).concat();
        for (round, quadruple) in (0..200).zip(&found) {
            let read = quadruple.speed.unwrap();
            assert!((read.cpus_difference - speed(round).ln()).abs() < 1e-9, "{read:?}");
            let level = if round % 2 == 0 { 0.0 } else { 1.5f64.ln() / 2.0 };
            assert!((read.cpus_level - level).abs() < 1e-3, "{read:?}");
            assert_eq!((read.pair_difference, read.pair_level), (0.0, 0.0));
        }
    }
}
