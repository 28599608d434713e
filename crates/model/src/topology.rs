//! The processors of a host and how far apart two of them are. Reading sysfs is `harness`'s work.

use crate::case::Placement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two logical CPUs: near's and far's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct CpuPair {
    /// Where near runs.
    pub near: u32,
    /// Where far runs.
    pub far: u32,
}

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

/// How far apart two CPUs are, nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// One and the same.
    SameCpu,
    /// Hardware threads of one core.
    SameCore,
    /// Cores sharing their last-level cache.
    SameLlc,
    /// Cores of one node with different last-level caches.
    SameNode,
    /// Different NUMA nodes.
    CrossNode,
}

impl Distance {
    fn between(a: &Cpu, b: &Cpu) -> Option<Distance> {
        Some(match () {
            () if a.id == b.id => Distance::SameCpu,
            () if a.core == b.core => Distance::SameCore,
            () if a.node != b.node => Distance::CrossNode,
            () if a.llc? == b.llc? => Distance::SameLlc,
            () => Distance::SameNode,
        })
    }
}

impl Topology {
    /// The CPUs of `placement`; `None` when it pins none; or why this host has no such CPUs.
    ///
    /// High-numbered CPUs are taken first: the lowest serves interrupts on many hosts.
    pub fn place(&self, placement: Placement) -> Result<Option<CpuPair>, String> {
        if let Placement::Cpus(pair) = placement {
            return match [pair.near, pair.far]
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
        let Some(distance) = placement.distance() else { return Ok(None) };
        let pairs =
            self.cpus.iter().rev().flat_map(|near| self.cpus.iter().rev().map(move |far| (near, far)));
        let found = pairs.into_iter().find(|(near, far)| Distance::between(near, far) == Some(distance));
        match found {
            Some((near, far)) => Ok(Some(CpuPair { near: near.id, far: far.id })),
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
        let doubt = self.unknown.as_ref().map(|why| format!("; not all is known: {why}; CPUs can be named with cpus=A,B"));
        format!("this process may use {lack} (CPUs {}){}", self.ids(), doubt.unwrap_or_default())
    }

    fn ids(&self) -> String {
        self.cpus.iter().map(|cpu| cpu.id.to_string()).collect::<Vec<_>>().join(",")
    }
}
