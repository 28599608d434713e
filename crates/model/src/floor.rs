//! Floors: the least that this machine allows for the same work as a case.
//!
//! A floor is the sum of cases that are measured in every round: a hand-over between the two endpoints and copies of the
//! payload. Only this file names the floors and operations that measure those.

use crate::case::Case;
use crate::endpoint::Endpoints;
use crate::pace::Pace;
use crate::peers::Peers;
use crate::placement::{CpuPair, Placement};
use crate::spec::Spec;
use crate::units::Size;
use crate::workload::Workload;

/// The floor that hands a token over between two processes on one CPU, by sleeping and waking.
pub const CONTEXT_SWITCH: &str = "context-switch";
/// The floor that hands one cache line over between two CPUs.
pub const CACHE_LINE: &str = "cache-line";
/// The operation that copies n bytes.
pub const MEMCPY: &str = "memcpy";
/// The operation that enters the kernel and comes back.
pub const SYSCALL: &str = "syscall";
/// The mechanism that does nothing: it measures the instrument itself.
pub const NULL: &str = "null";

/// The floor of one case, per iteration: a hand-over and back, and copies of the message.
#[derive(Debug, Clone, PartialEq)]
pub struct Floor {
    /// The hand-over and back; absent where an iteration needs none.
    pub handover: Option<Case>,
    /// The copy of one message, and how many of them one iteration needs in sequence; absent where there is no payload.
    pub copies: Option<(Case, u32)>,
}

impl Floor {
    /// The floor's cases.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.handover.iter().chain(self.copies.iter().map(|(memcpy, _)| memcpy))
    }

    /// Nanoseconds per iteration, from the nanoseconds of each case; `None` when one was not measured.
    pub fn iteration_ns(&self, ns_of: impl Fn(&Case) -> Option<f64>) -> Option<f64> {
        let handover = match &self.handover {
            Some(case) => ns_of(case)?,
            None => 0.0,
        };
        let copies = match &self.copies {
            Some((memcpy, count)) => f64::from(*count) * ns_of(memcpy)?,
            None => 0.0,
        };
        Some(handover + copies)
    }
}

impl std::fmt::Display for Floor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let handover = self.handover.iter().map(|case| case.spec.name.clone());
        let copies = self.copies.iter().map(|(_, count)| format!("{count} × memcpy"));
        f.write_str(&handover.chain(copies).collect::<Vec<_>>().join(" + "))
    }
}

/// The floor of `case`; `None` for operations, floors, several peers and unpinned endpoints, and for a stream of empty
/// messages, which needs no copy and no hand-over in sequence. The floor of a wake-up without a payload, or with an empty
/// message, is the hand-over alone.
///
/// Every byte is copied out of the client's memory and into the server's. On two CPUs the two copies can overlap,
/// so that the least is one in sequence; on one CPU they cannot, and it is two.
pub fn floor_of(case: &Case) -> Option<Floor> {
    let cpus = case.cpus?;
    let overlap = if cpus.client == cpus.server { 2 } else { 1 };
    let (handover, copies) = match case.workload {
        Workload::Latency => (Some(handover(case, cpus)), 2 * overlap),
        Workload::Transfer => (Some(handover(case, cpus)), overlap),
        Workload::Throughput => (None, overlap),
        Workload::Connect => (Some(handover(case, cpus)), 0),
        Workload::Session(session) => (Some(handover(case, cpus)), session.messages * overlap),
        Workload::Cost | Workload::Accuracy => return None,
    };
    if [CONTEXT_SWITCH, CACHE_LINE, NULL].contains(&case.spec.name.as_str()) || case.peers != Peers::Pair {
        return None;
    }
    // CPUs that were asked for are in a case's key. Without them, copies on two CPUs would share one key.
    let placement = match case.placement {
        Placement::Cpus(_) => Placement::Cpus(CpuPair { client: cpus.client, server: cpus.client }),
        _ => Placement::SameCore,
    };
    let memcpy = |size| Case { size_bytes: Some(size), placement, ..operation(MEMCPY, cpus.client) };
    let copied = case.size_bytes.filter(|size| size.0 > 0);
    let floor = Floor { handover, copies: copied.map(|size| (memcpy(size), copies)) };
    (floor.cases().count() > 0).then_some(floor)
}

