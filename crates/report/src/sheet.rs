//! Results as a sheet: blocks of rows of cells, with what must be said about them.
//!
//! The terminal table and the Markdown document print the same sheet. A sheet is words; how they are
//! laid out is not decided here.

use crate::columns::{self, Column};
use crate::quantity::time;
use crate::text::clean;
use crate::{head, marks, summary_of};
use model::floor::{self, floor_of};
use model::record::{Outcome, Results};
use model::summary::Summary;
use model::topology::CpuPair;
use model::{Case, Endpoints, Placement, Record, Size, Workload};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

/// Everything that a report says, in words.
pub(crate) struct Sheet {
    /// The tool and the run.
    pub(crate) title: String,
    /// What was measured on, by what and how long, each with a label.
    pub(crate) head: Vec<(&'static str, String)>,
    /// The results.
    pub(crate) blocks: Vec<Block>,
    /// What the signs and the columns mean, each with the sign or the column.
    pub(crate) notes: Vec<(String, String)>,
    /// What was asked for and is not in the results, with the reason.
    pub(crate) missing: Vec<String>,
}

/// Rows that can be compared with each other.
pub(crate) struct Block {
    /// What they have in common.
    pub(crate) heading: String,
    /// What a row is.
    pub(crate) rows_are: &'static str,
    /// The columns after the name.
    pub(crate) columns: Vec<Heading>,
    /// The rows.
    pub(crate) rows: Vec<Row>,
    /// What is to be said under the rows.
    pub(crate) below: Vec<String>,
}

/// The head of one column.
pub(crate) struct Heading {
    /// What stands above the column.
    pub(crate) title: &'static str,
    /// Whether it can go where there is little room.
    pub(crate) spare: bool,
}

/// One row of a block.
pub(crate) struct Row {
    /// The first column.
    pub(crate) name: String,
    /// The other columns; `None` is a value that is missing.
    pub(crate) cells: Vec<Option<String>>,
    /// The signs of its warnings.
    pub(crate) signs: String,
    /// Whether it failed, so that it has no values.
    pub(crate) failed: bool,
}

/// A record with its summary, which is worked out once.
pub(crate) struct Measured<'a> {
    /// The record.
    pub(crate) record: &'a Record,
    /// What its samples say.
    pub(crate) summary: Option<Summary>,
}

/// The sheet of `results`.
pub(crate) fn sheet(results: &Results) -> Sheet {
    let measured = results.records.iter().map(|record| Measured { record, summary: summary_of(record) });
    let (floors, cases): (Vec<_>, Vec<_>) = measured.partition(|measured| measured.record.floor);
    let mut blocks: Vec<Block> =
        comparable(&cases).into_iter().map(|(what, rows)| block(what, rows, &floors)).collect();
    blocks.extend(floors_block(&floors));
    Sheet {
        title: head::title(&results.header),
        head: head::lines(results, &cases),
        blocks,
        notes: notes(results),
        missing: missing(results),
    }
}

/// What the rows of one block have in common, in the order of the blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Common {
    workload: Workload,
    placement: Placement,
    cpus: Option<CpuPair>,
    endpoints: Endpoints,
    size_bytes: Option<Size>,
}

impl Common {
    /// Operations share one block whatever their size: each is a row of its own.
    fn of(case: &Case) -> Self {
        Self {
            workload: case.workload,
            placement: case.placement,
            cpus: case.cpus,
            endpoints: case.endpoints,
            size_bytes: case.size_bytes.filter(|_| case.workload != Workload::Cost),
        }
    }

    fn heading(&self) -> String {
        let size = match (self.size_bytes, self.workload) {
            (Some(size), _) => format!(", {size}"),
            (None, Workload::Cost) => String::new(),
            (None, _) => ", no payload".to_owned(),
        };
        let threads = if self.endpoints == Endpoints::Threads { ", threads" } else { "" };
        let cpus = self.cpus.map(|pair| format!(" ({})", cpus_text(pair))).unwrap_or_default();
        format!("{}{size}, {}{cpus}{threads}, per {}", self.workload, self.placement, self.workload.turn())
    }
}

