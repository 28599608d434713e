//! Results in short: at a glance first, then a matrix for each workload and placement, mechanisms by sizes.
//!
//! It shows the first column of each workload only. `table` shows all of them, case by case.

use super::block::{Common, floor_order, grouped, name, place, size_text};
use super::columns::{self, Column};
use super::layout::{DEEPER, INDENT, Style, finish, labelled, left, right, section, verdicts};
use super::marks::{self, Mark};
use super::sheet::{fastest_first, not_measured};
use super::{head, host_effects, study};
use crate::words::{clean, clip, width, wrap, wrap_name};
use analysis::analysed::{AnalysedRecord, AnalysedResults, Leader};
use model::floor::NULL;
use model::record::Outcome;
use model::topology::CpuPair;
use model::units::format_ns;
use model::warning::Warning;
use model::{Case, Placement, Size};
use std::collections::{BTreeMap, BTreeSet};

/// A longer name is wrapped.
const LONGEST_NAME: usize = 34;
/// Names are wrapped to this before a size is left out.
const LEAST_NAME: usize = 22;
/// Between two columns.
const SPACING: usize = 2;
/// What stands over the best mechanisms.
const FASTEST: &str = "at a glance: the fastest, smallest and largest messages (+n: n others as good)";

/// `results` in short.
pub fn matrix(results: &AnalysedResults<'_>, style: &Style) -> String {
    let style = &style.for_matrices();
    let (floors, cases): (Vec<_>, Vec<_>) =
        results.records.iter().partition(|analysed| analysed.record.floor);
    let mut groups: BTreeMap<Common, Vec<&AnalysedRecord<'_>>> = BTreeMap::new();
    for analysed in cases {
        groups.entry(Common::of(&analysed.record.case).of_all_sizes()).or_default().push(analysed);
    }
    if results.results.header.settings.suite.is_some() {
        groups.values_mut().for_each(leave_out_instrument);
    }
    let (of_operations, of_mechanisms): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|(common, _)| common.workload.is_alone());
    let matrices = matrices(&of_mechanisms, style);
    let alone = matrices.iter().filter(|matrix| matrix.is_of_one_place());
    let name_width_alone = alone.map(|matrix| matrix.name_width(style)).max().unwrap_or_default();
    let laid_out = matrices.iter().flat_map(|matrix| match matrix.is_of_one_place() {
        true => matrix.lay_out(name_width_alone, style),
        false => matrix.lay_out(matrix.name_width(style), style),
    });
    let parts = [
        wrap(&head::title(&results.results.header), style.width, "", INDENT),
        labelled(&head::lines(results), style),
        section(FASTEST, labelled(&leaders(results), style), style),
        conclusions(results, style),
        laid_out.collect(),
        of_operations.into_iter().flat_map(|(common, cases)| operations(common, cases, style)).collect(),
        self::floors(floors, style),
        section("not measured", unmeasured(results, style), style),
        footnotes(results, style),
    ];
    finish(&parts.concat())
}

/// Leaves out of a suite what measures the instrument itself, where there is anything else: it stands among the floors. Who
/// asked for it by name sees it, and so does who gave it a parameter.
fn leave_out_instrument(cases: &mut Vec<&AnalysedRecord<'_>>) {
    let is_instrument = |case: &&AnalysedRecord<'_>| {
        case.record.case.spec.name == NULL && case.record.case.spec.params.is_empty()
    };
    if !cases.iter().all(is_instrument) {
        cases.retain(|case| !is_instrument(case));
    }
}

