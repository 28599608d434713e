//! The requests of several clients to one server: whom the server serves in each of its calls, and when a request was made.
//!
//! Whom it serves is known from descriptors: each client's messages come on one of its own, and on one the server waits for all. What is
//! on the path of a request is found in `walk`.

use super::segment::SegmentKind;
use super::spans::{Span, Spans};
use model::observation::CpuTrace;

/// Whom the server serves from the beginning of a call on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// The client with this thread.
    Of(u32),
    /// No client: the server waits for all of them.
    None,
    /// Whom it served before: the call is on a descriptor of which nothing is known, such as that on which it answers.
    AsBefore,
}

/// Whom the thread `tid` serves when it begins a call whose first argument is `first`.
pub(super) fn service(trace: &CpuTrace, tid: u32, first: u64) -> Service {
    if !trace.server_tids.contains(&tid) {
        return Service::AsBefore;
    }
    let known = trace.clients.iter().filter_map(|client| Some((client.tid, client.served_on?)));
    for (client, served_on) in known {
        if first == u64::from(served_on.input) {
            return Service::Of(client);
        }
        if first == u64::from(served_on.event_loop) {
            return Service::None;
        }
    }
    Service::AsBefore
}

/// When the client with the thread `tid`, whose iteration began at `from_ns`, had made its request: when the first call of the iteration
/// woke the server or, if the server was awake, when that call slept or returned. `None` where no call was recorded.
pub(super) fn requested_ns(spans: &Spans<'_>, tid: u32, from_ns: u64, until_ns: u64) -> Option<u64> {
    let mut later = spans.of_thread_from(tid, from_ns).take_while(|span| span.from_ns < until_ns);
    let first = later.find(|span| span.kind.is_in_call())?;
    let is_beside = |span: &&Span| {
        let is_same = (span.kind, span.call) == (first.kind, first.call);
        let cuts_it = |kind| matches!(kind, SegmentKind::Interrupt | SegmentKind::Softirq { .. });
        is_same || cuts_it(span.kind) || span.kind == SegmentKind::PageFault
    };
    let last = later.take_while(is_beside).filter(|span| span.kind == first.kind).last();
    Some(last.unwrap_or(first).until_ns)
}
