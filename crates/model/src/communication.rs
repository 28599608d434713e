//! What a recorder of system calls has of processes that communicate: the processes, the kernel objects between them, and
//! each call that used one. `analysis` makes a scenario of it. It has no bytes of any message.

use std::collections::{BTreeMap, BTreeSet};

/// Some time of processes that communicate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Communication {
    /// When the recording began, by `CLOCK_MONOTONIC`.
    pub from_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    /// Whether CPU time and sleep are known from switches. Without them, a call sleeps as long as it takes.
    pub has_switches: bool,
    /// What the calls have between them though a thread did nothing.
    pub between_calls: BetweenCalls,
    /// The processes, recorded or not.
    pub processes: Vec<CommunicatingProcess>,
    /// What they communicate through.
    pub objects: Vec<KernelObject>,
    /// The calls, in the order in which they ended.
    pub calls: Vec<CommunicationCall>,
    /// What could not be recorded, a sentence each.
    pub unseen: Vec<String>,
}

/// CPU time that lies between two recorded calls of a thread that does nothing between them: for recording them, and for the kernel's
/// way out of one call and into the next, which a message costs anyway.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BetweenCalls {
    /// After a call in which the thread slept.
    pub after_sleep_ns: u64,
    /// After another one.
    pub awake_ns: u64,
}

/// A process.
#[derive(Debug, Clone, PartialEq)]
pub struct CommunicatingProcess {
    /// What it is called: its command, or an address.
    pub name: String,
    /// Its threads by their numbers, those that ended too.
    pub threads: BTreeMap<u32, CommunicatingThread>,
    /// Whether it was not recorded, and is known as the other side of an object only.
    pub outside: bool,
}

impl CommunicatingProcess {
    /// One that is recorded, and has done nothing yet.
    pub fn new(name: String) -> Self {
        Self { name, threads: BTreeMap::new(), outside: false }
    }

    /// Its thread `tid`, which has done nothing yet if it is new.
    pub fn thread(&mut self, tid: u32) -> &mut CommunicatingThread {
        self.threads.entry(tid).or_default()
    }

    /// Forgets what its threads have done.
    pub fn forget(&mut self) {
        self.threads.values_mut().for_each(|thread| (thread.cpu_ns, thread.switches) = (0, 0));
    }

    /// CPU time of its threads while it was recorded.
    pub fn cpu_ns(&self) -> u64 {
        self.threads.values().map(|thread| thread.cpu_ns).sum()
    }

    /// How often its threads left a CPU.
    pub fn switches(&self) -> u64 {
        self.threads.values().map(|thread| thread.switches).sum()
    }

    /// The logical CPUs to which its threads were held at last, ascending; none where one of them may run on any.
    pub fn cpus(&self) -> Vec<u32> {
        if self.threads.values().any(|thread| thread.cpus.is_empty()) {
            return Vec::new();
        }
        let cpus: BTreeSet<u32> = self.threads.values().flat_map(|thread| &thread.cpus).copied().collect();
        cpus.into_iter().collect()
    }
}

/// A thread of a process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommunicatingThread {
    /// Its CPU time while it was recorded.
    pub cpu_ns: u64,
    /// How often it left a CPU.
    pub switches: u64,
    /// The logical CPUs to which it was held at last; any where there are none.
    pub cpus: Vec<u32>,
}

/// What the kernel keeps between processes: a pipe, two sockets, a queue. It has two sides; what is sent from one is
/// received on the other. What goes one way only is sent from side 0.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelObject {
    /// The mechanism, with its parameters as after `-m`. `None` if ipcmark has none like it.
    pub mechanism: Option<String>,
    /// What it is, for people.
    pub name: String,
    /// What happens to message boundaries.
    pub boundaries: Boundaries,
    /// The side that was called, where that is known: the one that accepted.
    pub server_side: Option<u8>,
    /// Processes that were not recorded and have a side, as indices: of side 0, and of side 1.
    pub outside: [Option<u32>; 2],
}

/// What happens to the boundaries of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundaries {
    /// Bytes: a read takes what there is.
    None,
    /// A read takes one message.
    Kept,
    /// A read takes all that came.
    Counted,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommunicationKind {
    /// It sends.
    Send,
    /// It receives.
    Receive,
    /// It waits until one of several objects is ready, or for some time.
    Wait,
}

/// A call that sends, receives or waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommunicationCall {
    /// Which process, as an index.
    pub process: u32,
    /// Its thread.
    pub tid: u32,
    /// What it does.
    pub kind: CommunicationKind,
    /// Which object, as an index, and from which side of it; none of a wait.
    pub object: Option<(u32, u8)>,
    /// When it began.
    pub from_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    /// The logical CPU on which it ended, where that is known.
    pub cpu: Option<u32>,
    /// For how long the thread slept in it.
    pub asleep_ns: u64,
    /// CPU time of the thread until it began, from any moment on.
    pub cpu_from_ns: u64,
    /// The same until it ended.
    pub cpu_until_ns: u64,
    /// Time that the thread slept until it began, from any moment on.
    pub slept_from_ns: u64,
    /// What was sent or received; `None` if nothing was: the end of a stream, or a call that failed.
    pub bytes: Option<u64>,
    /// How much it asked for, where that is known.
    pub asked: Option<u64>,
}

impl Communication {
    /// How long it was recorded, in seconds.
    pub fn seconds(&self) -> f64 {
        self.until_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }
}

/// Some milliseconds of processes, recorded or not, for what recording costs them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordingStretch {
    /// Whether events were recorded.
    pub recorded: bool,
    /// How long it was.
    pub ns: u64,
    /// How far the processes came in it.
    pub progress: RecordedProgress,
}

/// How far processes have come, told by what the kernel counts of their threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedProgress {
    /// Context switches.
    pub switches: u64,
    /// What was sent through sockets, where that is counted.
    pub sends: u64,
}

impl RecordedProgress {
    /// What has come since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            switches: self.switches.saturating_sub(before.switches),
            sends: self.sends.saturating_sub(before.sends),
        }
    }
}

/// How far processes came in each of `stretches`: what they sent, if they send for a quarter of their switches at the least. Recording changes
/// how often a message has a switch.
pub fn progress(stretches: &[RecordingStretch]) -> impl Iterator<Item = u64> {
    /// So many switches for a message are a program that says most through something else.
    const MOST_SWITCHES: u64 = 4;
    let sum = |of: fn(&RecordedProgress) -> u64| stretches.iter().map(|one| of(&one.progress)).sum::<u64>();
    let by_sends = MOST_SWITCHES * sum(|progress| progress.sends) >= sum(|progress| progress.switches);
    stretches.iter().map(move |one| if by_sends { one.progress.sends } else { one.progress.switches })
}
