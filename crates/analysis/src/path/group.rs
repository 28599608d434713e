//! The segments of a path in few groups, as bars and tables of several cases show them.

use super::segment::{SegmentKind, SegmentPlace};
use super::sum::PathSum;
use crate::interval::MeanEstimate;
use model::endpoint::EndpointRole;
use serde::Serialize;
use strum::VariantArray;

/// A group of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum PathGroup {
    /// The client's code.
    ClientCode,
    /// System calls of the client.
    ClientCalls,
    /// The server's code.
    ServerCode,
    /// System calls of the server.
    ServerCalls,
    /// From a waking to the switch.
    WakeUps,
    /// Softirqs: of networks, the protocol's work on arrival.
    Softirqs,
    /// Endpoints poll.
    Polling,
    /// Page faults.
    PageFaults,
    /// Interrupts.
    Interrupts,
    /// Other tasks had a CPU that an endpoint waited for.
    OtherTasks,
    /// An endpoint slept until something else than its peer woke it.
    Asleep,
    /// Not recorded.
    NotRecorded,
    /// Other clients of the server: it serves them first, or they have a CPU that this one waits for.
    OtherClients,
}

impl PathGroup {
    /// All of them.
    pub const ALL: &[PathGroup] = PathGroup::VARIANTS;

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            PathGroup::ClientCode => "client's code",
            PathGroup::ClientCalls => "client's calls",
            PathGroup::ServerCode => "server's code",
            PathGroup::ServerCalls => "server's calls",
            PathGroup::OtherClients => "other clients",
            PathGroup::WakeUps => "wake-ups",
            PathGroup::Softirqs => "softirqs",
            PathGroup::Polling => "polling",
            PathGroup::PageFaults => "page faults",
            PathGroup::Interrupts => "interrupts",
            PathGroup::OtherTasks => "other tasks",
            PathGroup::Asleep => "asleep",
            PathGroup::NotRecorded => "not recorded",
        }
    }

    /// The group of `place`.
    fn from_place(place: SegmentPlace) -> Self {
        let is_client = place.of == EndpointRole::Client;
        match place.kind {
            SegmentKind::User | SegmentKind::Running if is_client => PathGroup::ClientCode,
            SegmentKind::User | SegmentKind::Running => PathGroup::ServerCode,
            SegmentKind::Polling => PathGroup::Polling,
            SegmentKind::PageFault => PathGroup::PageFaults,
            SegmentKind::Interrupt => PathGroup::Interrupts,
            SegmentKind::Softirq { .. } => PathGroup::Softirqs,
            SegmentKind::OtherRequests | SegmentKind::OtherClient => PathGroup::OtherClients,
            SegmentKind::OtherTask => PathGroup::OtherTasks,
            SegmentKind::Asleep => PathGroup::Asleep,
            SegmentKind::NotRecorded => PathGroup::NotRecorded,
            kind if kind.is_wake_up() => PathGroup::WakeUps,
            _ if is_client => PathGroup::ClientCalls,
            _ => PathGroup::ServerCalls,
        }
    }
}

impl PathSum {
    /// What each group costs, corrected, in nanoseconds an iteration; those of which there is nothing are left out.
    pub fn groups(&self) -> Vec<(PathGroup, MeanEstimate)> {
        let cost_of = |group| Some((group, self.of_places(&|place| PathGroup::from_place(place) == group)?));
        PathGroup::ALL.iter().copied().filter_map(cost_of).collect()
    }
}
