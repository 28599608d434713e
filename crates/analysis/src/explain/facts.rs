//! Facts: numbers about a case, by name, by which rules are judged and which their sentences show.
//!
//! A name ends in its unit: `_ns`, `_bytes`, `_share` (of one), or none. A fact that is not known is absent, and a rule that
//! needs it does not fire.

use super::control_cases::ControlDifference;
use super::copies::{CopyKind, copy_kind};
use super::decompose::{Decomposition, TermKind, TermSource, difference};
use super::evidence::Evidence;
use model::estimate::Estimate;
use std::collections::BTreeMap;

/// Facts by name.
pub(crate) type Facts = BTreeMap<&'static str, f64>;

pub(crate) fn facts(evidence: &Evidence<'_>, decomposition: Option<&Decomposition>) -> Facts {
    let mut facts = Facts::new();
    let mut add = |name, value: Option<f64>| {
        facts.extend(value.filter(|value| value.is_finite()).map(|value| (name, value)));
    };
    let Some(summary) = evidence.record.summary.as_ref() else { return facts };
    let iteration_ns = summary.iteration_ns.median;
    add("iteration_ns", Some(iteration_ns));
    add("cpu_ns", Some(summary.cpu_ns()));
    add("size_bytes", evidence.record.case.size_bytes.map(|size| size.0 as f64));
    add("calls", evidence.calls_an_iteration());
    add("faults", Some(summary.client.faults + summary.server.map_or(0.0, |server| server.faults)));

    for (role, saved_name, left_name) in [
        (ControlDifference::Spinning, "spinning_saves_ns", "spinning_cpu_ns"),
        (ControlDifference::Matched, "matching_saves_ns", "matching_cpu_ns"),
        (ControlDifference::Untouched, "touching_ns", "untouched_cpu_ns"),
        (ControlDifference::Local, "local_saves_ns", "local_cpu_ns"),
    ] {
        let control_case = evidence.control_case(role);
        // A saving counts only if its whole interval is above 0.
        let saved =
            control_case.and_then(|other| difference(evidence.record, other)).filter(is_surely_positive);
        add(saved_name, saved.map(|saved| saved.median));
        add(left_name, control_case.and_then(|other| Some(other.summary.as_ref()?.cpu_ns())));
    }
    if let Some(schedule) = evidence.observations.schedule() {
        let sleeping = schedule.iter().map(|row| row.sleeping_share).fold(0.0, f64::max);
        add("sleeping_share", Some(sleeping));
        add("preemptions", Some(schedule.iter().map(|row| row.preemptions).sum()));
        add("migrations", Some(schedule.iter().map(|row| row.migrations).sum()));
    }
    if let Some(calls) = evidence.calls {
        let receives = || calls.iter().flatten().filter(|row| copy_kind(&row.name) == Some(CopyKind::Out));
        let asked: f64 = receives().map(|row| row.asked_sum as f64).sum();
        let came: f64 = receives().map(|row| row.returned_sum as f64).sum();
        let count: f64 = receives().map(|row| row.count as f64).sum();
        let iterations: Option<f64> = receives().next().map(|row| row.count as f64 / row.per_iteration);
        if count > 0.0 {
            add("filled_share", Some(came / asked.max(1.0)));
            add("came_bytes", Some(came / count));
            add("asked_bytes", Some(asked / count));
            add("receives", iterations.map(|iterations| count / iterations));
        }
        let failed: u64 = calls.iter().flatten().flat_map(|row| row.errors.values()).sum();
        let restarted: u64 = calls.iter().flatten().map(|row| row.restarts).sum();
        let all: u64 = calls.iter().flatten().map(|row| row.count).sum();
        add("failed_share", (all > 0).then(|| failed as f64 / all as f64));
        add("restarted_share", (all > 0).then(|| restarted as f64 / all as f64));
    }
    if let Some(decomposition) = decomposition {
        let share = |kind| {
            let term = decomposition.terms.iter().find(|term| term.kind == kind)?;
            // A term whose interval reaches 0 is no evidence.
            let is_sure = decomposition.best == TermSource::Samples
                || term.by_difference_ns.as_ref().is_some_and(is_surely_positive);
            Some(decomposition.ns_of(term).filter(|_| is_sure)? / iteration_ns)
        };
        add("calls_share", share(TermKind::Calls));
        add("copies_share", share(TermKind::Copies));
        add("wake_ups_share", share(TermKind::WakeUps));
        add("network_share", share(TermKind::Network));
        add("faults_share", share(TermKind::Faults));
        add("memory_share", share(TermKind::Memory));
        add("user_share", share(TermKind::User));
    }
    facts
}

fn is_surely_positive(estimate: &Estimate) -> bool {
    estimate.interval.is_some_and(|(low, _)| low > 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::case_observations::CaseObservations;
    use super::*;
    use crate::host_speed::FullSpeed;
    use crate::summary::summarise;
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
        Record {
            summary: summarise(&case, &samples, &FullSpeed::default()),
            ..testing::record(case, samples)
        }
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
        assert_eq!((facts["iteration_ns"], facts["size_bytes"], facts["faults"]), (1000.0, 4096.0, 0.0));
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
        assert_eq!(facts["spinning_saves_ns"], 600.0);
        assert!(!facts.contains_key("matching_saves_ns"), "it takes longer");
        assert!(facts.contains_key("matching_cpu_ns"));
    }

    #[test]
    fn receives_are_counted_over_both_endpoints_and_failures_over_all_calls() {
        let mut failing = calls("read", 200, 4096, 1024);
        failing.errors = BTreeMap::from([(11, 100)]);
        let calls = [vec![calls("write", 100, 4096, 4096)], vec![failing]];
        let facts = facts_of(&[record(case("pipe"), 1000.0)], Vec::new(), Some(&calls));
        assert_eq!((facts["calls"], facts["receives"]), (3.0, 2.0));
        assert_eq!(
            (facts["filled_share"], facts["came_bytes"], facts["asked_bytes"]),
            (0.25, 1024.0, 4096.0)
        );
        assert_eq!((facts["failed_share"], facts["restarted_share"]), (100.0 / 300.0, 0.0));
    }
}
