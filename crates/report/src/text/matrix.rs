//! Results in short: the answer, then a matrix for each workload and place, mechanisms by sizes, and what the values are worth.
//!
//! Every value has its interval. It shows the first column of each workload, and of round trips the 99th percentile at the smallest
//! size. `table` shows all of them, case by case.

use super::answer::{UNBROKEN, fastest, of_host};
use super::block::{Common, grouped, name, size_unit};
use super::columns::{self, Column};
use super::layout::{DEEPER, INDENT, Style, finish, labelled, left, right, section, verdicts};
use super::marks::{self, Mark};
use super::sheet::{UNFINISHED, not_measured};
use super::study;
use crate::quantity::{Kind, RateUnit, time};
use crate::words::{clean, clip, width, wrap, wrap_name};
use analysis::analysed::{AnalysedRecord, AnalysedResults, WIDEST};
use model::floor::NULL;
use model::record::Outcome;
use model::topology::CpuPair;
use model::units::format_ns;
use model::warning::Warning;
use model::{Case, Placement, Size, Workload};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A longer name is wrapped.
const LONGEST_NAME: usize = 34;
/// Between two columns, beside the room for a mark.
const SPACING: usize = 1;
/// Beside the fastest, and beside what is too close to it to call.
const FASTEST: char = '*';
const TOO_CLOSE: char = '=';

/// Where there is no value.
const NONE: &str = "-";

/// The mark of each record that has one, by its place among the records.
type Marks = HashMap<usize, char>;

/// `results` in short.
pub fn matrix(results: &AnalysedResults<'_>, style: &Style) -> String {
    let style = &style.for_matrices();
    let parts = [
        answer(results, style),
        conclusions(results, style),
        values(results, style),
        of_host(results).iter().flat_map(|text| wrap(text, style.width, "", INDENT)).collect(),
    ];
    text(&parts.concat())
}

/// The same without the answer, what was concluded and what the values are worth.
pub(crate) fn values_alone(results: &AnalysedResults<'_>, style: &Style) -> String {
    text(&values(results, &style.for_matrices()))
}

/// `lines` as text, of which the first has no line before it.
fn text(lines: &[String]) -> String {
    finish(lines).trim_start_matches('\n').to_owned()
}

/// The matrices, what was not measured, and what the marks mean.
fn values(results: &AnalysedResults<'_>, style: &Style) -> Vec<String> {
    let marks = marks_of(results);
    let mut groups: BTreeMap<Common, Vec<Numbered<'_>>> = BTreeMap::new();
    for (at, analysed) in results.records.iter().enumerate().filter(|(_, analysed)| !analysed.record.floor) {
        groups
            .entry(Common::from_case(&analysed.record.case).of_all_sizes())
            .or_default()
            .push((at, analysed));
    }
    if results.results.header.settings.suite.is_some() {
        groups.values_mut().for_each(leave_out_instrument);
    }
    let groups: Vec<Group<'_>> = groups.into_iter().collect();
    let matrices = matrices(&groups, &marks, style);
    let alone = matrices.iter().filter(|matrix| matrix.is_of_one_place() && !matrix.is_of_operations);
    let name_width_alone = alone.map(|matrix| matrix.name_width(style)).max().unwrap_or_default();
    let laid_out =
        matrices.iter().flat_map(|matrix| match matrix.is_of_one_place() && !matrix.is_of_operations {
            true => matrix.lay_out(name_width_alone, style),
            false => matrix.lay_out(matrix.name_width(style), style),
        });
    let parts = [
        laid_out.collect(),
        section("Not measured", unmeasured(results, style), style),
        footnotes(results, &matrices, style),
    ];
    parts.concat()
}

