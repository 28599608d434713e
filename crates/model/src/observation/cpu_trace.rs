//! What the kernel recorded on the CPUs of one trial while a pair of endpoints did its iterations: events of both CPUs, in one
//! order of time, by one clock.
//!
//! These are facts. What path an iteration took through them is worked out in `analysis`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of events that is recorded or not, as a whole. The cost of a trace is found by leaving sets out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventSet {
    /// Which thread a CPU runs: `sched_switch`, or context-switch records of one's own threads.
    Switches,
    /// Who wakes whom: `sched_waking`.
    WakeUps,
    /// System calls of the endpoints, in and out.
    Calls,
    /// Interrupts and softirqs, in and out.
    Interrupts,
    /// When a CPU begins and ends to idle: `cpu_idle`.
    Idle,
    /// Page faults of the endpoints.
    Faults,
}

/// Everything recorded of one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuTrace {
    /// Which sets were open.
    pub sets: Vec<EventSet>,
    /// Sets that were asked for and could not be opened, each with the reason and what would grant it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<String>,
    /// The client's threads, as the kernel numbers them.
    pub client_tids: Vec<u32>,
    /// The server's.
    pub server_tids: Vec<u32>,
    /// When the timed iterations began, by `CLOCK_MONOTONIC_RAW`, as all times here.
    pub from_ns: u64,
    /// When each iteration of the client ended.
    pub iteration_ends_ns: Vec<u64>,
    /// What happened, in the order of time.
    pub events: Vec<CpuEvent>,
    /// How many records were lost because a buffer was full. Iterations beside a loss are not whole.
    #[serde(default)]
    pub lost: u64,
}

/// Something that happened on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuEvent {
    /// When, by `CLOCK_MONOTONIC_RAW`.
    #[serde(rename = "t")]
    pub at_ns: u64,
    /// On which CPU.
    #[serde(rename = "u")]
    pub cpu: u32,
    /// The thread that ran there; 0 while the CPU was idle.
    #[serde(rename = "k")]
    pub tid: u32,
    /// What.
    #[serde(flatten)]
    pub what: CpuEventKind,
}

/// What can happen on a CPU. (The short names keep many thousands of events small.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "e")]
pub enum CpuEventKind {
    /// The thread begins a system call.
    #[serde(rename = "c")]
    Enter {
        /// Its number.
        #[serde(rename = "n")]
        number: u32,
    },
    /// The thread's system call returns.
    #[serde(rename = "r")]
    Exit {
        /// Its number.
        #[serde(rename = "n")]
        number: u32,
        /// What it returned; an error as a negative errno.
        #[serde(rename = "v")]
        value: i64,
    },
    /// The CPU goes from one thread to another; 0 is idling.
    #[serde(rename = "s")]
    Switch {
        /// The thread that ran.
        #[serde(rename = "f")]
        from: u32,
        /// The thread that runs next; unknown where only one's own threads may be observed.
        #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
        to: Option<u32>,
        /// The thread that ran could still run: it was preempted.
        #[serde(rename = "p")]
        preempted: bool,
    },
    /// A thread of one's own comes to a CPU, where only one's own threads may be observed.
    #[serde(rename = "i")]
    On,
    /// A thread is woken.
    #[serde(rename = "w")]
    Waking {
        /// Which.
        #[serde(rename = "n")]
        woken: u32,
        /// By an interrupt or a softirq.
        #[serde(rename = "q")]
        by_interrupt: bool,
    },
    /// An interrupt begins.
    #[serde(rename = "I")]
    InterruptIn,
    /// It ends.
    #[serde(rename = "J")]
    InterruptOut,
    /// A softirq begins.
    #[serde(rename = "S")]
    SoftirqIn {
        /// Which, by the kernel's number.
        #[serde(rename = "n")]
        vector: u32,
    },
    /// It ends.
    #[serde(rename = "T")]
    SoftirqOut,
    /// The CPU begins to idle.
    #[serde(rename = "d")]
    IdleIn,
    /// It ends to idle.
    #[serde(rename = "D")]
    IdleOut,
    /// A page fault of the thread.
    #[serde(rename = "f")]
    PageFault {
        /// Where.
        #[serde(rename = "d")]
        address: u64,
    },
}
