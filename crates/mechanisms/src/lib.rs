//! The mechanisms and operations: one file each, and the table that names them.
//!
//! No mechanism sees a clock, a statistic or the command line. To add one, write its file, its `mod`
//! line below and its line in `table.rs`; ARCHITECTURE.md walks through it.
#![forbid(unsafe_code)]

mod contract;
mod descriptor;
mod socket;
pub mod table;

mod cache_line;
mod clock_gettime;
mod context_switch;
mod fifo;
mod memcpy;
mod null;
mod pipe;
mod shm_ring;
mod syscall;
mod tcp;
mod tsc;
mod udp;
mod unix_dgram;
mod unix_seqpacket;
mod unix_stream;

pub use contract::{Endpoint, Launch, Mechanism, Operation, Shape, Ticket};
pub use table::Visitor;
