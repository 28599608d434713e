//! The plan: from what was asked, the cards and the topology to the list of cases. Pure.
//!
//! What is not possible on the host is dropped with a reason, never silently.

use crate::block::Block;
use crate::card::{Card, CardKind, Framing, Support};
use crate::case::Case;
use crate::endpoint::{EndpointRole, Endpoints};
use crate::floor;
use crate::inject::Inject;
use crate::pace::Pace;
use crate::peers::Peers;
use crate::placement::{CpuPair, Placement, Placements};
use crate::spec::Spec;
use crate::topology::Topology;
use crate::units::Size;
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An entry of the registry with the parameters asked for, and whether it works on this host.
#[derive(Debug, Clone)]
pub struct PlanEntry {
    /// The entry with its parameters.
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
    /// The floors that they are measured against, in every round.
    pub floors: Vec<Case>,
    /// The floors that were also asked for: the run is not done before they are settled.
    pub awaited: Vec<Case>,
    /// What was asked for and is not possible here.
    pub dropped: Vec<Dropped>,
}

/// A case that the plan left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dropped {
    /// Which.
    pub case: String,
    /// Why, and what would make it possible.
    pub reason: String,
}

/// Why a case that needs a size is dropped where none is given.
const NO_SIZES: &str = "it needs message sizes, and none are given; give them as 1,64,4K or 1..1M";

/// Plans `blocks` on a host. `entry_of` looks a spec up; it is called once for each spec of a block.
pub fn plan(
    blocks: &[Block],
    endpoints: Endpoints,
    topology: &Topology,
    entry_of: impl Fn(&Spec) -> PlanEntry,
) -> Plan {
    let mut plan = Plan::default();
    for block in blocks {
        for entry in block.specs.iter().map(&entry_of) {
            for &workload in &block.workloads {
                plan.add(&entry, workload, block, endpoints, topology);
            }
        }
    }
    plan.floors = floors(&plan.cases);
    // A floor that was also asked for is measured once, as a floor.
    let (awaited, cases) = plan.cases.into_iter().partition(|case| plan.floors.contains(case));
    (plan.awaited, plan.cases) = (awaited, cases);
    plan
}

impl Plan {
    fn add(
        &mut self,
        entry: &PlanEntry,
        workload: Workload,
        block: &Block,
        endpoints: Endpoints,
        topology: &Topology,
    ) {
        if let Some(reason) = unled(&entry.spec, endpoints) {
            return self.drop(&entry.spec, workload, "", reason.to_owned());
        }
        if !entry.card.takes(workload) {
            let works = entry.card.workloads.iter().map(|w| w.name()).collect::<Vec<_>>().join(", ");
            return self.drop(
                &entry.spec,
                workload,
                "",
                format!("it does not have this workload; it has {works}"),
            );
        }
        if let Support::No { reason, remedy } = &entry.support {
            return self.drop(&entry.spec, workload, "", format!("{reason}; {remedy}"));
        }
        let is_sized = entry.card.sized && workload.is_sized();
        if is_sized && block.sizes.is_empty() {
            return self.drop(&entry.spec, workload, "", NO_SIZES.to_owned());
        }
        for placements in block.placements_of(entry.card.kind) {
            let (placement, cpus) = match resolve(&placements, topology) {
                Ok(place) => place,
                Err(reason) => {
                    self.drop(&entry.spec, workload, &placements.to_string(), reason);
                    continue;
                }
            };
            if let Some(reason) = unplaceable(entry, cpus, topology) {
                self.drop(&entry.spec, workload, &placement.to_string(), reason);
                continue;
            }
            for size_bytes in sizes(is_sized, block, &entry.support) {
                for &pace in &block.paces {
                    if let Some(reason) = unpaceable(entry, workload, pace) {
                        self.drop(&entry.spec, workload, &pace.to_string(), reason);
                        continue;
                    }
                    for &peers in &block.peers {
                        let case = Case {
                            workload,
                            size_bytes,
                            placement,
                            cpus,
                            endpoints: endpoints_of(entry.card.kind, endpoints),
                            pace,
                            peers,
                            inject: None,
                            spec: entry.spec.clone(),
                        };
                        match unpeerable(entry, &case, topology) {
                            Some(reason) => self.drop(&entry.spec, workload, &peers.to_string(), reason),
                            None => self.add_case(entry, case),
                        }
                    }
                }
            }
        }
    }

