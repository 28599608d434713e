//! What a thread did between its calls: for how long it computed and slept. It knows no object.

use model::communication::{CommunicationCall, CommunicationKind};
use std::collections::HashMap;

/// What came before a call that moved something, since the call of the same thread before that did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Before {
    /// CPU time outside of calls.
    pub(super) work_ns: u64,
    /// Sleep outside of calls, or in a wait that nothing ended: the thread thought.
    pub(super) thought_ns: u64,
    /// Sleep in the call, and in the waits that led to it.
    pub(super) waited_ns: u64,
    /// The part of it that was in waits: poll(2), epoll_wait(2) and the like.
    pub(super) polled_ns: u64,
}

/// What came before each of `calls`, which are in the order in which they ended. Nothing is known before the first of a
/// thread.
pub(super) fn before(calls: &[CommunicationCall]) -> Vec<Before> {
    /// What a thread did since its last call that moved something.
    #[derive(Clone, Copy)]
    struct Since {
        cpu_ns: u64,
        slept_ns: u64,
        now: Before,
    }
    let mut threads: HashMap<u32, Since> = HashMap::new();
    let mut all = Vec::with_capacity(calls.len());
    for call in calls {
        let slept_until_ns = call.slept_from_ns + call.asleep_ns;
        let mut now = Before::default();
        if let Some(since) = threads.get(&call.tid) {
            now = since.now;
            now.work_ns += call.cpu_from_ns.saturating_sub(since.cpu_ns);
            now.thought_ns += call.slept_from_ns.saturating_sub(since.slept_ns);
        }
        now.waited_ns += call.asleep_ns;
        if call.kind == CommunicationKind::Wait {
            now.polled_ns += call.asleep_ns;
        }
        if call.kind == CommunicationKind::Send {
            // A wait that a send follows ended because time was up, or for another reason than a message.
            now.thought_ns += now.waited_ns - call.asleep_ns;
            (now.waited_ns, now.polled_ns) = (call.asleep_ns, 0);
        }
        all.push(now);
        let now = if call.bytes.is_some() { Before::default() } else { now };
        threads.insert(call.tid, Since { cpu_ns: call.cpu_until_ns, slept_ns: slept_until_ns, now });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::Script;

    #[test]
    fn work_is_what_lies_between_calls() {
        let mut script = Script::default();
        script.work(0, 500).send(0, (0, 0), 10).work(0, 70).wait(0, 1_000).receive(0, (0, 0), 10, 300);
        script.work(0, 30).sleep(0, 4_000).send(0, (0, 0), 10);
        let before = before(&script.communication.calls);
        assert_eq!(before[0], Before::default(), "nothing is known before the first call");
        assert_eq!(before[2], Before { work_ns: 70, thought_ns: 0, waited_ns: 1_300, polled_ns: 1_000 });
        assert_eq!(before[3], Before { work_ns: 30, thought_ns: 4_000, ..Before::default() });
    }

    #[test]
    fn a_wait_before_a_send_is_a_thought() {
        let mut script = Script::default();
        script.send(0, (0, 0), 1).wait(0, 900).send(0, (0, 0), 1);
        let before = before(&script.communication.calls);
        assert_eq!(before[2], Before { thought_ns: 900, ..Before::default() });
    }
}
