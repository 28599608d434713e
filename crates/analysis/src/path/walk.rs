//! The critical path of every iteration, found backwards from its end: while a thread ran, the time is its own; where it
//! slept, the path goes on with who woke it; where it only waited for a CPU, with what that CPU did.
//!
//! Of several clients of one server the path is that of a request: in the client until it has made it, then in the server, which may serve
//! others first, and from the answer on in the client again.
//!
//! Each step covers the time directly before the last one, so that segments fill the iteration exactly, whatever was recorded.

use super::requests::requested_ns;
use super::segment::{CriticalPath, EventCounts, Segment, SegmentKind, SegmentPlace, place_of};
use super::spans::{IDLE, Span, Spans, Waking};
use model::endpoint::EndpointRole;
use model::observation::{CpuTrace, EventSet, TracedClient};

/// More steps without any progress in time are nonsense in the trace.
const MOST_STALLS: u32 = 8;

/// The path of every iteration of `trace`, in the order of time; of several clients, one after the other.
pub fn critical_paths(trace: &CpuTrace) -> Vec<CriticalPath> {
    let spans = Spans::from_trace(trace);
    if trace.clients.is_empty() {
        let client = trace.client_tids.first().copied().unwrap_or(IDLE);
        return paths_of(&spans, client, trace.from_ns, &trace.iteration_ends_ns);
    }
    let of_client =
        |client: &TracedClient| paths_of(&spans, client.tid, client.from_ns, &client.iteration_ends_ns);
    trace.clients.iter().flat_map(of_client).collect()
}

/// The path of every iteration of the client with the thread `client`.
fn paths_of(spans: &Spans<'_>, client: u32, from_ns: u64, ends_ns: &[u64]) -> Vec<CriticalPath> {
    let mut begins = from_ns;
    let path = |end_ns: &u64| {
        let from_ns = begins;
        begins = begins.max(*end_ns);
        Walk::along(spans, client, from_ns, begins)
    };
    ends_ns.iter().map(path).collect()
}

struct Walk<'a> {
    spans: &'a Spans<'a>,
    /// The thread whose iteration it is.
    client: u32,
    /// When one of several clients had made its request: before that the path is in the client. `None` where this is not known, and of
    /// the only client.
    requested_ns: Option<u64>,
    is_followed: bool,
    from_ns: u64,
    /// Before this the path is not where it is now: the beginning of the iteration or, in the server of several clients, the request.
    bound_ns: u64,
    /// Up to here the path is to be found still.
    at_ns: u64,
    /// Found, the last first.
    segments: Vec<Segment>,
}

impl<'a> Walk<'a> {
    fn along(spans: &'a Spans<'a>, client: u32, from_ns: u64, until_ns: u64) -> CriticalPath {
        let is_one_of_several = !spans.trace.clients.is_empty();
        let mut walk = Walk {
            spans,
            client,
            requested_ns: requested_ns(spans, client, from_ns, until_ns).filter(|_| is_one_of_several),
            is_followed: true,
            from_ns,
            bound_ns: from_ns,
            at_ns: until_ns,
            segments: Vec::new(),
        };
        let (mut thread, mut stalls) = (client, 0);
        while walk.at_ns > from_ns && stalls <= MOST_STALLS {
            let before_ns = walk.at_ns;
            thread = walk.on_path(thread);
            thread = walk.step(thread);
            stalls = if walk.at_ns < before_ns { 0 } else { stalls + 1 };
        }
        walk.bound_ns = from_ns;
        walk.cover(from_ns, place(EndpointRole::Client, SegmentKind::NotRecorded), None);
        walk.segments.reverse();
        CriticalPath { from_ns, until_ns, segments: walk.segments, is_followed: walk.is_followed }
    }

