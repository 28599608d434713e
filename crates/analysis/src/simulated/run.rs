//! Runs of one case on a simulated host: its samples, and the time that it truly takes in each view.

use super::host::{Cpu, Motion};
use super::random::Random;
use model::Case;
use model::floor;
use model::record::Sample;
use model::speed::{SpeedReading, SpeedReadings};
use model::testing;

/// A case on a host, and when its slices are taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct World {
    pub(super) motion: Motion,
    /// How much of the host's slowness the times follow.
    pub(super) slope: f64,
    /// The deviation from trial to trial, on logarithms.
    pub(super) trial_deviation: f64,
    /// Of so many trials one is slower by a tenth.
    pub(super) slow_trials: f64,
    /// The deviation from slice to slice.
    pub(super) slice_deviation: f64,
    /// The share of slices that are late, by 30% on average.
    pub(super) late: f64,
    /// The deviation of a reading; without, none is taken.
    pub(super) reading_noise: Option<f64>,
    pub(super) trials: usize,
    pub(super) slices: usize,
    /// From the start of a trial to that of the next.
    pub(super) trial_s: f64,
}

pub(super) const WORLD: World = World {
    motion: Motion::Rest,
    slope: 0.8,
    trial_deviation: 0.01,
    slow_trials: 0.0,
    slice_deviation: 0.02,
    late: 0.05,
    reading_noise: Some(0.01),
    trials: 10,
    slices: 20,
    trial_s: 6.0,
};

/// What an iteration takes at full speed, in the middle.
pub(super) const BASE_NS: f64 = 1000.0;
pub(super) const READING_NS: f64 = 5000.0;
const SLICE_S: f64 = 0.002;

pub(super) fn case() -> Case {
    floor::operation("simulated", 1)
}

impl World {
    /// The samples of a run, in the order of time.
    pub(super) fn samples(&self, random: &mut Random) -> Vec<Sample> {
        let mut cpu = Cpu::new(self.motion, random);
        (0..self.trials as u32).flat_map(|trial| self.trial(trial, &mut cpu, random)).collect()
    }

    /// A trial's slices, over the second that it lives.
    fn trial(&self, trial: u32, cpu: &mut Cpu, random: &mut Random) -> Vec<Sample> {
        let start_s = f64::from(trial) * self.trial_s;
        let live_s = self.trial_s.min(1.0);
        let of_trial =
            self.trial_deviation * random.normal() + if random.unit() < self.slow_trials { 0.1 } else { 0.0 };
        let slices = self.slices;
        (0..slices)
            .map(|slice| {
                let at_s = start_s + (slice as f64 + random.unit() * 0.5) * live_s / slices as f64;
                self.slice(trial, at_s, of_trial, cpu, random)
            })
            .collect()
    }

    fn slice(&self, trial: u32, at_s: f64, of_trial: f64, cpu: &mut Cpu, random: &mut Random) -> Sample {
        let before = cpu.slowness(at_s, random);
        let middle = cpu.slowness(at_s + SLICE_S / 2.0, random);
        let after = cpu.slowness(at_s + SLICE_S, random);
        let slowness = (before + 2.0 * middle + after) / 4.0;
        let late = if random.unit() < self.late { random.exponential(0.3) } else { 0.0 };
        let log = of_trial + self.slice_deviation * random.normal() + late + self.slope * slowness;
        let mut reading = |slowness: f64, noise: f64| READING_NS * (slowness + noise * random.normal()).exp();
        let speed = self.reading_noise.map(|noise| SpeedReadings {
            client: SpeedReading { before_ns: reading(before, noise), after_ns: reading(after, noise) },
            server: None,
            pair: None,
        });
        Sample {
            trial,
            started_ns: (at_s * 1e9) as u64,
            speed,
            ..testing::sample(trial, BASE_NS * log.exp(), None)
        }
    }
}
