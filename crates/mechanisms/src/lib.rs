//! The mechanisms and operations: one file each, and the table that names them.
//!
//! No mechanism sees a clock, a statistic or the command line. To add one, write its file, its `mod`
//! line below and its line in `table.rs`; ARCHITECTURE.md walks through it.
#![forbid(unsafe_code)]

pub mod absent;
mod coded;
mod connecting;
mod connection;
mod contract;
mod descriptor;
mod fd_message;
mod inet_stream;
mod names;
mod passed;
mod socket;
pub mod table;
mod unix_name;
mod wake;

mod cache_line;
mod clock_gettime;
mod context_switch;
mod create;
mod eventfd;
mod fifo;
mod file_pass;
mod futex;
mod getrusage;
mod gettimeofday;
mod kill_self;
mod memcpy;
mod memfd_pass;
mod mmap;
mod mptcp;
mod mutex_cond;
mod null;
mod pidfd_signal;
mod pipe;
mod posix_mq;
mod posix_sem;
mod process;
mod pty;
mod sctp;
mod semop;
mod shm_ring;
mod signal;
mod signalfd;
mod sigqueue;
mod syscall;
mod sysv_msg;
mod sysv_sem;
mod tcp;
mod times;
mod tipc;
mod tsc;
mod udp;
mod unix_dgram;
mod unix_seqpacket;
mod unix_stream;
mod vsock;

pub use contract::{Arrived, Endpoint, Launch, Lends, Mechanism, Operation, Shape, Steps, Ticket, Unnoted};
pub use names::noted;
pub use table::Visitor;
