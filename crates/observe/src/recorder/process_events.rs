//! What a recorder wants of the kernel's events of threads, by whatever they come, and events in the order of time.

use super::raw::RawEvent;
use model::communication::RecordedProgress;
use std::time::Duration;
use sys::Failure;

/// An event can be stamped so long before it can be read.
const LATE_NS: u64 = 1_000_000;

/// The events of threads and whatever they make.
pub(super) trait ProcessEvents {
    /// Switches the events of calls on or off.
    fn switch(&mut self, on: bool) -> Result<(), Failure>;

    /// How far the threads have come so far, recorded or not.
    fn progress(&mut self) -> Result<RecordedProgress, Failure>;

    /// Sleeps until there are urgent events, or for so long.
    fn wait(&self, longest: Duration);

    /// Reads out what was recorded, and hands over in the order of time what is older than anything that is still to come. After
    /// the `last` everything is.
    fn fetch(&mut self, last: bool, take: &mut dyn FnMut(RawEvent));

    /// Hands over what the kernel has counted of each thread until now, where it counts.
    fn count(&self, take: &mut dyn FnMut(RawEvent)) -> Result<(), Failure>;

    /// The CPU time that recording a call takes, about. What it really takes is measured while the program runs.
    fn call_cost(&self) -> Duration;

    /// What was lost, a sentence each, and how much of it.
    fn lost(&self) -> Vec<(&'static str, u64)>;
}

/// Events that were read and may be younger than some that were not.
#[derive(Debug, Default)]
pub(super) struct EventsInOrder(Vec<RawEvent>);

impl EventsInOrder {
    pub(super) fn push(&mut self, event: RawEvent) {
        self.0.push(event);
    }

    /// Hands over those that were made before `read_ns` by so much that none can be missing, or all, in order.
    pub(super) fn take_complete(&mut self, read_ns: u64, all: bool, take: &mut dyn FnMut(RawEvent)) {
        // Events of one CPU come in the order of time, but for few: this sort is quick.
        self.0.sort_by_key(|event| event.at_ns);
        let complete_ns = read_ns.saturating_sub(LATE_NS);
        let until =
            if all { self.0.len() } else { self.0.partition_point(|event| event.at_ns < complete_ns) };
        self.0.drain(..until).for_each(take);
    }
}
