//! The host's speed as pictures: that of each CPU over the run, and the slices of one case, coloured by the speed beside them.
//!
//! What full speed is, and which slices are shown, is decided in `analysis`.

use super::canvas::{
    Anchor, Canvas, GRID, Ground, Mark, Outline, Point, QUIET, Shape, line, polygon, rule, words,
};
use crate::quantity::{percent, time};
use crate::scale::{Scale, tick_text};
use crate::words::clean;
use analysis::analysed::{AnalysedSlice, CpuSpeed, SpeedSpan};
use model::units::Unit;

/// The width of both pictures, in points, and that of a page that shows many of the second.
const WIDTH: f64 = 600.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 14.0;
/// Above the lanes is the title, under them the axis and the key.
const TOP: f64 = 34.0;
const LANE: f64 = 58.0;
const BETWEEN: f64 = 10.0;
const AXIS: f64 = 40.0;
const KEY: f64 = 24.0;
const LETTERS: f64 = 10.5;
/// The picture of slices.
const STRIP_WIDTH: f64 = 320.0;
const STRIP_HEIGHT: f64 = 44.0;
const STRIP_LEFT: f64 = 58.0;
/// About how many marks the axis of time has.
const TICKS: f64 = 8.0;
/// How long and how thick the mark of a slice is.
const MARK: f64 = 2.4;

/// Speeds from the highest to the lowest: a colour, in words, and the least speed. The first is of undisturbed slices, whatever
/// their speed.
const CLASSES: [(&str, &str, f64); 4] = [
    ("#0a7bc2", "undisturbed", f64::INFINITY),
    ("#7ba428", "at 90% of full speed or more", 0.9),
    ("#e69f00", "at 70% or more", 0.7),
    ("#c4351c", "slower", 0.0),
];
const LINE: &str = "#0a7bc2";
const BAND: &str = "#cfe3f1";

/// The speed of each CPU over the run as an SVG file; `None` of no CPU.
pub(crate) fn host_speed(cpus: &[CpuSpeed]) -> Option<String> {
    let spans = || cpus.iter().flat_map(|cpu| &cpu.spans);
    let until_ns = spans().map(|span| span.until_ns).max()?;
    let lowest = spans().map(|span| span.low).fold(1.0, f64::min);
    let highest = spans().map(|span| span.high).fold(1.0, f64::max);
    let view = View {
        moments: Scale::linear(0.0, until_ns as f64),
        // The lanes begin where something is to be seen, and never so near that noise fills them.
        speeds: Scale::linear(lowest.min(0.9) - 0.02, highest + 0.02),
    };
    let bottom = TOP + cpus.len() as f64 * (LANE + BETWEEN);
    let mut canvas = Canvas {
        width: WIDTH,
        height: bottom + AXIS + KEY,
        title: "speed of each CPU over the run, as a fraction of full speed".to_owned(),
        letters: LETTERS,
        ground: Ground::Paper,
        marks: Vec::new(),
    };
    canvas.add(words("speed of each CPU over the run", (LEFT, 20.0), Anchor::Start).letters(14.0).bold());
    for tick_ns in view.moments.ticks(TICKS) {
        let x = view.x(tick_ns);
        canvas.add(rule((x, TOP), (x, bottom), GRID));
        canvas.add(words(&tick_text(tick_ns, Unit::Ns), (x, bottom + 14.0), Anchor::Middle));
    }
    let across = f64::midpoint(LEFT, WIDTH - RIGHT);
    canvas.add(words("time since the run began", (across, bottom + 30.0), Anchor::Middle).color(QUIET));
    for (at, cpu) in cpus.iter().enumerate() {
        view.draw_lane(&mut canvas, TOP + at as f64 * (LANE + BETWEEN), cpu);
    }
    let key = "line: median reading of a span of the run; band: between the slowest and the fastest tenth";
    canvas.add(words(key, (LEFT, bottom + AXIS + 12.0), Anchor::Start).color(QUIET));
    Some(canvas.document())
}

/// Where moments and speeds come to stand.
struct View {
    moments: Scale,
    speeds: Scale,
}