    /// The same with `inject` in every case that was asked for, floors too, and in no floor that others are measured
    /// against. What no delay can be injected in is dropped.
    pub fn injected(self, inject: Inject) -> Self {
        let mut plan = Self { cases: Vec::new(), awaited: Vec::new(), ..self };
        for case in self.cases.into_iter().chain(self.awaited) {
            match uninjectable(&case, inject) {
                None => plan.cases.push(Case { inject: Some(inject), ..case }),
                Some(reason) => plan.dropped.push(Dropped { case: case.key(), reason: reason.to_owned() }),
            }
        }
        plan
    }

    /// Adds `case` of `entry`, once, unless it has no message of that size.
    fn add_case(&mut self, entry: &PlanEntry, case: Case) {
        match unsendable(entry, case.size_bytes) {
            Some(reason) => self.dropped.push(Dropped { case: case.key(), reason }),
            None if self.cases.contains(&case) => {}
            None => self.cases.push(case),
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

/// The sizes of `block` for an entry that works as `support` says; none where a size means nothing.
fn sizes(is_sized: bool, block: &Block, support: &Support) -> Vec<Option<Size>> {
    /// Where doubling ends for an entry without a limit.
    const ENOUGH: Size = Size(1 << 20);

    let largest = match support {
        Support::Yes { largest_bytes: Some(largest) } => Size(*largest).min(Size::LARGEST),
        _ => ENOUGH,
    };
    if !is_sized {
        return vec![None];
    }
    let mut sizes = Vec::new();
    for &size in &block.sizes {
        match sizes.last() {
            Some(&last) if size == Size::LIMIT => {
                let doubled = std::iter::successors(Some(last), |s: &Size| Some(Size(s.0 * 2)));
                sizes.extend(doubled.skip(1).take_while(|size| *size < largest));
                sizes.extend(Some(largest).filter(|largest| *largest > last));
            }
            _ => sizes.push(size),
        }
    }
    sizes.into_iter().map(Some).collect()
}

/// Why `entry` has no message of `size_bytes`, if it has none.
fn unsendable(entry: &PlanEntry, size_bytes: Option<Size>) -> Option<String> {
    let Card { framing, empty, limits, .. } = entry.card;
    match (size_bytes?, &entry.support) {
        (Size(0), _) if !empty => Some(match framing {
            Framing::Stream => "a stream has no empty messages".to_owned(),
            Framing::Message => {
                "its receiver cannot tell an empty message from the end of the stream".to_owned()
            }
            Framing::Token | Framing::None => "with 0 bytes there is nothing for it to do".to_owned(),
        }),
        (size, Support::Yes { largest_bytes: Some(largest) }) if size.0 > *largest => {
            let largest = format!("{largest} bytes");
            Some(match limits.starts_with(&largest) {
                true => format!("its largest message here is {limits}"),
                false => format!("its largest message here is {largest}; {limits}"),
            })
        }
        _ => None,
    }
}

/// Why what `spec` names cannot be measured with such `endpoints`, if it cannot.
fn unled(spec: &Spec, endpoints: Endpoints) -> Option<&'static str> {
    let is_refused = endpoints == Endpoints::Threads && !spec.drivers.are_none();
    is_refused.then_some("an endpoint that is a driver is a process; leave out --endpoints threads")
}

/// Why the iterations of `workload` cannot be begun at `pace`, if they cannot.
fn unpaceable(entry: &PlanEntry, workload: Workload, pace: Pace) -> Option<String> {
    if pace != Pace::BackToBack && !entry.spec.drivers.are_none() {
        return Some(
            "an endpoint that is a driver sends back to back; leave out --think-time and --rate".to_owned(),
        );
    }
    let is_answered = entry.card.kind == CardKind::Mechanism && workload.is_answered();
    (pace != Pace::BackToBack && !is_answered).then(|| {
        "its iterations are not answered, so that the client does not know when one is over".to_owned()
    })
}

/// Why the peers of `case`, which is of `entry`, cannot communicate all at once, if they cannot.
fn unpeerable(entry: &PlanEntry, case: &Case, topology: &Topology) -> Option<String> {
    let card = &entry.card;
    let share_a_cpu = case.cpus.is_some() || topology.cpus.len() < case.peers.endpoints();
    let fits = matches!(case.workload, Workload::Latency | Workload::Transfer | Workload::Throughput);
    let reason = match case.peers {
        Peers::Pair => return None,
        _ if card.kind != CardKind::Mechanism => "only mechanisms have peers",
        _ if !entry.spec.drivers.are_none() => "an endpoint that is a driver has one peer; leave out --peers",
        _ if card.name == floor::NULL => {
            "it transfers nothing, so that several peers would not affect each other"
        }
        _ if !fits => "only latency, throughput and transfer are measured with several peers",
        _ if case.endpoints == Endpoints::Threads => "several peers must be processes, not threads",
        _ if case.pace != Pace::BackToBack => "several peers have no pace other than back to back",
        _ if entry.spec.params.spins() && share_a_cpu => {
            "endpoints that spin and share a CPU proceed only at the scheduler's tick"
        }
        Peers::FanOut(_) if card.one_endpoint => {
            "a process can have only one endpoint of it; pairs=N is possible"
        }
        Peers::FanIn(_) if !card.polled => {
            "its endpoints cannot be waited for together (poll(2)); pairs=N and fan-out=N are possible"
        }
        Peers::Pairs(_) | Peers::FanIn(_) | Peers::FanOut(_) => return None,
    };
    Some(reason.to_owned())
}

/// Why `inject` cannot be injected in the iterations of `case`, if it cannot.
fn uninjectable(case: &Case, inject: Inject) -> Option<&'static str> {
    match (case.workload, case.peers) {
        (workload, _) if workload.is_alone() && inject.side == EndpointRole::Server => {
            Some("it has no server that a delay could be injected in")
        }
        (Workload::Accuracy, _) => {
            Some("it measures how a timer sees an interval, to which a delay adds nothing")
        }
        _ if !case.spec.drivers.are_none() => {
            Some("no delay is injected where an endpoint is a driver; leave out --inject")
        }
        (_, Peers::Pair | Peers::FanIn(_)) => None,
        _ => Some("a delay is injected in cases of one server and one client or several only"),
    }
}

/// An operation has one endpoint, which is a process.
fn endpoints_of(kind: CardKind, asked: Endpoints) -> Endpoints {
    if kind == CardKind::Operation { Endpoints::Processes } else { asked }
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
    match (placements.0.as_slice(), reasons.as_slice()) {
        // The case names it.
        ([only], [reason]) => Err(reason.trim_start_matches(&format!("{only}: ")).to_owned()),
        _ => Err(reasons.join("; ")),
    }
}

/// Why `entry` cannot run on `cpus`, or unpinned on `topology`, if it cannot.
fn unplaceable(entry: &PlanEntry, cpus: Option<CpuPair>, topology: &Topology) -> Option<String> {
    let one_cpu = cpus.map_or(topology.cpus.len() == 1, |pair| pair.client == pair.server);
    let name = entry.card.name;
    if one_cpu && entry.spec.params.spins() {
        return Some("two endpoints that spin on one CPU proceed only at the scheduler's tick".to_owned());
    }
    match (name, cpus) {
        (floor::CACHE_LINE | floor::SHARED_COPY, _) if one_cpu => {
            Some("on one CPU no cache line is handed over".to_owned())
        }
        (floor::REMOTE_WAKE, _) if one_cpu => Some("on one CPU no other CPU is woken".to_owned()),
        (floor::CONTEXT_SWITCH, Some(_)) if !one_cpu => {
            Some("on two CPUs no context switch is needed".to_owned())
        }
        _ => None,
    }
}

/// The floors of `cases`: null and a bare system call always, then what each case is measured against.
fn floors(cases: &[Case]) -> Vec<Case> {
    let Some(first) = cases.first() else { return Vec::new() };
    let client = cases.iter().find_map(|case| case.cpus).map(|pair| pair.client);
    let alone = |name| match client {
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

mod remote;
#[cfg(test)]
mod tests;

pub use remote::{Shared, between_hosts_and_here, plan_remote};
