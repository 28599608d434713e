//! Results as a sheet: blocks of rows of cells, with what must be said about them.
//!
//! The terminal table, the Markdown document and the page print the same sheet. A sheet is words; how they are laid out is
//! not decided here.

use super::block::{Block, Common, Row, Tone, comparable, floor_order, grouped, meanings, name};
use super::columns::{self, Column};
use super::study::{self, PUBLISHED, StudyWords};
use super::{head, host_effects, marks};
use crate::quantity::time;
use crate::words::clean;
use analysis::analysed::{AnalysedRecord, AnalysedResults};
use model::estimate::Estimate;
use model::network::{NetworkReadings, NetworkSample};
use model::record::{Outcome, Results};
use model::summary::StepTime;
use model::{Case, Peers, Placement};
use std::cmp::Ordering;
use std::collections::HashSet;

/// Everything that a report says, in words.
pub(crate) struct Sheet {
    /// The tool and the run.
    pub(crate) title: String,
    /// What was measured on, by what and how long, each with a label.
    pub(crate) head: Vec<(&'static str, String)>,
    /// The study that the run repeats; only of [`sheet_with_study`].
    pub(crate) study: Option<StudyWords>,
    /// The results.
    pub(crate) blocks: Vec<Block>,
    /// What the host did to what can be compared, block by block; none where no speed readings were taken.
    pub(crate) host_effects: Vec<Block>,
    /// What the signs and the columns mean, each with the sign or the column.
    pub(crate) notes: Vec<(String, String)>,
    /// What was asked for and is not in the results, with the reason.
    pub(crate) missing: Vec<String>,
}

/// An analysed record and its place among the records.
type Numbered<'a> = (usize, &'a AnalysedRecord<'a>);

/// The sheet of `results` with the study that they repeat, if any, in words.
pub(crate) fn sheet_with_study(results: &AnalysedResults<'_>) -> Sheet {
    let mut sheet = sheet(results);
    sheet.study = results.study.as_ref().map(study::study);
    if sheet.study.as_ref().is_some_and(StudyWords::has_published) {
        sheet.notes.push((PUBLISHED.to_owned(), "published by the study, not measured here".to_owned()));
    }
    sheet
}

/// The sheet of `analysed` without the study.
pub(crate) fn sheet(analysed: &AnalysedResults<'_>) -> Sheet {
    let (floors, cases): (Vec<_>, Vec<_>) =
        analysed.records.iter().enumerate().partition(|(_, analysed)| analysed.record.floor);
    let groups = comparable(&cases, |(_, analysed)| &analysed.record.case);
    let (mut blocks, host_effects): (Vec<Block>, Vec<Option<Block>>) =
        groups.into_iter().map(|(common, rows)| block(common, rows)).unzip();
    let host_effects: Vec<Block> = host_effects.into_iter().flatten().collect();
    blocks.extend(floors_block(&floors));
    Sheet {
        title: head::title(&analysed.results.header),
        head: head::lines(analysed),
        study: None,
        notes: notes(analysed.results, &blocks, &host_effects),
        blocks,
        host_effects,
        missing: missing(analysed.results),
    }
}

/// The block of `rows`, and that of what the host did to them.
fn block(common: Common, mut rows: Vec<&Numbered<'_>>) -> (Block, Option<Block>) {
    rows.sort_by(|(_, a), (_, b)| fastest_first(a, b));
    let floor = floor_line(common, &rows);
    let below = floor.into_iter().chain(remarks(&rows)).collect();
    let block =
        of_rows(common.heading(), common.rows_are(), columns::shown_of(common.workload), &rows, below);
    (Block { common: Some(common), ..block }, host_effects::block(common, &rows))
}

fn floors_block(floors: &[Numbered<'_>]) -> Option<Block> {
    let mut rows: Vec<&Numbered<'_>> = floors.iter().collect();
    rows.sort_by_key(|(_, floor)| floor_order(&floor.record.case));
    let heading = "floors: the least that this machine takes".to_owned();
    let below = remarks(&rows);
    (!rows.is_empty()).then(|| of_rows(heading, "floor", columns::FLOORS, &rows, below))
}

/// A block of `rows`. A column in which no row has a value is left out, but for the first.
fn of_rows(
    heading: String,
    rows_are: &'static str,
    columns: &[Column],
    rows: &[&Numbered<'_>],
    below: Vec<String>,
) -> Block {
    let has_value = |column: &Column| rows.iter().any(|(_, row)| cell(row, column).is_some());
    let kept = columns.iter().enumerate().filter(|(at, column)| *at == 0 || has_value(column));
    let columns: Vec<&Column> = kept.map(|(_, column)| column).collect();
    Block {
        heading,
        rows_are,
        columns: columns.iter().map(|c| c.heading).collect(),
        rows: rows.iter().map(|row| table_row(row, &columns)).collect(),
        below,
        common: None,
    }
}

fn table_row((at, analysed): &Numbered<'_>, columns: &[&Column]) -> Row {
    let shown = columns.iter().map(|column| cell(analysed, column).unzip());
    let (mut cells, numbers): (Vec<Option<String>>, Vec<Option<Option<Estimate>>>) = shown.unzip();
    if analysed.trusted().is_none() {
        cells[0] = Some(analysed.outcome_name().to_owned());
    }
    let tail = marks::signs(analysed.record);
    let tone = match analysed.record.outcome {
        Outcome::Failed { .. } | Outcome::Missed { .. } => Tone::Bad,
        _ if tail.is_empty() => Tone::Plain,
        _ => Tone::Doubtful,
    };
    let numbers = numbers.into_iter().map(Option::flatten).collect();
    Row { name: name(&analysed.record.case), cells, numbers, record: Some(*at), tail, tone }
}

fn cell(analysed: &AnalysedRecord<'_>, column: &Column) -> Option<(String, Option<Estimate>)> {
    analysed.trusted().and_then(|summary| column.cell(&analysed.record.case, summary))
}

/// Rows without a time come last.
pub(crate) fn fastest_first(a: &AnalysedRecord<'_>, b: &AnalysedRecord<'_>) -> Ordering {
    let key = |row: &AnalysedRecord<'_>| row.trusted().map_or(f64::INFINITY, |s| s.iteration_ns.median);
    key(a).total_cmp(&key(b)).then_with(|| a.record.case.cmp(&b.record.case))
}

/// What the floor of a block is and how long it takes, or why there is none.
fn floor_line(common: Common, rows: &[&Numbered<'_>]) -> Option<String> {
    let Some(floor) = rows.iter().find_map(|(_, row)| row.floor.as_ref()) else {
        return match common {
            Common { workload, .. } if workload.is_alone() => None,
            Common { peers, .. } if peers != Peers::Pair => Some("floor: none for several peers".to_owned()),
            Common { cpus: None, .. } => Some("floor: none for endpoints that are not pinned".to_owned()),
            Common { placement: Placement::Remote, .. } => Some("floor: none between hosts".to_owned()),
            _ => Some("floor: none, for these are floors".to_owned()),
        };
    };
    let is = |ns: Option<f64>| ns.and_then(time).map(|time| format!(" = {time}")).unwrap_or_default();
    let sleeping = rows.iter().find_map(|(_, row)| {
        let floor = row.floor.as_ref()?;
        Some(format!("; of those that sleep: {}{}", floor.floor.wake_text()?, is(floor.wake_iteration_ns)))
    });
    Some(format!("floor: {}{}{}", floor.floor, is(floor.iteration_ns), sleeping.unwrap_or_default()))
}

/// What the signs of `rows` stand for here, and why the failed ones failed.
fn remarks(rows: &[&Numbered<'_>]) -> Vec<String> {
    let warnings = rows.iter().flat_map(|(_, row)| {
        row.record
            .warnings
            .iter()
            .filter_map(|w| Some((marks::mark(w), (marks::numbers(w)?, name(&row.record.case)))))
    });
    let warnings = grouped(warnings).into_iter().map(|(mark, numbers)| {
        let each = grouped(numbers);
        let each: Vec<String> =
            each.into_iter().map(|(numbers, names)| format!("{} {numbers}", names.join(", "))).collect();
        format!("{}{}: {}", mark.prefix(), mark.title, each.join("; "))
    });
    let failures = rows.iter().filter_map(|(_, row)| match &row.record.outcome {
        Outcome::Failed { error } => Some((clean(error), name(&row.record.case))),
        _ => None,
    });
    let failures =
        grouped(failures).into_iter().map(|(error, names)| format!("{} failed: {error}", names.join(", ")));
    let missed = rows.iter().filter_map(|(_, row)| match &row.record.outcome {
        Outcome::Missed { achieved } => Some(format!(
            "{} missed its rate: it achieved {:.0}% of it, so that the times include a queue that grows",
            name(&row.record.case),
            100.0 * achieved
        )),
        _ => None,
    });
    warnings.chain(failures).chain(missed).chain(steps(rows)).chain(networks(rows)).collect()
}

/// How the endpoints of each row reached each other, and what the kernels of both counted.
fn networks(rows: &[&Numbered<'_>]) -> Vec<String> {
    let line = |(_, row): &&Numbered<'_>| {
        let NetworkSample { client, server } = row.trusted()?.network.as_ref()?;
        Some((format!("client {}; server {}", network(client), network(server)), name(&row.record.case)))
    };
    let lines = grouped(rows.iter().filter_map(line));
    lines.into_iter().map(|(network, names)| format!("network of {}: {network}", names.join(", "))).collect()
}

/// The readings of one side, those that there are.
fn network(readings: &NetworkReadings) -> String {
    let count = |of: Option<u64>, what: &str| of.map(|count| format!("{count} {what}"));
    let link = readings.link.as_deref().map(|link| match readings.link_mbit_per_s {
        Some(speed) => format!("{} ({speed} Mbit/s)", clean(link)),
        None => clean(link),
    });
    let parts = [
        link,
        readings.mtu_bytes.map(|bytes| format!("MTU {bytes}")),
        count(readings.retransmitted, "segments sent again"),
        count(readings.dropped, "dropped by the socket"),
        count(readings.host_retransmitted, "segments sent again by the host"),
        count(readings.host_udp_errors, "UDP errors of the host"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The steps of the messages of each row, medians with means in brackets.
fn steps(rows: &[&Numbered<'_>]) -> Vec<String> {
    let line = |(_, row): &&Numbered<'_>| {
        let steps = row.trusted()?.steps.as_ref()?;
        let side = |steps: &[StepTime]| {
            let each = steps.iter().map(|step| {
                let [median, mean] =
                    [step.median_ns as f64, step.mean_ns].map(|ns| time(ns).unwrap_or_default());
                format!("{} {median} ({mean})", clean(&step.name))
            });
            each.collect::<Vec<_>>().join(", ")
        };
        Some(format!(
            "{}: client {}; server {}",
            name(&row.record.case),
            side(&steps.client),
            side(&steps.server)
        ))
    };
    let lines: Vec<String> = rows.iter().filter_map(line).collect();
    let heading = (!lines.is_empty()).then(|| "steps of a message, median (mean):".to_owned());
    heading.into_iter().chain(lines).collect()
}

/// What the columns and the signs mean, for those that occur.
fn notes(results: &Results, blocks: &[Block], host_effects: &[Block]) -> Vec<(String, String)> {
    let spread = ("±".to_owned(), "half the 95% interval of the median".to_owned());
    let times = host_effects::state(results).map(|state| ("times".to_owned(), state.to_owned()));
    let warnings = results.records.iter().flat_map(|record| &record.warnings);
    let kinds = grouped(warnings.map(|warning| (marks::mark(warning), warning.advice())));
    let signs = kinds.into_iter().map(|(mark, advice)| {
        let sign = mark.sign.map(String::from).unwrap_or_default();
        (sign, format!("{}: {}; {}", mark.title, mark.meaning, advice[0]))
    });
    let meanings = meanings(blocks).into_iter().chain(meanings(host_effects));
    [spread].into_iter().chain(meanings).chain(times).chain(signs).collect()
}

/// The cases that were planned and have no record, by reason.
fn missing(results: &Results) -> Vec<String> {
    /// More cases than this with one reason are counted, not named.
    const NAMED: usize = 3;

    let line = |(reason, cases): (String, Vec<String>)| {
        let named: Vec<String> = cases.iter().take(NAMED).cloned().collect();
        let more = match cases.len().saturating_sub(NAMED) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        format!("{}{more}: {reason}", named.join(", "))
    };
    not_measured(results).into_iter().map(line).collect()
}

/// Why cases that the plan kept have no record.
pub(crate) const UNFINISHED: &str = "not finished when the run ended";

/// The keys of the cases that the plan dropped and of those that it kept and that have no record, by reason.
pub(crate) fn not_measured(results: &Results) -> Vec<(String, Vec<String>)> {
    let recorded: HashSet<&Case> = results.records.iter().map(|record| &record.case).collect();
    let plan = &results.header.plan;
    let dropped = plan.dropped.iter().map(|dropped| (clean(&dropped.reason), clean(&dropped.case)));
    let unfinished = plan.cases.iter().filter(|case| !recorded.contains(case));
    let unfinished = unfinished.map(|case| (UNFINISHED.to_owned(), clean(&case.key())));
    grouped(dropped.chain(unfinished))
}