/// The best of each workload in each place: at the smallest size, and at the largest.
fn leaders(results: &AnalysedResults<'_>) -> Vec<(String, String)> {
    let case = |leader: &Leader| &results.records[leader.best].record.case;
    let places = results.leaders.iter().map(|leader| {
        let common = Common::of(case(leader));
        let size = case(leader).size_bytes.map(|size| format!("{} ", size_text(size))).unwrap_or_default();
        let best = (name(case(leader)), (size, leader_value(results, leader)));
        (format!("{}, {}", common.workload, common.place()), best)
    });
    let words = |best: Vec<(String, (String, String))>| {
        let words = |(name, sizes): (String, Vec<(String, String)>)| match sizes.as_slice() {
            [(size, value), (other_size, other_value)] => {
                format!("{size}and {other_size}{name} {value} and {other_value}")
            }
            sizes => sizes.iter().map(|(size, value)| format!("{size}{name} {value}")).collect(),
        };
        grouped(best).into_iter().map(words).collect::<Vec<_>>().join("; ")
    };
    grouped(places).into_iter().map(|(place, best)| (place, words(best))).collect()
}

/// By what a leader is the best, and how many are as good.
fn leader_value(results: &AnalysedResults<'_>, leader: &Leader) -> String {
    let best = &results.records[leader.best];
    let first = &columns::of(best.record.case.workload)[0];
    let value = best.trusted().and_then(|summary| first.bare(summary)).unwrap_or_default();
    match leader.as_good.len() {
        0 => value,
        others => format!("{value} (+{others})"),
    }
}

/// Whether there were too few trials for an interval.
fn has_no_interval(analysed: &AnalysedRecord<'_>) -> bool {
    analysed.trusted().is_none_or(|summary| summary.iteration_ns.interval.is_none())
}

/// What the study concluded, and whether that holds here.
fn conclusions(results: &AnalysedResults<'_>, style: &Style) -> Vec<String> {
    let study = results.study.as_ref().map(study::study).filter(|study| !study.conclusions.is_empty());
    let Some(study) = study else { return Vec::new() };
    let heading = format!("does it hold here? {}", study.title);
    section(&heading, verdicts(&study.conclusions, false, style), style)
}

/// Mechanisms by sizes, in one place or in several side by side.
struct Matrix {
    heading: String,
    /// The places, each with how many columns it has. One place alone is named in the heading.
    places: Vec<(String, usize)>,
    /// The sizes, place by place.
    titles: Vec<String>,
    /// A mechanism, and its cells in the order of the titles.
    rows: Vec<(String, Vec<Cell>)>,
}

/// A value, and the signs of what a reader must know about it.
struct Cell {
    value: String,
    signs: String,
}

/// The cases of one workload in one place.
type Group<'a> = (Common, Vec<&'a AnalysedRecord<'a>>);

