//! What notes the time of calls, steps, iterations and arrivals while a phase runs, and what those that note nothing do.
//!
//! Each kind is a type, so that a loop is compiled with what it has to note and nothing else. Memory is set aside before the
//! iterations. Nothing is sent or received here.

use crate::clock::{Clock, Stamp};
use crate::protocol::report::IterationTimes;
use mechanisms::{NoTrace, StepTrace};
use model::Histogram;
use model::record::{CallCounts, Each, StepSample};
use std::collections::BTreeMap;

/// What is noted of single calls. (It is no closure around the call, because the compiler may leave that out of line.)
pub(crate) trait Meter {
    /// What is known when a call begins.
    type Start;
    /// A call begins.
    fn start(&self) -> Self::Start;
    /// The call that began at `start` has returned `bytes`.
    fn end(&mut self, start: Self::Start, bytes: usize);
}

/// Notes nothing.
pub(crate) struct Unmetered;

impl Meter for Unmetered {
    type Start = ();

    #[inline(always)]
    fn start(&self) {}

    #[inline(always)]
    fn end(&mut self, _: (), _: usize) {}
}

/// Notes the time and the bytes of each call, in memory that was set aside before the iterations.
pub(crate) struct CallLog {
    clock: Clock,
    pub(crate) count: u64,
    pub(crate) calls: Vec<(u64, usize)>,
}

impl CallLog {
    /// How many calls are noted one by one; those beyond are only counted.
    pub(crate) const CAPACITY: usize = 1 << 15;

    pub(crate) fn new(clock: Clock) -> Self {
        let mut calls = vec![(1, 1); Self::CAPACITY];
        calls.clear();
        Self { clock, count: 0, calls }
    }
}

impl Meter for CallLog {
    type Start = Stamp;

    #[inline(always)]
    fn start(&self) -> Stamp {
        self.clock.now()
    }

    #[inline(always)]
    fn end(&mut self, start: Stamp, bytes: usize) {
        let end = self.clock.now();
        self.count += 1;
        if self.calls.len() < Self::CAPACITY {
            self.calls.push((Clock::ticks_between(start, end), bytes));
        }
    }
}

/// What is called when an iteration of the client begins and ends.
pub(crate) trait Watch {
    /// The first iteration may begin.
    fn start(&mut self) {}
    /// The next iteration may begin when this returns.
    fn before(&mut self);
    /// The iteration is over.
    fn after(&mut self);
    /// Where iterations are logged, if they are. The loops for several peers ask for nothing else, and are compiled once.
    fn log(&mut self) -> Option<&mut IterationLog> {
        None
    }
}

/// Notes nothing.
pub(crate) struct Unwatched;

impl Watch for Unwatched {
    #[inline(always)]
    fn before(&mut self) {}

    #[inline(always)]
    fn after(&mut self) {}
}

/// What is called at the steps of messages, one message after the other.
pub(crate) trait StepMeter: StepTrace {
    /// A message begins.
    fn begin(&mut self);
}

impl StepMeter for NoTrace {
    #[inline(always)]
    fn begin(&mut self) {}
}

/// Notes the time of each step, in memory that was set aside before the iterations.
pub(crate) struct StepLog {
    clock: Clock,
    last: Stamp,
    steps: Vec<(&'static str, u64)>,
}

impl StepLog {
    /// How many steps are noted; those beyond are not.
    const CAPACITY: usize = 1 << 16;

    pub(crate) fn new(clock: Clock) -> Self {
        let mut steps = vec![("", 1); Self::CAPACITY];
        steps.clear();
        Self { clock, last: clock.now(), steps }
    }

    /// The steps by name, in the order in which they first came.
    pub(crate) fn by_name(&self) -> Vec<StepSample> {
        let mut times: Vec<(&str, Histogram)> = Vec::new();
        for (name, ticks) in &self.steps {
            let at = times.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                times.push((name, Histogram::new()));
                times.len() - 1
            });
            times[at].1.record(self.clock.ns(*ticks) as u64);
        }
        times
            .into_iter()
            .map(|(name, time)| StepSample { name: name.to_owned(), time: time.encode() })
            .collect()
    }
}

impl StepTrace for StepLog {
    #[inline(always)]
    fn step_ended(&mut self, name: &'static str) {
        let now = self.clock.now();
        if self.steps.len() < Self::CAPACITY {
            self.steps.push((name, Clock::ticks_between(self.last, now)));
        }
        self.last = now;
    }
}

impl StepMeter for StepLog {
    #[inline(always)]
    fn begin(&mut self) {
        self.last = self.clock.now();
    }
}

/// The clock readings of the `each` phase: one for every iteration, in memory that was set aside before the iterations.
pub(crate) struct IterationLog {
    clock: Clock,
    pub(crate) start: Stamp,
    last: Stamp,
    pub(crate) ticks: Vec<u64>,
}

impl IterationLog {
    /// How many iterations an `each` phase may have.
    pub(crate) const CAPACITY: u64 = 1 << 15;

    pub(crate) fn new(clock: Clock, iterations: u64) -> Self {
        let mut ticks = vec![1; iterations as usize];
        ticks.clear();
        let now = clock.now();
        Self { clock, start: now, last: now, ticks }
    }

    pub(crate) fn times(self) -> IterationTimes {
        IterationTimes { start: self.start, ticks: self.ticks, stride: 1 }
    }
}

impl Watch for IterationLog {
    fn start(&mut self) {
        self.start = self.clock.now();
        self.last = self.start;
    }

    #[inline(always)]
    fn before(&mut self) {}

