//! Stopping a thread at its system calls (ptrace(2), seccomp(2)).
//!
//! The traced thread installs a filter that says at which calls it stops. The tracer takes each stop as it comes.
//! What a stop means to a probe is not known here.

use crate::libc_call::checked;
use crate::ptrace::{PTRACE_CONT, PTRACE_SEIZE, PTRACE_SYSCALL, StoppedCall, request, stopped_call};
use crate::{Errno, Failure, OrFail};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::collections::BTreeMap;

/// A thread that the calling thread traces.
#[derive(Debug)]
pub struct Tracee(libc::pid_t);

/// Why a thread has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceeStop {
    /// It is about to make a system call.
    Entry {
        /// The call's number.
        number: u64,
        /// Its arguments.
        arguments: [u64; 6],
    },
    /// A system call has ended.
    Exit {
        /// What it returned. An error is a negative errno.
        value: i64,
    },
    /// A signal is about to be delivered.
    Signal(i32),
    /// Another event. The thread needs nothing but to be resumed.
    Other,
    /// It has ended.
    Ended,
}

impl Tracee {
    /// Begins to trace the thread `tid` (`PTRACE_SEIZE`).
    pub fn seize(tid: u32) -> Result<Self, Failure> {
        let options = libc::PTRACE_O_TRACESECCOMP | libc::PTRACE_O_TRACESYSGOOD;
        let tracee = Self(tid.cast_signed());
        let seized = request(tracee.0, PTRACE_SEIZE, options as usize);
        seized.or_fail("ptrace", format!("thread {tid}"))?;
        Ok(tracee)
    }

    /// Sleeps until the thread stops, and returns why (waitpid(2)).
    pub fn next(&self) -> Result<TraceeStop, Errno> {
        let mut status = 0;
        let status_of = |status: &mut libc::c_int| {
            // SAFETY: the status is valid for writes.
            checked(unsafe { libc::waitpid(self.0, status, libc::__WALL) })
        };
        rustix::io::retry_on_intr(|| status_of(&mut status))?;
        if !libc::WIFSTOPPED(status) {
            return Ok(TraceeStop::Ended);
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        match (signal, event) {
            (libc::SIGTRAP, libc::PTRACE_EVENT_SECCOMP) => self.call(),
            (signal, _) if signal == libc::SIGTRAP | 0x80 => self.call(),
            (signal, 0) => Ok(TraceeStop::Signal(signal)),
            _ => Ok(TraceeStop::Other),
        }
    }

    /// Resumes it until its filter stops it again, and delivers `signal` if there is one.
    pub fn resume(&self, signal: Option<i32>) -> Result<(), Errno> {
        request(self.0, PTRACE_CONT, signal.unwrap_or(0).cast_unsigned() as usize)
    }

    /// Resumes it until the end of the call that it is in, and delivers `signal` if there is one.
    pub fn resume_to_exit(&self, signal: Option<i32>) -> Result<(), Errno> {
        request(self.0, PTRACE_SYSCALL, signal.unwrap_or(0).cast_unsigned() as usize)
    }

    /// The call at which it has stopped.
    fn call(&self) -> Result<TraceeStop, Errno> {
        Ok(match stopped_call(self.0)? {
            StoppedCall::Entry { number, arguments } => TraceeStop::Entry { number, arguments },
            StoppedCall::Exit { value } => TraceeStop::Exit { value },
            StoppedCall::None => TraceeStop::Other,
        })
    }
}

/// Makes the calling thread stop at each system call from now on, for its tracer. It does not stop at the two by
/// which ipcmark reads clocks and its own accounting. This cannot be undone: without a tracer every other call of the
/// thread fails.
pub fn stop_at_calls() -> Result<(), Failure> {
    let without_stop = [libc::SYS_clock_gettime, libc::SYS_getrusage];
    let filter = SeccompFilter::new(
        without_stop.into_iter().map(|number| (number, Vec::new())).collect::<BTreeMap<_, _>>(),
        SeccompAction::Trace(0),
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into().map_err(refusal)?,
    );
    let program: BpfProgram = filter.map_err(refusal)?.try_into().map_err(refusal)?;
    seccompiler::apply_filter(&program).map_err(refusal)
}

fn refusal(error: impl std::fmt::Display) -> Failure {
    Failure::new(
        "seccomp",
        "this thread",
        error.to_string(),
        "this kernel or container does not allow filters",
    )
}
