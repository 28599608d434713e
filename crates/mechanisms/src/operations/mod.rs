//! The operations: primitives that need no peer. One file each.

pub(crate) mod clock_gettime;
pub(crate) mod create;
pub(crate) mod fd_pass;
pub(crate) mod getrusage;
pub(crate) mod gettimeofday;
pub(crate) mod kill_self;
pub(crate) mod lock;
pub(crate) mod memcpy;
pub(crate) mod memory;
pub(crate) mod mmap;
pub(crate) mod process;
pub(crate) mod semop;
pub(crate) mod shm;
pub(crate) mod sleep;
pub(crate) mod syscall;
pub(crate) mod times;
pub(crate) mod tsc;
