//! Every form over content that nobody would want to print.

use super::{
    bytes, columns, drawings, island, markdown, matrix, page, plot, results_with_study, study_bytes, table,
};
use crate::{Format, Style, comparison, fixture, paired};
use analysis::compare;
use model::Size;
use model::estimate::Estimate;
use model::record::{Fact, Outcome, Results};
use model::warning::Warning;
use proptest::prelude::*;

/// The fixture with `text` wherever a file can put text, and `number` wherever it can put a number.
fn hostile(text: &str, number: f64, size: u64) -> Results {
    let mut results = results_with_study();
    let header = &mut results.header;
    if let Some(study) = &mut header.study {
        (study.title, study.source) = (text.to_owned(), text.to_owned());
        (study.tables[0].name, study.tables[0].columns[0]) = (text.to_owned(), text.to_owned());
        (study.figures[0].title, study.figures[0].series[0].name) = (text.to_owned(), text.to_owned());
        study.conclusions[0].claim = text.to_owned();
    }
    let known = || Fact::Known(text.to_owned());
    (header.host.name, header.host.kernel, header.host.cpu) =
        (known(), known(), Fact::Unknown(text.to_owned()));
    (header.host.virtualisation, header.tool.profile, header.run) =
        (known(), text.to_owned(), text.to_owned());
    (header.started_at, header.settings.suite) = (text.to_owned(), Some(text.to_owned()));
    (header.clock.precision_ns, header.clock.cost_ns, header.settings.precision.least.0) =
        (number, number, number);
    for dropped in &mut header.plan.dropped {
        (dropped.case, dropped.reason) = (text.to_owned(), text.to_owned());
    }
    results.notes = vec![text.to_owned()];
    let estimate = Estimate { median: number, interval: Some((number / 2.0, number)) };
    for (at, record) in results.records.iter_mut().enumerate() {
        if at % 2 == 0 {
            record.case.spec.name = text.to_owned();
            record.case.spec.params =
                serde_json::from_value(serde_json::json!({ text: text, "wait": text })).unwrap();
            record.case.size_bytes = record.case.size_bytes.map(|_| Size(size));
        }
        if let Some(summary) = &mut record.summary {
            (summary.iteration_ns, summary.client.cpu_ns, summary.client.faults) = (estimate, number, number);
            summary.client.voluntary_switches = number;
            summary.bytes_per_s = summary.bytes_per_s.map(|_| estimate);
            summary.floor_multiple = Some(estimate);
            summary.each_over_total = Some(estimate);
        }
        if let Outcome::Failed { error } = &mut record.outcome {
            *error = text.to_owned();
        }
        let (name, asked, got) = (text.to_owned(), text.to_owned(), text.to_owned());
        record.warnings.extend([
            Warning::Clamped { name, asked, got },
            Warning::TwoModes {
                fast_ns: number,
                slow_ns: number,
                fast_share: number,
                slow_speed: Some(number),
            },
            Warning::Preempted { per_iteration: number },
            Warning::InstrumentEffect { ratio: number },
            Warning::SampledCpuSplit { tick_ns: size },
        ]);
    }
    results
}

/// Whether a spreadsheet would take `field` for text or a number.
fn is_no_formula(field: &str) -> bool {
    !field.starts_with(['=', '+', '-', '@', '\t', '\r']) || field.parse::<f64>().is_ok()
}

fn text() -> impl Strategy<Value = String> {
    let awkward = "[\\x00-\\x1f\\x7f-\\x9f\\u{200b}-\\u{202e}|`*<>\"',:=\\\\漢 a-z-]{0,120}";
    let formula = "[=+@-][-=+@a-z0-9!|'\"(),;]{0,20}";
    prop_oneof![
        any::<String>(),
        formula.prop_map(|text: String| text),
        awkward.prop_map(|text: String| text),
        "[a-z]{300,500}"
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Slow: it makes every form of many files.
    #[test]
    fn no_content_breaks_a_format(text in text(), number in proptest::num::f64::ANY, size in any::<u64>(), width in 0..200usize) {
        let results = hostile(&text, number, size);
        let style = Style { width, color: false, detail: true };
        let table = table(&results, &style);
        let compare = |other| {
            let compared = compare::compare(std::slice::from_ref(&results), std::slice::from_ref(other), compare::ComparisonOptions::default());
            comparison(&compared, &style)
        };
        let compared = compare(&results) + &compare(&fixture::results());
        let quadruple = compare::QuadrupleRatio { log_ratio: number, speed: None };
        let pair = compare::PairedRatios { name: text.clone(), mechanism: text.clone(), sides: [text.clone(), text.clone()], what: text.clone(), trial_pairs: vec![vec![quadruple]; 10], ..compare::PairedRatios::default() };
        let paired = paired(&compare::compare_paired(&[pair], 1e9, compare::ComparisonOptions::default()), model::Percent(0.01), &style);
        for line in matrix(&results, &style).lines() {
            prop_assert!(columns(line) <= width.max(60), "{} columns: {line}", columns(line));
            prop_assert_eq!(line, line.trim_end());
        }
        for line in [&table, &compared, &paired].into_iter().flat_map(|text| text.lines()) {
            prop_assert!(columns(line) <= width.max(80), "{} columns: {line}", columns(line));
            prop_assert_eq!(line, line.trim_end());
        }
        let csv = bytes(Format::Csv, &results);
        prop_assert_eq!(csv.lines().count(), results.records.len() + 1);
        for record in ::csv::Reader::from_reader(csv.as_bytes()).records() {
            prop_assert!(record.unwrap().iter().all(is_no_formula), "{csv}");
        }
        let study_csv = study_bytes(Format::Csv, &results);
        let numbers = ::csv::Reader::from_reader(study_csv.as_bytes()).into_records();
        let numbers: Vec<::csv::StringRecord> = numbers.map(Result::unwrap).collect();
        prop_assert_eq!(study_csv.lines().count(), 1 + numbers.len());
        prop_assert!(numbers.iter().flatten().all(is_no_formula), "{study_csv}");
        let json = bytes(Format::Json, &results);
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(document["notes"][0].as_str(), Some(text.as_str()));
        for shown in [table, matrix(&results, &style), compared, paired, markdown(&results), csv, study_csv, json] {
            let bad = shown.chars().find(|c| c.is_control() && *c != '\n');
            prop_assert_eq!(bad, None);
        }
    }
}

proptest! {
    // A page takes a while to search through, so that a failure is not made small for long.
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_text_stays_text(text in text(), number in proptest::num::f64::ANY, size in any::<u64>(), width in 0..200usize) {
        let results = hostile(&text, number, size);
        let page = page(&results);
        prop_assert_eq!(page.matches("<script").count(), 3);
        prop_assert_eq!(page.matches("</script").count(), 3);
        prop_assert_eq!(page.matches("<!--").count(), 0);
        let data = island(&page);
        prop_assert_eq!(data["runs"][0]["missing"][0].as_str().is_some(), true);
        let cleaned = crate::words::clean(&text);
        let notices = data["runs"][0]["notices"].as_array().unwrap();
        prop_assert_eq!(notices.last().unwrap().as_str(), Some(cleaned.as_str()));

        let style = Style { width, color: false, detail: true };
        for line in plot(&results, None, &style).unwrap().lines() {
            prop_assert!(columns(line) <= width.max(80), "{} columns: {line}", columns(line));
        }
        for drawing in drawings(&results, None).unwrap_or_default() {
            let svg = crate::svg(&drawing);
            prop_assert!(!svg.contains("<script") && !svg.contains("<img"), "{}", svg);
            prop_assert!(drawing.file_name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        }
    }
}
