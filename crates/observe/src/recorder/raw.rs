//! What a recorder takes from the kernel, by tracepoints or by ptrace: one event of one thread.

/// Something that a thread did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawEvent {
    /// When, by `CLOCK_MONOTONIC_RAW`.
    pub(super) at_ns: u64,
    /// The process.
    pub(super) pid: u32,
    /// The thread.
    pub(super) tid: u32,
    /// The logical CPU on which it did it, where that is known.
    pub(super) cpu: Option<u32>,
    pub(super) what: RawKind,
}

/// What it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RawKind {
    /// It began a system call.
    Enter { number: u32, arguments: [u64; 4] },
    /// A system call ended.
    Exit { number: u32, value: i64 },
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
