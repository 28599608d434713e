//! What on this host spoils or limits measurements, why, and the command that mends it: one file of rules a subsystem.

mod clock;
mod cpu;
mod devices;
pub mod finding;
mod here;
mod ipc_limits;
mod memory;
mod network;
mod observation;
mod power;
pub mod rules;
mod security;
mod speed;
#[cfg(test)]
mod testing;
mod virtualisation;
