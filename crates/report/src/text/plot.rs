//! A chart for the terminal: one line a row, its median and its interval on a common logarithmic axis.
//!
//! It stands below the table and says what the table says, by eye. It is written here because what there is draws
//! curves, and neither intervals nor names.

use super::block::Block;
use super::columns::{self, parse_metric};
use super::layout::{INDENT, Style, finish, section};
use super::sheet::sheet;
use crate::quantity;
use crate::scale::{Scale, tick_text};
use crate::words::{clip, width};
use analysis::analysed::AnalysedResults;
use model::Invalid;
use model::estimate::Estimate;
use model::units::Unit;

/// A longer name is cut off, so that there is room for the chart.
const LONGEST_NAME: usize = 34;
/// The columns that the words of a number take.
const NUMBER: usize = 9;
/// Fewer columns than this are no chart.
const LEAST_CHART: usize = 24;
/// About how many marks a linear axis would have.
const TICKS: f64 = 6.0;

/// `results` as charts of the column `metric`, or of each workload's first, a chart for each block of the table.
pub fn plot(results: &AnalysedResults<'_>, metric: Option<&str>, style: &Style) -> Result<String, Invalid> {
    metric.map(parse_metric).transpose()?;
    let style = &style.for_tables();
    let blocks = sheet(results).blocks;
    let charts: Vec<Chart> = blocks.iter().filter_map(|block| Chart::from_block(block, metric)).collect();
    let names = charts.iter().flat_map(|chart| &chart.rows).map(|(name, _)| width(name)).max();
    let name_width = names.unwrap_or_default().min(LONGEST_NAME);
    let lines = charts.iter().flat_map(|chart| {
        let axis = Axis::spanning(chart.rows.iter().map(|(_, number)| number), name_width, style);
        section(&format!("{} of {}", chart.title, chart.heading), axis.chart(chart, name_width), style)
    });
    Ok(finish(&lines.collect::<Vec<_>>()))
}

/// The rows of one block that have a number that a logarithmic axis can show.
struct Chart<'a> {
    heading: &'a str,
    title: &'static str,
    unit: Unit,
    rows: Vec<(&'a str, Estimate)>,
}

impl<'a> Chart<'a> {
    fn from_block(block: &'a Block, metric: Option<&str>) -> Option<Self> {
        let wanted = metric.unwrap_or(columns::shown_of(block.common?.workload)[0].heading.title);
        let at = block.columns.iter().position(|column| column.title == wanted)?;
        let (title, unit) = (block.columns[at].title, block.columns[at].unit?);
        let number = |number: &Estimate| number.median > 0.0 && number.median.is_finite();
        let rows =
            block.rows.iter().filter_map(|row| Some((row.name.as_str(), row.numbers[at].filter(number)?)));
        let rows: Vec<(&str, Estimate)> = rows.collect();
        (!rows.is_empty()).then_some(Self { heading: &block.heading, title, unit, rows })
    }
}

/// A logarithmic axis of some columns.
struct Axis {
    scale: Scale,
    columns: usize,
}

impl Axis {
    /// The axis that holds `numbers`, from one mark to another.
    fn spanning<'a>(numbers: impl Iterator<Item = &'a Estimate>, name_width: usize, style: &Style) -> Self {
        let ends = numbers.flat_map(|number| {
            let (low, high) = number.interval.unwrap_or((number.median, number.median));
            [low, high, number.median]
        });
        let taken = INDENT.len() + name_width + 2 + NUMBER + 2;
        let columns = style.width.saturating_sub(taken).max(LEAST_CHART);
        Self { scale: Scale::between_marks(ends), columns }
    }

    /// The column of `value`.
    fn place(&self, value: f64) -> usize {
        (self.scale.place(value) * (self.columns - 1) as f64).round() as usize
    }

    fn chart(&self, chart: &Chart<'_>, name_width: usize) -> Vec<String> {
        let rows = chart.rows.iter().map(|(name, number)| {
            let name = clip(name, name_width);
            let pad = " ".repeat(name_width - width(&name));
            let words = clip(&quantity::number(number.median, chart.unit), NUMBER);
            format!("{INDENT}{name}{pad}  {words:>NUMBER$}  {}", self.row(*number))
        });
        let margin = " ".repeat(INDENT.len() + name_width + 2 + NUMBER + 2);
        rows.chain([margin + &self.marks(chart.unit)]).collect()
    }

    /// A median between the ends of its interval: `├──●─┤`.
    fn row(&self, number: Estimate) -> String {
        let mut line = vec![' '; self.columns];
        if let Some((low, high)) = number.interval {
            let (low, high) = (self.place(low), self.place(high));
            line[low..=high].fill('─');
            (line[low], line[high]) = ('├', '┤');
        }
        line[self.place(number.median)] = '●';
        line.into_iter().collect::<String>().trim_end().to_owned()
    }

    /// What the axis is marked with, under its columns: as many as have room.
    fn marks(&self, unit: Unit) -> String {
        let mut line = String::new();
        for tick in self.scale.ticks(TICKS) {
            let text = format!("╵{}", tick_text(tick, unit));
            let at = self.place(tick);
            if (width(&line) == 0 || width(&line) + 1 < at) && at + width(&text) <= self.columns {
                line += &" ".repeat(at - width(&line));
                line += &text;
            }
        }
        line
    }
}
