//! Where words stand: blocks in columns, texts behind labels, lines no longer than they may be.
//!
//! It decides how things look, not what they say: that is decided in `sheet`.

use super::block::{Block, Heading, Row, Tone};
use super::grid::Grid;
use super::study::{Concluded, StudyWords};
use crate::words::{clean, width, wrap, wrap_name};
use anstyle::{AnsiColor, Style as Paint};
use std::collections::HashSet;

/// A narrower terminal gets lines of this many columns all the same.
const LEAST_WIDTH: usize = 80;
/// The same of matrices, which need less room.
const LEAST_MATRIX_WIDTH: usize = 60;
/// Between two columns.
const SPACING: usize = 2;
/// Before everything that belongs to a heading.
pub(crate) const INDENT: &str = "  ";
/// Before what goes on from the line above.
pub(crate) const DEEPER: &str = "    ";
/// Columns of numbers have at least this width, so that those of one block stand above those of the next.
const LEAST_COLUMN: usize = 6;
/// A longer name is wrapped, so that one with many parameters does not push all the numbers away.
const LONGEST_NAME: usize = 34;

/// A grid that would leave less than this for its names is listed row by row; a block has names of its own width.
const LEAST_NAME: usize = 14;
const HEADING: Paint = Paint::new().bold();
const TITLES: Paint = Paint::new().dimmed();
const PLAIN: Paint = Paint::new();
const DOUBTFUL: Paint = AnsiColor::Yellow.on_default();
const GOOD: Paint = AnsiColor::Green.on_default();
const BAD: Paint = AnsiColor::Red.on_default();

/// How text for a terminal is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// The columns that a line may take. Matrices take at least 60, everything else at least 80.
    pub width: usize,
    /// Whether to paint with ANSI escapes. Without them the text says the same.
    pub color: bool,
    /// Whether results are shown case by case, with all columns, and not as matrices.
    pub detail: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: LEAST_WIDTH, color: false, detail: false }
    }
}

impl Style {
    /// The same with lines that hold all but matrices.
    pub(crate) fn for_tables(&self) -> Self {
        Self { width: self.width.max(LEAST_WIDTH), ..*self }
    }

    /// The same with lines that hold matrices.
    pub(crate) fn for_matrices(&self) -> Self {
        Self { width: self.width.max(LEAST_MATRIX_WIDTH), ..*self }
    }

    pub(crate) fn heading(&self, text: &str) -> String {
        self.paint(HEADING, text)
    }

    pub(crate) fn titles(&self, text: &str) -> String {
        self.paint(TITLES, text)
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        if self.color { format!("{paint}{text}{paint:#}") } else { text.to_owned() }
    }
}

/// `text` as a paragraph under a heading.
pub fn wrapped(text: &str, style: &Style) -> String {
    finish(&wrap(&clean(text), style.for_tables().width, INDENT, DEEPER))
}

/// `text` after `label`, on whose first line it begins; below it is as far to the right as the label is long.
pub fn wrapped_after(label: &str, text: &str, style: &Style) -> String {
    let below = " ".repeat(label.chars().count());
    finish(&wrap(&clean(text), style.for_tables().width, label, &below))
}

/// `lines` as text, without blanks at their ends.
pub(crate) fn finish(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A heading with its lines, after an empty line; nothing where there are none.
pub(crate) fn section(heading: &str, lines: Vec<String>, style: &Style) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    let heading = wrap(heading, style.width, "", INDENT).into_iter().map(|line| style.heading(&line));
    [String::new()].into_iter().chain(heading).chain(lines).collect()
}

/// Texts, each behind its label, or below it where that is long.
pub(crate) fn labelled<L: AsRef<str>>(texts: &[(L, String)], style: &Style) -> Vec<String> {
    /// A longer label leaves too few columns beside it.
    const LONGEST_LABEL: usize = 24;
    let is_short = |columns: &usize| *columns <= LONGEST_LABEL;
    let widest = texts.iter().map(|(label, _)| width(label.as_ref())).filter(is_short).max().unwrap_or(0);
    let lines = |(label, text): &(L, String)| {
        let label = label.as_ref();
        if width(label) > LONGEST_LABEL {
            let above = wrap(label, style.width, INDENT, INDENT);
            return [above, wrap(text, style.width, DEEPER, DEEPER)].concat();
        }
        let first = format!("{INDENT}{}  ", left(label, widest));
        wrap(text, style.width, &first, &" ".repeat(width(&first)))
    };
    texts.iter().flat_map(lines).collect()
}

