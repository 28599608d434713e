//! The peers: how many endpoints communicate at once in a trial, and who with whom.

use crate::invalid::{Invalid, printable};
use crate::text::serde_as_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Who communicates with whom. Every client runs on the client's CPU and every server on the server's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peers {
    /// One client, one server.
    #[default]
    Pair,
    /// So many pairs at once, each with objects of its own, as independent programs have.
    Pairs(u32),
    /// So many clients and one server, which has an endpoint for each client and serves those that are ready.
    FanIn(u32),
    /// One client and so many servers: an iteration is a message to each server, and all their answers.
    FanOut(u32),
}

impl Peers {
    /// The most pairs, clients or servers.
    pub const MOST: u32 = 64;
    const NAMES: [&str; 3] = ["pairs=N", "fan-in=N", "fan-out=N"];

    /// How many clients there are.
    pub fn clients(self) -> u32 {
        match self {
            Peers::Pair | Peers::FanOut(_) => 1,
            Peers::Pairs(count) | Peers::FanIn(count) => count,
        }
    }

    /// How many pairs of a client's endpoint and a server's there are.
    pub fn pairs(self) -> u32 {
        match self {
            Peers::Pair => 1,
            Peers::Pairs(count) | Peers::FanIn(count) | Peers::FanOut(count) => count,
        }
    }

    /// How many endpoints there are.
    pub fn endpoints(self) -> usize {
        match self {
            Peers::Pair | Peers::Pairs(_) => 2 * self.pairs() as usize,
            Peers::FanIn(_) | Peers::FanOut(_) => 1 + self.pairs() as usize,
        }
    }

    /// For a heading; `None` for one pair, which is not mentioned.
    pub fn in_words(self) -> Option<String> {
        match self {
            Peers::Pair => None,
            Peers::Pairs(count) => Some(format!("{count} pairs at once")),
            Peers::FanIn(count) => Some(format!("{count} clients to one server")),
            Peers::FanOut(count) => Some(format!("one client to {count} servers")),
        }
    }
}

impl fmt::Display for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peers::Pair => f.pad("pairs=1"),
            Peers::Pairs(count) => f.pad(&format!("pairs={count}")),
            Peers::FanIn(count) => f.pad(&format!("fan-in={count}")),
            Peers::FanOut(count) => f.pad(&format!("fan-out={count}")),
        }
    }
}

impl FromStr for Peers {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (name, count) = text.split_once('=').unwrap_or((text, ""));
        let many = match name {
            "pairs" => Peers::Pairs,
            "fan-in" => Peers::FanIn,
            "fan-out" => Peers::FanOut,
            _ => return Err(Invalid::unknown("arrangement of peers", text, Self::NAMES)),
        };
        match count.parse() {
            Ok(1) => Ok(Peers::Pair),
            Ok(count @ 2..=Self::MOST) => Ok(many(count)),
            _ => Err(Invalid::new(
                format!("'{}' does not say how many peers", printable(text)),
                format!("give a number from 1 to {}: {name}=4", Self::MOST),
            )),
        }
    }
}

serde_as_text!(Peers, "fan-in=4");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arrangements_survive_their_own_text() {
        for peers in [Peers::Pair, Peers::Pairs(2), Peers::FanIn(64), Peers::FanOut(3)] {
            assert_eq!(peers.to_string().parse::<Peers>().unwrap(), peers);
        }
        assert_eq!("fan-in=1".parse::<Peers>().unwrap(), Peers::Pair);
        for wrong in ["", "pairs", "pairs=", "pairs=0", "pairs=65", "fan-in=-1", "fans=2", "pairs=2=3"] {
            let invalid = wrong.parse::<Peers>().unwrap_err();
            assert!(!invalid.remedy.is_empty(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<Peers>();
        }
    }
}
