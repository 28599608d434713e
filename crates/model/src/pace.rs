//! The pace: when the client begins its iterations. The wait before an iteration does not count as part of it.

use crate::invalid::{Invalid, printable};
use crate::text::serde_as_text;
use crate::units::{format_ns, parse_duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// When the client begins its iterations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pace {
    /// At once when the one before is over.
    #[default]
    BackToBack,
    /// So many nanoseconds after the one before is over: long enough for the peer to go to sleep.
    ThinkTime(u64),
    /// At times that are fixed beforehand, however long the iterations before took (an open loop). An iteration is timed from
    /// when it was due, so that its time includes the wait for the one before.
    Rate(Rate),
}

/// How often iterations are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    /// Iterations a second, on average.
    pub per_s: u32,
    /// How they follow one another.
    pub arrivals: Arrivals,
}

/// How iterations of a rate follow one another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arrivals {
    /// At equal intervals.
    #[default]
    Uniform,
    /// Each independently of the others: at exponentially distributed intervals.
    Poisson,
}

impl Pace {
    /// The longest think time, in nanoseconds.
    const LONGEST_THINK_TIME_NS: u64 = 1_000_000_000;
    /// The most iterations a second that can be asked for.
    const MOST_PER_S: u32 = 100_000_000;
    /// What stands after a rate whose arrivals are random.
    const POISSON: &str = "poisson";

    /// A think time as given on the command line, `100us`; 0 is back to back.
    pub fn think_time(text: &str) -> Result<Self, Invalid> {
        let think_time_ns = if text == "0" { 0 } else { parse_duration(text)?.as_nanos() };
        match u64::try_from(think_time_ns) {
            Ok(0) => Ok(Pace::BackToBack),
            Ok(think_time_ns) if think_time_ns <= Self::LONGEST_THINK_TIME_NS => {
                Ok(Pace::ThinkTime(think_time_ns))
            }
            _ => Err(Invalid::new(
                format!("a think time of {} is too long", printable(text)),
                "give at most 1s",
            )),
        }
    }

    /// A rate as given on the command line: `1000`, `10k`, `2M`, with or without `-poisson` after it.
    pub fn rate(text: &str) -> Result<Self, Invalid> {
        let (number, arrivals) = match text.split_once('-') {
            None => (text, Arrivals::Uniform),
            Some((number, Self::POISSON)) => (number, Arrivals::Poisson),
            Some((_, other)) => return Err(Invalid::unknown("kind of arrivals", other, [Self::POISSON])),
        };
        let (digits, unit) = match number.strip_suffix(['k', 'M']) {
            Some(digits) if number.ends_with('k') => (digits, 1000),
            Some(digits) => (digits, 1_000_000),
            None => (number, 1),
        };
        let per_s = digits.parse::<u32>().ok().and_then(|number| number.checked_mul(unit));
        match per_s {
            Some(per_s @ 1..=Self::MOST_PER_S) => Ok(Pace::Rate(Rate { per_s, arrivals })),
            _ => Err(Invalid::new(
                format!("'{}' is not a rate", printable(text)),
                "give iterations a second as 1000, 10k or 2M, at most 100M; with '-poisson' after it for random arrivals",
            )),
        }
    }

    /// For a heading; `None` for back to back, which is not mentioned.
    pub fn in_words(self) -> Option<String> {
        match self {
            Pace::BackToBack => None,
            Pace::ThinkTime(ns) => Some(format!("{} idle before each", format_ns(ns as f64))),
            Pace::Rate(Rate { per_s, arrivals }) => {
                let arrivals = if arrivals == Arrivals::Poisson { " at random" } else { "" };
                Some(format!("{per_s} due a second{arrivals}"))
            }
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::BackToBack => f.write_str("back-to-back"),
            Pace::ThinkTime(ns) => {
                write!(f, "think-time={}", humantime::format_duration(std::time::Duration::from_nanos(*ns)))
            }
            Pace::Rate(Rate { per_s, arrivals }) => {
                let arrivals = if *arrivals == Arrivals::Poisson { "-poisson" } else { "" };
                match per_s {
                    millions if millions % 1_000_000 == 0 => {
                        write!(f, "rate={}M{arrivals}", millions / 1_000_000)
                    }
                    thousands if thousands % 1000 == 0 => write!(f, "rate={}k{arrivals}", thousands / 1000),
                    _ => write!(f, "rate={per_s}{arrivals}"),
                }
            }
        }
    }
}

impl FromStr for Pace {
    type Err = Invalid;

    /// Parses what [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text.split_once('=') {
            None if text == "back-to-back" => Ok(Pace::BackToBack),
            Some(("think-time", think_time)) => Self::think_time(think_time),
            Some(("rate", rate)) => Self::rate(rate),
            _ => Err(Invalid::new(
                format!("'{}' is not a pace", printable(text)),
                "give back-to-back, think-time=10us or rate=10k",
            )),
        }
    }
}

impl Rate {
    /// The time from one due iteration to the next, in nanoseconds, on average.
    pub fn interval_ns(self) -> f64 {
        1e9 / f64::from(self.per_s)
    }
}

serde_as_text!(Pace, "think-time=10us");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pace_is_read_as_it_was_written() {
        let rate = |per_s, arrivals| Pace::Rate(Rate { per_s, arrivals });
        for (pace, text) in [
            (Pace::BackToBack, "back-to-back"),
            (Pace::ThinkTime(1_500), "think-time=1us 500ns"),
            (Pace::ThinkTime(10_000_000), "think-time=10ms"),
            (rate(999, Arrivals::Uniform), "rate=999"),
            (rate(10_000, Arrivals::Poisson), "rate=10k-poisson"),
            (rate(2_000_000, Arrivals::Uniform), "rate=2M"),
        ] {
            assert_eq!(pace.to_string(), text);
            assert_eq!(text.parse::<Pace>().unwrap(), pace);
        }
        assert_eq!(Pace::think_time("0").unwrap(), Pace::BackToBack);
        assert_eq!(Pace::think_time("0us").unwrap(), Pace::BackToBack);
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(Pace::think_time("2s").unwrap_err().problem.contains("too long"));
        assert!(Pace::think_time("soon").is_err());
        for wrong in ["0", "", "k", "-1", "1.5", "5000000000", "101M", "10G"] {
            assert!(Pace::rate(wrong).is_err(), "{wrong}");
        }
        assert!(Pace::rate("10-pois").unwrap_err().problem.contains("kind of arrivals"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = text.parse::<Pace>();
            let _ = (Pace::think_time(&text), Pace::rate(&text));
        }

        #[test]
        fn every_rate_survives(per_s in 1..100_000_001_u32) {
            let pace = Pace::Rate(Rate { per_s, arrivals: Arrivals::Uniform });
            prop_assert_eq!(pace.to_string().parse::<Pace>().unwrap(), pace);
        }
    }
}
