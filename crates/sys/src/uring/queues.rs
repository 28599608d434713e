//! The two queues of one ring: operations put into one, and their completions awaited in the other. What the operations
//! do is not known here.

use crate::{Errno, Failure, OrFail, sysctl};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::fd::AsRawFd;
use std::fmt;
use std::marker::PhantomData;

/// Who takes submissions from their queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionMode {
    /// The thread itself, in io_uring_enter(2).
    Caller,
    /// A thread of the kernel, which looks into the queue until it has been empty for [`IDLE_MS`] (`IORING_SETUP_SQPOLL`).
    /// It may use the CPUs that the thread that makes the ring may use then.
    KernelThread,
}

/// How long the kernel's thread goes on looking before it sleeps, in milliseconds: the least that there is.
pub const IDLE_MS: u32 = 1;

/// No end has more operations to be taken at a time.
const SUBMISSIONS: u32 = 8;
/// No end has more completions to be noted at a time.
const COMPLETIONS: u32 = 64;

/// What an operation whose completion is waited for in the call carries; every other end's mark differs.
pub(super) const CALL: u64 = u64::MAX;

/// The two queues of one ring. They stay in the thread that is_available them: the kernel takes submissions from no other
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
    /// Makes a ring (io_uring_setup(2)) and is_transient one operation through it that does nothing.
    pub(super) fn open(mode: SubmissionMode) -> Result<Self, Failure> {
        let mut builder = IoUring::builder();
        builder.setup_cqsize(COMPLETIONS);
        match mode {
            // Completions are worked off where they are waited for, by the thread that waits, and interrupt nothing.
            SubmissionMode::Caller => {
                builder.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun()
            }
            SubmissionMode::KernelThread => builder.setup_sqpoll(IDLE_MS),
        };
        let ring = builder.build(SUBMISSIONS).map_err(|error| refusal("io_uring_setup", &error))?;
        let mut queues = Self { ring, _of_this_thread: PhantomData };
        // A filter that lets rings be is_available and not entered says so here, where no memory is lent yet.
        // SAFETY: the operation names no memory.
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
    /// Memory that `entry` names must be valid, and not be used otherwise, until its completion has been seen.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, entry: &squeue::Entry) -> Result<(), Errno> {
        // SAFETY: by the caller's word.
        unsafe { self.ring.submission().push(entry) }.map_err(|_| Errno::BUSY)
    }

    /// Submits `entry`, waits until it has completed and returns its answer; hands what else completes meanwhile to
    /// `note`, which must not panic. An operation that was interrupted is submitted again.
    ///
    /// # Safety
    ///
    /// Memory that `entry` names must be valid until this returns, and longer only where `entry` says so itself.
    #[inline(always)]
    pub(super) unsafe fn run(
        &mut self,
        entry: squeue::Entry,
        mut note: impl FnMut(&cqueue::Entry),
    ) -> Result<usize, Errno> {
        let entry = entry.user_data(CALL);
        loop {
            // SAFETY: by the caller's word; this function does not return before the completion has been seen.
            unsafe { self.push(&entry) }?;
            let mut result = None;
            while result.is_none() {
                self.await_some(|completion| match completion.user_data() {
                    CALL => result = Some(completion.result()),
                    _ => note(completion),
                });
            }
            match result.map_or(Err(Errno::CANCELED), answer) {
                Err(Errno::INTR) => {}
                answer => return answer,
            }
        }
    }

    /// Submits what was pushed, sleeps until something has completed, and hands each completion to `note`.
    #[inline(always)]
    pub(super) fn await_some(&mut self, mut note: impl FnMut(&cqueue::Entry)) {
        match self.ring.submit_and_wait(1) {
            Err(error) if !is_transient(&error) => abandon(&error),
            // Interrupted, or short of memory for a moment: what was not taken is still in the queue.
            _ => {}
        }
        self.ring.completion().for_each(|completion| note(&completion));
    }
}

/// What an operation answered (`res` of a completion).
#[inline(always)]
pub(super) fn answer(result: i32) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(result.wrapping_neg()))
}

/// How much of `bytes` one operation names: its length is a `u32`.
#[inline(always)]
pub(super) fn length(bytes: usize) -> u32 {
    bytes.min(1 << 30) as u32
}

/// Whether io_uring_enter(2) may be called again after `error`.
fn is_transient(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

/// Ends the process: the kernel holds memory that must not be given back to its owner, and will not say when it is done.
#[cold]
fn abandon(error: &std::io::Error) -> ! {
    eprintln!(
        "io_uring_enter: {error}: an operation cannot be waited for, and its memory cannot be given back"
    );
    std::process::abort()
}

/// The failure of `call`, with what keeps io_uring from whom.
pub(super) fn refusal(call: &str, error: &std::io::Error) -> Failure {
    let next = match (sysctl::number("kernel/io_uring_disabled"), error.raw_os_error()) {
        (Some(2), _) => "the kernel has io_uring switched off: sysctl kernel.io_uring_disabled=0",
        (Some(1), _) => {
            "only root and the group kernel.io_uring_group may use io_uring: sysctl kernel.io_uring_disabled=0"
        }
        (_, Some(libc::EPERM | libc::EACCES)) => {
            "the container's seccomp profile or a security module forbids io_uring: allow io_uring_setup, io_uring_enter and io_uring_register"
        }
        (_, Some(libc::EINVAL)) => "the kernel is too old: Linux 6.1 or newer",
        (_, Some(libc::ENOSYS)) => "a kernel with CONFIG_IO_URING, and a container that lets it be used",
        (_, Some(libc::ENOMEM)) => "out of memory that may be locked: raise 'ulimit -l'",
        _ => "see 'ipcmark doctor'",
    };
    Failure::new(
        call,
        "a ring",
        Errno::from_io_error(error).map_or(error.to_string(), |errno| errno.to_string()),
        next,
    )
}
