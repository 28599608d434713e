//! Following processes, their threads and all that they make through their system calls (ptrace(2)). They go on unharmed when
//! they are let go, and when the tracer dies.
//!
//! It is not for a thread that says itself at which calls it stops: that is `tracee`.

use crate::libc_call::checked;
use crate::{Errno, Failure, OrFail};
use std::mem::MaybeUninit;

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
    request(tid, libc::PTRACE_SEIZE, options as usize).or_fail("ptrace", format!("thread {tid}")).map_err(
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
    request(tid, libc::PTRACE_INTERRUPT, 0)
}

/// Has the stopped thread `tid` go on, with `signal` delivered to it if there is one.
pub fn go_on(tid: u32, how: GoOn, signal: Option<i32>) -> Result<(), Errno> {
    let signal = signal.unwrap_or(0).cast_unsigned() as usize;
    match how {
        GoOn::Followed => request(tid, libc::PTRACE_SYSCALL, signal),
        GoOn::Listening => request(tid, libc::PTRACE_LISTEN, 0),
        GoOn::Free => request(tid, libc::PTRACE_DETACH, signal),
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
            message(tid).map_or(ThreadStop::Other, |tid| ThreadStop::Made { tid })
        }
        libc::PTRACE_EVENT_EXEC => ThreadStop::Exec,
        libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => ThreadStop::Stopped,
        _ => ThreadStop::Other,
    }
}

/// What the stop of `tid` is about (`PTRACE_GETEVENTMSG`).
fn message(tid: u32) -> Result<u32, Errno> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one long, which is valid for writes.
    checked(unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid.cast_signed(), 0_usize, &raw mut message) })?;
    u32::try_from(message).map_err(|_| Errno::RANGE)
}

/// The call at which `tid` has stopped (`PTRACE_GET_SYSCALL_INFO`).
fn call(tid: u32) -> Result<ThreadStop, Errno> {
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    // SAFETY: the kernel writes at most as many bytes as the size says.
    checked(unsafe {
        libc::ptrace(
            libc::PTRACE_GET_SYSCALL_INFO,
            tid.cast_signed(),
            size_of::<libc::ptrace_syscall_info>(),
            info.as_mut_ptr(),
        )
    })?;
    // SAFETY: all zeros are valid, and the kernel wrote over them. `op` says which part of the union it wrote.
    unsafe {
        let info = info.assume_init();
        Ok(match info.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => {
                let [a, b, c, d, ..] = info.u.entry.args;
                ThreadStop::Entry { number: info.u.entry.nr, arguments: [a, b, c, d] }
            }
            libc::PTRACE_SYSCALL_INFO_EXIT => ThreadStop::Exit { value: info.u.exit.sval },
            _ => ThreadStop::Other,
        })
    }
}

fn request(tid: u32, request: libc::c_uint, data: usize) -> Result<(), Errno> {
    // SAFETY: none of the requests that this function makes reads or writes memory of this process.
    checked(unsafe { libc::ptrace(request, tid.cast_signed(), 0_usize, data) }).map(drop)
}
