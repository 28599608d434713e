//! What a cell, a line or a test of a study stands for, as text: metrics of cases, and sums and ratios of them.
//!
//! ```text
//! measure = formula | "peak" formula | "flat" PERCENT formula
//! formula = product { ("+" | "-") product }
//! product = factor { ("*" | "/") factor }
//! factor  = LITERAL | "(" formula ")" | METRIC "of" CASE [ "at" SIZE ]
//! ```
//!
//! Blanks stand around every word and sign. What the cases are is not known here, nor how values become estimates.

use super::metric::Metric;
use crate::invalid::{Invalid, printable};
use crate::units::Unit;
use crate::units::{Percent, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// More brackets than this within each other are not read.
const DEEPEST: usize = 16;
/// A longer formula is not read.
const LONGEST: usize = 400;

/// A number with its unit: `3.7`, `29us`, `64K`, `103.6MiB/s`.
#[derive(Debug, Clone, PartialEq)]
pub struct Literal {
    /// In the base of its unit: nanoseconds, bytes, bytes per second.
    pub value: f64,
    /// In what it is counted.
    pub unit: Unit,
    text: String,
}

/// What a cell or a test takes its number from.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// How the formula becomes a number.
    pub kind: MeasureKind,
    /// The formula.
    pub formula: Formula,
    text: String,
}

/// How a formula becomes one number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MeasureKind {
    /// By its value.
    Value,
    /// The size at which it is best: a rate highest, anything else lowest.
    Peak,
    /// The largest size up to which it stays within this of its value at the smallest.
    Flat(Percent),
}

/// A value made of metrics of cases.
#[derive(Debug, Clone, PartialEq)]
pub enum Formula {
    /// A constant.
    Literal(Literal),
    /// What is taken of a case.
    Taken(MetricOfCase),
    /// Two formulas.
    Two(Box<Formula>, Operator, Box<Formula>),
}

/// A metric of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricOfCase {
    /// What is taken.
    pub metric: Metric,
    /// The name of the case.
    pub case: String,
    /// At which of its sizes; else at the one that it has, or at that of the line's point.
    pub at: Option<Size>,
}

/// What is done with two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Their sum.
    Add,
    /// Their difference.
    Subtract,
    /// Their product.
    Multiply,
    /// Their quotient.
    Divide,
}

impl Operator {
    fn of(sign: &str) -> Option<Self> {
        match sign {
            "+" => Some(Operator::Add),
            "-" => Some(Operator::Subtract),
            "*" => Some(Operator::Multiply),
            "/" => Some(Operator::Divide),
            _ => None,
        }
    }

    /// What it makes of two values.
    pub fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide => a / b,
        }
    }

    fn unit(self, a: Unit, b: Unit) -> Option<Unit> {
        match (self, a, b) {
            (Operator::Add | Operator::Subtract, a, b) if a == b => Some(a),
            (Operator::Multiply, unit, Unit::Number) | (Operator::Multiply, Unit::Number, unit) => Some(unit),
            (Operator::Divide, a, b) if a == b => Some(Unit::Number),
            (Operator::Divide, unit, Unit::Number) => Some(unit),
            _ => None,
        }
    }
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

impl Formula {
    /// In what it is counted, or why that cannot be said.
    pub fn unit(&self) -> Result<Unit, Invalid> {
        match self {
            Formula::Literal(literal) => Ok(literal.unit),
            Formula::Taken(taken) => Ok(taken.metric.unit()),
            Formula::Two(a, operator, b) => {
                let (of_a, of_b) = (a.unit()?, b.unit()?);
                operator.unit(of_a, of_b).ok_or_else(|| {
                    let (what, joined) = match operator {
                        Operator::Add => ("added", "to"),
                        Operator::Subtract => ("subtracted", "from"),
                        Operator::Multiply => ("multiplied", "with"),
                        Operator::Divide => ("divided", "by"),
                    };
                    let (first, second) =
                        if *operator == Operator::Subtract { (of_b, of_a) } else { (of_a, of_b) };
                    Invalid::new(
                        format!("{} cannot be {what} {joined} {}", a_unit(first), a_unit(second)),
                        "add and subtract what is counted in the same unit, divide it by each other, or multiply and divide it by a number",
                    )
                })
            }
        }
    }

    /// What it takes of cases, from left to right.
    pub fn taken(&self) -> Vec<&MetricOfCase> {
        match self {
            Formula::Literal(_) => Vec::new(),
            Formula::Taken(taken) => vec![taken],
            Formula::Two(a, _, b) => [a.taken(), b.taken()].concat(),
        }
    }

