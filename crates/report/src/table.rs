//! The terminal table: the sheet laid out in columns, to be read at a glance and in a pipe.
//!
//! It decides where words stand and how they are painted, not what they say.

use crate::sheet::{Block, Row, sheet};
use crate::text::{width, wrap, wrap_name};
use anstyle::{AnsiColor, Style as Paint};
use model::record::Results;

/// A narrower terminal gets lines of this many columns all the same.
const LEAST_WIDTH: usize = 80;
/// Between two columns.
const GAP: usize = 2;
/// Before everything that belongs to a heading.
const INDENT: &str = "  ";
/// Before what goes on from the line above.
const DEEPER: &str = "    ";
/// Columns of numbers have at least this width, so that those of one block stand above those of the next.
const LEAST_COLUMN: usize = 7;

const HEADING: Paint = Paint::new().bold();
const TITLES: Paint = Paint::new().dimmed();
const FAILED: Paint = AnsiColor::Red.on_default();
const SIGNS: Paint = AnsiColor::Yellow.on_default();

/// How the table is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// The columns that a line may take; less than 80 is taken as 80.
    pub width: usize,
    /// Whether to paint with ANSI escapes. Without, the table says the same.
    pub color: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: LEAST_WIDTH, color: false }
    }
}

impl Style {
    fn width(&self) -> usize {
        self.width.max(LEAST_WIDTH)
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        if self.color && !text.is_empty() { format!("{paint}{text}{paint:#}") } else { text.to_owned() }
    }
}

/// `results` as a table: a block for each workload, size and placement, its rows fastest first.
pub fn table(results: &Results, style: &Style) -> String {
    let sheet = sheet(results);
    let mut lines = wrap(&sheet.title, style.width(), "", INDENT);
    lines.extend(labelled(&sheet.head, style));
    lines.extend(blocks(&sheet.blocks, style));
    lines.extend(section("notes", labelled(&sheet.notes, style), style));
    let missing = sheet.missing.iter().flat_map(|case| wrap(case, style.width(), INDENT, DEEPER)).collect();
    lines.extend(section("not measured", missing, style));
    finish(lines)
}

/// `blocks`, each after an empty line, with the numbers of all of them in the same columns.
pub(crate) fn blocks(blocks: &[Block], style: &Style) -> Vec<String> {
    let names = blocks.iter().flat_map(|block| &block.rows).map(|row| width(&row.name));
    let longest_name = names.max().unwrap_or_default();
    blocks.iter().flat_map(|block| lay_out(block, longest_name, style)).collect()
}

/// `lines` as text.
pub(crate) fn finish(lines: Vec<String>) -> String {
    lines.join("\n") + "\n"
}

/// A heading with its lines, after an empty line; nothing where there are none.
pub(crate) fn section(heading: &str, lines: Vec<String>, style: &Style) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    [String::new(), style.paint(HEADING, heading)].into_iter().chain(lines).collect()
}

/// Texts, each behind its label.
pub(crate) fn labelled<L: AsRef<str>>(texts: &[(L, String)], style: &Style) -> Vec<String> {
    let widest = texts.iter().map(|(label, _)| width(label.as_ref())).max().unwrap_or_default();
    let line = |(label, text): &(L, String)| {
        let first = format!("{INDENT}{}  ", left(label.as_ref(), widest));
        wrap(text, style.width(), &first, &" ".repeat(width(&first)))
    };
    texts.iter().flat_map(line).collect()
}

fn lay_out(block: &Block, longest_name: usize, style: &Style) -> Vec<String> {
    let signs = block.rows.iter().map(|row| width(&row.signs)).max().unwrap_or_default();
    let room = style.width() - INDENT.len() - if signs > 0 { GAP + signs } else { 0 };
    let columns = fitting(block, room.saturating_sub(longest_name));
    let numbers: usize = columns.iter().map(|column| GAP + column.width).sum();
    let name_width = longest_name.max(width(block.rows_are)).min(room - numbers);

    let titles: Vec<&str> = columns.iter().map(|column| block.columns[column.at].title).collect();
    let titles = line(&left(block.rows_are, name_width), &titles, &columns);
    let mut lines = vec![String::new()];
    lines.extend(wrap(&block.heading, style.width(), "", INDENT).iter().map(|line| style.paint(HEADING, line)));
    lines.push(style.paint(TITLES, &titles));
    lines.extend(block.rows.iter().flat_map(|row| row_lines(row, name_width, &columns, style)));
    lines.extend(block.below.iter().flat_map(|text| wrap(text, style.width(), INDENT, DEEPER)));
    lines
}

/// A column that has its place in the table.
struct Placed {
    /// Its index in the block.
    at: usize,
    width: usize,
}

/// The columns of `block`, without as many of the spare ones, last first, as do not fit in `room`.
fn fitting(block: &Block, room: usize) -> Vec<Placed> {
    let width_of = |at: usize| {
        let cells = block.rows.iter().filter_map(|row| row.cells[at].as_deref()).map(width);
        cells.chain([width(block.columns[at].title), LEAST_COLUMN]).max().unwrap_or_default()
    };
    let mut columns: Vec<Placed> =
        (0..block.columns.len()).map(|at| Placed { at, width: width_of(at) }).collect();
    while columns.iter().map(|column| GAP + column.width).sum::<usize>() > room
        && let Some(spare) = columns.iter().rposition(|column| block.columns[column.at].spare)
    {
        columns.remove(spare);
    }
    columns
}

/// One row. A name that is longer than its column goes on below.
fn row_lines(row: &Row, name_width: usize, columns: &[Placed], style: &Style) -> Vec<String> {
    let names = wrap_name(&row.name, name_width);
    let (first, others) = names.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let cells: Vec<&str> = columns.iter().map(|column| row.cells[column.at].as_deref().unwrap_or("-")).collect();
    let mut numbers = line(&left(first, name_width), &cells, columns);
    if row.failed {
        numbers = style.paint(FAILED, &numbers);
    }
    if !row.signs.is_empty() {
        numbers = format!("{numbers}{}{}", " ".repeat(GAP), style.paint(SIGNS, &row.signs));
    }
    let others = others.iter().map(|name| format!("{INDENT}{name}"));
    std::iter::once(numbers).chain(others).collect()
}

/// A name and the cells after it, each at the right of its column.
fn line(name: &str, cells: &[&str], columns: &[Placed]) -> String {
    let cells = cells.iter().zip(columns).map(|(cell, column)| format!("{}{}", " ".repeat(GAP), right(cell, column.width)));
    format!("{INDENT}{name}{}", cells.collect::<String>())
}

fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn show() {
        for width in [80, 120] {
            std::fs::write(format!("/tmp/t-report/show-{width}.txt"), table(&fixture::results(), &Style { width, color: false })).unwrap();
        }
        std::fs::write("/tmp/t-report/show.md", crate::markdown(&fixture::results())).unwrap();
        crate::csv(&fixture::results(), std::fs::File::create("/tmp/t-report/show.csv").unwrap()).unwrap();
        crate::json(&fixture::results(), std::fs::File::create("/tmp/t-report/show.json").unwrap()).unwrap();
    }
}
