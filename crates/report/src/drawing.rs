//! Figures as SVG and PNG, for papers: black on white, no script, text that stays text.
//!
//! What a figure shows is decided elsewhere. The PNG is the SVG, rasterised with a font that comes along, so that
//! it looks the same on a machine without fonts.

use crate::look::{Look, Looks, Marker};
use crate::study::{is_drawable, value};
use crate::text::{clean, width};
use model::drawn::{Axis, Figure, Point, Series, Unit};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg;
use std::sync::Arc;
use svg::node::element::{Circle, Group, Line, Path, Polyline, Rectangle, Text};
use svg::{Document, Node};

/// The size of the picture, in points, and of what stands around the plot.
const WIDTH: f64 = 760.0;
const PLOT_HEIGHT: f64 = 360.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 44.0;
const BELOW: f64 = 48.0;
/// A line of the key.
const KEY_LINE: f64 = 18.0;
const FONT: &str = "DejaVu Sans, Helvetica, Arial, sans-serif";
const INK: &str = "#1b1f24";
const GRID: &str = "#e1e5e9";
/// How many pixels a point of the PNG has, for print.
const PIXELS: f32 = 2.5;

/// `figure` as SVG.
pub fn svg(figure: &Figure) -> String {
    let looks = Looks::of(figure.series.iter().map(|series| series.name.as_str()));
    let key = key(figure, &looks);
    let height = TOP + PLOT_HEIGHT + BELOW + key.height;
    let plot = Plot::of(figure);
    let mut document = Document::new()
        .set("viewBox", (0, 0, WIDTH, height))
        .set("width", WIDTH)
        .set("height", height)
        .set("font-family", FONT)
        .set("font-size", 12)
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"))
        .add(words(&format!("{}: {}", figure.name, figure.title), LEFT, 24.0, "start").set("font-weight", "bold"))
        .add(plot.grid(figure));
    for series in &figure.series {
        document.append(plot.series(series, figure, looks.look(&series.name)));
    }
    document.append(key.group);
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{document}\n")
}

/// `svg` as PNG; `None` when it cannot be drawn, which does not happen to what [`svg`] makes.
pub fn png(svg: &str) -> Option<Vec<u8>> {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    let options =
        usvg::Options { fontdb: Arc::new(fonts), font_family: "DejaVu Sans".to_owned(), ..Default::default() };
    let tree = usvg::Tree::from_str(svg, &options).ok()?;
    let size = tree.size().to_int_size().scale_by(PIXELS)?;
    let mut picture = Pixmap::new(size.width(), size.height())?;
    resvg::render(&tree, Transform::from_scale(PIXELS, PIXELS), &mut picture.as_mut());
    picture.encode_png().ok()
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
        Self { least: if least == 0.0 && !logarithmic { 0.0 } else { least - air }, most: most + air, logarithmic }
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
            let steps: &[f64] = if decades < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let exponents = self.least.floor() as i32..=self.most.ceil() as i32;
            let all = exponents.flat_map(|exponent| steps.iter().map(move |step| step * 10f64.powi(exponent)));
            return all.filter(|tick| (self.least..=self.most).contains(&tick.log10())).collect();
        }
        let rough = decades / 6.0;
        let unit = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * unit).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.least / step).ceil() as i64;
        (first..first + 12).map(|at| at as f64 * step).filter(|tick| *tick <= self.most).collect()
    }
}

impl Plot {
    fn of(figure: &Figure) -> Self {
        let points = || {
            figure.series.iter().flat_map(|series| &series.points).filter(|point| is_drawable(point, figure))
        };
        let around = |point: &Point| {
            let (low, high) = point.y.interval.unwrap_or((point.y.median, point.y.median));
            [point.y.median, low, high]
        };
        Self {
            x: Scale::of(points().map(|point| point.x), figure.x.logarithmic, 0.03),
            y: Scale::of(points().flat_map(around), figure.y.logarithmic, 0.05),
        }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + (1.0 - self.y.place(value)) * PLOT_HEIGHT
    }

    /// Both axes: lines of the grid, what they stand for, and what is along the axes.
    fn grid(&self, figure: &Figure) -> Group {
        let bottom = TOP + PLOT_HEIGHT;
        let mut group = Group::new().set("fill", INK);
        for tick in self.x_ticks(figure) {
            let x = self.x(tick);
            group.append(rule(x, TOP, x, bottom, GRID));
            group.append(words(&value(tick, figure.x.unit), x, bottom + 17.0, "middle"));
        }
        for tick in self.y.ticks() {
            let y = self.y(tick);
            group.append(rule(LEFT, y, WIDTH - RIGHT, y, GRID));
            group.append(words(&tick_text(tick, figure.y.unit), LEFT - 8.0, y + 4.0, "end"));
        }
        let middle = TOP + PLOT_HEIGHT / 2.0;
        group.append(words(&axis_text(&figure.x), LEFT + (WIDTH - LEFT - RIGHT) / 2.0, bottom + 36.0, "middle"));
        group.append(
            words(&axis_text(&figure.y), 18.0, middle, "middle")
                .set("transform", format!("rotate(-90 18 {middle})")),
        );
        group
    }

    /// Sizes are marked where they were measured, as many as have room; other quantities at round values.
    fn x_ticks(&self, figure: &Figure) -> Vec<f64> {
        const MOST: usize = 12;
        if figure.x.unit != Unit::Bytes {
            return self.x.ticks();
        }
        let points = figure.series.iter().flat_map(|series| &series.points);
        let mut sizes: Vec<f64> = points.filter(|point| is_drawable(point, figure)).map(|point| point.x).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        let step = sizes.len().div_ceil(MOST).max(1);
        sizes.into_iter().step_by(step).collect()
    }

