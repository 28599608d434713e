//! What the tests of several forms share.

mod colors;
mod comparison;
mod computes_nothing;
mod forms;
mod hostile;
mod matrix;
mod numbers;
mod one_number;
mod pages;
mod recording;
mod speed;
mod study;
mod table;

use crate::{Drawing, Format, Style, fixture};
use analysis::analysed::AnalysedResults;
use model::Invalid;
use model::record::Results;

const PLAIN: Style = Style { width: 80, color: false, detail: true };

fn bytes(format: Format, results: &Results) -> String {
    let mut out = Vec::new();
    format.write(&AnalysedResults::from_results(results), &PLAIN, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn columns(line: &str) -> usize {
    textwrap::core::display_width(line)
}

/// The results with a study of pipes: a table, a figure and a conclusion.
fn results_with_study() -> Results {
    let pipe = |sizes| serde_json::json!({ "spec": { "name": "pipe" }, "workload": "latency", "sizes": sizes, "placements": "same-core" });
    let study = serde_json::json!({
        "title": "A study",
        "source": "of 1996",
        "cases": { "pipe": pipe([1, 4096]) },
        "table": [{ "name": "Table 1", "title": "Round trips", "columns": ["1 byte", "words"], "rows": [
            { "name": "then", "published": true, "cells": ["3us", ""] },
            { "name": "here", "cells": ["time of pipe at 1", { "missing": "no words" }] },
        ] }],
        "figure": [{ "name": "Figure 1", "title": "Round trips", "y": "a round trip", "series": [
            { "name": "pipe", "of": "time of pipe" },
            { "name": "pipe", "published": [["4K", "4us"]] },
        ] }],
        "conclusion": [{ "claim": "Large messages take longer", "tests": [
            { "name": "4K over 1", "of": "time of pipe at 4K / time of pipe at 1", "at_least": "1", "published": "1.5" },
        ] }],
    });
    let mut results = fixture::results();
    results.header.study = Some(serde_json::from_value(study).unwrap());
    results
}

/// The study of `results` in `format`.
fn study_bytes(format: Format, results: &Results) -> String {
    let mut out = Vec::new();
    format.write_study(&AnalysedResults::from_results(results), &PLAIN, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The page of `results`.
fn page(results: &Results) -> String {
    crate::html(&[AnalysedResults::from_results(results)], None, &["ipcmark".to_owned()]).unwrap()
}

/// The JSON that `page` carries.
fn island(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn table(results: &Results, style: &Style) -> String {
    crate::table(&AnalysedResults::from_results(results), style)
}

fn matrix(results: &Results, style: &Style) -> String {
    crate::matrix(&AnalysedResults::from_results(results), style)
}

fn markdown(results: &Results) -> String {
    crate::markdown(&AnalysedResults::from_results(results))
}

fn plot(results: &Results, metric: Option<&str>, style: &Style) -> Result<String, Invalid> {
    crate::plot(&AnalysedResults::from_results(results), metric, style)
}

fn drawings(results: &Results, metric: Option<&str>) -> Result<Vec<Drawing>, Invalid> {
    crate::drawings(&[AnalysedResults::from_results(results)], metric)
}
