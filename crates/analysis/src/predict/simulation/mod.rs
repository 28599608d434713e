//! A scenario as a discrete-event simulation: its processes, one thread each, on CPUs with run queues, and the messages between them.
//!
//! What a process does next is said in `process`, what its CPU is in `homes` and `cpus`, and what messages cost in `flow_costs`. A run is bounded
//! by events and by simulated time, whatever the scenario is, and the same seed gives the same run.

mod channel;
mod cpus;
mod events;
mod homes;
mod process;
mod run;
mod setup;
#[cfg(test)]
mod tests;

pub(super) use run::simulate;
pub(super) use setup::{Rest, RestTime, Simulated, SimulationSetup, sleep_for};
