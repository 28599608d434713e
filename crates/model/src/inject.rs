//! A delay that is injected in every iteration of a case, so that users can try what a gate of theirs finds. It is part of
//! the case's name, and nothing here waits.

use crate::endpoint::EndpointRole;
use crate::invalid::{Invalid, printable};
use crate::text::serde_as_text;
use crate::units::{Percent, parse_duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A delay in each iteration, beside what the mechanism does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inject {
    /// Who is delayed: the client before it sends, or the server before it answers.
    pub side: EndpointRole,
    /// The delayed endpoint sleeps; else it computes.
    pub is_asleep: bool,
    /// For how long.
    pub amount: InjectedAmount,
}

/// How long a delay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InjectedAmount {
    /// So many nanoseconds.
    Ns(u64),
    /// So many thousandths of a percent of what an iteration takes without.
    Thousandths(u32),
}

/// What stands before a delay of the server.
const SERVER: &str = "server:";
/// What stands before a delay asleep.
const SLEEP: &str = "sleep:";

impl Inject {
    /// A delay of the client, which computes.
    pub const fn of_client(amount: InjectedAmount) -> Self {
        Self { side: EndpointRole::Client, is_asleep: false, amount }
    }
}

impl InjectedAmount {
    /// The longest delay, in nanoseconds.
    const LONGEST_NS: u64 = 1_000_000_000;
    const THOUSANDTHS: f64 = 100_000.0;

    /// The delay in nanoseconds, if an iteration takes `plain_ns` without it.
    pub fn delay_ns(self, plain_ns: f64) -> f64 {
        match self {
            InjectedAmount::Ns(ns) => ns as f64,
            InjectedAmount::Thousandths(thousandths) => f64::from(thousandths) / Self::THOUSANDTHS * plain_ns,
        }
    }
}

impl FromStr for Inject {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (side, rest) = match text.strip_prefix(SERVER) {
            Some(rest) => (EndpointRole::Server, rest),
            None => (EndpointRole::Client, text),
        };
        let (is_asleep, amount) = match rest.strip_prefix(SLEEP) {
            Some(amount) => (true, amount),
            None => (false, rest),
        };
        Ok(Self { side, is_asleep, amount: amount.parse()? })
    }
}

impl FromStr for InjectedAmount {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.trim().ends_with('%') {
            let share = text.parse::<Percent>()?.0;
            return Ok(InjectedAmount::Thousandths((share * Self::THOUSANDTHS).round() as u32));
        }
        let refuse = |_| {
            Invalid::new(
                format!("'{}' is not a delay from 1ns to 1s, nor a percentage", printable(text)),
                "give it as 5% or 200ns; of the server as server:200ns; asleep as sleep:50us or server:sleep:50us",
            )
        };
        let ns = u64::try_from(parse_duration(text).map_err(refuse)?.as_nanos()).unwrap_or(u64::MAX);
        if (1..=Self::LONGEST_NS).contains(&ns) {
            Ok(InjectedAmount::Ns(ns))
        } else {
            Err(refuse(Invalid::new("", "")))
        }
    }
}

impl fmt::Display for Inject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.side == EndpointRole::Server { SERVER } else { "" };
        let asleep = if self.is_asleep { SLEEP } else { "" };
        f.pad(&format!("{side}{asleep}{}", self.amount))
    }
}

impl fmt::Display for InjectedAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match *self {
            // Without the spaces that separate units, because it stands in a case's key.
            InjectedAmount::Ns(ns) => {
                humantime::format_duration(Duration::from_nanos(ns)).to_string().replace(' ', "")
            }
            InjectedAmount::Thousandths(thousandths) => {
                Percent(f64::from(thousandths) / Self::THOUSANDTHS).to_string()
            }
        })
    }
}

serde_as_text!(Inject, "5%");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_survives_its_own_text() {
        use InjectedAmount::{Ns, Thousandths};
        let (client, server) = (EndpointRole::Client, EndpointRole::Server);
        for (text, side, is_asleep, amount, shown) in [
            ("200ns", client, false, Ns(200), "200ns"),
            ("1500ns", client, false, Ns(1500), "1us500ns"),
            ("2us", client, false, Ns(2000), "2us"),
            ("5%", client, false, Thousandths(5000), "5%"),
            ("0.5%", client, false, Thousandths(500), "0.5%"),
            ("0.001%", client, false, Thousandths(1), "0.001%"),
            ("100%", client, false, Thousandths(100_000), "100%"),
            ("server:10us", server, false, Ns(10_000), "server:10us"),
            ("sleep:50us", client, true, Ns(50_000), "sleep:50us"),
            ("server:sleep:5%", server, true, Thousandths(5000), "server:sleep:5%"),
        ] {
            let inject = Inject { side, is_asleep, amount };
            assert_eq!(text.parse::<Inject>().unwrap(), inject, "{text}");
            assert_eq!((inject.to_string(), shown.parse::<Inject>().unwrap()), (shown.to_owned(), inject));
        }
    }

    #[test]
    fn what_is_no_delay_says_what_to_give() {
        for text in [
            "",
            "5",
            "0ns",
            "2s",
            "-5%",
            "0%",
            "101%",
            "fast",
            "%",
            "server:",
            "client:5us",
            "sleep:server:1us",
        ] {
            assert!(!text.parse::<Inject>().unwrap_err().remedy.is_empty(), "{text}");
        }
    }

    #[test]
    fn a_percentage_is_of_what_the_case_takes_without() {
        assert_eq!(InjectedAmount::Thousandths(5000).delay_ns(4000.0), 200.0);
        assert_eq!(InjectedAmount::Ns(70).delay_ns(4000.0), 70.0);
    }
}
