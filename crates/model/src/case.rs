//! The case: mechanism with parameters × workload × size × placement. The unit of plans and results.

use crate::card::Card;
use crate::invalid::{Invalid, printable};
use crate::pace::Pace;
use crate::params::Params;
use crate::peers::Peers;
use crate::topology::{CpuPair, Distance};
use crate::units::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What the endpoints do. The definitions are in docs/method.md and are part of every result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Workload {
    /// Client sends n bytes; server receives all n and sends n back. The time is of the round trip.
    Latency,
    /// Client sends messages of n bytes; the clock stops when server has received the last byte.
    Throughput,
    /// Client sends n bytes; server receives all n and answers with one byte.
    Transfer,
    /// Client connects, sends one byte, has it answered, and both close.
    Connect,
    /// Client sends some messages of n bytes, each with descriptors; server answers the last with one byte.
    Session(Session),
    /// One operation alone, in a loop long enough for the clock.
    Cost,
    /// A timer, read before and after a known interval.
    Accuracy,
}

/// What one session is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session {
    /// How many messages.
    pub messages: u32,
    /// How many descriptors go with each.
    pub fds: u32,
}

impl Session {
    /// As the study of files against sockets had it (seed of the suite `barefoot`): five messages of four descriptors.
    pub const DEFAULT: Session = Session { messages: 5, fds: 4 };
    /// The most messages of one session.
    const MOST_MESSAGES: u32 = 1000;
    /// The most descriptors that one message takes (`SCM_MAX_FD`, unix(7)).
    const MOST_FDS: u32 = 253;
}

impl FromStr for Session {
    type Err = Invalid;

    /// Parses `5x4`: messages, and descriptors of each.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let numbers = text.split_once('x').and_then(|(m, f)| Some((m.parse().ok()?, f.parse().ok()?)));
        match numbers {
            Some((messages @ 1..=Self::MOST_MESSAGES, fds @ 0..=Self::MOST_FDS)) => {
                Ok(Self { messages, fds })
            }
            _ => Err(Invalid::new(
                format!("'{}' is not a session", printable(text)),
                format!(
                    "give messages and the descriptors of each as 5x4: up to {} and up to {}",
                    Self::MOST_MESSAGES,
                    Self::MOST_FDS
                ),
            )),
        }
    }
}

impl Workload {
    /// Every workload, in the order of reports.
    pub const ALL: [Workload; 7] = [
        Workload::Latency,
        Workload::Throughput,
        Workload::Transfer,
        Workload::Connect,
        Workload::Session(Session::DEFAULT),
        Workload::Cost,
        Workload::Accuracy,
    ];

    /// The workload's name in the CLI and in results, without what a session is made of.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Latency => "latency",
            Workload::Throughput => "throughput",
            Workload::Transfer => "transfer",
            Workload::Connect => "connect",
            Workload::Session(_) => "session",
            Workload::Cost => "cost",
            Workload::Accuracy => "accuracy",
        }
    }

    /// What one iteration is.
    pub fn iteration(self) -> &'static str {
        match self {
            Workload::Latency => "round trip",
            Workload::Throughput => "message",
            Workload::Transfer => "acknowledged message",
            Workload::Connect => "connection",
            Workload::Session(_) => "session",
            Workload::Cost => "operation",
            Workload::Accuracy => "interval",
        }
    }

    /// Whether a message size means anything to it.
    pub fn is_sized(self) -> bool {
        !matches!(self, Workload::Connect | Workload::Accuracy)
    }

    /// Whether each iteration is answered, so that client knows when it is over.
    pub fn is_answered(self) -> bool {
        !matches!(self, Workload::Throughput | Workload::Cost | Workload::Accuracy)
    }

    /// Whether it is of operations, which have one endpoint.
    pub fn is_alone(self) -> bool {
        matches!(self, Workload::Cost | Workload::Accuracy)
    }

    /// Whether `other` is of the same name; what their sessions are made of may differ.
    pub fn is_like(self, other: Workload) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Workload::Session(session) if *session != Session::DEFAULT => {
                f.pad(&format!("session:{}x{}", session.messages, session.fds))
            }
            _ => f.pad(self.name()),
        }
    }
}

impl FromStr for Workload {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if let Some(session) = text.strip_prefix("session:") {
            return session.parse().map(Workload::Session);
        }
        let found = Workload::ALL.into_iter().find(|workload| workload.name() == text);
        found.ok_or_else(|| Invalid::unknown("workload", text, Workload::ALL.map(Workload::name)))
    }
}

