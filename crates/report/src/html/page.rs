//! The page: results and studies as one HTML file that opens by itself. It draws nothing; its script does.
//!
//! The answer stands on the page as it is (`answer`). Else what a results file says reaches it in one way: as JSON in an element that
//! no browser runs, read by the script and shown as text. The page's policy lets two scripts run, ours and the chart library, by their
//! hashes, and nothing be fetched.
//!
//! Every number carries the words that the terminal table has for it: both are made by `quantity`.

use super::answer::answer;
use super::number::Number;
use super::speed::{self, SpeedData};
use super::study::{self, StudyData};
use super::template::{STYLE, escape, filled, shell_words, tight_cell};
use crate::quantity::{percent, time};
use crate::svg::figures::line_styles;
use crate::svg::line_style::LineStyles;
use crate::text::block::{Block, Tone, size_text};
use crate::text::columns::parse_metric;
use crate::text::head::labels;
use crate::text::sheet::{Sheet, sheet};
use crate::words::clean;
use analysis::analysed::{AnalysedRecord, AnalysedResults, PERCENTILES};
use analysis::study::overlaid;
use model::Invalid;
use model::record::{Fact, Host, Outcome, Record, Results};
use model::units::Unit;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

const TEMPLATE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
/// plotly.js as base64 of its gzip; see build.rs.
const LIBRARY: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.js.gz.base64"));
const LIBRARY_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.js.sha256"));
const SCRIPT_HASH: &str = include_str!(concat!(env!("OUT_DIR"), "/page.js.sha256"));

/// The page of `all` results, made by `command`. Its charts start with the column `metric`, or with each workload's first.
pub fn html(
    all: &[AnalysedResults<'_>],
    metric: Option<&str>,
    command: &[String],
) -> Result<String, Invalid> {
    let labels = labels(all);
    let data = Data::from_results(all, metric.map(parse_metric).transpose()?, &labels);
    if let Some(metric) = &data.metric
        && !data.columns().contains(metric.as_str())
    {
        return Err(Invalid::unknown("metric of these results", metric, data.columns()));
    }
    let json = serde_json::to_string(&data).unwrap_or_default();
    Ok(filled(TEMPLATE, |name| match name {
        "policy" => policy(),
        "title" => escape(&format!("ipcmark: {}", labels.join(", "))),
        "style" => STYLE.to_owned(),
        "heading" => escape(&heading(&labels)),
        "command" => escape(&shell_words(command)),
        "answer" => answer(all, metric),
        "data" => inert(&json),
        "library" => LIBRARY.to_owned(),
        "script" => SCRIPT.to_owned(),
        _ => String::new(),
    }))
}

/// What stands above all.
fn heading(labels: &[String]) -> String {
    match labels {
        [one] => format!("What a message costs on {one}"),
        _ => format!("What a message costs: {}", labels.join(" against ")),
    }
}

/// What the page may do: run the two scripts, be styled, and hold pictures that it makes itself.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{SCRIPT_HASH}' 'sha256-{LIBRARY_HASH}'; \
         style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
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
    /// The metric that charts start with, if one was asked for.
    metric: Option<String>,
    quantiles: [f64; PERCENTILES.len()],
    /// The series: name, colour, dash, marker and its sign.
    series: Vec<(String, &'static str, &'static str, &'static str, char)>,
    /// The studies that several runs repeat, with the lines of all.
    overlays: Vec<StudyData>,
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
    speed: Option<SpeedData>,
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

impl Data {
    /// The data of `all`, which are called by their `labels`.
    fn from_results(all: &[AnalysedResults<'_>], metric: Option<String>, labels: &[String]) -> Self {
        let sheets: Vec<Sheet> = all.iter().map(sheet).collect();
        let rows = sheets.iter().flat_map(|sheet| &sheet.blocks).flat_map(|block| &block.rows);
        let names: BTreeSet<String> = rows.map(|row| row.name.clone()).collect();
        let names: Vec<String> = names.into_iter().collect();
        let styles = line_styles(all);
        let studies =
            labels.iter().zip(all).filter_map(|(label, of)| Some((label.as_str(), of.study.as_ref()?)));
        let overlays = overlaid(&studies.collect::<Vec<_>>());
        let runs = all.iter().zip(sheets).zip(labels);
        let runs = runs.map(|((results, sheet), label)| run(results, sheet, label, &names, &styles));
        let series = names.iter().map(|name| {
            let style = styles.style(name);
            (name.clone(), style.color, style.dash.name(), style.marker.name(), style.marker.sign())
        });
        Self {
            metric,
            quantiles: PERCENTILES,
            series: series.collect(),
            overlays: overlays.iter().map(|study| study::data(study, &styles)).collect(),
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

/// One run with the `names` of all series, in order, and their `styles`.
fn run(
    analysed: &AnalysedResults<'_>,
    sheet: Sheet,
    label: &str,
    names: &[String],
    styles: &LineStyles,
) -> Run {
    let results = analysed.results;
    let blocks = sheet.blocks.into_iter().map(|block| block_data(block, analysed, names));
    Run {
        label: label.to_owned(),
        notices: notices(results),
        command: shell_words(&results.header.command),
        environment: environment(&results.header.host),
        blocks: blocks.collect(),
        study: analysed.study.as_ref().map(|study| study::data(study, styles)),
        speed: speed::data(analysed, sheet.host_effects),
        title: sheet.title,
        head: sheet.head,
        notes: sheet.notes,
        missing: sheet.missing,
    }
}

fn block_data(block: Block, analysed: &AnalysedResults<'_>, names: &[String]) -> BlockData {
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
        let record = row.record.and_then(|at| analysed.records.get(at));
        RowData {
            series: names.binary_search(&row.name).unwrap_or_default(),
            cells: row.cells.into_iter().map(|cell| cell.map(|text| tight_cell(&text))).collect(),
            numbers: row.numbers.into_iter().map(|number| number.and_then(Number::from_estimate)).collect(),
            error: record.and_then(|analysed| error(analysed.record)).filter(|_| row.tone == Tone::Bad),
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

fn error(record: &Record) -> Option<String> {
    match &record.outcome {
        Outcome::Failed { error } => Some(clean(error)),
        _ => None,
    }
}

/// The percentiles of the iterations, as far as they are known.
fn curve(analysed: &AnalysedRecord<'_>) -> Vec<String> {
    analysed.percentiles_ns.iter().filter_map(|ns| time(*ns as f64)).collect()
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
            "{unsettled} of {} cases are not known to {}: they are marked !",
            cases.len(),
            header.settings.precision.words()
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
        ("a new pipe holds", text(&host.pipe_bytes, |bytes| format!("{bytes} bytes"))),
        ("control group", text(&host.control_group, named)),
        ("queueing of interfaces", text(&host.queueing, named)),
        ("security modules", same(&host.security_modules)),
        ("BPF programs", text(&host.bpf_programs, named)),
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

/// What a fact has by name, in one line.
fn named<T: ToString>(map: &BTreeMap<String, T>) -> String {
    let each = map.iter().map(|(name, value)| format!("{} {}", clean(name), clean(&value.to_string())));
    each.collect::<Vec<_>>().join(", ")
}