    /// Whether it divides what is measured by what is measured.
    pub fn is_ratio(&self) -> bool {
        match self {
            Formula::Two(a, operator, b) => {
                let measured = |formula: &Formula| formula.taken().iter().any(|t| t.metric != Metric::Size);
                *operator == Operator::Divide && measured(a) && measured(b) || a.is_ratio() || b.is_ratio()
            }
            _ => false,
        }
    }

    /// Whether anything that it takes is too coarse for one trial.
    pub fn is_sampled(&self) -> bool {
        self.taken().iter().any(|taken| taken.metric.is_sampled())
    }

    /// Its value with `of` for what it takes.
    pub fn value(&self, of: &mut dyn FnMut(&MetricOfCase) -> Option<f64>) -> Option<f64> {
        match self {
            Formula::Literal(literal) => Some(literal.value),
            Formula::Taken(taken) => of(taken),
            Formula::Two(a, operator, b) => {
                let value = operator.apply(a.value(of)?, b.value(of)?);
                value.is_finite().then_some(value)
            }
        }
    }

    /// Where it lies when each of what it takes lies anywhere in its range.
    pub fn range(&self, of: &mut dyn FnMut(&MetricOfCase) -> Option<(f64, f64)>) -> Option<(f64, f64)> {
        match self {
            Formula::Literal(literal) => Some((literal.value, literal.value)),
            Formula::Taken(taken) => of(taken),
            Formula::Two(a, operator, b) => {
                let (a, b) = (a.range(of)?, b.range(of)?);
                if *operator == Operator::Divide && b.0 <= 0.0 && b.1 >= 0.0 {
                    return None;
                }
                let corners = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)];
                let values = corners.map(|(a, b)| operator.apply(a, b));
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                (low.is_finite() && high.is_finite()).then_some((low, high))
            }
        }
    }
}

fn a_unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Ns => "a time",
        Unit::Bytes => "a size",
        Unit::BytesPerS => "a rate",
        Unit::Number => "a number",
    }
}

impl Measure {
    /// In what it is counted.
    pub fn unit(&self) -> Result<Unit, Invalid> {
        let unit = self.formula.unit()?;
        Ok(if self.kind == MeasureKind::Value { unit } else { Unit::Bytes })
    }
}

impl FromStr for Measure {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.len() > LONGEST {
            return Err(Invalid::new(
                format!("a formula of {} characters is too long", text.len()),
                format!("give at most {LONGEST}"),
            ));
        }
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        let mut words = Words { rest: spaced.split_whitespace().collect(), at: 0 };
        let kind = match words.peek() {
            Some("peak") => {
                words.at += 1;
                MeasureKind::Peak
            }
            Some("flat") => {
                words.at += 1;
                let within = words.next("a percentage")?;
                MeasureKind::Flat(within.parse()?)
            }
            _ => MeasureKind::Value,
        };
        let formula = words.sum(0)?;
        if let Some(word) = words.peek() {
            return Err(unexpected(word, "a sign (+ - * /) or the end"));
        }
        formula.unit()?;
        Ok(Self { kind, formula, text: text.split_whitespace().collect::<Vec<_>>().join(" ") })
    }
}

/// The words of a formula, read from left to right.
struct Words<'a> {
    rest: Vec<&'a str>,
    at: usize,
}