impl View {
    fn x(&self, at_ns: f64) -> f64 {
        LEFT + self.moments.place(at_ns) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, top: f64, speed: f64) -> f64 {
        top + (1.0 - self.speeds.place(speed)) * LANE
    }

    /// One CPU: its name, its speeds, and what goes on where spans follow each other.
    fn draw_lane(&self, canvas: &mut Canvas, top: f64, cpu: &CpuSpeed) {
        let name = format!("CPU {}", cpu.cpu);
        canvas.add(words(&name, (LEFT - 8.0, top + LANE / 2.0 + 4.0), Anchor::End).bold());
        for tick in self.speeds.ticks(3.0) {
            let y = self.y(top, tick);
            canvas.add(rule((LEFT, y), (WIDTH - RIGHT, y), GRID));
            canvas.add(words(&percent(tick), (LEFT + 2.0, y - 2.0), Anchor::Start).letters(8.0).color(QUIET));
        }
        for spans in cpu.spans.chunk_by(|a, b| a.until_ns == b.from_ns) {
            let steps = |speed: fn(&SpeedSpan) -> f64| -> Vec<Point> {
                let ends = |span: &SpeedSpan| {
                    let y = self.y(top, speed(span));
                    [(self.x(span.from_ns as f64), y), (self.x(span.until_ns as f64), y)]
                };
                spans.iter().flat_map(ends).collect()
            };
            let band = steps(|span| span.high).into_iter().chain(steps(|span| span.low).into_iter().rev());
            canvas.add(polygon(band.collect(), BAND));
            canvas.add(line(steps(|span| span.median), LINE).width(1.2));
        }
    }
}

/// The slices of the case `name`, the time of an iteration over the run, as an SVG file; `None` of no slice. `all` is how many
/// the case has.
pub(crate) fn slices(slices: &[AnalysedSlice], name: &str, all: u32) -> Option<String> {
    let last_ns = slices.iter().map(|slice| slice.started_ns).max()?;
    let times = || slices.iter().map(|slice| slice.iteration_ns).filter(|ns| ns.is_finite() && *ns > 0.0);
    let (moments, scale) = (Scale::linear(0.0, last_ns as f64), Scale::around(times(), true, 0.05));
    let (least, most) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    let point = |slice: &AnalysedSlice| {
        let x = STRIP_LEFT + moments.place(slice.started_ns as f64) * (STRIP_WIDTH - STRIP_LEFT - MARK);
        (x, 2.0 + (1.0 - scale.place(slice.iteration_ns)) * (STRIP_HEIGHT - 4.0))
    };
    let mut canvas = Canvas {
        width: STRIP_WIDTH,
        height: STRIP_HEIGHT,
        title: format!(
            "{}: {} of {all} slices, time of an iteration over the run",
            clean(name),
            slices.len()
        ),
        letters: LETTERS,
        ground: Ground::Paper,
        marks: Vec::new(),
    };
    let edge = |ns: f64, y: f64| {
        words(&time(ns).unwrap_or_default(), (STRIP_LEFT - 6.0, y), Anchor::End).color(QUIET)
    };
    canvas.add(edge(most, 10.0));
    canvas.add(edge(least, STRIP_HEIGHT - 3.0));
    for (at, (color, meaning, _)) in CLASSES.into_iter().enumerate() {
        let of_class = slices.iter().filter(|slice| class(slice) == at).map(point);
        let marks: Vec<Vec<Point>> = of_class.map(|(x, y)| vec![(x, y), (x + MARK, y)]).collect();
        if !marks.is_empty() {
            let shape = Shape { outline: Outline::Lines(marks), ..line(Vec::new(), color).width(MARK) };
            canvas.add(Mark::Group(meaning.to_owned(), vec![shape.into()]));
        }
    }
    Some(canvas.document())
}

/// What the colours of slices stand for, each with its colour.
pub(crate) fn slice_key() -> [(&'static str, &'static str); 4] {
    CLASSES.map(|(color, meaning, _)| (color, meaning))
}

/// The place of a slice among the classes.
fn class(slice: &AnalysedSlice) -> usize {
    if slice.undisturbed {
        return 0;
    }
    let found = CLASSES.iter().position(|(_, _, least)| slice.speed >= *least);
    found.unwrap_or(CLASSES.len() - 1)
}
