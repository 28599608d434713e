//! The host: the facts that are recorded with every run, the topology of its CPUs, and what on it spoils measurements.

pub mod doctor;
pub mod facts;
mod files;
pub mod isolation;
pub(crate) mod limits;
mod queueing;
pub mod reachable;
pub(crate) mod route;
pub mod speed;
pub(crate) mod steal;
pub mod topology;
