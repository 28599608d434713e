//! Charts for papers: black on white, no script, text that stays text.
//!
//! What a chart shows is decided in `figures`, how marks become SVG or PNG in `canvas` and `png`.

use super::canvas::{Anchor, Canvas, GRID, Ground, Point, Shape, length, line, polygon, rule, words};
use super::figures::{Chart, Drawing, SideBySide, is_drawable};
use super::line_style::{Dash, LineStyle, Marker};
use super::png;
use crate::quantity::tight_estimate;
use crate::scale::{Scale, tick_text};
use crate::words::{clean, clip};
use analysis::study::evaluated::{EvaluatedFigure, EvaluatedSeries, FigurePoint};
use model::estimate::Estimate;
use model::units::Unit;

/// The size of the picture, in points, and of what stands around the plot.
const WIDTH: f64 = 760.0;
const PLOT_HEIGHT: f64 = 360.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 44.0;
const BELOW: f64 = 58.0;
/// A line of the key, and a row of what stands side by side.
const KEY_LINE: f64 = 18.0;
const ROW: f64 = 22.0;
const LETTERS: f64 = 12.0;
/// About how many marks a linear axis has.
const TICKS: f64 = 6.0;

/// `drawing` as SVG.
pub fn svg(drawing: &Drawing) -> String {
    draw(drawing).document()
}

/// `drawing` as PNG; `None` when the font that comes along cannot be read, which a test rules out.
pub fn png(drawing: &Drawing) -> Option<Vec<u8>> {
    png::png(&draw(drawing))
}

/// Everything that is drawn of `drawing`.
fn draw(drawing: &Drawing) -> Canvas {
    match &drawing.chart {
        Chart::Lines(figure) => lines(figure, &drawing.styles),
        Chart::SideBySide(chart) => side_by_side(chart, &drawing.styles),
    }
}

/// A chart with nothing but its title, which begins `left`.
fn titled(title: &str, left: f64, height: f64) -> Canvas {
    let title = clean(title);
    let heading = words(&title, (left, 24.0), Anchor::Start).into();
    Canvas { width: WIDTH, height, title, letters: LETTERS, ground: Ground::Paper, marks: vec![heading] }
}

/// A row a name: the name, its number on a common axis with its interval, and the number in words.
fn side_by_side(chart: &SideBySide, styles: &[LineStyle]) -> Canvas {
    /// A longer name is cut off, so that there is room for the numbers.
    const LONGEST_NAME: usize = 44;
    const NUMBER: f64 = 104.0;

    let name = |name: &str| clip(&clean(name), LONGEST_NAME);
    let longest = chart.rows.iter().map(|(of, _)| length(&name(of), LETTERS)).fold(0.0, f64::max);
    let (left, right) = (RIGHT + 14.0 + longest, WIDTH - RIGHT - NUMBER);
    let bottom = TOP + ROW * chart.rows.len() as f64;
    let scale = Scale::around(chart.rows.iter().flat_map(|(_, number)| around(number)), true, 0.05);
    let x = |value: f64| left + scale.place(value) * (right - left);

    let mut canvas = titled(&format!("{}: {}", chart.name, chart.axis.title), RIGHT, bottom + BELOW);
    for tick in scale.ticks(TICKS) {
        canvas.add(rule((x(tick), TOP), (x(tick), bottom), GRID));
        canvas.add(words(&tick_text(tick, chart.axis.unit), (x(tick), bottom + 17.0), Anchor::Middle));
    }
    canvas.add(words(&chart.axis.title, (f64::midpoint(left, right), bottom + 36.0), Anchor::Middle));
    for (nth, ((of, number), style)) in chart.rows.iter().zip(styles).enumerate() {
        let y = TOP + ROW * (nth as f64 + 0.5);
        canvas.add(words(&name(of), (left - 10.0, y + 4.0), Anchor::End));
        canvas.add(rule((left, y), (right, y), GRID));
        if let Some((low, high)) = number.interval {
            let (low, high) = (x(low), x(high));
            canvas.add(rule((low, y), (high, y), style.color));
            for end in [low, high] {
                canvas.add(rule((end, y - 3.0), (end, y + 3.0), style.color));
            }
        }
        canvas.add(marker(*style, false, (x(number.median), y)));
        let number = tight_estimate(*number, chart.axis.unit);
        canvas.add(words(&number, (right + 10.0, y + 4.0), Anchor::Start));
    }
    canvas
}

