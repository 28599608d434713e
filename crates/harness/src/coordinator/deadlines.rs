//! How long the coordinator waits for endpoints that are silent, promise or talk, and which of their reports it believes. It
//! listens to nobody itself.

use super::trial_error::TrialError;
use crate::clock::Timer;
use crate::protocol::report::SliceReport;
use std::time::Duration;
use sys::Failure;

/// How many times endpoints may be silent for as long as they may, between the orders of a slice and its report.
const STEPS: u32 = 8;
/// How many things an endpoint says in a slice at most: a client speaks of some ten phases.
const MOST_SAID: usize = 1000;

/// The deadlines of the endpoints of a trial, until what is waited for has come.
#[derive(Debug)]
pub(super) struct Deadlines {
    /// How long they may be silent, and since when they are.
    limit: Duration,
    silence: Timer,
    /// How long all may take, and since when it does.
    most: Duration,
    whole: Timer,
    /// How many things more they may say.
    left_to_say: usize,
}

impl Deadlines {
    /// With so many `endpoints`, which may be silent for `limit`.
    pub(super) fn new(limit: Duration, endpoints: usize) -> Self {
        let (silence, whole) = (Timer::start(), Timer::start());
        let left_to_say = MOST_SAID * endpoints;
        Self { limit, silence, most: limit.saturating_mul(STEPS), whole, left_to_say }
    }

    /// How long the next thing may take.
    pub(super) fn left(&self) -> Duration {
        self.silence.left_of(self.limit).min(self.whole.left_of(self.most))
    }

    /// How long was waited, once nothing is left.
    pub(super) fn waited(&self) -> Duration {
        self.limit.min(self.whole.elapsed())
    }

    /// Takes note that an endpoint says something; whether that is not too much by now.
    pub(super) fn hears(&mut self) -> bool {
        self.silence = Timer::start();
        self.left_to_say = self.left_to_say.saturating_sub(1);
        self.left_to_say > 0 && self.whole.elapsed() < self.most
    }

    /// Lets them be silent for `limit` from now on, as one has said.
    pub(super) fn wait_for(&mut self, limit: Duration) {
        self.limit = limit;
        self.most = self.most.max(limit.saturating_mul(STEPS));
    }
}

/// Refuses a report that cannot be true by this side's clock: a slice that came `within` some time took no longer, and no iteration is
/// done in less time than a processor takes for a few instructions.
pub(super) fn believable(report: &SliceReport, within: Duration) -> Result<(), TrialError> {
    /// By how much the clocks of two hosts may differ in rate: a hundred times what their kernels correct.
    const DRIFT: f64 = 1.05;
    const SHORTEST_ITERATION_NS: f64 = 1.0;
    let sample = &report.sample;
    let within_ns = within.as_nanos() as f64;
    let why = if sample.elapsed_ns > within_ns * DRIFT {
        format!("it took {within_ns:.0} ns by the clock of this host")
    } else if sample.elapsed_ns < sample.iterations as f64 * SHORTEST_ITERATION_NS {
        format!("no processor does {} iterations in that time", sample.iterations)
    } else {
        return Ok(());
    };
    let failure = Failure::new(
        "believe",
        format!("a slice of {} iterations that took {} ns", sample.iterations, sample.elapsed_ns),
        why,
        "see what the endpoint is, and its clock",
    );
    Err(TrialError::Unreadable { failure })
}
