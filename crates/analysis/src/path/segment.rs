//! The segments of a critical path: where on the path the time between two moments lies.
//!
//! How the path is found is in `walk`.

use model::endpoint::EndpointRole;
use model::observation::EventSet;
use serde::Serialize;

/// What a segment of the path is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentKind {
    /// Code of the program.
    User,
    /// Code of the program or of the kernel for it: system calls were not recorded.
    Running,
    /// A call that neither wakes the peer nor sleeps.
    WholeCall,
    /// A call until it wakes the peer.
    UntilWaking,
    /// A call from the waking of the peer to its return.
    AfterWaking,
    /// A call until its thread gives the CPU away.
    UntilSleep,
    /// A call from the switch back to its thread until it returns.
    AfterSleep,
    /// Calls that found nothing yet, and the code between them.
    Polling,
    /// From a page fault until the next event of the thread.
    PageFault,
    /// An interrupt.
    Interrupt,
    /// A softirq.
    Softirq {
        /// Which, by the kernel's number.
        vector: u32,
    },
    /// From the waking until the idle CPU of the woken thread has come out of idle.
    IdleExit,
    /// From there until the switch to the woken thread.
    IdleToSwitch,
    /// From the waking to the switch, where no more of it was recorded.
    WakeUp,
    /// The server serves other clients while a request waits for it, or while the client that it has answered waits for its CPU.
    OtherRequests,
    /// The thread could run, and another client has its CPU.
    OtherClient,
    /// The thread could run, and a task that is no endpoint has its CPU.
    OtherTask,
    /// The thread sleeps until something that is no endpoint wakes it: a timer, a device, another task.
    Asleep,
    /// What ran was not recorded.
    NotRecorded,
}

/// Where on the path a segment lies: what it is spent on, for which endpoint, and in which call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SegmentPlace {
    /// Whose it is. Of a waking: who is woken.
    pub of: EndpointRole,
    /// What it is spent on.
    pub kind: SegmentKind,
    /// The number of the call that the thread is in.
    pub call: Option<u32>,
}

impl SegmentPlace {
    /// In words. `call` names a system call by its number.
    pub fn name(self, call: impl Fn(u32) -> String) -> String {
        let call = self.call.map_or_else(|| "call".to_owned(), call);
        format!("{}: {}", self.of.name(), self.kind.name(self.of, &call))
    }

    /// The same without its call, by which places of two mechanisms with different calls are matched.
    pub fn without_call(self) -> Self {
        Self { call: None, ..self }
    }
}

impl SegmentKind {
    /// In words, of the endpoint `of`, in the call named `call`.
    pub fn name(self, of: EndpointRole, call: &str) -> String {
        let peer = of.other().name();
        match self {
            SegmentKind::User => "user code".to_owned(),
            SegmentKind::Running => "user code and calls".to_owned(),
            SegmentKind::WholeCall => call.to_owned(),
            SegmentKind::UntilWaking => format!("{call} until it wakes the {peer}"),
            SegmentKind::AfterWaking => format!("{call} after it woke the {peer}"),
            SegmentKind::UntilSleep => format!("{call} until it sleeps"),
            SegmentKind::AfterSleep => format!("switch, and return from {call}"),
            SegmentKind::Polling => "polling".to_owned(),
            SegmentKind::PageFault => "page fault, to the next event".to_owned(),
            SegmentKind::Interrupt => "interrupt".to_owned(),
            SegmentKind::Softirq { vector } => format!("softirq {}", softirq_name(vector)),
            SegmentKind::IdleExit => "woken, until its CPU leaves idle".to_owned(),
            SegmentKind::IdleToSwitch => "woken, from idle to the switch".to_owned(),
            SegmentKind::WakeUp => "woken, until the switch".to_owned(),
            SegmentKind::OtherRequests => "requests of other clients".to_owned(),
            SegmentKind::OtherClient => "another client has its CPU".to_owned(),
            SegmentKind::OtherTask => "another task has its CPU".to_owned(),
            SegmentKind::Asleep => "asleep, woken by no endpoint".to_owned(),
            SegmentKind::NotRecorded => "not recorded".to_owned(),
        }
    }

    /// The endpoint's own thread runs code of the kernel for a call.
    pub fn is_in_call(self) -> bool {
        use SegmentKind::{AfterSleep, AfterWaking, UntilSleep, UntilWaking, WholeCall};
        matches!(self, WholeCall | UntilWaking | AfterWaking | UntilSleep | AfterSleep)
    }

    /// It is on the way from a waking to the switch.
    pub fn is_wake_up(self) -> bool {
        matches!(self, SegmentKind::IdleExit | SegmentKind::IdleToSwitch | SegmentKind::WakeUp)
    }

    /// Something else had the CPU: it is no cost of the mechanism.
    pub fn is_disturbance(self) -> bool {
        matches!(self, SegmentKind::OtherTask | SegmentKind::Interrupt)
    }
}

/// The kernel's name of a softirq (`include/linux/interrupt.h`).
fn softirq_name(vector: u32) -> String {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    NAMES.get(vector as usize).map_or_else(|| vector.to_string(), |name| (*name).to_owned())
}

/// How many events of each set there were, in the order of [`EventSet::ALL`].
pub type EventCounts = [u64; EventSet::ALL.len()];

/// The place of `set` in [`EventSet::ALL`].
pub(super) fn place_of(set: EventSet) -> usize {
    EventSet::ALL.iter().position(|of| *of == set).unwrap_or_default()
}

/// A piece of the path from one moment to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// Where it lies.
    pub place: SegmentPlace,
    /// When it begins.
    pub from_ns: u64,
    /// When it ends.
    pub until_ns: u64,
    /// The events whose recording took time in it.
    pub events: EventCounts,
    /// The task that had the CPU, of [`SegmentKind::OtherTask`], or that woke the thread, of [`SegmentKind::Asleep`].
    pub task: Option<u32>,
}

impl Segment {
    /// How long it is.
    pub fn ns(&self) -> u64 {
        self.until_ns - self.from_ns
    }
}

/// The path of one iteration: its segments in the order of time, each beginning where the one before it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CriticalPath {
    /// When the iteration began.
    pub from_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    /// Its segments, which fill the time between.
    pub segments: Vec<Segment>,
    /// Whether it is known throughout whom the server served; of one client it always is.
    pub is_followed: bool,
}

impl CriticalPath {
    /// How long the iteration took.
    pub fn ns(&self) -> u64 {
        self.until_ns - self.from_ns
    }
}
