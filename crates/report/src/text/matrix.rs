//! Results in short: at a glance first, then a matrix for each workload and placement, mechanisms by sizes.
//!
//! It shows the first column of each workload only. `table` shows all of them, case by case.

use super::block::{Common, floor_order, grouped, name, place, size_text};
use super::columns::{self, Column};
use super::layout::{DEEPER, INDENT, Style, finish, labelled, left, right, section, verdicts};
use super::marks::{self, Mark};
use super::sheet::{fastest_first, not_measured};
use super::{head, study};
use crate::words::{clean, clip, width, wrap, wrap_name};
use analysis::analysed::{AnalysedRecord, AnalysedResults, Leader};
use model::Size;
use model::record::Outcome;
use model::warning::Warning;
use std::collections::{BTreeMap, BTreeSet};

/// A longer name is wrapped.
const LONGEST_NAME: usize = 34;
/// Between two columns.
const SPACING: usize = 2;
/// Lines that the reason of a gap may take; `table` has the whole.
const REASON_LINES: usize = 2;

/// `results` in short.
pub fn matrix(results: &AnalysedResults<'_>, style: &Style) -> String {
    let style = &style.for_matrices();
    let (floors, cases): (Vec<_>, Vec<_>) =
        results.records.iter().partition(|analysed| analysed.record.floor);
    let mut groups: BTreeMap<Common, Vec<&AnalysedRecord<'_>>> = BTreeMap::new();
    for analysed in cases {
        groups.entry(Common::of(&analysed.record.case).of_all_sizes()).or_default().push(analysed);
    }
    let (of_operations, of_mechanisms): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|(common, _)| common.workload.is_alone());
    let matrices: Vec<Matrix> =
        of_mechanisms.iter().map(|(common, cases)| Matrix::of(*common, cases)).collect();
    let names = matrices.iter().map(|matrix| matrix.name_width(style)).max().unwrap_or_default();
    let parts = [
        wrap(&head::title(&results.results.header), style.width, "", INDENT),
        labelled(&head::lines(results), style),
        section("fastest", labelled(&leaders(results), style), style),
        conclusions(results, style),
        matrices.iter().flat_map(|matrix| matrix.lay_out(names, style)).collect(),
        of_operations.into_iter().flat_map(|(common, cases)| operations(common, cases, style)).collect(),
        self::floors(floors, style),
        section("not measured", gaps(results, style), style),
        section("notes", labelled(&footnotes(results), style), style),
    ];
    finish(&parts.concat())
}

/// The best of each workload in each place: at the smallest size, and at the largest.
fn leaders(results: &AnalysedResults<'_>) -> Vec<(String, String)> {
    let places = results.leaders.iter().map(|leader| {
        let common = Common::of(&results.records[leader.best].record.case);
        (format!("{}, {}", common.workload, common.place()), leader_words(results, leader))
    });
    grouped(places).into_iter().map(|(place, best)| (place, best.join("; "))).collect()
}

fn leader_words(results: &AnalysedResults<'_>, leader: &Leader) -> String {
    let best = &results.records[leader.best];
    let case = &best.record.case;
    let size = case.size_bytes.map(|size| format!("{}: ", size_text(size))).unwrap_or_default();
    let as_good = match leader.as_good.as_slice() {
        [] => String::new(),
        [one] => format!(" (as good: {})", name(&results.records[*one].record.case)),
        several => format!(" ({} as good)", several.len()),
    };
    let first = &columns::of(case.workload)[0];
    let value = best.trusted().and_then(|summary| first.bare(summary)).unwrap_or_default();
    format!("{size}{} {value}{as_good}", name(case))
}

/// What the study concluded, and whether that holds here.
fn conclusions(results: &AnalysedResults<'_>, style: &Style) -> Vec<String> {
    let study = results.study.as_ref().map(study::study).filter(|study| !study.conclusions.is_empty());
    let Some(study) = study else { return Vec::new() };
    let heading = format!("does it hold here? {}", study.title);
    section(&heading, verdicts(&study.conclusions, false, style), style)
}

/// Mechanisms by sizes.
struct Matrix {
    heading: String,
    titles: Vec<String>,
    /// A mechanism, and its cells in the order of the titles.
    rows: Vec<(String, Vec<Cell>)>,
}

/// A value, and the signs of what a reader must know about it.
struct Cell {
    value: String,
    signs: String,
}