impl<'a> Words<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.rest.get(self.at).copied()
    }

    fn next(&mut self, wanted: &str) -> Result<&'a str, Invalid> {
        let word = self.peek().ok_or_else(|| {
            Invalid::new(format!("the formula ends where {wanted} must follow"), FORM.to_owned())
        })?;
        self.at += 1;
        Ok(word)
    }

    /// The operator that comes next, if it is one of `signs`.
    fn operator(&mut self, signs: &[&str]) -> Option<Operator> {
        let sign = self.peek().filter(|word| signs.contains(word))?;
        self.at += 1;
        Operator::of(sign)
    }

    fn sum(&mut self, depth: usize) -> Result<Formula, Invalid> {
        let mut left = self.product(depth)?;
        while let Some(operator) = self.operator(&["+", "-"]) {
            left = Formula::Two(Box::new(left), operator, Box::new(self.product(depth)?));
        }
        Ok(left)
    }

    fn product(&mut self, depth: usize) -> Result<Formula, Invalid> {
        let mut left = self.factor(depth)?;
        while let Some(operator) = self.operator(&["*", "/"]) {
            left = Formula::Two(Box::new(left), operator, Box::new(self.factor(depth)?));
        }
        Ok(left)
    }

    fn factor(&mut self, depth: usize) -> Result<Formula, Invalid> {
        let word = self.next("a metric, a number or a bracket")?;
        if word == "(" {
            if depth == DEEPEST {
                return Err(Invalid::new("there are too many brackets within each other", FORM));
            }
            let inner = self.sum(depth + 1)?;
            return match self.next("a closing bracket")? {
                ")" => Ok(inner),
                other => Err(unexpected(other, "a closing bracket")),
            };
        }
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return word.parse().map(Formula::Literal);
        }
        let metric = word.parse()?;
        match self.next("'of' and the name of a case")? {
            "of" => {}
            other => return Err(unexpected(other, "'of' and the name of a case")),
        }
        let case = self.next("the name of a case")?.to_owned();
        let at = if self.peek() == Some("at") {
            self.at += 1;
            Some(self.next("a size")?.parse()?)
        } else {
            None
        };
        Ok(Formula::Taken(MetricOfCase { metric, case, at }))
    }
}

const FORM: &str = "give a formula such as: cpu of file / cpu of message";

fn unexpected(word: &str, wanted: &str) -> Invalid {
    Invalid::new(format!("'{}' stands where {wanted} must follow", printable(word)), FORM)
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Measure {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Measure {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Measure".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": ["cpu of file / cpu of message"] })
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
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Measure, Invalid> {
        text.parse()
    }

    /// The value with each metric worth what `of` says of its case.
    fn value(text: &str, of: fn(&str) -> f64) -> f64 {
        parse(text).unwrap().formula.value(&mut |taken| Some(of(&taken.case))).unwrap()
    }

    #[test]
    fn signs_bind_as_in_arithmetic() {
        let of = |case: &str| if case == "a" { 12.0 } else { 3.0 };
        assert_eq!(value("time of a / time of b", of), 4.0);
        assert_eq!(value("time of a - time of b - time of b", of), 6.0);
        assert_eq!(value("time of a + time of b * 2", of), 18.0);
        assert_eq!(value("(time of a + time of b) * 2", of), 30.0);
        assert_eq!(value("time of a / time of b / 2", of), 2.0);
        assert_eq!(value("1s / time of a", of), 1e9 / 12.0);
    }

    #[test]
    fn units_are_those_of_arithmetic() {
        for (text, unit) in [
            ("time of a", Unit::Ns),
            ("rate of a", Unit::BytesPerS),
            ("time of a / time of b", Unit::Number),
            ("time of a * (16M / size of a)", Unit::Ns),
            ("1s / time of a", Unit::Number),
            ("peak rate of a", Unit::Bytes),
            ("flat 25% time of a", Unit::Bytes),
            ("switches of a / 2", Unit::Number),
        ] {
            assert_eq!(parse(text).unwrap().unit().unwrap(), unit, "{text}");
        }
        for (text, says) in [
            ("time of a + rate of b", "a time cannot be added to a rate"),
            ("time of a - 3", "a number cannot be subtracted from a time"),
            ("time of a * time of b", "a time cannot be multiplied with a time"),
            ("1 / time of a", "a number cannot be divided by a time"),
        ] {
            assert_eq!(parse(text).unwrap_err().problem, says);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            ("", "ends where a metric, a number or a bracket must follow"),
            ("time", "ends where 'of' and the name of a case"),
            ("time a", "'a' stands where 'of'"),
            ("time of", "ends where the name of a case"),
            ("time of a at", "ends where a size"),
            ("time of a at soon", "is not a size"),
            ("tim of a", "'tim' is not a metric"),
            ("time of a time of b", "'time' stands where a sign"),
            ("(time of a", "ends where a closing bracket"),
            ("3.x", "is not a number"),
            ("flat time of a", "is not a percentage"),
        ] {
            let invalid = parse(text).unwrap_err();
            assert!(invalid.problem.contains(says), "{text}: {invalid}");
        }
        assert!(parse(&"(".repeat(100)).unwrap_err().problem.contains("too many brackets"));
        assert!(parse(&"x".repeat(1000)).unwrap_err().problem.contains("too long"));
    }

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

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_read_survives(text in "[a-z0-9 ().+*/%-]{0,60}|.{0,60}") {
            if let Ok(measure) = parse(&text) {
                prop_assert_eq!(parse(&measure.to_string()).unwrap(), measure);
            }
        }
    }
}
