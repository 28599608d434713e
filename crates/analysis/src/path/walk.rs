//! The critical path of every iteration, found backwards from its end: while a thread ran, the time is its own; where it
//! slept, the path goes on with who woke it; where it only waited for a CPU, with what that CPU did.
//!
//! Each step covers the time directly before the last one, so that segments fill the iteration exactly, whatever was recorded.

use super::segment::{CriticalPath, EventCounts, Segment, SegmentKind, SegmentPlace, place_of};
use super::spans::{IDLE, Span, Spans};
use model::endpoint::EndpointRole;
use model::observation::{CpuTrace, EventSet};

/// More steps without any progress in time are nonsense in the trace.
const MOST_STALLS: u32 = 8;

/// The path of every iteration of `trace`, in the order of time.
pub fn critical_paths(trace: &CpuTrace) -> Vec<CriticalPath> {
    let spans = Spans::of(trace);
    let client = trace.client_tids.first().copied().unwrap_or(IDLE);
    let mut begins = trace.from_ns;
    let path = |end_ns: &u64| {
        let from_ns = begins;
        begins = begins.max(*end_ns);
        Walk::of(&spans, client, from_ns, begins)
    };
    trace.iteration_ends_ns.iter().map(path).collect()
}

struct Walk<'a> {
    spans: &'a Spans<'a>,
    from_ns: u64,
    /// Up to here the path is to be found still.
    at_ns: u64,
    /// Found, the last first.
    segments: Vec<Segment>,
}

impl<'a> Walk<'a> {
    fn of(spans: &'a Spans<'a>, client: u32, from_ns: u64, until_ns: u64) -> CriticalPath {
        let mut walk = Walk { spans, from_ns, at_ns: until_ns, segments: Vec::new() };
        let (mut thread, mut stalls) = (client, 0);
        while walk.at_ns > from_ns && stalls <= MOST_STALLS {
            let before_ns = walk.at_ns;
            thread = walk.step(thread);
            stalls = if walk.at_ns < before_ns { 0 } else { stalls + 1 };
        }
        walk.cover(from_ns, place(EndpointRole::Client, SegmentKind::NotRecorded), None);
        walk.segments.reverse();
        CriticalPath { from_ns, until_ns, segments: walk.segments }
    }

    /// One step back along `thread`. Returns the thread that the path goes on with.
    fn step(&mut self, thread: u32) -> u32 {
        let span = match self.spans.of_thread(thread, self.at_ns) {
            (Some(span), next) if span.until_ns < self.at_ns => {
                return self.off_cpu(thread, span.until_ns, span.preempted, next.unwrap_or(span).cpu);
            }
            (Some(span), _) => span,
            (None, Some(next)) => return self.off_cpu(thread, 0, false, next.cpu),
            (None, None) => {
                let of = self.spans.role(thread).unwrap_or(EndpointRole::Client);
                self.cover(self.from_ns, place(of, SegmentKind::NotRecorded), None);
                return thread;
            }
        };
        if span.kind == SegmentKind::Polling
            && let Some((peer, until_ns)) = self.who_is_polled(thread)
        {
            self.cover(until_ns, self.place_of_span(span), None);
            return peer;
        }
        self.cover_span(span, self.from_ns);
        thread
    }

    /// The thread `thread` had no CPU from `off_ns` until now, when it comes back to `cpu`.
    fn off_cpu(&mut self, thread: u32, off_ns: u64, preempted: bool, cpu: u32) -> u32 {
        let of = self.spans.role(thread).unwrap_or(EndpointRole::Client);
        if preempted {
            self.waits_for_cpu(off_ns, cpu, of);
            return thread;
        }
        let Some(waking) = self.spans.waking(thread, off_ns, self.at_ns) else {
            return self.woken_by_unknown(thread, of, off_ns, cpu);
        };
        self.waits_for_cpu(waking.at_ns, cpu, of);
        // Whoever wakes a thread of another CPU records that on the path, before the interrupt is sent.
        if waking.cpu != cpu
            && let Some(first) = self.segments.last_mut().filter(|first| first.from_ns == waking.at_ns)
        {
            first.events[place_of(EventSet::WakeUps)] += 1;
        }
        let is_endpoint = |tid: u32| tid != thread && self.spans.role(tid).is_some();
        if is_endpoint(waking.by) {
            return waking.by;
        }
        let task = Some(waking.by);
        // A helper such as ksoftirqd that an endpoint woke stands between the two.
        let helped = self.spans.waking(waking.by, off_ns, waking.at_ns).filter(|by| is_endpoint(by.by));
        match helped.filter(|_| waking.by != IDLE) {
            Some(by) => {
                self.cover(by.at_ns, place(of, SegmentKind::OtherTask), task);
                by.by
            }
            None => {
                self.cover(off_ns, place(of, SegmentKind::Asleep), task);
                thread
            }
        }
    }