/// What the endpoints are.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Endpoints {
    /// Two fresh processes.
    #[default]
    Processes,
    /// Two threads of one fresh process.
    Threads,
}

impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Endpoints::Processes => "processes",
            Endpoints::Threads => "threads",
        })
    }
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
    /// On these logical CPUs: client, server.
    Cpus(CpuPair),
}

impl Placement {
    /// The placements that have a name of their own.
    pub const NAMED: [Placement; 6] = [
        Placement::SameCore,
        Placement::Smt,
        Placement::SameLlc,
        Placement::CrossLlc,
        Placement::CrossNode,
        Placement::Unpinned,
    ];

    /// The distance between two CPUs that this placement asks for, if it asks for one.
    pub fn distance(self) -> Option<Distance> {
        match self {
            Placement::SameCore => Some(Distance::SameCpu),
            Placement::Smt => Some(Distance::SameCore),
            Placement::SameLlc => Some(Distance::SameLlc),
            Placement::CrossLlc => Some(Distance::SameNode),
            Placement::CrossNode => Some(Distance::CrossNode),
            Placement::Unpinned | Placement::Cpus(_) => None,
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

macro_rules! serde_as_text {
    ($type:ty, $example:literal) => {
        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "examples": [$example] })
            }
        }
    };
}
serde_as_text!(Workload, "latency");
serde_as_text!(Pace, "think-time=10us");
serde_as_text!(Peers, "fan-in=4");
serde_as_text!(Placement, "same-core");
serde_as_text!(Placements, "same-llc|cross-llc");

/// A row of the table with its parameters: `pipe:capacity=1M`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Spec {
    /// The row's name.
    pub name: String,
    /// The parameters that differ from their defaults, in canonical text.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub params: Params,
}

impl Spec {
    /// The row `name` with every parameter at its default.
    pub fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), params: Params::default() }
    }

    /// Parses `NAME` or `NAME:k=v,…` against the cards of the table.
    pub fn parse(text: &str, cards: &[Card]) -> Result<Self, Invalid> {
        let (name, params) = match text.split_once(':') {
            Some((name, params)) => (name, Some(params)),
            None => (text, None),
        };
        let Some(card) = cards.iter().find(|card| card.name == name) else {
            return Err(Invalid::unknown("mechanism or operation", name, cards.iter().map(|card| card.name)));
        };
        let params = params.map(|params| Params::parse(params, card)).transpose()?.unwrap_or_default();
        Ok(Self { name: name.to_owned(), params })
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.params.is_empty() {
            return f.pad(&self.name);
        }
        f.pad(&format!("{}:{}", self.name, self.params))
    }
}

/// One thing to measure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// What the endpoints do.
    pub workload: Workload,
    /// The message size; absent where the row has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<Size>,
    /// Where the endpoints run, as asked for.
    pub placement: Placement,
    /// The logical CPUs that the placement became here; absent when unpinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuPair>,
    /// What the endpoints are.
    pub endpoints: Endpoints,
    /// When client begins its iterations.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pace: Pace,
    /// How many endpoints communicate at once, and who with whom.
    #[serde(default, skip_serializing_if = "is_default")]
    pub peers: Peers,
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
        format!("{} {}{size} {}{threads}{pace}{peers}", self.spec, self.workload, self.placement)
    }
}

impl Case {
    /// How many bytes all clients send in the time that an iteration's is said to be; `None` where there are none, so that they
    /// have no rate.
    pub fn iteration_bytes(&self) -> Option<f64> {
        let messages = match (self.workload, self.peers) {
            // Their iterations are counted together already.
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

    #[test]
    fn workloads_survive_their_own_text() {
        let other = Workload::Session(Session { messages: 1, fds: 0 });
        for workload in Workload::ALL.into_iter().chain([other]) {
            assert_eq!(workload.to_string().parse::<Workload>().unwrap(), workload);
        }
        assert_eq!("session:5x4".parse::<Workload>().unwrap().to_string(), "session");
        for wrong in
            ["session:", "session:5", "session:0x1", "session:1x254", "session:1001x1", "latency:1x1"]
        {
            assert!(wrong.parse::<Workload>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<Placements>();
            let _ = text.parse::<Workload>();
            let _ = Spec::parse(&text, &[]);
        }
    }
}