    #[inline(always)]
    fn after(&mut self) {
        let now = self.clock.now();
        self.ticks.push(Clock::ticks_between(self.last, now));
        self.last = now;
    }

    fn log(&mut self) -> Option<&mut IterationLog> {
        Some(self)
    }
}

/// Notes when the messages of a stream came, in memory that was set aside before. Of a long stream it notes every n-th message.
pub(crate) struct ArrivalLog {
    log: IterationLog,
    stride: u64,
    left: u64,
}

impl ArrivalLog {
    pub(crate) fn new(clock: Clock, iterations: u64) -> Self {
        let stride = iterations.div_ceil(IterationLog::CAPACITY).max(1);
        Self { log: IterationLog::new(clock, iterations / stride), stride, left: stride }
    }

    pub(crate) fn start(&mut self) {
        self.log.start();
    }

    #[inline(always)]
    pub(crate) fn arrived(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.log.after();
            self.left = self.stride;
        }
    }

    pub(crate) fn times(self) -> IterationTimes {
        IterationTimes { stride: self.stride, ..self.log.times() }
    }
}

/// How many different byte counts a record keeps apart.
const MOST_BYTE_COUNTS: usize = 64;

pub(crate) fn call_counts(log: &CallLog, clock: &Clock) -> CallCounts {
    let mut time = Histogram::new();
    let mut by_bytes: BTreeMap<u64, u64> = BTreeMap::new();
    for (ticks, bytes) in &log.calls {
        time.record(clock.ns(*ticks) as u64);
        *by_bytes.entry(*bytes as u64).or_default() += 1;
    }
    let (kept, further): (Vec<_>, Vec<_>) =
        by_bytes.into_iter().enumerate().partition(|(rank, _)| *rank < MOST_BYTE_COUNTS);
    let mut returned_bytes: Vec<(u64, u64)> = kept.into_iter().map(|(_, entry)| entry).collect();
    if let Some((_, calls)) = returned_bytes.last_mut() {
        *calls += further.into_iter().map(|(_, (_, calls))| calls).sum::<u64>();
    }
    CallCounts { count: log.count, time: time.encode(), returned_bytes }
}

/// The record of iterations of which each took so many ticks.
///
/// The histogram has no more room than they need. Memory beyond 128 KiB comes from the kernel and goes back to it, which would have RCU at
/// work in the slices of other trials, too (`Trials::wait_out_disturbance`).
pub(crate) fn each(clock: &Clock, ticks: &[u64]) -> Each {
    let mut histogram = Histogram::up_to(clock.ns(ticks.iter().copied().max().unwrap_or(0)) as u64);
    ticks.iter().for_each(|ticks| histogram.record(clock.ns(*ticks) as u64));
    let mean_ns = clock.ns(ticks.iter().sum()) / ticks.len() as f64;
    Each { mean_ns, iterations: histogram.encode() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::ClockSource;

    const CLOCK: ClockSource = ClockSource::MonotonicRaw;

    #[test]
    fn calls_beyond_the_room_are_counted_and_not_timed() {
        let mut log = CallLog::new(Clock::new(CLOCK));
        for _ in 0..CallLog::CAPACITY + 10 {
            let start = log.start();
            log.end(start, 8);
        }
        let counts = call_counts(&log, &Clock::new(CLOCK));
        assert_eq!(
            (counts.count, counts.returned_bytes),
            (CallLog::CAPACITY as u64 + 10, vec![(8, CallLog::CAPACITY as u64)])
        );
    }

    #[test]
    fn byte_counts_beyond_the_most_are_added_to_the_last() {
        let mut log = CallLog::new(Clock::new(CLOCK));
        for bytes in 0..MOST_BYTE_COUNTS + 5 {
            let start = log.start();
            log.end(start, bytes);
        }
        let counts = call_counts(&log, &Clock::new(CLOCK)).returned_bytes;
        assert_eq!(
            (counts.len(), counts[0], counts[MOST_BYTE_COUNTS - 1]),
            (MOST_BYTE_COUNTS, (0, 1), (63, 6))
        );
    }

    #[test]
    fn steps_are_listed_by_name_in_the_order_in_which_they_first_came() {
        let mut log = StepLog::new(Clock::new(CLOCK));
        for _ in 0..3 {
            log.begin();
            log.step_ended("sendmsg");
            log.step_ended("close");
        }
        let steps = log.by_name();
        let names: Vec<(&str, u64)> =
            steps.iter().map(|step| (step.name.as_str(), step.time.decode().count())).collect();
        assert_eq!(names, [("sendmsg", 3), ("close", 3)]);
    }

    #[test]
    fn the_ends_of_iterations_ascend_from_the_start() {
        let mut log = IterationLog::new(Clock::new(CLOCK), 3);
        log.start();
        (0..3).for_each(|_| log.after());
        let times = log.times();
        let ends: Vec<Stamp> = times.ends().collect();
        assert!(ends.len() == 3 && ends.is_sorted() && times.start <= ends[0]);
        assert_eq!(times.ticks.iter().sum::<u64>(), Clock::ticks_between(times.start, ends[2]));
    }

    #[test]
    fn of_a_long_stream_every_nth_message_is_noted() {
        let clock = Clock::new(CLOCK);
        let most = IterationLog::CAPACITY;
        for iterations in [1, 1000, most, most + 1, 10 * most] {
            let mut log = ArrivalLog::new(clock, iterations);
            log.start();
            (0..iterations).for_each(|_| log.arrived());
            let times = log.times();
            let noted = times.ticks.len() as u64;
            assert!(noted <= most && (noted * times.stride).abs_diff(iterations) < times.stride);
        }
    }
}
