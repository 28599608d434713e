//! The page: results and studies as one HTML file that opens by itself. It draws nothing; its script does.
//!
//! What a results file says reaches the page in one way only: as JSON in an element that no browser runs, read by
//! the script and shown as text. The page's policy lets two scripts run, ours and the chart library, by their
//! hashes, and nothing be fetched.
//!
//! Every number carries the words that the terminal table has for it: both are made by `quantity`.

use crate::block::{Block, Tone, size_text};
use crate::figure::parse_metric;
use crate::line_style::LineStyles;
use crate::quantity::{percent, time};
use crate::sheet::{Sheet, sheet};
use crate::study::{self, StudyData};
use crate::text::clean;
use analysis::study::evaluated::EvaluatedStudy;
use model::Invalid;
use model::estimate::Estimate;
use model::histogram::quantiles_ns;
use model::record::{Fact, Host, Outcome, Record, Results};
use model::units::Unit;
use serde::Serialize;
use std::collections::BTreeSet;

/// What a page is made of.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The results of one run.
    pub results: &'a Results,
    /// The study that the run repeats, with this run's numbers in it.
    pub study: Option<&'a EvaluatedStudy>,
}

/// The quantiles of a curve; each is shown where at least [`LEAST_BEYOND`] iterations lie beyond it.
const QUANTILES: [f64; 12] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999];
/// With fewer iterations beyond it, a quantile is a matter of chance.
const LEAST_BEYOND: f64 = 10.0;

const TEMPLATE: &str = include_str!("page/page.html");
pub(crate) const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
/// plotly.js as base64 of its gzip; see build.rs.
const LIBRARY: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.js.gz.base64"));
const LIBRARY_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.js.sha256"));
const SCRIPT_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/page.js.sha256"));

/// The page of `inputs`, made by `command`. Its charts start with the column `metric`, or with each workload's first.
pub fn html(inputs: &[Input<'_>], metric: Option<&str>, command: &[String]) -> Result<String, Invalid> {
    let data = Data::of(inputs, metric.map(parse_metric).transpose()?, command);
    if let Some(metric) = &data.metric
        && !data.columns().contains(metric.as_str())
    {
        return Err(Invalid::unknown("metric of these results", metric, data.columns()));
    }
    let json = serde_json::to_string(&data).unwrap_or_default();
    Ok(filled(TEMPLATE, |name| match name {
        "policy" => policy(),
        "title" => escape(&data.title),
        "style" => STYLE.to_owned(),
        "data" => inert(&json),
        "library" => LIBRARY.to_owned(),
        "script" => SCRIPT.to_owned(),
        _ => String::new(),
    }))
}

/// What the page may do: run the two scripts, be styled, and hold pictures that it makes itself.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{SCRIPT_HASH}' 'sha256-{LIBRARY_HASH}'; \
         style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
}

/// `template` with each `{{name}}` replaced. What is put in is not looked at again.
pub(crate) fn filled(template: &str, value: impl Fn(&str) -> String) -> String {
    let mut parts = template.split("{{");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |page, part| {
        let (name, rest) = part.split_once("}}").unwrap_or((part, ""));
        page + &value(name) + rest
    })
}

/// `text` as the content of an element.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// `json` as the same JSON without what HTML could take for its own or a script for the end of a line.
fn inert(json: &str) -> String {
    let mut inert = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => inert += &format!("\\u{:04x}", u32::from(character)),
            other => inert.push(other),
        }
    }
    inert
}