impl Matrix {
    fn of(common: Common, cases: &[&AnalysedRecord<'_>]) -> Self {
        let column = &columns::of(common.workload)[0];
        let sizes: BTreeSet<Option<Size>> = cases.iter().map(|case| case.record.case.size_bytes).collect();
        let title = |size: &Option<Size>| match size {
            Some(size) => size_text(*size),
            None if sizes.len() == 1 => String::new(),
            None => "no payload".to_owned(),
        };
        // What carries no payload comes last in the order of speed, as few mechanisms have it.
        let by_speed: Vec<&Option<Size>> =
            sizes.iter().filter(|size| size.is_some()).chain([&None]).collect();
        let mut rows = grouped(cases.iter().map(|case| (name(&case.record.case), *case)));
        rows.sort_by_cached_key(|(_, cases)| {
            let time =
                |size: &&Option<Size>| of_size(cases, **size)?.trusted().map(|s| s.iteration_ns.median);
            by_speed.iter().map(|size| ordered(time(size).unwrap_or(f64::INFINITY))).collect::<Vec<_>>()
        });
        let cells = |cases: &[&AnalysedRecord<'_>]| {
            sizes.iter().map(|size| Cell::of(of_size(cases, *size), column)).collect()
        };
        Self {
            heading: heading(common, column),
            titles: sizes.iter().map(title).collect(),
            rows: rows.iter().map(|(name, cases)| (name.clone(), cells(cases))).collect(),
        }
    }

    /// The columns that the longest name takes, and the heading, if that leaves enough for the sizes.
    fn name_width(&self, style: &Style) -> usize {
        let names = self.rows.iter().map(|(name, _)| width(name)).max().unwrap_or_default();
        let names = names.min(LONGEST_NAME);
        let with_heading = names.max(width(&self.heading).saturating_sub(INDENT.len()));
        let columns = self.titles.len() * self.column_width();
        if INDENT.len() + with_heading + columns <= style.width { with_heading } else { names }
    }

    fn column_width(&self) -> usize {
        let cells = || self.rows.iter().flat_map(|(_, cells)| cells);
        let values =
            cells().map(|cell| width(&cell.value)).chain(self.titles.iter().map(|title| width(title)));
        SPACING + values.max().unwrap_or_default() + self.signs_width()
    }

    fn signs_width(&self) -> usize {
        let cells = self.rows.iter().flat_map(|(_, cells)| cells);
        cells.map(|cell| width(&cell.signs)).max().unwrap_or_default()
    }

    /// The sizes that are shown, by their place among all: as many as fit, from the smallest to the largest.
    fn shown(&self, name_width: usize, style: &Style) -> Vec<usize> {
        let name_width = name_width.min(LONGEST_NAME);
        let all = self.titles.len();
        let room = style.width.saturating_sub(INDENT.len() + name_width) / self.column_width();
        match room.max(1) {
            fit if fit >= all => (0..all).collect(),
            1 => vec![0],
            fit => (0..fit).map(|nth| nth * (all - 1) / (fit - 1)).collect(),
        }
    }

    fn lay_out(&self, name_width: usize, style: &Style) -> Vec<String> {
        let shown = self.shown(name_width, style);
        let (column, signs) = (self.column_width(), self.signs_width());
        let room = style.width.saturating_sub(INDENT.len() + shown.len() * column);
        let name_width = name_width.min(room).max(1);
        let titles: String = shown
            .iter()
            .map(|at| format!("{}{}", right(&self.titles[*at], column - signs), " ".repeat(signs)))
            .collect();
        let mut lines = vec![String::new()];
        if width(&self.heading) <= INDENT.len() + name_width {
            let heading = left(&self.heading, INDENT.len() + name_width);
            lines.push(style.heading(&heading) + &style.titles(&titles));
        } else {
            lines.extend(wrap(&self.heading, style.width, "", INDENT).iter().map(|line| style.heading(line)));
            lines.push(style.titles(&format!("{INDENT}{}{titles}", " ".repeat(name_width))));
        }
        for (name, cells) in &self.rows {
            let mut names = wrap_name(name, name_width).into_iter();
            let cells = shown.iter().map(|at| &cells[*at]);
            let cells = cells.map(|cell| right(&cell.value, column - signs) + &left(&cell.signs, signs));
            let first = left(&names.next().unwrap_or_default(), name_width);
            lines.push(format!("{INDENT}{first}{}", cells.collect::<String>()));
            lines.extend(names.map(|name| format!("{INDENT}{name}")));
        }
        if shown.len() < self.titles.len() {
            let text = format!("{} of {} sizes; --detail shows all", shown.len(), self.titles.len());
            lines.push(format!("{INDENT}{text}"));
        }
        lines
    }
}

/// The heading of the matrix of `common`, which shows `column`.
fn heading(common: Common, column: &Column) -> String {
    format!("{}: {}", common.heading_of_all_sizes(), column.heading.title)
}

/// The one of `cases`, all of one mechanism, that is of `size`.
fn of_size<'a>(cases: &[&'a AnalysedRecord<'a>], size: Option<Size>) -> Option<&'a AnalysedRecord<'a>> {
    cases.iter().find(|case| case.record.case.size_bytes == size).copied()
}

