//! What happens when: events in the order of simulated time, and of their making where they are at the same time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens to a process or to a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The thread of a process has used the CPU for as long as it wanted to, or was allowed to.
    BurstEnds(usize),
    /// A thread that was woken begins.
    Begins(usize),
    /// The time for which an activity of a process slept is over.
    Due(usize, usize),
    /// The next message of a stream is there.
    Arrives(usize),
}

/// The events to come.
#[derive(Debug, Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    made: u64,
}

impl Events {
    /// `event` will happen at `at_ns`.
    pub(super) fn add(&mut self, at_ns: u64, event: Event) {
        self.made += 1;
        self.heap.push(Reverse((at_ns, self.made, event)));
    }

    /// The next one with its time.
    pub(super) fn next(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((at_ns, _, event))| (at_ns, event))
    }
}