/// The hand-over and back between `cpus`.
fn handover(case: &Case, cpus: CpuPair) -> Case {
    let name = if cpus.client == cpus.server { CONTEXT_SWITCH } else { CACHE_LINE };
    Case {
        workload: Workload::Latency,
        size_bytes: Some(Size(1)),
        spec: Spec::plain(name),
        cpus: Some(cpus),
        placement: case.placement,
        endpoints: case.endpoints,
        pace: Pace::BackToBack,
        peers: Peers::Pair,
    }
}

/// The operation `name` alone on `cpu`.
pub fn operation(name: &str, cpu: u32) -> Case {
    Case {
        workload: Workload::Cost,
        size_bytes: None,
        placement: Placement::SameCore,
        cpus: Some(CpuPair { client: cpu, server: cpu }),
        endpoints: Endpoints::Processes,
        pace: Pace::BackToBack,
        peers: Peers::Pair,
        spec: Spec::plain(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Session;

    fn case(workload: Workload, client: u32, server: u32) -> Case {
        Case {
            workload,
            size_bytes: Some(Size(4096)),
            placement: if client == server { Placement::SameCore } else { Placement::SameLlc },
            cpus: Some(CpuPair { client, server }),
            endpoints: Endpoints::Processes,
            pace: Pace::BackToBack,
            peers: Peers::Pair,
            spec: Spec::plain("pipe"),
        }
    }

    #[test]
    fn a_floor_counts_hand_overs_and_copies_in_sequence() {
        for (workload, client, server, shown) in [
            (Workload::Latency, 1, 1, "context-switch + 4 × memcpy"),
            (Workload::Latency, 1, 0, "cache-line + 2 × memcpy"),
            (Workload::Transfer, 1, 1, "context-switch + 2 × memcpy"),
            (Workload::Transfer, 1, 0, "cache-line + 1 × memcpy"),
            (Workload::Throughput, 1, 1, "2 × memcpy"),
            (Workload::Throughput, 1, 0, "1 × memcpy"),
            (Workload::Session(Session::DEFAULT), 1, 1, "context-switch + 10 × memcpy"),
            (Workload::Session(Session::DEFAULT), 1, 0, "cache-line + 5 × memcpy"),
        ] {
            assert_eq!(floor_of(&case(workload, client, server)).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn a_wake_up_without_a_payload_is_measured_against_the_hand_over_alone() {
        let floor = floor_of(&Case { size_bytes: None, ..case(Workload::Latency, 1, 0) }).unwrap();
        assert_eq!(floor.to_string(), "cache-line");
        assert_eq!(floor.iteration_ns(|_| Some(250.0)), Some(250.0));
        assert_eq!(floor.cases().count(), 1);
    }

    #[test]
    fn an_empty_message_is_not_copied() {
        let of = |workload| floor_of(&Case { size_bytes: Some(Size(0)), ..case(workload, 1, 1) });
        assert_eq!(of(Workload::Latency).unwrap().to_string(), "context-switch");
        assert_eq!(of(Workload::Session(Session::DEFAULT)).unwrap().to_string(), "context-switch");
        assert_eq!(of(Workload::Throughput), None);
    }

    #[test]
    fn its_time_is_the_sum_or_nothing() {
        let floor = floor_of(&case(Workload::Latency, 1, 1)).unwrap();
        let ns_of = |case: &Case| Some(if case.spec.name == MEMCPY { 50.0 } else { 1000.0 });
        assert_eq!(floor.iteration_ns(ns_of), Some(1200.0));
        assert_eq!(floor.iteration_ns(|case| ns_of(case).filter(|_| case.spec.name != MEMCPY)), None);
        assert_eq!(floor.iteration_ns(|case| ns_of(case).filter(|_| case.spec.name == MEMCPY)), None);
        assert_eq!(floor.cases().count(), 2);
    }

    #[test]
    fn operations_floors_and_unpinned_endpoints_have_none() {
        assert_eq!(floor_of(&case(Workload::Cost, 1, 1)), None);
        assert_eq!(floor_of(&Case { cpus: None, ..case(Workload::Latency, 1, 1) }), None);
        for name in [CONTEXT_SWITCH, CACHE_LINE, NULL] {
            assert_eq!(floor_of(&Case { spec: Spec::plain(name), ..case(Workload::Latency, 1, 0) }), None);
        }
    }
}
