//! A thread that is recorded: the call that it is in, and its CPU time and sleep so far. What calls mean is in `assembly`.

/// A thread.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Thread {
    pub(super) pid: u32,
    /// The logical CPU of its last event.
    pub(super) on_cpu: Option<u32>,
    pub(super) entered: Option<Entered>,
    pub(super) on_since: Option<u64>,
    pub(super) off_since: Option<u64>,
    pub(super) cpu_ns: u64,
    pub(super) asleep_ns: u64,
}

/// A call that has begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entered {
    pub(super) number: u32,
    pub(super) arguments: [u64; 4],
    pub(super) at_ns: u64,
    pub(super) cpu_ns: u64,
    pub(super) asleep_ns: u64,
}

impl Thread {
    /// Its CPU time up to `at_ns`.
    pub(super) fn cpu(&self, at_ns: u64) -> u64 {
        self.cpu_ns + self.on_since.map_or(0, |since| at_ns.saturating_sub(since))
    }
}
