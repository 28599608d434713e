//! Phases: what the client and the server of one trial agree on before each stretch of iterations, and tell each other after it.

use super::report::IterationTimes;
use model::network::NetworkReadings;
use model::observation::{EndpointObservation, ServedOn};
use model::record::{CallCounts, StepSample, Usage};
use model::speed::SpeedReading;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Iterations before the timed ones of each phase, so that both endpoints are under way when the clock starts.
const LEAD_IN_ITERATIONS: u64 = 4;

/// Iterations between the speed readings and the timed ones: the readings are no iteration's business.
const SETTLING_ITERATIONS: u64 = 1;

/// Iterations after the timed ones, so that both endpoints still are under way when it stops.
const LEAD_OUT_ITERATIONS: u64 = 2;

/// The least messages of a stream before and after those that are timed.
const LEAST_STREAMED: u64 = 8;

/// From the client to the server: the phase that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Phase {
    pub(crate) kind: PhaseKind,
    pub(crate) iterations: u64,
    pub(crate) check: bool,
    /// Whether the speed of the CPUs is read before and after the timed iterations.
    pub(crate) reads_speed: bool,
}

/// What is noted in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PhaseKind {
    /// The time of all iterations together.
    Total,
    /// The messages of a stream in its steady state: the server notes when the first and the last of them came, and nothing
    /// but messages passes before, between and after them.
    Steady {
        /// How many messages come before those that are timed, and fill what buffers there are.
        run_up: u64,
        /// How many follow, so that the client still sends while the last timed ones are received.
        run_out: u64,
    },
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
    /// From the arrival of the last message before the timed ones to that of the last timed one, in nanoseconds; only of a
    /// stream in its steady state.
    pub(crate) steady_ns: Option<f64>,
    /// How fast the server's CPU was, where it is not the client's.
    pub(crate) speed: Option<SpeedReading>,
    pub(crate) calls: Option<CallCounts>,
    pub(crate) steps: Option<Vec<StepSample>>,
    pub(crate) times: Option<IterationTimes>,
    /// How many messages of the timed iterations never came; only of endpoints that lose some.
    pub(crate) lost: Option<u64>,
    /// What the server's kernel counted since it was connected; only where its peer may be on another host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<NetworkReadings>,
    /// By which of its descriptors the server's calls for this client are known; only of a server of several clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) served_on: Option<ServedOn>,
    /// What a probe saw of the server.
    pub(crate) observation: Option<EndpointObservation>,
    /// Where the server was, before the phase or after it, instead of on its CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) elsewhere: Option<u32>,
}

/// The iterations of one phase, numbered on from the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Iterations {
    pub(crate) lead_in: Range<u64>,
    /// After the speed readings. Of a stream in its steady state, the run-up.
    pub(crate) settling: Range<u64>,
    pub(crate) timed: Range<u64>,
    pub(crate) lead_out: Range<u64>,
}

impl Iterations {
    /// Those of `phase`.
    pub(crate) fn from_phase(phase: &Phase) -> Self {
        match phase.kind {
            PhaseKind::Steady { run_up, run_out } => {
                Self::with(phase.iterations, 1, run_up.max(LEAST_STREAMED), run_out.max(LEAST_STREAMED))
            }
            _ => Self::with(phase.iterations, LEAD_IN_ITERATIONS, SETTLING_ITERATIONS, LEAD_OUT_ITERATIONS),
        }
    }

    fn with(timed: u64, lead_in: u64, settling: u64, lead_out: u64) -> Self {
        let (settled, end) = (lead_in + settling, lead_in + settling + timed);
        Self {
            lead_in: 0..lead_in,
            settling: lead_in..settled,
            timed: settled..end,
            lead_out: end..end + lead_out,
        }
    }

    /// How many they are in all.
    pub(crate) fn count(&self) -> u64 {
        self.lead_out.end
    }

    /// The four ranges in their order.
    pub(crate) fn ranges(&self) -> [Range<u64>; 4] {
        [self.lead_in.clone(), self.settling.clone(), self.timed.clone(), self.lead_out.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_iterations_of_a_phase_are_numbered_without_a_break() {
        for kind in [
            PhaseKind::Total,
            PhaseKind::Steady { run_up: 3, run_out: 3 },
            PhaseKind::Steady { run_up: 50, run_out: 70 },
        ] {
            for timed in [0, 1, 100] {
                let phase = Phase { kind, iterations: timed, check: false, reads_speed: true };
                let iterations = Iterations::from_phase(&phase);
                let mut next = 0;
                for range in iterations.ranges() {
                    assert_eq!(range.start, next);
                    next = range.end;
                }
                assert_eq!(
                    (iterations.count(), iterations.timed.end - iterations.timed.start),
                    (next, timed)
                );
            }
        }
    }

    #[test]
    fn a_stream_has_as_many_messages_after_the_timed_ones_as_before() {
        let kind = PhaseKind::Steady { run_up: 50, run_out: 70 };
        let Iterations { settling, lead_out, .. } =
            Iterations::from_phase(&Phase { kind, iterations: 100, check: false, reads_speed: false });
        assert_eq!((settling.end - settling.start, lead_out.end - lead_out.start), (50, 70));
    }
}
