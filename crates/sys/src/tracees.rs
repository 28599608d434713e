//! Following processes, their threads and all that they make through their system calls (ptrace(2)). They go on unharmed when
//! they are let go, and when the tracer dies.
//!
//! It is not for a thread that says itself at which calls it stops: that is `tracee`.

use crate::libc_call::checked;
use crate::ptrace::{
    self, PTRACE_DETACH, PTRACE_INTERRUPT, PTRACE_LISTEN, PTRACE_SEIZE, PTRACE_SYSCALL, StoppedCall,
    stopped_call,
};
use crate::{Errno, Failure, OrFail};

/// Why a thread has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadStop {
    /// It is about to make a system call.
    Entry {
        /// The call's number.
        number: u64,
        /// Its first arguments.
        arguments: [u64; 4],
    },
    /// A system call has ended.
    Exit {
        /// What it returned. An error is a negative errno.
        value: i64,
    },
    /// It has made a thread or a process, which is followed too.
    Made {
        /// Its id.
        tid: u32,
    },
    /// It has become another program.
    Exec,
    /// A signal is about to be delivered.
    Signal(i32),
    /// Its process is stopped, as by Ctrl-Z.
    Stopped,
    /// Nothing but that it has stopped.
    Other,
    /// It has ended.
    Ended,
}

/// How a stopped thread goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoOn {
    /// To its next system call, or to the end of the one that it is in.
    Followed,
    /// It stays stopped until its process goes on, and is followed then.
    Listening,
    /// Not followed any more.
    Free,
}

/// Begins to follow the thread `tid` and what it will make. It does not stop for that.
pub fn seize(tid: u32) -> Result<(), Failure> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC;
    request(tid, PTRACE_SEIZE, options as usize).or_fail("ptrace", format!("thread {tid}")).map_err(
        |failure| Failure {
            next: "trace a command or processes of your own, run as root, or allow it: sudo sysctl \
                   kernel.yama.ptrace_scope=0"
                .to_owned(),
            ..failure
        },
    )
}

/// Has the thread `tid` stop as soon as it can.
pub fn interrupt(tid: u32) -> Result<(), Errno> {
    request(tid, PTRACE_INTERRUPT, 0)
}

/// Has the stopped thread `tid` go on, with `signal` delivered to it if there is one.
pub fn go_on(tid: u32, how: GoOn, signal: Option<i32>) -> Result<(), Errno> {
    let signal = signal.unwrap_or(0).cast_unsigned() as usize;
    match how {
        GoOn::Followed => request(tid, PTRACE_SYSCALL, signal),
        GoOn::Listening => request(tid, PTRACE_LISTEN, 0),
        GoOn::Free => request(tid, PTRACE_DETACH, signal),
    }
}

/// The next followed thread that has stopped or ended, and why; `None` if none has. It does not wait. Children of the caller that
/// are not followed are reported when they end.
pub fn next_stop() -> Result<Option<(u32, ThreadStop)>, Errno> {
    let mut status = 0;
    // SAFETY: the status is valid for writes.
    let tid = checked(unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::WNOHANG) })?;
    if tid == 0 {
        return Ok(None);
    }
    let tid = tid.cast_unsigned();
    Ok(Some((tid, why(tid, status))))
}

/// Why `tid` has stopped, by its `status`. One that was killed meanwhile has no more to say.
fn why(tid: u32, status: i32) -> ThreadStop {
    if !libc::WIFSTOPPED(status) {
        return ThreadStop::Ended;
    }
    let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
    match event {
        0 if signal == libc::SIGTRAP | 0x80 => call(tid).unwrap_or(ThreadStop::Other),
        0 => ThreadStop::Signal(signal),
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            made(tid).map_or(ThreadStop::Other, |tid| ThreadStop::Made { tid })
        }
        libc::PTRACE_EVENT_EXEC => ThreadStop::Exec,
        libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => ThreadStop::Stopped,
        _ => ThreadStop::Other,
    }
}

/// The thread that `tid` has made.
fn made(tid: u32) -> Result<u32, Errno> {
    u32::try_from(ptrace::message(tid.cast_signed())?).map_err(|_| Errno::RANGE)
}

/// The call at which `tid` has stopped.
fn call(tid: u32) -> Result<ThreadStop, Errno> {
    Ok(match stopped_call(tid.cast_signed())? {
        StoppedCall::Entry { number, arguments: [a, b, c, d, ..] } => {
            ThreadStop::Entry { number, arguments: [a, b, c, d] }
        }
        StoppedCall::Exit { value } => ThreadStop::Exit { value },
        StoppedCall::None => ThreadStop::Other,
    })
}

fn request(tid: u32, request: u32, data: usize) -> Result<(), Errno> {
    ptrace::request(tid.cast_signed(), request, data)
}