/// Leaves out of a suite what measures the instrument itself, where there is anything else. Who asked for it by name sees it, and so
/// does who gave it a parameter.
fn leave_out_instrument(cases: &mut Vec<Numbered<'_>>) {
    let is_instrument = |(_, case): &Numbered<'_>| {
        case.record.case.spec.name == NULL && case.record.case.spec.params.is_empty()
    };
    if !cases.iter().all(is_instrument) {
        cases.retain(|case| !is_instrument(case));
    }
}

/// Which records are the fastest, or too close to it to call.
fn marks_of(results: &AnalysedResults<'_>) -> Marks {
    let mut marks = Marks::new();
    for leader in results.leaders.iter().filter(|leader| leader.has_rivals()) {
        let is_alone = leader.as_good.is_empty();
        if is_alone && leader.is_known {
            marks.insert(leader.best, FASTEST);
        } else if !is_alone {
            let all = std::iter::once(&leader.best).chain(&leader.as_good);
            marks.extend(all.map(|at| (*at, TOO_CLOSE)));
        }
    }
    marks
}

/// What is fastest, under a heading for each workload.
fn answer(results: &AnalysedResults<'_>, style: &Style) -> Vec<String> {
    let words = fastest(results);
    let lines = words
        .iter()
        .flat_map(|(heading, places)| [vec![style.heading(heading)], labelled(places, style)].concat());
    lines.map(|line| line.replace(UNBROKEN, " ")).collect()
}

/// What the study concluded, and whether that holds here.
fn conclusions(results: &AnalysedResults<'_>, style: &Style) -> Vec<String> {
    let study = results.study.as_ref().map(study::study).filter(|study| !study.conclusions.is_empty());
    let Some(study) = study else { return Vec::new() };
    let heading = format!("does it hold here? {}", study.title);
    section(&heading, verdicts(&study.conclusions, false, style), style)
}

/// An analysed record and its place among the records.
type Numbered<'a> = (usize, &'a AnalysedRecord<'a>);

/// Mechanisms by sizes, in one place or in several side by side.
struct Matrix {
    heading: String,
    /// Whether its rows are operations, whose names are longer.
    is_of_operations: bool,
    /// The places, each with how many columns it has. One place alone is named in the heading.
    places: Vec<(String, usize)>,
    /// The sizes, place by place.
    titles: Vec<String>,
    /// A mechanism, and its cells in the order of the titles.
    rows: Vec<(String, Vec<Cell>)>,
    /// A further column where there is room: its title, and a cell for each row.
    last: Option<(String, Vec<String>)>,
}

/// A value, what it is worth, and the signs of what a reader must know about it.
struct Cell {
    /// Whether it is the fastest, or too close to that to call.
    mark: char,
    value: String,
    worth: String,
    signs: String,
}

/// The cases of one workload in one place.
type Group<'a> = (Common, Vec<Numbered<'a>>);

