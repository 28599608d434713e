//! The processors of a host and how far apart two of them are. Reading sysfs is `harness`'s work.

use crate::placement::{Distance, Placement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::placement::CpuPair;

/// One logical CPU that this process may run on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// The kernel's number.
    pub id: u32,
    /// The physical package.
    pub package: u32,
    /// The lowest CPU number that shares this CPU's core.
    pub core: u32,
    /// The lowest CPU number that shares this CPU's last-level cache; absent where the kernel does not say.
    pub llc: Option<u32>,
    /// The NUMA node.
    pub node: u32,
}

/// The CPUs that this process may run on, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// The CPUs. Where sysfs is missing, each has `llc: None` and stands as a core of its own.
    pub cpus: Vec<Cpu>,
    /// Why the structure is unknown, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

impl Topology {
    /// The CPUs of `placement`; `None` when it pins none; or why this host has no such CPUs.
    ///
    /// High-numbered CPUs are taken first: the lowest serves interrupts on many hosts.
    pub fn place(&self, placement: Placement) -> Result<Option<CpuPair>, String> {
        if let Placement::Cpus(pair) = placement {
            return match [pair.client, pair.server]
                .into_iter()
                .find(|id| self.cpus.iter().all(|cpu| cpu.id != *id))
            {
                Some(id) => Err(format!(
                    "{placement}: CPU {id} is not among those that this process may use: {}",
                    self.ids()
                )),
                None => Ok(Some(pair)),
            };
        }
        if placement == Placement::Remote {
            return Err("there is no second host: reach one with --server-via 'ssh HOST'".to_owned());
        }
        let Some(distance) = placement.distance() else { return Ok(None) };
        let pairs = self
            .cpus
            .iter()
            .rev()
            .flat_map(|client| self.cpus.iter().rev().map(move |server| (client, server)));
        let found =
            pairs.into_iter().find(|(client, server)| distance_between(client, server) == Some(distance));
        match found {
            Some((client, server)) => Ok(Some(CpuPair { client: client.id, server: server.id })),
            None => Err(format!("{placement}: {}", self.lack(distance))),
        }
    }

    fn lack(&self, distance: Distance) -> String {
        if self.cpus.len() == 1 {
            return format!("this process may use CPU {} alone; allow more with taskset", self.ids());
        }
        let lack = match distance {
            Distance::SameCpu => "no CPU",
            Distance::SameCore => "no core with two hardware threads",
            Distance::SameLlc => "no two cores that share their last-level cache",
            Distance::SameNode => "no two cores of one node with different last-level caches",
            Distance::CrossNode => "no second NUMA node",
        };
        let doubt = self
            .unknown
            .as_ref()
            .map(|why| format!("; not all is known: {why}; CPUs can be named with cpus=A,B"));
        format!("this process may use {lack} (CPUs {}){}", self.ids(), doubt.unwrap_or_default())
    }

    fn ids(&self) -> String {
        self.cpus.iter().map(|cpu| cpu.id.to_string()).collect::<Vec<_>>().join(",")
    }
}

