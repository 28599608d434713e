//! Which measured cases a prediction needs, which of them are there, and how to plan the others.

use super::case_costs::{CostCase, EndPlace, MeasuredCosts};
use super::flow_costs::switched;
use super::measured::Measured;
use model::block::Block;
use model::inject::{Inject, InjectedAmount};
use model::scenario::Mix;
use model::{Case, EndpointRole, Pace, Peers, Placement, Placements, Scenario, Size, Spec, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// Sizes that differ by less than this factor need one case.
const NEAR: u64 = 2;
/// A line goes on beyond the sizes that were measured by this factor.
const REACH: u64 = 4;
/// All sizes below this one cost about the same.
const SMALL: u64 = 256;
/// The most sizes of a mechanism.
const MOST_SIZES: usize = 5;
/// How long a server has slept, in nanoseconds, where it is measured what longer sleep costs.
const THINK_TIMES_NS: [u64; 2] = [100_000, 2_000_000];
/// The one of these with which it is also measured what cold caches cost.
const COLD_THINK_TIME_NS: u64 = THINK_TIMES_NS[0];
/// For how long a server works, in nanoseconds, where it is measured how the client's way of waiting then does.
const SERVER_WORKS_NS: [u64; 4] = [3_000, 6_000, 10_000, 30_000];

/// What a scenario needs, with the mechanisms that it has and with others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NeededCosts {
    /// The sizes, ascending, of each mechanism in each workload.
    sizes: BTreeMap<(Spec, Workload), Vec<u64>>,
    /// The mechanisms that are exchanged, and those that they are exchanged for.
    exchanged: BTreeSet<Spec>,
    on_one_cpu: bool,
    /// Whether it is known where the kernel puts the endpoints.
    is_placed: bool,
}

/// What all of `scenarios` need on a host that has as many CPUs as `cpus`.
pub fn needed<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>, cpus: usize) -> NeededCosts {
    let scenarios: Vec<&Scenario> = scenarios.into_iter().collect();
    let exchanged = exchanged(&scenarios);
    let mut needed = NeededCosts { on_one_cpu: cpus < 2, exchanged, ..NeededCosts::default() };
    for flow in scenarios.into_iter().flat_map(|scenario| &scenario.flows) {
        let mut add = |workload: Workload, sizes: Vec<u64>| {
            needed.sizes.entry((flow.mechanism.clone(), workload)).or_default().extend(sizes);
        };
        if flow.is_stream() {
            add(Workload::Throughput, of_mix(&flow.size));
            // What sleep takes.
            add(Workload::Latency, vec![flow.size.parts()[0].0.0.min(SMALL)]);
        } else {
            let reply = flow.reply.as_ref().map(of_mix).unwrap_or_default();
            add(Workload::Latency, [of_mix(&flow.size), reply].concat());
        }
    }
    needed.sizes.values_mut().for_each(thin);
    needed
}

/// The mechanisms of flows that have not the same one in all of `scenarios`.
fn exchanged(scenarios: &[&Scenario]) -> BTreeSet<Spec> {
    let mechanisms = scenarios.windows(2).flat_map(|pair| {
        let flows = pair[0].flows.iter().zip(&pair[1].flows);
        flows.map(|(one, other)| [&one.mechanism, &other.mechanism])
    });
    mechanisms.filter(|[one, other]| one != other).flatten().cloned().collect()
}

/// The least size of a mix, the mean and the largest.
fn of_mix(mix: &Mix<Size>) -> Vec<u64> {
    vec![mix.parts()[0].0.0, mix.mean().round() as u64, mix.largest().0]
}

/// Leaves out sizes that are near to others, and those in the middle where there are too many.
fn thin(sizes: &mut Vec<u64>) {
    sizes.sort_unstable();
    let largest = sizes.last().copied();
    sizes.dedup_by(|later, first| *later < first.saturating_mul(NEAR) || *later <= SMALL && *first <= SMALL);
    if let (Some(largest), Some(last)) = (largest, sizes.last_mut()) {
        *last = largest.max(*last);
    }
    while sizes.len() > MOST_SIZES {
        let ratio = |at: &usize| sizes[at + 1] as f64 / sizes[at - 1].max(1) as f64;
        let nearest = (1..sizes.len() - 1).min_by(|a, b| ratio(a).total_cmp(&ratio(b))).unwrap_or(1);
        sizes.remove(nearest);
    }
}

impl NeededCosts {
    /// The same without cases that tell where the kernel puts endpoints, if that is `measured` of every flow.
    pub fn placed_as(self, measured: &Measured) -> Self {
        Self { is_placed: measured.on_one_cpu.iter().all(Option::is_some), ..self }
    }

