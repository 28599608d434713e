//! The host's speed for the page: a chart of the run, and for each case what the host did to it with a picture of its slices.
//!
//! What that says is decided in `text::host_effects`, how pictures are drawn in `svg::speed`.

use super::number::Number;
use super::template::tight_cell;
use crate::svg::speed::{host_speed, slice_key, slices};
use crate::text::block::{Block, Row};
use analysis::analysed::AnalysedResults;
use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct SpeedData {
    /// The speed of each CPU over the run, as SVG.
    chart: String,
    /// The colours of slices, each with what it stands for.
    key: [(&'static str, &'static str); 4],
    blocks: Vec<HostEffects>,
}

/// What the host did to cases that can be compared.
#[derive(Serialize)]
struct HostEffects {
    heading: String,
    rows_are: &'static str,
    /// Titles and what they mean.
    columns: Vec<(&'static str, Option<&'static str>)>,
    rows: Vec<HostEffectsRow>,
}

/// What it did to one case.
#[derive(Serialize)]
struct HostEffectsRow {
    name: String,
    /// What the cells say, each with its number.
    cells: Vec<(Option<String>, Option<Number>)>,
    /// The slices as SVG, with what the picture shows in words.
    slices: Option<String>,
}

/// The speed of the host of `analysed`, of which the sheet has `host_effects`; `None` where no speed readings were taken.
pub(crate) fn data(analysed: &AnalysedResults<'_>, host_effects: Vec<Block>) -> Option<SpeedData> {
    let block = |block: Block| HostEffects {
        heading: block.heading,
        rows_are: block.rows_are,
        columns: block.columns.iter().map(|column| (column.title, column.meaning)).collect(),
        rows: block.rows.into_iter().filter_map(|of| row(of, analysed)).collect(),
    };
    Some(SpeedData {
        chart: host_speed(&analysed.cpu_speeds)?,
        key: slice_key(),
        blocks: host_effects.into_iter().map(block).collect(),
    })
}

fn row(row: Row, analysed: &AnalysedResults<'_>) -> Option<HostEffectsRow> {
    let record = analysed.records.get(row.record?)?;
    let summary = record.summary.as_ref()?;
    let numbers = row.numbers.into_iter().map(|number| number.and_then(Number::from_estimate));
    let cells = row.cells.into_iter().map(|cell| cell.map(|text| tight_cell(&text)));
    Some(HostEffectsRow {
        cells: cells.zip(numbers).collect(),
        slices: slices(&record.slices, &row.name, summary.slices),
        name: row.name,
    })
}
