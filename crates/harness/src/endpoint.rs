//! The endpoints: the processes, or threads, that do the iterations of a trial.

mod buffered;
mod client;
mod control;
mod fan_in;
pub mod injected;
mod led;
pub(crate) mod loop_error;
mod loops;
mod messages;
pub(crate) mod meters;
mod network_meter;
mod operation;
mod pacer;
pub(crate) mod payload;
pub(crate) mod phase_iterations;
pub mod process;
mod scenario;
mod server;
mod session;
mod sides;
pub(crate) mod speed;
mod usage;
