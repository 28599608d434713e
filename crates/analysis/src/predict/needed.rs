//! Which measured cases a prediction needs, which of them are there, and how to plan the others.

use super::costs::{EndPlace, MeasuredCosts};
use model::block::Block;
use model::scenario::{Flow, Mix};
use model::{Pace, Peers, Placement, Placements, Scenario, Size, Spec, Workload};
use std::collections::BTreeMap;

/// Sizes that differ by less than this factor need one case.
const NEAR: u64 = 2;
/// A line goes on beyond the sizes that were measured by this factor.
const REACH: u64 = 4;
/// All sizes below this one cost about the same.
const SMALL: u64 = 256;

/// What a scenario needs, with the mechanisms that it has and with others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NeededCosts {
    /// The sizes, ascending, of each mechanism in each workload.
    sizes: BTreeMap<(Spec, Workload), Vec<u64>>,
    places: Vec<EndPlace>,
}

/// What the flows of `scenarios` need that have not the same mechanism in both, on a host that has as many CPUs as `cpus`.
pub fn needed(scenarios: [&Scenario; 2], cpus: usize) -> NeededCosts {
    let places = if cpus < 2 { vec![EndPlace::OneCpu] } else { vec![EndPlace::OneCpu, EndPlace::TwoCpus] };
    let mut needed = NeededCosts { places, ..NeededCosts::default() };
    let pairs = scenarios[0].flows.iter().zip(&scenarios[1].flows);
    for flow in pairs.filter(|(one, other)| one.mechanism != other.mechanism).flat_map(<[&Flow; 2]>::from) {
        let reply = flow.reply.as_ref().map(of_mix).unwrap_or_default();
        let key = (flow.mechanism.clone(), workload(flow));
        needed.sizes.entry(key).or_default().extend([of_mix(&flow.size), reply].concat());
    }
    needed.sizes.values_mut().for_each(thin);
    needed
}

/// What measures the messages of `flow`.
pub(super) fn workload(flow: &Flow) -> Workload {
    if flow.is_stream() { Workload::Throughput } else { Workload::Latency }
}

/// The least size of a mix, the mean and the largest.
fn of_mix(mix: &Mix<Size>) -> Vec<u64> {
    vec![mix.parts()[0].0.0, mix.mean().round() as u64, mix.largest().0]
}

/// Leaves out sizes that are near to others.
fn thin(sizes: &mut Vec<u64>) {
    sizes.sort_unstable();
    let largest = sizes.last().copied();
    sizes.dedup_by(|later, first| *later < first.saturating_mul(NEAR) || *later <= SMALL && *first <= SMALL);
    if let (Some(largest), Some(last)) = (largest, sizes.last_mut()) {
        *last = largest.max(*last);
    }
}

impl NeededCosts {
    /// The cases that `costs` lacks, in words; each with its sizes.
    pub fn missing(&self, costs: &MeasuredCosts) -> Vec<String> {
        let mut missing = Vec::new();
        for ((spec, workload), sizes) in &self.sizes {
            for place in &self.places {
                let known = costs.sizes(&(spec.clone(), *workload, *place));
                let lacking = sizes.iter().filter(|size| !is_covered(**size, &known));
                let lacking: Vec<String> = lacking.map(|size| Size(*size).to_string()).collect();
                if !lacking.is_empty() {
                    missing.push(format!("{spec} {workload} {} {place}", lacking.join(",")));
                }
            }
        }
        missing
    }

    /// What to measure.
    pub fn blocks(&self) -> Vec<Block> {
        let of_place = |place: &EndPlace| match place {
            EndPlace::OneCpu => Placements(vec![Placement::SameCore]),
            EndPlace::TwoCpus => {
                use Placement::{CrossLlc, CrossNode, SameLlc, Smt};
                Placements(vec![SameLlc, CrossLlc, Smt, CrossNode])
            }
        };
        let placements: Vec<Placements> = self.places.iter().map(of_place).collect();
        let of_sizes = |((spec, workload), sizes): (&(Spec, Workload), &Vec<u64>)| Block {
            specs: vec![spec.clone()],
            workloads: vec![*workload],
            sizes: sizes.iter().map(|bytes| Size((*bytes).max(1))).collect(),
            placements: placements.clone(),
            paces: vec![Pace::BackToBack],
            peers: vec![Peers::Pair],
        };
        self.sizes.iter().map(of_sizes).collect()
    }
}

/// Whether a line through the `known` sizes goes on to `size`.
fn is_covered(size: u64, known: &[u64]) -> bool {
    let (Some(first), Some(last)) = (known.first(), known.last()) else { return false };
    // What has no size costs the same at each.
    if known == [0] {
        return true;
    }
    let low = *first <= size.max(1).saturating_mul(REACH) || *first <= SMALL;
    let high = size <= last.saturating_mul(if known.len() > 1 { REACH } else { NEAR })
        || size <= SMALL && *last <= SMALL;
    low && high
}
