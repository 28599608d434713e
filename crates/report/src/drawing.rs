//! Charts as SVG and PNG, for papers: black on white, no script, text that stays text.
//!
//! What a chart shows is decided elsewhere. Both forms are made of the same strokes. The PNG's letters are those of
//! a font that comes along, so that it styles the same on a machine without fonts.

use crate::figure::{Chart, SideBySide};
use crate::line_style::{self, Dash, LineStyle, LineStyles, Marker};
use crate::study::{estimate, is_drawable};
use crate::study_words::number;
use crate::text::{clean, clip, width};
use analysis::study::evaluated::{EvaluatedFigure, EvaluatedSeries, FigurePoint};
use model::estimate::Estimate;
use model::units::Unit;
use svg::Document;
use svg::node::element::{Polyline, Rectangle, Text};
use tiny_skia::{Color, FillRule, Paint, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};
use ttf_parser::{Face, OutlineBuilder};

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
pub(crate) const LETTERS: f64 = 12.0;
pub(crate) const FONT: &str = "DejaVu Sans, Helvetica, Arial, sans-serif";
pub(crate) const INK: &str = "#1b1f24";
pub(crate) const GRID: &str = "#e1e5e9";
/// How many pixels a point of the PNG has, for print.
const PIXELS: f32 = 2.5;

/// A chart as strokes and words.
struct Canvas {
    height: f64,
    marks: Vec<Mark>,
}

/// One thing that is drawn.
enum Mark {
    /// A line through points, or around an area if that is filled.
    Stroke {
        points: Vec<(f64, f64)>,
        color: &'static str,
        width: f64,
        dash: &'static [f32],
        fill: Option<&'static str>,
    },
    /// Words on one line, which may run upwards.
    Words { text: String, x: f64, y: f64, anchor: Anchor, upwards: bool },
}

/// What of the words stands at their place.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// `chart` as SVG.
pub fn svg(chart: &Chart) -> String {
    let Canvas { height, marks } = draw(chart);
    let mut document = Document::new()
        .set("viewBox", (0, 0, WIDTH, height))
        .set("width", WIDTH)
        .set("height", height)
        .set("font-family", FONT)
        .set("font-size", LETTERS)
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"));
    for mark in marks {
        match mark {
            Mark::Stroke { mut points, color, width, dash, fill } => {
                points.extend(fill.and_then(|_| points.first().copied()));
                let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                let dash: Vec<String> = dash.iter().map(ToString::to_string).collect();
                let mut line = Polyline::new()
                    .set("points", points.join(" "))
                    .set("fill", fill.unwrap_or("none"))
                    .set("stroke", color)
                    .set("stroke-width", width);
                if !dash.is_empty() {
                    line = line.set("stroke-dasharray", dash.join(" "));
                }
                document = document.add(line);
            }
            // Text that comes from outside goes into text nodes only, which the library escapes.
            Mark::Words { text, x, y, anchor, upwards } => {
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let at = format!("translate({x:.1} {y:.1}){}", if upwards { " rotate(-90)" } else { "" });
                let words = Text::new(text).set("transform", at).set("text-anchor", anchor).set("fill", INK);
                document = document.add(words);
            }
        }
    }
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{document}\n")
}

/// `chart` as PNG; `None` when the font that comes along cannot be read, which a test rules out.
pub fn png(chart: &Chart) -> Option<Vec<u8>> {
    let font = Face::parse(dejavu::sans::regular(), 0).ok()?;
    let Canvas { height, marks } = draw(chart);
    let mut picture = Pixmap::new((WIDTH as f32 * PIXELS) as u32, (height as f32 * PIXELS) as u32)?;
    picture.fill(Color::WHITE);
    let scale = Transform::from_scale(PIXELS, PIXELS);
    for mark in marks {
        match mark {
            Mark::Stroke { points, color, width, dash, fill } => {
                let mut path = PathBuilder::new();
                for (at, (x, y)) in points.iter().enumerate() {
                    let (x, y) = (*x as f32, *y as f32);
                    if at == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
                }
                fill.is_some().then(|| path.close());
                let Some(path) = path.finish() else { continue };
                if let Some(fill) = fill {
                    picture.fill_path(&path, &paint(fill), FillRule::Winding, scale, None);
                }
                let dash = StrokeDash::new(dash.to_vec(), 0.0);
                let stroke = Stroke { width: width as f32, dash, ..Stroke::default() };
                picture.stroke_path(&path, &paint(color), &stroke, scale, None);
            }
            Mark::Words { text, x, y, anchor, upwards } => {
                let (outline, length) = outline(&font, &text);
                let Some(outline) = outline else { continue };
                let before = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => length / 2.0,
                    Anchor::End => length,
                };
                let iteration = if upwards { -90.0 } else { 0.0 };
                let at =
                    scale.pre_translate(x as f32, y as f32).pre_rotate(iteration).pre_translate(-before, 0.0);
                picture.fill_path(&outline, &paint(INK), FillRule::Winding, at, None);
            }
        }
    }
    picture.encode_png().ok()
}

