//! The fastest: of each workload in each place, at each size.

use super::record::AnalysedRecord;
use crate::run::RunModel;
use model::estimate::Estimate;
use model::floor::NULL;
use model::topology::CpuPair;
use model::{Case, Endpoints, Pace, Peers, Placement, Size, Workload};
use std::collections::BTreeMap;

/// What is known no better than this, as half of the width of its interval over it, is a range, and never called the fastest.
pub const WIDEST: f64 = 0.25;

/// The fastest mechanism of a workload in one place at one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Leader {
    /// Its place among the records.
    pub best: usize,
    /// The places of those that are too close to it to call, the best first.
    pub as_good: Vec<usize>,
    /// Those that are slower, the nearest first: the place, and how many times as long they take.
    pub slower: Vec<(usize, Estimate)>,
    /// Whether it is known well enough to be called the fastest.
    pub is_known: bool,
    /// Whether the size is the smallest of those with a payload.
    pub at_smallest: bool,
    /// The same of the largest.
    pub at_largest: bool,
    /// Whether something else was measured that it could be slower than.
    pub has_rivals: bool,
    /// The fastest of those that sleep while they wait, where the fastest of all keeps its CPUs busy.
    pub asleep: Option<Box<Leader>>,
}

/// What cases have in common that can be ranked, but for their size.
type Group = (Workload, Placement, Option<CpuPair>, Endpoints, Pace, Peers);

/// The leaders among `records`, by workload, place and size, the smallest first.
///
/// Mechanisms compete by rate where the workload has one, otherwise by time. The instrument itself does not compete, unless there is
/// nothing else.
pub(super) fn leaders(records: &[AnalysedRecord<'_>], model: &RunModel) -> Vec<Leader> {
    let mut groups: BTreeMap<Group, BTreeMap<Option<Size>, Vec<usize>>> = BTreeMap::new();
    for (at, analysed) in records.iter().enumerate() {
        let case = &analysed.record.case;
        let competes = !analysed.record.floor && !case.workload.is_alone() && case.spec.name != NULL;
        if competes && merit(analysed).is_some() {
            groups.entry(group(case)).or_default().entry(case.size_bytes).or_default().push(at);
        }
    }
    groups.into_values().flat_map(|sizes| of_group(records, &sizes, model)).collect()
}

fn of_group(
    records: &[AnalysedRecord<'_>],
    sizes: &BTreeMap<Option<Size>, Vec<usize>>,
    model: &RunModel,
) -> Vec<Leader> {
    let has_payload = |size: &&Option<Size>| size.is_some_and(|size| size.0 > 0);
    let with_payload: Vec<&Option<Size>> = sizes.keys().filter(has_payload).collect();
    let smallest = with_payload.first().copied().or(sizes.keys().next());
    let largest = with_payload.last().copied().or(sizes.keys().last());
    let leaders = sizes.iter().filter_map(|(size, members)| {
        let leader = rank(records, members, model)?;
        let (at_smallest, at_largest) = (Some(size) == smallest, Some(size) == largest);
        Some(Leader { at_smallest, at_largest, ..leader })
    });
    leaders.collect()
}

fn group(case: &Case) -> Group {
    (case.workload, case.placement, case.cpus, case.endpoints, case.pace, case.peers)
}

/// The best of `members`, which are of one size.
fn rank(records: &[AnalysedRecord<'_>], members: &[usize], model: &RunModel) -> Option<Leader> {
    let mut ranked: Vec<(usize, f64)> =
        members.iter().filter_map(|at| Some((*at, merit(&records[*at])?))).collect();
    ranked.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let (&(best, of_best), others) = ranked.split_first()?;
    let (mut as_good, mut slower) = (Vec::new(), Vec::new());
    for (other, of_other) in others {
        let times = times_as_long([&records[*other], &records[best]], of_other / of_best, model);
        match times.interval {
            Some((least, _)) if least > 1.0 => slower.push((*other, times)),
            _ => as_good.push(*other),
        }
    }
    let is_known = records[best].half_width().is_some_and(|half| half <= WIDEST);
    let sleeps = |at: &usize| records[*at].record.case.spec.params.sleeps();
    let sleepers: Vec<usize> = members.iter().copied().filter(sleeps).collect();
    let asleep = if sleeps(&best) { None } else { rank(records, &sleepers, model).map(Box::new) };
    let has_rivals = !others.is_empty();
    Some(Leader {
        best,
        as_good,
        slower,
        is_known,
        has_rivals,
        at_smallest: false,
        at_largest: false,
        asleep,
    })
}

/// How many times as long the first takes as the second, whose numbers are in this `ratio`. Of cases that were fitted together that is
/// known better than by their own intervals, which tell it where nothing was fitted.
fn times_as_long(pair: [&AnalysedRecord<'_>; 2], ratio: f64, model: &RunModel) -> Estimate {
    let [other, best] = pair.map(|analysed| &analysed.record.case);
    if let Some(fitted) = model.ratio(other, &[best]) {
        // What was lost is no part of the time.
        return fitted.map(|times| times * ratio / fitted.median);
    }
    let halves = pair.map(AnalysedRecord::half_width);
    let interval = match halves {
        [Some(a), Some(b)] => Some(a.hypot(b)).map(|half| (ratio / (1.0 + half), ratio * (1.0 + half))),
        _ => None,
    };
    Estimate { median: ratio, interval }
}

/// By what a record competes, which is to be small: the time of what it does, or of a byte that comes.
fn merit(analysed: &AnalysedRecord<'_>) -> Option<f64> {
    let summary = analysed.trusted()?;
    let merit = summary.bytes_per_s.map_or(summary.iteration_ns.median, |rate| 1e9 / rate.median);
    merit.is_finite().then_some(merit)
}
