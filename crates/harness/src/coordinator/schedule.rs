//! The scheduler: starts one trial after the other, within a time, until it is told to stop.
//!
//! Which trial comes next is for its three policies to say: [`super::run`] (rounds until settled), [`super::compare`]
//! (interleaved pairs) and [`super::profile`] (a probe between two bare trials). It knows endpoints by [`Trials`] and time by
//! [`RunClock`] alone, so that tests need no process and wait for nothing.

use super::trial_error::TrialError;
use crate::clock::Timer;
use crate::protocol::orders::Sizing;
use crate::protocol::report::TrialReport;
use model::Case;
use model::observation::{Observation, ProbeRequest};
use std::time::Duration;

/// Where trials come from. Each is of fresh endpoints, which are gone when it is over.
pub trait Trials {
    /// Measures `case` once. `number` tells this trial's names from those of others, and its parity the order of its phases.
    fn measure(&self, case: &Case, size: Sizing, number: u64) -> Result<TrialReport, TrialError>;

    /// Has a probe observe `case` once. Such a trial has no sample: observing takes its time.
    fn observe(
        &self,
        case: &Case,
        size: Sizing,
        number: u64,
        request: &ProbeRequest,
    ) -> Result<Observation, TrialError>;

    /// Whether the run is to end.
    fn is_interrupted(&self) -> bool;
}

/// The clock by which a scheduler keeps to its time.
pub trait RunClock {
    /// The time since the start.
    fn elapsed(&self) -> Duration;
}

impl RunClock for Timer {
    fn elapsed(&self) -> Duration {
        Timer::elapsed(self)
    }
}

/// The time that a scheduler may take.
#[derive(Clone, Copy)]
pub struct TimeBudget<'a> {
    /// By which it is kept.
    pub clock: &'a dyn RunClock,
    /// How long, from the clock's start.
    pub time: Duration,
}

impl TimeBudget<'_> {
    /// The time that is used.
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Whether no trial may begin any more.
    pub fn is_up(&self) -> bool {
        self.elapsed() >= self.time
    }
}

/// How far a scheduler is, after each trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialProgress {
    /// The round, from 0; `None` in the warm-up.
    pub round: Option<u32>,
    /// How many cases, or pairs of them, have ended.
    pub done: usize,
    /// Of how many.
    pub of: usize,
    /// The share of the time that is used.
    pub share: f64,
    /// The time that is left at most.
    pub left: Duration,
}

/// Why a scheduler starts no further trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Interrupted,
    TimeIsUp,
}

/// What a trial came to: its result, or in words why there is none.
pub(crate) type TrialOutcome<T> = Result<T, String>;

/// Starts trials for a policy.
pub(crate) struct Scheduler<'a> {
    trials: &'a dyn Trials,
    budget: TimeBudget<'a>,
    started: u64,
}

impl<'a> Scheduler<'a> {
    pub(crate) fn new(trials: &'a dyn Trials, budget: TimeBudget<'a>) -> Self {
        Self { trials, budget, started: 0 }
    }

    /// One trial of `case`, unless time is up.
    pub(crate) fn measure(&mut self, case: &Case, size: Sizing) -> Result<TrialOutcome<TrialReport>, Stop> {
        self.check_time()?;
        self.start(|trials, number| trials.measure(case, size, number))
    }

    /// One trial of `case` with the probe that `request` names, if it names one. The trial is started even if time is up.
    pub(crate) fn observe(
        &mut self,
        case: &Case,
        size: Sizing,
        request: &ProbeRequest,
    ) -> Result<TrialOutcome<Observation>, Stop> {
        self.start(|trials, number| trials.observe(case, size, number, request))
    }

    /// Stops where time is up.
    pub(crate) fn check_time(&self) -> Result<(), Stop> {
        if self.budget.is_up() { Err(Stop::TimeIsUp) } else { Ok(()) }
    }

    fn start<T>(
        &mut self,
        trial: impl FnOnce(&dyn Trials, u64) -> Result<T, TrialError>,
    ) -> Result<TrialOutcome<T>, Stop> {
        if self.trials.is_interrupted() {
            return Err(Stop::Interrupted);
        }
        let number = self.started;
        self.started += 1;
        match trial(self.trials, number) {
            Ok(result) => Ok(Ok(result)),
            Err(TrialError::Interrupted) => Err(Stop::Interrupted),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.trials.is_interrupted()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.budget.elapsed()
    }

    pub(crate) fn progress(&self, round: Option<u32>, done: usize, of: usize) -> TrialProgress {
        let TimeBudget { time, .. } = self.budget;
        let elapsed = self.elapsed();
        let share = elapsed.as_secs_f64() / time.as_secs_f64();
        TrialProgress { round, done, of, share, left: time.saturating_sub(elapsed) }
    }
}