    /// A line with its points and their intervals; dashed and open where it is published.
    fn series(&self, series: &Series, figure: &Figure, look: Look) -> Group {
        let points: Vec<&Point> = series.points.iter().filter(|point| is_drawable(point, figure)).collect();
        let at = |point: &&Point| (self.x(point.x), self.y(point.y.median));
        let line: Vec<String> = points.iter().map(at).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dash = if series.published { "5 4" } else { look.dash.pattern() };
        let mut group = Group::new().add(
            Polyline::new()
                .set("points", line.join(" "))
                .set("fill", "none")
                .set("stroke", look.color)
                .set("stroke-width", if series.published { 1.2 } else { 1.8 })
                .set("stroke-dasharray", dash),
        );
        for point in points {
            let (x, y) = at(&point);
            if let Some((low, high)) = point.y.interval {
                let (low, high) = (self.y(low), self.y(high));
                group.append(rule(x, low, x, high, look.color));
                group.append(rule(x - 3.0, low, x + 3.0, low, look.color));
                group.append(rule(x - 3.0, high, x + 3.0, high, look.color));
            }
            group.append(marker(look, series.published, x, y));
        }
        group
    }
}

/// The key and what room it takes.
struct Key {
    group: Group,
    height: f64,
}

/// The names of the series, in columns as wide as the longest needs.
fn key(figure: &Figure, looks: &Looks) -> Key {
    let named: Vec<(String, &Series)> = figure
        .series
        .iter()
        .map(|series| (clean(&series.name) + if series.published { ", published" } else { "" }, series))
        .collect();
    let longest = named.iter().map(|(name, _)| width(name)).max().unwrap_or_default();
    let column = 44.0 + 7.6 * longest as f64;
    let columns = ((WIDTH - LEFT) / column).floor().max(1.0) as usize;
    let mut group = Group::new().set("fill", INK);
    for (at, (name, series)) in named.iter().enumerate() {
        let (x, y) = (LEFT + (at % columns) as f64 * column, TOP + PLOT_HEIGHT + BELOW + (at / columns) as f64 * KEY_LINE);
        let look = looks.look(&series.name);
        let dash = if series.published { "5 4" } else { look.dash.pattern() };
        group.append(rule(x, y, x + 26.0, y, look.color).set("stroke-dasharray", dash).set("stroke-width", 1.8));
        group.append(marker(look, series.published, x + 13.0, y));
        group.append(words(name, x + 33.0, y + 4.0, "start"));
    }
    Key { group, height: named.len().div_ceil(columns) as f64 * KEY_LINE + 4.0 }
}

/// Text that comes from outside goes into text nodes only, which the library escapes.
fn words(text: &str, x: f64, y: f64, anchor: &str) -> Text {
    Text::new(clean(text)).set("x", round(x)).set("y", round(y)).set("text-anchor", anchor).set("fill", INK)
}

fn rule(x1: f64, y1: f64, x2: f64, y2: f64, color: &str) -> Line {
    Line::new()
        .set("x1", round(x1))
        .set("y1", round(y1))
        .set("x2", round(x2))
        .set("y2", round(y2))
        .set("stroke", color)
        .set("stroke-width", 1)
}

fn marker(look: Look, open: bool, x: f64, y: f64) -> Box<dyn Node> {
    let fill = if open { "white" } else { look.color };
    let path = |path: &str| {
        Path::new()
            .set("d", path)
            .set("transform", format!("translate({} {})", round(x), round(y)))
            .set("fill", fill)
            .set("stroke", look.color)
            .set("stroke-width", 1.2)
    };
    match look.marker {
        Marker::Circle => Box::new(
            Circle::new().set("cx", round(x)).set("cy", round(y)).set("r", 3.6).set("fill", fill).set("stroke", look.color),
        ),
        Marker::Square => Box::new(path("M-3.4-3.4H3.4V3.4H-3.4Z")),
        Marker::Diamond => Box::new(path("M0-4.8L4.8 0L0 4.8L-4.8 0Z")),
        Marker::Up => Box::new(path("M0-4.6L4.4 3.4H-4.4Z")),
        Marker::Down => Box::new(path("M0 4.6L4.4-3.4H-4.4Z")),
        Marker::Cross => Box::new(path("M-1.5-4.4H1.5V-1.5H4.4V1.5H1.5V4.4H-1.5V1.5H-4.4V-1.5H-1.5Z")),
        Marker::X => Box::new(path("M-4.1-2.3L-2.3-4.1L0-1.8L2.3-4.1L4.1-2.3L1.8 0L4.1 2.3L2.3 4.1L0 1.8L-2.3 4.1L-4.1 2.3L-1.8 0Z")),
    }
}

fn axis_text(axis: &Axis) -> String {
    clean(&axis.title)
}

/// A round value without the zeros that a measured one would have.
pub(crate) fn tick_text(tick: f64, unit: Unit) -> String {
    let text = value(tick, unit);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = match number.split_once('.') {
        Some((whole, decimals)) if decimals.bytes().all(|digit| digit == b'0') => whole,
        Some(_) => number.trim_end_matches('0'),
        None => number,
    };
    format!("{number} {unit}").trim_end().to_owned()
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
