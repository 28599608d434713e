//! What an endpoint tells the coordinator.

use super::error::EndpointError;
use crate::clock::Stamp;
use model::observation::Observation;
use model::record::{Sample, Setting};
use serde::{Deserialize, Serialize};

/// What a trial measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrialReport {
    /// What was measured. `round`, `started_ns` and `floor_ns` are the coordinator's to fill in.
    pub sample: Sample,
    /// What both endpoints set, and what the kernel made of it.
    pub settings: Vec<Setting>,
    /// When the iterations of each phase were over; only of one of several clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) iteration_times: Vec<IterationTimes>,
    /// What a probe saw of the iterations, if the trial had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) observation: Option<Observation>,
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

/// What an endpoint reports at its end: a client what was measured, a server nothing, and either its failure.
pub(crate) type EndpointReport = Result<Option<TrialReport>, EndpointError>;

/// What an endpoint says to the coordinator.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum EndpointMessage {
    /// It is one of several clients, and is warm. It goes on when the coordinator says `()`, which it does when all are.
    Ready,
    /// It is one of several clients, and has measured one whole phase. The coordinator says `()` when all have.
    MeasuredOnePhase,
    /// It has done what it was told to do, or failed.
    Done(Box<EndpointReport>),
}
