//! What of a selection can be measured on this host: the plan, and the refusal where nothing can. It starts nothing.

use crate::drivers;
use harness::coordinator::driver::DriverSet;
use harness::coordinator::remote::{Remote, ServerAddresses};
use mechanisms::registry::{self, CARDS};
use model::block::Block;
use model::card::{Card, Support};
use model::plan::{Plan, PlanEntry, between_hosts_and_here, plan, plan_remote};
use model::record::Dropped;
use model::topology::Topology;
use model::{Case, CpuPair, Endpoints, Invalid, Reach, Spec};

/// The plan of `blocks` on this host, which has `topology`.
pub fn plan_here(blocks: &[Block], endpoints: Endpoints, topology: &Topology) -> Plan {
    plan(blocks, endpoints, topology, |spec| match spec.drivers.are_none() {
        true => entry(spec),
        false => PlanEntry { support: without_drivers(), ..entry(spec) },
    })
}

/// Why what has a driver is not measured by most commands.
fn without_drivers() -> Support {
    let reason = "endpoints that are drivers are measured by 'run', 'compare' and 'explain' alone".to_owned();
    Support::No { reason, remedy: "name the mechanism without the driver".to_owned() }
}

/// The same with the `drivers` that there are.
pub fn plan_with(blocks: &[Block], endpoints: Endpoints, topology: &Topology, drivers: &DriverSet) -> Plan {
    plan(blocks, endpoints, topology, |spec| entry_of(spec, drivers))
}

/// `plan`, refused where it has no case.
pub fn plan_some(plan: Plan) -> Result<Plan, Invalid> {
    if requested(&plan).next().is_none() { Err(nothing_left(&plan.dropped)) } else { Ok(plan) }
}

/// The plan of `blocks` for the endpoints of `sides`, on the CPUs of `cpus`; refused where it has no case. Where some of them are
/// placed between hosts, the others are measured on this one.
pub fn plan_between_hosts(
    blocks: &[Block],
    cpus: CpuPair,
    sides: &Remote,
    endpoints: Endpoints,
    topology: &Topology,
) -> Result<Plan, Invalid> {
    let (between, here) = between_hosts_and_here(blocks);
    let remote = |blocks| {
        let entry = |spec: &Spec| entry_between(spec, &sides.server_addresses);
        plan_remote(blocks, cpus, sides.shared(), entry)
    };
    let plan = match between.as_slice() {
        [] => remote(blocks),
        between => plan_here(&here, endpoints, topology).followed_by(remote(between)),
    };
    if plan.cases.is_empty() { Err(nothing_left(&plan.dropped)) } else { Ok(plan) }
}

/// The cases of `plan` that were asked for, floors among them.
pub fn requested(plan: &Plan) -> impl Iterator<Item = &Case> {
    plan.cases.iter().chain(&plan.awaited)
}

/// The refusal of a selection of which everything was dropped.
pub fn nothing_left(dropped: &[Dropped]) -> Invalid {
    let reasons: Vec<String> = dropped.iter().map(|d| format!("{}: {}", d.case, d.reason)).collect();
    Invalid::new("nothing that was asked for can be measured here", reasons.join("\n  "))
}

/// Whether the mechanism or operation of `case` works here.
pub fn works(case: &Case) -> bool {
    matches!(entry(&case.spec).support, Support::Yes { .. })
}

/// The registry's entry of `spec`, and whether it works on this host.
fn entry(spec: &Spec) -> PlanEntry {
    let card = registry::card(&spec.name).copied();
    let support = registry::probe(&spec.name, &spec.params);
    // A spec was parsed against the registry, so that it has an entry.
    PlanEntry {
        spec: spec.clone(),
        card: card.unwrap_or(CARDS[0]),
        support: support.unwrap_or(Support::UNLIMITED),
    }
}

/// The same of one that may have drivers: they have what their hellos say.
fn entry_of(spec: &Spec, drivers: &DriverSet) -> PlanEntry {
    let entry = entry(spec);
    if spec.drivers.are_none() {
        return entry;
    }
    match drivers::workloads_of(spec, drivers, &entry.card) {
        // As long as the program, as those of the registry.
        Ok(workloads) => PlanEntry { card: Card { workloads: workloads.leak(), ..entry.card }, ..entry },
        Err(Invalid { problem, remedy }) => {
            PlanEntry { support: Support::No { reason: problem, remedy }, ..entry }
        }
    }
}

/// The same between two sides. What needs an address works where the client reaches the server at one; that virtual sockets work
/// between machines does not depend on this host's own loopback.
fn entry_between(spec: &Spec, addresses: &ServerAddresses) -> PlanEntry {
    let entry = entry(spec);
    let support = match (entry.card.reach, addresses.for_reach(entry.card.reach)) {
        (reach, Err(Invalid { problem, remedy })) if reach.leaves_the_machine() => {
            Support::No { reason: problem.clone(), remedy: remedy.clone() }
        }
        (Reach::Guest, Ok(_)) => Support::UNLIMITED,
        _ => entry.support,
    };
    PlanEntry { support, ..entry }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::{Axes, by_hand};
    use model::Workload;

    #[test]
    fn what_meets_by_an_address_works_between_sides_where_the_server_is_reached_at_one() {
        let unreached = |why: &str| Err(Invalid::new(why, "do something"));
        let reached = |address: &str| Ok(address.parse().unwrap());
        let support = |name: &str, addresses: &ServerAddresses| {
            let entry = entry_between(&Spec::plain(name), addresses);
            match entry.support {
                Support::Yes { .. } => String::new(),
                Support::No { reason, .. } => reason,
            }
        };
        let guest = ServerAddresses { ip: unreached("no network"), vsock: reached("vsock:3") };
        assert_eq!((support("vsock", &guest), support("tcp", &guest)), ("".into(), "no network".into()));
        let network = ServerAddresses { ip: reached("10.0.0.2"), vsock: unreached("no guest") };
        assert_eq!((support("vsock", &network), support("tcp", &network)), ("no guest".into(), "".into()));
        assert_eq!((support("fifo", &guest), support("fifo", &network)), ("".into(), "".into()));
    }

    #[test]
    fn a_floor_that_is_asked_for_is_a_requested_case_and_what_cannot_be_had_is_refused_with_the_reason() {
        let topology = harness::host::facts::read(std::path::Path::new("/")).topology;
        let planned = |name: &str, workload| {
            let axes = Axes {
                workloads: vec![workload],
                placements: vec!["unpinned".parse().unwrap()],
                ..Axes::default()
            };
            let suite = by_hand(&[name.to_owned()], &axes).unwrap();
            plan_some(plan_here(&suite.blocks, Endpoints::default(), &topology))
        };
        let names: Vec<String> = requested(&planned("syscall", Workload::Cost).unwrap())
            .map(|case| case.spec.name.clone())
            .collect();
        assert_eq!(names, ["syscall"]);
        let invalid = planned("syscall", Workload::Latency).unwrap_err();
        assert!(invalid.remedy.starts_with("syscall latency: "), "{invalid}");
    }
}
