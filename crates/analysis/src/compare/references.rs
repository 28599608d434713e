//! What else a change can be measured against: other floors, and the other cases of the same place.

use super::chosen_pair::{ChosenPair, ChosenSides};
use super::pairing::CasePair;
use super::statistics::Shift;
use crate::run::RunModel;
use crate::stats;
use model::case::Case;
use model::floor::{CACHE_LINE, CONTEXT_SWITCH, SYSCALL, measures_the_host};
use model::workload::Workload;
use std::collections::{BTreeMap, HashMap};

/// A floor that ran in every round of the runs of both sides.
pub(super) struct Reference<'a> {
    pub(super) case: &'a Case,
    /// What it took, by run and round, of A and of B.
    ns_by_round: [HashMap<(usize, u32), f64>; 2],
}

impl<'a> Reference<'a> {
    /// The floor of `pair`, if it is one that other cases can be measured against.
    pub(super) fn from_pair(pair: &CasePair<'a>) -> Option<Self> {
        let by_round = |side: &super::pairing::CaseRuns<'a>| {
            let samples =
                side.records.iter().flat_map(|(run, record)| record.samples.iter().map(|s| (*run, s)));
            samples.map(|(run, sample)| ((run, sample.round), sample.iteration_ns())).collect()
        };
        let case = pair.a.case();
        let is_one = [SYSCALL, CONTEXT_SWITCH, CACHE_LINE].contains(&case.spec.name.as_str());
        is_one.then(|| Self { case, ns_by_round: [by_round(&pair.a), by_round(&pair.b)] })
    }

    /// Whether a change of this floor could be a change of `case`: every case enters the kernel, and a
    /// hand-over where the case runs resembles what the case does.
    pub(super) fn resembles(&self, case: &Case) -> bool {
        self.case.spec.name == SYSCALL
            || (self.case.placement == case.placement && self.case.workload == Workload::Latency)
    }

    /// The shift of `sides` as a multiple of this floor.
    pub(super) fn shift(&self, sides: &ChosenSides<'_>) -> Option<Shift> {
        sides.shift(|side, run, sample| self.ns_by_round[side].get(&(run, sample.round)).copied())
    }
}

/// How the mechanisms that share a workload and a placement moved from A to B, to tell whether one of them moved alone.
///
/// The sizes of one mechanism are taken together, for all of them may well change for one reason.
pub(super) struct Neighbours {
    /// The median shift of each mechanism, by workload and placement.
    mechanisms: HashMap<(Workload, String), BTreeMap<String, f64>>,
}

impl Neighbours {
    /// The fewest other mechanisms whose common movement says something of the host.
    const FEWEST: usize = 3;

    /// Of the shifts of the times of all cases.
    pub(super) fn from_times<'a>(times: impl Iterator<Item = (&'a Case, Shift)>) -> Self {
        let mut shifts: HashMap<(Workload, String), BTreeMap<String, Vec<f64>>> = HashMap::new();
        for (case, shift) in times {
            let mechanisms = shifts.entry(Self::place(case)).or_default();
            mechanisms.entry(case.spec.name.clone()).or_default().push(shift.log);
        }
        let median_of = |(name, logs): (String, Vec<f64>)| Some((name, stats::median(&logs)?));
        let mechanisms = shifts
            .into_iter()
            .map(|(place, logs)| (place, logs.into_iter().filter_map(median_of).collect()))
            .collect();
        Self { mechanisms }
    }

    fn place(case: &Case) -> (Workload, String) {
        (case.workload, case.placement.to_string())
    }

    /// `time`, the shift of `case`, less what the other mechanisms of its place moved; `None` with too few of them.
    pub(super) fn less_common_shift(&self, case: &Case, time: Shift) -> Option<Shift> {
        let mechanisms = self.mechanisms.get(&Self::place(case))?;
        let others: Vec<f64> =
            mechanisms.iter().filter(|(name, _)| **name != case.spec.name).map(|(_, log)| *log).collect();
        let moved = stats::median(&others).filter(|_| others.len() >= Self::FEWEST)?;
        Some(Shift { log: time.log - moved, ..time })
    }
}

/// The shift of each of `cases` beside the other mechanisms between the same CPUs; `None` of operations, and with too few others. What
/// moves them all together cancels, so that it is known better than the shift of the time. Those that moved most, or least, may
/// have changed themselves and are left out.
pub(super) fn shifts_beside_others(
    cases: &[ChosenPair<'_>],
    models: &[Vec<RunModel>; 2],
) -> Vec<Option<Shift>> {
    /// With fewer, one that changed would count.
    const FEWEST: usize = 8;
    let reference_of = |pair: &ChosenPair<'_>| {
        let is_other = |other: &&ChosenPair<'_>| {
            (other.case.placement, other.case.cpus) == (pair.case.placement, pair.case.cpus)
                && other.case.spec.name != pair.case.spec.name
                && !measures_the_host(other.case)
        };
        let moved = |other: &&ChosenPair<'_>| other.time.map_or(0.0, |time| time.log);
        let mut others: Vec<&ChosenPair<'_>> =
            cases.iter().filter(is_other).filter(|other| other.time.is_some()).collect();
        others.sort_by(|x, y| moved(x).total_cmp(&moved(y)));
        let quarter = others.len() / 4;
        let middle = &others[quarter..others.len() - quarter];
        let is_enough = middle.len() >= FEWEST && !measures_the_host(pair.case);
        is_enough.then(|| pair.shift_beside(middle, models)).flatten()
    };
    cases.iter().map(reference_of).collect()
}