/// The matrices of `groups`: places of one workload side by side where they fit, otherwise one below the other.
fn matrices(groups: &[Group<'_>], style: &Style) -> Vec<Matrix> {
    let workloads = groups.chunk_by(|(a, _), (b, _)| a.is_like(b));
    workloads
        .flat_map(|places| {
            let together = Matrix::of(places);
            match places {
                [_, _, ..] if !together.fits(style) => {
                    places.iter().map(|place| Matrix::of(std::slice::from_ref(place))).collect()
                }
                _ => vec![together],
            }
        })
        .collect()
}

impl Matrix {
    /// The matrix of `groups`, of which there is at least one, and which differ by their place alone.
    fn of(groups: &[Group<'_>]) -> Self {
        let common = groups[0].0;
        let column = &columns::of(common.workload)[0];
        let sizes = |cases: &[&AnalysedRecord<'_>]| -> BTreeSet<Option<Size>> {
            cases.iter().map(|case| case.record.case.size_bytes).collect()
        };
        let all_sizes =
            sizes(&groups.iter().flat_map(|(_, cases)| cases.iter().copied()).collect::<Vec<_>>());
        let title = |size: &Option<Size>| match size {
            Some(size) => size_text(*size),
            None if all_sizes.len() == 1 => String::new(),
            None => "no payload".to_owned(),
        };
        let columns: Vec<(Placement, Option<CpuPair>, Option<Size>)> = groups
            .iter()
            .flat_map(|(_, cases)| {
                let (placement, cpus) = (cases[0].record.case.placement, cases[0].record.case.cpus);
                sizes(cases).into_iter().map(move |size| (placement, cpus, size))
            })
            .collect();
        let cases = groups.iter().flat_map(|(_, cases)| cases);
        let mut rows = grouped(cases.map(|case| (name(&case.record.case), *case)));
        // What carries no payload counts last: few mechanisms have it.
        let by_speed = columns.iter().filter(|column| column.2.is_some());
        let by_speed: Vec<_> = by_speed.chain(columns.iter().filter(|column| column.2.is_none())).collect();
        rows.sort_by_cached_key(|(_, cases)| {
            let time = |column| in_column(cases, column)?.trusted().map(|s| s.iteration_ns.median);
            by_speed.iter().map(|column| sort_key(time(column).unwrap_or(f64::INFINITY))).collect::<Vec<_>>()
        });
        let cells = |cases: &[&AnalysedRecord<'_>]| {
            columns.iter().map(|at| Cell::of(in_column(cases, at), column)).collect()
        };
        Self {
            heading: match groups {
                [_] => heading(common, column),
                _ => format!("{}: {}", common.heading_of_all_places(), column.heading.title),
            },
            places: groups
                .iter()
                .map(|(place, cases)| (place.place_with_cpus(), sizes(cases).len()))
                .collect(),
            titles: columns.iter().map(|(_, _, size)| title(size)).collect(),
            rows: rows.iter().map(|(name, cases)| (name.clone(), cells(cases))).collect(),
        }
    }

    fn is_of_one_place(&self) -> bool {
        self.places.len() == 1
    }

    /// Whether all columns have room beside the longest name, and each place above its columns.
    fn fits(&self, style: &Style) -> bool {
        let column = self.column_width();
        let taken = INDENT.len() + self.longest_name() + self.titles.len() * column;
        let names_fit = self.places.iter().all(|(place, columns)| width(place) + SPACING <= columns * column);
        taken <= style.width && names_fit
    }

    fn longest_name(&self) -> usize {
        self.rows.iter().map(|(name, _)| width(name)).max().unwrap_or_default().min(LONGEST_NAME)
    }

    /// The columns that names take: with the heading, where that leaves room for all sizes.
    fn name_width(&self, style: &Style) -> usize {
        let with_heading = self.longest_name().max(width(&self.heading).saturating_sub(INDENT.len()));
        let taken = INDENT.len() + with_heading + self.titles.len() * self.column_width();
        if taken <= style.width { with_heading } else { self.longest_name() }
    }

    fn column_width(&self) -> usize {
        let cells = self.rows.iter().flat_map(|(_, cells)| cells).map(|cell| width(&cell.value));
        let titles = self.titles.iter().map(|title| width(title));
        SPACING + cells.chain(titles).max().unwrap_or_default() + self.signs_width()
    }

    /// The columns that signs take after a value, with the blank before them.
    fn signs_width(&self) -> usize {
        let cells = self.rows.iter().flat_map(|(_, cells)| cells);
        cells.map(|cell| width(&cell.signs)).max().unwrap_or_default()
    }

    /// The columns that are shown, by their place among all: as many as fit, from the smallest size to the largest.
    fn shown(&self, name_width: usize, style: &Style) -> Vec<usize> {
        let all = self.titles.len();
        let room =
            style.width.saturating_sub(INDENT.len() + name_width.min(LEAST_NAME)) / self.column_width();
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
        let titles = shown.iter().map(|at| right(&self.titles[*at], column - signs) + &" ".repeat(signs));
        let titles: String = titles.collect();
        let first = INDENT.len() + name_width;
        let mut lines = vec![String::new()];
        let fits = width(&self.heading) <= first;
        let heading = style.heading(&left(&self.heading, first));
        if self.is_of_one_place() && fits {
            lines.push(heading + &style.titles(&titles));
        } else {
            let places = self.places.iter().filter(|_| !self.is_of_one_place());
            let places: String = places
                .map(|(place, columns)| left(&format!("{}{place}", " ".repeat(SPACING)), columns * column))
                .collect();
            if fits {
                lines.push(heading + &style.titles(&places));
            } else {
                let heading = wrap(&self.heading, style.width, "", INDENT);
                lines.extend(heading.iter().map(|line| style.heading(line)));
                let places = (!places.is_empty()).then(|| " ".repeat(first) + &style.titles(&places));
                lines.extend(places);
            }
            lines.push(" ".repeat(first) + &style.titles(&titles));
        }
        for (name, cells) in &self.rows {
            let mut names = wrap_name(name, name_width).into_iter();
            let cells = shown.iter().map(|at| &cells[*at]);
            let cells = cells.map(|cell| right(&cell.value, column - signs) + &left(&cell.signs, signs));
            let name = left(&names.next().unwrap_or_default(), name_width);
            lines.push(format!("{INDENT}{name}{}", cells.collect::<String>()));
            lines.extend(names.map(|name| format!("{INDENT}{name}")));
        }
        if shown.len() < self.titles.len() {
            lines.push(format!("{INDENT}{} of {} sizes; --detail shows all", shown.len(), self.titles.len()));
        }
        lines
    }
}

/// The heading of the matrix of `common`, which shows `column`.
fn heading(common: Common, column: &Column) -> String {
    format!("{}: {}", common.heading_of_all_sizes(), column.heading.title)
}

/// The one of `cases`, all of one mechanism, that is of this place and size.
fn in_column<'a>(
    cases: &[&'a AnalysedRecord<'a>],
    (placement, cpus, size): &(Placement, Option<CpuPair>, Option<Size>),
) -> Option<&'a AnalysedRecord<'a>> {
    let is = |case: &Case| (case.placement, case.cpus, case.size_bytes) == (*placement, *cpus, *size);
    cases.iter().copied().find(|case| is(&case.record.case))
}

/// A number as a key by which to sort.
fn sort_key(number: f64) -> u64 {
    // The bits of numbers that are not below 0 are in the order of the numbers.
    number.max(0.0).to_bits()
}

impl Cell {
    fn of(analysed: Option<&AnalysedRecord<'_>>, column: &Column) -> Self {
        let Some(analysed) = analysed else { return Self { value: "-".to_owned(), signs: String::new() } };
        let value = match (&analysed.record.outcome, analysed.trusted()) {
            (Outcome::Missed { .. }, _) | (_, None) => analysed.outcome_name().to_owned(),
            (_, Some(summary)) => column.bare(summary).unwrap_or_else(|| "-".to_owned()),
        };
        let signs: BTreeSet<char> =
            shown_warnings(analysed).filter_map(|warning| marks::mark(warning).sign).collect();
        let signs: String = signs.into_iter().collect();
        // A letter behind a unit would read as a part of it.
        let blank = if signs.starts_with(char::is_alphabetic) { " " } else { "" };
        Self { value, signs: format!("{blank}{signs}") }
    }
}

/// The warnings that concern what is shown here, and not percentiles or CPU time.
fn shown_warnings<'a>(analysed: &'a AnalysedRecord<'_>) -> impl Iterator<Item = &'a Warning> + 'a {
    let concern = |warning: &&Warning| {
        !matches!(warning, Warning::InstrumentEffect { .. } | Warning::SampledCpuSplit { .. })
    };
    analysed.record.warnings.iter().filter(concern)
}

