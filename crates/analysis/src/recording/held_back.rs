//! Messages that wait in the sender's kernel for an acknowledgement: what a program writes in several parts before it reads, over TCP with
//! Nagle's algorithm. Of another mechanism than TCP nothing of that wait is left.

use super::channels::{Exchange, Talk};
use super::flows::FlowDraft;
use super::messages::Message;
use model::scenario::HeldBack;

/// An acknowledgement that is delayed comes 40 ms after what it is of, or later (`TCP_DELACK_MIN`); less is something else.
const DELAYED_NS: u64 = 30_000_000;
/// In fewer exchanges than this share it is chance: a receiver that got no CPU for so long.
const OFTEN: f64 = 0.02;

/// How often, and for how long, a part of a request or of an answer of `flow` waited so.
pub(super) fn held_back(flow: &FlowDraft) -> Option<HeldBack> {
    let (mechanism, params) = flow.mechanism.split_once(':')?;
    let Talk::Exchanges(all) = &flow.talk else { return None };
    if mechanism != "tcp" || params.split(',').all(|param| param != "nodelay=off") {
        return None;
    }
    let waits: Vec<u64> = all.iter().filter_map(longest_wait).collect();
    let share = waits.len() as f64 / all.len() as f64;
    let mean_ns = waits.iter().sum::<u64>() / waits.len().max(1) as u64;
    (share >= OFTEN).then_some(HeldBack { share, wait_ns: mean_ns })
}

/// The longest time for which a part of `exchange` was under way to a receiver that slept, if it was held back. The first part of what a
/// process says never is: there is nothing before it that is not acknowledged.
fn longest_wait(exchange: &Exchange) -> Option<u64> {
    let later = |parts: &[Message]| {
        let held = |part: &Message| {
            let under_way_ns = part.received_ns.saturating_sub(part.begun_ns);
            (part.receiver.waited_ns >= DELAYED_NS && under_way_ns >= DELAYED_NS).then_some(under_way_ns)
        };
        parts.iter().skip(1).filter_map(held).max()
    };
    later(&exchange.requests).max(later(&exchange.replies))
}

#[cfg(test)]
mod tests {
    use crate::recording::tests::Script;

    /// A client that sends a head and a body, of which the second is received so much later.
    fn script(mechanism: &str, delay_ns: u64) -> Script {
        let mut script = Script::default();
        script.communication.objects[2].mechanism = Some(mechanism.to_owned());
        for _ in 0..20 {
            script.send(0, (2, 0), 4).send(0, (2, 0), 100).receive(1, (2, 1), 4, 0);
            script.receive(1, (2, 1), 100, delay_ns).send(1, (2, 1), 4).receive(0, (2, 0), 4, 0);
        }
        script
    }

    #[test]
    fn what_waits_for_an_acknowledgement_is_told_from_what_does_not() {
        let found = |mechanism: &str, delay_ns: u64| {
            let scenario = script(mechanism, delay_ns).scenario().unwrap();
            scenario.flows[0].recorded.as_ref().unwrap().held_back
        };
        let held = found("tcp:nodelay=off", 40_000_000).unwrap();
        assert!(held.share > 0.9 && (40_000_000..41_000_000).contains(&held.wait_ns), "{held:?}");
        assert_eq!(found("tcp:nodelay=off", 1_000_000), None, "too short");
        assert_eq!(found("tcp", 40_000_000), None, "nothing is held back");
        assert_eq!(found("pipe", 40_000_000), None, "nothing can be");
    }
}