/// A number as a key by which to sort.
fn ordered(number: f64) -> u64 {
    // Of numbers that are not below 0 the bits have the same order.
    number.max(0.0).to_bits()
}

impl Cell {
    fn of(analysed: Option<&AnalysedRecord<'_>>, column: &Column) -> Self {
        let Some(analysed) = analysed else { return Self { value: "-".to_owned(), signs: String::new() } };
        let value = match (&analysed.record.outcome, analysed.trusted()) {
            (Outcome::Missed { .. }, _) | (_, None) => analysed.outcome_name().to_owned(),
            (_, Some(summary)) => column.bare(summary).unwrap_or_else(|| "-".to_owned()),
        };
        let signs: BTreeSet<char> = shown_marks(analysed).filter_map(|mark| mark.sign).collect();
        Self { value, signs: signs.into_iter().collect() }
    }
}

/// The marks of the warnings that concern what is shown here, and not percentiles or CPU time.
fn shown_marks<'a>(analysed: &'a AnalysedRecord<'_>) -> impl Iterator<Item = Mark> + 'a {
    let warnings = analysed.record.warnings.iter();
    let concern = |warning: &&Warning| {
        !matches!(warning, Warning::InstrumentEffect { .. } | Warning::SampledCpuSplit { .. })
    };
    warnings.filter(concern).map(marks::mark)
}

/// Operations under their heading, as many in a line as fit.
fn operations(common: Common, mut cases: Vec<&AnalysedRecord<'_>>, style: &Style) -> Vec<String> {
    cases.sort_by(|a, b| fastest_first(a, b));
    let column = &columns::of(common.workload)[0];
    section(&heading(common, column), items(&cases, column, style), style)
}

/// Floors under their heading, as many in a line as fit.
fn floors(mut floors: Vec<&AnalysedRecord<'_>>, style: &Style) -> Vec<String> {
    floors.sort_by_key(|floor| floor_order(&floor.record.case));
    section("floors: the least that this machine takes", items(&floors, &columns::FLOORS[0], style), style)
}

/// Names and values, as many in a line as fit.
fn items(cases: &[&AnalysedRecord<'_>], column: &Column, style: &Style) -> Vec<String> {
    let names: Vec<String> = cases.iter().map(|case| name(&case.record.case)).collect();
    let item = |(case, name): (&&AnalysedRecord<'_>, &String)| {
        // What was measured in several places says where.
        let several = names.iter().filter(|other| *other == name).count() > 1;
        let place = if several { format!(" ({})", place(&case.record.case)) } else { String::new() };
        let Cell { value, signs } = Cell::of(Some(case), column);
        format!("{}{place} {value}{signs}", clip(name, LONGEST_NAME))
    };
    let mut lines: Vec<String> = Vec::new();
    for item in cases.iter().zip(&names).map(item) {
        match lines.last_mut().filter(|line| width(line) + 3 + width(&item) <= style.width) {
            Some(line) => *line = format!("{line}   {item}"),
            None => lines.push(format!("{INDENT}{item}")),
        }
    }
    lines.iter().flat_map(|line| wrap(line, style.width, INDENT, DEEPER)).collect()
}

/// What has no number, by reason: cases that were not measured, and those that failed.
fn gaps(analysed: &AnalysedResults<'_>, style: &Style) -> Vec<String> {
    let failed = analysed.records.iter().filter_map(|analysed| match &analysed.record.outcome {
        Outcome::Failed { error } => {
            Some((format!("failed: {}", clean(error)), clean(&analysed.record.case.key())))
        }
        _ => None,
    });
    let reasons = not_measured(analysed.results).into_iter().chain(grouped(failed));
    let line = |(reason, cases): (String, Vec<String>)| {
        let mut names: Vec<&str> = cases.iter().filter_map(|case| case.split(' ').next()).collect();
        names.dedup();
        let count = if cases.len() == 1 { "1 case".to_owned() } else { format!("{} cases", cases.len()) };
        let line = format!("{}, {count}: {reason}", clip(&names.join(", "), style.width / 2));
        wrap(&clip(&line, REASON_LINES * (style.width - 2 * DEEPER.len())), style.width, INDENT, DEEPER)
    };
    reasons.flat_map(line).collect()
}

/// What the signs mean, of those that occur, and where there is more.
fn footnotes(analysed: &AnalysedResults<'_>) -> Vec<(String, String)> {
    let occur = grouped(analysed.records.iter().flat_map(shown_marks).map(|mark| (mark, ())));
    let note = |(mark, _): (Mark, Vec<()>)| {
        let sign = mark.sign.map(String::from).unwrap_or_default();
        (sign, format!("{}: {}", mark.title, mark.meaning))
    };
    let more = "percentiles, CPU time, switches, intervals and every case: --detail".to_owned();
    occur.into_iter().map(note).chain([("…".to_owned(), more)]).collect()
}
