//! The mechanisms and operations: one file each, and the table that names them.
//!
//! No mechanism sees a clock, a statistic or the command line. To add one, write its file, its `mod`
//! line below and its line in `table.rs`; ARCHITECTURE.md walks through it.
#![forbid(unsafe_code)]

pub mod absent;
mod backing;
mod coded;
mod connecting;
mod connection;
mod contract;
mod descriptor;
mod fd_message;
mod inet_stream;
mod names;
mod passed;
pub mod registry;
mod sleeper;
mod socket;
mod unix_name;
mod uring;
mod wake;
mod zero_copy;

mod cache_line;
mod clock_gettime;
mod context_switch;
mod create;
mod eventfd;
mod fd_pass;
mod fifo;
mod file_pass;
mod futex;
mod getrusage;
mod gettimeofday;
mod kill_self;
mod lock;
mod memcpy;
mod memfd_pass;
mod memory;
mod mmap;
mod mptcp;
mod mutex_cond;
mod null;
mod pidfd_signal;
mod pipe;
mod pipe_splice;
mod pipe_uring;
mod pipe_vmsplice;
mod posix_mq;
mod posix_sem;
mod process;
mod process_vm;
mod pty;
mod sctp;
mod semop;
mod shm;
mod shm_queue;
mod shm_ring;
mod signal;
mod signalfd;
mod sigqueue;
mod sleep;
mod syscall;
mod sysv_msg;
mod sysv_sem;
mod tcp;
mod tcp_sendfile;
mod tcp_uring;
mod tcp_uring_zc;
mod tcp_vmsplice;
mod tcp_zerocopy;
mod tee;
mod times;
mod tipc;
mod tsc;
mod udp;
mod udp_gso;
mod udp_unacked;
mod unix_dgram;
mod unix_seqpacket;
mod unix_stream;
mod unix_stream_uring;
mod uring_msg;
mod vsock;

pub use contract::{
    Arrived, Endpoint, InPlace, Mechanism, Operation, Shape, Steps, Ticket, Timer, TrialContext, Unnoted,
};
pub use names::noted;
pub use registry::Visitor;
// For the test of the rule by which memory is lent again, which takes rows with and without it.
pub use connection::Connected;
pub use pipe_splice::PipeSplice;
pub use pipe_vmsplice::PipeVmsplice;
pub use tcp_sendfile::TcpSendfile;
pub use tcp_vmsplice::TcpVmsplice;
pub use tcp_zerocopy::TcpZerocopy;
pub use tee::Tee;
pub use zero_copy::{AtOnce, OverPipes, OverTcp};