/// All that the script needs.
#[derive(Serialize)]
struct Data {
    title: String,
    command: String,
    /// The metric that charts start with, if one was asked for.
    metric: Option<String>,
    quantiles: [f64; QUANTILES.len()],
    /// The series: name, colour, dash, marker and its sign.
    series: Vec<(String, &'static str, &'static str, &'static str, char)>,
    runs: Vec<Run>,
}

/// One results file.
#[derive(Serialize)]
struct Run {
    /// How charts call it: its host's name, if no other run has that.
    label: String,
    title: String,
    head: Vec<(&'static str, String)>,
    /// What a reader must know before anything else.
    notices: Vec<String>,
    command: String,
    environment: Vec<(String, String)>,
    notes: Vec<(String, String)>,
    missing: Vec<String>,
    blocks: Vec<BlockData>,
    study: Option<StudyData>,
}

#[derive(Serialize)]
struct BlockData {
    heading: String,
    rows_are: &'static str,
    /// Where charts place it: workload, placement, size, how that is written in a heading of a column and in a
    /// sentence. Floors have none.
    chart: Option<(String, String, Option<u64>, String, String)>,
    columns: Vec<ColumnData>,
    rows: Vec<RowData>,
    below: Vec<String>,
}

#[derive(Serialize)]
struct ColumnData {
    title: &'static str,
    meaning: Option<&'static str>,
    unit: Option<&'static str>,
}

/// A row, as short as it can be: there may be ten thousand.
#[derive(Serialize)]
struct RowData {
    /// Its place among the series.
    #[serde(rename = "s")]
    series: usize,
    /// What the cells say.
    #[serde(rename = "c")]
    cells: Vec<Option<String>>,
    /// What they say as numbers: a number, or with its interval as three.
    #[serde(rename = "n")]
    numbers: Vec<Option<Number>>,
    /// The signs of its warnings.
    #[serde(rename = "t", skip_serializing_if = "String::is_empty")]
    tail: String,
    /// Why it failed.
    #[serde(rename = "e", skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The percentiles of its iterations in words, in the order of `quantiles`, as far as they are known. The script
    /// takes the numbers from the words, which have more digits than a chart can show.
    #[serde(rename = "q", skip_serializing_if = "Vec::is_empty")]
    curve: Vec<String>,
}

/// A number for a chart.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Number {
    Alone(f64),
    Between([f64; 3]),
}

impl Number {
    /// To five digits: more cannot be seen, and would be most of the page.
    pub(crate) fn of(estimate: Estimate) -> Option<Self> {
        let short = |value: f64| format!("{value:.4e}").parse().unwrap_or(value);
        match estimate.interval {
            _ if !estimate.median.is_finite() => None,
            Some((low, high)) if low.is_finite() && high.is_finite() => {
                Some(Number::Between([estimate.median, low, high].map(short)))
            }
            _ => Some(Number::Alone(short(estimate.median))),
        }
    }
}

impl Data {
    fn of(inputs: &[Input<'_>], metric: Option<String>, command: &[String]) -> Self {
        let sheets: Vec<Sheet> = inputs.iter().map(|input| sheet(input.results)).collect();
        let rows = sheets.iter().flat_map(|sheet| &sheet.blocks).flat_map(|block| &block.rows);
        let styles = LineStyles::of(rows.map(|row| row.name.as_str()));
        let labels = labels(inputs);
        let runs = inputs
            .iter()
            .zip(sheets)
            .zip(&labels)
            .map(|((input, sheet), label)| run(input, sheet, label, &styles));
        let series = styles.names().iter().map(|name| {
            let style = styles.style(name);
            (name.clone(), style.color, style.dash.name(), style.marker.name(), style.marker.sign())
        });
        Self {
            title: format!("ipcmark: {}", labels.join(", ")),
            command: shell_words(command),
            metric,
            quantiles: QUANTILES,
            series: series.collect(),
            runs: runs.collect(),
        }
    }

    /// The titles of the columns of numbers that charts can show.
    fn columns(&self) -> BTreeSet<&'static str> {
        let blocks = self.runs.iter().flat_map(|run| &run.blocks).filter(|block| block.chart.is_some());
        let columns = blocks.flat_map(|block| &block.columns).filter(|column| column.unit.is_some());
        columns.map(|column| column.title).collect()
    }
}

/// What the runs are called: the host, with the run's id where two are of one host.
fn labels(inputs: &[Input<'_>]) -> Vec<String> {
    let host = |input: &Input<'_>| match &input.results.header.host.name {
        Fact::Known(name) => clean(name),
        Fact::Unknown(_) => "unknown host".to_owned(),
    };
    let hosts: Vec<String> = inputs.iter().map(host).collect();
    let alone = |host: &String| hosts.iter().filter(|other| *other == host).count() == 1;
    let labels = inputs.iter().zip(&hosts).map(|(input, host)| {
        if alone(host) { host.clone() } else { format!("{host} ({})", clean(&input.results.header.run)) }
    });
    labels.collect()
}

fn run(input: &Input<'_>, sheet: Sheet, label: &str, styles: &LineStyles) -> Run {
    let results = input.results;
    let blocks = sheet.blocks.into_iter().map(|block| block_data(block, results, styles));
    Run {
        label: label.to_owned(),
        notices: notices(results),
        command: shell_words(&results.header.command),
        environment: environment(&results.header.host),
        blocks: blocks.collect(),
        study: input.study.map(study::data),
        title: sheet.title,
        head: sheet.head,
        notes: sheet.notes,
        missing: sheet.missing,
    }
}

fn block_data(block: Block, results: &Results, styles: &LineStyles) -> BlockData {
    let chart = block.common.map(|common| {
        let (bytes, text, words) = match common.size_bytes {
            Some(size) => (Some(size.0), size.to_string(), size_text(size)),
            None => (None, String::new(), String::new()),
        };
        (common.workload.to_string(), common.place(), bytes, text, words)
    });
    let columns = block.columns.iter().map(|heading| ColumnData {
        title: heading.title,
        meaning: heading.meaning,
        unit: heading.unit.map(Unit::name),
    });
    let columns = columns.collect();
    let rows = block.rows.into_iter().map(|row| {
        let record = row.record.and_then(|at| results.records.get(at));
        RowData {
            series: styles.at(&row.name),
            cells: row.cells.into_iter().map(|cell| cell.map(|text| tight(&text))).collect(),
            numbers: row.numbers.into_iter().map(|number| number.and_then(Number::of)).collect(),
            error: record.and_then(error).filter(|_| row.tone == Tone::Bad),
            curve: record.filter(|_| row.tone != Tone::Bad).map(curve).unwrap_or_default(),
            tail: row.tail,
        }
    });
    BlockData {
        heading: block.heading,
        rows_are: block.rows_are,
        chart,
        columns,
        rows: rows.collect(),
        below: block.below,
    }
}

/// A cell without the blanks that put it under others, and without the dash for an interval that it has not.
pub(crate) fn tight(cell: &str) -> String {
    let words = cell.split_whitespace().collect::<Vec<_>>().join(" ");
    words.strip_suffix(" -").map(str::to_owned).unwrap_or(words)
}

fn error(record: &Record) -> Option<String> {
    match &record.outcome {
        Outcome::Failed { error } => Some(clean(error)),
        _ => None,
    }
}

/// The percentiles of all iterations of `record`, from the least on, as far as there are iterations beyond them.
fn curve(record: &Record) -> Vec<String> {
    let histograms =
        record.samples.iter().filter_map(|sample| sample.each.as_ref()).map(|each| &each.iterations);
    let Some((iterations, mut curve)) = quantiles_ns(histograms, &QUANTILES) else { return Vec::new() };
    curve.truncate(QUANTILES.iter().filter(|at| iterations as f64 * (1.0 - **at) >= LEAST_BEYOND).count());
    curve.into_iter().filter_map(|ns| time(ns as f64)).collect()
}

/// What must be known before any number is read.
fn notices(results: &Results) -> Vec<String> {
    let mut notices = Vec::new();
    let header = &results.header;
    if header.tool.profile != "release" {
        notices.push(format!(
            "measured with a {} build, which is slower than a release build",
            clean(&header.tool.profile)
        ));
    }
    match &results.end {
        None => notices.push("the run was cut off: what follows is what it had finished".to_owned()),
        Some(end) if end.interrupted => notices.push("the run was interrupted".to_owned()),
        Some(_) => {}
    }
    let stolen = results.end.as_ref().and_then(|end| end.stolen.known()).filter(|share| **share > 0.01);
    notices.extend(stolen.map(|share| format!("the hypervisor took {} of the CPU time", percent(*share))));
    let cases: Vec<&Record> = results.records.iter().filter(|record| !record.floor).collect();
    let count = |wanted: fn(&Outcome) -> bool| cases.iter().filter(|record| wanted(&record.outcome)).count();
    match count(|outcome| matches!(outcome, Outcome::Failed { .. })) {
        0 => {}
        failed => notices.push(format!("{failed} of {} cases failed", cases.len())),
    }
    match count(|outcome| *outcome == Outcome::Unsettled) {
        0 => {}
        unsettled => notices.push(format!(
            "{unsettled} of {} cases are not known to ±{}: they are marked !",
            cases.len(),
            header.settings.precision
        )),
    }
    notices.extend(results.notes.iter().map(|note| clean(note)));
    notices
}

/// The host, fact by fact.
fn environment(host: &Host) -> Vec<(String, String)> {
    fn text<T>(fact: &Fact<T>, show: impl Fn(&T) -> String) -> String {
        match fact {
            Fact::Known(value) => clean(&show(value)),
            Fact::Unknown(reason) => format!("unknown: {}", clean(reason)),
        }
    }
    let same = |fact: &Fact<String>| text(fact, Clone::clone);
    let facts = [
        ("host", same(&host.name)),
        ("kernel", same(&host.kernel)),
        ("architecture", clean(&host.arch)),
        ("processor", same(&host.cpu)),
        ("CPUs", host.topology.cpus.len().to_string()),
        (
            "caches",
            text(&host.caches_bytes, |caches| {
                let each = caches.iter().map(|(level, bytes)| format!("{level} {}", model::Size(*bytes)));
                each.collect::<Vec<_>>().join(", ")
            }),
        ),
        ("hardware threads share cores", text(&host.smt, |smt| if *smt { "yes" } else { "no" }.to_owned())),
        ("frequency governor", same(&host.governor)),
        ("virtualisation", same(&host.virtualisation)),
        ("clock source", same(&host.clocksource)),
        ("transparent huge pages", same(&host.transparent_huge_pages)),
        ("scheduler's tick", text(&host.tick_ns, |tick| time(*tick as f64).unwrap_or_default())),
        ("load at start", text(&host.load, ToString::to_string)),
        ("memory", text(&host.memory_bytes, |bytes| format!("{bytes} bytes"))),
    ];
    let facts = facts.into_iter().map(|(label, value)| (label.to_owned(), value));
    let mitigations = match &host.mitigations {
        Fact::Known(each) => {
            each.iter().map(|(name, what)| (format!("mitigation: {}", clean(name)), clean(what))).collect()
        }
        Fact::Unknown(reason) => vec![("mitigations".to_owned(), format!("unknown: {}", clean(reason)))],
    };
    let limits = host.limits.iter().map(|(name, value)| (format!("limit: {}", clean(name)), same(value)));
    facts.chain(mitigations).chain(limits).collect()
}

/// `words` as a shell would take them.
pub(crate) fn shell_words(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    let word = |word: &String| match clean(word) {
        word if !word.is_empty() && word.chars().all(plain) => word,
        word => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}