fn cpus_text(pair: CpuPair) -> String {
    if pair.near == pair.far {
        format!("cpu {}", pair.near)
    } else {
        format!("cpus {},{}", pair.near, pair.far)
    }
}

/// The CPUs of `case`, near's first; `None` when it is pinned to none.
pub(crate) fn cpus(case: &Case) -> Option<String> {
    case.cpus.map(cpus_text)
}

fn comparable<'a, 'r>(cases: &'a [Measured<'r>]) -> BTreeMap<Common, Vec<&'a Measured<'r>>> {
    let mut blocks: BTreeMap<Common, Vec<&Measured<'_>>> = BTreeMap::new();
    for case in cases {
        blocks.entry(Common::of(&case.record.case)).or_default().push(case);
    }
    blocks
}

fn block(common: Common, mut rows: Vec<&Measured<'_>>, floors: &[Measured<'_>]) -> Block {
    rows.sort_by(|a, b| fastest_first(a, b));
    let rows_are = if common.workload == Workload::Cost { "operation" } else { "mechanism" };
    let floor = floor_line(common, &rows, floors);
    let below = floor.into_iter().chain(remarks(&rows)).collect();
    of_rows(common.heading(), rows_are, columns::of(common.workload), &rows, below)
}

/// The floors, in the order in which a reader meets them: the instrument, the kernel, a hand-over, copies.
fn floors_block(floors: &[Measured<'_>]) -> Option<Block> {
    const ORDER: [&str; 5] =
        [floor::NULL, floor::SYSCALL, floor::CONTEXT_SWITCH, floor::CACHE_LINE, floor::MEMCPY];
    let mut rows: Vec<&Measured<'_>> = floors.iter().collect();
    rows.sort_by_key(|row| {
        let case = &row.record.case;
        let rank = ORDER.iter().position(|name| *name == case.spec.name).unwrap_or(ORDER.len());
        (rank, case.cpus, case.endpoints, case.size_bytes)
    });
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
        columns: columns.iter().map(|c| Heading { title: c.title, spare: c.spare }).collect(),
        rows: rows.iter().map(|row| row.row(&columns)).collect(),
        below,
    }
}

impl Measured<'_> {
    fn row(&self, columns: &[&Column]) -> Row {
        let mut cells: Vec<Option<String>> = columns.iter().map(|column| self.cell(column)).collect();
        let failed = matches!(self.record.outcome, Outcome::Failed { .. });
        if failed {
            cells[0] = Some("failed".to_owned());
        }
        Row { name: self.name(), cells, signs: marks::signs(self.record), failed }
    }

    /// A failed case has no values: what was measured before it failed is not to be trusted.
    fn cell(&self, column: &Column) -> Option<String> {
        match (&self.record.outcome, &self.summary) {
            (Outcome::Failed { .. }, _) | (_, None) => None,
            (_, Some(summary)) => (column.cell)(&self.record.case, summary),
        }
    }

    /// The name of the row: what the block's heading leaves open.
    fn name(&self) -> String {
        let case = &self.record.case;
        let size = case.size_bytes.filter(|_| case.workload == Workload::Cost);
        let size = size.map(|size| format!(" {size}")).unwrap_or_default();
        clean(&format!("{}{size}", case.spec))
    }

    fn turn_ns(&self) -> Option<f64> {
        match self.record.outcome {
            Outcome::Failed { .. } => None,
            _ => self.summary.as_ref().map(|summary| summary.turn_ns.median),
        }
    }
}

/// Rows without a time come last.
fn fastest_first(a: &Measured<'_>, b: &Measured<'_>) -> Ordering {
    let key = |row: &Measured<'_>| row.turn_ns().unwrap_or(f64::INFINITY);
    key(a).total_cmp(&key(b)).then_with(|| a.record.case.cmp(&b.record.case))
}

