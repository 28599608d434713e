//! A scenario as a discrete-event simulation: its processes, one thread each, on CPUs with run queues, and the messages between them.
//!
//! What a process does next is said in `process`, what its CPU is in `cpus`, and what messages cost in `flow_costs`. A run is bounded
//! by events and by simulated time, whatever the scenario is, and the same seed gives the same run.

mod cpus;
mod events;
mod process;
mod run;
#[cfg(test)]
mod tests;

use super::flow_costs::DrawnCosts;
use model::Scenario;
use model::scenario::Behaviour;

pub(super) use run::simulate;

/// What a run takes besides the scenario.
#[derive(Debug, Clone)]
pub(super) struct SimulationSetup<'a> {
    /// The costs of each flow.
    pub(super) costs: &'a [DrawnCosts],
    /// What each flow has beside its costs and its work.
    pub(super) rests: &'a [Rest],
    /// The logical CPUs.
    pub(super) cpus: &'a [u32],
    /// For how long a thread keeps a CPU for which another waits, in nanoseconds.
    pub(super) quantum_ns: u64,
    /// What sizes, work and placement are drawn with.
    pub(super) seed: u64,
    /// How many events a run has.
    pub(super) events: u64,
}

/// What is known of a flow by measurement alone, and stays what it is whatever the mechanism: it may be negative, where the work of
/// the scenario is too long.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rest {
    /// Before each request or message, at the sender.
    pub(super) begin: RestTime,
    /// Before each answer, at the receiver.
    pub(super) answer: RestTime,
}

/// A time that nothing else explains.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct RestTime {
    pub(super) ns: f64,
    /// Whether it is CPU time.
    pub(super) on_cpu: bool,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Simulated {
    pub(super) behaviour: Behaviour,
    /// How many requests, or messages of a stream, each flow had.
    pub(super) counts: Vec<u64>,
}

/// Whether every thread of `scenario` has one of `cpus`; those that name others run on any.
fn allowed(scenario: &Scenario, cpus: &[u32]) -> Vec<Vec<usize>> {
    let of = |named: &[u32]| -> Vec<usize> {
        let places = |(at, id): (usize, &u32)| named.contains(id).then_some(at);
        let found: Vec<usize> = cpus.iter().enumerate().filter_map(places).collect();
        if found.is_empty() { (0..cpus.len()).collect() } else { found }
    };
    scenario.processes.iter().map(|process| of(&process.cpus)).collect()
}
