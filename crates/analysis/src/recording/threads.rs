//! What a thread did between its calls: for how long it computed and slept. It knows no object.

use model::communication::{Communication, CommunicationKind};
use std::collections::HashMap;

/// What came before a call that moved something, since the call of the same thread before that did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Before {
    /// CPU time outside of calls, without what lies between calls anyway.
    pub(super) work_ns: u64,
    /// Sleep outside of calls, or in a wait that nothing ended: the thread thought.
    pub(super) thought_ns: u64,
    /// Sleep in the call, and in the waits that led to it.
    pub(super) waited_ns: u64,
    /// The part of it that was in waits: poll(2), epoll_wait(2) and the like.
    pub(super) polled_ns: u64,
}

/// What came before each call of `communication`, in the order in which they ended. Nothing is known before the first of a thread.
pub(super) fn before(communication: &Communication) -> Vec<Before> {
    /// What a thread did since its last call that moved something.
    #[derive(Clone, Copy)]
    struct Since {
        cpu_ns: u64,
        slept_ns: u64,
        /// What lies between its last call and the next one though it does nothing.
        anyway_ns: u64,
        now: Before,
    }
    let Communication { calls, between_calls, .. } = communication;
    let mut threads: HashMap<u32, Since> = HashMap::new();
    let mut all = Vec::with_capacity(calls.len());
    for call in calls {
        let slept_until_ns = call.slept_from_ns + call.asleep_ns;
        let mut now = Before::default();
        if let Some(since) = threads.get(&call.tid) {
            now = since.now;
            now.work_ns += call.cpu_from_ns.saturating_sub(since.cpu_ns + since.anyway_ns);
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
        let anyway_ns =
            if call.asleep_ns > 0 { between_calls.after_sleep_ns } else { between_calls.awake_ns };
        let since = Since { cpu_ns: call.cpu_until_ns, slept_ns: slept_until_ns, anyway_ns, now };
        threads.insert(call.tid, since);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::Script;
    use model::communication::BetweenCalls;

    #[test]
    fn work_is_what_lies_between_calls() {
        let mut script = Script::default();
        script.work(0, 500).send(0, (0, 0), 10).work(0, 70).wait(0, 1_000).receive(0, (0, 0), 10, 300);
        script.work(0, 30).sleep(0, 4_000).send(0, (0, 0), 10);
        let before = before(&script.communication);
        assert_eq!(before[0], Before::default(), "nothing is known before the first call");
        assert_eq!(before[2], Before { work_ns: 70, thought_ns: 0, waited_ns: 1_300, polled_ns: 1_000 });
        assert_eq!(before[3], Before { work_ns: 30, thought_ns: 4_000, ..Before::default() });
    }

    #[test]
    fn what_lies_between_calls_anyway_is_no_work() {
        let mut script = Script::default();
        script.send(0, (0, 0), 10).work(0, 370).wait(0, 1_000).work(0, 830).receive(0, (0, 0), 10, 0);
        script.work(0, 200).send(0, (0, 0), 10);
        script.communication.between_calls = BetweenCalls { after_sleep_ns: 800, awake_ns: 300 };
        let before = before(&script.communication);
        assert_eq!(before[2].work_ns, 70 + 30);
        assert_eq!(before[3].work_ns, 0, "there is never less than none");
    }

    #[test]
    fn a_wait_before_a_send_is_a_thought() {
        let mut script = Script::default();
        script.send(0, (0, 0), 1).wait(0, 900).send(0, (0, 0), 1);
        let before = before(&script.communication);
        assert_eq!(before[2], Before { thought_ns: 900, ..Before::default() });
    }
}
