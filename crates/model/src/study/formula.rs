//! Formulas: what a cell, a line or a test of a study stands for, as text made of metrics of cases, sums and ratios.
//!
//! ```text
//! measure = formula | "peak" formula | "flat" PERCENT formula
//! formula = product { ("+" | "-") product }
//! product = factor { ("*" | "/") factor }
//! factor  = LITERAL | "(" formula ")" | METRIC "of" CASE [ "at" SIZE ]
//! ```
//!
//! Every word and sign has a blank before and after it. The cases are not known here; values are worked out in `analysis`.

use super::literal::Literal;
use super::metric::Metric;
use crate::invalid::{Invalid, printable};
use crate::units::{Percent, Size, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Brackets nested more deeply than this are not read.
const DEEPEST: usize = 16;
/// A longer formula is not read.
const LONGEST: usize = 400;

/// The number of a cell, a line or a test.
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
    /// A metric of a case.
    Metric(MetricOfCase),
    /// Two formulas.
    Two(Box<Formula>, Operator, Box<Formula>),
}

/// A metric of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricOfCase {
    /// The metric.
    pub metric: Metric,
    /// The name of the case.
    pub case: String,
    /// At which of its sizes; else at its only size, or at that of the point of a line.
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
    fn from_sign(sign: &str) -> Option<Self> {
        match sign {
            "+" => Some(Operator::Add),
            "-" => Some(Operator::Subtract),
            "*" => Some(Operator::Multiply),
            "/" => Some(Operator::Divide),
            _ => None,
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

impl Formula {
    /// Its unit, or why it has none.
    pub fn unit(&self) -> Result<Unit, Invalid> {
        match self {
            Formula::Literal(literal) => Ok(literal.unit),
            Formula::Metric(of_case) => Ok(of_case.metric.unit()),
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
                        "add, subtract and divide values of the same unit, or multiply and divide a value by a number",
                    )
                })
            }
        }
    }

    /// The metrics in it, from left to right.
    pub fn metrics(&self) -> Vec<&MetricOfCase> {
        match self {
            Formula::Literal(_) => Vec::new(),
            Formula::Metric(of_case) => vec![of_case],
            Formula::Two(a, _, b) => [a.metrics(), b.metrics()].concat(),
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
    /// Its unit.
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
        Operator::from_sign(sign)
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
        Ok(Formula::Metric(MetricOfCase { metric, case, at }))
    }
}

const FORM: &str = "give a formula such as: cpu of file / cpu of message";

fn unexpected(word: &str, wanted: &str) -> Invalid {
    Invalid::new(format!("'{}' stands where {wanted} must follow", printable(word)), FORM)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Measure, Invalid> {
        text.parse()
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

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_read_survives(text in "[a-z0-9 ().+*/%-]{0,60}|.{0,60}") {
            if let Ok(measure) = parse(&text) {
                prop_assert_eq!(parse(&measure.to_string()).unwrap(), measure);
            }
        }
    }
}
