//! Runs unmodified programs with another mechanism in the place of their own: a supervisor answers the few calls by which they set sockets
//! and pipes up (seccomp_unotify(2)), and what carries data runs as always.
//!
//! It exchanges and says what it saw. It times nothing, and compares nothing.
#![forbid(unsafe_code)]

mod accept;
mod address;
mod answering;
mod caller;
mod connect;
mod exchange;
mod guard;
mod launch;
mod listen;
mod message;
mod names;
mod observed;
mod options;
mod pairs;
mod settings;
mod sockets;
mod supervisor;
mod target;
mod usage;

pub use exchange::{ProgramExchange, ProgramExchanges, Source};
pub use guard::{COMMAND, main as guard_main};
pub use launch::{Calls, Launched};
pub use message::Ended;
pub use observed::{Observed, ObservedPort, candidates};
pub use sockets::Sockets;
pub use target::Target;
pub use usage::{ProgramUsage, memory_of_tree_bytes, of_tree};
