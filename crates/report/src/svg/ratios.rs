//! Ratios as a picture: for each a mark and its interval on one axis, with lines around 1 between which there is no difference.
//!
//! Which differ is decided in `analysis`.

use super::canvas::{Anchor, Canvas, Ground, Mark, PAGE_INK, Point, area, line, words};
use crate::scale::{Scale, tick_text};
use crate::words::clean;
use model::units::{Percent, Unit};

const WIDTH: f64 = 720.0;
const NAMES: f64 = 300.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const ROW: f64 = 18.0;
/// Below the last.
const BELOW: f64 = 8.0;
const LETTERS: f64 = 11.0;
/// It may be shown so many times as large.
const LARGEST: f64 = 1.4;
/// The side of the mark of a ratio.
const MARK: f64 = 7.0;
const KNOWN: &str = "#0a7bc2";
const UNKNOWN: &str = "#8a939d";

/// One ratio.
pub(crate) struct RatioRow {
    /// What it is of.
    pub(crate) name: String,
    pub(crate) ratio: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// Whether it is decided.
    pub(crate) is_decided: bool,
}

/// `rows` as an element of a page, one below the other; `what` is what they are ratios of, and within `margin` of 1 there is no difference.
pub(crate) fn ratios(rows: &[RatioRow], what: &str, margin: Percent) -> String {
    let ends = |row: &RatioRow| row.interval.map_or([row.ratio; 2], |(low, high)| [low, high]);
    let band = [1.0 - margin.0, 1.0 + margin.0];
    let across = Scale::around(rows.iter().flat_map(ends).chain(band), true, 0.04);
    let x = |ratio: f64| NAMES + across.place(ratio) * (WIDTH - NAMES - RIGHT);
    let bottom = TOP + ROW * rows.len() as f64;
    let mut canvas = Canvas {
        width: WIDTH,
        height: bottom + BELOW,
        title: format!("{what}, with 95% intervals"),
        letters: LETTERS,
        ground: Ground::Page(LARGEST),
        marks: Vec::new(),
    };
    let along = |at: f64| line(vec![(x(at), TOP), (x(at), bottom)], PAGE_INK).width(1.0);
    for tick in across.ticks(6.0) {
        canvas.add(along(tick).opacity(0.15));
        canvas.add(words(&tick_text(tick, Unit::Number), (x(tick), TOP - 6.0), Anchor::Middle));
    }
    canvas.add(along(1.0));
    band.into_iter().for_each(|end| canvas.add(along(end).opacity(0.6).dash(&[3.0, 3.0])));
    canvas.add(words(what, (NAMES, 14.0), Anchor::Start).bold());
    for (row, nth) in rows.iter().zip(0_u32..) {
        let y = TOP + ROW * (f64::from(nth) + 0.5);
        canvas.add(words(&row.name, (NAMES - 8.0, y + 4.0), Anchor::End));
        canvas.add(of_row(row, y, &x));
    }
    canvas.element()
}

fn of_row(row: &RatioRow, y: f64, x: &dyn Fn(f64) -> f64) -> Mark {
    let color = if row.is_decided { KNOWN } else { UNKNOWN };
    let at: Point = (x(row.ratio), y);
    let mark = area((at.0 - MARK / 2.0, at.1 - MARK / 2.0), MARK, MARK, color);
    let (shown, interval) = match row.interval {
        Some((low, high)) => (
            format!("{:.3} ({low:.3} to {high:.3})", row.ratio),
            Some(line(vec![(x(low), y), (x(high), y)], color).width(2.0).into()),
        ),
        None => (format!("{:.3}", row.ratio), None),
    };
    let marks = interval.into_iter().chain([mark.into()]).collect();
    Mark::Group(format!("{}: {shown}", clean(&row.name)), marks)
}
