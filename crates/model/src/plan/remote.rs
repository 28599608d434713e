//! The plan of a run whose endpoints are reached by commands, and may be on two hosts: what reaches over a network, or between a guest
//! and its host, is measured, at every size and pace that was asked for; of one host, what both sides can find by its name; and all else
//! is dropped with the reason. It has no floors: those are of one host without walls.

use super::{NO_SIZES, Plan, PlanEntry, sizes, unpaceable};
use crate::block::Block;
use crate::card::{ByName, CardKind, Reach, Support};
use crate::case::Case;
use crate::endpoint::Endpoints;
use crate::peers::Peers;
use crate::placement::{CpuPair, Placement, Placements};
use crate::semantics::Namespace;
use crate::spec::Spec;
use crate::workload::Workload;

/// `blocks` parted by their placements: what is placed between hosts, and all the rest. Blocks that are left without a placement are
/// left out.
pub fn between_hosts_and_here(blocks: &[Block]) -> (Vec<Block>, Vec<Block>) {
    let is_remote = |placements: &Placements| placements.0.contains(&Placement::Remote);
    let placed = |remote: bool| {
        let placed = blocks.iter().map(|block| {
            let placements = block.placements.iter().filter(|placements| is_remote(placements) == remote);
            Block { placements: placements.cloned().collect(), ..block.clone() }
        });
        placed.filter(|block| !block.placements.is_empty()).collect()
    };
    (placed(true), placed(false))
}

/// What two sides that are reached by commands share. Sides on two hosts share nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shared {
    /// Whether they are on one host, whatever namespaces they are in.
    pub host: bool,
    /// Whether both see the directory of the run, at one path, and may read what is in it.
    pub directory: bool,
    /// The IPC namespace.
    pub ipc: bool,
    /// The network namespace.
    pub net: bool,
}

/// Plans `blocks` for two endpoints that share what `shared` says, each on its host's CPU of `cpus`. `entry_of` looks a spec up, as for
/// one host.
pub fn plan_remote(
    blocks: &[Block],
    cpus: CpuPair,
    shared: Shared,
    entry_of: impl Fn(&Spec) -> PlanEntry,
) -> Plan {
    let mut plan = Plan::default();
    for block in blocks {
        for entry in block.specs.iter().map(&entry_of) {
            for &workload in &block.workloads {
                match unreachable(&entry, workload, shared) {
                    Some(reason) => plan.drop(&entry.spec, workload, "", reason),
                    None => plan.add_remote(&entry, workload, block, cpus),
                }
            }
        }
    }
    plan
}

/// Why `entry` cannot be measured in `workload` between two sides that share what `shared` says, if it cannot.
fn unreachable(entry: &PlanEntry, workload: Workload, shared: Shared) -> Option<String> {
    let card = &entry.card;
    if card.kind != CardKind::Mechanism {
        return Some("it is of one host; measure it without --server-via and --client-via".to_owned());
    }
    let reason = match card.reach {
        Reach::Network | Reach::Guest => None,
        Reach::Host | Reach::Related if shared.host => not_shared(entry, workload, shared),
        Reach::Host => Some("it reaches processes of one host; between two hosts choose tcp or udp"),
        Reach::Related => {
            Some("it reaches processes that are sent a descriptor; between two hosts choose tcp or udp")
        }
        Reach::Process => Some("it has no peer"),
    };
    if let Some(reason) = reason {
        return Some(reason.to_owned());
    }
    if !card.takes(workload) {
        let works = card.workloads.iter().map(|w| w.name()).collect::<Vec<_>>().join(", ");
        return Some(format!("it does not have this workload; it has {works}"));
    }
    match &entry.support {
        Support::No { reason, remedy } => Some(format!("{reason}; {remedy}")),
        Support::Yes { .. } => None,
    }
}

