//! Results as a sheet: blocks of rows of cells, with what must be said about them.
//!
//! The terminal table and the Markdown document print the same sheet. A sheet is words; how they are
//! laid out is not decided here.

use crate::block::{Block, Common, Row, Tone, comparable, floor_order, grouped, meanings, name};
use crate::columns::{self, Column};
use crate::quantity::time;
use crate::study_words::{self, PUBLISHED, Study};
use crate::text::clean;
use crate::{head, marks, outcome_name, summary_of};
use model::estimate::Estimate;
use model::floor::floor_of;
use model::record::{Outcome, Results};
use model::summary::{StepTime, Summary};
use model::{Case, Peers, Record};
use std::cmp::Ordering;
use std::collections::HashSet;

/// Everything that a report says, in words.
pub(crate) struct Sheet {
    /// The tool and the run.
    pub(crate) title: String,
    /// What was measured on, by what and how long, each with a label.
    pub(crate) head: Vec<(&'static str, String)>,
    /// What the suite wanted drawn of the results; only of [`sheet_with_study`].
    pub(crate) study: Option<Study>,
    /// The results.
    pub(crate) blocks: Vec<Block>,
    /// What the signs and the columns mean, each with the sign or the column.
    pub(crate) notes: Vec<(String, String)>,
    /// What was asked for and is not in the results, with the reason.
    pub(crate) missing: Vec<String>,
}

/// A record with its summary, which is worked out once.
pub(crate) struct Measured<'a> {
    /// The record.
    pub(crate) record: &'a Record,
    /// Its place among the records.
    pub(crate) at: usize,
    /// What its samples say.
    pub(crate) summary: Option<Summary>,
}

/// The sheet of `results` with the study that they repeat, if any, in words.
pub(crate) fn sheet_with_study(results: &Results) -> Sheet {
    let mut sheet = sheet(results);
    sheet.study = analysis::study::evaluate_results(results).as_ref().map(study_words::study);
    if sheet.study.as_ref().is_some_and(Study::has_published) {
        sheet.notes.push((PUBLISHED.to_owned(), "published by the study, not measured here".to_owned()));
    }
    sheet
}

/// The sheet of `results`.
pub(crate) fn sheet(results: &Results) -> Sheet {
    let measured = results.records.iter().enumerate();
    let measured = measured.map(|(at, record)| Measured { record, at, summary: summary_of(record) });
    let (floors, cases): (Vec<_>, Vec<_>) = measured.partition(|measured| measured.record.floor);
    let groups = comparable(&cases, |measured| &measured.record.case);
    let mut blocks: Vec<Block> =
        groups.into_iter().map(|(common, rows)| block(common, rows, &floors)).collect();
    blocks.extend(floors_block(&floors));
    Sheet {
        title: head::title(&results.header),
        head: head::lines(results, &cases, &floors),
        study: None,
        notes: notes(results, &blocks),
        blocks,
        missing: missing(results),
    }
}

fn block(common: Common, mut rows: Vec<&Measured<'_>>, floors: &[Measured<'_>]) -> Block {
    rows.sort_by(|a, b| fastest_first(a, b));
    let floor = floor_line(common, &rows, floors);
    let below = floor.into_iter().chain(remarks(&rows)).collect();
    let block = of_rows(common.heading(), common.rows_are(), columns::of(common.workload), &rows, below);
    Block { common: Some(common), ..block }
}

