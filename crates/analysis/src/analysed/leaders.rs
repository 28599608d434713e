//! The best mechanisms: of each workload in each place, at the smallest and at the largest size.

use super::record::AnalysedRecord;
use crate::run::RunModel;
use model::floor::NULL;
use model::topology::CpuPair;
use model::{Case, Endpoints, Pace, Peers, Placement, Size, Workload};
use std::collections::BTreeMap;

/// The best mechanism of a workload in one place at one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// Its place among the records.
    pub best: usize,
    /// The places of those that cannot be told from it, the best first: what they take over what it takes may be less than 1.
    pub as_good: Vec<usize>,
    /// The place of the next best; absent where there is no other.
    pub next: Option<usize>,
    /// Whether the size is the largest of several that were measured.
    pub at_largest: bool,
    /// Whether there is another leader of the same workload and place, at the other end of the sizes.
    pub is_of_several_sizes: bool,
}

/// What cases have in common that can be ranked, but for their size.
type Group = (Workload, Placement, Option<CpuPair>, Endpoints, Pace, Peers);

/// The leaders among `records`, by workload and place; where there are two sizes, the smallest first.
///
/// Mechanisms compete by rate where the workload has one, otherwise by time. The instrument itself does not compete, and
/// empty messages count only where there are no others: few mechanisms have them.
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
    let with_payload = sizes.iter().filter(|(size, _)| size.is_some_and(|size| size.0 > 0));
    let payloads: Vec<&Vec<usize>> = with_payload.map(|(_, members)| members).collect();
    let (first, last) = match payloads.as_slice() {
        [] => (sizes.values().next(), None),
        [only] => (Some(*only), None),
        [first, .., last] => (Some(*first), Some(*last)),
    };
    let several = last.is_some();
    let leader = |members: &Vec<usize>, at_largest| {
        let ranked = rank(records, members, model);
        ranked.map(|leader| Leader { at_largest, is_of_several_sizes: several, ..leader })
    };
    let first = first.and_then(|members| leader(members, false));
    let last = last.and_then(|members| leader(members, true));
    first.into_iter().chain(last).collect()
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
    let is_as_good = |(other, of_other): &&(usize, f64)| {
        let ratio = model.ratio(&records[*other].record.case, &[&records[best].record.case]);
        ratio.is_some_and(|ratio| {
            // What was lost is no part of the time.
            let lost = of_other / of_best / ratio.median;
            ratio.interval.is_some_and(|(least, _)| least * lost <= 1.0)
        })
    };
    Some(Leader {
        best,
        as_good: others.iter().filter(is_as_good).map(|(at, _)| *at).collect(),
        next: others.first().map(|(at, _)| *at),
        at_largest: false,
        is_of_several_sizes: false,
    })
}

/// By what a record competes, which is to be small: the time of what it does, or of a byte that comes.
fn merit(analysed: &AnalysedRecord<'_>) -> Option<f64> {
    let summary = analysed.trusted()?;
    let merit = summary.bytes_per_s.map_or(summary.iteration_ns.median, |rate| 1e9 / rate.median);
    merit.is_finite().then_some(merit)
}