/// Why the endpoints of `entry` do not meet on one host, if they do not.
fn not_shared(entry: &PlanEntry, workload: Workload, shared: Shared) -> Option<&'static str> {
    let Some(namespace) = entry.spec.params.meets_in(&entry.card) else {
        return Some(match entry.card.by_name {
            ByName::As(_) => {
                "one endpoint is sent a socket of the pair, which no command passes on; give it a name: name=path or name=abstract"
            }
            ByName::Never | ByName::Always => "one endpoint is sent a descriptor, which no command passes on",
        });
    };
    // A queue or a set of semaphores is noted in the directory of the run, so that it is removed in any case.
    const NO_DIRECTORY: &str = "the other side does not see the directory of the run, or may not read it; set TMPDIR to a directory that both \
                                sides have at the same path";
    match namespace {
        _ if workload == Workload::Connect => {
            Some("the client makes the listener and sends it, which no command passes on")
        }
        Namespace::Mount | Namespace::Ipc if !shared.directory => Some(NO_DIRECTORY),
        Namespace::Ipc if !shared.ipc => {
            Some("the sides are in two IPC namespaces, each with names of its own")
        }
        Namespace::Net if !shared.net => {
            Some("the sides are in two network namespaces, each with abstract names of its own")
        }
        Namespace::None | Namespace::Pid => {
            Some("one endpoint is sent a descriptor, which no command passes on")
        }
        Namespace::Mount | Namespace::Ipc | Namespace::Net => None,
    }
}

impl Plan {
    /// This plan, and `other` after it.
    #[must_use]
    pub fn followed_by(mut self, other: Self) -> Self {
        self.cases.extend(other.cases);
        self.floors.extend(other.floors);
        self.awaited.extend(other.awaited);
        self.dropped.extend(other.dropped);
        self
    }

