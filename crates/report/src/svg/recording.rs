//! A picture of a scenario: processes as boxes, flows as arrows, as wide as they have bytes, and in a colour that says for which
//! share of the time somebody waited in them.

use super::canvas::{Anchor, Canvas, Ground, INK, Mark, Point, QUIET, area, polygon, rule, words};
use crate::quantity::percent;
use crate::text::recording::{flow_cells, flow_name, head};
use crate::words::{clean, clip};
use analysis::recording::{AnalysedScenario, FlowSums};
use model::scenario::Process;
use std::collections::BTreeMap;

/// The size of a box, and the room between two.
const BOX: (f64, f64) = (150.0, 44.0);
const BETWEEN: (f64, f64) = (190.0, 34.0);
const MARGIN: f64 = 24.0;
/// Below the picture, for what its colours mean.
const LEGEND: f64 = 44.0;
/// Colours from never waited to always waited.
const COLORS: [&str; 5] = ["#2a6f97", "#4d9078", "#c9a227", "#d9772b", "#c0392b"];
/// The widest and the narrowest arrow.
const WIDEST: f64 = 9.0;
const NARROWEST: f64 = 1.2;
/// More flows have no words beside them, but those that a pointer shows.
const MOST_LABELS: usize = 24;
const LETTERS: f64 = 12.0;

/// The picture as a file.
pub fn recording_svg(analysed: &AnalysedScenario) -> String {
    canvas(analysed, Ground::Paper).document()
}

/// The picture as an element of a page.
pub(crate) fn recording_element(analysed: &AnalysedScenario) -> String {
    canvas(analysed, Ground::Page(1.0)).element()
}

fn canvas(analysed: &AnalysedScenario, ground: Ground) -> Canvas {
    let scenario = &analysed.scenario;
    let (corners, (width, height)) = corners(&analysed.depths);
    let title = format!("{}: {}", clean(&scenario.name), head(analysed));
    let width = width.max(420.0);
    let mut canvas = Canvas { width, height, title, letters: LETTERS, ground, marks: Vec::new() };
    let largest = analysed.flows.iter().map(|flow| flow.bytes_per_s).fold(0.0, f64::max);
    let mut beside: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut labels = Vec::new();
    for (flow, sums) in scenario.flows.iter().zip(&analysed.flows) {
        let pair = (flow.from.min(flow.to), flow.from.max(flow.to));
        let at = beside.entry(pair).or_default();
        // The first goes through the middle, the others above and below it in turn.
        let shift = 12.0 * (*at as f64 / 2.0).ceil() * if at.is_multiple_of(2) { 1.0 } else { -1.0 };
        *at += 1;
        let (from, to) = ends(corners[flow.from], corners[flow.to], shift);
        let cells = flow_cells(flow);
        let text = format!(
            "{}: {} per s, size {}, reply {}, round trip {}, waited {}",
            flow_name(flow),
            cells[0],
            cells[1],
            cells[2],
            cells[3],
            cells[4]
        );
        canvas.add(Mark::Group(text, arrow(from, to, wide(sums, largest), color(sums))));
        if scenario.flows.len() <= MOST_LABELS {
            let middle = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0 - 6.0);
            let text = clip(&format!("{}, {}/s", clean(&flow.mechanism.name), cells[0]), 26);
            labels.push(words(&text, middle, Anchor::Middle).letters(10.0).rim("white", 3.0).color(INK));
        }
    }
    for (process, corner) in scenario.processes.iter().zip(corners) {
        canvas.add(process_box(process, corner));
    }
    labels.into_iter().for_each(|label| canvas.add(label));
    legend(&mut canvas);
    canvas
}

