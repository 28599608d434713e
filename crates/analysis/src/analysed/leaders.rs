//! The best mechanisms: of each workload in each place, at the smallest and at the largest size.

use super::record::AnalysedRecord;
use model::estimate::Estimate;
use model::floor::NULL;
use model::topology::CpuPair;
use model::{Case, Endpoints, Pace, Peers, Placement, Size, Workload};
use std::collections::BTreeMap;

/// The best mechanism of a workload in one place at one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// Its place among the records.
    pub best: usize,
    /// The places of those that cannot be told from it, the best first: their intervals overlap.
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
pub(super) fn leaders(records: &[AnalysedRecord<'_>]) -> Vec<Leader> {
    let mut groups: BTreeMap<Group, BTreeMap<Option<Size>, Vec<usize>>> = BTreeMap::new();
    for (at, analysed) in records.iter().enumerate() {
        let case = &analysed.record.case;
        let competes = !analysed.record.floor && !case.workload.is_alone() && case.spec.name != NULL;
        if competes && merit(analysed).is_some() {
            groups.entry(group(case)).or_default().entry(case.size_bytes).or_default().push(at);
        }
    }
    groups.into_values().flat_map(|sizes| of_group(records, &sizes)).collect()
}

fn of_group(records: &[AnalysedRecord<'_>], sizes: &BTreeMap<Option<Size>, Vec<usize>>) -> Vec<Leader> {
    let with_payload = sizes.iter().filter(|(size, _)| size.is_some_and(|size| size.0 > 0));
    let payloads: Vec<&Vec<usize>> = with_payload.map(|(_, members)| members).collect();
    let (first, last) = match payloads.as_slice() {
        [] => (sizes.values().next(), None),
        [only] => (Some(*only), None),
        [first, .., last] => (Some(*first), Some(*last)),
    };
    let several = last.is_some();
    let leader = |members: &Vec<usize>, at_largest| {
        let ranked = rank(records, members);
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
fn rank(records: &[AnalysedRecord<'_>], members: &[usize]) -> Option<Leader> {
    let mut ranked: Vec<(usize, Estimate)> =
        members.iter().filter_map(|at| Some((*at, merit(&records[*at])?))).collect();
    ranked.sort_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
    let (&(best, of_best), others) = ranked.split_first()?;
    let as_good = others.iter().filter(|(_, other)| match (of_best.interval, other.interval) {
        (Some((_, worst)), Some((best, _))) => best <= worst,
        (Some((_, worst)), None) => other.median <= worst,
        (None, _) => false,
    });
    Some(Leader {
        best,
        as_good: as_good.map(|(at, _)| *at).collect(),
        next: others.first().map(|(at, _)| *at),
        at_largest: false,
        is_of_several_sizes: false,
    })
}

/// By what a record competes; less is better.
fn merit(analysed: &AnalysedRecord<'_>) -> Option<Estimate> {
    let summary = analysed.trusted()?;
    let merit = summary.bytes_per_s.map_or(summary.iteration_ns, |rate| rate.map(|rate| -rate));
    merit.median.is_finite().then_some(merit)
}