/// `color`, which is `white` or `#rrggbb`.
fn paint(color: &str) -> Paint<'static> {
    let channel =
        |at: usize| color.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or(255);
    let mut paint = Paint::default();
    paint.set_color_rgba8(channel(1), channel(3), channel(5), 255);
    paint
}

/// The outline of `text` from the origin on, and how long it is. What the font lacks is drawn as its box for that.
fn outline(font: &Face<'_>, text: &str) -> (Option<tiny_skia::Path>, f32) {
    let scale = LETTERS as f32 / f32::from(font.units_per_em());
    let mut letters = Letters { path: PathBuilder::new(), scale, x: 0.0 };
    for character in text.chars() {
        let glyph = font.glyph_index(character).unwrap_or_default();
        font.outline_glyph(glyph, &mut letters);
        letters.x += f32::from(font.glyph_hor_advance(glyph).unwrap_or_default()) * scale;
    }
    (letters.path.finish(), letters.x)
}

/// Takes the outlines of glyphs, one behind the other. The font's y axis points up, the picture's down.
struct Letters {
    path: PathBuilder,
    scale: f32,
    x: f32,
}

impl Letters {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, -y * self.scale)
    }
}

impl OutlineBuilder for Letters {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

/// Everything that is drawn of `chart`, from back to front.
fn draw(chart: &Chart) -> Canvas {
    match chart {
        Chart::Lines(figure) => lines(figure),
        Chart::SideBySide(chart) => side_by_side(chart),
    }
}

/// A row a name: the name, its number on a common axis with its interval, and the number in words.
fn side_by_side(chart: &SideBySide) -> Canvas {
    /// A longer name is cut off, so that there is room for the numbers.
    const LONGEST_NAME: usize = 44;
    const LETTER: f64 = 7.2;
    const NUMBER: f64 = 104.0;

    let name = |name: &str| clip(&clean(name), LONGEST_NAME);
    let longest = chart.rows.iter().map(|(of, _)| width(&name(of))).max().unwrap_or_default();
    let (left, right) = (RIGHT + 14.0 + LETTER * longest as f64, WIDTH - RIGHT - NUMBER);
    let bottom = TOP + ROW * chart.rows.len() as f64;
    let scale = Scale::of(chart.rows.iter().flat_map(|(_, number)| around(number)), true, 0.05);
    let x = |value: f64| left + scale.place(value) * (right - left);

    let heading = format!("{}: {}", chart.name, chart.axis.title);
    let mut marks = vec![words(&heading, RIGHT, 24.0, Anchor::Start)];
    for tick in scale.ticks() {
        marks.push(rule((x(tick), TOP), (x(tick), bottom), GRID));
        marks.push(words(&tick_text(tick, chart.axis.unit), x(tick), bottom + 17.0, Anchor::Middle));
    }
    marks.push(words(&chart.axis.title, (left + right) / 2.0, bottom + 36.0, Anchor::Middle));
    let styles = LineStyles::of(chart.rows.iter().map(|(name, _)| name.as_str()));
    for (nth, (of, number)) in chart.rows.iter().enumerate() {
        let (style, y) = (styles.style(of), TOP + ROW * (nth as f64 + 0.5));
        marks.push(words(&name(of), left - 10.0, y + 4.0, Anchor::End));
        marks.push(rule((left, y), (right, y), GRID));
        if let Some((low, high)) = number.interval {
            let (low, high) = (x(low), x(high));
            marks.push(rule((low, y), (high, y), style.color));
            marks.extend([low, high].map(|end| rule((end, y - 3.0), (end, y + 3.0), style.color)));
        }
        marks.push(marker(style, false, x(number.median), y));
        marks.push(words(&estimate(*number, chart.axis.unit), right + 10.0, y + 4.0, Anchor::Start));
    }
    Canvas { height: bottom + BELOW, marks }
}

/// A number and the ends of its interval.
fn around(number: &Estimate) -> [f64; 3] {
    let (low, high) = number.interval.unwrap_or((number.median, number.median));
    [number.median, low, high]
}

fn lines(figure: &EvaluatedFigure) -> Canvas {
    let styles = line_style::lines(figure.series.iter().map(|series| series.name.as_str()));
    let plot = Plot::of(figure);
    let title = words(&format!("{}: {}", figure.name, figure.title), LEFT, 24.0, Anchor::Start);
    let mut marks = vec![title];
    marks.extend(plot.grid(figure));
    for (series, style) in figure.series.iter().zip(&styles) {
        marks.extend(plot.series(series, figure, *style));
    }
    let (key, height) = key(figure, &styles);
    marks.extend(key);
    Canvas { height: TOP + PLOT_HEIGHT + BELOW + height, marks }
}

/// Where values of a figure come to stand.
struct Plot {
    x: Scale,
    y: Scale,
}

/// An axis from its least to its greatest value, as logarithms where it is logarithmic.
struct Scale {
    least: f64,
    most: f64,
    logarithmic: bool,
}

impl Scale {
    /// The scale of `values` with some air at both ends; from 0 where it is linear.
    fn of(values: impl Iterator<Item = f64>, logarithmic: bool, air: f64) -> Self {
        let along = |value: f64| if logarithmic { value.log10() } else { value };
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite() && (!logarithmic || *value > 0.0)).map(along) {
            (least, most) = (least.min(value), most.max(value));
        }
        if least > most {
            (least, most) = (0.0, 1.0);
        }
        if !logarithmic {
            least = least.min(0.0);
        }
        let air = ((most - least) * air).max(1e-3 * most.abs()).max(1e-9);
        Self {
            least: if least == 0.0 && !logarithmic { 0.0 } else { least - air },
            most: most + air,
            logarithmic,
        }
    }