/// `blocks`, each after an empty line. They share the choice of spare columns, and the width of the name as far as that
/// leaves names readable: a block with so many columns that it does not has names of its own width.
pub(crate) fn blocks(blocks: &[Block], style: &Style) -> Vec<String> {
    let names = blocks.iter().flat_map(|block| &block.rows).map(|row| width(&row.name));
    let titles = blocks.iter().map(|block| width(block.rows_are));
    let longest = names.chain(titles).max().unwrap_or_default().min(LONGEST_NAME);
    let left_for_name = |block: &Block| room(block, style).saturating_sub(taken(&needed(block))).min(longest);
    let readable = blocks.iter().map(left_for_name).filter(|left| *left >= LEAST_NAME.min(longest));
    let shared = readable.min().unwrap_or(longest);
    let name_width = |block: &Block| left_for_name(block).min(shared);
    let left_out: HashSet<&str> =
        blocks.iter().flat_map(|block| too_many(block, room(block, style) - name_width(block))).collect();
    blocks.iter().flat_map(|block| lay_out(block, name_width(block), &left_out, style)).collect()
}

/// A study: what it concluded, its tables, its figures.
pub(crate) fn study(study: &StudyWords, style: &Style) -> Vec<String> {
    let title = wrap(&study.title, style.width, "", INDENT);
    let title = title.iter().map(|line| style.heading(line));
    let conclusions = section("does it hold here?", verdicts(&study.conclusions, true, style), style);
    let sums = study.sums.iter().flat_map(|sum| wrap(sum, style.width, INDENT, DEEPER));
    let grids = study.grids.iter().flat_map(|of_study| grid(of_study, style));
    [String::new()].into_iter().chain(title).chain(sums).chain(conclusions).chain(grids).collect()
}

/// Conclusions behind their verdicts, with what these stand on if `evidence` is wanted; else with what would decide those that are open.
pub(crate) fn verdicts(conclusions: &[Concluded], evidence: bool, style: &Style) -> Vec<String> {
    let longest = conclusions.iter().map(|conclusion| width(conclusion.verdict)).max().unwrap_or_default();
    let indent = " ".repeat(INDENT.len() + longest + SPACING);
    let lines = conclusions.iter().flat_map(|conclusion| {
        let paint = match conclusion.holds {
            Some(true) => GOOD,
            Some(false) => BAD,
            None => DOUBTFUL,
        };
        let claim = wrap(&conclusion.claim, style.width, &indent, &indent);
        let verdict = left(&format!("{INDENT}{}", conclusion.verdict), indent.len());
        let first = claim.first().map(|line| line.trim_start()).unwrap_or_default();
        let first = style.paint(paint, &verdict) + first;
        let behind = if evidence { &conclusion.evidence[..] } else { conclusion.open.as_slice() };
        let behind = behind.iter().flat_map(|text| {
            wrap(text, style.width, &format!("{indent}{INDENT}"), &format!("{indent}{DEEPER}"))
        });
        let others = claim.into_iter().skip(1).chain(behind).collect::<Vec<_>>();
        [first].into_iter().chain(others).collect::<Vec<_>>()
    });
    lines.collect()
}

/// A grid after an empty line: in columns where they fit, else row by row.
pub(crate) fn grid(grid: &Grid, style: &Style) -> Vec<String> {
    let cells =
        |at: usize| grid.rows.iter().filter_map(move |(_, cells)| cells.get(at)).map(|cell| width(cell));
    let widths: Vec<usize> = (0..grid.columns.len())
        .map(|at| cells(at).chain([width(&grid.columns[at]), LEAST_COLUMN]).max().unwrap_or_default())
        .collect();
    let taken: usize = widths.iter().map(|width| SPACING + width).sum();
    let room = style.width.saturating_sub(INDENT.len() + taken);
    let names = grid.rows.iter().map(|(name, _)| width(name)).max().unwrap_or_default();
    let mut lines = vec![String::new()];
    lines.extend(wrap(&grid.heading, style.width, "", INDENT).iter().map(|line| style.heading(line)));
    let words = grid.rows.iter().flat_map(|(name, _)| name.split_whitespace()).map(width);
    if room < words.chain([names.min(LEAST_NAME)]).max().unwrap_or_default() {
        lines.extend(grid.rows.iter().flat_map(|(name, cells)| listed(name, &grid.columns, cells, style)));
    } else if !grid.rows.is_empty() {
        let name_width = names.min(room);
        let line = |name: &str, cells: &[String]| {
            let cells = cells.iter().zip(&widths).map(|(cell, width)| right(cell, SPACING + width));
            format!("{INDENT}{}{}", left(name, name_width), cells.collect::<String>())
        };
        lines.push(style.titles(&line("", &grid.columns)));
        for (name, cells) in &grid.rows {
            let mut names = wrap(name, name_width, "", "").into_iter();
            lines.push(line(&names.next().unwrap_or_default(), cells));
            lines.extend(names.map(|name| format!("{INDENT}{name}")));
        }
    }
    lines.extend(grid.below.iter().flat_map(|text| wrap(text, style.width, INDENT, DEEPER)));
    lines
}

