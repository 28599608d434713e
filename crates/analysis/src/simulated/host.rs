//! A host whose speed moves: the logarithm of its slowness at any moment, as Markov processes that are drawn exactly from one
//! moment to the next.

use super::random::Random;

/// How the slowness of one CPU moves.
#[derive(Debug, Clone, Copy)]
pub(super) enum Motion {
    /// Always at full speed.
    Rest,
    /// Full speed, and slower by this logarithm for this share of the time, in stays of so many seconds on average in the state that it is in for longer.
    Modes { slow: f64, share: f64, dwell_s: f64 },
    /// Never below full speed, slower by half a normal variable with this deviation and this correlation time.
    Drift { deviation: f64, correlation_s: f64 },
    /// A disturbance now and then: so many a second, so long on average, slower by so much.
    Bursts { per_s: f64, length_s: f64, slow: f64 },
}

/// A CPU at a moment.
#[derive(Debug, Clone)]
pub(super) struct Cpu {
    motion: Motion,
    at_s: f64,
    /// Whether it is slow, as 0 or 1; of a drift, a standard normal variable.
    state: f64,
}

impl Cpu {
    pub(super) fn new(motion: Motion, random: &mut Random) -> Self {
        let state = match motion {
            Motion::Drift { .. } => random.normal(),
            _ => f64::from(random.unit() < share(motion)),
        };
        Self { motion, at_s: 0.0, state }
    }

    /// The logarithm of the slowness at `at_s`, which is no earlier than what was asked before.
    pub(super) fn slowness(&mut self, at_s: f64, random: &mut Random) -> f64 {
        let passed_s = (at_s - self.at_s).max(0.0);
        self.at_s = at_s;
        match self.motion {
            Motion::Rest => 0.0,
            Motion::Drift { deviation, correlation_s } => {
                let keep = (-passed_s / correlation_s).exp();
                self.state = keep * self.state + (1.0 - keep * keep).sqrt() * random.normal();
                deviation * self.state.abs()
            }
            Motion::Modes { slow, share, dwell_s } => {
                slow * self.switch(passed_s / dwell_s / share.min(1.0 - share), random)
            }
            Motion::Bursts { per_s, length_s, slow } => {
                slow * self.switch(passed_s * (per_s + 1.0 / length_s), random)
            }
        }
    }

    /// The state after a time in which the rates of coming and going, taken together, sum up to `rates`.
    fn switch(&mut self, rates: f64, random: &mut Random) -> f64 {
        let share = share(self.motion);
        let slow = share + (self.state - share) * (-rates).exp();
        self.state = f64::from(random.unit() < slow);
        self.state
    }
}

/// The share of time in which a CPU of two states is slow.
fn share(motion: Motion) -> f64 {
    match motion {
        Motion::Modes { share, .. } => share,
        Motion::Bursts { per_s, length_s, .. } => per_s * length_s / (1.0 + per_s * length_s),
        Motion::Rest | Motion::Drift { .. } => 0.0,
    }
}