/// The numbers of `warning`, where without them the value beside which its sign stands would be taken for another.
fn numbers_needed(warning: &Warning) -> Option<String> {
    match warning {
        Warning::Unsettled { .. } | Warning::TwoModes { .. } | Warning::Preempted { .. } => None,
        _ => marks::numbers(warning),
    }
}

/// What was told first, and of which mechanisms.
fn examples(told: Vec<(String, Vec<String>)>) -> String {
    /// The rest is told by the detailed form.
    const MOST: usize = 3;
    let more = if told.len() > MOST { "; --detail shows all" } else { "" };
    let each = told.into_iter().take(MOST).map(|(numbers, mut names)| {
        names.dedup();
        format!("{} {numbers}", names.join(", "))
    });
    let each = each.collect::<Vec<_>>().join("; ");
    if each.is_empty() { each } else { format!(": {each}{more}") }
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
    let item = |analysed: &&AnalysedRecord<'_>| {
        let case = &analysed.record.case;
        let namesakes =
            || cases.iter().map(|other| &other.record.case).filter(|other| name(other) == name(case));
        // What was measured in several workloads or places says in which.
        let workload =
            namesakes().any(|other| other.workload != case.workload).then(|| case.workload.to_string());
        let place = namesakes().any(|other| place(other) != place(case)).then(|| place(case));
        let differs = workload.into_iter().chain(place).collect::<Vec<_>>().join(", ");
        let differs = if differs.is_empty() { differs } else { format!(" ({differs})") };
        let Cell { value, signs } = Cell::of(Some(analysed), column);
        format!("{}{differs} {value}{signs}", name(case))
    };
    let mut lines: Vec<String> = Vec::new();
    for item in cases.iter().map(item) {
        match lines.last_mut().filter(|line| INDENT.len() + width(line) + 3 + width(&item) <= style.width) {
            Some(line) => *line = format!("{line}   {item}"),
            None => lines.push(item),
        }
    }
    lines.iter().flat_map(|line| wrap(line, style.width, INDENT, DEEPER)).collect()
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
    let reasons = not_measured(analysed.results).into_iter().chain(grouped(failed));
    let line = |(reason, cases): (String, Vec<String>)| {
        let mut names: Vec<&str> = cases.iter().filter_map(|case| case.split(' ').next()).collect();
        names.dedup();
        let count = if cases.len() == 1 { "1 case".to_owned() } else { format!("{} cases", cases.len()) };
        let line = format!("{}, {count}: {reason}", clip(&names.join(", "), style.width / 2));
        wrap(&line, style.width, INDENT, DEEPER)
    };
    reasons.flat_map(line).collect()
}

