//! The canvas of all pictures but flame graphs: what is drawn on it, from back to front, and the SVG that this becomes.
//!
//! It knows shapes and words, not what they stand for. `png` makes an image of the same canvas.

use crate::words::{clean, width};
use svg::Document;
use svg::Node;
use svg::node::element::{Element, Group, Rectangle, Text, Title};

/// The colour of words and lines on white.
pub(crate) const INK: &str = "#1b1f24";
/// The colour of words that are less important.
pub(crate) const QUIET: &str = "#59626d";
/// The colour of the lines behind a chart.
pub(crate) const GRID: &str = "#e1e5e9";
/// The ink of the page that a picture is part of.
pub(crate) const PAGE_INK: &str = "currentColor";
const FONT: &str = "DejaVu Sans, Helvetica, Arial, sans-serif";
/// The width of a letter as a part of its height, in the widest usual font.
const LETTER: f64 = 0.61;

/// A picture.
pub(crate) struct Canvas {
    /// The size, in points.
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// What it shows, for who cannot see it.
    pub(crate) title: String,
    /// The height of letters where words say nothing else.
    pub(crate) letters: f64,
    /// What it is drawn on.
    pub(crate) ground: Ground,
    /// What is drawn, from back to front.
    pub(crate) marks: Vec<Mark>,
}

/// What a picture is drawn on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ground {
    /// White paper: the picture is a file of its own.
    Paper,
    /// A page, whose letters and ink it takes. It may be shown that many times as large.
    Page(f64),
}

/// Something that is drawn.
pub(crate) enum Mark {
    /// A line or an area.
    Shape(Shape),
    /// Words on one line.
    Words(Words),
    /// Marks that belong together, and what a pointer over them shows.
    Group(String, Vec<Mark>),
}

/// A point: from the left, and from the top.
pub(crate) type Point = (f64, f64);

/// A line or an area.
pub(crate) struct Shape {
    pub(crate) outline: Outline,
    pub(crate) stroke: Option<Stroke>,
    pub(crate) fill: Option<&'static str>,
}

/// The form of a shape.
pub(crate) enum Outline {
    /// A rectangle by its upper left corner and its size.
    Rectangle { at: Point, width: f64, height: f64 },
    /// Lines through points.
    Lines(Vec<Vec<Point>>),
    /// An area with these corners.
    Polygon(Vec<Point>),
}

/// How a line is drawn.
#[derive(Clone, Copy)]
pub(crate) struct Stroke {
    pub(crate) color: &'static str,
    pub(crate) width: f64,
    pub(crate) opacity: f64,
    /// Lengths on and off, in points.
    pub(crate) dash: &'static [f32],
}

/// Words on one line.
pub(crate) struct Words {
    pub(crate) text: String,
    pub(crate) at: Point,
    pub(crate) anchor: Anchor,
    pub(crate) letters: Option<f64>,
    pub(crate) bold: bool,
    pub(crate) color: Option<&'static str>,
    /// A rim in this colour and of this width keeps words legible on what is behind them.
    pub(crate) rim: Option<(&'static str, f64)>,
    pub(crate) upwards: bool,
}

/// What of the words stands at their point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Words. Characters that a reader could not see are shown escaped.
pub(crate) fn words(text: &str, at: Point, anchor: Anchor) -> Words {
    let text = clean(text);
    Words { text, at, anchor, letters: None, bold: false, color: None, rim: None, upwards: false }
}

impl Words {
    pub(crate) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub(crate) fn letters(self, points: f64) -> Self {
        Self { letters: Some(points), ..self }
    }

    pub(crate) fn color(self, color: &'static str) -> Self {
        Self { color: Some(color), ..self }
    }

    pub(crate) fn rim(self, color: &'static str, width: f64) -> Self {
        Self { rim: Some((color, width)), ..self }
    }

    pub(crate) fn upwards(self) -> Self {
        Self { upwards: true, ..self }
    }
}

/// A line through `points`.
pub(crate) fn line(points: Vec<Point>, color: &'static str) -> Shape {
    let stroke = Stroke { color, width: 1.0, opacity: 1.0, dash: &[] };
    Shape { outline: Outline::Lines(vec![points]), stroke: Some(stroke), fill: None }
}

/// A straight line between two points.
pub(crate) fn rule(from: Point, to: Point, color: &'static str) -> Shape {
    line(vec![from, to], color)
}

/// A filled rectangle.
pub(crate) fn area(at: Point, width: f64, height: f64, fill: &'static str) -> Shape {
    Shape { outline: Outline::Rectangle { at, width, height }, stroke: None, fill: Some(fill) }
}

/// A filled area with these corners.
pub(crate) fn polygon(corners: Vec<Point>, fill: &'static str) -> Shape {
    Shape { outline: Outline::Polygon(corners), stroke: None, fill: Some(fill) }
}

/// Lines from the upper right to the lower left all over a rectangle, `step` apart along its sides.
pub(crate) fn hatching((x, y): Point, width: f64, height: f64, step: f64, color: &'static str) -> Shape {
    let count = ((width + height) / step) as usize;
    let stripe = |at: usize| {
        let along = at as f64 * step;
        vec![
            (x + along.min(width), y + (along - width).max(0.0)),
            (x + (along - height).max(0.0), y + along.min(height)),
        ]
    };
    Shape { outline: Outline::Lines((1..=count).map(stripe).collect()), ..line(Vec::new(), color) }
}

impl Shape {
    /// The same with a line of `width` around it or along it.
    pub(crate) fn stroke(self, color: &'static str, width: f64) -> Self {
        Self { stroke: Some(Stroke { color, width, opacity: 1.0, dash: &[] }), ..self }
    }

