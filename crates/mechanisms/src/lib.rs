//! The mechanisms, operations and floors: one file each in the directory of that name, and the registry of all.
//!
//! What several of them share is in `support/`. No file here sees a clock, a statistic or the command line.
//! `mechanisms/skeleton.rs` is where a new mechanism starts; ARCHITECTURE.md walks through it.
#![forbid(unsafe_code)]

pub mod absent;
mod contract;
mod floors;
mod mechanisms;
pub mod object;
mod operations;
pub mod registry;
mod support;
#[cfg(test)]
mod zero_copy_tests;

pub use contract::{
    Arrived, Endpoint, InPlace, Mechanism, Network, NetworkToken, NoTrace, Operation, Shape, StepTrace,
    Ticket, TimerKind, TrialContext,
};
pub use registry::Visitor;
pub use support::names::{probe_names, remove_recorded};
