//! The slices of one case by which it is compared: those at full speed, and all.

use super::pairing::{CasePair, CaseRuns};
use super::statistics::{FEWEST_TRIALS, Shift};
use crate::host_speed::FullSpeed;
use crate::stats;
use model::case::Case;
use model::inject::Inject;
use model::record::{Outcome, Record};
use model::sample::Sample;
use std::collections::{BTreeMap, BTreeSet};

/// The slices of one case by which it is compared.
pub(super) struct ChosenPair<'a> {
    pub(super) case: &'a Case,
    /// Whether its times are those at full speed, or all.
    pub(super) at_full_speed: bool,
    /// The slices of which that says the times.
    pub(super) shown: ChosenSides<'a>,
    /// All slices, where those are fewer.
    all: Option<ChosenSides<'a>>,
    /// The delay that was injected in each side.
    pub(super) injects: [Option<Inject>; 2],
    /// Why runs of A and of B failed to measure it.
    pub(super) failures: [Vec<&'a str>; 2],
}

/// Slices of each run of A and of B, with the number of the run.
pub(super) struct ChosenSides<'a>(pub(super) [Vec<(usize, Vec<&'a Sample>)>; 2]);

impl<'a> ChosenPair<'a> {
    /// Times are of the undisturbed slices, where every run has enough trials with some: those of a slow minute are then not compared
    /// with those of a fast one. They are of all slices elsewhere.
    pub(super) fn of(pair: &CasePair<'a>, full_speeds: [&[FullSpeed]; 2]) -> Self {
        let undisturbed = |side: usize, runs: &CaseRuns<'a>| -> Vec<(usize, Vec<&'a Sample>)> {
            let chosen = runs.records.iter().map(|(run, record)| {
                let full_speed = &full_speeds[side][*run];
                let is_undisturbed =
                    |sample: &&Sample| full_speed.undisturbed(&record.case, sample) == Some(true);
                (*run, record.samples.iter().filter(is_undisturbed).collect())
            });
            chosen.collect()
        };
        let all = |runs: &CaseRuns<'a>| -> Vec<(usize, Vec<&'a Sample>)> {
            runs.records.iter().map(|(run, record)| (*run, record.samples.iter().collect())).collect()
        };
        let undisturbed = [undisturbed(0, &pair.a), undisturbed(1, &pair.b)];
        let all = ChosenSides([all(&pair.a), all(&pair.b)]);
        let (at_full_speed, shown, all) =
            match undisturbed.iter().flatten().all(|(_, samples)| trials(samples) >= FEWEST_TRIALS) {
                true => (true, ChosenSides(undisturbed), Some(all)),
                false => (false, all, None),
            };
        let injects = [&pair.a, &pair.b].map(|side| side.case().inject);
        let failures = [failures(&pair.a), failures(&pair.b)];
        Self { case: pair.a.case(), at_full_speed, shown, all, injects, failures }
    }

    /// The slices whose multiples of a floor may be compared: a floor is as fast or slow as the host is beside it, so that those of a
    /// slow minute do as well.
    pub(super) fn of_multiples(&self) -> impl Iterator<Item = &ChosenSides<'a>> {
        std::iter::once(&self.shown).chain(&self.all)
    }

    /// What was injected, where the sides differ in it: the name of a case is A's.
    pub(super) fn injected(&self) -> Option<String> {
        let text = |inject: Option<Inject>| {
            inject.map_or("no delay".to_owned(), |inject| format!("a delay of {inject}"))
        };
        let [a, b] = self.injects;
        (a != b).then(|| format!("A was measured with {} injected, B with {}", text(a), text(b)))
    }
}

impl ChosenSides<'_> {
    /// ln B − ln A of times as multiples of what `floor_ns` gives for the side, the run and the slice.
    pub(super) fn shift(&self, floor_ns: impl Fn(usize, usize, &Sample) -> Option<f64>) -> Option<Shift> {
        shift_of(&self.trials(floor_ns))
    }

    /// The trials of each run of A and of B, as multiples of what `floor_ns` gives.
    pub(super) fn trials(&self, floor_ns: impl Fn(usize, usize, &Sample) -> Option<f64>) -> Multiples {
        [0, 1].map(|side| {
            let of_run = |(run, samples): &(usize, Vec<&Sample>)| {
                (*run, trials_of(samples, |sample| floor_ns(side, *run, sample)))
            };
            self.0[side].iter().map(of_run).collect()
        })
    }
}

/// ln B − ln A of `multiples`.
pub(super) fn shift_of(multiples: &Multiples) -> Option<Shift> {
    let logs = |runs: &[(usize, Vec<TrialLog>)]| -> Vec<Vec<f64>> {
        runs.iter().map(|(_, trials)| trials.iter().map(|trial| trial.log).collect()).collect()
    };
    let [a, b] = multiples;
    Shift::between(&logs(a), &logs(b))
}

fn failures<'a>(runs: &CaseRuns<'a>) -> Vec<&'a str> {
    let failure = |(_, record): &(usize, &'a Record)| match &record.outcome {
        Outcome::Failed { error } => Some(error.as_str()),
        _ => None,
    };
    runs.records.iter().filter_map(failure).collect()
}

/// How many trials `samples` are of.
pub(super) fn trials(samples: &[&Sample]) -> usize {
    samples.iter().map(|sample| sample.trial).collect::<BTreeSet<_>>().len()
}

/// The multiples of one case: the trials of each run of A and of B, with the number of the run.
pub(super) type Multiples = [Vec<(usize, Vec<TrialLog>)>; 2];

/// One trial: the median logarithm of its slices.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrialLog {
    pub(super) started_ns: u64,
    pub(super) log: f64,
}

/// The trials of `samples` in time order, as multiples of `floor_ns`; without slices that have no floor.
fn trials_of(samples: &[&Sample], floor_ns: impl Fn(&Sample) -> Option<f64>) -> Vec<TrialLog> {
    let mut trials: BTreeMap<u32, (u64, Vec<f64>)> = BTreeMap::new();
    for sample in samples {
        let Some(floor_ns) = floor_ns(sample) else { continue };
        let (started_ns, logs) = trials.entry(sample.trial).or_insert((sample.started_ns, Vec::new()));
        *started_ns = sample.started_ns.min(*started_ns);
        logs.push((sample.iteration_ns() / floor_ns).ln());
    }
    let log = |(started_ns, logs): (u64, Vec<f64>)| Some(TrialLog { started_ns, log: stats::median(&logs)? });
    let mut trials: Vec<TrialLog> = trials.into_values().filter_map(log).collect();
    trials.sort_by_key(|trial| trial.started_ns);
    trials
}