    /// Where `value` stands, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let along = if self.logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
        ((along - self.least) / (self.most - self.least)).clamp(0.0, 1.0)
    }

    /// Round values along the axis.
    fn ticks(&self) -> Vec<f64> {
        let decades = self.most - self.least;
        if self.logarithmic {
            /// What powers of ten are multiplied by, the coarsest first.
            const STEPS: [&[f64]; 3] =
                [&[1.0], &[1.0, 2.0, 5.0], &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]];
            let powers = || self.least.floor() as i32..=self.most.ceil() as i32;
            let inside = |tick: &f64| (self.least..=self.most).contains(&tick.log10());
            let ticks = STEPS.map(|steps| {
                let all =
                    powers().flat_map(|exponent| steps.iter().map(move |step| step * 10f64.powi(exponent)));
                all.filter(inside).collect::<Vec<f64>>()
            });
            let [_, _, finest] = &ticks;
            return ticks.iter().find(|ticks| ticks.len() >= 3).unwrap_or(finest).clone();
        }
        let step = round_step(decades / 6.0);
        let first = (self.least / step).ceil() as i64;
        (first..first + 12).map(|at| at as f64 * step).filter(|tick| *tick <= self.most).collect()
    }
}

/// The least of 1, 2 and 5 times a power of ten that is no less than `rough`.
pub(crate) fn round_step(rough: f64) -> f64 {
    let unit = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0].map(|step| step * unit).into_iter().find(|step| *step >= rough).unwrap_or(10.0 * unit)
}

impl Plot {
    fn of(figure: &EvaluatedFigure) -> Self {
        let points = || {
            figure.series.iter().flat_map(|series| &series.points).filter(|point| is_drawable(point, figure))
        };
        Self {
            x: Scale::of(points().map(|point| point.x), figure.x.logarithmic, 0.03),
            y: Scale::of(points().flat_map(|point| around(&point.y)), figure.y.logarithmic, 0.05),
        }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + (1.0 - self.y.place(value)) * PLOT_HEIGHT
    }

