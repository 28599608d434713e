//! The scheduler: starts trials and measures one slice after the other, within a time, until it is told to stop.
//!
//! Which slice of which trial comes next is for its four policies to say: [`super::run`] (rounds until settled),
//! [`super::compare`] (interleaved pairs), [`super::profile`] (a probe between two bare trials) and [`super::dose`] (more events
//! and fewer). It knows endpoints by [`Trials`] and time by [`RunClock`] alone, so that tests need no process and wait for nothing.

use super::trial_error::TrialError;
use crate::clock::Timer;
use crate::protocol::orders::{Singly, Sizing, SliceOrders};
use crate::protocol::report::SliceReport;
use model::Case;
use model::observation::{CpuTrace, EventSet, Observation, ProbeRequest, RecordingWay};
use std::time::Duration;

/// Where trials come from.
pub trait Trials {
    /// Starts fresh endpoints of `case`, which wait for their first slice. `number` tells this trial's names from those of others.
    /// With `probe` the trial has one slice, which that observes and of which there is no time.
    fn start<'s>(
        &'s self,
        case: &Case,
        number: u64,
        probe: Option<&ProbeRequest>,
    ) -> Result<Box<dyn Trial + 's>, TrialError>;

    /// The first of the numbers of a scheduler, an even one: no other scheduler of this run has those that follow.
    fn first_number(&self) -> u64;

    /// Waits until it no longer matters to what is measured that endpoints have started or ended.
    fn wait_out_disturbance(&self);

    /// Whether the run is to end.
    fn is_interrupted(&self) -> bool;

    /// How many trials may be alive at once.
    fn most_alive(&self) -> usize;
}

/// The endpoints of one trial, asleep between slices. They are gone when it is dropped.
pub trait Trial {
    /// Measures one slice.
    fn slice(&mut self, orders: SliceOrders) -> Result<SliceReport, TrialError>;

    /// Measures one slice while the events of `sets` are recorded in this way on the CPUs of the trial, with what was recorded. What may not be
    /// recorded here the trace says; the endpoints do the same whatever is.
    fn traced_slice(
        &mut self,
        size: Sizing,
        sets: &[EventSet],
        way: RecordingWay,
    ) -> Result<(SliceReport, CpuTrace), TrialError>;

    /// Has the endpoints end by themselves, so that they remove what they made.
    fn end(&mut self) -> Result<(), TrialError>;
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

/// How far a scheduler is, after each slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialProgress {
    /// The round, from 0; `None` before the first.
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

/// Why a scheduler goes on no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Interrupted,
    TimeIsUp,
}

/// What a trial or a slice came to: its result, or in words why there is none.
pub(crate) type TrialOutcome<T> = Result<T, String>;

/// Starts trials and slices for a policy.
pub(crate) struct Scheduler<'a> {
    budget: TimeBudget<'a>,
    /// The number of the next trial; `None` before the first.
    next_number: Option<u64>,
    starting: Duration,
    /// Whether trials were started or ended since that was waited out.
    is_disturbed: bool,
}

impl<'a> Scheduler<'a> {
    pub(crate) fn new(budget: TimeBudget<'a>) -> Self {
        Self { budget, next_number: None, starting: Duration::ZERO, is_disturbed: false }
    }