/// The matrices of `groups`: places of one workload side by side where they fit, otherwise one below the other.
fn matrices(groups: &[Group<'_>], marks: &Marks, style: &Style) -> Vec<Matrix> {
    let workloads = groups.chunk_by(|(a, _), (b, _)| a.is_like(b));
    workloads
        .flat_map(|places| {
            let together = Matrix::from_groups(places, marks);
            match places {
                [_, _, ..] if !together.fits(style) => places
                    .iter()
                    .map(|place| Matrix::from_groups(std::slice::from_ref(place), marks))
                    .collect(),
                _ => vec![together],
            }
        })
        .collect()
}

impl Matrix {
    /// The matrix of `groups`, of which there is at least one, and which differ by their place alone.
    fn from_groups(groups: &[Group<'_>], marks: &Marks) -> Self {
        let common = groups[0].0;
        let column = &columns::shown_of(common.workload)[0];
        let unit = unit_of_rates(groups, column);
        let sizes = |cases: &[Numbered<'_>]| -> BTreeSet<Option<Size>> {
            cases.iter().map(|(_, case)| column_size(&case.record.case)).collect()
        };
        let columns: Vec<(Placement, Option<CpuPair>, Option<Size>)> = groups
            .iter()
            .flat_map(|(_, cases)| {
                let Case { placement, cpus, .. } = cases[0].1.record.case;
                sizes(cases).into_iter().map(move |size| (placement, cpus, size))
            })
            .collect();
        let title = |size: Option<Size>| match size {
            Some(size) => size_unit(size),
            None if columns.iter().all(|column| column.2.is_none()) => String::new(),
            None => "no payload".to_owned(),
        };
        let cases = groups.iter().flat_map(|(_, cases)| cases);
        let mut rows = grouped(cases.map(|case| (name(&case.1.record.case), *case)));
        sort_by_speed(&mut rows, &columns);
        let cells = |cases: &[Numbered<'_>]| -> Vec<Cell> {
            columns.iter().map(|at| Cell::new(in_column(cases, at), column, unit, marks)).collect()
        };
        let what = match unit {
            Some(unit) => format!("{} in {}", common.value_words(), unit.name()),
            None => common.value_words(),
        };
        let heading = match groups {
            [_] => format!("{what}, {}", common.place_words()),
            _ => what,
        };
        Self {
            heading,
            is_of_operations: common.workload.is_alone(),
            places: groups.iter().map(|(place, cases)| (place.place_words(), sizes(cases).len())).collect(),
            titles: columns.iter().map(|(_, _, size)| title(*size)).collect(),
            rows: rows.iter().map(|(name, cases)| (name.clone(), cells(cases))).collect(),
            last: tail_column(common, groups.len(), &columns[0], &rows),
        }
    }

    fn is_of_one_place(&self) -> bool {
        self.places.len() == 1
    }

    /// Whether all columns have room beside names, and each place above its columns.
    fn fits(&self, style: &Style) -> bool {
        let column = self.column_width();
        let taken = INDENT.len() + self.least_name() + self.titles.len() * column;
        let names_fit = self.places.iter().all(|(place, columns)| width(place) + SPACING <= columns * column);
        taken <= style.width && names_fit
    }

    fn longest_name(&self) -> usize {
        self.rows.iter().map(|(name, _)| width(name)).max().unwrap_or_default().min(LONGEST_NAME)
    }

    /// The narrowest that names may be wrapped to, before a size is left out or places go below one another: none of their parameters is
    /// broken.
    fn least_name(&self) -> usize {
        let pieces = self.rows.iter().flat_map(|(name, _)| name.split_inclusive([':', ',', ' ']));
        pieces.map(|piece| width(piece) + INDENT.len()).max().unwrap_or_default().min(self.longest_name())
    }

    /// The columns that names take: with the heading, where that leaves room for all sizes.
    fn name_width(&self, style: &Style) -> usize {
        let with_heading = self.longest_name().max(width(&self.heading).saturating_sub(INDENT.len()));
        let taken = INDENT.len() + with_heading + self.titles.len() * self.column_width();
        if taken <= style.width { with_heading } else { self.longest_name() }
    }

    /// The widest of one part of cells.
    fn widest(&self, part: fn(&Cell) -> &str) -> usize {
        self.rows.iter().flat_map(|(_, cells)| cells).map(|cell| width(part(cell))).max().unwrap_or_default()
    }

    /// The columns of a value, and of what it is worth with the blank before it: side by side, or a range over both.
    fn value_width(&self) -> (usize, usize) {
        let worth = self.widest(|cell| &cell.worth);
        let cells = || self.rows.iter().flat_map(|(_, cells)| cells);
        let with_worth = cells().filter(|cell| !cell.worth.is_empty()).map(|cell| width(&cell.value)).max();
        let alone = cells().filter(|cell| cell.worth.is_empty()).map(|cell| width(&cell.value)).max();
        let beside = if worth == 0 { 0 } else { worth + 1 };
        (with_worth.unwrap_or_default().max(alone.unwrap_or_default().saturating_sub(beside)), beside)
    }

    fn column_width(&self) -> usize {
        let (value, beside) = self.value_width();
        let cell = MARK_WIDTH + value + beside;
        let titles = self.titles.iter().map(|title| width(title)).max().unwrap_or_default();
        SPACING + cell.max(titles) + self.widest(|cell| &cell.signs)
    }

    /// The columns that are shown, by their place among all: as many as fit, from the smallest size to the largest.
    fn shown(&self, name_width: usize, style: &Style) -> Vec<usize> {
        let all = self.titles.len();
        let room = style.width.saturating_sub(INDENT.len() + name_width.min(self.least_name()))
            / self.column_width();
        match room.max(1) {
            fit if fit >= all => (0..all).collect(),
            1 => vec![0],
            fit => (0..fit).map(|nth| nth * (all - 1) / (fit - 1)).collect(),
        }
    }

    fn lay_out(&self, name_width: usize, style: &Style) -> Vec<String> {
        let shown = self.shown(name_width, style);
        let (column, signs) = (self.column_width(), self.widest(|cell| &cell.signs));
        let room = style.width.saturating_sub(INDENT.len() + shown.len() * column);
        let name_width = name_width.min(room).max(1);
        let last = self.last.as_ref().filter(|last| last_width(Some(last)) <= room - name_width);
        let titles = shown.iter().map(|at| right(&self.titles[*at], column - signs) + &" ".repeat(signs));
        let titles: String = titles.chain(last.map(|(title, _)| right(title, last_width(last)))).collect();
        let (first, widths) = (INDENT.len() + name_width, self.value_width());
        let mut lines = self.head(&titles, first, column, style);
        for (at, (name, cells)) in self.rows.iter().enumerate() {
            let mut names = wrap_name(name, name_width).into_iter();
            let cells = shown.iter().map(|at| cells[*at].laid_out(widths, column - signs, signs));
            let cells = cells.chain(last.map(|(_, cells)| right(&cells[at], last_width(last))));
            let name = left(&names.next().unwrap_or_default(), name_width);
            lines.push(format!("{INDENT}{name}{}", cells.collect::<String>()));
            lines.extend(names.map(|name| format!("{INDENT}{name}")));
        }
        if shown.len() < self.titles.len() {
            lines.push(format!("{INDENT}{} of {} sizes; --detail shows all", shown.len(), self.titles.len()));
        }
        lines
    }

    /// The lines above the rows, whose names end in column `first`: the heading, the places if there are several, and the sizes.
    fn head(&self, titles: &str, first: usize, column: usize, style: &Style) -> Vec<String> {
        let mut lines = vec![String::new()];
        let fits = width(&self.heading) <= first;
        let heading = style.heading(&left(&self.heading, first));
        if self.is_of_one_place() && (fits || titles.trim().is_empty()) {
            lines.push(heading + &style.titles(titles));
            return lines;
        }
        let places: String = match self.is_of_one_place() {
            true => String::new(),
            false => {
                let place = |(place, columns): &(String, usize)| {
                    left(&format!("{}{place}", " ".repeat(SPACING + MARK_WIDTH)), columns * column)
                };
                self.places.iter().map(place).collect()
            }
        };
        if fits {
            lines.push(heading + &style.titles(&places));
        } else {
            let heading = wrap(&self.heading, style.width, "", INDENT);
            lines.extend(heading.iter().map(|line| style.heading(line)));
            lines.extend((!places.is_empty()).then(|| " ".repeat(first) + &style.titles(&places)));
        }
        lines.push(" ".repeat(first) + &style.titles(titles));
        lines
    }
}

/// The unit in which all rates of a matrix are, where it shows rates: that of the fastest.
fn unit_of_rates(groups: &[Group<'_>], column: &Column) -> Option<RateUnit> {
    let cases = groups.iter().flat_map(|(_, cases)| cases).filter_map(|(_, case)| case.trusted());
    let rates = cases.filter_map(|summary| column.number_of(summary).filter(|(kind, _)| *kind == Kind::Rate));
    rates.map(|(_, rate)| rate.median).reduce(f64::max).map(RateUnit::for_most)
}

/// The columns of a mark with the blank after it.
const MARK_WIDTH: usize = 2;

/// How wide the last column is, with the blanks before it.
fn last_width(last: Option<&(String, Vec<String>)>) -> usize {
    let widest = last.map(|(title, cells)| cells.iter().chain([title]).map(|cell| width(cell)).max());
    SPACING + 1 + widest.flatten().unwrap_or_default()
}

/// The 99th percentiles of round trips in one place, at the first size; `None` of all else, and where none is known.
fn tail_column(
    common: Common,
    places: usize,
    at: &(Placement, Option<CpuPair>, Option<Size>),
    rows: &[(String, Vec<Numbered<'_>>)],
) -> Option<(String, Vec<String>)> {
    let size = at.2.filter(|_| places == 1 && common.workload == Workload::Latency)?;
    let p99 = |(_, cases): &(String, Vec<Numbered<'_>>)| {
        let summary = in_column(cases, at)?.1.trusted()?;
        time(summary.quantiles?.p99_ns as f64)
    };
    let cells: Vec<Option<String>> = rows.iter().map(p99).collect();
    let is_known = cells.iter().any(Option::is_some);
    let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| NONE.to_owned())).collect();
    is_known.then(|| (format!("p99 {}", size_unit(size)), cells))
}

/// The size by which a case has its column: operations have rows of their own for each size.
fn column_size(case: &Case) -> Option<Size> {
    case.size_bytes.filter(|_| !case.workload.is_alone())
}

/// Puts what is known before what is a range, and the fastest first, by the first column in which two differ so.
fn sort_by_speed(
    rows: &mut [(String, Vec<Numbered<'_>>)],
    columns: &[(Placement, Option<CpuPair>, Option<Size>)],
) {
    // What carries no payload counts last: few mechanisms have it.
    let by_speed = columns.iter().filter(|column| column.2.is_some());
    let by_speed: Vec<_> = by_speed.chain(columns.iter().filter(|column| column.2.is_none())).collect();
    rows.sort_by_cached_key(|(_, cases)| {
        let key = |column| {
            let case = in_column(cases, column).map(|(_, case)| case);
            let time = case.and_then(|case| case.trusted()).map(|summary| summary.iteration_ns.median);
            let is_range = case.and_then(AnalysedRecord::half_width).is_some_and(|half| half > WIDEST);
            (is_range, sort_key(time.unwrap_or(f64::INFINITY)))
        };
        by_speed.iter().map(|column| key(column)).collect::<Vec<_>>()
    });
}

/// The one of `cases`, all of one mechanism, that is of this place and size.
fn in_column<'a>(
    cases: &[Numbered<'a>],
    (placement, cpus, size): &(Placement, Option<CpuPair>, Option<Size>),
) -> Option<Numbered<'a>> {
    let is = |case: &Case| (case.placement, case.cpus, column_size(case)) == (*placement, *cpus, *size);
    cases.iter().copied().find(|(_, case)| is(&case.record.case))
}

/// A number as a key by which to sort.
fn sort_key(number: f64) -> u64 {
    // The bits of numbers that are not below 0 are in the order of the numbers.
    number.max(0.0).to_bits()
}

impl Cell {
    fn new(numbered: Option<Numbered<'_>>, column: &Column, unit: Option<RateUnit>, marks: &Marks) -> Self {
        let Some((at, analysed)) = numbered else { return Self::words(NONE) };
        let shown = match (&analysed.record.outcome, analysed.trusted()) {
            (Outcome::Missed { .. }, _) | (_, None) => None,
            (_, Some(summary)) => column.number_of(summary),
        };
        let Some((value, worth)) = shown.and_then(|(kind, number)| kind.with_worth(number, unit, WIDEST))
        else {
            let is_failed =
                analysed.trusted().is_none() || matches!(analysed.record.outcome, Outcome::Missed { .. });
            return Self::words(if is_failed { analysed.outcome_name() } else { NONE });
        };
        let signs: BTreeSet<char> =
            shown_warnings(analysed).filter_map(|warning| marks::mark(warning).sign).collect();
        let signs: String = signs.into_iter().collect();
        let mark = marks.get(&at).copied().unwrap_or(' ');
        Self { mark, value, worth, signs }
    }

    /// It in so many columns, and its signs in so many more. Its value and what that is worth have these widths.
    fn laid_out(&self, (value, beside): (usize, usize), columns: usize, signs: usize) -> String {
        let text = match self.worth.as_str() {
            "" if width(&self.value) > value => right(&self.value, value + beside),
            "" => right(&self.value, value) + &" ".repeat(beside),
            known => right(&self.value, value) + &left(&format!(" {known}"), beside),
        };
        right(&format!("{} {text}", self.mark), columns) + &left(&self.signs, signs)
    }

    /// A cell without a value.
    fn words(words: &str) -> Self {
        Self { mark: ' ', value: words.to_owned(), worth: String::new(), signs: String::new() }
    }
}

/// The warnings of which a reader of a value and its interval must know. `--detail` shows the others.
fn shown_warnings<'a>(analysed: &'a AnalysedRecord<'_>) -> impl Iterator<Item = &'a Warning> + 'a {
    let concern = |warning: &&Warning| match warning {
        Warning::Clamped { .. }
        | Warning::Unusual { .. }
        | Warning::Elsewhere(_)
        | Warning::Preempted { .. }
        | Warning::Stalled { .. } => true,
        Warning::Unsettled { .. }
        | Warning::TwoModes { .. }
        | Warning::Totals { .. }
        | Warning::InstrumentEffect { .. }
        | Warning::SampledCpuSplit { .. } => false,
    };
    analysed.record.warnings.iter().filter(concern)
}

/// The numbers of `warning`, where without them the value beside which its sign stands would be taken for another.
fn numbers_needed(warning: &Warning) -> Option<String> {
    match warning {
        Warning::Preempted { .. } => None,
        _ => marks::numbers(warning),
    }
}

/// What was told first, and of which mechanisms.
fn examples(numbers_of: Vec<(String, Vec<String>)>) -> String {
    /// The rest is told by the detailed form.
    const EXAMPLES: usize = 1;
    const MOST: usize = 3;
    let more = if numbers_of.len() > EXAMPLES { "; --detail shows all" } else { "" };
    let each = numbers_of.into_iter().take(EXAMPLES).map(|(numbers, names)| {
        let mut distinct: Vec<String> = Vec::new();
        names.into_iter().for_each(|name| {
            if !distinct.contains(&name) {
                distinct.push(name);
            }
        });
        let others = distinct.len().saturating_sub(MOST);
        distinct.truncate(MOST);
        let others = if others > 0 { format!(" and {others} more") } else { String::new() };
        format!("{}{others} {numbers}", distinct.join(", "))
    });
    let each = each.collect::<Vec<_>>().join("; ");
    if each.is_empty() { each } else { format!(": {each}{more}") }
}

/// What has no number, by reason: cases that were not measured, and those that failed.
fn unmeasured(analysed: &AnalysedResults<'_>, style: &Style) -> Vec<String> {
    let failed = analysed.records.iter().filter_map(|analysed| {
        let reason = match &analysed.record.outcome {
            Outcome::Failed { error } => match analysed.before_failure_ns() {
                Some(ns) => {
                    format!("failed after slices of {} an iteration: {}", format_ns(ns), clean(error))
                }
                None => format!("failed: {}", clean(error)),
            },
            Outcome::Unsettled if analysed.record.samples.is_empty() => {
                "no time; give more --time".to_owned()
            }
            Outcome::Missed { .. } => {
                "missed its rate; the times would include a queue that grows".to_owned()
            }
            _ => return None,
        };
        Some((reason, clean(&analysed.record.case.key())))
    });
    // Of a suite, what has a row of its own has a dash in it where it was not measured.
    let is_suite = analysed.results.header.settings.suite.is_some();
    let shown: BTreeSet<String> =
        analysed.records.iter().map(|analysed| clean(&analysed.record.case.spec.to_string())).collect();
    let has_row = |case: &String| is_suite && case.split(' ').next().is_some_and(|spec| shown.contains(spec));
    let missing = not_measured(analysed.results).into_iter().filter_map(|(reason, cases)| {
        let is_unfinished = reason == UNFINISHED;
        let cases: Vec<String> = cases.into_iter().filter(|case| is_unfinished || !has_row(case)).collect();
        (!cases.is_empty()).then_some((reason, cases))
    });
    let reasons = missing.chain(grouped(failed));
    let line = |(reason, cases): (String, Vec<String>)| {
        let mut names: Vec<&str> = cases.iter().filter_map(|case| case.split(' ').next()).collect();
        names.dedup();
        let count = if cases.len() == 1 { "1 case".to_owned() } else { format!("{} cases", cases.len()) };
        let line = format!("{}, {count}: {reason}", clip(&names.join(", "), style.width / 2));
        wrap(&line, style.width, INDENT, DEEPER)
    };
    reasons.flat_map(line).collect()
}

/// What the signs mean, of those that occur.
fn footnotes(analysed: &AnalysedResults<'_>, matrices: &[Matrix], style: &Style) -> Vec<String> {
    let warnings = analysed.records.iter().filter(|analysed| !analysed.record.floor).flat_map(|analysed| {
        let case_name = name(&analysed.record.case);
        shown_warnings(analysed)
            .map(move |warning| (marks::mark(warning), (numbers_needed(warning), case_name.clone())))
    });
    let note = |(mark, cases): (Mark, Vec<(Option<String>, String)>)| {
        let sign = mark.sign.map(String::from).unwrap_or_default();
        let numbered = cases.into_iter().filter_map(|(numbers, name)| Some((numbers?, name)));
        (sign, format!("{}: {}{}", mark.title, mark.meaning, examples(grouped(numbered))))
    };
    let notes: Vec<(String, String)> = grouped(warnings).into_iter().map(note).collect();
    let lines = legend(matrices, style).into_iter().chain(labelled(&notes, style));
    [String::new()].into_iter().chain(lines).collect()
}

/// What the marks mean, of those that occur.
fn legend(matrices: &[Matrix], style: &Style) -> Vec<String> {
    let cells = || matrices.iter().flat_map(|matrix| &matrix.rows).flat_map(|(_, cells)| cells);
    let has_mark = |mark: char| cells().any(|cell| cell.mark == mark);
    let has_worth = |what: fn(&str) -> bool| cells().any(|cell| what(&cell.worth));
    let all = [
        has_mark(FASTEST).then_some("*  fastest"),
        has_mark(TOO_CLOSE).then_some("=  too close to the fastest to call"),
        has_worth(|worth| worth.starts_with('±')).then_some("±  95% interval"),
        has_worth(|worth| worth == "?").then_some("?  too few trials for an interval"),
        cells().any(|cell| cell.value == NONE).then_some("-  not measured (--detail says why)"),
        has_mark(FASTEST).then_some("2x pipe: pipe takes twice as long"),
    ];
    let mut lines: Vec<String> = Vec::new();
    for words in all.into_iter().flatten() {
        match lines.last_mut().filter(|line| width(line) + 3 + width(words) <= style.width) {
            Some(line) => *line = format!("{line}   {words}"),
            None => lines.push(format!("{INDENT}{words}")),
        }
    }
    lines
}