fn floors_block(floors: &[Measured<'_>]) -> Option<Block> {
    let mut rows: Vec<&Measured<'_>> = floors.iter().collect();
    rows.sort_by_key(|row| floor_order(&row.record.case));
    let heading = "floors: the least that this machine takes".to_owned();
    let below = remarks(&rows);
    (!rows.is_empty()).then(|| of_rows(heading, "floor", columns::FLOORS, &rows, below))
}

/// A block of `rows`. A column in which no row has a value is left out, but for the first.
fn of_rows(
    heading: String,
    rows_are: &'static str,
    columns: &[Column],
    rows: &[&Measured<'_>],
    below: Vec<String>,
) -> Block {
    let has_value = |column: &Column| rows.iter().any(|row| row.cell(column).is_some());
    let kept = columns.iter().enumerate().filter(|(at, column)| *at == 0 || has_value(column));
    let columns: Vec<&Column> = kept.map(|(_, column)| column).collect();
    Block {
        heading,
        rows_are,
        columns: columns.iter().map(|c| c.heading).collect(),
        rows: rows.iter().map(|row| row.row(&columns)).collect(),
        below,
        common: None,
    }
}

impl Measured<'_> {
    fn row(&self, columns: &[&Column]) -> Row {
        let shown = columns.iter().map(|column| self.cell(column).unzip());
        let (mut cells, numbers): (Vec<Option<String>>, Vec<Option<Option<Estimate>>>) = shown.unzip();
        if self.values().is_none() {
            cells[0] = Some(outcome_name(&self.record.outcome).to_owned());
        }
        let tail = marks::signs(self.record);
        let tone = match self.record.outcome {
            Outcome::Failed { .. } | Outcome::Missed { .. } => Tone::Bad,
            _ if tail.is_empty() => Tone::Plain,
            _ => Tone::Doubtful,
        };
        let numbers = numbers.into_iter().map(Option::flatten).collect();
        Row { name: name(&self.record.case), cells, numbers, record: Some(self.at), tail, tone }
    }

    fn cell(&self, column: &Column) -> Option<(String, Option<Estimate>)> {
        self.values().and_then(|summary| column.cell(&self.record.case, summary))
    }

    /// A failed case has no values: what was measured before it failed is not to be trusted.
    fn values(&self) -> Option<&Summary> {
        match self.record.outcome {
            Outcome::Failed { .. } => None,
            _ => self.summary.as_ref(),
        }
    }

    fn iteration_ns(&self) -> Option<f64> {
        self.values().map(|summary| summary.iteration_ns.median)
    }
}

/// Rows without a time come last.
fn fastest_first(a: &Measured<'_>, b: &Measured<'_>) -> Ordering {
    let key = |row: &Measured<'_>| row.iteration_ns().unwrap_or(f64::INFINITY);
    key(a).total_cmp(&key(b)).then_with(|| a.record.case.cmp(&b.record.case))
}

/// What the floor of a block is and how long it takes, or why there is none.
fn floor_line(common: Common, rows: &[&Measured<'_>], floors: &[Measured<'_>]) -> Option<String> {
    let Some(floor) = rows.iter().find_map(|row| floor_of(&row.record.case)) else {
        return match common {
            Common { workload, .. } if workload.is_alone() => None,
            Common { peers, .. } if peers != Peers::Pair => Some("floor: none for several peers".to_owned()),
            Common { cpus: None, .. } => Some("floor: none for endpoints that are not pinned".to_owned()),
            _ => Some("floor: none, these are floors themselves".to_owned()),
        };
    };
    let measured = |case: &Case| floors.iter().find(|row| row.record.case == *case)?.iteration_ns();
    let iteration = floor.iteration_ns(measured).and_then(time).map(|time| format!(" = {time}"));
    Some(format!("floor: {floor}{}", iteration.unwrap_or_default()))
}

/// What the signs of `rows` stand for here, and why the failed ones failed.
fn remarks(rows: &[&Measured<'_>]) -> Vec<String> {
    let warnings = rows.iter().flat_map(|row| {
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
    let failures = rows.iter().filter_map(|row| match &row.record.outcome {
        Outcome::Failed { error } => Some((clean(error), name(&row.record.case))),
        _ => None,
    });
    let failures =
        grouped(failures).into_iter().map(|(error, names)| format!("{} failed: {error}", names.join(", ")));
    let missed = rows.iter().filter_map(|row| match &row.record.outcome {
        Outcome::Missed { achieved } => Some(format!(
            "{} missed its rate: {:.0}% of it was achieved, so that the times are of a queue that grows",
            name(&row.record.case),
            100.0 * achieved
        )),
        _ => None,
    });
    warnings.chain(failures).chain(missed).chain(steps(rows)).collect()
}

/// The steps of the messages of each row, medians with means in brackets.
fn steps(rows: &[&Measured<'_>]) -> Vec<String> {
    let line = |row: &&Measured<'_>| {
        let steps = row.values()?.steps.as_ref()?;
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
fn notes(results: &Results, blocks: &[Block]) -> Vec<(String, String)> {
    let spread = ("±".to_owned(), "half the 95% interval of the median over trials".to_owned());
    let warnings = results.records.iter().flat_map(|record| &record.warnings);
    let kinds = grouped(warnings.map(|warning| (marks::mark(warning), warning.advice())));
    let signs = kinds.into_iter().map(|(mark, advice)| {
        let sign = mark.sign.map(String::from).unwrap_or_default();
        (sign, format!("{}: {}; {}", mark.title, mark.meaning, advice[0]))
    });
    [spread].into_iter().chain(meanings(blocks)).chain(signs).collect()
}

/// The cases that the plan dropped and those that it kept and that have no record, by reason.
fn missing(results: &Results) -> Vec<String> {
    /// More cases than this with one reason are counted, not named.
    const NAMED: usize = 3;

    let recorded: HashSet<&Case> = results.records.iter().map(|record| &record.case).collect();
    let plan = &results.header.plan;
    let unfinished = plan.cases.iter().filter(|case| !recorded.contains(case));
    let unfinished = unfinished.map(|case| ("not done when the run ended".to_owned(), case.key()));
    let dropped = plan.dropped.iter().map(|dropped| (clean(&dropped.reason), dropped.case.clone()));
    let line = |(reason, cases): (String, Vec<String>)| {
        let named: Vec<String> = cases.iter().take(NAMED).map(|case| clean(case)).collect();
        let more = match cases.len().saturating_sub(NAMED) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        format!("{}{more}: {reason}", named.join(", "))
    };
    grouped(dropped.chain(unfinished)).into_iter().map(line).collect()
}
