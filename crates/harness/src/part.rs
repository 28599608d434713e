//! Parts: what client and server of one trial agree on before each stretch of iterations, and tell each other after it.

use crate::measure::Clock;
use crate::together::Course;
use crate::workload::CallLog;
use model::Histogram;
use model::observation::EndpointObservation;
use model::record::{CallCounts, StepSample, Usage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Iterations before the timed ones of each part, so that both ends are under way when the clock starts.
const LEAD_IN_ITERATIONS: u64 = 8;
/// Iterations after the timed ones, so that both ends still are when it stops.
const LEAD_OUT_ITERATIONS: u64 = 8;
/// From client to server: the part that comes next.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) kind: PartKind,
    pub(crate) iterations: u64,
    pub(crate) check: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PartKind {
    /// No clock but around all iterations.
    Total,
    /// Server's calls are noted one by one.
    Calls,
    /// The steps of server's messages are noted.
    Steps,
    /// As `Total`, and where iterations are not answered server notes when each message came.
    Course,
    /// Both ends are looked at.
    Observed,
    /// There is no further part.
    End,
}

/// From server to client: what the part before took.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerPart {
    pub(crate) usage: Usage,
    pub(crate) calls: Option<CallCounts>,
    pub(crate) steps: Option<Vec<StepSample>>,
    pub(crate) course: Option<Course>,
    /// How many messages of the timed iterations never came; only of ends that lose some.
    pub(crate) lost: Option<u64>,
    /// What server was seen to do.
    pub(crate) seen: Option<EndpointObservation>,
}

/// The iterations of one part, numbered on from the first.
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

    /// How many iterations a part has in all of which `timed` are timed.
    pub(crate) fn in_all(timed: u64) -> u64 {
        Self::of(timed).lead_out.end
    }
}

/// How many different byte counts a record keeps apart.
const MOST_BYTE_COUNTS: usize = 64;

pub(crate) fn call_counts(log: &CallLog, clock: &Clock) -> CallCounts {
    let mut time = Histogram::new();
    let mut by_bytes: BTreeMap<u64, u64> = BTreeMap::new();
    for (ticks, bytes) in &log.calls {
        time.record(clock.ns(*ticks) as u64);
        *by_bytes.entry(*bytes as u64).or_default() += 1;
    }
    let (kept, further): (Vec<_>, Vec<_>) =
        by_bytes.into_iter().enumerate().partition(|(rank, _)| *rank < MOST_BYTE_COUNTS);
    let mut returned_bytes: Vec<(u64, u64)> = kept.into_iter().map(|(_, entry)| entry).collect();
    if let Some((_, calls)) = returned_bytes.last_mut() {
        *calls += further.into_iter().map(|(_, (_, calls))| calls).sum::<u64>();
    }
    CallCounts { count: log.count, time: time.encode(), returned_bytes }
}
