//! The placement: on which CPUs the endpoints run. Which CPUs of a host that means is in `topology`.

use crate::invalid::{Invalid, printable};
use crate::text::serde_as_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Two logical CPUs: the client's and the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct CpuPair {
    /// Where the client runs.
    pub client: u32,
    /// Where the server runs.
    pub server: u32,
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

/// Where the endpoints run, as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// Both on one logical CPU.
    SameCore,
    /// On two hardware threads of one core.
    Smt,
    /// On two cores that share their last-level cache.
    SameLlc,
    /// On two cores of one node whose last-level caches differ.
    CrossLlc,
    /// On two NUMA nodes.
    CrossNode,
    /// Wherever the scheduler puts them.
    Unpinned,
    /// At least one of them through a command, on another host or in other namespaces; each on a CPU that its host chooses.
    Remote,
    /// On these logical CPUs: the client, the server.
    Cpus(CpuPair),
}

impl Placement {
    /// The placements that have a name of their own.
    pub const NAMED: [Placement; 7] = [
        Placement::SameCore,
        Placement::Smt,
        Placement::SameLlc,
        Placement::CrossLlc,
        Placement::CrossNode,
        Placement::Unpinned,
        Placement::Remote,
    ];

    /// The distance between two CPUs that this placement asks for, if it asks for one.
    pub fn distance(self) -> Option<Distance> {
        match self {
            Placement::SameCore => Some(Distance::SameCpu),
            Placement::Smt => Some(Distance::SameCore),
            Placement::SameLlc => Some(Distance::SameLlc),
            Placement::CrossLlc => Some(Distance::SameNode),
            Placement::CrossNode => Some(Distance::CrossNode),
            Placement::Unpinned | Placement::Remote | Placement::Cpus(_) => None,
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Placement::SameCore => "same-core",
            Placement::Smt => "smt",
            Placement::SameLlc => "same-llc",
            Placement::CrossLlc => "cross-llc",
            Placement::CrossNode => "cross-node",
            Placement::Unpinned => "unpinned",
            Placement::Remote => "remote",
            Placement::Cpus(pair) => return f.pad(&format!("cpus={},{}", pair.client, pair.server)),
        })
    }
}

impl FromStr for Placement {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if let Some(pair) = text.strip_prefix("cpus=") {
            let refuse = || {
                Invalid::new(
                    format!("'{}' is not a pair of CPUs", printable(text)),
                    "give two CPU numbers, client first: cpus=0,1",
                )
            };
            let (client, server) = pair.split_once(',').ok_or_else(refuse)?;
            let cpu = |text: &str| text.trim().parse::<u32>().map_err(|_| refuse());
            return Ok(Placement::Cpus(CpuPair { client: cpu(client)?, server: cpu(server)? }));
        }
        let found = Placement::NAMED.into_iter().find(|placement| placement.to_string() == text);
        found.ok_or_else(|| {
            let names = Placement::NAMED.map(|placement| placement.to_string());
            Invalid::unknown("placement", text, names.iter().map(String::as_str).chain(["cpus=A,B"]))
        })
    }
}

/// Alternatives of which the first that the host has is meant: `same-llc|cross-llc|unpinned`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placements(pub Vec<Placement>);

impl FromStr for Placements {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        text.split('|').map(|one| one.trim().parse()).collect::<Result<_, _>>().map(Placements)
    }
}

impl fmt::Display for Placements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&names.join("|"))
    }
}

serde_as_text!(Placement, "same-core");
serde_as_text!(Placements, "same-llc|cross-llc");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn placements_survive_their_own_text() {
        let all = Placement::NAMED.into_iter().chain([Placement::Cpus(CpuPair { client: 3, server: 0 })]);
        for placement in all {
            assert_eq!(placement.to_string().parse::<Placement>().unwrap(), placement);
        }
        assert!("same-cor".parse::<Placement>().unwrap_err().remedy.contains("same-core"));
        assert!("cpus=1".parse::<Placement>().is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<Placements>();
        }
    }
}
