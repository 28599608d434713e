//! How a process of a scenario divides its flows among threads. It starts none.
//!
//! A process has one thread, which waits for all its flows at once with poll(2). It has a thread for each flow that it receives
//! and each that it begins where one would not do: where a mechanism has nothing that poll(2) could wait for, or where a circle of
//! processes could wait for each other for ever, each for the next to read what it sends or to answer it; and where it goes on with other
//! requests while it waits for an answer.

use mechanisms::registry;
use model::scenario::{Concurrency, Flow};
use model::{Scenario, Size};

/// What every mechanism holds of a message that nobody reads yet: as much as a pipe takes at once (`PIPE_BUF`, pipe(7)).
const HELD: Size = Size(4096);

/// What one thread of a process does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StrandPlan {
    /// The flows that it begins: those of a group in turn, the groups at once.
    pub(super) groups: Vec<Vec<usize>>,
    /// The flows that it receives, and answers.
    pub(super) receives: Vec<usize>,
}

impl StrandPlan {
    /// The flows that this thread sends: those that it begins, and those that are after what it receives.
    pub(super) fn sends(&self, scenario: &Scenario) -> Vec<usize> {
        let caused = self.receives.iter().flat_map(|flow| scenario.caused_by(*flow));
        self.groups.iter().flatten().copied().chain(caused).collect()
    }
}

/// The threads of `process`.
pub(super) fn strands(scenario: &Scenario, process: usize) -> Vec<StrandPlan> {
    let whole = whole(scenario, process);
    let needs_threads = is_plural(&whole)
        && (!is_polled(scenario, &whole) || may_lock(scenario, process) || asks_meanwhile(scenario, process));
    if !needs_threads {
        return vec![whole];
    }
    let begins = whole.groups.into_iter().map(|group| StrandPlan { groups: vec![group], receives: vec![] });
    let receives = whole.receives.into_iter().map(|flow| StrandPlan { groups: vec![], receives: vec![flow] });
    begins.chain(receives).collect()
}

/// All that `process` does.
fn whole(scenario: &Scenario, process: usize) -> StrandPlan {
    let receives = scenario.received_by(process).collect();
    StrandPlan { groups: scenario.root_groups(process), receives }
}

/// Whether `process` goes on with other requests while it waits for an answer to what it asks for one of them.
fn asks_meanwhile(scenario: &Scenario, process: usize) -> bool {
    let mut caused = scenario.received_by(process).flat_map(|flow| scenario.caused_by(flow));
    scenario.processes[process].serves == Concurrency::Together
        && caused.any(|flow| !scenario.flows[flow].is_stream())
}

/// Whether there are several things to wait for at once.
fn is_plural(plan: &StrandPlan) -> bool {
    plan.groups.len() + plan.receives.len() > 1
}

/// Whether poll(2) can wait for all of it.
fn is_polled(scenario: &Scenario, plan: &StrandPlan) -> bool {
    let answered = plan.groups.iter().flatten().filter(|flow| !scenario.flows[**flow].is_stream());
    answered
        .chain(&plan.receives)
        .all(|flow| registry::card(&scenario.flows[*flow].mechanism.name).is_some_and(|card| card.polled))
}

/// Whether `process` may wait, in a call, for a process that may wait for it in the same way, by whatever way round.
fn may_lock(scenario: &Scenario, process: usize) -> bool {
    let count = scenario.processes.len();
    let plural: Vec<bool> = (0..count).map(|at| is_plural(&whole(scenario, at))).collect();
    let mut waits_for: Vec<Vec<usize>> = vec![Vec::new(); count];
    for flow in &scenario.flows {
        if sender_waits(flow, plural[flow.from]) {
            waits_for[flow.from].push(flow.to);
        }
        // A sender that has nothing else to wait for reads the answer.
        let is_large = flow.reply.as_ref().is_some_and(|reply| reply.largest() > HELD);
        if is_large && plural[flow.from] {
            waits_for[flow.to].push(flow.from);
        }
    }
    let mut seen = vec![false; count];
    let mut next = waits_for[process].clone();
    while let Some(at) = next.pop() {
        if at == process {
            return true;
        }
        if !std::mem::replace(&mut seen[at], true) {
            next.extend(&waits_for[at]);
        }
    }
    false
}

