//! One case of both sides, as it is compared: what the model of each run says of its time, and the slices of its multiples.

use super::pairing::{CasePair, CaseRuns};
use super::statistics::{FEWEST_TRIALS, Shift};
use crate::interval::MeanError;
use crate::run::{HostState, RunModel, RunSlices};
use crate::stats;
use model::case::Case;
use model::inject::Inject;
use model::record::{Outcome, Record, Results};
use model::sample::Sample;
use std::collections::{BTreeMap, BTreeSet};

/// One case of both sides.
pub(super) struct ChosenPair<'a> {
    pub(super) case: &'a Case,
    /// ln B − ln A of its times at one state of the host; `None` where a side has too few trials.
    pub(super) time: Option<Shift>,
    /// Whether the state of the host was read beside its slices, in each run.
    pub(super) is_read: bool,
    /// The record of each run of A and of B that has enough trials, with the number of the run.
    runs: [Vec<(usize, &'a Record)>; 2],
    pub(super) slices: ChosenSides<'a>,
    /// What each run of A and of B says of it by itself, in nanoseconds.
    pub(super) found_ns: [Vec<f64>; 2],
    /// The delay that was injected in each side.
    pub(super) injects: [Option<Inject>; 2],
    /// Why runs of A and of B failed to measure it.
    pub(super) failures: [Vec<&'a str>; 2],
}

/// Slices of each run of A and of B, with the number of the run.
pub(super) struct ChosenSides<'a>(pub(super) [Vec<(usize, Vec<&'a Sample>)>; 2]);

/// The models of the runs of A and of B, all at the middle of the calm states of all runs.
pub(super) fn side_models(sides: [&[Results]; 2]) -> [Vec<RunModel>; 2] {
    let slices = sides.map(|runs| runs.iter().map(RunSlices::of_results).collect::<Vec<_>>());
    let states: Vec<HostState> = slices.iter().flatten().map(RunSlices::calm_state).collect();
    let state = HostState::middle(&states);
    slices.map(|runs| runs.iter().map(|slices| RunModel::at(slices, &state)).collect())
}

impl<'a> ChosenPair<'a> {
    /// Of the runs of `pair`, which have `models`.
    pub(super) fn from_pair(pair: &CasePair<'a>, models: &[Vec<RunModel>; 2]) -> Self {
        let all = |runs: &CaseRuns<'a>| -> Vec<(usize, Vec<&'a Sample>)> {
            runs.records.iter().map(|(run, record)| (*run, record.samples.iter().collect())).collect()
        };
        let slices = ChosenSides([all(&pair.a), all(&pair.b)]);
        let found = |runs: &CaseRuns<'a>| -> Vec<f64> {
            let summaries = runs.records.iter().filter_map(|(_, record)| record.summary.as_ref());
            summaries.map(|summary| summary.iteration_ns.median).collect()
        };
        let with_enough = |runs: &CaseRuns<'a>| -> Vec<(usize, &'a Record)> {
            let has_enough = |(_, record): &&(usize, &Record)| {
                trials(&record.samples.iter().collect::<Vec<_>>()) >= FEWEST_TRIALS
            };
            runs.records.iter().filter(has_enough).copied().collect()
        };
        let runs = [&pair.a, &pair.b].map(with_enough);
        let [a, b] = [0, 1].map(|side| -> Vec<MeanError> {
            let of_run =
                |(run, record): &(usize, &Record)| models[side][*run].log_sum(&[(&record.case, 1.0)]);
            runs[side].iter().filter_map(of_run).collect()
        });
        let is_read = |(side, runs): (usize, &Vec<(usize, &Record)>)| {
            let slopes = |(run, record): &(usize, &Record)| models[side][*run].slopes(&record.case);
            runs.iter().all(|run| slopes(run).is_some_and(|slopes| slopes.iter().any(Option::is_some)))
        };
        Self {
            case: pair.a.case(),
            time: Shift::between(&a, &b),
            is_read: runs.iter().enumerate().all(is_read),
            runs,
            found_ns: [found(&pair.a), found(&pair.b)],
            slices,
            injects: [&pair.a, &pair.b].map(|side| side.case().inject),
            failures: [failures(&pair.a), failures(&pair.b)],
        }
    }

    /// ln B − ln A of its time over the geometric mean of the times of `others`, all at one state of the host; `None` where no run of a
    /// side has them all. A run that lacks one would have the mean of others.
    pub(super) fn shift_beside(&self, others: &[&Self], models: &[Vec<RunModel>; 2]) -> Option<Shift> {
        let [a, b] = [0, 1].map(|side| -> Vec<MeanError> {
            let of_run = |(run, record): &(usize, &'a Record)| {
                let in_run = |other: &&Self| {
                    let found = other.runs[side].iter().find(|(of, _)| of == run);
                    found.map(|(_, record)| &record.case)
                };
                let others: Vec<&Case> = others.iter().map(in_run).collect::<Option<_>>()?;
                let share = -1.0 / others.len() as f64;
                let shares = others.into_iter().map(|other| (other, share));
                models[side][*run]
                    .log_sum(&std::iter::once((&record.case, 1.0)).chain(shares).collect::<Vec<_>>())
            };
            self.runs[side].iter().filter_map(of_run).collect()
        });
        Shift::between(&a, &b)
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
    Shift::between_trials(&logs(a), &logs(b))
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