    /// Both axes: lines of the grid, what they stand for, and what is along the axes.
    fn grid(&self, figure: &EvaluatedFigure) -> Vec<Mark> {
        let bottom = TOP + PLOT_HEIGHT;
        let mut marks = Vec::new();
        for tick in self.x_ticks(figure) {
            let x = self.x(tick);
            marks.push(rule((x, TOP), (x, bottom), GRID));
            marks.push(words(&tick_text(tick, figure.x.unit), x, bottom + 17.0, Anchor::Middle));
        }
        for tick in self.y.ticks() {
            let y = self.y(tick);
            marks.push(rule((LEFT, y), (WIDTH - RIGHT, y), GRID));
            marks.push(words(&tick_text(tick, figure.y.unit), LEFT - 8.0, y + 4.0, Anchor::End));
        }
        let across = LEFT + (WIDTH - LEFT - RIGHT) / 2.0;
        marks.push(words(&figure.x.title, across, bottom + 36.0, Anchor::Middle));
        let (text, y) = (clean(&figure.y.title), TOP + PLOT_HEIGHT / 2.0);
        marks.push(Mark::Words { text, x: 18.0, y, anchor: Anchor::Middle, upwards: true });
        marks
    }

    /// Sizes are marked where they were measured, as many as have room; other quantities at round values.
    fn x_ticks(&self, figure: &EvaluatedFigure) -> Vec<f64> {
        const MOST: usize = 12;
        if figure.x.unit != Unit::Bytes {
            return self.x.ticks();
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
    fn series(&self, series: &EvaluatedSeries, figure: &EvaluatedFigure, style: LineStyle) -> Vec<Mark> {
        let points: Vec<&FigurePoint> =
            series.points.iter().filter(|point| is_drawable(point, figure)).collect();
        let at = |point: &&FigurePoint| (self.x(point.x), self.y(point.y.median));
        let mut marks = vec![line(points.iter().map(at).collect(), style, series.published)];
        for point in points {
            let (x, y) = at(&point);
            if let Some((low, high)) = point.y.interval {
                let (low, high) = (self.y(low), self.y(high));
                marks.push(rule((x, low), (x, high), style.color));
                marks.extend([low, high].map(|end| rule((x - 3.0, end), (x + 3.0, end), style.color)));
            }
            marks.push(marker(style, series.published, x, y));
        }
        marks
    }
}

/// The names of the series, in columns as wide as the longest needs, and the height that they take.
fn key(figure: &EvaluatedFigure, styles: &[LineStyle]) -> (Vec<Mark>, f64) {
    let name =
        |series: &EvaluatedSeries| clean(&series.name) + if series.published { ", published" } else { "" };
    let longest = figure.series.iter().map(|series| width(&name(series))).max().unwrap_or_default();
    let column = 50.0 + 7.6 * longest as f64;
    let columns = ((WIDTH - LEFT) / column).floor().max(1.0) as usize;
    let entries = figure.series.iter().zip(styles).enumerate().flat_map(|(at, (series, style))| {
        let x = LEFT + (at % columns) as f64 * column;
        let y = TOP + PLOT_HEIGHT + BELOW + (at / columns) as f64 * KEY_LINE;
        [
            line(vec![(x, y), (x + 26.0, y)], *style, series.published),
            marker(*style, series.published, x + 13.0, y),
            words(&name(series), x + 33.0, y + 4.0, Anchor::Start),
        ]
    });
    (entries.collect(), figure.series.len().div_ceil(columns) as f64 * KEY_LINE + 4.0)
}

fn words(text: &str, x: f64, y: f64, anchor: Anchor) -> Mark {
    Mark::Words { text: clean(text), x, y, anchor, upwards: false }
}

fn rule(from: (f64, f64), to: (f64, f64), color: &'static str) -> Mark {
    Mark::Stroke { points: vec![from, to], color, width: 1.0, dash: &[], fill: None }
}

fn line(points: Vec<(f64, f64)>, style: LineStyle, published: bool) -> Mark {
    let dash = if published { Dash::Short } else { style.dash };
    let width = if published { 1.2 } else { 1.8 };
    Mark::Stroke { points, color: style.color, width, dash: dash.pattern(), fill: None }
}

fn marker(style: LineStyle, open: bool, x: f64, y: f64) -> Mark {
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
    let points = corners.into_iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    let fill = Some(if open { "white" } else { style.color });
    Mark::Stroke { points, color: style.color, width: 1.2, dash: &[], fill }
}

/// A round value without the zeros that a measured one would have.
pub(crate) fn tick_text(tick: f64, unit: Unit) -> String {
    let text = number(tick, unit);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = match number.split_once('.') {
        Some((whole, decimals)) if decimals.bytes().all(|digit| digit == b'0') => whole,
        Some(_) => number.trim_end_matches('0'),
        None => number,
    };
    format!("{number} {unit}").trim_end().to_owned()
}