/// Whether the sender of `flow` may wait in a call until its receiver goes on.
fn sender_waits(flow: &Flow, is_plural: bool) -> bool {
    let bytes = flow.size.largest().0.saturating_mul(u64::from(flow.messages));
    let waits_for_answer = !flow.is_stream() && (flow.after().is_some() || !is_plural);
    flow.is_stream() || waits_for_answer || flow.messages > 1 || bytes > HELD.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use mechanisms::registry::CARDS;

    /// A scenario of three processes with `flows`: from, to, mechanism, and more.
    fn scenario(flows: &[(&str, &str, &str, &str)]) -> Scenario {
        let mut text = "name = \"n\"\n".to_owned();
        for name in ["a", "b", "c"] {
            if flows.iter().any(|(from, to, ..)| *from == name || *to == name) {
                text += &format!("[[process]]\nname = \"{name}\"\nroots = \"together\"\n");
            }
        }
        for (at, (from, to, mechanism, more)) in flows.iter().enumerate() {
            text += &format!(
                "[[flow]]\nname = \"f{at}\"\nfrom = \"{from}\"\nto = \"{to}\"\nmechanism = \"{mechanism}\"\nsize = \"64\"\n{more}\n"
            );
        }
        Scenario::parse(&text, CARDS).unwrap()
    }

    #[test]
    fn one_thread_waits_for_all_that_can_be_polled() {
        let asked = |mechanism| {
            scenario(&[("a", "c", mechanism, "reply = \"64\""), ("b", "c", mechanism, "reply = \"64\"")])
        };
        assert_eq!(strands(&asked("pipe"), 2), [StrandPlan { groups: vec![], receives: vec![0, 1] }]);
        assert_eq!(strands(&asked("shm-ring"), 2).len(), 2);
        // There is nothing else to wait for.
        assert_eq!(strands(&asked("shm-ring"), 0), [StrandPlan { groups: vec![vec![0]], receives: vec![] }]);
        let together =
            scenario(&[("a", "b", "pipe", "reply = \"64\""), ("a", "c", "pipe", "reply = \"64\"")]);
        assert_eq!(strands(&together, 0)[0].groups, [[0], [1]]);
    }

    #[test]
    fn whoever_serves_several_at_once_has_a_thread_for_each() {
        let reply = "reply = \"64\"";
        let mut proxied = scenario(&[
            ("a", "b", "pipe", reply),
            ("a", "b", "pipe", reply),
            ("b", "c", "pipe", "reply = \"64\"\nafter = \"f0\""),
        ]);
        assert_eq!(strands(&proxied, 1).len(), 1);
        proxied.processes[1].serves = Concurrency::Together;
        let receives: Vec<Vec<usize>> = strands(&proxied, 1).into_iter().map(|plan| plan.receives).collect();
        assert_eq!(receives, [[0], [1]]);
        // Whoever asks nobody answers at once.
        proxied.processes[2].serves = Concurrency::Together;
        assert_eq!(strands(&proxied, 2).len(), 1);
    }

    #[test]
    fn whoever_could_wait_in_a_circle_has_more_threads() {
        let reply = "reply = \"64\"";
        // Both may have full buffers at once.
        let streams = scenario(&[("a", "b", "pipe", ""), ("b", "a", "pipe", "")]);
        assert_eq!((strands(&streams, 0).len(), strands(&streams, 1).len()), (2, 2));
        // Both wait with poll(2), and answer meanwhile.
        let requests = scenario(&[("a", "b", "pipe", reply), ("b", "a", "pipe", reply)]);
        assert_eq!(strands(&requests, 0).len(), 1);
        // What they ask for before they answer keeps both.
        let crossed = scenario(&[
            ("a", "b", "pipe", reply),
            ("a", "c", "pipe", reply),
            ("b", "c", "pipe", "reply = \"64\"\nafter = \"f0\""),
            ("c", "b", "pipe", "reply = \"64\"\nafter = \"f1\""),
        ]);
        assert_eq!((strands(&crossed, 0).len(), strands(&crossed, 1).len()), (1, 2));
    }
}
