//! A chart for the terminal: one line a row, its median and its interval on a common logarithmic axis.
//!
//! It stands below the table and says what the table says, by eye. It is written here because what there is draws
//! curves, and neither intervals nor names.

use crate::block::Block;
use crate::columns;
use crate::figure::parse_metric;
use crate::layout::{INDENT, Style, finish, section};
use crate::sheet::sheet;
use crate::study_words;
use crate::text::{clip, width};
use model::Invalid;
use model::estimate::Estimate;
use model::record::Results;
use model::units::Unit;

/// A longer name is cut off, so that there is room for the chart.
const LONGEST_NAME: usize = 34;
/// The columns that the words of a number take.
const NUMBER: usize = 9;
/// Fewer columns than this are no chart.
const LEAST_CHART: usize = 24;

/// `results` as charts of the column `metric`, or of each workload's first, a chart for each block of the table.
pub fn plot(results: &Results, metric: Option<&str>, style: &Style) -> Result<String, Invalid> {
    metric.map(parse_metric).transpose()?;
    let blocks = sheet(results).blocks;
    let charts: Vec<Chart> = blocks.iter().filter_map(|block| Chart::of(block, metric)).collect();
    let names = charts.iter().flat_map(|chart| &chart.rows).map(|(name, _)| width(name)).max();
    let name_width = names.unwrap_or_default().min(LONGEST_NAME);
    let lines = charts.iter().flat_map(|chart| {
        let axis = Axis::of(chart.rows.iter().map(|(_, number)| number), name_width, style);
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
    fn of(block: &'a Block, metric: Option<&str>) -> Option<Self> {
        let wanted = metric.unwrap_or(columns::of(block.common?.workload)[0].heading.title);
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
    least: f64,
    most: f64,
    columns: usize,
}

impl Axis {
    /// The axis that holds `numbers`, from one mark to another.
    fn of<'a>(numbers: impl Iterator<Item = &'a Estimate>, name_width: usize, style: &Style) -> Self {
        let ends = numbers.flat_map(|number| {
            let (low, high) = number.interval.unwrap_or((number.median, number.median));
            [low, high, number.median]
        });
        let exponents: Vec<f64> = ends.filter(|end| *end > 0.0 && end.is_finite()).map(f64::log10).collect();
        let least = exponents.iter().copied().fold(f64::INFINITY, f64::min);
        let most = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let marks = || Self::exponents(least - 1.0, most + 1.0).map(f64::log10);
        let least = marks().filter(|mark| *mark <= least).last().unwrap_or(least - 1.0);
        let most = marks().find(|mark| *mark > most).unwrap_or(most + 1.0);
        let taken = INDENT.len() + name_width + 2 + NUMBER + 2;
        Self { least, most, columns: style.width().saturating_sub(taken).max(LEAST_CHART) }
    }

    /// 1, 2 and 5 times the powers of ten from 10 to the `least` to 10 to the `most`.
    fn exponents(least: f64, most: f64) -> impl Iterator<Item = f64> {
        // Beyond these powers there are no numbers.
        let powers =
            (least.floor() as i32).max(f64::MIN_10_EXP)..=(most.ceil() as i32).min(f64::MAX_10_EXP - 1);
        powers.flat_map(|exponent| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(exponent)))
    }

    /// The column of `value`.
    fn place(&self, value: f64) -> usize {
        let along = (value.max(f64::MIN_POSITIVE).log10() - self.least) / (self.most - self.least);
        (along.clamp(0.0, 1.0) * (self.columns - 1) as f64).round() as usize
    }

    fn chart(&self, chart: &Chart<'_>, name_width: usize) -> Vec<String> {
        let rows = chart.rows.iter().map(|(name, number)| {
            let name = clip(name, name_width);
            let pad = " ".repeat(name_width - width(&name));
            let words = clip(&study_words::number(number.median, chart.unit), NUMBER);
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
        let ends = self.least - 1e-9..=self.most + 1e-9;
        for tick in Self::exponents(self.least, self.most).filter(|tick| ends.contains(&tick.log10())) {
            let text = format!("╵{}", crate::drawing::tick_text(tick, unit));
            let at = self.place(tick);
            if (width(&line) == 0 || width(&line) + 1 < at) && at + width(&text) <= self.columns {
                line += &" ".repeat(at - width(&line));
                line += &text;
            }
        }
        line
    }
}
