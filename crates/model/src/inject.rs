//! A delay that is injected in every iteration of a case, so that users can try what a gate of theirs finds. It is part of
//! the case's name, and nothing here waits.

use crate::invalid::{Invalid, printable};
use crate::text::serde_as_text;
use crate::units::{Percent, parse_duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How long the client works in each iteration beside what the mechanism does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Inject {
    /// So many nanoseconds.
    Ns(u64),
    /// So many thousandths of a percent of what an iteration takes without.
    Thousandths(u32),
}

impl Inject {
    /// The longest delay, in nanoseconds.
    const LONGEST_NS: u64 = 1_000_000_000;
    const THOUSANDTHS: f64 = 100_000.0;

    /// The delay in nanoseconds, if an iteration takes `plain_ns` without it.
    pub fn delay_ns(self, plain_ns: f64) -> f64 {
        match self {
            Inject::Ns(ns) => ns as f64,
            Inject::Thousandths(thousandths) => f64::from(thousandths) / Self::THOUSANDTHS * plain_ns,
        }
    }
}

impl FromStr for Inject {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.trim().ends_with('%') {
            let share = text.parse::<Percent>()?.0;
            return Ok(Inject::Thousandths((share * Self::THOUSANDTHS).round() as u32));
        }
        let refuse = |_| {
            Invalid::new(
                format!("'{}' is not a delay from 1ns to 1s, nor a percentage", printable(text)),
                "give it as 5% or 200ns",
            )
        };
        let ns = u64::try_from(parse_duration(text).map_err(refuse)?.as_nanos()).unwrap_or(u64::MAX);
        if (1..=Self::LONGEST_NS).contains(&ns) {
            Ok(Inject::Ns(ns))
        } else {
            Err(refuse(Invalid::new("", "")))
        }
    }
}

impl fmt::Display for Inject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match *self {
            // Without the spaces that separate units, because it stands in a case's key.
            Inject::Ns(ns) => {
                humantime::format_duration(Duration::from_nanos(ns)).to_string().replace(' ', "")
            }
            Inject::Thousandths(thousandths) => {
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
        for (text, inject, shown) in [
            ("200ns", Inject::Ns(200), "200ns"),
            ("1500ns", Inject::Ns(1500), "1us500ns"),
            ("2us", Inject::Ns(2000), "2us"),
            ("5%", Inject::Thousandths(5000), "5%"),
            ("0.5%", Inject::Thousandths(500), "0.5%"),
            ("0.001%", Inject::Thousandths(1), "0.001%"),
            ("100%", Inject::Thousandths(100_000), "100%"),
        ] {
            assert_eq!(text.parse::<Inject>().unwrap(), inject, "{text}");
            assert_eq!((inject.to_string(), shown.parse::<Inject>().unwrap()), (shown.to_owned(), inject));
        }
    }

    #[test]
    fn what_is_no_delay_says_what_to_give() {
        for text in ["", "5", "0ns", "2s", "-5%", "0%", "101%", "fast", "%"] {
            assert!(!text.parse::<Inject>().unwrap_err().remedy.is_empty(), "{text}");
        }
    }

    #[test]
    fn a_percentage_is_of_what_the_case_takes_without() {
        assert_eq!(Inject::Thousandths(5000).delay_ns(4000.0), 200.0);
        assert_eq!(Inject::Ns(70).delay_ns(4000.0), 70.0);
    }
}