    /// Whether the difference between mechanisms that are exchanged rests on `case`. How long an idle CPU takes to wake after long sleep,
    /// where the kernel puts a pair, and what the other flows cost is the same before and after.
    pub fn tells_the_change(&self, case: &Case) -> bool {
        let is_same = |cost: &CostCase| {
            cost.place == EndPlace::Anywhere || cost.think_time_ns > 0 && !cost.has_cold_caches
        };
        CostCase::of(case).is_some_and(|cost| self.exchanged.contains(&cost.spec) && !is_same(&cost))
    }

    /// The cases that `costs` lacks, in words; each with its sizes.
    pub fn missing(&self, costs: &MeasuredCosts) -> Vec<String> {
        let mut missing = Vec::new();
        let sleep = switched();
        if costs.sizes(&sleep).is_empty() {
            missing.push(format!("{} {} {}", sleep.spec, sleep.workload, words(sleep.place)));
        }
        for ((spec, workload), sizes) in &self.sizes {
            for place in self.places() {
                let case = CostCase::plain(spec.clone(), *workload, place);
                let known = costs.sizes(&case);
                let lacking: Vec<String> = sizes
                    .iter()
                    .filter(|size| !is_covered(**size, &known))
                    .map(|size| Size(*size).to_string())
                    .collect();
                if known.is_empty() || !lacking.is_empty() {
                    missing.push(format!("{spec} {workload} {} {}", lacking.join(","), words(place)));
                }
            }
        }
        missing
    }

    /// The places without which nothing can be predicted.
    fn places(&self) -> Vec<EndPlace> {
        if self.on_one_cpu { vec![EndPlace::OneCpu] } else { vec![EndPlace::OneCpu, EndPlace::TwoCpus] }
    }

    /// What to measure: round trips and streams on one CPU, on two, and where the kernel puts them unless that is known, and round
    /// trips whose server has slept for a while, with caches as they were and cold.
    pub fn blocks(&self) -> Vec<Block> {
        let placements: Vec<Placements> = [
            Some("same-core"),
            (!self.on_one_cpu).then_some("same-llc|cross-llc|smt|cross-node"),
            (!self.is_placed).then_some("unpinned"),
        ]
        .into_iter()
        .flatten()
        .filter_map(|text| text.parse().ok())
        .collect();
        let mut blocks = Vec::new();
        for ((spec, workload), sizes) in &self.sizes {
            let block = |workload, sizes: Vec<Size>, placements, paces| Block {
                specs: vec![spec.clone()],
                workloads: vec![workload],
                sizes,
                placements,
                paces,
                peers: vec![Peers::Pair],
            };
            let all: Vec<Size> = sizes.iter().map(|bytes| Size((*bytes).max(1))).collect();
            blocks.push(block(*workload, all.clone(), placements.clone(), vec![Pace::BackToBack]));
            let smallest = all.into_iter().take(1).collect::<Vec<_>>();
            let apart: Vec<Placements> =
                placements.iter().filter(|places| is_apart(places)).cloned().collect();
            if *workload == Workload::Latency && !apart.is_empty() {
                let paces = THINK_TIMES_NS.map(Pace::ThinkTime).into_iter();
                let paces = paces.chain([Pace::ColdThinkTime(COLD_THINK_TIME_NS)]).collect();
                blocks.push(block(Workload::Latency, smallest, apart, paces));
            }
        }
        blocks
    }
}

impl NeededCosts {
    /// What to measure besides with each of these delays: round trips on two CPUs whose server works before it answers, of mechanisms
    /// whose client is woken meanwhile.
    pub fn worked(&self) -> Vec<(Block, Inject)> {
        let is_woken_twice = |block: &Block| {
            block.workloads == [Workload::Latency]
                && block.paces == [Pace::BackToBack]
                && block.specs.iter().all(|spec| spec.params.watches_for_room())
        };
        let apart = |mut block: Block| {
            block.sizes.truncate(1);
            block.placements.retain(is_apart);
            (!block.placements.is_empty()).then_some(block)
        };
        let blocks: Vec<Block> = self.blocks().into_iter().filter(is_woken_twice).filter_map(apart).collect();
        let delay =
            |ns| Inject { side: EndpointRole::Server, is_asleep: false, amount: InjectedAmount::Ns(ns) };
        let with_delay = |ns| blocks.iter().map(move |block| (block.clone(), delay(ns)));
        SERVER_WORKS_NS.into_iter().flat_map(with_delay).collect()
    }
}

/// Whether client and server have a CPU each.
fn is_apart(places: &Placements) -> bool {
    !matches!(places.0[0], Placement::SameCore | Placement::Unpinned)
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

fn words(place: EndPlace) -> &'static str {
    match place {
        EndPlace::OneCpu => "on one CPU",
        EndPlace::TwoCpus => "on two CPUs",
        EndPlace::Anywhere => "unpinned",
    }
}
