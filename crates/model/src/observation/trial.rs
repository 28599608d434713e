//! What a probe observed of one trial: what each endpoint did in the timed iterations.
//!
//! These are facts in the order in which the kernel reported them. What they mean is worked out in `analysis`.

use crate::fact::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a probe observed of the timed iterations of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// How many iterations there were.
    pub iterations: u64,
    /// What the client's clock said that they took.
    pub elapsed_ns: f64,
    /// When each iteration ended, by `CLOCK_MONOTONIC_RAW`, as all times here; only of a timeline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iteration_ends_ns: Vec<u64>,
    /// What the client did.
    pub client: EndpointObservation,
    /// What the server did; operations have no server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<EndpointObservation>,
}

impl Observation {
    /// Both endpoints, the client first.
    pub fn endpoints(&self) -> impl Iterator<Item = &EndpointObservation> {
        std::iter::once(&self.client).chain(&self.server)
    }

    /// Nanoseconds per iteration.
    pub fn iteration_ns(&self) -> f64 {
        self.elapsed_ns / self.iterations as f64
    }

    /// Only the first `most` iterations, if it is known when they ended.
    pub fn first_iterations(mut self, most: usize) -> Self {
        let last = most.checked_sub(1).and_then(|last| self.iteration_ends_ns.get(last).copied());
        let (Some(first), Some(until_ns)) = (self.iteration_ends_ns.first().copied(), last) else {
            return self;
        };
        self.iteration_ends_ns.truncate(most);
        self.iterations = self.iteration_ends_ns.len() as u64;
        let from_ns = self.client.from_ns.min(first);
        self.elapsed_ns = until_ns.saturating_sub(from_ns).max(1) as f64;
        for end in std::iter::once(&mut self.client).chain(&mut self.server) {
            end.until_ns = until_ns.clamp(end.from_ns, end.until_ns);
            end.events.retain(|event| event.at_ns <= until_ns);
        }
        self
    }
}

/// What one endpoint did between its first timed iteration and its last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointObservation {
    /// The thread, as the kernel numbers it.
    pub tid: u32,
    /// When observation began.
    pub from_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    /// What was counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<Counter>,
    /// What happened, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EndpointEvent>,
    /// The names of the mappings that faults refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<String>,
    /// Where the processor was found, and how often.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<SampledStack>,
    /// What else was asked of the probe, and why it is not available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<String>,
    /// How many records were lost because the kernel's buffer was full.
    #[serde(default)]
    pub lost: u64,
}

impl EndpointObservation {
    /// Only what happened from `from_ns` to `until_ns`. A system call that only begins or only ends there is left out: it
    /// switches the probe on or off.
    pub fn between(mut self, from_ns: u64, until_ns: u64) -> Self {
        (self.from_ns, self.until_ns) = (from_ns, until_ns);
        self.events.retain(|event| (from_ns..=until_ns).contains(&event.at_ns));
        self.events.sort_by_key(|event| event.at_ns);
        let is_enter = |event: &EndpointEvent| matches!(event.what, EventKind::Enter { .. });
        let is_exit = |event: &EndpointEvent| matches!(event.what, EventKind::Exit { .. });
        let first_enter = self.events.iter().position(is_enter).unwrap_or(self.events.len());
        let last_exit = self.events.iter().rposition(is_exit);
        let mut at = 0;
        self.events.retain(|event| {
            let early = is_exit(event) && at < first_enter;
            let late = is_enter(event) && last_exit.is_none_or(|last| at > last);
            at += 1;
            !early && !late
        });
        self
    }
}

/// One counter of one endpoint over all timed iterations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counter {
    /// What is counted, such as `cycles:user`.
    pub name: String,
    /// How many there were, scaled up if the counter ran for part of the time only; or why it is not known.
    pub count: Fact<f64>,
    /// The part of the time in which the counter ran: below 1 where counters had to share.
    pub running: f64,
}

/// Something that happened to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointEvent {
    /// When, by `CLOCK_MONOTONIC_RAW`.
    #[serde(rename = "t")]
    pub at_ns: u64,
    /// What.
    #[serde(flatten)]
    pub what: EventKind,
}

