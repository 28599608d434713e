//! The trials of a run that are looked at, once all were measured plainly: of the cases of which the study draws what
//! probes see, and by those probes.
//!
//! Nothing is explained here, and nothing is made up where a probe does not work: the results say why.

use crate::progress::Progress;
use harness::clock::Timer;
use harness::coordinator::profile::{self, ENOUGH_ROUNDS, ObservedTrial, ProbePlan, ProbeSubject};
use harness::coordinator::schedule::TimeBudget;
use harness::coordinator::slices::iterations_of_total;
use harness::coordinator::trials::EndpointTrials;
use harness::protocol::orders::Sizing;
use model::card::Support;
use model::observation::Probe;
use model::observation::profile::{Profile, ProfileRecord};
use model::plan::Plan;
use model::record::Fact;
use model::study::Study;
use model::{Case, Size};
use observe::symbols::Names;
use std::time::Duration;

/// The cases of `plan` that `study` wants looked at; trials of streams send `total`, if that is asked for.
pub fn subjects(study: &Study, plan: &Plan, total: Option<Size>) -> Vec<ProbeSubject> {
    let subject = |case: &Case| ProbeSubject {
        case: case.clone(),
        probes: study.probes_of(case),
        size: iterations_of_total(case, total).map_or(profile::A_SLICE, Sizing::Iterations),
    };
    let subjects = plan.cases.iter().chain(&plan.awaited).map(subject);
    subjects.filter(|subject| !subject.probes.is_empty()).collect()
}

/// Looks at `subjects` for `time` and tells of every trial, and of those for which there is no probe.
pub fn look(
    mut subjects: Vec<ProbeSubject>,
    trials: &EndpointTrials<'_>,
    time: Duration,
    progress: &mut Progress,
    mut tell: impl FnMut(ProfileRecord),
) {
    for probe in Probe::ALL {
        let mut wanting = subjects.iter_mut().filter(|subject| subject.probes.contains(&probe)).peekable();
        if wanting.peek().is_none() {
            continue;
        }
        if let Support::No { reason, remedy } = observe::support(probe) {
            for subject in wanting {
                subject.probes.retain(|wanted| *wanted != probe);
                let showed = Fact::Unknown(format!("{reason}; {remedy}"));
                tell(ProfileRecord { case: subject.case.clone(), probe, round: 0, showed });
            }
        }
    }
    let plan = ProbePlan { subjects: &subjects, counters: &[], rounds: ENOUGH_ROUNDS };
    let budget = TimeBudget { clock: &Timer::start(), time };
    let mut names = Names::default();
    profile::observe(
        plan,
        trials,
        budget,
        |ObservedTrial { case, probe, outcome, ratio, round, progress: reached, .. }| {
            progress.show_probe(probe, reached);
            let showed = match (outcome, ratio) {
                (Err(failure), _) => Fact::Unknown(failure),
                // The first round warms up.
                (Ok(_), None) => return,
                (Ok(mut seen), Some(effect)) => {
                    names.name(&mut seen);
                    Fact::Known(Profile::of(probe, seen, effect, observe::call_name))
                }
            };
            tell(ProfileRecord { case: case.clone(), probe, round, showed });
        },
    );
}
