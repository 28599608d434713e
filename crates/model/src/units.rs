//! Quantities that people type and read: sizes in binary units, durations, percentages.
//!
//! It is not a general unit library: every form that is accepted here is in the manual.

use crate::invalid::{Invalid, printable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A size in bytes. Parses `1`, `64`, `4K`, `4KiB`, `1M`, `1G`; displays in the shortest exact form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Size(pub u64);

impl Size {
    /// The largest message that ipcmark handles: both endpoints hold two buffers of it.
    pub const LARGEST: Size = Size(GIB);
    /// In a list of message sizes: doublings of the size before it, up to the largest that each spec takes on this host.
    pub const LIMIT: Size = Size(u64::MAX);

    /// The size as a length in memory.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            0 => (0, ""),
            n if n % GIB == 0 => (n / GIB, "G"),
            n if n % MIB == 0 => (n / MIB, "M"),
            n if n % KIB == 0 => (n / KIB, "K"),
            n => (n, ""),
        };
        f.pad(&format!("{value}{unit}"))
    }
}

impl FromStr for Size {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let refuse = |why: &str| {
            Invalid::new(
                format!("'{}' is not a size: {why}", printable(text)),
                "give bytes, or a binary unit: 1, 64, 4K, 1M, 1G",
            )
        };
        if text.starts_with('-') {
            return Err(refuse("it is below 0"));
        }
        let scale = match unit.to_ascii_lowercase().as_str() {
            _ if unit.starts_with(['.', ',']) => return Err(refuse("it is no whole number")),
            "" | "b" => 1,
            "k" | "kib" => KIB,
            "m" | "mib" => MIB,
            "g" | "gib" => GIB,
            "kb" | "mb" | "gb" => return Err(refuse("decimal units are ambiguous here")),
            _ => return Err(refuse("unknown unit")),
        };
        if number.is_empty() {
            return Err(refuse("there is no number"));
        }
        let number: u64 = number.parse().map_err(|_| refuse("the number is too large"))?;
        number.checked_mul(scale).map(Size).ok_or_else(|| refuse("the number is too large"))
    }
}

/// Message sizes: a comma-separated list of sizes and doubling ranges, as `1,64,4K` or `1..1M`.
///
/// A range doubles from its first to its last size, which is always included. `1..max` ends at [`Size::LIMIT`]. A range
/// cannot begin with 0, for it doubles: an empty message is named beside it, as `0,1..64K`.
pub fn parse_sizes(list: &str) -> Result<Vec<Size>, Invalid> {
    let mut sizes = Vec::new();
    for item in list.split(',') {
        match item.split_once("..") {
            None => sizes.push(message_size(item)?),
            Some((first, "max")) => sizes.extend([doubled_size(first, "max")?, Size::LIMIT]),
            Some((first, last)) => {
                let (first, last) = (doubled_size(first, last)?, message_size(last)?);
                if first > last {
                    return Err(Invalid::new(
                        format!("the range {first}..{last} runs downwards"),
                        format!("give it as {last}..{first}"),
                    ));
                }
                sizes.extend(
                    std::iter::successors(Some(first), |s| Some(Size(s.0 * 2))).take_while(|s| *s < last),
                );
                sizes.push(last);
            }
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

fn message_size(text: &str) -> Result<Size, Invalid> {
    let size: Size = text.parse()?;
    match size {
        s if s > Size::LARGEST => Err(Invalid::new(
            format!("a message of {s} bytes is larger than ipcmark handles"),
            format!("give a size of at most {}", Size::LARGEST),
        )),
        s => Ok(s),
    }
}

/// The first size of a range that ends with `last`.
fn doubled_size(text: &str, last: &str) -> Result<Size, Invalid> {
    match message_size(text)? {
        Size(0) => {
            let last = printable(last);
            Err(Invalid::new(
                format!("the range 0..{last} would stay at 0, for a range doubles"),
                format!("give it as 0,1..{last}"),
            ))
        }
        first => Ok(first),
    }
}

/// A duration as people write it: `10us`, `5ms`, `60s`, `1m 30s`.
pub fn parse_duration(text: &str) -> Result<Duration, Invalid> {
    humantime::parse_duration(text.trim()).map_err(|why| {
        Invalid::new(
            format!("'{}' is not a duration: {why}", printable(text)),
            "give a number with a unit: 10us, 5ms, 60s, 2m",
        )
    })
}

/// A time in nanoseconds. Parses `0`, `10us`, `5ms`; displays in the same form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanoseconds(pub u64);

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.pad("0"),
            ns => f.pad(&humantime::format_duration(Duration::from_nanos(ns)).to_string()),
        }
    }
}

impl FromStr for Nanoseconds {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.trim() == "0" {
            return Ok(Self(0));
        }
        u64::try_from(parse_duration(text)?.as_nanos()).map(Self).map_err(|_| {
            Invalid::new(format!("'{}' is too long", printable(text)), "give at most some years")
        })
    }
}

/// A duration that is not 0.
pub fn parse_some_time(text: &str) -> Result<Duration, Invalid> {
    match parse_duration(text)? {
        Duration::ZERO => {
            Err(Invalid::new("a time of 0 leaves nothing to measure", "give more, such as 60s"))
        }
        time => Ok(time),
    }
}

/// A fraction that people write in percent: `2%` is 0.02.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Percent(pub f64);

impl Percent {
    /// The least that is not written as 0%.
    pub const LEAST: Percent = Percent(0.000_01);
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", trimmed(self.0 * 100.0)))
    }
}

