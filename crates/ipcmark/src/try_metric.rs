//! Numbers that a program prints: how they are named, and found in its output.

use analysis::tried::{Better, MeasureUnit, TriedMeasure};
use harness::programs::started::{ProgramRun, last_line};
use model::Invalid;
use model::invalid::printable;
use regex::{Regex, RegexBuilder};
use std::str::FromStr;
use sys::Failure;

/// A number in the output of a program.
#[derive(Debug, Clone)]
pub struct PrintedMetric {
    /// What it is called, and what is better.
    pub measure: TriedMeasure,
    place: Place,
}

/// Where it is.
#[derive(Debug, Clone)]
enum Place {
    /// What the group of this expression matches, the last time that it does.
    Group(Regex),
    /// In a JSON document (RFC 6901).
    Pointer(String),
}

/// What stands before the name of a number of which less is better.
const LESS: &str = "less:";

impl FromStr for PrintedMetric {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        /// An expression that is larger than this, compiled, is a mistake.
        const MOST_BYTES: usize = 1 << 20;
        let (better, text) = match text.strip_prefix(LESS) {
            Some(text) => (Better::Less, text),
            None => (Better::More, text),
        };
        let (name, place) = text.split_once('=').unwrap_or(("", text));
        if name.is_empty() || place.is_empty() {
            return Err(Invalid::new(
                format!("'{}' is no metric", printable(text)),
                "give it as NAME=REGEX with one group, or NAME=/json/pointer",
            ));
        }
        let place = if place.starts_with('/') {
            Place::Pointer(place.to_owned())
        } else {
            let regex = RegexBuilder::new(place).multi_line(true).size_limit(MOST_BYTES).build();
            let regex = regex.map_err(|error| {
                let last = error.to_string().lines().last().unwrap_or_default().to_owned();
                Invalid::new(
                    format!("'{}' is no regular expression: {last}", printable(place)),
                    "see https://docs.rs/regex for what can be written",
                )
            })?;
            if regex.captures_len() != 2 {
                return Err(Invalid::new(
                    format!("'{}' has not one group", printable(place)),
                    "put the number in round brackets, as 'rps=([0-9.]+) requests per second'",
                ));
            }
            Place::Group(regex)
        };
        let measure = TriedMeasure { name: name.to_owned(), unit: MeasureUnit::Printed, better };
        Ok(Self { measure, place })
    }
}

impl PrintedMetric {
    /// The number in `output`; `None` where there is none.
    pub fn find(&self, output: &str) -> Option<f64> {
        let number = match &self.place {
            Place::Group(regex) => {
                let found = regex.captures_iter(output).last()?.get(1)?;
                found.as_str().replace(',', "").parse().ok()?
            }
            Place::Pointer(pointer) => {
                let document: serde_json::Value = serde_json::from_str(output).ok()?;
                document.pointer(pointer)?.as_f64()?
            }
        };
        Some(number).filter(|number: &f64| number.is_finite() && *number > 0.0)
    }
}

/// What every run gives: the numbers that the command prints, how long it took, and what it and the servers used meanwhile.
pub fn measures(metrics: &[PrintedMetric]) -> Vec<TriedMeasure> {
    let less = |name: &str, unit| TriedMeasure { name: name.to_owned(), unit, better: Better::Less };
    let own = [
        less("time", MeasureUnit::Nanoseconds),
        less("CPU", MeasureUnit::Nanoseconds),
        less("switches", MeasureUnit::Count),
        less("memory", MeasureUnit::Bytes),
    ];
    metrics.iter().map(|metric| metric.measure.clone()).chain(own).collect()
}

/// The values of all [`measures`] in a run; an error if the first is missing, which decides.
pub fn values(metrics: &[PrintedMetric], run: &ProgramRun) -> Result<Vec<Option<f64>>, Failure> {
    let printed = metrics.iter().map(|metric| metric.find(&run.output));
    let own = [run.wall_ns, run.usage.cpu_ns, run.usage.switches, run.usage.peak_bytes];
    let values: Vec<Option<f64>> = printed.chain(own.map(|value| Some(value as f64))).collect();
    if values[0].is_some() {
        return Ok(values);
    }
    let metric = &metrics[0].measure.name;
    let answer = format!("its output has no {metric}: {}", last_line(&run.output));
    Err(Failure::new("find", metric, answer, "see what the command prints, and mend --metric"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(metric: &str, output: &str) -> Option<f64> {
        metric.parse::<PrintedMetric>().unwrap().find(output)
    }

    #[test]
    fn numbers_are_found_by_expression_and_in_json() {
        let output = "warm-up: 5 requests per second\nGET: 61,224.5 requests per second, p50=0.023\n";
        assert_eq!(found("rps=([0-9.,]+) requests per second", output), Some(61_224.5));
        assert_eq!(found("rps=^POST: ([0-9.]+)", output), None);
        assert_eq!(found("rps=/a/0/rate", r#"{"a":[{"rate":7.5}]}"#), Some(7.5));
        assert_eq!(found("rps=/a/1/rate", r#"{"a":[{"rate":7.5}]}"#), None);
        assert_eq!(found("x=(-?[0-9]+)", "-5"), None, "there is no logarithm of it");
        assert_eq!("less:p99=([0-9]+)".parse::<PrintedMetric>().unwrap().measure.better, Better::Less);
    }

    #[test]
    fn what_is_no_metric_is_refused() {
        for (text, part) in [
            ("rps", "no metric"),
            ("=([0-9])", "no metric"),
            ("rps=[0-9]+", "round brackets"),
            ("rps=([0-9]+) ([0-9]+)", "round brackets"),
            ("rps=([0-9]+", "no regular expression"),
            ("rps=(\\w{5000}{5000})", "no regular expression"),
        ] {
            let words = text.parse::<PrintedMetric>().unwrap_err().to_string();
            assert!(words.contains(part), "{words}");
        }
    }
}
