//! Facts: numbers about a case, by name, by which rules are judged and which their sentences show.
//!
//! A name ends in its unit: `_ns`, `_bytes`, `_share` (of one), or none. A fact that is not known is absent, and a rule that
//! needs it does not fire. What was estimated comes with its interval, and without one it is no fact.

use super::control_cases::ControlDifference;
use super::copies::{CopyKind, copy_kind};
use super::cross_check::difference;
use super::evidence::Evidence;
use crate::interval::MeanEstimate;
use crate::path::PathSum;
use model::Spec;
use model::observation::subsystem::Subsystem;
use std::collections::BTreeMap;

/// Facts by name.
pub(crate) type Facts = BTreeMap<&'static str, Fact>;

/// A number, and between which bounds it lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fact {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Fact {
    /// What was counted or set.
    pub(crate) fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// What was estimated as `value`; no fact without an interval.
    fn estimated(value: f64, interval: Option<(f64, f64)>) -> Option<Self> {
        interval.map(|(low, high)| Self { value, low, high })
    }

    fn is_finite(&self) -> bool {
        [self.value, self.low, self.high].into_iter().all(f64::is_finite)
    }
}

pub(crate) fn facts(evidence: &Evidence<'_>, path: Option<&PathSum>) -> Facts {
    let mut facts = Facts::new();
    let Some(summary) = evidence.record.summary.as_ref() else { return facts };
    let mut add =
        |name, fact: Option<Fact>| facts.extend(fact.filter(Fact::is_finite).map(|fact| (name, fact)));
    let exact = |value: f64| Some(Fact::exact(value));
    let iteration_ns = summary.iteration_ns.median;
    // It stands in sentences, and no rule asks how large it is.
    add("iteration_ns", exact(iteration_ns));
    add("cpu_ns", exact(summary.cpu_ns()));
    add("delayed_acknowledgement_ns", exact(delayed_acknowledgement_ns(&evidence.record.case.spec)));
    add("size_bytes", evidence.record.case.size_bytes.map(|size| Fact::exact(size.0 as f64)));
    add("calls", evidence.calls_an_iteration().map(Fact::exact));
    add("faults", exact(summary.client.faults + summary.server.map_or(0.0, |server| server.faults)));

    for (role, saved_name, left_name) in [
        (ControlDifference::Spinning, "spinning_saves_ns", "spinning_cpu_ns"),
        (ControlDifference::Matched, "matching_saves_ns", "matching_cpu_ns"),
        (ControlDifference::Untouched, "touching_ns", "untouched_cpu_ns"),
        (ControlDifference::Local, "local_saves_ns", "local_cpu_ns"),
    ] {
        let control_case = evidence.control_case(role);
        let saved = control_case.and_then(|other| difference(evidence.record, other));
        // What does not surely save anything saves nothing.
        let saved = saved.and_then(|saved| Fact::estimated(saved.median, saved.interval));
        add(saved_name, saved.filter(|saved| saved.low > 0.0));
        let left = control_case.and_then(|other| Some(other.summary.as_ref()?.cpu_ns()));
        add(left_name, left.map(Fact::exact));
    }
    // Where an iteration takes as long as a timer, there is time for few trials, and no interval. But then it is most of the iteration.
    let at_once_ns =
        evidence.control_case(ControlDifference::AtOnce).and_then(|other| other.summary.as_ref());
    let saved_ns = at_once_ns.map(|other| iteration_ns - other.iteration_ns.median);
    add("at_once_saves_ns", saved_ns.filter(|saved_ns| *saved_ns > iteration_ns / 2.0).map(Fact::exact));
    if let Some(schedule) = evidence.observations.schedule() {
        let sleeping = schedule.iter().map(|row| row.sleeping_share).fold(0.0, f64::max);
        add("sleeping_share", exact(sleeping));
        add("migrations", exact(schedule.iter().map(|row| row.migrations).sum()));
    }
    if let Some(calls) = evidence.calls {
        let receives = || calls.iter().flatten().filter(|row| copy_kind(&row.name) == Some(CopyKind::Out));
        let asked: f64 = receives().map(|row| row.asked_sum as f64).sum();
        let came: f64 = receives().map(|row| row.returned_sum as f64).sum();
        let count: f64 = receives().map(|row| row.count as f64).sum();
        let iterations: Option<f64> = receives().next().map(|row| row.count as f64 / row.per_iteration);
        if count > 0.0 {
            add("filled_share", exact(came / asked.max(1.0)));
            add("came_bytes", exact(came / count));
            add("asked_bytes", exact(asked / count));
            add("receives", iterations.map(|iterations| Fact::exact(count / iterations)));
        }
        let failed: u64 = calls.iter().flatten().flat_map(|row| row.errors.values()).sum();
        let all: u64 = calls.iter().flatten().map(|row| row.count).sum();
        add("failed_share", (all > 0).then(|| Fact::exact(failed as f64 / all as f64)));
    }
    let share = |of: Option<MeanEstimate>| {
        let MeanEstimate { mean, interval } = of?;
        let interval = interval.map(|(low, high)| (low / iteration_ns, high / iteration_ns));
        Fact::estimated(mean / iteration_ns, interval)
    };
    add("calls_share", share(evidence.sampled_ns(&[Subsystem::Entry])));
    add("copies_share", share(evidence.sampled_ns(&[Subsystem::Copy])));
    add("network_share", share(evidence.sampled_ns(&[Subsystem::Sockets, Subsystem::Network])));
    add("faults_share", share(evidence.sampled_ns(&[Subsystem::Faults])));
    add("user_share", share(evidence.sampled_ns(&[Subsystem::User])));
    add("wake_ups_share", share(path.and_then(|path| path.of_kinds(&|kind| kind.is_wake_up()))));
    facts
}