/// A number and the ends of its interval.
fn around(number: &Estimate) -> [f64; 3] {
    let (low, high) = number.interval.unwrap_or((number.median, number.median));
    [number.median, low, high]
}

fn lines(figure: &EvaluatedFigure, styles: &[LineStyle]) -> Canvas {
    let plot = Plot::from_figure(figure);
    let mut canvas = titled(&format!("{}: {}", figure.name, figure.title), LEFT, 0.0);
    plot.draw_grid(&mut canvas, figure);
    for (series, style) in figure.series.iter().zip(styles) {
        plot.draw_series(&mut canvas, series, figure, *style);
    }
    canvas.height = draw_key(&mut canvas, figure, styles);
    canvas
}

/// Where values of a figure come to stand.
struct Plot {
    x: Scale,
    y: Scale,
}

impl Plot {
    fn from_figure(figure: &EvaluatedFigure) -> Self {
        let points = || {
            figure.series.iter().flat_map(|series| &series.points).filter(|point| is_drawable(point, figure))
        };
        Self {
            x: Scale::around(points().map(|point| point.x), figure.x.logarithmic, 0.03),
            y: Scale::around(points().flat_map(|point| around(&point.y)), figure.y.logarithmic, 0.05),
        }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + (1.0 - self.y.place(value)) * PLOT_HEIGHT
    }

    /// Both axes: lines of the grid, what they stand for, and what is along the axes.
    fn draw_grid(&self, canvas: &mut Canvas, figure: &EvaluatedFigure) {
        let bottom = TOP + PLOT_HEIGHT;
        for tick in self.x_ticks(figure) {
            let x = self.x(tick);
            canvas.add(rule((x, TOP), (x, bottom), GRID));
            canvas.add(words(&tick_text(tick, figure.x.unit), (x, bottom + 17.0), Anchor::Middle));
        }
        for tick in self.y.ticks(TICKS) {
            let y = self.y(tick);
            canvas.add(rule((LEFT, y), (WIDTH - RIGHT, y), GRID));
            canvas.add(words(&tick_text(tick, figure.y.unit), (LEFT - 8.0, y + 4.0), Anchor::End));
        }
        let across = f64::midpoint(LEFT, WIDTH - RIGHT);
        canvas.add(words(&figure.x.title, (across, bottom + 36.0), Anchor::Middle));
        canvas.add(words(&figure.y.title, (18.0, TOP + PLOT_HEIGHT / 2.0), Anchor::Middle).upwards());
    }

    /// Sizes are marked where they were measured, as many as have room; other quantities at round values.
    fn x_ticks(&self, figure: &EvaluatedFigure) -> Vec<f64> {
        const MOST: usize = 12;
        if figure.x.unit != Unit::Bytes {
            return self.x.ticks(TICKS);
        }
        let points = figure.series.iter().flat_map(|series| &series.points);
        let mut sizes: Vec<f64> =
            points.filter(|point| is_drawable(point, figure)).map(|point| point.x).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        let step = sizes.len().div_ceil(MOST).max(1);
        sizes.into_iter().step_by(step).collect()
    }

