//! Looking at cases: rounds of trials under each of their probes, between trials of the same iterations that nobody looks at.
//!
//! The trials in between tell what looking costs. It yields observations; what they mean is said elsewhere.

use crate::endpoint::Sizing;
use crate::measure::Timer;
use crate::trial::{Ended, Launcher};
use model::Case;
use model::observation::{Observation, Probe, ProbeRequest};
use std::time::Duration;

/// The rounds after which a case has been looked at enough: fewer allow no 95% interval of a probe's effect.
pub const ENOUGH_ROUNDS: u32 = 12;

/// What the iterations of a trial take that is looked at, where nobody says how many they are to be.
pub const A_SLICE: Sizing = Sizing::Slice { slice_ns: 8_000_000, hint_ns: None };

/// The part of the iterations that are made where each is stopped at every call.
const PTRACE_SHARE: u64 = 10;
/// How much longer trials are of which samples are taken.
const SAMPLING_TIMES: u64 = 16;

/// What is told of one trial that was looked at.
#[derive(Debug)]
pub struct Looked<'a> {
    /// The case, by its place in the list.
    pub at: usize,
    /// The probe.
    pub probe: Probe,
    /// What was seen, or why nothing was.
    pub outcome: Result<Observation, String>,
    /// The time of an iteration under the probe over that in the trials before and after it that nobody looked at; absent in
    /// the first round, which warms up.
    pub ratio: Option<f64>,
    /// The round, and how many there are to be at most.
    pub round: u32,
    /// The case itself.
    pub case: &'a Case,
}

/// A case that is to be looked at.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The case.
    pub case: Case,
    /// By what.
    pub probes: Vec<Probe>,
    /// How many iterations a trial is to have, or how long they are to take.
    pub size: Sizing,
}

/// How cases are to be looked at.
#[derive(Debug)]
pub struct Plan<'a> {
    /// What to look at.
    pub subjects: &'a [Subject],
    /// The counters that were asked for by name.
    pub counters: &'a [String],
    /// The rounds after which to stop.
    pub rounds: u32,
    /// The time after which to stop.
    pub time: Duration,
}

/// Looks at each case by each probe in turn, until there were enough rounds, or time is up, or it is interrupted. A probe
/// that fails on a case is not tried on it again.
pub fn look(plan: &Plan<'_>, launcher: &Launcher<'_>, mut tell: impl FnMut(Looked<'_>)) {
    let timer = Timer::start();
    let mut number = 0;
    let mut trial = |subject: &Subject, probe: Option<Probe>, hint_ns: Option<f64>| {
        number += 1;
        let look = ProbeRequest { probe, counters: plan.counters.to_vec() };
        launcher.observe(&subject.case, sized(subject.size, probe, hint_ns), number, &look)
    };
    let mut hints_ns = vec![None; plan.subjects.len()];
    let mut failed = vec![Vec::new(); plan.subjects.len()];
    for round in 0..=plan.rounds {
        for (at, subject) in plan.subjects.iter().enumerate() {
            let mut bare_ns: Option<f64> = None;
            let open = subject.probes.iter().copied().filter(|probe| !failed[at].contains(probe));
            for probe in open.collect::<Vec<_>>() {
                if timer.elapsed() >= plan.time && round > 0 {
                    return;
                }
                let before_ns = match bare_ns {
                    Some(before_ns) => Ok(before_ns),
                    None => trial(subject, None, hints_ns[at]).map(|bare| bare.iteration_ns()),
                };
                let seen = before_ns.and_then(|before_ns| {
                    hints_ns[at] = Some(before_ns);
                    let seen = trial(subject, Some(probe), hints_ns[at])?;
                    let after_ns = trial(subject, None, hints_ns[at])?.iteration_ns();
                    bare_ns = Some(after_ns);
                    let ratio = seen.iteration_ns() / (before_ns * after_ns).sqrt();
                    Ok((seen, ratio))
                });
                let (outcome, ratio) = match seen {
                    Ok((seen, ratio)) => (Ok(seen), (round > 0).then_some(ratio)),
                    Err(Ended::Interrupted) => return,
                    Err(Ended::Failed(error)) => {
                        failed[at].push(probe);
                        (Err(error), None)
                    }
                };
                tell(Looked { at, probe, outcome, ratio, round, case: &subject.case });
            }
        }
    }
}

/// The size of a trial under `probe`, where those that nobody looks at have `size`.
fn sized(size: Sizing, probe: Option<Probe>, hint_ns: Option<f64>) -> Sizing {
    let Sizing::Slice { slice_ns, .. } = size else { return size };
    let slice_ns = match probe {
        // An iteration takes so much longer there that a few are enough.
        Some(Probe::Ptrace) => slice_ns / PTRACE_SHARE,
        // Samples are few: a trial must be longer to have enough of them.
        Some(Probe::Sampling) => slice_ns * SAMPLING_TIMES,
        _ => slice_ns,
    };
    Sizing::Slice { slice_ns, hint_ns }
}
