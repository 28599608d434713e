//! What the coordinator says to a process of a scenario, and what that reports. It is what docs/reference/protocol.md calls the capability
//! `scenario`.

use crate::clock::Stamp;
use model::histogram::EncodedHistogram;
use model::record::{ClockSource, Setting};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The name of the capability.
pub(crate) const CAPABILITY: &str = "scenario";

/// What a process of a scenario is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ScenarioOrders {
    /// The scenario, in the form of its file.
    pub(crate) scenario: String,
    /// Which of its processes this one is.
    pub(crate) process: usize,
    pub(crate) clock: ClockSource,
    /// Where names in the file system go.
    pub(crate) directory: PathBuf,
    /// The number of the first flow. No other flow of the run has it, or one of those that follow it.
    pub(crate) number: u64,
    /// From what sizes, work and times are drawn. It is the same for all processes: who receives a stream of bytes draws the
    /// lengths of its messages as the sender does.
    pub(crate) seed: u64,
}

/// How the receiver of a flow connects: address bytes in a format that is the mechanism's own. Descriptors come with it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FlowTicket {
    pub(crate) flow: usize,
    pub(crate) address: Vec<u8>,
}

/// What a process has done since it began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProcessSnapshot {
    /// When it was taken.
    pub(crate) at: Stamp,
    /// The CPU time of the threads that communicate and work.
    pub(crate) cpu_ns: u64,
    /// Their context switches.
    pub(crate) switches: u64,
    /// The flows that it counts: requests that it sends, streams that it receives.
    pub(crate) flows: Vec<FlowCounts>,
    /// A CPU beside those of the process on which one of its threads may run, because somebody moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) elsewhere: Option<u32>,
    /// What its endpoints of flows asked the kernel for, and got, with the flow of each. It is said where round trips are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) settings: Vec<(usize, Setting)>,
}

/// How many messages of a flow there were.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct FlowCounts {
    /// Which flow.
    pub(crate) flow: usize,
    /// Requests that were answered, or messages of a stream that came.
    pub(crate) messages: u64,
    /// Their bytes, without those of the answers.
    pub(crate) bytes: u64,
    /// All round trips together, in nanoseconds.
    pub(crate) round_trips_ns: f64,
    /// The round trips since the last snapshot that had them, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) round_trips: Option<EncodedHistogram>,
}
