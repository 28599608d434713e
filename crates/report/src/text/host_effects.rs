//! What the host did to the times of each case: as it was measured, and at the state of the host that tables show.
//!
//! How they come about is in `analysis::run`. Where they stand on a page is decided in `html`.

use super::block::{Block, Common, Heading, Row, Tone, name};
use crate::quantity::{percent, time, time_estimate};
use crate::words::clip;
use analysis::analysed::AnalysedRecord;
use model::estimate::Estimate;
use model::record::Results;
use model::summary::SpeedSlope;
use model::units::Unit;

/// A results file can hold any number, and the block must keep its shape.
const LONGEST_SHARE: usize = 6;

/// Of which state of the host times are.
const CALM: &str =
    "at the speed of the CPUs in the calmest quarter of the run, as the model of the run has it";

/// The columns.
const COLUMNS: [Heading; 5] = [
    Heading::new("calm")
        .unit(Unit::Ns)
        .meaning("the time that the tables show: at the speed of the CPUs in the calmest quarter of the run"),
    Heading::new("as found").unit(Unit::Ns).meaning("the median slice as it was measured"),
    Heading::new("speed")
        .unit(Unit::Number)
        .meaning("of the CPUs beside the median slice, as a share of the fastest in the run"),
    Heading::new("CPU")
        .unit(Unit::Number)
        .meaning("how the time follows a slower CPU of the client: 1 as much as it"),
    Heading::new("wake")
        .unit(Unit::Number)
        .meaning("how the time follows what it takes to wake a sleeper on the other CPU"),
];

/// What the host did to `rows`, which have `common` in common; `None` where no speed readings were taken.
pub(super) fn block(common: Common, rows: &[&(usize, &AnalysedRecord<'_>)]) -> Option<Block> {
    let rows: Vec<Row> = rows.iter().filter_map(|(at, analysed)| row(*at, analysed)).collect();
    (!rows.is_empty()).then(|| Block {
        heading: format!("{}: the host", common.heading()),
        rows_are: common.rows_are(),
        columns: COLUMNS.to_vec(),
        rows,
        below: Vec::new(),
        common: None,
    })
}

fn row(at: usize, analysed: &AnalysedRecord<'_>) -> Option<Row> {
    let summary = analysed.trusted()?;
    let speed = summary.speed?;
    let alone = |median: f64| Estimate { median, interval: None };
    let of_slope = |slope: Option<SpeedSlope>| {
        slope.map(|slope| Estimate { median: slope.slope, interval: Some(slope.interval) })
    };
    let slope_text =
        |slope: Option<SpeedSlope>| slope.map(|slope| clip(&format!("{:.2}", slope.slope), LONGEST_SHARE));
    let as_found = speed.as_found_ns.map(alone);
    Some(Row {
        name: name(&analysed.record.case),
        cells: vec![
            time_estimate(summary.iteration_ns),
            speed.as_found_ns.and_then(time),
            Some(clip(&percent(speed.median_speed), LONGEST_SHARE)),
            slope_text(speed.client),
            slope_text(speed.wake),
        ],
        numbers: vec![
            Some(summary.iteration_ns),
            as_found,
            Some(alone(speed.median_speed)),
            of_slope(speed.client),
            of_slope(speed.wake),
        ],
        record: Some(at),
        tail: String::new(),
        tone: Tone::Plain,
    })
}

/// Of which state of the host times are, where it was read.
pub(super) fn state(results: &Results) -> Option<&'static str> {
    let mut summaries = results.records.iter().filter_map(|record| record.summary.as_ref());
    summaries.any(|summary| summary.speed.is_some()).then_some(CALM)
}
