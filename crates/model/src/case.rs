//! The case: mechanism with parameters × workload × size × placement. The unit of plans and results.

use crate::endpoint::Endpoints;
use crate::inject::Inject;
use crate::pace::Pace;
use crate::peers::Peers;
use crate::placement::{CpuPair, Placement};
use crate::spec::Spec;
use crate::units::Size;
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing to measure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// What the endpoints do.
    pub workload: Workload,
    /// The message size; absent where the spec has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<Size>,
    /// Where the endpoints run, as asked for.
    pub placement: Placement,
    /// The logical CPUs that the placement became here; absent when unpinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuPair>,
    /// What the endpoints are.
    pub endpoints: Endpoints,
    /// When the client begins its iterations.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pace: Pace,
    /// How many endpoints communicate at once, and who with whom.
    #[serde(default, skip_serializing_if = "is_default")]
    pub peers: Peers,
    /// The delay that is injected in each of its iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inject: Option<Inject>,
    /// The mechanism or operation, with parameters.
    pub spec: Spec,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Case {
    /// The text by which the case is known in messages and by which `compare` pairs two files.
    ///
    /// CPU numbers are left out unless they were asked for: another host has others.
    pub fn key(&self) -> String {
        let size = self.size_bytes.map(|size| format!(" {size}")).unwrap_or_default();
        let threads = if self.endpoints == Endpoints::Threads { " threads" } else { "" };
        let pace = if is_default(&self.pace) { String::new() } else { format!(" {}", self.pace) };
        let peers = if is_default(&self.peers) { String::new() } else { format!(" {}", self.peers) };
        let inject = self.inject.map(|inject| format!(" inject={inject}")).unwrap_or_default();
        format!("{} {}{size} {}{threads}{pace}{peers}{inject}", self.spec, self.workload, self.placement)
    }
}

impl Case {
    /// Whether its endpoints are on different CPUs, or may be.
    pub fn uses_two_cpus(&self) -> bool {
        match self.cpus {
            Some(cpus) => cpus.client != cpus.server,
            None => self.placement == Placement::Unpinned,
        }
    }

    /// How many bytes all clients together send in the time of one iteration; `None` where there are none, and so no rate.
    pub fn iteration_bytes(&self) -> Option<f64> {
        let messages = match (self.workload, self.peers) {
            // Iterations of all clients are counted together already.
            (Workload::Throughput, Peers::Pairs(_) | Peers::FanIn(_)) => 1,
            (_, peers) => peers.pairs(),
        };
        self.size_bytes.filter(|size| size.0 > 0).map(|size| f64::from(messages) * size.0 as f64)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.key())
    }
}
