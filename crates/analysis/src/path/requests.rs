//! When one of several clients of a server had made the request of an iteration. Whom the server serves meanwhile is in `service`.

use super::segment::SegmentKind;
use super::spans::{Span, Spans};

/// When the client with the thread `tid`, whose iteration began at `from_ns`, had made its request: when the first call of the iteration
/// woke the server or, if the server was awake, when that call slept or returned. `None` where no call was recorded.
pub(super) fn requested_ns(spans: &Spans<'_>, tid: u32, from_ns: u64, until_ns: u64) -> Option<u64> {
    let mut later = spans.of_thread_from(tid, from_ns).take_while(|span| span.from_ns < until_ns);
    let first = later.find(|span| span.kind.is_in_call())?;
    // What cuts a call in pieces does not end it.
    let goes_on = |span: &&Span| {
        use SegmentKind::{Interrupt, PageFault, Softirq};
        let is_same = (span.kind, span.call) == (first.kind, first.call);
        is_same || matches!(span.kind, Interrupt | Softirq { .. } | PageFault)
    };
    let last = later.take_while(goes_on).filter(|span| span.kind == first.kind).last();
    Some(last.unwrap_or(first).until_ns)
}
