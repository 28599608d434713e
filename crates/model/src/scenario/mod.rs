//! A scenario: what processes say to each other, as data. `record` makes one of a program that runs, people write one by
//! hand, `replay` runs it, `predict` computes it.
//!
//! Reading the file is the binary's work. docs/reference/scenario.md says what its text can say.

mod behaviour;
mod check;
mod exchange;
mod file;
mod mix;

pub use behaviour::{Behaviour, FlowBehaviour, FlowTotals, ProcessBehaviour};
pub use exchange::Exchange;
pub use mix::{Mix, MixValue};

use crate::pace::Rate;
use crate::spec::Spec;
use crate::units::{Nanoseconds, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Processes, and what they say to each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// A name for people.
    pub name: String,
    /// One line: what it is.
    pub summary: String,
    /// How it was recorded; absent where somebody wrote it.
    pub recorded: Option<Recording>,
    /// The processes. Each is in at least one flow.
    pub processes: Vec<Process>,
    /// The flows between them.
    pub flows: Vec<Flow>,
}

/// How a scenario was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The command, or the processes that were recorded.
    pub command: String,
    /// How long it was recorded, in seconds.
    pub seconds: f64,
    /// By what: bpf, tracepoints, or ptrace.
    pub by: String,
    /// Kernel and processor.
    pub host: String,
    /// How much longer the program took for the same while it was recorded, as a share: 0.05 is 5%. Absent where it was not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<f64>,
    /// The 95% interval of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown_interval: Option<[f64; 2]>,
    /// What could not be seen, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

/// One process, which has one thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Its name in the scenario.
    pub name: String,
    /// The logical CPUs on which it may run; any where there are none.
    pub cpus: Vec<u32>,
    /// How it goes through the flows that it begins.
    pub roots: Concurrency,
    /// How it goes through the requests that it receives.
    pub serves: Concurrency,
    /// What was seen of it.
    pub recorded: Option<RecordedProcess>,
}

/// How a process goes through several things that it has to do: the flows that it begins (those from it that are after no other), or the
/// requests that it receives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Concurrency {
    /// One after the other: of the flows that it begins, one message of each in the order of the file; of requests, none before the last one
    /// is answered.
    #[default]
    InTurn,
    /// All at once, as a program does that waits for whatever comes first: while it waits for an answer, it goes on with others.
    Together,
}

/// What was seen of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedProcess {
    /// CPU time over the time of the recording; above 1 where several threads ran.
    pub cpu: f64,
    /// Context switches a second.
    pub switches_per_s: f64,
    /// The share of the recording's time in system calls of the flows, on a CPU.
    pub in_calls: f64,
    /// The share of the recording's time asleep in them.
    pub waited: f64,
}

/// Messages from one process to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Its name in the scenario.
    pub name: String,
    /// Who sends: an index of [`Scenario::processes`].
    pub from: usize,
    /// Who receives.
    pub to: usize,
    /// How.
    pub mechanism: Spec,
    /// The sizes of the messages.
    pub size: Mix<Size>,
    /// The sizes of the answers, for each of which the sender waits. Without them the flow is a stream.
    pub reply: Option<Mix<Size>>,
    /// How many messages make one request; only the last is answered.
    pub messages: u32,
    /// How many descriptors go with each message.
    pub fds: u32,
    /// How much the receiver of a stream asks for at a time; as much as a message has where it is not said.
    pub read: Option<Size>,
    /// When the sender begins the next message.
    pub begin: Begin,
    /// The CPU time of the sender before each request or message.
    pub client_work: Mix<Nanoseconds>,
    /// The CPU time of the receiver after each request or message, before it answers.
    pub server_work: Mix<Nanoseconds>,
    /// What was seen of it.
    pub recorded: Option<RecordedFlow>,
}

/// When the sender of a flow begins the next message.
#[derive(Debug, Clone, PartialEq)]
pub enum Begin {
    /// So long after the one before is over, for which it sleeps.
    Closed {
        /// How long.
        think_time: Mix<Nanoseconds>,
    },
    /// At times that are fixed beforehand, however long the ones before took.
    Open(Rate),
    /// When it has received a message of another flow, before it answers that.
    After {
        /// The index of that flow.
        flow: usize,
        /// How many of this flow for each of that.
        per_message: f64,
    },
}

impl Begin {
    /// The mean think time, in nanoseconds; 0 where there is none.
    pub fn thought_ns(&self) -> f64 {
        match self {
            Self::Closed { think_time } => think_time.mean(),
            Self::Open(_) | Self::After { .. } => 0.0,
        }
    }
}

/// What was seen of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedFlow {
    /// How many requests or messages were seen.
    pub messages: u64,
    /// How many a second.
    pub per_s: f64,
    /// From the beginning of sending a request to the end of receiving the answer. Absent for streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<Mix<Nanoseconds>>,
    /// The share of the time for which the sender slept in calls of this flow.
    pub client_waited: f64,
    /// The share of the time for which the receiver did.
    pub server_waited: f64,
    /// The share of messages that took more than one read.
    pub partial_reads: f64,
    /// The share of messages, answers included, that were received on the CPU on which they were sent. Absent where it was not
    /// seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_one_cpu: Option<f64>,
    /// Whether messages waited for an acknowledgement. Absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
}

/// Parts of messages that TCP sends only when what was sent before is acknowledged (Nagle's algorithm), where that takes its time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeldBack {
    /// The share of round trips with such a wait.
    pub share: f64,
    /// How long it is, in the mean of these.
    pub wait_ns: u64,
}

impl Scenario {
    /// The flows that `process` begins by itself, in the order of the file.
    pub fn roots(&self, process: usize) -> impl Iterator<Item = usize> {
        self.flows_where(move |flow| flow.from == process && flow.after().is_none())
    }

    /// The same in groups: the flows of a group are begun one after the other, and the groups go on at the same time.
    pub fn root_groups(&self, process: usize) -> Vec<Vec<usize>> {
        let roots: Vec<usize> = self.roots(process).collect();
        match self.processes[process].roots {
            _ if roots.is_empty() => Vec::new(),
            Concurrency::InTurn => vec![roots],
            Concurrency::Together => roots.into_iter().map(|root| vec![root]).collect(),
        }
    }

    /// The flows that are begun by a message of `flow`, in the order of the file.
    pub fn caused_by(&self, flow: usize) -> impl Iterator<Item = usize> {
        self.flows_where(move |other| other.after() == Some(flow))
    }

    /// The flows that `process` receives.
    pub fn received_by(&self, process: usize) -> impl Iterator<Item = usize> {
        self.flows_where(move |flow| flow.to == process)
    }

    fn flows_where(&self, is_meant: impl Fn(&Flow) -> bool) -> impl Iterator<Item = usize> {
        self.flows.iter().enumerate().filter(move |(_, flow)| is_meant(flow)).map(|(at, _)| at)
    }
}

impl Flow {
    /// Whether nobody answers.
    pub fn is_stream(&self) -> bool {
        self.reply.is_none()
    }

    /// The flow whose messages begin this one's.
    pub fn after(&self) -> Option<usize> {
        match self.begin {
            Begin::After { flow, .. } => Some(flow),
            Begin::Closed { .. } | Begin::Open(_) => None,
        }
    }
}