    /// The thread that the path is in now that it has come to `thread`. Of several clients it is in no other client, and in the server
    /// only after the request.
    fn on_path(&mut self, thread: u32) -> u32 {
        self.bound_ns = self.from_ns;
        if !self.is_one_of_several() || thread == self.client {
            return thread;
        }
        let requested_ns = self.requested_ns.unwrap_or(self.from_ns);
        if self.at_ns > requested_ns {
            self.bound_ns = requested_ns;
            self.is_followed &= self.requested_ns.is_some();
            if self.spans.role(thread) != Some(EndpointRole::Client) {
                return thread;
            }
            // Another client woke the server, though this request was made and the server slept: what it slept for is not known.
            self.is_followed = false;
            self.cover(requested_ns, place(EndpointRole::Server, SegmentKind::NotRecorded), None);
            self.bound_ns = self.from_ns;
        }
        self.client
    }

    fn is_one_of_several(&self) -> bool {
        !self.spans.trace.clients.is_empty()
    }

    /// Whether the server serves another client in `span`.
    fn is_of_others(&self, span: &Span) -> bool {
        span.serves.is_some_and(|client| client != self.client)
    }

    /// One step back along `thread`. Returns the thread that the path goes on with.
    fn step(&mut self, thread: u32) -> u32 {
        let span = match self.spans.of_thread(thread, self.at_ns) {
            (Some(span), _) if span.until_ns < self.at_ns && !span.preempted && self.is_of_others(span) => {
                self.cover(span.until_ns, place(EndpointRole::Server, SegmentKind::OtherRequests), None);
                return thread;
            }
            (Some(span), next) if span.until_ns < self.at_ns => {
                return self.off_cpu(thread, span.until_ns, span.preempted, next.unwrap_or(span).cpu);
            }
            (Some(span), _) => span,
            (None, Some(next)) => return self.off_cpu(thread, 0, false, next.cpu),
            (None, None) => {
                let role = self.spans.role(thread).unwrap_or(EndpointRole::Client);
                self.cover(self.bound_ns, place(role, SegmentKind::NotRecorded), None);
                return thread;
            }
        };
        if span.kind == SegmentKind::Polling && !self.is_of_others(span) {
            if let Some((peer, until_ns)) = self.who_is_polled(thread) {
                self.cover(until_ns, self.place_of_span(span), None);
                return peer;
            }
            self.is_followed &= !self.is_one_of_several();
        }
        self.cover_span(span, self.bound_ns);
        thread
    }

    /// The thread `thread` had no CPU from `off_ns` until now, when it comes back to `cpu`.
    fn off_cpu(&mut self, thread: u32, off_ns: u64, preempted: bool, cpu: u32) -> u32 {
        let role = self.spans.role(thread).unwrap_or(EndpointRole::Client);
        if preempted {
            self.waits_for_cpu(off_ns, cpu, role);
            return thread;
        }
        let Some(waking) = self.spans.waking(thread, off_ns, self.at_ns) else {
            return self.woken_by_unknown(thread, role, off_ns, cpu);
        };
        self.waits_for_cpu(waking.at_ns, cpu, role);
        // Whoever wakes a thread of another CPU records that on the path, before the interrupt is sent.
        if waking.cpu != cpu
            && let Some(first) = self.segments.last_mut().filter(|first| first.from_ns == waking.at_ns)
        {
            first.events[place_of(EventSet::WakeUps)] += 1;
        }
        let is_endpoint = |tid: u32| tid != thread && self.spans.role(tid).is_some();
        if is_endpoint(waking.by) {
            self.note_answer(thread, waking);
            return waking.by;
        }
        let task = Some(waking.by);
        // A helper such as ksoftirqd that an endpoint woke stands between the two.
        let helped = self.spans.waking(waking.by, off_ns, waking.at_ns).filter(|by| is_endpoint(by.by));
        match helped.filter(|_| waking.by != IDLE) {
            Some(by) => {
                self.cover(by.at_ns, place(role, SegmentKind::OtherTask), task);
                by.by
            }
            None => {
                self.cover(off_ns, place(role, SegmentKind::Asleep), task);
                thread
            }
        }
    }

