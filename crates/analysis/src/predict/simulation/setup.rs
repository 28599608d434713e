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
}

/// Nobody sleeps for less: falling asleep and waking take as long. Whoever slept for a little while on a busy CPU would have to wait for all
/// others.
const LEAST_SLEEP_NS: f64 = 10_000.0;

/// A time that nothing else explains.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in crate::predict) struct RestTime {
    pub(in crate::predict) ns: f64,
    /// How much of it may be CPU time.
    pub(in crate::predict) most_cpu_ns: f64,
}

impl RestTime {
    /// The part that is work, and the one that is waiting. Of a time that is too long already, `thought_ns` of waiting are left out
    /// before work is.
    pub(in crate::predict) fn work_and_wait_ns(self, thought_ns: f64) -> [f64; 2] {
        let beside_ns = self.ns - self.most_cpu_ns;
        let wait_ns = match self.ns {
            too_long if too_long <= 0.0 => too_long.max(-thought_ns),
            _ if beside_ns < LEAST_SLEEP_NS => 0.0,
            _ => beside_ns,
        };
        [self.ns - wait_ns, wait_ns]
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
