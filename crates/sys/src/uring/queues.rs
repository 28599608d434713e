//! The two queues of one ring: operations go into one, and their completions come from the other. What the operations
//! do is not known here.

use crate::failure::UNUSUAL;
use crate::{Errno, Failure, OrFail, sysctl};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::fd::AsRawFd;
use std::fmt;
use std::marker::PhantomData;

/// Who takes submissions from the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionMode {
    /// The thread itself, in io_uring_enter(2).
    Caller,
    /// A thread of the kernel, which polls the queue until it has been empty for [`IDLE_MS`] (`IORING_SETUP_SQPOLL`).
    /// It may use the CPUs that the thread may use which makes the ring, at that moment.
    KernelThread,
}

/// How long the kernel's thread polls an empty queue before it sleeps, in milliseconds: the least possible value.
pub const IDLE_MS: u32 = 1;

/// The size of the submission queue. No endpoint has more operations in it at a time.
const SUBMISSIONS: u32 = 8;
/// The size of the completion queue. No endpoint has more completions in it at a time.
const COMPLETIONS: u32 = 64;

/// The user data of an operation whose completion the call awaits. All other user data differ.
pub(super) const CALL: u64 = u64::MAX;

/// How often in a row an operation is begun again that the kernel has cancelled. Where it cannot have a thread at all, this ends.
const MOST_CANCELLED: u32 = 1000;

/// The two queues of one ring. They stay in the thread that made them: the kernel takes submissions from no other
/// (`IORING_SETUP_SINGLE_ISSUER`).
pub(super) struct Queues {
    pub(super) ring: IoUring,
    _of_this_thread: PhantomData<*const ()>,
}

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queues").field("descriptor", &self.ring.as_raw_fd()).finish_non_exhaustive()
    }
}

impl Queues {
    /// Makes a ring (io_uring_setup(2)), and runs one operation that does nothing.
    pub(super) fn open(mode: SubmissionMode) -> Result<Self, Failure> {
        let mut builder = IoUring::builder();
        builder.setup_cqsize(COMPLETIONS);
        match mode {
            // The thread that awaits completions does the work for them, when it awaits them, and is not interrupted.
            SubmissionMode::Caller => {
                builder.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun()
            }
            SubmissionMode::KernelThread => builder.setup_sqpoll(IDLE_MS),
        };
        let ring = builder.build(SUBMISSIONS).map_err(|error| refusal("io_uring_setup", &error))?;
        let mut queues = Self { ring, _of_this_thread: PhantomData };
        // If a seccomp filter allows to make rings but not to enter them, it shows here, where no operation names
        // memory. SAFETY: the operation names no memory.
        unsafe { queues.push(&opcode::Nop::new().build()) }.or_fail("push", "an operation")?;
        while queues.ring.completion().next().is_none() {
            match queues.ring.submit_and_wait(1) {
                Err(error) if !is_transient(&error) => return Err(refusal("io_uring_enter", &error)),
                _ => {}
            }
        }
        Ok(queues)
    }

    /// Puts `entry` into the submission queue.
    ///
    /// # Safety
    ///
    /// Memory that `entry` names must be valid, and nobody else may use it, until its completion has arrived.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, entry: &squeue::Entry) -> Result<(), Errno> {
        // SAFETY: by contract.
        unsafe { self.ring.submission().push(entry) }.map_err(|_| Errno::BUSY)
    }

    /// Submits `entry`, waits until it has completed and returns its result. Calls `note`, which must not panic, for
    /// each other operation that completes meanwhile. Submits an operation again that was interrupted.
    ///
    /// # Safety
    ///
    /// Memory that `entry` names must be valid until this returns, and longer only if the operation itself goes on
    /// longer.
    #[inline(always)]
    pub(super) unsafe fn run(
        &mut self,
        entry: squeue::Entry,
        mut note: impl FnMut(&cqueue::Entry),
    ) -> Result<usize, Errno> {
        let entry = entry.user_data(CALL);
        let mut cancelled = 0;
        loop {
            // SAFETY: by contract. This function does not return before the completion has arrived.
            unsafe { self.push(&entry) }?;
            let mut result = None;
            while result.is_none() {
                self.await_some(|completion| match completion.user_data() {
                    CALL => result = Some(completion.result()),
                    _ => note(completion),
                });
            }
            match result.map_or(Err(Errno::CANCELED), operation_result) {
                Err(Errno::INTR) => {}
                // Nothing here cancels an operation. Kernels before 6.4 let a thread of their own wait for a pipe, and cancel what has
                // not begun when signals keep them from starting that thread.
                Err(Errno::CANCELED) if cancelled < MOST_CANCELLED => cancelled += 1,
                result => return result,
            }
        }
    }

    /// Submits what was pushed, sleeps until something has completed, and calls `note` for each completion.
    #[inline(always)]
    pub(super) fn await_some(&mut self, mut note: impl FnMut(&cqueue::Entry)) {
        match self.ring.submit_and_wait(1) {
            Err(error) if !is_transient(&error) => abandon(&error),
            // Interrupted, or short of memory for a moment: what the kernel did not take is still in the queue.
            _ => {}
        }
        self.ring.completion().for_each(|completion| note(&completion));
    }
}

/// The result of an operation (`res` of a completion).
#[inline(always)]
pub(super) fn operation_result(result: i32) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(result.wrapping_neg()))
}

/// How many of `bytes` one operation names: its length is a `u32`.
#[inline(always)]
pub(super) fn length(bytes: usize) -> u32 {
    bytes.min(1 << 30) as u32
}

/// Whether io_uring_enter(2) may be called again after `error`.
fn is_transient(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

/// Ends the process: the kernel holds memory that must not go back to its owner, and will not say when it is done.
#[cold]
fn abandon(error: &std::io::Error) -> ! {
    eprintln!(
        "io_uring_enter: {error}: cannot wait for an operation, so that its memory cannot be used again"
    );
    std::process::abort()
}

/// The failure of `call`, with what probably forbids io_uring.
pub(super) fn refusal(call: &str, error: &std::io::Error) -> Failure {
    let next = match (sysctl::number("kernel/io_uring_disabled"), error.raw_os_error()) {
        (Some(2), _) => "the kernel has io_uring switched off: sysctl kernel.io_uring_disabled=0",
        (Some(1), _) => {
            "only root and the group kernel.io_uring_group may use io_uring: sysctl kernel.io_uring_disabled=0"
        }
        (_, Some(libc::EPERM | libc::EACCES)) => {
            "the container's seccomp profile or a security module forbids io_uring: allow io_uring_setup, io_uring_enter and io_uring_register"
        }
        (_, Some(libc::EOPNOTSUPP)) => {
            "the kernel, or its sandbox, has io_uring switched off: take a mechanism without it"
        }
        (_, Some(libc::EINVAL)) => "the kernel is too old: use Linux 6.1 or newer",
        (_, Some(libc::ENOSYS)) => "use a kernel with CONFIG_IO_URING, and a container that allows it",
        (_, Some(libc::ENOMEM)) => "out of memory that may be locked: raise 'ulimit -l'",
        _ => UNUSUAL,
    };
    Failure::new(
        call,
        "a ring",
        Errno::from_io_error(error).map_or(error.to_string(), |errno| errno.to_string()),
        next,
    )
}
