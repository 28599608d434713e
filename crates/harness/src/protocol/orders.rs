//! What the coordinator says to an endpoint: what it is to do in its trial, and then slice by slice.

use mechanisms::NetworkToken;
use model::observation::ProbeRequest;
use model::record::ClockSource;
use model::{Case, HostAddress};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The most iterations of a slice of which each event is recorded: they must find room.
pub(crate) const MOST_RECORDED_ITERATIONS: u64 = 2000;

/// What the threads of the client and the server are called where both are in one process.
pub(crate) const CLIENT_THREAD: &str = "client";
pub(crate) const SERVER_THREAD: &str = "server";

/// What an endpoint is to do in its trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) case: Case,
    pub(crate) role: Role,
    pub(crate) clock: ClockSource,
    /// Where names in the file system go. Empty where the endpoint does not see the directory of the run: then there are no such names.
    pub(crate) directory: PathBuf,
    /// The number of the trial in its run.
    pub(crate) number: u64,
    /// The number of the pair to which the first link belongs, if there are several.
    pub(crate) pair: u32,
    /// The delay that the client injects in each iteration, in nanoseconds, if the case has one.
    pub(crate) inject_ns: Option<f64>,
    /// Whether every byte is checked in the timed iterations too.
    pub(crate) check: bool,
    /// The probe that observes the endpoints, in the one phase that such a trial has beside its warm-up.
    pub(crate) probe: Option<ProbeRequest>,
    /// How the endpoints find each other where they may be on two hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<NetworkOrders>,
}

/// How two endpoints find each other over a network: the server makes the ticket, and the client connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkOrders {
    /// The address of the server, as the client reaches it.
    pub server: HostAddress,
    /// What the client must show first, so that the server takes nobody else.
    pub token: NetworkToken,
}

/// What a process does in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// It starts each iteration and keeps the clock.
    Client,
    /// It answers.
    Server,
    /// Both, each in a thread of its own.
    Both,
    /// An operation, which has no peer.
    Alone,
}

/// The next slice of a client or an operation. Between slices it sleeps on its control channel, and its server on the link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SliceOrders {
    /// How many iterations it has.
    pub size: Sizing,
    /// When iterations are timed one by one.
    pub singly: Singly,
}

/// When in a slice iterations, calls or steps are timed one by one. The first two alternate from slice to slice of a case, so that
/// drift within a slice cancels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Singly {
    /// Before those that are timed together.
    First,
    /// After them.
    Last,
    /// Not at all: the slice is for its total alone.
    Omitted,
    /// Iterations throughout, by `CLOCK_MONOTONIC_RAW`, and the report says when each ended: events of the CPUs, which are stamped
    /// by that clock, are laid beside them. There is no other phase.
    Throughout,
}

impl Singly {
    /// The clock by which iterations are timed where it is otherwise `own`.
    pub(crate) fn clock(self, own: ClockSource) -> ClockSource {
        match self {
            Singly::Throughout => ClockSource::MonotonicRaw,
            Singly::First | Singly::Last | Singly::Omitted => own,
        }
    }
}

/// How many iterations a slice has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizing {
    /// As many as take a given time.
    Slice {
        /// What the timed iterations of all phases should take together, in nanoseconds.
        slice_ns: u64,
        /// What an iteration took in an earlier slice of the case, to begin with.
        hint_ns: Option<f64>,
    },
    /// Exactly so many in each phase.
    Iterations(u64),
}
