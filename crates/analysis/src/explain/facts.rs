//! Numbers about a case, by name: what rules judge, and what their sentences show.
//!
//! The end of a name is its unit: `_ns`, `_bytes`, `_share` (of one), or a plain number. A fact that is not known is not
//! there, and a rule that wants it does not fire.

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
    let mut know = |name, value: Option<f64>| {
        facts.extend(value.filter(|value| value.is_finite()).map(|value| (name, value)));
    };
    let Some(summary) = evidence.record.summary.as_ref() else { return facts };
    let iteration_ns = summary.iteration_ns.median;
    know("iteration_ns", Some(iteration_ns));
    know("cpu_ns", Some(summary.cpu_ns()));
    know("size_bytes", evidence.record.case.size_bytes.map(|size| size.0 as f64));
    know("calls", evidence.calls_an_iteration());
    know("faults", Some(summary.client.faults + summary.server.map_or(0.0, |server| server.faults)));

    for (role, saved_name, left_name) in [
        (ControlDifference::Spinning, "spinning_saves_ns", "spinning_cpu_ns"),
        (ControlDifference::Matched, "matching_saves_ns", "matching_cpu_ns"),
        (ControlDifference::Untouched, "touching_ns", "untouched_cpu_ns"),
        (ControlDifference::Local, "local_saves_ns", "local_cpu_ns"),
    ] {
        let control_case = evidence.control_case(role);
        // Only what is surely a saving is one.
        let saved =
            control_case.and_then(|other| difference(evidence.record, other)).filter(is_surely_positive);
        know(saved_name, saved.map(|saved| saved.median));
        know(left_name, control_case.and_then(|other| Some(other.summary.as_ref()?.cpu_ns())));
    }
    if let Some(schedule) = evidence.observations.schedule() {
        let sleeping = schedule.iter().map(|row| row.sleeping_share).fold(0.0, f64::max);
        know("sleeping_share", Some(sleeping));
        know("preemptions", Some(schedule.iter().map(|row| row.preemptions).sum()));
        know("migrations", Some(schedule.iter().map(|row| row.migrations).sum()));
    }
    if let Some(calls) = evidence.calls {
        let receives = || calls.iter().flatten().filter(|row| copy_kind(&row.name) == Some(CopyKind::Out));
        let asked: f64 = receives().map(|row| row.asked_sum as f64).sum();
        let came: f64 = receives().map(|row| row.returned_sum as f64).sum();
        let count: f64 = receives().map(|row| row.count as f64).sum();
        let iterations: Option<f64> = receives().next().map(|row| row.count as f64 / row.per_iteration);
        if count > 0.0 {
            know("filled_share", Some(came / asked.max(1.0)));
            know("came_bytes", Some(came / count));
            know("asked_bytes", Some(asked / count));
            know("receives", iterations.map(|iterations| count / iterations));
        }
        let failed: u64 = calls.iter().flatten().flat_map(|row| row.errors.values()).sum();
        let restarted: u64 = calls.iter().flatten().map(|row| row.restarts).sum();
        let all: u64 = calls.iter().flatten().map(|row| row.count).sum();
        know("failed_share", (all > 0).then(|| failed as f64 / all as f64));
        know("restarted_share", (all > 0).then(|| restarted as f64 / all as f64));
    }
    if let Some(decomposition) = decomposition {
        let share = |kind| {
            let term = decomposition.terms.iter().find(|term| term.kind == kind)?;
            // What may as well be nothing is no evidence.
            let is_sure = decomposition.best == TermSource::Samples
                || term.by_difference_ns.as_ref().is_some_and(is_surely_positive);
            Some(decomposition.ns_of(term).filter(|_| is_sure)? / iteration_ns)
        };
        know("calls_share", share(TermKind::Calls));
        know("copies_share", share(TermKind::Copies));
        know("wake_ups_share", share(TermKind::WakeUps));
        know("network_share", share(TermKind::Network));
        know("faults_share", share(TermKind::Faults));
        know("memory_share", share(TermKind::Memory));
        know("user_share", share(TermKind::User));
    }
    facts
}

fn is_surely_positive(estimate: &Estimate) -> bool {
    estimate.interval.is_some_and(|(low, _)| low > 0.0)
}
