//! The summary of one case, as the results file has it. It is worked out in `analysis`.

use crate::estimate::{Estimate, Modes};
use crate::network::NetworkSample;
use crate::sample::TimerSample;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The summary of one case. Intervals are taken over trials, never over iterations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// How many trials.
    pub trials: u32,
    /// How many slices the trials had together.
    #[serde(default)]
    pub slices: u32,
    /// How many iterations were timed, over all trials.
    pub iterations: u64,
    /// Nanoseconds per iteration in the calmest quarter of the run, with its 95% interval: as the model of the run has it, in which all
    /// slices of all cases have a part. Where nothing was read of the host it is the middle of the slices.
    pub iteration_ns: Estimate,
    /// Nanoseconds per iteration of all slices together, their time over their iterations; of a stream, over the messages that came. Slices
    /// that stalled are in it, whatever the median is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ns: Option<f64>,
    /// The slices that stalled; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalls>,
    /// What the readings of the host say. Absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<SpeedSummary>,
    /// Payload bytes per second, one way; only for `throughput` and `transfer`.
    pub bytes_per_s: Option<Estimate>,
    /// Quantiles of single iterations, from the `each` phase of all trials together.
    pub quantiles: Option<Quantiles>,
    /// The mean iteration of the `each` phase over that of the `total` phase, trial by trial: the effect of the clock readings.
    pub each_over_total: Option<Estimate>,
    /// The multiple of the floor, round by round.
    pub floor_multiple: Option<Estimate>,
    /// The multiple of the floor that wakes a sleeper on the other CPU; only of cases that sleep, on two CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_floor_multiple: Option<Estimate>,
    /// What one iteration costs the client.
    pub client: PerIteration,
    /// What one iteration costs the server.
    pub server: Option<PerIteration>,
    /// The two groups of slices, where there are two.
    pub modes: Option<Modes>,
    /// The share of the rate asked for that the median trial achieved; only where iterations are due at a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved: Option<f64>,
    /// The share of the messages sent that did not arrive; only of mechanisms that lose some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<f64>,
    /// The 95% interval of the share that was lost in the median slice, where there are enough trials for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_interval: Option<(f64, f64)>,
    /// Iterations a second of all clients together; only where several peers have their iterations answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations_per_s: Option<f64>,
    /// How evenly the iterations were shared among several clients; only where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
    /// What the timer measured of its intervals: medians over trials, and the smallest resolution; only of `accuracy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerSample>,
    /// The steps of the messages of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepTimes>,
    /// What the kernels of both hosts counted in all slices, and how they reached each other last; only between hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkSample>,
}

/// Slices in which what is measured stood still for much longer than a scheduler lets wait on a quiet host: by timers, of retransmission
/// and the like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stalls {
    /// How many.
    pub slices: u32,
    /// By how much longer than the fast quarter of the slices the slowest took, in nanoseconds.
    pub longest_ns: f64,
}

/// What the readings of the host say of a case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeedSummary {
    /// Nanoseconds per iteration of the median slice as it was measured, whatever the host did; absent in files of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_found_ns: Option<f64>,
    /// The speed of the CPUs beside the median slice, as a fraction of the fastest that the run saw.
    pub median_speed: f64,
    /// How the times follow the reading of the client's CPU; absent where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<SpeedSlope>,
    /// The same of the server's CPU, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<SpeedSlope>,
    /// The same of the pair of CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<SpeedSlope>,
    /// The same of what waking a sleeper on the other CPU took, where an endpoint sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<SpeedSlope>,
}

/// How times follow speed readings: 1 where a reading that is 1% longer comes with a time that is 1% longer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeedSlope {
    /// The slope.
    pub slope: f64,
    /// Its 95% interval.
    pub interval: (f64, f64),
}

/// What the steps of messages take, all trials together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepTimes {
    /// The client's, by name.
    pub client: Vec<StepTime>,
    /// The server's, by name.
    pub server: Vec<StepTime>,
}

/// What one step takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepTime {
    /// The system call.
    pub name: String,
    /// How many were timed.
    pub count: u64,
    /// The median, in nanoseconds.
    pub median_ns: u64,
    /// The mean, in nanoseconds.
    pub mean_ns: f64,
}

/// How evenly iterations were shared among several clients: medians over trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fairness {
    /// Jain's index: 1 when all had as many, 1/n when one of n had them all (Jain, Chiu and Hawe 1984, DEC-TR-301).
    pub jain: f64,
    /// The iterations of the client that had the fewest, over the mean.
    pub least: f64,
    /// The iterations of the client that had the most, over the mean.
    pub most: f64,
}

/// Quantiles in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// The median iteration.
    pub p50_ns: u64,
    /// 90% of iterations are at most this.
    pub p90_ns: u64,
    /// 99% of iterations are at most this.
    pub p99_ns: u64,
    /// 99.9% of iterations are at most this.
    pub p999_ns: u64,
    /// The slowest iteration.
    pub max_ns: u64,
    /// The 95% interval of `p99_ns`; absent with fewer than six trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_interval_ns: Option<(u64, u64)>,
}

/// What one endpoint uses per iteration: totals over all trials, divided by all iterations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerIteration {
    /// CPU time in nanoseconds.
    pub cpu_ns: f64,
    /// The part in user mode.
    pub user_ns: f64,
    /// The part in the kernel.
    pub system_ns: f64,
    /// Switches because the endpoint waited.
    pub voluntary_switches: f64,
    /// Switches because the scheduler took the CPU away.
    pub involuntary_switches: f64,
    /// Page faults, minor and major.
    pub faults: f64,
}

impl Summary {
    /// The share of its rate that was achieved, if the rate was missed.
    pub fn missed(&self) -> Option<f64> {
        /// Below this, the queue grows: of slices of 200 ms and more, the median slope is known to a few thousandths.
        const LEAST_ACHIEVED: f64 = 0.99;
        self.achieved.filter(|achieved| *achieved < LEAST_ACHIEVED)
    }

    /// CPU time of both endpoints per iteration, in nanoseconds.
    pub fn cpu_ns(&self) -> f64 {
        self.client.cpu_ns + self.server.map_or(0.0, |server| server.cpu_ns)
    }

    /// Context switches of both endpoints per iteration.
    pub fn switches(&self) -> f64 {
        let of_endpoint = |per: PerIteration| per.voluntary_switches + per.involuntary_switches;
        of_endpoint(self.client) + self.server.map_or(0.0, of_endpoint)
    }
}