    pub(crate) fn width(self, width: f64) -> Self {
        self.with_stroke(|stroke| Stroke { width, ..stroke })
    }

    pub(crate) fn dash(self, dash: &'static [f32]) -> Self {
        self.with_stroke(|stroke| Stroke { dash, ..stroke })
    }

    pub(crate) fn opacity(self, opacity: f64) -> Self {
        self.with_stroke(|stroke| Stroke { opacity, ..stroke })
    }

    fn with_stroke(self, change: impl Fn(Stroke) -> Stroke) -> Self {
        Self { stroke: self.stroke.map(change), ..self }
    }
}

impl From<Shape> for Mark {
    fn from(shape: Shape) -> Self {
        Mark::Shape(shape)
    }
}

impl From<Words> for Mark {
    fn from(words: Words) -> Self {
        Mark::Words(words)
    }
}

/// How long `text` is in letters of that height, in points: no shorter than in any usual font.
pub(crate) fn length(text: &str, letters: f64) -> f64 {
    width(text) as f64 * letters * LETTER
}

impl Canvas {
    /// Draws `mark` over what was drawn before.
    pub(crate) fn add(&mut self, mark: impl Into<Mark>) {
        self.marks.push(mark.into());
    }

    /// The picture as a file.
    pub(crate) fn document(&self) -> String {
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", self.element())
    }

    /// The picture as an element of a page. Nothing in it has an id, so that a page can have many.
    pub(crate) fn element(&self) -> String {
        let scale = if let Ground::Page(scale) = self.ground { scale } else { 1.0 };
        let mut document = Document::new()
            .set("viewBox", (0, 0, self.width, self.height))
            .set("width", round(self.width * scale))
            .set("height", round(self.height * scale))
            .set("style", "max-width: 100%; height: auto")
            .set("role", "img")
            .set("font-size", self.letters)
            .add(Title::new(&*self.title));
        document = match self.ground {
            Ground::Page(_) => document.set("fill", PAGE_INK),
            Ground::Paper => {
                let paper = Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white");
                document.set("fill", INK).set("font-family", FONT).add(paper)
            }
        };
        self.marks.iter().fold(document, |document, mark| document.add(node(mark))).to_string()
    }
}

/// `mark` as SVG has it.
fn node(mark: &Mark) -> Box<dyn Node> {
    match mark {
        Mark::Shape(shape) => Box::new(shape_node(shape)),
        Mark::Words(words) => Box::new(text(words)),
        Mark::Group(title, marks) => {
            let group = Group::new().add(Title::new(&**title));
            Box::new(marks.iter().fold(group, |group, mark| group.add(node(mark))))
        }
    }
}

fn shape_node(shape: &Shape) -> Element {
    let mut node = match &shape.outline {
        Outline::Rectangle { at: (x, y), width, height } => {
            let mut node = Element::new("rect");
            for (name, value) in [("x", x), ("y", y), ("width", width), ("height", height)] {
                node.assign(name, round(*value));
            }
            node
        }
        Outline::Polygon(corners) => path_node(path(corners) + "Z"),
        Outline::Lines(lines) => {
            path_node(lines.iter().map(|points| path(points)).collect::<Vec<_>>().join(" "))
        }
    };
    node.assign("fill", shape.fill.unwrap_or("none"));
    if let Some(Stroke { color, width, opacity, dash }) = shape.stroke {
        node.assign("stroke", color);
        node.assign("stroke-width", width);
        if opacity < 1.0 {
            node.assign("stroke-opacity", opacity);
        }
        if !dash.is_empty() {
            let lengths: Vec<String> = dash.iter().map(ToString::to_string).collect();
            node.assign("stroke-dasharray", lengths.join(" "));
        }
    }
    node
}

fn path_node(data: String) -> Element {
    let mut node = Element::new("path");
    node.assign("d", data);
    node
}

/// A line through `points` as the data of a path.
fn path(points: &[Point]) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", round(*x), round(*y))).collect();
    if points.is_empty() { String::new() } else { format!("M{}", points.join(" ")) }
}

/// Text that comes from outside goes into text nodes only, which the library escapes.
fn text(words: &Words) -> Text {
    let (x, y) = (round(words.at.0), round(words.at.1));
    let anchor = match words.anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    let mut text = Text::new(&*words.text).set("text-anchor", anchor);
    text = if words.upwards {
        text.set("transform", format!("translate({x} {y}) rotate(-90)"))
    } else {
        text.set("x", x).set("y", y)
    };
    if let Some(letters) = words.letters {
        text = text.set("font-size", letters);
    }
    if words.bold {
        text = text.set("font-weight", "bold");
    }
    if let Some(color) = words.color {
        text = text.set("fill", color);
    }
    if let Some((color, width)) = words.rim {
        text = text.set("stroke", color).set("stroke-width", width);
        text = text.set("stroke-linejoin", "round").set("paint-order", "stroke");
    }
    text
}

/// To what can be seen: files would be full of digits otherwise.
fn round(points: f64) -> f64 {
    (points * 100.0).round() / 100.0
}
