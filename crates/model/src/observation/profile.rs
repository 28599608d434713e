//! The profile: what a probe observed in one trial, in the numbers that a results file keeps.
//!
//! The events themselves are kept only of a few iterations, where these are to be drawn. Profiles are made, and numbers are
//! worked out of them, in `analysis`.

use super::probe::Probe;
use super::subsystem::Subsystem;
use super::trial::{Counter, Observation};
use crate::case::Case;
use crate::fact::Fact;
use crate::histogram::EncodedHistogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One trial of a case with a probe, or why there was none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileRecord {
    /// The case.
    pub case: Case,
    /// The probe.
    pub probe: Probe,
    /// The round. Rounds with probes are counted apart from the others, and are the same for all cases and probes.
    pub round: u32,
    /// What the probe observed.
    pub profile: Fact<Profile>,
}

/// What a probe observed in one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// How many iterations it observed.
    pub iterations: u64,
    /// The time of an iteration under the probe, in nanoseconds.
    pub iteration_ns: f64,
    /// That over the time of the same iterations in the trials before and after, which had no probe.
    pub effect: f64,
    /// What the client did.
    pub client: EndpointProfile,
    /// What the server did; operations have no server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<EndpointProfile>,
    /// All that happened in the iterations, where they are to be drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
}

/// What one endpoint did, as far as the probe can observe it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointProfile {
    /// Its system calls by kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallProfile>,
    /// How it was scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleProfile>,
    /// What was counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<Counter>,
    /// What could not be counted, by the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uncounted: BTreeMap<String, Vec<String>>,
    /// In which subsystem samples found the processor, and how often.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub subsystems: BTreeMap<Subsystem, u64>,
    /// What else was asked of the probe, and why it is not available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<String>,
    /// How many records were lost because the kernel's buffer was full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The events of a few iterations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// What happened.
    pub observation: Observation,
    /// The names of the system calls in it: their numbers differ from machine to machine.
    pub call_names: BTreeMap<u32, String>,
}

impl Timeline {
    /// What a system call in it is called.
    pub fn call_name(&self, number: u32) -> String {
        self.call_names.get(&number).cloned().unwrap_or_else(|| format!("call {number}"))
    }
}

impl Profile {
    /// Both endpoints, the client first.
    pub fn endpoints(&self) -> impl Iterator<Item = &EndpointProfile> {
        std::iter::once(&self.client).chain(&self.server)
    }
}

/// All calls of one kind that one endpoint made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallProfile {
    /// The call's name, such as `read`.
    pub name: String,
    /// How many there were.
    pub count: u64,
    /// How many per iteration.
    pub per_iteration: f64,
    /// The time from beginning to end of each, sleep included, in nanoseconds.
    pub time: EncodedHistogram,
    /// The mean of that.
    pub mean_ns: f64,
    /// How many failed, by errno.
    pub errors: BTreeMap<i64, u64>,
    /// How many the kernel restarted after a signal.
    pub restarts: u64,
    /// What the others returned, such as a count of bytes, and how often.
    pub returned: Vec<(i64, u64)>,
    /// The sum of what the others returned.
    pub returned_sum: i64,
    /// The sum of the third arguments: of calls that move bytes, how many they were asked to move.
    pub asked_sum: u64,
}

/// How one endpoint was scheduled, per iteration where that makes sense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleProfile {
    /// The time on a CPU, per iteration, in nanoseconds.
    pub running_ns: f64,
    /// The time asleep, per iteration, in nanoseconds.
    pub asleep_ns: f64,
    /// The time without the CPU though it could run, per iteration, in nanoseconds.
    pub preempted_ns: f64,
    /// How often it went to sleep, per iteration.
    pub sleeps: f64,
    /// How often it lost the CPU, per iteration.
    pub preemptions: f64,
    /// How often it came back on another CPU, per iteration.
    pub migrations: f64,
    /// The share of the iterations in which it slept: of each iteration at most one sleep counts.
    pub sleeping_share: f64,
    /// How often its peer woke it, per iteration; absent where the probe cannot observe wake-ups.
    pub woken_by_peer: Option<f64>,
    /// How often an interrupt woke it that came while the peer ran, per iteration.
    pub woken_by_interrupt: Option<f64>,
    /// From being woken by the peer to having a CPU, in nanoseconds.
    pub wake_up: Option<EncodedHistogram>,
}
