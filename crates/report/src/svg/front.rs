//! The candidates of a recommendation as a picture: what is optimised against CPU time, those on the front joined by a line.
//!
//! Which are on the front is decided in `analysis`.

use super::canvas::{Anchor, Canvas, GRID, Ground, Mark, QUIET, area, line, rule, words};
use crate::scale::{Scale, tick_text};
use crate::words::clean;
use analysis::advise::{Ranked, Recommendation};
use model::need::Objective;
use model::units::Unit;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 120.0;
const TOP: f64 = 40.0;
const BELOW: f64 = 52.0;
const LETTERS: f64 = 11.0;
const FRONT: &str = "#0a7bc2";
const OTHER: &str = "#8a939d";
/// The side of the mark of a candidate.
const MARK: f64 = 7.0;

/// The picture of `answer` as an SVG file.
pub fn advice_svg(answer: &Recommendation) -> String {
    let objective = match answer.need.objective {
        Objective::Cpu => answer.need.pattern.objective(),
        other => other,
    };
    let mut points: Vec<(&Ranked, f64, f64)> = answer
        .ranked
        .iter()
        .filter_map(|ranked| {
            let time = ranked.measured.time(objective)?.median;
            Some((ranked, time, ranked.measured.cpu_ns?.median))
        })
        .collect();
    points.sort_by(|a, b| a.1.total_cmp(&b.1));
    let along = match objective {
        Objective::Throughput => "time of a message in a stream",
        Objective::Latency | Objective::Cpu => "round trip",
    };
    let title = format!("{along} against CPU time of both processes, {}", answer.need.pattern);
    let mut canvas = Canvas {
        width: WIDTH,
        height: HEIGHT,
        title: title.clone(),
        letters: LETTERS,
        ground: Ground::Paper,
        marks: Vec::new(),
    };
    canvas.add(words(&title, (LEFT, 22.0), Anchor::Start).letters(13.0).bold());
    let across = Scale::around(points.iter().map(|point| point.1), true, 0.06);
    let up = Scale::around(points.iter().map(|point| point.2), true, 0.06);
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BELOW);
    let x = |ns: f64| LEFT + across.place(ns) * (right - LEFT);
    let y = |ns: f64| bottom - up.place(ns) * (bottom - TOP);
    for tick in across.ticks(6.0) {
        canvas.add(rule((x(tick), TOP), (x(tick), bottom), GRID));
        canvas.add(words(&tick_text(tick, Unit::Ns), (x(tick), bottom + 16.0), Anchor::Middle));
    }
    for tick in up.ticks(6.0) {
        canvas.add(rule((LEFT, y(tick)), (right, y(tick)), GRID));
        canvas.add(words(&tick_text(tick, Unit::Ns), (LEFT - 6.0, y(tick) + 4.0), Anchor::End));
    }
    canvas.add(words(along, (f64::midpoint(LEFT, right), bottom + 36.0), Anchor::Middle).color(QUIET));
    canvas.add(words("CPU time", (16.0, f64::midpoint(TOP, bottom)), Anchor::Middle).upwards().color(QUIET));
    let front: Vec<(f64, f64)> = points
        .iter()
        .filter(|(ranked, ..)| ranked.on_front)
        .map(|(_, time, cpu)| (x(*time), y(*cpu)))
        .collect();
    if front.len() > 1 {
        canvas.add(line(front, FRONT).width(1.2));
    }
    for (ranked, time, cpu) in &points {
        let (at, color) = ((x(*time), y(*cpu)), if ranked.on_front { FRONT } else { OTHER });
        let name = clean(&ranked.measured.spec.to_string());
        let mark = area((at.0 - MARK / 2.0, at.1 - MARK / 2.0), MARK, MARK, color);
        let label = words(&name, (at.0 + MARK, at.1 + 4.0), Anchor::Start).letters(9.5);
        let shown =
            format!("{name}: {} and {} of CPU time", tick_text(*time, Unit::Ns), tick_text(*cpu, Unit::Ns));
        canvas.add(Mark::Group(shown, vec![mark.into(), label.into()]));
    }
    canvas.document()
}
