//! What the kernel recorded on the CPUs of one trial while a pair of endpoints did its iterations: events of both CPUs, in one
//! order of time, by one clock.
//!
//! These are facts. What path an iteration took through them is worked out in `analysis`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::{IntoStaticStr, VariantArray};

/// A set of events that is recorded or not, as a whole. The cost of a trace is found by leaving sets out.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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

/// How events of CPUs are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RecordingWay {
    /// By programs in the kernel (bpf(2)), or by perf records where these may not be used.
    #[default]
    Programs,
    /// By records of perf_event_open(2).
    PerfRecords,
}

/// Everything recorded of one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuTrace {
    /// Which sets were open.
    pub sets: Vec<EventSet>,
    /// Sets that were asked for and could not be opened, each with the reason and what would grant it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<String>,
    /// Why programs in the kernel (bpf) did not record it, where perf records had to, which cost more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_programs: Option<String>,
    /// The client's threads, as the kernel numbers them; of several clients, those of all.
    pub client_tids: Vec<u32>,
    /// The server's.
    pub server_tids: Vec<u32>,
    /// The names of other threads that ran, as far as they were recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub task_names: BTreeMap<u32, String>,
    /// When the timed iterations began, by `CLOCK_MONOTONIC_RAW`, as all times here.
    pub from_ns: u64,
    /// When each iteration of the client ended; of several clients, those of all in one order.
    pub iteration_ends_ns: Vec<u64>,
    /// Where several clients ask one server: each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<TracedClient>,
    /// What happened, in the order of time.
    pub events: Vec<CpuEvent>,
    /// How many records were lost because a buffer was full. Iterations beside a loss are not whole.
    #[serde(default)]
    pub lost: u64,
}

/// One of several clients of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TracedClient {
    /// Its thread.
    pub tid: u32,
    /// By which descriptors the server's calls for it are known; absent where the server has not said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_on: Option<ServedOn>,
    /// When its timed iterations began.
    pub from_ns: u64,
    /// When each of them ended.
    pub iteration_ends_ns: Vec<u64>,
}

/// Descriptors of a server of several clients, by which it is known from its calls whom it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServedOn {
    /// That on which the messages of one client come: a call with it begins to serve that client.
    pub input: u32,
    /// That on which the server waits for all clients: a call with it serves none.
    pub event_loop: u32,
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
        /// Its first argument: a descriptor, of most calls by which endpoints communicate.
        #[serde(rename = "a", default)]
        first: u64,
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

impl EventSet {
    /// All of them, in the order in which a trace can do without them: the last first.
    pub const ALL: &[EventSet] = EventSet::VARIANTS;

    /// The name, as it is written and shown.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl std::fmt::Display for EventSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl CpuEventKind {
    /// The set to which the event belongs.
    pub fn set(self) -> EventSet {
        use CpuEventKind as Kind;
        match self {
            Kind::Enter { .. } | Kind::Exit { .. } => EventSet::Calls,
            Kind::Switch { .. } | Kind::On => EventSet::Switches,
            Kind::Waking { .. } => EventSet::WakeUps,
            Kind::InterruptIn | Kind::InterruptOut | Kind::SoftirqIn { .. } | Kind::SoftirqOut => {
                EventSet::Interrupts
            }
            Kind::IdleIn | Kind::IdleOut => EventSet::Idle,
            Kind::PageFault { .. } => EventSet::Faults,
        }
    }
}

impl CpuTrace {
    /// The events from the first timed iteration to the end of the last. Those before and after tell what each thread was about
    /// to do.
    pub fn timed(&self) -> impl Iterator<Item = &CpuEvent> {
        let until_ns = self.iteration_ends_ns.last().copied().unwrap_or(self.from_ns);
        self.events.iter().filter(move |event| (self.from_ns..=until_ns).contains(&event.at_ns))
    }

    /// How many events of each set there were in the timed iterations.
    pub fn counts(&self) -> BTreeMap<EventSet, u64> {
        let mut counts: BTreeMap<EventSet, u64> = self.sets.iter().map(|set| (*set, 0)).collect();
        self.timed().for_each(|event| *counts.entry(event.what.set()).or_default() += 1);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_listed_once_each_and_named_as_they_are_written() {
        for &set in EventSet::ALL {
            assert_eq!(serde_json::to_string(&set).unwrap(), format!("\"{set}\""));
        }
    }

    #[test]
    fn events_are_counted_by_set_within_the_timed_iterations() {
        let event = |at_ns, what| CpuEvent { at_ns, cpu: 0, tid: 7, what };
        let trace = CpuTrace {
            sets: vec![EventSet::Calls, EventSet::Faults],
            from_ns: 10,
            iteration_ends_ns: vec![20, 30],
            events: vec![
                event(9, CpuEventKind::Enter { number: 0, first: 3 }),
                event(10, CpuEventKind::Exit { number: 0, value: 1 }),
                event(30, CpuEventKind::Enter { number: 1, first: 3 }),
                event(31, CpuEventKind::PageFault { address: 4096 }),
            ],
            ..CpuTrace::default()
        };
        assert_eq!(trace.counts(), BTreeMap::from([(EventSet::Calls, 2), (EventSet::Faults, 0)]));
    }
}
