//! What a recorder takes from the kernel, by programs, by tracepoints or by ptrace: one event of one thread.

use super::described::DescribedFile;
use super::thread::{Entered, ThreadTotals};

/// Something that a thread did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawEvent {
    /// When, by `CLOCK_MONOTONIC`.
    pub(super) at_ns: u64,
    /// The process.
    pub(super) pid: u32,
    /// The thread.
    pub(super) tid: u32,
    /// The logical CPU on which it did it, where that is known.
    pub(super) cpu: Option<u32>,
    /// What the thread had done until then, where the kernel has counted it: then there are no events of its switches.
    pub(super) totals: Option<ThreadTotals>,
    pub(super) what: RawKind,
}

/// A system call that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawCall {
    pub(super) entered: Entered,
    /// What it returned.
    pub(super) value: i64,
    /// The thread's CPU time and sleep by then.
    pub(super) cpu_ns: u64,
    pub(super) asleep_ns: u64,
}

/// What it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RawKind {
    /// It began a system call.
    Enter { number: u32, arguments: [u64; 4] },
    /// A system call ended.
    Exit { number: u32, value: i64 },
    /// The same in one: a call that has ended, with all that was known when it began.
    Call(RawCall),
    /// A call has begun of which there will be a [`RawKind::Call`] too: another process may answer before that.
    Begins(Entered),
    /// It uses a file, by where the kernel has it, that is this from now on.
    File { file: u64, is: DescribedFile },
    /// Nothing but its totals.
    Counted,
    /// It left its CPU.
    Off { preempted: bool },
    /// It came back.
    On,
    /// It made a thread, or a process.
    Fork { pid: u32, tid: u32 },
    /// It became another program.
    Exec { name: String },
    /// It ended.
    End,
}
