//! Every number of a results file at its extremes: what is refused is refused, and what is read neither overflows nor divides by zero.

use super::{bytes, drawings, matrix, page, plot, results_with_study, study_bytes, table};
use crate::{Format, Style, comparison, fixture};
use analysis::compare::{ComparisonOptions, compare};
use analysis::summary::recompute;
use model::record::Results;
use model::results::{parse, to_line};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What a number may be that nobody measured.
fn extremes() -> [Value; 10] {
    [
        json!(0),
        json!(-1),
        json!(1),
        json!(u32::MAX),
        json!(1_u64 << 60),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
    ]
}

/// The paths of the numbers in `value`, the first of those that differ in places of lists alone.
fn numbers(value: &Value, path: &str, seen: &mut BTreeSet<String>, found: &mut Vec<String>) {
    let mut visit = |value: &Value, name: &str| numbers(value, &format!("{path}/{name}"), seen, found);
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| visit(value, name)),
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(at, value)| visit(value, &at.to_string()));
        }
        Value::Number(_) => {
            let is_place = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            let parts = path.split('/').map(|part| if is_place(part) { "*" } else { part });
            if seen.insert(parts.collect::<Vec<_>>().join("/")) {
                found.push(path.to_owned());
            }
        }
        _ => {}
    }
}

/// Has all forms made of `results`.
fn show(results: &Results) {
    let style = Style { width: 80, color: false, detail: true };
    let _ = (table(results, &style), matrix(results, &style), page(results));
    let _ = (plot(results, None, &style), drawings(results, None));
    for &format in Format::ALL {
        let _ = (bytes(format, results), study_bytes(format, results));
    }
    let other = fixture::results();
    let options = ComparisonOptions::default();
    for (a, b) in [(results, &other), (&other, results), (results, results)] {
        let _ = comparison(&compare(std::slice::from_ref(a), std::slice::from_ref(b), options), &style);
    }
}

/// Slow: it makes every form of many files.
#[test]
fn no_number_of_a_file_breaks_what_is_made_of_it() {
    let lines: Vec<Value> = fixture_lines();
    let mut tried = 0;
    let mut seen = BTreeSet::new();
    for (at, line) in lines.iter().enumerate() {
        let mut found = Vec::new();
        numbers(line, "", &mut BTreeSet::new(), &mut found);
        let kind = line["type"].to_string();
        for path in found {
            if !seen.insert((kind.clone(), path.clone())) {
                continue;
            }
            for extreme in extremes() {
                let mut lines = lines.clone();
                if let Some(number) = lines[at].pointer_mut(&path) {
                    *number = extreme;
                }
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                let Ok(mut results) = parse(text.as_bytes(), "extreme") else { continue };
                tried += 1;
                recompute(&mut results);
                show(&results);
            }
        }
    }
    assert!(tried > 100, "only {tried} were read");
}

fn fixture_lines() -> Vec<Value> {
    let mut results = fixture::on_a_shared_host(1.4);
    results.header.study = results_with_study().header.study;
    // A case of each kind is enough.
    results.records.truncate(4);
    for record in &mut results.records {
        record.samples.truncate(3);
    }
    let lines = model::testing::lines(&results);
    lines.iter().map(|line| serde_json::from_str(&to_line(line)).unwrap()).collect()
}