    fn add_remote(&mut self, entry: &PlanEntry, workload: Workload, block: &Block, cpus: CpuPair) {
        if !entry.spec.drivers.are_none() {
            let reason =
                "an endpoint that is a driver is of this host; leave out --server-via and --client-via";
            return self.drop(&entry.spec, workload, "", reason.to_owned());
        }
        let is_sized = entry.card.sized && workload.is_sized();
        if is_sized && block.sizes.is_empty() {
            return self.drop(&entry.spec, workload, "", NO_SIZES.to_owned());
        }
        for size_bytes in sizes(is_sized, block, &entry.support) {
            for &pace in &block.paces {
                if let Some(reason) = unpaceable(entry, workload, pace) {
                    self.drop(&entry.spec, workload, &pace.to_string(), reason);
                    continue;
                }
                for &peers in &block.peers {
                    if peers != Peers::Pair {
                        let reason =
                            "between two hosts one client and one server are measured; leave out --peers";
                        self.drop(&entry.spec, workload, &peers.to_string(), reason.to_owned());
                        continue;
                    }
                    let case = Case {
                        workload,
                        size_bytes,
                        placement: Placement::Remote,
                        cpus: Some(cpus),
                        endpoints: Endpoints::Processes,
                        pace,
                        peers,
                        inject: None,
                        spec: entry.spec.clone(),
                    };
                    self.add_case(entry, case);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::Card;
    use crate::semantics::Semantics;
    use crate::testing::cards::card;
    use crate::units::Size;
    use crate::{Domain, Pace, Param, floor};

    const CPUS: CpuPair = CpuPair { client: 3, server: 9 };

    fn planned(reach: Reach, kind: CardKind, workload: Workload, peers: Peers) -> Plan {
        let block = Block {
            specs: vec![Spec::plain("it")],
            workloads: vec![workload],
            sizes: vec![Size(1), Size(64)],
            placements: vec!["same-core".parse().unwrap(), "same-llc".parse().unwrap()],
            paces: vec![Pace::BackToBack],
            peers: vec![peers],
        };
        plan_remote(&[block], CPUS, Shared::default(), |spec| PlanEntry {
            spec: spec.clone(),
            card: Card { reach, ..card("it", kind, &[Workload::Latency], true) },
            support: Support::UNLIMITED,
        })
    }

    #[test]
    fn what_reaches_a_network_is_measured_once_a_size_whatever_the_placement_and_has_no_floors() {
        for reach in [Reach::Network, Reach::Guest] {
            let plan = planned(reach, CardKind::Mechanism, Workload::Latency, Peers::Pair);
            let keys: Vec<String> = plan.cases.iter().map(Case::key).collect();
            assert_eq!(keys, ["it latency 1 remote", "it latency 64 remote"]);
            assert!(plan.floors.is_empty() && plan.dropped.is_empty());
            assert!(plan.cases.iter().all(|case| case.cpus == Some(CPUS) && floor::floor_of(case).is_none()));
        }
    }

    #[test]
    fn blocks_are_parted_by_whether_they_are_placed_between_hosts() {
        let block = |placements: &[&str]| Block {
            specs: vec![Spec::plain("it")],
            workloads: vec![Workload::Latency],
            sizes: vec![Size(1)],
            placements: placements.iter().map(|text| text.parse().unwrap()).collect(),
            paces: vec![Pace::BackToBack],
            peers: vec![Peers::Pair],
        };
        let all = [block(&["same-core"]), block(&["remote", "same-llc"]), block(&["remote"])];
        let (remote, here) = between_hosts_and_here(&all);
        assert_eq!(remote, [block(&["remote"]), block(&["remote"])]);
        assert_eq!(here, [block(&["same-core"]), block(&["same-llc"])]);
        let plan = Plan::default();
        assert_eq!(plan.clone().followed_by(plan.clone()), plan);
    }

    /// Why a mechanism that meets `by_name`, in `namespace`, is dropped between sides that share what `shared` says; empty if it is not.
    fn reason_between(shared: Shared, by_name: ByName, namespace: Namespace, spec: &str) -> String {
        const NAMED: Param = Param {
            name: "name",
            summary: "",
            domain: Domain::Choice(&["none", "path", "abstract"]),
            default: Some("none"),
        };
        let card = Card {
            reach: Reach::Host,
            by_name,
            semantics: Semantics { namespace, ..Semantics::NONE },
            params: &[NAMED],
            ..card("it", CardKind::Mechanism, &[Workload::Latency], false)
        };
        let block = Block {
            specs: vec![Spec::parse(spec, &[card]).unwrap()],
            workloads: vec![Workload::Latency],
            sizes: Vec::new(),
            placements: vec!["same-core".parse().unwrap()],
            paces: vec![Pace::BackToBack],
            peers: vec![Peers::Pair],
        };
        let entry = |spec: &Spec| PlanEntry { spec: spec.clone(), card, support: Support::UNLIMITED };
        let plan = plan_remote(&[block], CPUS, shared, entry);
        assert_eq!(plan.cases.len() + plan.dropped.len(), 1);
        plan.dropped.first().map(|dropped| dropped.reason.clone()).unwrap_or_default()
    }

    #[test]
    fn on_one_host_what_both_sides_find_by_its_name_is_measured() {
        let host = Shared { host: true, ..Shared::default() };
        let directory = Shared { directory: true, ..host };
        let all = Shared { ipc: true, net: true, ..directory };
        let (mount, ipc) = (Namespace::Mount, Namespace::Ipc);
        let named = ByName::As("name");
        for (shared, by_name, namespace, spec, says) in [
            (all, ByName::Always, ipc, "it", ""),
            (directory, ByName::Always, ipc, "it", "two IPC namespaces"),
            (Shared { directory: false, ..all }, ByName::Always, ipc, "it", "set TMPDIR"),
            (directory, ByName::Always, mount, "it", ""),
            (host, ByName::Always, mount, "it", "set TMPDIR"),
            (all, named, mount, "it", "name=path"),
            (directory, named, mount, "it:name=path", ""),
            (host, named, mount, "it:name=path", "set TMPDIR"),
            (Shared { net: true, ..host }, named, mount, "it:name=abstract", ""),
            (directory, named, mount, "it:name=abstract", "two network namespaces"),
            (all, ByName::Never, ipc, "it", "sent a descriptor"),
            (all, ByName::Always, Namespace::Pid, "it", "sent a descriptor"),
            (Shared::default(), ByName::Always, ipc, "it", "of one host"),
        ] {
            let reason = reason_between(shared, by_name, namespace, spec);
            assert!(
                reason.contains(says) && reason.is_empty() == says.is_empty(),
                "{spec} {shared:?}: {reason}"
            );
        }
    }

    #[test]
    fn what_does_not_reach_over_a_network_is_dropped_with_the_reason() {
        let mechanism = CardKind::Mechanism;
        let reason = |reach, kind, workload, peers| {
            let plan = planned(reach, kind, workload, peers);
            assert!(plan.cases.is_empty());
            plan.dropped[0].reason.clone()
        };
        let latency = Workload::Latency;
        assert!(reason(Reach::Host, mechanism, latency, Peers::Pair).contains("of one host"));
        assert!(reason(Reach::Related, mechanism, latency, Peers::Pair).contains("sent a descriptor"));
        assert!(reason(Reach::Network, mechanism, Workload::Connect, Peers::Pair).contains("it has latency"));
        assert!(reason(Reach::Network, mechanism, latency, Peers::FanIn(2)).contains("--peers"));
        assert!(reason(Reach::Process, CardKind::Operation, latency, Peers::Pair).contains("--server-via"));
    }
}
