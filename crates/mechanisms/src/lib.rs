//! The mechanisms and operations: one file each, and the table that names them.
//!
//! No mechanism sees a clock, a statistic or the command line. To add one, write its file and its
//! line in `table.rs`; ARCHITECTURE.md walks through it.
#![forbid(unsafe_code)]

mod contract;
pub mod table;
mod waiting;

pub use contract::{Endpoint, Launch, Mechanism, Operation, Shape, Ticket, read_error};
