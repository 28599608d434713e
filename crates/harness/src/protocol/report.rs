//! What an endpoint tells the coordinator.

use super::error::EndpointError;
use crate::clock::Stamp;
use model::observation::{Observation, ServedOn};
use model::record::{Sample, Setting};
use serde::{Deserialize, Serialize};

/// What a slice of a trial measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SliceReport {
    /// What was measured. `trial`, `round`, `started_ns`, `stolen_ns` and `floor_ns` are the coordinator's to fill in.
    pub sample: Sample,
    /// What both endpoints set, and what the kernel made of it.
    pub settings: Vec<Setting>,
    /// When the iterations of each phase were over; only of one of several clients, and where all are timed one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) iteration_times: Vec<IterationTimes>,
    /// By which descriptors the server's calls for this client are known; only of one of several clients of one server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) served_on: Option<ServedOn>,
    /// What a probe saw of the iterations, if the trial had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<Observation>,
    /// The CPU on which an endpoint was, before or after iterations, instead of on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<u32>,
}

impl SliceReport {
    /// Of a slice of which there is nothing to say but its sample.
    pub fn from_sample(sample: Sample) -> Self {
        Self {
            sample,
            settings: Vec::new(),
            iteration_times: Vec::new(),
            served_on: None,
            observation: None,
            elsewhere: None,
        }
    }
}

/// When the iterations of one phase of one client were over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IterationTimes {
    /// When the first began.
    pub(crate) start: Stamp,
    /// How long each took: the next begins where one ends.
    pub(crate) ticks: Vec<u64>,
    /// Of how many iterations each of `ticks` is.
    pub(crate) stride: u64,
}

impl IterationTimes {
    /// When each ended.
    pub(crate) fn ends(&self) -> impl Iterator<Item = Stamp> {
        self.ticks.iter().scan(self.start, |end, ticks| {
            *end = end.after(*ticks);
            Some(*end)
        })
    }
}

/// What an endpoint came to at its end.
pub(crate) type EndpointResult = Result<(), EndpointError>;