/// The upper left corners of the boxes of processes, each in the column of its depth, below those before it; and the width and height of all.
fn corners(depths: &[usize]) -> (Vec<Point>, (f64, f64)) {
    let mut rows: BTreeMap<usize, usize> = BTreeMap::new();
    let mut places = Vec::new();
    for depth in depths {
        let row = rows.entry(*depth).or_default();
        places.push((*depth, *row));
        *row += 1;
    }
    let columns = rows.keys().max().map_or(1, |last| last + 1);
    let most = rows.values().max().copied().unwrap_or(1);
    let corner = |(column, row): (usize, usize)| -> Point {
        // A column of few stands in the middle of the others.
        let free = (most - rows[&column]) as f64 * (BOX.1 + BETWEEN.1) / 2.0;
        (MARGIN + column as f64 * (BOX.0 + BETWEEN.0), MARGIN + free + row as f64 * (BOX.1 + BETWEEN.1))
    };
    let width = 2.0 * MARGIN + columns as f64 * (BOX.0 + BETWEEN.0) - BETWEEN.0;
    let height = 2.0 * MARGIN + most as f64 * (BOX.1 + BETWEEN.1) - BETWEEN.1 + LEGEND;
    (places.into_iter().map(corner).collect(), (width, height))
}

/// The box of a process: its name, and below it how busy it was.
fn process_box(process: &Process, (x, y): Point) -> Mark {
    let below = match &process.recorded {
        Some(of) => format!("CPU {}, waited {}", percent(of.cpu), percent(of.waited)),
        None => "not recorded".to_owned(),
    };
    let name = words(&clip(&process.name, 19), (x + BOX.0 / 2.0, y + 18.0), Anchor::Middle);
    let marks = vec![
        area((x, y), BOX.0, BOX.1, "#f3f5f7").stroke(QUIET, 1.0).into(),
        name.bold().color(INK).into(),
        words(&below, (x + BOX.0 / 2.0, y + 35.0), Anchor::Middle).letters(10.0).color(QUIET).into(),
    ];
    Mark::Group(format!("{}: {below}", clean(&process.name)), marks)
}

/// What widths and colours mean.
fn legend(canvas: &mut Canvas) {
    let y = canvas.height - 18.0;
    canvas.add(words("waited 0%", (MARGIN, y + 4.0), Anchor::Start).letters(10.0).color(QUIET));
    let mut x = MARGIN + 64.0;
    for color in COLORS {
        canvas.add(area((x, y - 5.0), 20.0, 10.0, color));
        x += 20.0;
    }
    canvas.add(
        words("100% of the time; width: bytes", (x + 6.0, y + 4.0), Anchor::Start).letters(10.0).color(QUIET),
    );
}

/// Where an arrow between boxes with these corners begins and ends: at their sides, or where they are one above the other, at their
/// edges.
fn ends(from: Point, to: Point, shift: f64) -> (Point, Point) {
    let middle = |corner: Point| (corner.0 + BOX.0 / 2.0, corner.1 + BOX.1 / 2.0);
    let (a, b) = (middle(from), middle(to));
    if (from.0 - to.0).abs() < 1.0 {
        let down = if a.1 < b.1 { 1.0 } else { -1.0 };
        return ((a.0 + shift, a.1 + down * BOX.1 / 2.0), (b.0 + shift, b.1 - down * BOX.1 / 2.0));
    }
    let right = if a.0 < b.0 { 1.0 } else { -1.0 };
    ((a.0 + right * BOX.0 / 2.0, a.1 + shift), (b.0 - right * BOX.0 / 2.0, b.1 + shift))
}

/// A line with a head.
fn arrow(from: Point, to: Point, width: f64, color: &'static str) -> Vec<Mark> {
    let (x, y) = (to.0 - from.0, to.1 - from.1);
    let length = x.hypot(y).max(1.0);
    let (x, y) = (x / length, y / length);
    let head = 6.0 + width;
    let neck = (to.0 - x * head, to.1 - y * head);
    let half = 3.0 + width * 0.7;
    let corners = vec![to, (neck.0 - y * half, neck.1 + x * half), (neck.0 + y * half, neck.1 - x * half)];
    vec![rule(from, neck, color).width(width).into(), polygon(corners, color).into()]
}

/// How wide the arrow of a flow is, where the largest has so many bytes a second.
fn wide(sums: &FlowSums, largest: f64) -> f64 {
    let share = if largest > 0.0 { sums.bytes_per_s / largest } else { 0.0 };
    NARROWEST + (WIDEST - NARROWEST) * share.sqrt()
}

fn color(sums: &FlowSums) -> &'static str {
    COLORS[((sums.waited.clamp(0.0, 1.0) * COLORS.len() as f64) as usize).min(COLORS.len() - 1)]
}
