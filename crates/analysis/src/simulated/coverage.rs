//! How often the interval that a run ends with covers the truth, on hosts of many kinds.

use super::host::Motion;
use super::random::Random;
use super::run::{WORLD, World, case};
use crate::run::{HostState, RunModel, RunSlices};

/// How many are enough to tell an interval that holds from one that does not.
const TESTED_RUNS: usize = 60;

/// What an endless run would find.
struct Truth {
    model: RunModel,
    state: HostState,
}

impl Truth {
    fn in_world(world: World) -> Self {
        let long = World { trials: 20_000, slices: 1, trial_s: 1000.0, ..world };
        let slices = RunSlices::from_records([(&case(), long.samples(&mut Random(1)).as_slice())]);
        let state = slices.calm_state();
        Self { model: RunModel::at(&slices, &state), state }
    }

    /// What the case takes in `state`, in nanoseconds.
    fn time_ns(&self, state: &HostState) -> f64 {
        let here_ns = self.model.time_ns(&case()).unwrap().median;
        let slope = self.model.slopes(&case()).unwrap()[0];
        let further = state.cpu(1).zip(self.state.cpu(1)).map_or(0.0, |(there, here)| there - here);
        here_ns * slope.map_or(1.0, |slope| (slope.slope * further).exp())
    }
}

#[derive(Default)]
struct Rates {
    known: usize,
    covered: usize,
}

/// In how many of `runs` there is an interval, and how many of them cover the truth.
fn rates(world: World, runs: usize) -> Rates {
    let truth = Truth::in_world(world);
    let mut random = Random(7);
    let mut rates = Rates::default();
    for _ in 0..runs {
        let samples = world.samples(&mut random);
        let slices = RunSlices::from_records([(&case(), samples.as_slice())]);
        let state = slices.calm_state();
        let found = RunModel::at(&slices, &state).time_ns(&case()).unwrap();
        if let Some((low, high)) = found.interval {
            let truth_ns = truth.time_ns(&state);
            rates.known += 1;
            rates.covered += usize::from(low <= truth_ns && truth_ns <= high);
        }
    }
    rates
}

fn worlds() -> Vec<(String, World)> {
    let modes = |dwell_s, share| Motion::Modes { slow: 0.35, share, dwell_s };
    let mut motions = vec![("rest".to_owned(), Motion::Rest)];
    for dwell_s in [0.1, 1.0] {
        motions.push((format!("modes 60% {dwell_s} s"), modes(dwell_s, 0.6)));
        motions.push((format!("modes 90% {dwell_s} s"), modes(dwell_s, 0.9)));
        motions
            .push((format!("drift {dwell_s} s"), Motion::Drift { deviation: 0.2, correlation_s: dwell_s }));
    }
    motions.push(("bursts".to_owned(), Motion::Bursts { per_s: 1.0, length_s: 0.1, slow: 0.4 }));
    let mut worlds = Vec::new();
    for (name, motion) in motions {
        let world = World { motion, trials: 10, trial_s: 6.0, reading_noise: Some(0.01), ..WORLD };
        worlds.push((name, world));
    }
    for (name, world) in [
        ("trials 3%", World { trial_deviation: 0.03, ..WORLD }),
        ("trials 0%", World { trial_deviation: 0.0, ..WORLD }),
        ("slow trials 30%", World { slow_trials: 0.3, ..WORLD }),
        ("slow trials 10%", World { slow_trials: 0.1, ..WORLD }),
        ("late 30%", World { late: 0.3, ..WORLD }),
        ("8 trials", World { trials: 8, ..WORLD }),
        ("12 trials", World { trials: 12, ..WORLD }),
    ] {
        worlds.push((name.to_owned(), world));
    }
    worlds
}

/// Of a case of a suite with speed readings, on hosts that stay in no state for a good part of the run.
#[test]
fn intervals_cover_the_truth_as_often_as_they_say() {
    let (mut covered, mut known) = (0, 0);
    for (name, world) in worlds() {
        let rates = rates(world, TESTED_RUNS);
        let share = rates.covered as f64 / rates.known.max(1) as f64;
        assert!(
            rates.known * 10 >= TESTED_RUNS * 9,
            "{name}: {} of {TESTED_RUNS} runs have an interval",
            rates.known
        );
        assert!(share >= 0.88, "{name}: {share:.3} of the intervals cover the truth");
        (covered, known) = (covered + rates.covered, known + rates.known);
    }
    let share = covered as f64 / known as f64;
    assert!((0.93..=0.99).contains(&share), "{share:.3} of all intervals cover the truth");
}