/// What the floor of a block is and how long it takes, or why there is none.
fn floor_line(common: Common, rows: &[&Measured<'_>], floors: &[Measured<'_>]) -> Option<String> {
    let Some(floor) = rows.iter().find_map(|row| floor_of(&row.record.case)) else {
        return match common {
            Common { workload: Workload::Cost, .. } => None,
            Common { cpus: None, .. } => Some("floor: none for endpoints that are not pinned".to_owned()),
            Common { size_bytes: None, .. } => Some("floor: none without a payload".to_owned()),
            _ => Some("floor: none, these are floors themselves".to_owned()),
        };
    };
    let measured = |case: &Case| floors.iter().find(|row| row.record.case == *case)?.turn_ns();
    let turn = floor.turn_ns(measured).and_then(time).map(|time| format!(" = {time}"));
    Some(format!("floor: {floor}{}", turn.unwrap_or_default()))
}

/// What the signs of `rows` stand for here, and why the failed ones failed.
fn remarks(rows: &[&Measured<'_>]) -> Vec<String> {
    let warnings = rows.iter().flat_map(|row| {
        row.record.warnings.iter().filter_map(|w| Some((marks::mark(w), (marks::numbers(w)?, row.name()))))
    });
    let warnings = grouped(warnings).into_iter().map(|(mark, numbers)| {
        let each = grouped(numbers.into_iter());
        let each: Vec<String> =
            each.into_iter().map(|(numbers, names)| format!("{} {numbers}", names.join(", "))).collect();
        format!("{}{}: {}", mark.prefix(), mark.title, each.join("; "))
    });
    let failures = rows.iter().filter_map(|row| match &row.record.outcome {
        Outcome::Failed { error } => Some((clean(error), row.name())),
        _ => None,
    });
    let failures =
        grouped(failures).into_iter().map(|(error, names)| format!("{} failed: {error}", names.join(", ")));
    warnings.chain(failures).collect()
}

/// What the signs and columns mean, for those that occur.
fn notes(results: &Results) -> Vec<(String, String)> {
    let mut notes = vec![
        ("±".to_owned(), "half the 95% interval of the median over launches".to_owned()),
        ("cpu".to_owned(), "CPU time of both ends together; so are switches".to_owned()),
    ];
    if results.records.iter().any(|record| floor_of(&record.case).is_some()) {
        let multiple = "the time over that of the floor in the same round, median over rounds";
        notes.push(("×floor".to_owned(), multiple.to_owned()));
    }
    let warnings = results.records.iter().flat_map(|record| &record.warnings);
    let kinds = grouped(warnings.map(|warning| (marks::mark(warning), warning)));
    notes.extend(kinds.into_iter().map(|(mark, warnings)| {
        let sign = mark.sign.map_or(String::new(), String::from);
        (sign, format!("{}: {}; {}", mark.title, mark.meaning, warnings[0].advice()))
    }));
    notes
}

/// The cases that the plan dropped and those that it kept and that have no record, by reason.
fn missing(results: &Results) -> Vec<String> {
    /// More cases than this with one reason are counted, not named.
    const NAMED: usize = 3;

    let recorded: HashSet<&Case> = results.records.iter().map(|record| &record.case).collect();
    let plan = &results.header.plan;
    let unfinished = plan.cases.iter().filter(|case| !recorded.contains(case));
    let unfinished = unfinished.map(|case| ("the run ended before they were done".to_owned(), case.key()));
    let dropped = plan.dropped.iter().map(|dropped| (clean(&dropped.reason), dropped.case.clone()));
    let by_reason = grouped(dropped.chain(unfinished)).into_iter();
    by_reason
        .map(|(reason, cases)| {
            let named: Vec<String> = cases.iter().take(NAMED).map(|case| clean(case)).collect();
            let more = match cases.len().saturating_sub(NAMED) {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            format!("{}{more}: {reason}", named.join(", "))
        })
        .collect()
}

/// The values of each key, keys in the order in which they first occur.
fn grouped<K: PartialEq, V>(pairs: impl Iterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}
