//! How a scenario behaves while it runs: the numbers that a recording, a replay and a prediction all have.

use crate::histogram::Histogram;
use crate::record::Setting;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a scenario behaved, or would behave, over some time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Behaviour {
    /// As many as the scenario has flows, in their order.
    pub flows: Vec<FlowBehaviour>,
    /// As many as it has processes, in their order.
    pub processes: Vec<ProcessBehaviour>,
}

/// How a flow did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowBehaviour {
    /// Requests, or messages of a stream, a second.
    pub per_s: f64,
    /// The mean from the beginning of sending a request to the end of receiving its answer; absent for streams.
    pub round_trip_ns: Option<f64>,
}

/// How a process did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessBehaviour {
    /// CPU time over wall time.
    pub cpu: f64,
    /// Context switches a second.
    pub switches_per_s: f64,
}

/// What a flow came to in all the time that it was measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowTotals {
    /// Requests that were answered, or messages of a stream that came.
    pub messages: u64,
    /// Their bytes, without those of the answers.
    pub bytes: u64,
    /// The round trips; absent for streams.
    pub round_trips: Option<Histogram>,
    /// What its endpoints asked the kernel for, and got; each once.
    pub settings: Vec<Setting>,
}