    /// Notes whether the server of several clients is known to serve this one when it wakes its thread.
    fn note_answer(&mut self, woken: u32, waking: Waking) {
        if self.is_one_of_several() && woken == self.client {
            let (span, _) = self.spans.of_thread(waking.by, waking.at_ns);
            self.is_followed &= span.is_some_and(|span| span.serves == Some(woken));
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
                // Where wakings are not recorded, it may have been another client.
                let is_known = !self.is_one_of_several() || self.spans.has(EventSet::WakeUps);
                let kind = if is_known { SegmentKind::Asleep } else { SegmentKind::NotRecorded };
                self.cover(off_ns, place(of, kind), None);
                thread
            }
        }
    }

    /// The peer that ran last before `at_ns`.
    fn peer_before(&self, thread: u32, at_ns: u64) -> Option<(u32, &'a Span)> {
        let peers = self.peers(thread).into_iter();
        let ran = peers.filter_map(|tid| Some((tid, self.spans.of_thread(tid, at_ns).0?)));
        ran.max_by_key(|(_, span)| span.until_ns)
    }

    /// The threads of the other endpoint.
    fn peers(&self, thread: u32) -> Vec<u32> {
        match self.spans.role(thread) {
            Some(EndpointRole::Server) if self.is_one_of_several() => vec![self.client],
            Some(EndpointRole::Server) => self.spans.trace.client_tids.clone(),
            _ => self.spans.trace.server_tids.clone(),
        }
    }

    /// Whom the thread waits for that polls now, and when that one last did something else than to poll too. The server of several
    /// clients must have done it for this one.
    fn who_is_polled(&self, thread: u32) -> Option<(u32, u64)> {
        let is_awaited = |span: &Span| {
            let is_answer = || span.serves == Some(self.client);
            span.kind != SegmentKind::Polling
                && (!self.is_one_of_several() || span.tid == self.client || is_answer())
        };
        let worked = self.peers(thread).into_iter().filter_map(|tid| {
            let span = self.spans.last_of_thread(tid, self.at_ns, is_awaited)?;
            Some((tid, span.until_ns.min(self.at_ns)))
        });
        let after_ns =
            if thread == self.client { self.requested_ns.unwrap_or(self.from_ns) } else { self.from_ns };
        worked.max_by_key(|(_, until_ns)| *until_ns).filter(|(_, until_ns)| *until_ns > after_ns)
    }

    /// A thread of `of` could run from `from_ns` until now: what `cpu` did meanwhile.
    fn waits_for_cpu(&mut self, from_ns: u64, cpu: u32, of: EndpointRole) {
        let from_ns = from_ns.max(self.bound_ns);
        while self.at_ns > from_ns {
            let span = self.spans.on_cpu(cpu, self.at_ns).filter(|span| span.until_ns > from_ns);
            let Some(span) = span else {
                self.cover(from_ns, place(of, SegmentKind::WakeUp), None);
                return;
            };
            self.cover(span.until_ns.max(from_ns), place(of, SegmentKind::WakeUp), None);
            let role = self.spans.role(span.tid);
            let is_other_client =
                self.is_one_of_several() && role == Some(EndpointRole::Client) && span.tid != self.client;
            match span.kind {
                kind if is_other_client && kind != SegmentKind::Interrupt => {
                    self.cover_with(span, from_ns, place(of, SegmentKind::OtherClient), None);
                }
                _ if role.is_some() => self.cover_span(span, from_ns),
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
        if self.is_of_others(span) && span.kind != SegmentKind::Interrupt {
            return place(EndpointRole::Server, SegmentKind::OtherRequests);
        }
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
        if span.from_ns >= self.bound_ns
            && span.from_ns >= from_ns
            && self.at_ns < before_ns
            && let Some(segment) = self.segments.last_mut()
        {
            segment.events = span.events;
        }
    }

    /// Covers the time from `from_ns`, but not from before the bound, until now as `place`.
    fn cover(&mut self, from_ns: u64, place: SegmentPlace, task: Option<u32>) {
        let from_ns = from_ns.max(self.bound_ns);
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
