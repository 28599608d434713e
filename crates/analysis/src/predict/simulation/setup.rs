//! What a run of a simulation takes, and what it comes to. It runs nothing.

use crate::predict::flow_costs::DrawnCosts;
use model::Scenario;
use model::scenario::Behaviour;

/// What a run takes besides the scenario.
#[derive(Debug, Clone)]
pub(in crate::predict) struct SimulationSetup<'a> {
    /// The costs of each flow.
    pub(in crate::predict) costs: &'a [DrawnCosts],
    /// What each flow has beside its costs and its work.
    pub(in crate::predict) rests: &'a [Rest],
    /// The logical CPUs.
    pub(in crate::predict) cpus: &'a [u32],
    /// For how long a thread keeps a CPU for which another waits, in nanoseconds.
    pub(in crate::predict) quantum_ns: u64,
    /// What sizes, work and placement are drawn with.
    pub(in crate::predict) seed: u64,
    /// How many events a run has.
    pub(in crate::predict) events: u64,
}

/// What is known of a flow by measurement alone, and stays what it is whatever the mechanism: it may be negative, where the work of
/// the scenario is too long.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in crate::predict) struct Rest {
    /// Before each request or message, at the sender.
    pub(in crate::predict) begin: RestTime,
    /// Before each answer, at the receiver.
    pub(in crate::predict) answer: RestTime,
    /// How often receiver and sender have one CPU, where the scenario itself tells.
    pub(in crate::predict) stay: Option<f64>,
    /// Whether the flow is the first of a loop that waits for something that nobody saw.
    pub(in crate::predict) waits: bool,
}

/// Nobody sleeps for less: falling asleep and waking take as long. Whoever slept for a little while on a busy CPU would have to wait for all
/// others.
const LEAST_SLEEP_NS: f64 = 10_000.0;

/// For how long an end sleeps that is to wait for `ns`.
pub(in crate::predict) fn sleep_for(ns: f64) -> f64 {
    if ns < LEAST_SLEEP_NS { 0.0 } else { ns }
}

/// What nothing else explains at one end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::predict) struct RestTime {
    /// Work for each message; negative where that of the scenario is too long.
    pub(in crate::predict) work_ns: f64,
    /// Waiting for each; negative where a think time is too long.
    pub(in crate::predict) wait_ns: f64,
    /// How many times as long as back to back the program's messages take while it is awake, for the caches and the memory in which they find
    /// what they need.
    pub(in crate::predict) message_factor: f64,
    /// How much of the time that is missing may be CPU time.
    pub(in crate::predict) most_cpu_ns: f64,
}

impl Default for RestTime {
    fn default() -> Self {
        Self { work_ns: 0.0, wait_ns: 0.0, message_factor: 1.0, most_cpu_ns: 0.0 }
    }
}

impl RestTime {
    /// Both together.
    pub(in crate::predict) fn ns(self) -> f64 {
        self.work_ns + self.wait_ns
    }

    /// `ns` in all: as far as it may be CPU time work, and waiting else. Of a time that is too long already, `thought_ns` of waiting are left
    /// out before work is.
    pub(in crate::predict) fn of(self, ns: f64, thought_ns: f64) -> Self {
        let wait_ns = if ns <= 0.0 { ns.max(-thought_ns) } else { sleep_for(ns - self.most_cpu_ns) };
        Self { work_ns: ns - wait_ns, wait_ns, ..self }
    }
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::predict) struct Simulated {
    pub(in crate::predict) behaviour: Behaviour,
    /// How many requests, or messages of a stream, each flow had.
    pub(in crate::predict) counts: Vec<u64>,
    /// The share of the messages of each flow that went to a receiver on the sender's CPU; `None` of one without messages.
    pub(in crate::predict) on_one_cpu: Vec<Option<f64>>,
    /// The CPU time of each process for messages of round trips, over time: of `behaviour`, without sleep and waking.
    pub(in crate::predict) messages_cpu: Vec<f64>,
}

/// Whether every thread of `scenario` has one of `cpus`; those that name others run on any.
pub(super) fn allowed(scenario: &Scenario, cpus: &[u32]) -> Vec<Vec<usize>> {
    let of = |named: &[u32]| -> Vec<usize> {
        let places = |(at, id): (usize, &u32)| named.contains(id).then_some(at);
        let found: Vec<usize> = cpus.iter().enumerate().filter_map(places).collect();
        if found.is_empty() { (0..cpus.len()).collect() } else { found }
    };
    scenario.processes.iter().map(|process| of(&process.cpus)).collect()
}
