//! The plan: from what was asked, the cards and the topology to the list of cases. Pure.
//!
//! What cannot be had is dropped with a reason, never left out in silence.

use crate::card::{Card, Kind, Support};
use crate::case::{Case, Endpoints, Placement, Placements, Spec, Workload};
use crate::floor;
use crate::record::Dropped;
use crate::suite::Block;
use crate::topology::{CpuPair, Topology};
use crate::units::Size;

/// A row of the table as this host has it, with the parameters asked for.
#[derive(Debug, Clone)]
pub struct Row {
    /// The row with its parameters.
    pub spec: Spec,
    /// What it declares.
    pub card: Card,
    /// Whether it works here.
    pub support: Support,
}

/// What will be measured, and what will not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The cases asked for, in order.
    pub cases: Vec<Case>,
    /// The floors that they are measured against, launched in every round.
    pub floors: Vec<Case>,
    /// What was asked for and cannot be had.
    pub dropped: Vec<Dropped>,
}

/// Plans `blocks` on a host. `row_of` gives each spec's row; it is asked once for each spec.
pub fn plan(
    blocks: &[Block],
    endpoints: Endpoints,
    topology: &Topology,
    row_of: impl Fn(&Spec) -> Row,
) -> Plan {
    let mut plan = Plan::default();
    for block in blocks {
        for row in block.specs.iter().map(&row_of) {
            for &workload in &block.workloads {
                plan.add(&row, workload, block, endpoints, topology);
            }
        }
    }
    plan.floors = floors(&plan.cases);
    // A floor that was also asked for is measured once, as a floor.
    let floors = &plan.floors;
    plan.cases.retain(|case| !floors.contains(case));
    plan
}

impl Plan {
    fn add(
        &mut self,
        row: &Row,
        workload: Workload,
        block: &Block,
        endpoints: Endpoints,
        topology: &Topology,
    ) {
        if !row.card.workloads.contains(&workload) {
            let works = row.card.workloads.iter().map(|w| w.name()).collect::<Vec<_>>().join(", ");
            return self.drop(
                &row.spec,
                workload,
                "",
                format!("the workload has no meaning for it; it has {works}"),
            );
        }
        let largest_bytes = match &row.support {
            Support::Yes { largest_bytes } => *largest_bytes,
            Support::No { reason, remedy } => {
                return self.drop(&row.spec, workload, "", format!("{reason}; {remedy}"));
            }
        };
        if row.card.sized && block.sizes.is_empty() {
            let reason =
                "it needs message sizes, and none are given; give them as 1,64,4K or 1..1M".to_owned();
            return self.drop(&row.spec, workload, "", reason);
        }
        for placements in places(row.card.kind, block) {
            let (placement, cpus) = match resolve(&placements, topology) {
                Ok(place) => place,
                Err(reason) => {
                    self.drop(&row.spec, workload, &placements.to_string(), reason);
                    continue;
                }
            };
            if let Some(reason) = unplaceable(row, cpus, topology) {
                self.drop(&row.spec, workload, &placement.to_string(), reason);
                continue;
            }
            for size_bytes in sizes(&row.card, block) {
                let case = Case {
                    workload,
                    size_bytes,
                    placement,
                    cpus,
                    endpoints: endpoints_of(row.card.kind, endpoints),
                    spec: row.spec.clone(),
                };
                match (size_bytes, largest_bytes) {
                    (Some(size), Some(largest)) if size.0 > largest => self.dropped.push(Dropped {
                        case: case.key(),
                        reason: format!("its largest message here is {largest} bytes; {}", row.card.limits),
                    }),
                    _ if self.cases.contains(&case) => {}
                    _ => self.cases.push(case),
                }
            }
        }
    }

    fn drop(&mut self, spec: &Spec, workload: Workload, place: &str, reason: String) {
        let case = format!("{spec} {workload} {place}").trim_end().to_owned();
        let dropped = Dropped { case, reason };
        if !self.dropped.contains(&dropped) {
            self.dropped.push(dropped);
        }
    }
}

/// The placements of `block` that differ for a row of `kind`: an operation runs on one CPU.
fn places(kind: Kind, block: &Block) -> Vec<Placements> {
    match kind {
        Kind::Mechanism | Kind::Floor => block.placements.clone(),
        Kind::Operation => vec![Placements(vec![Placement::SameCore])],
    }
}

fn sizes(card: &Card, block: &Block) -> Vec<Option<Size>> {
    if card.sized { block.sizes.iter().copied().map(Some).collect() } else { vec![None] }
}

/// An operation has one endpoint: how two would be made is no part of it.
fn endpoints_of(kind: Kind, asked: Endpoints) -> Endpoints {
    if kind == Kind::Operation { Endpoints::Processes } else { asked }
}

/// The first of `placements` that `topology` has, or why it has none.
fn resolve(placements: &Placements, topology: &Topology) -> Result<(Placement, Option<CpuPair>), String> {
    let mut reasons = Vec::new();
    for &placement in &placements.0 {
        match topology.place(placement) {
            Ok(cpus) => return Ok((placement, cpus)),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(reasons.join("; "))
}

/// Why `row` cannot run on `cpus`, or unpinned on `topology`, if it cannot.
fn unplaceable(row: &Row, cpus: Option<CpuPair>, topology: &Topology) -> Option<String> {
    let one_cpu = cpus.map_or(topology.cpus.len() == 1, |pair| pair.near == pair.far);
    let name = row.card.name;
    if one_cpu && row.spec.params.spins() {
        return Some("two endpoints that spin on one CPU only move at the scheduler's tick".to_owned());
    }
    match (name, cpus) {
        (floor::CACHE_LINE, _) if one_cpu => Some("one CPU hands no cache line over".to_owned()),
        (floor::CONTEXT_SWITCH, Some(_)) if !one_cpu => Some("two CPUs need no context switch".to_owned()),
        _ => None,
    }
}

/// The floors of `cases`: null and a bare system call always, then what each case is measured against.
fn floors(cases: &[Case]) -> Vec<Case> {
    let Some(first) = cases.first() else { return Vec::new() };
    let near = cases.iter().find_map(|case| case.cpus).map(|pair| pair.near);
    let alone = |name| match near {
        Some(cpu) => floor::operation(name, cpu),
        None => Case { placement: Placement::Unpinned, cpus: None, ..floor::operation(name, 0) },
    };
    let null = Case {
        workload: Workload::Latency,
        size_bytes: Some(Size(1)),
        endpoints: first.endpoints,
        ..alone(floor::NULL)
    };
    let mut floors = vec![null, alone(floor::SYSCALL)];
    for case in cases.iter().filter_map(floor::floor_of).flat_map(|f| f.cases().cloned().collect::<Vec<_>>())
    {
        if !floors.contains(&case) {
            floors.push(case);
        }
    }
    floors
}