    /// A trial of `case`.
    pub(crate) fn start<'s>(
        &mut self,
        trials: &'s dyn Trials,
        case: &Case,
        probe: Option<&ProbeRequest>,
    ) -> Result<TrialOutcome<Box<dyn Trial + 's>>, Stop> {
        if trials.is_interrupted() {
            return Err(Stop::Interrupted);
        }
        let number = self.next_number.unwrap_or_else(|| trials.first_number());
        self.next_number = Some(number + 1);
        self.is_disturbed = true;
        let before = self.elapsed();
        let trial = trials.start(case, number, probe);
        self.starting += self.elapsed().saturating_sub(before);
        in_words(trial)
    }

    /// Waits until it no longer matters that trials were started or ended, if any were. Returns how long that took, which counts as
    /// starting.
    pub(crate) fn wait_out_disturbance(&mut self, trials: &dyn Trials) -> Duration {
        let before = self.elapsed();
        if std::mem::take(&mut self.is_disturbed) {
            trials.wait_out_disturbance();
        }
        let took = self.elapsed().saturating_sub(before);
        self.starting += took;
        took
    }

    /// One slice of `trial`, which `trials` has started. One that did not run where it should have failed.
    pub(crate) fn slice(
        &mut self,
        trials: &dyn Trials,
        trial: &mut dyn Trial,
        orders: SliceOrders,
    ) -> Result<TrialOutcome<SliceReport>, Stop> {
        Ok(self.slice_anywhere(trials, trial, orders)?.and_then(in_place))
    }

    /// The same, of which the report says where it ran, for a policy that has the trial renewed.
    pub(crate) fn slice_anywhere(
        &mut self,
        trials: &dyn Trials,
        trial: &mut dyn Trial,
        orders: SliceOrders,
    ) -> Result<TrialOutcome<SliceReport>, Stop> {
        if trials.is_interrupted() {
            return Err(Stop::Interrupted);
        }
        in_words(trial.slice(orders))
    }

    /// One slice of `trial` while the events of `sets` are recorded.
    pub(crate) fn traced_slice(
        &mut self,
        trials: &dyn Trials,
        trial: &mut dyn Trial,
        size: Sizing,
        sets: &[EventSet],
        way: RecordingWay,
    ) -> Result<TrialOutcome<(SliceReport, CpuTrace)>, Stop> {
        if trials.is_interrupted() {
            return Err(Stop::Interrupted);
        }
        let traced = in_words(trial.traced_slice(size, sets, way))?;
        Ok(traced.and_then(|(report, trace)| Ok((in_place(report)?, trace))))
    }

    /// Ends `trial`. What it took to end counts as starting: both are beside the measurement.
    pub(crate) fn end(&mut self, mut trial: Box<dyn Trial + '_>) -> Result<TrialOutcome<()>, Stop> {
        self.is_disturbed = true;
        let before = self.elapsed();
        let ended = trial.end();
        drop(trial);
        self.starting += self.elapsed().saturating_sub(before);
        in_words(ended)
    }

    /// A trial of one slice with the probe that `request` names, if it names one. It is started even if time is up.
    pub(crate) fn observe(
        &mut self,
        trials: &dyn Trials,
        case: &Case,
        size: Sizing,
        request: &ProbeRequest,
    ) -> Result<TrialOutcome<Observation>, Stop> {
        let mut trial = match self.start(trials, case, Some(request))? {
            Ok(trial) => trial,
            Err(error) => return Ok(Err(error)),
        };
        let orders = SliceOrders { size, singly: Singly::Omitted };
        let report = match self.slice(trials, &mut *trial, orders)? {
            Ok(report) => report,
            Err(error) => return Ok(Err(error)),
        };
        let observation =
            report.observation.ok_or_else(|| TrialError::NotObservable(case.workload).to_string());
        Ok(self.end(trial)?.and(observation))
    }

    /// Stops where time is up.
    pub(crate) fn check_time(&self) -> Result<(), Stop> {
        if self.budget.is_up() { Err(Stop::TimeIsUp) } else { Ok(()) }
    }

    /// What starting and ending trials took.
    pub(crate) fn starting(&self) -> Duration {
        self.starting
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

/// The report of a slice that ran on the CPUs of its placement.
fn in_place(report: SliceReport) -> TrialOutcome<SliceReport> {
    match report.elsewhere {
        Some(cpu) => Err(TrialError::Elsewhere { cpu }.to_string()),
        None => Ok(report),
    }
}

/// The outcome with an error in words; an interruption stops the scheduler.
fn in_words<T>(result: Result<T, TrialError>) -> Result<TrialOutcome<T>, Stop> {
    match result {
        Ok(result) => Ok(Ok(result)),
        Err(TrialError::Interrupted) => Err(Stop::Interrupted),
        Err(error) => Ok(Err(error.to_string())),
    }
}
