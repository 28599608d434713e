//! A parameter that a card declares: its name, what it may be, and its default.

use crate::driver::DriverName;
use crate::invalid::{Invalid, printable};
use crate::units::{Size, parse_duration};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// One parameter that a card declares.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Param {
    /// Its name before the `=`.
    pub name: &'static str,
    /// One line: what it does.
    pub summary: &'static str,
    /// What it may be.
    pub domain: Domain,
    /// Its value when not given. `None`: the kernel's own default.
    pub default: Option<&'static str>,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Domain {
    /// A size of at least 1 byte, in binary units.
    Size,
    /// A size, or `match`: the size of the message.
    SizeOrMatch,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// A duration of at most 1 s, such as `10us`.
    Duration,
    /// A whole number of at least 1.
    Count,
    /// A name, of small letters, digits, `-`, `_` and `.`.
    Name,
}

/// The value that stands for the size of the message.
pub(crate) const MATCH: &str = "match";

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domain::Size => f.write_str("SIZE"),
            Domain::SizeOrMatch => write!(f, "SIZE|{MATCH}"),
            Domain::Choice(words) => f.write_str(&words.join("|")),
            Domain::Duration => f.write_str("DURATION"),
            Domain::Count => f.write_str("N"),
            Domain::Name => f.write_str("NAME"),
        }
    }
}

impl Domain {
    /// `text` in canonical form, or why it is not in the domain.
    pub(crate) fn canonical(&self, text: &str) -> Result<String, Invalid> {
        match self {
            Domain::SizeOrMatch if text == MATCH => Ok(text.to_owned()),
            Domain::Size | Domain::SizeOrMatch => match text.parse::<Size>()? {
                Size(0) => Err(Invalid::new("a size of 0", "give a size of 1 or more")),
                size if size > Size::LARGEST => Err(Invalid::new(
                    format!("{size} is too large"),
                    format!("give at most {}", Size::LARGEST),
                )),
                size => Ok(size.to_string()),
            },
            Domain::Choice(words) => words
                .contains(&text)
                .then(|| text.to_owned())
                .ok_or_else(|| Invalid::unknown("value", text, words.iter().copied())),
            Domain::Duration => match parse_duration(text)? {
                long if long > Duration::from_secs(1) => {
                    Err(Invalid::new(format!("{text} is too long"), "give at most 1s"))
                }
                duration => Ok(humantime::format_duration(duration).to_string()),
            },
            Domain::Count => match text.parse::<u32>() {
                Ok(0) | Err(_) => Err(Invalid::new(
                    format!("'{}' is not a count", printable(text)),
                    "give a whole number from 1 to 4294967295",
                )),
                Ok(count) => Ok(count.to_string()),
            },
            Domain::Name => DriverName::try_from(text.to_owned()).map(String::from).map_err(|_| {
                Invalid::new(
                    format!("'{}' is no name", printable(text)),
                    "give small letters, digits, '-', '_' and '.'",
                )
            }),
        }
    }
}