/// How far apart `a` and `b` are; `None` where the kernel does not say.
fn distance_between(a: &Cpu, b: &Cpu) -> Option<Distance> {
    Some(match () {
        () if a.id == b.id => Distance::SameCpu,
        () if a.core == b.core => Distance::SameCore,
        () if a.node != b.node => Distance::CrossNode,
        () if a.llc? == b.llc? => Distance::SameLlc,
        () => Distance::SameNode,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(id: u32, core: u32, llc: u32, node: u32) -> Cpu {
        Cpu { id, package: node, core, llc: Some(llc), node }
    }

    fn topology(cpus: Vec<Cpu>) -> Topology {
        Topology { cpus, unknown: None }
    }

    /// Four cores of two hardware threads each, numbered as Linux does: 0 to 3, then their siblings 4 to 7.
    fn four_cores_with_siblings() -> Topology {
        topology((0..8).map(|id| cpu(id, id % 4, 0, 0)).collect())
    }

    /// Two sockets, each a node with two last-level caches of two cores.
    fn two_sockets() -> Topology {
        topology((0..8).map(|id| cpu(id, id, id / 2 * 2, id / 4)).collect())
    }

    fn place(topology: &Topology, placement: Placement) -> Result<(u32, u32), String> {
        topology.place(placement).map(|pair| pair.map(|pair| (pair.client, pair.server)).unwrap())
    }

    #[test]
    fn one_cpu_has_one_placement() {
        let one = topology(vec![cpu(3, 3, 3, 0)]);
        assert_eq!(place(&one, Placement::SameCore), Ok((3, 3)));
        assert_eq!(one.place(Placement::Unpinned), Ok(None));
        for placement in [Placement::Smt, Placement::SameLlc, Placement::CrossLlc, Placement::CrossNode] {
            let reason = place(&one, placement).unwrap_err();
            assert!(reason.contains("CPU 3 alone") && reason.contains("taskset"), "{reason}");
        }
    }

    #[test]
    fn two_cores_share_a_cache() {
        let two = topology(vec![cpu(0, 0, 0, 0), cpu(1, 1, 0, 0)]);
        assert_eq!(place(&two, Placement::SameCore), Ok((1, 1)));
        assert_eq!(place(&two, Placement::SameLlc), Ok((1, 0)));
        assert!(place(&two, Placement::Smt).unwrap_err().contains("two hardware threads"));
        assert!(place(&two, Placement::CrossLlc).unwrap_err().contains("different last-level caches"));
        assert!(place(&two, Placement::CrossNode).unwrap_err().ends_with("no second NUMA node (CPUs 0,1)"));
    }

    #[test]
    fn siblings_are_smt_and_never_two_cores() {
        let smt = four_cores_with_siblings();
        assert_eq!(place(&smt, Placement::Smt), Ok((7, 3)));
        assert_eq!(place(&smt, Placement::SameLlc), Ok((7, 6)));
        assert!(place(&smt, Placement::CrossLlc).is_err());
    }

    #[test]
    fn two_sockets_have_every_distance_but_smt() {
        let two = two_sockets();
        assert_eq!(place(&two, Placement::SameCore), Ok((7, 7)));
        assert_eq!(place(&two, Placement::SameLlc), Ok((7, 6)));
        assert_eq!(place(&two, Placement::CrossLlc), Ok((7, 5)));
        assert_eq!(place(&two, Placement::CrossNode), Ok((7, 3)));
        assert!(place(&two, Placement::Smt).is_err());
    }

    #[test]
    fn cpus_by_number_are_taken_as_given_or_refused_by_name() {
        let two = two_sockets();
        let cpus = |client, server| Placement::Cpus(CpuPair { client, server });
        assert_eq!(place(&two, cpus(0, 5)), Ok((0, 5)));
        assert_eq!(place(&two, cpus(2, 2)), Ok((2, 2)));
        let reason = place(&two, cpus(0, 64)).unwrap_err();
        assert_eq!(reason, "cpus=0,64: CPU 64 is not among those that this process may use: 0,1,2,3,4,5,6,7");
    }

    #[test]
    fn an_unknown_topology_knows_only_single_cpus() {
        let cpus = (0..2).map(|id| Cpu { id, package: 0, core: id, llc: None, node: 0 }).collect();
        let unknown = Topology { cpus, unknown: Some("no sysfs".to_owned()) };
        assert_eq!(place(&unknown, Placement::SameCore), Ok((1, 1)));
        assert_eq!(place(&unknown, Placement::Cpus(CpuPair { client: 0, server: 1 })), Ok((0, 1)));
        for placement in [Placement::Smt, Placement::SameLlc, Placement::CrossLlc, Placement::CrossNode] {
            let reason = place(&unknown, placement).unwrap_err();
            assert!(reason.contains("no sysfs") && reason.contains("cpus=A,B"), "{reason}");
        }
    }

    #[test]
    fn without_cpus_there_is_a_reason_and_no_panic() {
        let none = topology(Vec::new());
        assert!(Placement::NAMED[..5].iter().all(|placement| none.place(*placement).is_err()));
    }

    #[test]
    fn what_is_named_is_as_far_apart_as_its_name_says() {
        for topology in [four_cores_with_siblings(), two_sockets()] {
            let find = |id| topology.cpus.iter().find(|cpu| cpu.id == id).unwrap();
            for placement in Placement::NAMED {
                if let Ok(Some(pair)) = topology.place(placement) {
                    assert_eq!(
                        distance_between(find(pair.client), find(pair.server)),
                        placement.distance(),
                        "{placement}"
                    );
                }
            }
        }
    }
}
