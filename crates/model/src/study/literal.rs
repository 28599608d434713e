//! A number with its unit, as suites write it.

use crate::invalid::{Invalid, printable};
use crate::units::Unit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A longer text is no number.
const LONGEST: usize = 400;

/// A number with its unit: `3.7`, `29us`, `64K`, `103.6MiB/s`.
#[derive(Debug, Clone, PartialEq)]
pub struct Literal {
    /// In nanoseconds, bytes, bytes per second, or without a unit.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    text: String,
}

impl FromStr for Literal {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        const KIB: f64 = 1024.0;
        let refuse = || {
            Invalid::new(
                format!("'{}' is not a number", printable(text)),
                "give 3.7, 29us (ns, us, ms, s), 64K (B, K, M, G) or 100MB/s (B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s)",
            )
        };
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let (scale, unit) = match unit.trim_start() {
            "" => (1.0, Unit::Number),
            "ns" => (1.0, Unit::Ns),
            "us" | "µs" => (1e3, Unit::Ns),
            "ms" => (1e6, Unit::Ns),
            "s" => (1e9, Unit::Ns),
            "B" => (1.0, Unit::Bytes),
            "K" => (KIB, Unit::Bytes),
            "M" => (KIB * KIB, Unit::Bytes),
            "G" => (KIB * KIB * KIB, Unit::Bytes),
            "B/s" => (1.0, Unit::BytesPerS),
            "kB/s" => (1e3, Unit::BytesPerS),
            "MB/s" => (1e6, Unit::BytesPerS),
            "GB/s" => (1e9, Unit::BytesPerS),
            "KiB/s" => (KIB, Unit::BytesPerS),
            "MiB/s" => (KIB * KIB, Unit::BytesPerS),
            "GiB/s" => (KIB * KIB * KIB, Unit::BytesPerS),
            _ => return Err(refuse()),
        };
        // Beyond this no number means anything here, and products of a few of them stay finite.
        const LARGEST: f64 = 1e18;
        let value = number.parse::<f64>().map_err(|_| refuse())? * scale;
        if value.abs() > LARGEST || text.len() > LONGEST {
            return Err(refuse());
        }
        Ok(Self { value, unit, text: text.to_owned() })
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Literal {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrText)
    }
}

/// A literal is text, or where it has no unit a number.
struct NumberOrText;

impl serde::de::Visitor<'_> for NumberOrText {
    type Value = Literal;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or text such as \"29us\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Literal, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Literal, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Literal, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Literal, E> {
        self.visit_str(&number.to_string())
    }
}

impl JsonSchema for Literal {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Literal".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": ["3.7", "29us", "64K", "103.6MiB/s"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_units() {
        for (text, value, unit) in [
            ("3.7", 3.7, Unit::Number),
            ("29us", 29e3, Unit::Ns),
            ("6.5s", 6.5e9, Unit::Ns),
            ("64K", 65536.0, Unit::Bytes),
            ("112192B", 112_192.0, Unit::Bytes),
            ("2MiB/s", 2097152.0, Unit::BytesPerS),
            ("2MB/s", 2e6, Unit::BytesPerS),
        ] {
            let literal: Literal = text.parse().unwrap();
            assert_eq!((literal.value, literal.unit, literal.to_string().as_str()), (value, unit, text));
        }
        for wrong in ["", "us", "1..2", "1.2.3", "3 hours", "1e400", "99999999999G", "-", "nan"] {
            assert!(wrong.parse::<Literal>().is_err(), "{wrong}");
        }
    }
}
