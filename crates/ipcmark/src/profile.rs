//! The trials with probes of a run, once all cases were measured without: of the cases of whose probes the study draws
//! something, and by those probes.
//!
//! Nothing is explained here, and nothing is made up where a probe does not work: the results say why.

use crate::planning::requested;
use crate::progress::{Doing, Progress};
use harness::clock::Timer;
use harness::coordinator::profile::{self, A_SLICE, ENOUGH_ROUNDS, ObservedTrial, ProbePlan, ProbeSubject};
use harness::coordinator::schedule::{TimeBudget, Trials};
use harness::coordinator::slices::iterations_of_total;
use harness::protocol::orders::Sizing;
use model::card::Support;
use model::observation::profile::ProfileRecord;
use model::observation::{Probe, SamplingRate};
use model::plan::Plan;
use model::record::Fact;
use model::study::Study;
use model::{Case, Size};
use observe::symbols::Names;
use std::time::Duration;

/// The cases of `plan` that `study` needs probes for; trials of streams send `total`, if that is asked for.
pub fn subjects(study: &Study, plan: &Plan, total: Option<Size>) -> Vec<ProbeSubject> {
    let subject = |case: &Case| ProbeSubject {
        case: case.clone(),
        probes: study.probes_of(case),
        size: iterations_of_total(case, total).map_or(A_SLICE, Sizing::Iterations),
    };
    requested(plan).map(subject).filter(|subject| !subject.probes.is_empty()).collect()
}

/// Has probes observe `subjects` for `time`, and reports every trial, and every probe that does not work here.
pub fn observe(
    mut subjects: Vec<ProbeSubject>,
    trials: &dyn Trials,
    time: Duration,
    mut report: impl FnMut(ProfileRecord),
) {
    drop_unsupported(&mut subjects, observe::support, &mut report);
    let plan = ProbePlan {
        subjects: &subjects,
        counters: &[],
        sampling: &[SamplingRate::Full],
        rounds: ENOUGH_ROUNDS,
    };
    let budget = TimeBudget { clock: &Timer::start(), time };
    let (mut names, mut display) = (Names::default(), Progress::new());
    profile::observe(plan, trials, budget, |trial| {
        let ObservedTrial { case, probe, outcome, ratio, round, progress, .. } = trial;
        display.show(Doing::Probe(probe), progress);
        let profile = match (outcome, ratio) {
            (Err(failure), _) => Fact::Unknown(failure),
            // The first round warms up.
            (Ok(_), None) => return,
            (Ok(mut observation), Some(effect)) => {
                names.name(&mut observation);
                Fact::Known(analysis::traces::profile::profile(
                    probe,
                    observation,
                    effect,
                    observe::call_name,
                ))
            }
        };
        report(ProfileRecord { case: case.clone(), probe, round, profile });
    });
    display.finish();
}

/// Takes from `subjects` the probes that do not work here, and reports why.
fn drop_unsupported(
    subjects: &mut [ProbeSubject],
    support: impl Fn(Probe) -> Support,
    report: &mut impl FnMut(ProfileRecord),
) {
    for &probe in Probe::ALL {
        let mut needing = subjects.iter_mut().filter(|subject| subject.probes.contains(&probe)).peekable();
        if needing.peek().is_none() {
            continue;
        }
        if let Support::No { reason, remedy } = support(probe) {
            for subject in needing {
                subject.probes.retain(|needed| *needed != probe);
                let profile = Fact::Unknown(format!("{reason}; {remedy}"));
                report(ProfileRecord { case: subject.case.clone(), probe, round: 0, profile });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::floor;

    #[test]
    fn a_probe_that_does_not_work_is_reported_once_for_each_case_that_needs_it_and_dropped() {
        let subject = |name: &str, probes: &[Probe]| ProbeSubject {
            case: floor::operation(name, 0),
            probes: probes.to_vec(),
            size: A_SLICE,
        };
        let mut subjects =
            [subject("getpid", &[Probe::Ptrace, Probe::Faults]), subject("syscall", &[Probe::Faults])];
        let support = |probe| match probe {
            Probe::Faults => Support::No { reason: "no".to_owned(), remedy: "do".to_owned() },
            _ => Support::UNLIMITED,
        };
        let mut records = Vec::new();
        drop_unsupported(&mut subjects, support, &mut |record| records.push(record));
        assert_eq!(subjects[0].probes, [Probe::Ptrace]);
        assert!(subjects[1].probes.is_empty());
        let said: Vec<_> = records.iter().map(|r| (r.case.spec.name.as_str(), r.probe, &r.profile)).collect();
        let why = Fact::Unknown("no; do".to_owned());
        assert_eq!(said, [("getpid", Probe::Faults, &why), ("syscall", Probe::Faults, &why)]);
    }
}
