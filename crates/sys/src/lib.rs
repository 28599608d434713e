//! What ipcmark needs of the kernel and the processor and no safe library offers.
//!
//! This is the only crate with `unsafe`. Each file has one facility, and each wrapper names its manual page. There
//! are no wrappers of what `rustix` offers safely: users call that directly.

pub mod accounting;
pub mod address;
pub mod allocator;
pub mod anonymous;
pub mod bpf;
pub mod bpf_assembler;
pub mod bpf_count;
pub mod bpf_iterator;
pub mod bpf_redirect;
pub mod busy;
pub mod byte_queue;
pub mod cold;
pub mod delay;
pub mod epoll_entry;
pub mod failure;
pub mod fork;
pub mod inherited;
mod libc_call;
pub mod link;
pub mod name;
pub mod page_pool;
pub mod perf_event;
pub mod personality;
pub mod posix_mq;
pub mod posix_sync;
pub mod process;
pub mod process_vm;
mod ptrace;
pub mod record_lock;
pub mod ring;
pub mod sealed;
pub mod seccomp;
pub mod seccomp_listener;
pub mod segment;
pub mod send_completion;
pub mod shared_memory;
pub mod shared_slots;
pub mod side;
pub mod signal;
pub mod socket_option;
pub mod speed;
pub mod sysctl;
pub mod sysv;
pub mod touch;
pub mod tracee;
pub mod tracees;
pub mod tsc;
pub mod tun;
pub mod uring;
pub mod usage;
pub mod vsock;

pub use failure::{Failure, OrFail};
pub use rustix::io::Errno;
