//! One thing has one number: a case's time and percentile are the same in every form of one file, and in a comparison.

use super::{bytes, markdown, page, results_with_study, table};
use crate::{Format, Style};
use analysis::compare::{ComparisonOptions, compare};
use analysis::summary::recompute;
use model::record::{Outcome, Record, Results};
use model::summary::Summary;
use model::units::format_ns;
use model::{Placement, Size, Workload};
use serde_json::Value;

fn results() -> Results {
    let mut results = results_with_study();
    recompute(&mut results);
    results
}

/// The records of which a time is shown, each with its place and its summary.
fn shown(results: &Results) -> Vec<(usize, &Record, &Summary)> {
    let records = results.records.iter().enumerate();
    let sound = records.filter(|(_, record)| !matches!(record.outcome, Outcome::Failed { .. }));
    let shown: Vec<_> =
        sound.filter_map(|(at, record)| Some((at, record, record.summary.as_ref()?))).collect();
    assert!(shown.len() > 8, "{}", shown.len());
    shown
}

#[test]
fn files_for_programs_have_the_numbers_of_the_records() {
    let results = results();
    let json: Value = serde_json::from_str(&bytes(Format::Json, &results)).unwrap();
    let csv = bytes(Format::Csv, &results);
    let mut csv = csv::Reader::from_reader(csv.as_bytes());
    let heads = csv.headers().unwrap().clone();
    let lines: Vec<csv::StringRecord> = csv.records().map(Result::unwrap).collect();
    let cell = |line: usize, name: &str| {
        let at = heads.iter().position(|head| head == name).unwrap();
        lines[line][at].parse::<f64>().ok()
    };
    for (at, _, summary) in shown(&results) {
        let (low_ns, high_ns) = summary.iteration_ns.interval.unzip();
        let p99_ns = summary.quantiles.map(|quantiles| quantiles.p99_ns as f64);
        let of_csv = ["iteration_ns_median", "iteration_ns_low", "iteration_ns_high", "p99_ns"];
        let expected = [Some(summary.iteration_ns.median), low_ns, high_ns, p99_ns];
        assert_eq!(of_csv.map(|name| cell(at, name)), expected, "{}", results.records[at].case);
        let of_json = &json["records"][at]["summary"];
        let found = [
            &of_json["iteration_ns"]["median"],
            &of_json["iteration_ns"]["interval"][0],
            &of_json["iteration_ns"]["interval"][1],
            &of_json["quantiles"]["p99_ns"],
        ];
        assert_eq!(found.map(Value::as_f64), expected, "{}", results.records[at].case);
    }
}

#[test]
fn texts_and_the_page_have_the_times_of_the_records() {
    let results = results();
    let texts = [
        table(&results, &Style { width: 200, color: false, detail: true }),
        markdown(&results),
        page(&results),
    ];
    let timed = |record: &Record| matches!(record.case.workload, Workload::Latency | Workload::Throughput);
    for (_, record, summary) in shown(&results).into_iter().filter(|(_, record, _)| timed(record)) {
        let time = format_ns(summary.iteration_ns.median);
        for text in &texts {
            assert!(text.contains(&time), "{}: {time} is not in\n{text}", record.case);
        }
    }
}

#[test]
fn a_study_has_the_times_of_the_records() {
    let results = results();
    let json: Value = serde_json::from_str(&bytes(Format::Json, &results)).unwrap();
    let of_record = |bytes| {
        let is_meant = |record: &&Record| {
            let case = &record.case;
            case.spec.name == "pipe"
                && (case.workload, case.placement) == (Workload::Latency, Placement::SameCore)
                && case.size_bytes == Some(Size(bytes))
        };
        results.records.iter().find(is_meant).unwrap().summary.as_ref().unwrap().iteration_ns
    };
    let (one, large) = (of_record(1), of_record(4096));
    let study = &json["study"];
    let points = &study["figures"][0]["series"][0]["points"];
    let times = [&study["tables"][0]["rows"][1]["cells"][0]["value"], &points[0]["y"], &points[1]["y"]];
    for (found, known) in times.into_iter().zip([one, one, large]) {
        let (low_ns, high_ns) = known.interval.unwrap();
        let found =
            [&found["median"], &found["interval"][0], &found["interval"][1]].map(|n| n.as_f64().unwrap());
        for (found, known) in found.into_iter().zip([known.median, low_ns, high_ns]) {
            assert!((found / known - 1.0).abs() < 1e-6, "{found} {known}");
        }
    }
    let ratio = &study["conclusions"][0]["tests"][0]["numbers"][0]["median"];
    assert!((ratio.as_f64().unwrap() / (large.median / one.median) - 1.0).abs() < 1e-9, "{ratio}");
}

#[test]
fn the_columns_of_a_comparison_have_the_times_of_the_records() {
    let results = results();
    let side = std::slice::from_ref(&results);
    let comparison = compare(side, side, ComparisonOptions::default());
    for case in &comparison.cases {
        let record = results.records.iter().find(|record| record.case == case.case).unwrap();
        let time_ns = record.summary.as_ref().map(|summary| summary.iteration_ns.median);
        assert_eq!([case.a.median_ns, case.b.median_ns], [time_ns; 2], "{}", case.key);
    }
}