/// A row of a grid whose columns do not fit.
fn listed(name: &str, columns: &[String], cells: &[String], style: &Style) -> Vec<String> {
    let cells = columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
    let cells = cells.map(|(column, cell)| format!("{}: {}", column.trim(), cell.trim()));
    let lines = cells.flat_map(|cell| wrap(&cell, style.width, DEEPER, &format!("{DEEPER}{INDENT}")));
    wrap(name, style.width, INDENT, DEEPER).into_iter().chain(lines).collect()
}

/// `block` without those spare columns whose titles are in `left_out`.
fn lay_out(block: &Block, name_width: usize, left_out: &HashSet<&str>, style: &Style) -> Vec<String> {
    let mut columns = placed(block);
    columns.retain(|column| !(column.heading.spare && left_out.contains(column.heading.title)));
    let titles = columns.iter().map(|column| column.heading.title);
    let titles = line(block.rows_are, name_width, titles, &columns);
    let heading = wrap(&block.heading, style.width, "", INDENT);

    let mut lines = vec![String::new()];
    lines.extend(heading.iter().map(|line| style.heading(line)));
    lines.push(style.titles(&titles));
    lines.extend(block.rows.iter().flat_map(|row| row_lines(row, name_width, &columns, style)));
    lines.extend(block.below.iter().flat_map(|text| wrap(text, style.width, INDENT, DEEPER)));
    lines
}

/// What a line has for the name and the numbers of `block`, what stands after them taken off.
fn room(block: &Block, style: &Style) -> usize {
    let tail = block.rows.iter().map(|row| width(&row.tail)).max().unwrap_or_default();
    style.width - INDENT.len() - if tail > 0 { SPACING + tail } else { 0 }
}

/// A column with its place in the table.
struct Placed<'a> {
    heading: &'a Heading,
    /// Its index in the block.
    at: usize,
    width: usize,
}

/// All columns of `block`.
fn placed(block: &Block) -> Vec<Placed<'_>> {
    let widest = |at: usize, heading: &Heading| {
        let cells = block.rows.iter().filter_map(|row| row.cells[at].as_deref()).map(width);
        cells.chain([width(heading.title), LEAST_COLUMN]).max().unwrap_or_default()
    };
    let columns = block.columns.iter().enumerate();
    columns.map(|(at, heading)| Placed { heading, at, width: widest(at, heading) }).collect()
}

/// What `columns` take of a line.
fn taken(columns: &[Placed<'_>]) -> usize {
    columns.iter().map(|column| SPACING + column.width).sum()
}

/// The columns of `block` that are not spare.
fn needed(block: &Block) -> Vec<Placed<'_>> {
    placed(block).into_iter().filter(|column| !column.heading.spare).collect()
}

/// The titles of as many of the spare columns of `block`, from the last, as do not fit in `room`.
fn too_many(block: &Block, room: usize) -> Vec<&'static str> {
    let mut columns = placed(block);
    let mut too_many = Vec::new();
    while taken(&columns) > room
        && let Some(spare) = columns.iter().rposition(|column| column.heading.spare)
    {
        too_many.push(columns.remove(spare).heading.title);
    }
    too_many
}

/// One row. A name that is longer than its column goes on below.
fn row_lines(row: &Row, name_width: usize, columns: &[Placed<'_>], style: &Style) -> Vec<String> {
    let mut names = wrap_name(&row.name, name_width).into_iter();
    let cells = columns.iter().map(|column| row.cells[column.at].as_deref().unwrap_or("-"));
    let numbers = line(&names.next().unwrap_or_default(), name_width, cells, columns);
    let (of_numbers, of_tail) = match row.tone {
        Tone::Plain => (PLAIN, PLAIN),
        Tone::Doubtful => (PLAIN, DOUBTFUL),
        Tone::Good => (GOOD, GOOD),
        Tone::Bad => (BAD, BAD),
    };
    let tail = match row.tail.as_str() {
        "" => String::new(),
        tail => format!("{}{}", " ".repeat(SPACING), style.paint(of_tail, tail)),
    };
    let others = names.map(|name| format!("{INDENT}{name}"));
    [style.paint(of_numbers, &numbers) + &tail].into_iter().chain(others).collect()
}

/// A name at the left of its column and cells at the right of theirs.
fn line<'a>(
    name: &str,
    name_width: usize,
    cells: impl Iterator<Item = &'a str>,
    columns: &[Placed<'_>],
) -> String {
    let cells = cells.zip(columns).map(|(cell, column)| right(cell, SPACING + column.width));
    format!("{INDENT}{}{}", left(name, name_width), cells.collect::<String>())
}

pub(crate) fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

pub(crate) fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}