/// What the signs mean, of those that occur, and where there is more.
fn footnotes(analysed: &AnalysedResults<'_>, style: &Style) -> Vec<String> {
    let warnings = analysed.records.iter().flat_map(|analysed| {
        let of = name(&analysed.record.case);
        shown_warnings(analysed)
            .map(move |warning| (marks::mark(warning), (numbers_needed(warning), of.clone())))
    });
    let note = |(mark, cases): (Mark, Vec<(Option<String>, String)>)| {
        let sign = mark.sign.map(String::from).unwrap_or_default();
        let told = cases.into_iter().filter_map(|(told, name)| Some((told?, name)));
        (sign, format!("{}: {}{}", mark.title, mark.meaning, examples(grouped(told))))
    };
    let notes: Vec<(String, String)> = grouped(warnings).into_iter().map(note).collect();
    let more = "--detail shows every case with intervals, percentiles and CPU time";
    let unknown = analysed.leaders.iter().any(|leader| has_no_interval(&analysed.records[leader.best]));
    let unknown = unknown.then_some("too few trials for intervals: others may be as fast as the fastest");
    let sentences =
        unknown.into_iter().chain([more]).flat_map(|text| wrap(text, style.width, INDENT, DEEPER));
    let speed =
        host_effects::note(analysed).into_iter().flat_map(|text| wrap(&text, style.width, INDENT, DEEPER));
    let lines = labelled(&notes, style).into_iter().chain(speed).chain(sentences);
    [String::new()].into_iter().chain(lines).collect()
}
