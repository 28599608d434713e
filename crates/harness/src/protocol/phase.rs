//! Phases: what the client and the server of one trial agree on before each stretch of iterations, and tell each other after it.

use super::report::IterationTimes;
use model::observation::EndpointObservation;
use model::record::{CallCounts, StepSample, Usage};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Iterations before the timed ones of each phase, so that both endpoints are under way when the clock starts.
const LEAD_IN_ITERATIONS: u64 = 8;

/// Iterations after the timed ones, so that both endpoints still are when it stops.
const LEAD_OUT_ITERATIONS: u64 = 8;

/// From the client to the server: the phase that comes next.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Phase {
    pub(crate) kind: PhaseKind,
    pub(crate) iterations: u64,
    pub(crate) check: bool,
}

/// What is noted in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PhaseKind {
    /// The time of all iterations together.
    Total,
    /// The server's calls, one by one.
    Calls,
    /// The steps of the server's messages.
    Steps,
    /// As `Total`, of several clients that are at work at the same time. Where iterations are not answered, the server notes
    /// when each message came.
    Common,
    /// What a probe sees of both endpoints.
    Observed,
    /// There is no further phase.
    End,
}

/// From the server to the client: what the phase before took.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerPhase {
    pub(crate) usage: Usage,
    pub(crate) calls: Option<CallCounts>,
    pub(crate) steps: Option<Vec<StepSample>>,
    pub(crate) times: Option<IterationTimes>,
    /// How many messages of the timed iterations never came; only of endpoints that lose some.
    pub(crate) lost: Option<u64>,
    /// What a probe saw of the server.
    pub(crate) observation: Option<EndpointObservation>,
}

/// The iterations of one phase, numbered on from the first.
pub(crate) struct Iterations {
    pub(crate) lead_in: Range<u64>,
    pub(crate) timed: Range<u64>,
    pub(crate) lead_out: Range<u64>,
}

impl Iterations {
    pub(crate) fn of(timed: u64) -> Self {
        let (start, end) = (LEAD_IN_ITERATIONS, LEAD_IN_ITERATIONS + timed);
        Self { lead_in: 0..start, timed: start..end, lead_out: end..end + LEAD_OUT_ITERATIONS }
    }

    /// How many iterations a phase has in all, of which `timed` are timed.
    pub(crate) fn in_all(timed: u64) -> u64 {
        Self::of(timed).lead_out.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_iterations_of_a_phase_are_numbered_without_a_break() {
        let Iterations { lead_in, timed, lead_out } = Iterations::of(100);
        assert_eq!((lead_in.start, lead_in.end), (0, timed.start));
        assert_eq!((timed.end - timed.start, timed.end), (100, lead_out.start));
        assert_eq!(Iterations::in_all(100), lead_out.end);
        assert_eq!(Iterations::in_all(0), LEAD_IN_ITERATIONS + LEAD_OUT_ITERATIONS);
    }
}
