//! The sample: what one trial measured.

use crate::histogram::EncodedHistogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one trial measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// The round of the trial, from 0.
    pub round: u32,
    /// When the trial began, in nanoseconds since the start of the run.
    pub started_ns: u64,
    /// How many iterations the `total` part had: of a stream, messages sent.
    pub iterations: u64,
    /// How many iterations the trial had in all: lead-in, warm-up and every part. What the kernel counted.
    pub trial_iterations: u64,
    /// How long the iterations of the `total` part took together, between two clock readings. Where several clients have
    /// their iterations at the same time and have them answered, their times are added up.
    pub elapsed_ns: f64,
    /// What the floor of this case took for the same work in the same round, in nanoseconds per iteration.
    pub floor_ns: Option<f64>,
    /// The `each` part: a clock reading every iteration. Absent for `cost` and `throughput`.
    pub each: Option<Each>,
    /// What client used in the `total` part.
    pub client: Usage,
    /// What server used in the `total` part. Absent for operations, which have no server.
    pub server: Option<Usage>,
    /// Client's send calls and server's receive calls, one by one, from a part of their own. Only for `throughput`.
    pub calls: Option<TimedCalls>,
    /// The steps of client's and server's messages, from a part of their own. Only for `session`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepSamples>,
    /// What the timer said of its intervals. Only for `accuracy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerSample>,
    /// How client kept to its schedule. Only where iterations are due at a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleSample>,
    /// How many of the iterations were each client's. Only where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Vec<u64>>,
    /// How many of the messages sent in these iterations never came. Only of mechanisms that lose some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}

impl Sample {
    /// Nanoseconds per iteration.
    pub fn iteration_ns(&self) -> f64 {
        self.elapsed_ns / self.iterations as f64
    }

    /// How many of its iterations were not lost.
    pub fn came(&self) -> u64 {
        self.iterations.saturating_sub(self.lost.unwrap_or(0))
    }
}

/// The part of a trial in which every iteration was timed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Each {
    /// The mean iteration in nanoseconds.
    pub mean_ns: f64,
    /// All iterations, in nanoseconds.
    pub iterations: EncodedHistogram,
}

/// Send and receive calls timed one by one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimedCalls {
    /// How many messages the part had.
    pub messages: u64,
    /// Client's send calls.
    pub send: CallCounts,
    /// Server's receive calls.
    pub receive: CallCounts,
}

/// The calls of one endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallCounts {
    /// How many there were.
    pub count: u64,
    /// How long each took, in nanoseconds.
    pub time: EncodedHistogram,
    /// How many calls returned how many bytes: `[bytes, calls]`, ascending. Beyond 64 different counts, those of
    /// further counts are added to the next count below.
    pub returned_bytes: Vec<(u64, u64)>,
}

/// The system calls of a session's messages, each timed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepSamples {
    /// Client's, which sends.
    pub client: Vec<StepSample>,
    /// Server's, which receives.
    pub server: Vec<StepSample>,
}

/// One system call of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepSample {
    /// The system call.
    pub name: String,
    /// How long each took, in nanoseconds.
    pub time: EncodedHistogram,
}

/// What a timer said of intervals of a known length, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimerSample {
    /// The mean of what the timer said, less the length asked for.
    pub error_ns: f64,
    /// The standard deviation of what the timer said.
    pub deviation_ns: f64,
    /// The mean of what the timer said, less that of what the run's clock said.
    pub off_clock_ns: f64,
    /// The smallest step between two readings that differ.
    pub resolution_ns: f64,
}

/// How client kept to a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleSample {
    /// From the start to when the last iteration was due, in nanoseconds.
    pub span_ns: f64,
    /// How late the last iteration began, in nanoseconds: what was left undone when all should have been begun.
    pub late_ns: f64,
}

impl ScheduleSample {
    /// The part of the rate asked for that was achieved.
    pub fn achieved(&self) -> f64 {
        self.span_ns / (self.span_ns + self.late_ns)
    }
}

/// What one endpoint used, by the kernel's accounting of its thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// CPU time, exact to the scheduler's clock.
    pub cpu_ns: u64,
    /// The part in user mode; the split is by the tick on most kernels.
    pub user_ns: u64,
    /// The part in the kernel.
    pub system_ns: u64,
    /// Switches because the endpoint waited.
    pub voluntary_switches: u64,
    /// Switches because the scheduler said so.
    pub involuntary_switches: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            user_ns: self.user_ns.saturating_add(other.user_ns),
            system_ns: self.system_ns.saturating_add(other.system_ns),
            voluntary_switches: self.voluntary_switches.saturating_add(other.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_add(other.involuntary_switches),
            minor_faults: self.minor_faults.saturating_add(other.minor_faults),
            major_faults: self.major_faults.saturating_add(other.major_faults),
        }
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), |sum, usage| sum + usage)
    }
}

impl Usage {
    /// The part `share` of it.
    pub fn scaled(self, share: f64) -> Self {
        let of = |count: u64| (count as f64 * share).round() as u64;
        Self {
            cpu_ns: of(self.cpu_ns),
            user_ns: of(self.user_ns),
            system_ns: of(self.system_ns),
            voluntary_switches: of(self.voluntary_switches),
            involuntary_switches: of(self.involuntary_switches),
            minor_faults: of(self.minor_faults),
            major_faults: of(self.major_faults),
        }
    }
}