    /// A line with its points and their intervals; dashed and open where it is published.
    fn draw_series(
        &self,
        canvas: &mut Canvas,
        series: &EvaluatedSeries,
        figure: &EvaluatedFigure,
        style: LineStyle,
    ) {
        let points: Vec<&FigurePoint> =
            series.points.iter().filter(|point| is_drawable(point, figure)).collect();
        let at = |point: &&FigurePoint| (self.x(point.x), self.y(point.y.median));
        canvas.add(series_line(points.iter().map(at).collect(), style, series.published));
        for point in points {
            let (x, y) = at(&point);
            if let Some((low, high)) = point.y.interval {
                let (low, high) = (self.y(low), self.y(high));
                canvas.add(rule((x, low), (x, high), style.color));
                for end in [low, high] {
                    canvas.add(rule((x - 3.0, end), (x + 3.0, end), style.color));
                }
            }
            canvas.add(marker(style, series.published, (x, y)));
        }
    }
}

/// The names of the series, in columns as wide as the longest needs. Returns where they end.
fn draw_key(canvas: &mut Canvas, figure: &EvaluatedFigure, styles: &[LineStyle]) -> f64 {
    let name =
        |series: &EvaluatedSeries| clean(&series.name) + if series.published { ", published" } else { "" };
    let longest = figure.series.iter().map(|series| length(&name(series), LETTERS)).fold(0.0, f64::max);
    let column = 52.0 + longest;
    let columns = ((WIDTH - LEFT) / column).floor().max(1.0) as usize;
    for (at, (series, style)) in figure.series.iter().zip(styles).enumerate() {
        let x = LEFT + (at % columns) as f64 * column;
        let y = TOP + PLOT_HEIGHT + BELOW + (at / columns) as f64 * KEY_LINE;
        canvas.add(series_line(vec![(x, y), (x + 26.0, y)], *style, series.published));
        canvas.add(marker(*style, series.published, (x + 13.0, y)));
        canvas.add(words(&name(series), (x + 33.0, y + 4.0), Anchor::Start));
    }
    let rows = figure.series.len().div_ceil(columns);
    TOP + PLOT_HEIGHT + BELOW + rows as f64 * KEY_LINE + 4.0
}

/// A line of a figure; thin and dashed where it is published.
fn series_line(points: Vec<Point>, style: LineStyle, published: bool) -> Shape {
    let dash = if published { Dash::Short } else { style.dash };
    line(points, style.color).width(if published { 1.2 } else { 1.8 }).dash(dash.pattern())
}

/// A point of a line; open where it is published.
fn marker(style: LineStyle, open: bool, (x, y): Point) -> Shape {
    /// The corners of a marker around its middle.
    const SQUARE: [(f64, f64); 4] = [(-3.4, -3.4), (3.4, -3.4), (3.4, 3.4), (-3.4, 3.4)];
    const DIAMOND: [(f64, f64); 4] = [(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)];
    const TRIANGLE: [(f64, f64); 3] = [(0.0, -4.6), (4.4, 3.4), (-4.4, 3.4)];
    const ARM: [(f64, f64); 3] = [(1.5, -1.5), (1.5, -4.4), (-1.5, -4.4)];
    let turned = |(x, y): (f64, f64), angle: f64| {
        (x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos())
    };
    let quarter = std::f64::consts::FRAC_PI_2;
    let cross = |first: f64| -> Vec<(f64, f64)> {
        let arms = (0..4).flat_map(|arm| ARM.map(|corner| turned(corner, first - f64::from(arm) * quarter)));
        arms.collect()
    };
    let corners: Vec<(f64, f64)> = match style.marker {
        Marker::Circle => (0..24).map(|at| turned((3.7, 0.0), f64::from(at) * quarter / 6.0)).collect(),
        Marker::Square => SQUARE.to_vec(),
        Marker::Diamond => DIAMOND.to_vec(),
        Marker::Up => TRIANGLE.to_vec(),
        Marker::Down => TRIANGLE.iter().rev().map(|(x, y)| (*x, -y)).collect(),
        Marker::Cross => cross(0.0),
        Marker::X => cross(quarter / 2.0),
    };
    let corners = corners.into_iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    polygon(corners, if open { "white" } else { style.color }).stroke(style.color, 1.2)
}