    /// Nothing says who woke the thread that slept since `off_ns`: where wakings are not recorded, it was the peer if that ran.
    fn woken_by_unknown(&mut self, thread: u32, of: EndpointRole, off_ns: u64, cpu: u32) -> u32 {
        let peer = self.peer_before(thread, self.at_ns).filter(|(_, span)| span.until_ns > off_ns);
        match peer.filter(|_| !self.spans.has(EventSet::WakeUps)) {
            Some((peer, span)) => {
                self.waits_for_cpu(span.until_ns.min(self.at_ns), cpu, of);
                peer
            }
            None => {
                self.cover(off_ns, place(of, SegmentKind::Asleep), None);
                thread
            }
        }
    }

    /// The peer that ran last before `at_ns`.
    fn peer_before(&self, thread: u32, at_ns: u64) -> Option<(u32, &'a Span)> {
        let peers = self.peers(thread).iter();
        let ran = peers.filter_map(|tid| Some((*tid, self.spans.of_thread(*tid, at_ns).0?)));
        ran.max_by_key(|(_, span)| span.until_ns)
    }

    /// The threads of the other endpoint.
    fn peers(&self, thread: u32) -> &'a [u32] {
        match self.spans.role(thread) {
            Some(EndpointRole::Server) => &self.spans.trace.client_tids,
            _ => &self.spans.trace.server_tids,
        }
    }

    /// Whom the thread waits for that polls now, and when that one last did something else than to poll too.
    fn who_is_polled(&self, thread: u32) -> Option<(u32, u64)> {
        let worked = self.peers(thread).iter().filter_map(|tid| {
            let span = self.spans.last_work(*tid, self.at_ns)?;
            Some((*tid, span.until_ns.min(self.at_ns)))
        });
        worked.max_by_key(|(_, until_ns)| *until_ns).filter(|(_, until_ns)| *until_ns > self.from_ns)
    }

    /// A thread of `of` could run from `from_ns` until now: what `cpu` did meanwhile.
    fn waits_for_cpu(&mut self, from_ns: u64, cpu: u32, of: EndpointRole) {
        let from_ns = from_ns.max(self.from_ns);
        while self.at_ns > from_ns {
            let span = self.spans.on_cpu(cpu, self.at_ns).filter(|span| span.until_ns > from_ns);
            let Some(span) = span else {
                self.cover(from_ns, place(of, SegmentKind::WakeUp), None);
                return;
            };
            self.cover(span.until_ns.max(from_ns), place(of, SegmentKind::WakeUp), None);
            let is_own = self.spans.role(span.tid).is_some();
            match span.kind {
                _ if is_own => self.cover_span(span, from_ns),
                SegmentKind::Interrupt | SegmentKind::Softirq { .. } => {
                    self.cover_with(span, from_ns, place(of, span.kind), None);
                }
                _ if span.tid != IDLE => {
                    self.cover_with(span, from_ns, place(of, SegmentKind::OtherTask), Some(span.tid));
                }
                kind => {
                    let kind = if self.spans.has(EventSet::Idle) { kind } else { SegmentKind::WakeUp };
                    self.cover_with(span, from_ns, place(of, kind), None);
                }
            }
        }
    }

    fn place_of_span(&self, span: &Span) -> SegmentPlace {
        let of = self.spans.role(span.tid).unwrap_or(EndpointRole::Client);
        SegmentPlace { of, kind: span.kind, call: span.call }
    }

    /// Covers `span`, as far as it lies between `from_ns` and now, as what it is.
    fn cover_span(&mut self, span: &Span, from_ns: u64) {
        self.cover_with(span, from_ns, self.place_of_span(span), None);
    }

    /// Covers `span`, as far as it lies between `from_ns` and now, as `place`.
    fn cover_with(&mut self, span: &Span, from_ns: u64, place: SegmentPlace, task: Option<u32>) {
        let before_ns = self.at_ns;
        self.cover(span.from_ns.max(from_ns), place, task);
        if span.from_ns >= self.from_ns
            && span.from_ns >= from_ns
            && self.at_ns < before_ns
            && let Some(segment) = self.segments.last_mut()
        {
            segment.events = span.events;
        }
    }

    /// Covers the time from `from_ns`, but not from before the iteration, until now as `place`.
    fn cover(&mut self, from_ns: u64, place: SegmentPlace, task: Option<u32>) {
        let from_ns = from_ns.max(self.from_ns);
        if from_ns < self.at_ns {
            let events = EventCounts::default();
            self.segments.push(Segment { place, from_ns, until_ns: self.at_ns, events, task });
            self.at_ns = from_ns;
        }
    }
}

fn place(of: EndpointRole, kind: SegmentKind) -> SegmentPlace {
    SegmentPlace { of, kind, call: None }
}
