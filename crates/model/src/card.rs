//! The card: what a mechanism or an operation declares about itself.
//!
//! A card is data. `list`, the documentation, completion, parameter checking, the plan and the
//! conformance tests are all made from it. It is not the code that does the work.

use crate::param::Param;
use crate::semantics::Semantics;
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an entry of the registry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CardKind {
    /// Moves bytes or a wake-up between two endpoints.
    Mechanism,
    /// The least that this machine allows for a hand-over between two endpoints; measured in every round.
    Floor,
    /// One primitive that needs no peer, timed alone.
    Operation,
}

/// What happens to the boundaries between messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Bytes in order; one call may transfer part of a message.
    Stream,
    /// Whole messages in order; one call transfers one message.
    Message,
    /// Nothing but a small token that starts the peer's next iteration.
    Token,
    /// Nothing is framed: an operation, or `null`.
    None,
}

/// Between whom it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Processes that inherit a descriptor or are sent one.
    Related,
    /// Any two processes of one host that agree on a name.
    Host,
    /// Processes of a host and of its guests, which are virtual machines.
    Guest,
    /// Processes on two hosts.
    Network,
    /// A process alone.
    Process,
}

impl Reach {
    /// Whether its two processes may be on two machines, of which one may be a guest of the other: then they meet by an address.
    pub const fn leaves_the_machine(self) -> bool {
        matches!(self, Reach::Guest | Reach::Network)
    }
}

/// How two processes that have no descriptor from each other come to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ByName {
    /// Not at all: one of them is sent a descriptor, or over a network.
    Never,
    /// By a name in the namespace that its semantics say.
    Always,
    /// By the name that this parameter chooses: `path`, or `abstract`, which is of the network namespace.
    As(&'static str),
}

/// Whether bytes arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Payload {
    /// What the client sends is what the server receives, and the sequence number in it is checked.
    Bytes,
    /// Nothing arrives, so that nothing can be checked: a wake-up alone, or the instrument measuring itself.
    None,
}

/// What a mechanism, an operation or a floor declares about itself.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Card {
    /// The name on the command line and in results.
    pub name: &'static str,
    /// What it is.
    pub kind: CardKind,
    /// One line: what it is.
    pub summary: &'static str,
    /// What happens to message boundaries.
    pub framing: Framing,
    /// Between whom it works.
    pub reach: Reach,
    /// Whether the endpoints can meet by a name alone.
    pub by_name: ByName,
    /// Whether bytes arrive.
    pub payload: Payload,
    /// Whether it can carry file descriptors.
    pub fds: bool,
    /// Whether an endpoint that waits learns that its peer has gone. Where it does not, a deadline ends the wait.
    pub hangup: bool,
    /// Whether several endpoints can be waited for at once (poll(2)), so that one server can serve several clients.
    pub polled: bool,
    /// Whether a process can have only one endpoint: what arrives belongs to the process, and two endpoints would mix it up.
    pub one_endpoint: bool,
    /// Whether a message may be empty, and its receiver can tell it from the end of the stream.
    pub empty: bool,
    /// What can be set on it.
    pub params: &'static [Param],
    /// The workloads that make sense for it.
    pub workloads: &'static [Workload],
    /// Whether the message size means anything to it.
    pub sized: bool,
    /// What it promises beside speed.
    pub semantics: Semantics,
    /// Its limits in words, with where the kernel keeps them.
    pub limits: &'static str,
    /// The manual pages or documents that define it.
    pub man: &'static [&'static str],
}

impl Card {
    /// Whether `workload` makes sense for it.
    pub fn takes(&self, workload: Workload) -> bool {
        self.workloads.iter().any(|of_card| of_card.is_like(workload))
    }

    /// The card of an operation, without name, summary and manual pages.
    pub const OPERATION: Card = Card {
        name: "",
        kind: CardKind::Operation,
        summary: "",
        framing: Framing::None,
        reach: Reach::Process,
        by_name: ByName::Never,
        payload: Payload::None,
        fds: false,
        hangup: false,
        polled: false,
        one_endpoint: false,
        empty: false,
        params: &[],
        workloads: &[Workload::Cost],
        sized: false,
        semantics: Semantics::NONE,
        limits: "none",
        man: &[],
    };
}

/// Whether an entry of the registry works on this host with given parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// It works.
    Yes {
        /// The largest message, in bytes, where there is a limit; found by trying.
        largest_bytes: Option<u64>,
    },
    /// It does not work here.
    No {
        /// What the host lacks.
        reason: String,
        /// What would make it work.
        remedy: String,
    },
}

impl Support {
    /// It works, with messages of any size.
    pub const UNLIMITED: Support = Support::Yes { largest_bytes: None };
}
