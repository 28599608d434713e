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
    /// The fastest of those that are known to sleep while they wait, where the fastest of all, or one that is too close to it, is known to
    /// keep its CPUs busy.
    pub asleep: Option<Box<Leader>>,
}

impl Leader {
    /// Whether something else was measured that it could be slower than.
    pub fn has_rivals(&self) -> bool {
        !(self.as_good.is_empty() && self.slower.is_empty())
    }
}

/// What cases have in common that can be ranked.
type Group = (Workload, Placement, Option<CpuPair>, Endpoints, Pace, Peers, Option<Size>);

/// The leaders among `records`, by workload, place and size, the smallest first.
///
/// Mechanisms compete by rate where the workload has one, otherwise by time. The instrument itself does not compete.
pub(super) fn leaders(records: &[AnalysedRecord<'_>], model: &RunModel) -> Vec<Leader> {
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (at, analysed) in records.iter().enumerate() {
        let case = &analysed.record.case;
        let competes = !analysed.record.floor && !case.workload.is_alone() && case.spec.name != NULL;
        if competes && merit(analysed).is_some() {
            groups.entry(group(case)).or_default().push(at);
        }
    }
    groups.into_values().filter_map(|members| rank(records, &members, model)).collect()
}

fn group(case: &Case) -> Group {
    (case.workload, case.placement, case.cpus, case.endpoints, case.pace, case.peers, case.size_bytes)
}

/// The best of `members`, which are of one group.
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
    // How a driver waits, nobody says.
    let is_known_to = |at: usize, sleep: bool| {
        let spec = &records[at].record.case.spec;
        spec.drivers.are_none() && spec.params.sleeps() == sleep
    };
    let sleepers: Vec<usize> = members.iter().copied().filter(|at| is_known_to(*at, true)).collect();
    let is_busy = [best].iter().chain(&as_good).any(|at| is_known_to(*at, false));
    let asleep = if is_busy { rank(records, &sleepers, model).map(Box::new) } else { None };
    Some(Leader { best, as_good, slower, is_known, asleep })
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