/// For how long at least the kernel delays an acknowledgement (`TCP_DELACK_MIN`; of SCTP its sack_timeout, as it usually is).
fn delayed_acknowledgement_ns(spec: &Spec) -> f64 {
    if spec.name == "sctp" { 200e6 } else { 40e6 }
}

#[cfg(test)]
mod tests {
    use super::super::case_observations::CaseObservations;
    use super::super::rules::advise;
    use super::*;
    use crate::summary::summarise_alone;
    use model::case::Case;
    use model::floor::operation;
    use model::histogram::Histogram;
    use model::observation::profile::CallProfile;
    use model::record::Record;
    use model::testing;
    use model::units::Size;
    use model::workload::Workload;

    fn case(name: &str) -> Case {
        Case { workload: Workload::Latency, size_bytes: Some(Size(4096)), ..operation(name, 1) }
    }

    fn record(case: Case, iteration_ns: f64) -> Record {
        let samples = (0..8).map(|round| testing::sample(round, iteration_ns, None)).collect::<Vec<_>>();
        Record { summary: summarise_alone(&case, &samples), ..testing::record(case, samples) }
    }

    /// Calls of 100 iterations: `count` in all, each asked for `asked` bytes and given `returned`.
    fn calls(name: &str, count: u64, asked: u64, returned: i64) -> CallProfile {
        CallProfile {
            name: name.to_owned(),
            count,
            per_iteration: count as f64 / 100.0,
            time: Histogram::new().encode(),
            mean_ns: 1.0,
            errors: BTreeMap::new(),
            restarts: 0,
            returned: Vec::new(),
            returned_sum: returned * count as i64,
            asked_sum: asked * count,
        }
    }

    fn facts_of(
        records: &[Record],
        control_cases: Vec<(ControlDifference, Case)>,
        calls: Option<&[Vec<CallProfile>; 2]>,
    ) -> Facts {
        let observations = CaseObservations::new(records[0].case.clone(), control_cases);
        facts(&Evidence { observations: &observations, record: &records[0], records, calls }, None)
    }

    #[test]
    fn only_what_is_known_is_a_fact() {
        let facts = facts_of(&[record(case("pipe"), 1000.0)], Vec::new(), None);
        let values = ["iteration_ns", "size_bytes", "faults"].map(|name| facts[name].value);
        assert!((values[0] - 1000.0).abs() < 1e-6 && values[1..] == [4096.0, 0.0], "{values:?}");
        for absent in ["calls", "sleeping_share", "filled_share", "calls_share", "spinning_saves_ns"] {
            assert!(!facts.contains_key(absent), "{absent}");
        }
        let unmeasured = testing::record(case("pipe"), Vec::new());
        assert!(facts_of(&[unmeasured], Vec::new(), None).is_empty());
    }

    #[test]
    fn a_saving_is_the_difference_to_a_control_case_and_never_a_loss() {
        let (spinning, matched) = (case("spinning"), case("matched"));
        let records =
            [record(case("pipe"), 1000.0), record(spinning.clone(), 400.0), record(matched.clone(), 1100.0)];
        let control_cases =
            vec![(ControlDifference::Spinning, spinning), (ControlDifference::Matched, matched)];
        let facts = facts_of(&records, control_cases, None);
        let Fact { value, low, .. } = facts["spinning_saves_ns"];
        assert!(value == 600.0 && low > 0.0);
        assert!(!facts.contains_key("matching_saves_ns"), "it takes longer");
        assert!(facts.contains_key("matching_cpu_ns"));
    }

    #[test]
    fn what_nagles_algorithm_holds_back_is_told_where_it_costs_what_a_timer_does() {
        let each = |name: &str, ns: u64| {
            let sample = testing::sample(0, ns as f64, None);
            let summary = summarise_alone(&case(name), std::slice::from_ref(&sample));
            Record { summary, ..testing::record(case(name), vec![sample]) }
        };
        let advised = |name: &str, at_once_ns: u64| {
            let records = [each(name, 88_000_000), each("at-once", at_once_ns)];
            advise(&facts_of(&records, vec![(ControlDifference::AtOnce, case("at-once"))], None))
        };
        for (name, delayed) in [("tcp", "delays by 40.0 ms"), ("sctp", "delays by 200 ms")] {
            let [advice] = advised(name, 400_000).try_into().unwrap();
            assert_eq!(advice.rule, "held-back");
            assert!(advice.says.contains(delayed) && advice.says.contains("of 88.0 ms"), "{advice:?}");
            assert!(advice.r#try.contains("nodelay=on"), "{advice:?}");
        }
        assert!(advised("tcp", 80_000_000).is_empty(), "most of it is something else");
    }

    #[test]
    fn receives_are_counted_over_both_endpoints_and_failures_over_all_calls() {
        let mut failing = calls("read", 200, 4096, 1024);
        failing.errors = BTreeMap::from([(11, 100)]);
        let calls = [vec![calls("write", 100, 4096, 4096)], vec![failing]];
        let facts = facts_of(&[record(case("pipe"), 1000.0)], Vec::new(), Some(&calls));
        let names = ["calls", "receives", "filled_share", "came_bytes", "asked_bytes", "failed_share"];
        let values = names.map(|name| facts[name].value);
        assert_eq!(values, [3.0, 2.0, 0.25, 1024.0, 4096.0, 100.0 / 300.0]);
    }
}
