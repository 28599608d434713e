//! The sample: what one slice of a trial measured.

use crate::histogram::EncodedHistogram;
use crate::network::NetworkSample;
use crate::speed::SpeedReadings;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one slice of a trial measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Which trial of the case the slice belongs to, from 0. Slices of one trial are of the same endpoints.
    #[serde(default)]
    pub trial: u32,
    /// The round of the slice, from 0.
    pub round: u32,
    /// When the slice began, in nanoseconds since the start of the run.
    pub started_ns: u64,
    /// How fast the CPUs were before and after the `total` phase. Absent where there are several peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<SpeedReadings>,
    /// What the hypervisor took of the CPUs of the slice while it went on, in nanoseconds; absent where the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_ns: Option<u64>,
    /// How many iterations the `total` phase had; of a stream, how many messages were sent.
    pub iterations: u64,
    /// How many iterations the slice had in all, in lead-in, lead-out and every phase, and, of the first slice of a trial, in its
    /// warm-up: what a tracer of the process counts.
    pub trial_iterations: u64,
    /// How long the iterations of the `total` phase took together, between two clock readings. Where several clients have
    /// answered iterations at the same time, their times are added up.
    pub elapsed_ns: f64,
    /// What the floor of this case took for the same work in the same round, in nanoseconds per iteration.
    pub floor_ns: Option<f64>,
    /// The same for the floor that wakes a sleeper on the other CPU. Only of cases that sleep, on two CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_floor_ns: Option<f64>,
    /// The `each` phase: a clock reading every iteration. Absent for `cost` and `throughput`.
    pub each: Option<Each>,
    /// What the client used in the `total` phase.
    pub client: Usage,
    /// What the server used in the `total` phase. Absent for operations, which have no server.
    pub server: Option<Usage>,
    /// The client's send calls and the server's receive calls, one by one, from a phase of their own. Only for `throughput`.
    pub calls: Option<TimedCalls>,
    /// The steps of the client's and the server's messages, from a phase of their own. Only for `session`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepSamples>,
    /// What the timer measured of its intervals. Only for `accuracy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerSample>,
    /// How the client kept to its schedule. Only where iterations are due at a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleSample>,
    /// How many of the iterations each client had. Only where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Vec<u64>>,
    /// How many of the messages sent in these iterations did not arrive. Only of mechanisms that lose some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// The memory of both endpoints' processes, and of what these have started, after the slice, in bytes: what several share counts in parts
    /// (proc_pid_smaps(5), `Pss`). Only of endpoints that are drivers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// What the kernels of both hosts counted in all iterations of the slice, and how they reached each other. Only between hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkSample>,
}

impl Sample {
    /// One of `iterations` that took `elapsed_ns`, in which the endpoints used so much. What else there is to say is for the caller.
    pub fn new(iterations: u64, elapsed_ns: f64, client: Usage, server: Option<Usage>) -> Self {
        Self {
            trial: 0,
            round: 0,
            started_ns: 0,
            speed: None,
            stolen_ns: None,
            iterations,
            trial_iterations: iterations,
            elapsed_ns,
            floor_ns: None,
            wake_floor_ns: None,
            each: None,
            client,
            server,
            calls: None,
            steps: None,
            timer: None,
            schedule: None,
            shares: None,
            lost: None,
            memory_bytes: None,
            network: None,
        }
    }

    /// Nanoseconds per iteration.
    pub fn iteration_ns(&self) -> f64 {
        self.elapsed_ns / self.iterations as f64
    }

    /// How many of its messages arrived.
    pub fn came(&self) -> u64 {
        self.iterations.saturating_sub(self.lost.unwrap_or(0))
    }
}

/// The phase of a trial in which every iteration was timed.
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
    /// How many messages the phase had.
    pub messages: u64,
    /// The client's send calls.
    pub send: CallCounts,
    /// The server's receive calls.
    pub receive: CallCounts,
}

/// The calls of one endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallCounts {
    /// How many there were.
    pub count: u64,
    /// How long each took, in nanoseconds.
    pub time: EncodedHistogram,
    /// How many calls returned how many bytes: `[bytes, calls]`, ascending. There are at most 64 pairs; calls with other
    /// counts of bytes are added to the next count below.
    pub returned_bytes: Vec<(u64, u64)>,
}

/// The system calls of a session's messages, each timed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepSamples {
    /// The client's, which sends.
    pub client: Vec<StepSample>,
    /// The server's, which receives.
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

/// What a timer measured of intervals of a known length, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimerSample {
    /// The mean of what the timer measured, less the length asked for.
    pub error_ns: f64,
    /// The standard deviation of what the timer measured.
    pub deviation_ns: f64,
    /// The mean of what the timer measured, less that of what the run's clock measured.
    pub off_clock_ns: f64,
    /// The smallest step between two readings that differ.
    pub resolution_ns: f64,
}

/// How the client kept to a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleSample {
    /// From the start to when the last iteration was due, in nanoseconds.
    pub span_ns: f64,
    /// How late the last iteration began, in nanoseconds.
    pub late_ns: f64,
    /// By how much later iterations began for each nanosecond of the schedule: from the median of the first third of them to that
    /// of the last third. A queue that grows has a slope, one slow iteration has none. Absent of fewer than six iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_slope: Option<f64>,
}

impl ScheduleSample {
    /// The share of the rate asked for that was achieved.
    pub fn achieved(&self) -> f64 {
        match self.backlog_slope {
            Some(slope) => 1.0 / (1.0 + slope.max(0.0)),
            None => self.span_ns / (self.span_ns + self.late_ns),
        }
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
    /// Switches because the scheduler took the CPU away.
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
    /// The fraction `share` of it.
    pub fn scaled(self, share: f64) -> Self {
        let part = |count: u64| (count as f64 * share).round() as u64;
        Self {
            cpu_ns: part(self.cpu_ns),
            user_ns: part(self.user_ns),
            system_ns: part(self.system_ns),
            voluntary_switches: part(self.voluntary_switches),
            involuntary_switches: part(self.involuntary_switches),
            minor_faults: part(self.minor_faults),
            major_faults: part(self.major_faults),
        }
    }
}
