//! A thread that is recorded: the call that it is in, and its CPU time and sleep so far. What calls mean is in `assembly`.

/// Which thread, and of which process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadId {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

impl ThreadId {
    /// The thread that asks.
    pub(super) fn own() -> Self {
        let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        Self { pid: std::process::id(), tid }
    }
}

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
    /// How many calls it has ended that may communicate.
    pub(super) ended: u64,
    /// What its process has been told of it, where the kernel counts.
    pub(super) counted: ThreadTotals,
}

/// What a thread has done since it is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ThreadTotals {
    pub(super) cpu_ns: u64,
    /// How often it left a CPU.
    pub(super) switches: u64,
}

/// What stands for how far a word lies from the beginning of a file, where it lies in memory that one process has.
pub(super) const PRIVATE_MEMORY: u64 = u64::MAX;

/// A call that has begun.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Entered {
    pub(super) number: u32,
    pub(super) arguments: [u64; 4],
    pub(super) at_ns: u64,
    pub(super) cpu_ns: u64,
    pub(super) asleep_ns: u64,
    /// The files that it uses, by where the kernel has them, where that is told: of the first descriptor among its arguments, or the word or
    /// what it made, and of the second. Of a word, the second is how far from the beginning of the file it lies.
    pub(super) files: [u64; 2],
}

impl Thread {
    /// Its CPU time up to `at_ns`.
    pub(super) fn cpu(&self, at_ns: u64) -> u64 {
        self.cpu_ns + self.on_since.map_or(0, |since| at_ns.saturating_sub(since))
    }
}

impl Entered {
    /// The call in which the thread `tid` is now, as /proc/TID/syscall says. One that runs is in none.
    pub(super) fn by(tid: u32, at_ns: u64) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{tid}/syscall")).ok()?;
        let mut words = text.split_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut arguments = [0; 4];
        for argument in &mut arguments {
            *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Self { number, arguments, at_ns, ..Self::default() })
    }
}
