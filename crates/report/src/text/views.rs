//! The three views of the host, case by case, and which of them the tables show, in words.
//!
//! How they come about is in `analysis::host_view`. Where they stand on a page is decided in `html`.

use super::block::{Block, Common, Heading, Row, Tone, grouped, name};
use crate::quantity::{percent, time_estimate};
use crate::words::clip;
use analysis::analysed::{AnalysedRecord, AnalysedResults};
use model::estimate::Estimate;
use model::record::Results;
use model::summary::{HostView, SpeedSummary};
use model::units::Unit;

/// After the time that the tables show.
const SHOWN: char = '*';
/// A results file can hold any number, and the block must keep its shape.
const LONGEST_SHARE: usize = 6;

/// The columns.
const COLUMNS: [Heading; 4] = [
    Heading::new("undisturbed")
        .unit(Unit::Ns)
        .meaning("slices beside which the host was at full speed; * marks the time that the tables show"),
    Heading::new("adjusted")
        .unit(Unit::Ns)
        .meaning("all slices, reduced to full speed by the slope of time over speed reading"),
    Heading::new("as found").unit(Unit::Ns).meaning("all slices as they were measured"),
    Heading::new("share").unit(Unit::Number).meaning("the share of slices that were undisturbed"),
];

/// The views of `rows`, which have `common` in common; `None` where no speed readings were taken.
pub(super) fn block(common: Common, rows: &[&(usize, &AnalysedRecord<'_>)]) -> Option<Block> {
    let rows: Vec<Row> = rows.iter().filter_map(|(at, analysed)| row(*at, analysed)).collect();
    (!rows.is_empty()).then(|| Block {
        heading: format!("{}: views of the host", common.heading()),
        rows_are: common.rows_are(),
        columns: COLUMNS.to_vec(),
        rows,
        below: Vec::new(),
        common: None,
    })
}

fn row(at: usize, analysed: &AnalysedRecord<'_>) -> Option<Row> {
    let speed = analysed.trusted()?.speed?;
    let views = [
        (HostView::Undisturbed, speed.undisturbed),
        (HostView::Adjusted, speed.adjusted),
        (HostView::AsFound, speed.as_found),
    ];
    let cell = |(view, estimate): (HostView, Option<Estimate>)| {
        let mark = if view == speed.shown { SHOWN } else { ' ' };
        Some(format!("{}{mark}", time_estimate(estimate?)?))
    };
    let share = Estimate { median: speed.undisturbed_share, interval: None };
    let share_text = clip(&percent(speed.undisturbed_share), LONGEST_SHARE);
    Some(Row {
        name: name(&analysed.record.case),
        cells: views.into_iter().map(cell).chain([Some(share_text)]).collect(),
        numbers: views.into_iter().map(|(_, estimate)| estimate).chain([Some(share)]).collect(),
        record: Some(at),
        tail: String::new(),
        tone: Tone::Plain,
    })
}

/// A line for each view of the host that times are shown in: of how many cases, why, and how many slices were undisturbed.
pub(super) fn lines(results: &Results) -> Vec<String> {
    let speeds = results.records.iter().filter_map(|record| record.summary.as_ref()?.speed);
    let line = |(view, shares): (HostView, Vec<f64>)| {
        let least = shares.iter().copied().fold(1.0, f64::min);
        let most = shares.iter().copied().fold(0.0, f64::max);
        let (cases, meaning) = (shares.len(), view.meaning());
        let (least, most) = (percent(least), percent(most));
        format!("of {cases} cases {view}, {meaning} ({least} to {most} of their slices were undisturbed)")
    };
    grouped(speeds.map(|speed| (speed.shown, speed.undisturbed_share))).into_iter().map(line).collect()
}

/// What a reader of times must know of the host's speed, in one line; `None` where no speed readings were taken.
pub(super) fn note(analysed: &AnalysedResults<'_>) -> Option<String> {
    /// With a smaller share of undisturbed slices the host was seldom at full speed.
    const SELDOM: f64 = 0.1;
    let cases = analysed.records.iter().filter(|analysed| !analysed.record.floor);
    let speeds: Vec<SpeedSummary> = cases.filter_map(|analysed| analysed.trusted()?.speed).collect();
    let count = |view| speeds.iter().filter(|speed| speed.shown == view).count();
    let others = [(HostView::Adjusted, "adjusted to it"), (HostView::AsFound, "as found")];
    let others = others.map(|(view, what)| (count(view), what)).into_iter();
    let others: Vec<(usize, &str)> = others.filter(|(count, _)| *count > 0).collect();
    let most = speeds.iter().map(|speed| speed.undisturbed_share).fold(0.0, f64::max);
    let how_often = match most {
        0.0 => "never",
        most if most < SELDOM => "seldom",
        _ => "not always",
    };
    let times = match (speeds.as_slice(), others.as_slice()) {
        ([], _) => return None,
        (_, []) => return Some("times are of slices with the host at full speed".to_owned()),
        ([_], [(_, what), ..]) => format!("the time is {what}"),
        (all, [(count, what), rest @ ..]) => {
            let rest: String = rest.iter().map(|(count, what)| format!(", {count} {what}")).collect();
            format!("of {} times {count} are {what}{rest}", all.len())
        }
    };
    Some(format!("the host was {how_often} at full speed: {times}"))
}

/// Which view of a case is shown, and why.
pub(crate) fn shown(speed: &SpeedSummary) -> String {
    format!("{}: {}", speed.shown, speed.shown.meaning())
}