/// What can happen to an endpoint. (The short names keep thousands of events small on their way.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "e")]
pub enum EventKind {
    /// A system call begins.
    #[serde(rename = "c")]
    Enter {
        /// Its number.
        #[serde(rename = "n")]
        number: u32,
        /// Its first argument: often a descriptor.
        #[serde(rename = "a")]
        first: u64,
        /// Its third argument: often a count of bytes.
        #[serde(rename = "b")]
        third: u64,
    },
    /// It ends.
    #[serde(rename = "r")]
    Exit {
        /// Its number.
        #[serde(rename = "n")]
        number: u32,
        /// What it returned; an error as a negative errno.
        #[serde(rename = "v")]
        value: i64,
    },
    /// The endpoint leaves its CPU.
    #[serde(rename = "o")]
    Off {
        /// It could still run: another thread was given the CPU.
        #[serde(rename = "p")]
        preempted: bool,
    },
    /// It has a CPU again.
    #[serde(rename = "i")]
    On {
        /// Which.
        #[serde(rename = "u")]
        cpu: u32,
    },
    /// It wakes another thread, or an interrupt that came while it ran does.
    #[serde(rename = "w")]
    Wakes {
        /// The thread that is woken.
        #[serde(rename = "k")]
        tid: u32,
        /// An interrupt does, which came while this endpoint ran.
        #[serde(rename = "q")]
        by_interrupt: bool,
    },
    /// A page fault.
    #[serde(rename = "f")]
    PageFault {
        /// Where.
        #[serde(rename = "d")]
        address: u64,
        /// It waits for a device.
        #[serde(rename = "j")]
        major: bool,
        /// The mapping, as an index into [`EndpointObservation::mappings`].
        #[serde(rename = "m")]
        mapping: u32,
    },
}

/// A place at which the processor was found, and the calls that led there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampledStack {
    /// From the outermost function to the innermost.
    pub frames: Vec<StackFrame>,
    /// How often.
    pub samples: u64,
}

/// A function in a stack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StackFrame {
    /// An address in the kernel that has no name yet.
    KernelAddress(u64),
    /// An address in a file that is mapped, which has no name yet.
    FileOffset {
        /// The file.
        path: String,
        /// Where in it.
        offset: u64,
    },
    /// A function of the kernel.
    Kernel(String),
    /// A function of a program or library.
    User(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_ns: u64, what: EventKind) -> EndpointEvent {
        EndpointEvent { at_ns, what }
    }

    #[test]
    fn the_observers_own_calls_are_left_out() {
        let enter = EventKind::Enter { number: 1, first: 3, third: 1 };
        let exit = EventKind::Exit { number: 1, value: 1 };
        let off = EventKind::Off { preempted: false };
        // Before the window; an exit whose beginning was not seen; a call; a sleep; a beginning whose end is not.
        let events = vec![
            event(5, enter),
            event(11, exit),
            event(20, enter),
            event(30, exit),
            event(35, off),
            event(40, enter),
            event(99, exit),
        ];
        let seen = EndpointObservation { events, ..EndpointObservation::default() }.between(10, 50);
        assert_eq!(seen.events, [event(20, enter), event(30, exit), event(35, off)]);
        assert_eq!((seen.from_ns, seen.until_ns), (10, 50));
        let nothing = EndpointObservation {
            events: vec![event(11, exit), event(12, enter)],
            ..EndpointObservation::default()
        };
        assert_eq!(nothing.between(10, 50).events, []);
    }

    #[test]
    fn the_first_iterations_end_with_the_last_of_them() {
        let off = EventKind::Off { preempted: false };
        let client = EndpointObservation {
            events: vec![event(10, off), event(20, off), event(30, off)],
            from_ns: 5,
            until_ns: 40,
            ..EndpointObservation::default()
        };
        let seen = Observation {
            iterations: 4,
            elapsed_ns: 35.0,
            iteration_ends_ns: vec![8, 15, 25, 40],
            client: client.clone(),
            server: Some(client),
        };
        let first = seen.clone().first_iterations(3);
        assert_eq!((first.iterations, first.iteration_ends_ns.as_slice()), (3, &[8, 15, 25][..]));
        for end in first.endpoints() {
            assert_eq!((end.until_ns, end.events.len()), (25, 2));
        }
        assert_eq!(seen.clone().first_iterations(4).client, seen.client);
        assert_eq!(seen.clone().first_iterations(5), seen);
    }
}