impl FromStr for Percent {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = || {
            Invalid::new(
                format!("'{}' is not a percentage from 0.001% to 100%", printable(text)),
                "give it as 2% or 0.5%",
            )
        };
        let number = text.trim().strip_suffix('%').ok_or_else(refuse)?;
        let value: f64 = number.trim().parse().map_err(|_| refuse())?;
        // Three decimals are shown: less than the last of them would be shown as 0%.
        if (0.001..=100.0).contains(&value) { Ok(Percent(value / 100.0)) } else { Err(refuse()) }
    }
}

/// A number with at most three decimals and no trailing zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A time in nanoseconds to three significant digits with its unit: `812 ns`, `2.81 µs`, `14.3 ms`.
pub fn format_ns(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        n if n < 999.5 => (ns, "ns"),
        n if n < 999.5e3 => (ns / 1e3, "µs"),
        n if n < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A rate in bytes per second to three significant digits, in decimal units: `812 MB/s`, `2.81 GB/s`.
pub fn format_rate(bytes_per_s: f64) -> String {
    let (value, unit) = match bytes_per_s {
        r if r < 999.5e3 => (bytes_per_s / 1e3, "kB/s"),
        r if r < 999.5e6 => (bytes_per_s / 1e6, "MB/s"),
        _ => (bytes_per_s / 1e9, "GB/s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A time that is `ratio` times another, in words: `2.68 times the time`, `4.0% more time`, `12% less time`.
pub fn format_time_ratio(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0).abs();
    let percent = if percent < 9.95 { format!("{percent:.1}%") } else { format!("{percent:.0}%") };
    match ratio {
        ratio if ratio >= 2.0 => format!("{} times the time", three_digits(ratio)),
        ratio if ratio >= 1.0 => format!("{percent} more time"),
        _ => format!("{percent} less time"),
    }
}

/// Three significant digits without an exponent: `0.512`, `2.81`, `14.3`, `812`, `12345`.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 0.9995 => format!("{value:.3}"),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerS,
    /// One quantity over another, or a count.
    Number,
}

impl Unit {
    /// The name that programs know it by.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::Bytes => "bytes",
            Unit::BytesPerS => "bytes/s",
            Unit::Number => "number",
        }
    }
}

impl Serialize for Unit {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_binary_and_exact() {
        for (text, bytes) in
            [("1", 1), ("64", 64), ("4K", 4096), ("4kib", 4096), ("1M", MIB), ("1g", GIB), (" 7b ", 7)]
        {
            assert_eq!(text.parse::<Size>().unwrap(), Size(bytes), "{text}");
        }
        assert_eq!(Size(112_192).to_string(), "112192");
        assert_eq!(Size(65_536).to_string(), "64K");
    }

    #[test]
    fn lists_double_and_keep_their_end() {
        assert_eq!(parse_sizes("1..8").unwrap(), [1, 2, 4, 8].map(Size));
        assert_eq!(parse_sizes("64,3..20").unwrap(), [3, 6, 12, 20, 64].map(Size));
        assert_eq!(parse_sizes("4K,4096").unwrap(), [Size(4096)]);
        assert_eq!(parse_sizes("1..4,0").unwrap(), [0, 1, 2, 4].map(Size));
        assert_eq!(parse_sizes("0,1..max").unwrap(), [Size(0), Size(1), Size::LIMIT]);
    }

    #[test]
    fn bad_sizes_say_what_to_give() {
        for text in [
            "",
            "K",
            "4Q",
            "4KB",
            "-1",
            "1.5K",
            "99999999999999999999",
            "20000000000G",
            "8..1",
            "0..0",
            "2G",
            "1,,2",
            "1..",
        ] {
            let error = parse_sizes(text).unwrap_err();
            assert!(!error.remedy.is_empty(), "{text}: {error}");
        }
        for (text, remedy) in [("0..64K", "give it as 0,1..64K"), ("0..max", "give it as 0,1..max")] {
            assert_eq!(parse_sizes(text).unwrap_err().remedy, remedy);
        }
    }

    #[test]
    fn percent_and_durations() {
        assert_eq!("2%".parse::<Percent>().unwrap(), Percent(0.02));
        assert_eq!(Percent(0.025).to_string(), "2.5%");
        assert_eq!("0.001%".parse::<Percent>().unwrap().to_string(), "0.001%");
        for text in ["2", "0%", "0.0009%", "-1%", "nan%", "101%", "%"] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
        assert_eq!(parse_duration("10us").unwrap(), Duration::from_micros(10));
        assert!(parse_duration("10").is_err());
        assert_eq!(parse_some_time("1ns").unwrap(), Duration::from_nanos(1));
        assert!(parse_some_time("0s").unwrap_err().problem.contains("nothing to measure"));
    }

    #[test]
    fn three_digits_everywhere() {
        assert_eq!(format_ns(812.4), "812 ns");
        assert_eq!(format_ns(999.6), "1.00 µs");
        assert_eq!(format_ns(2812.0), "2.81 µs");
        assert_eq!(format_rate(2.812e9), "2.81 GB/s");
    }

    proptest! {
        #[test]
        fn a_size_survives_its_own_text(bytes in 0..u64::MAX) {
            prop_assert_eq!(Size(bytes).to_string().parse::<Size>().unwrap(), Size(bytes));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = parse_sizes(&text);
            let _ = parse_duration(&text);
            let _ = text.parse::<Percent>();
        }
    }
}
