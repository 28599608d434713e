//! The workload: what the endpoints do in one iteration.

use crate::invalid::{Invalid, printable};
use crate::text::serde_as_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What the endpoints do. The definitions are in docs/explanation/method.md and are part of every result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Workload {
    /// The client sends n bytes; the server receives all n and sends n back. The time is of the round trip.
    Latency,
    /// The client sends messages of n bytes; the clock stops when the server has received the last byte.
    Throughput,
    /// The client sends n bytes; the server receives all n and answers with one byte.
    Transfer,
    /// The client connects, sends one byte, has it answered, and both close.
    Connect,
    /// The client sends some messages of n bytes, each with descriptors; the server answers the last with one byte.
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
    pub(crate) const MOST_MESSAGES: u32 = 1000;
    /// The most descriptors that one message takes (`SCM_MAX_FD`, unix(7)).
    pub(crate) const MOST_FDS: u32 = 253;
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

    /// Whether each iteration is answered, so that the client knows when it is over.
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

serde_as_text!(Workload, "latency");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
            let _ = text.parse::<Workload>();
        }
    }
}
