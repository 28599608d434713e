//! Iterations as sums, drawn: a stacked bar for each case, as SVG that goes into a page.
//!
//! What the terms are is decided in `explain`. The ink and the letters are those of the page, so that the picture is right in
//! light and dark; and nothing in it has an id, for a page has many such pictures.

use crate::drawing::{round_step, tick_text};
use crate::explanation::{RESIDUAL, by};
use crate::line_style::COLORS;
use crate::quantity::{percent, time};
use crate::text::{clip, width};
use analysis::explain::{Decomposition, TermKind};
use model::units::Unit;
use std::collections::BTreeSet;
use svg::Document;
use svg::node::element::{Group, Line, Path, Rectangle, Text, Title};

/// The size of the picture, in points: so narrow that its letters can be read on a phone.
const WIDTH: f64 = 440.0;
/// How much larger a screen that has room may show it.
const LARGEST: f64 = 1.5;
/// Right of the bars, for the time of the longest.
const RIGHT: f64 = 122.0;
const TOP: f64 = 4.0;
/// The line of a heading, a row with its bar, and the bar.
const HEADING: f64 = 22.0;
const ROW: f64 = 24.0;
const BAR: f64 = 17.0;
/// Under the bars: the axis, and the lines of the key.
const AXIS: f64 = 42.0;
const KEY_LINE: f64 = 17.0;
const KEY_COLUMNS: usize = 2;
const LETTERS: f64 = 11.0;
const LETTER: f64 = 6.4;
/// A name longer than this is cut off.
const LONGEST_NAME: usize = 12;
/// The least width of a piece that has its share written on it.
const LEAST_FOR_SHARE: f64 = 30.0;
/// Where the longest bar is more times as long as the shortest, the pieces of the shortest could not be seen, and every bar
/// is drawn as parts of its own iteration.
const COMPARABLE: f64 = 8.0;
/// More than this part of an iteration beyond its end is shown as such.
const BEYOND: f64 = 0.005;

const INK: &str = "currentColor";

/// Bars under a heading.
pub(crate) struct Bars<'a> {
    /// What they have in common; may be empty.
    pub(crate) heading: String,
    /// What each is called, and what it shows.
    pub(crate) bars: Vec<(String, &'a Decomposition)>,
}

/// `all` as SVG, by the better source of each sum.
pub(crate) fn sums(all: &[Bars<'_>]) -> String {
    let scale = Scale::of(all);
    let mut y = TOP;
    let mut bars = Group::new();
    for of in all {
        if !of.heading.is_empty() {
            bars = bars.add(words(&of.heading, 0.0, y + HEADING - 8.0, "start").set("font-weight", "bold"));
            y += HEADING;
        }
        for (name, sum) in &of.bars {
            bars = bars.add(bar(name, sum, &scale, y));
            y += ROW;
        }
    }
    let (key, height) = key(all, y + AXIS);
    Document::new()
        .set("viewBox", (0, 0, WIDTH, height))
        .set("width", WIDTH * LARGEST)
        .set("height", height * LARGEST)
        .set("style", "max-width: 100%; height: auto")
        .set("role", "img")
        .set("font-size", LETTERS)
        .set("fill", INK)
        .add(Title::new("where iterations go, as stacked bars"))
        .add(scale.axis(y))
        .add(bars)
        .add(key)
        .to_string()
}

/// What a piece of a bar stands for, in the order in which they are drawn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    Term(TermKind),
    Residual,
}

impl Piece {
    fn name(self) -> &'static str {
        match self {
            Piece::Term(kind) => kind.name(),
            Piece::Residual => RESIDUAL,
        }
    }

    /// An area of it. A kind of term has the same look in every picture; those for which there is no colour left have
    /// stripes.
    fn area(self, x: f64, y: f64, width: f64, height: f64) -> Group {
        let body = Rectangle::new().set("x", x).set("y", y).set("width", width).set("height", height);
        let lines = Path::new().set("d", diagonals(x, y, width, height)).set("fill", "none");
        match self {
            Piece::Term(kind) => {
                let at = kind as usize;
                let body = body.set("fill", COLORS[at % COLORS.len()]);
                let area = Group::new().add(body);
                if at < COLORS.len() { area } else { area.add(lines.set("stroke", "white")) }
            }
            Piece::Residual => {
                let body = body.set("fill", "none").set("stroke", INK).set("stroke-opacity", 0.6);
                Group::new().add(body).add(lines.set("stroke", INK).set("stroke-opacity", 0.4))
            }
        }
    }
}

/// What is drawn of `sum`, in the order of its terms. What is below 0 has no length; it stands in the tables.
fn pieces(sum: &Decomposition) -> impl Iterator<Item = (Piece, f64)> {
    let terms = sum.terms.iter().filter_map(|term| Some((Piece::Term(term.kind), sum.ns_of(term)?)));
    let all = terms.chain([(Piece::Residual, sum.residual_ns())]);
    all.filter(|(_, ns)| ns.is_finite() && *ns > 0.0)
}

/// How long the bar of `sum` is: longer than the iteration where what its terms cost lies over one another.
fn length_ns(sum: &Decomposition) -> f64 {
    let drawn_ns: f64 = pieces(sum).map(|(_, ns)| ns).sum();
    drawn_ns.max(sum.iteration_ns).max(f64::MIN_POSITIVE)
}

fn is_beyond(sum: &Decomposition) -> bool {
    length_ns(sum) > (1.0 + BEYOND) * sum.iteration_ns
}

/// Where moments of iterations come to stand.
struct Scale {
    left: f64,
    /// Bars are drawn as parts of their own iterations.
    shares: bool,
    /// Where the plot ends, in nanoseconds or iterations.
    most: f64,
}

impl Scale {
    fn of(all: &[Bars<'_>]) -> Self {
        let bars = || all.iter().flat_map(|of| &of.bars);
        let names = bars().map(|(name, _)| width(&clip(name, LONGEST_NAME)));
        let left =
            names.max().filter(|longest| *longest > 0).map_or(1.0, |longest| 10.0 + LETTER * longest as f64);
        let longest_ns = bars().map(|(_, sum)| length_ns(sum)).fold(0.0, f64::max);
        let shortest_ns = bars().map(|(_, sum)| length_ns(sum)).fold(f64::INFINITY, f64::min);
        let shares = longest_ns > COMPARABLE * shortest_ns;
        let in_turns = bars().map(|(_, sum)| length_ns(sum) / sum.iteration_ns);
        Self { left, shares, most: if shares { in_turns.fold(1.0, f64::max) } else { longest_ns } }
    }

    fn x(&self, along: f64) -> f64 {
        round(self.left + along / self.most * (WIDTH - self.left - RIGHT))
    }

    fn x_of(&self, sum: &Decomposition, ns: f64) -> f64 {
        self.x(if self.shares { ns / sum.iteration_ns } else { ns })
    }

    /// Round values under the bars, which end at `bottom`.
    fn axis(&self, bottom: f64) -> Group {
        let step = round_step(self.most / 5.0);
        let ticks = (0..12).map(|at| f64::from(at) * step).take_while(|tick| *tick <= self.most * 1.0001);
        let mut axis = Group::new();
        for tick in ticks {
            let text = match self.shares {
                _ if tick == 0.0 => "0".to_owned(),
                true => percent(tick),
                false => tick_text(tick, Unit::Ns),
            };
            let x = self.x(tick);
            let line = rule(x, TOP, bottom + 3.0).set("stroke-opacity", 0.15);
            axis = axis.add(line).add(words(&text, x.max(LETTER), bottom + 15.0, "middle"));
        }
        let title = if self.shares { "part of the iteration" } else { "time of an iteration" };
        axis.add(
            words(title, f64::midpoint(self.left, WIDTH - RIGHT), bottom + 29.0, "middle")
                .set("fill-opacity", 0.75),
        )
    }
}

/// A row: the name, the pieces one after the other, and at their end the time of the iteration and how they came about.
fn bar(name: &str, sum: &Decomposition, scale: &Scale, y: f64) -> Group {
    let (top, letters) = (y + (ROW - BAR) / 2.0, y + ROW / 2.0 + 4.0);
    let mut bar = Group::new().add(words(&clip(name, LONGEST_NAME), scale.left - 8.0, letters, "end"));
    let mut from_ns = 0.0;
    for (piece, ns) in pieces(sum) {
        let (from, until) = (scale.x_of(sum, from_ns), scale.x_of(sum, from_ns + ns));
        from_ns += ns;
        let share = percent(ns / sum.iteration_ns);
        let text = format!("{}: {}, {share}", piece.name(), time(ns).unwrap_or_default());
        let mut part =
            Group::new().add(Title::new(text)).add(piece.area(from, top, round(until - from), BAR));
        if until - from >= LEAST_FOR_SHARE {
            part = part.add(on_area(words(&share, f64::midpoint(from, until), letters, "middle"), piece));
        }
        bar = bar.add(part);
    }
    if is_beyond(sum) {
        bar = bar.add(end_of_iteration(scale.x_of(sum, sum.iteration_ns), top));
    }
    let took = format!("{} {}", time(sum.iteration_ns).unwrap_or_default(), by(sum.best));
    bar.add(words(&took, scale.x_of(sum, length_ns(sum)) + 6.0, letters, "start"))
}

/// Words on an area: black can be read on every colour, on stripes with a rim.
fn on_area(text: Text, piece: Piece) -> Text {
    match piece {
        Piece::Residual => text,
        Piece::Term(kind) if (kind as usize) < COLORS.len() => text.set("fill", "black"),
        Piece::Term(kind) => text
            .set("fill", "black")
            .set("stroke", COLORS[kind as usize % COLORS.len()])
            .set("stroke-width", 3)
            .set("paint-order", "stroke"),
    }
}

/// A mark where an iteration ends whose pieces lie over one another.
fn end_of_iteration(x: f64, top: f64) -> Line {
    rule(x, top - 3.0, top + BAR + 3.0).set("stroke-width", 2)
}

/// What the pieces and marks stand for, of those that occur, from `top` on, and where that ends.
fn key(all: &[Bars<'_>], top: f64) -> (Group, f64) {
    let sums = || all.iter().flat_map(|of| &of.bars).map(|(_, sum)| *sum);
    let occur: BTreeSet<Piece> = sums().flat_map(pieces).map(|(piece, _)| piece).collect();
    let place = |at: usize| {
        let column = (at % KEY_COLUMNS) as f64 * WIDTH / KEY_COLUMNS as f64;
        (column + 1.0, top + (at / KEY_COLUMNS) as f64 * KEY_LINE)
    };
    let mut key = Group::new();
    for (at, piece) in occur.iter().enumerate() {
        let (x, y) = place(at);
        key = key.add(piece.area(x, y, 16.0, 11.0)).add(words(piece.name(), x + 22.0, y + 9.5, "start"));
    }
    let marked = sums().any(is_beyond);
    if marked {
        let (x, y) = place(occur.len());
        let mark = rule(x + 8.0, y - 1.0, y + 12.0).set("stroke-width", 2);
        key = key.add(mark).add(words("iteration's end; parts overlap", x + 22.0, y + 9.5, "start"));
    }
    let lines = (occur.len() + usize::from(marked)).div_ceil(KEY_COLUMNS);
    (key, top + lines as f64 * KEY_LINE)
}

/// Lines from the upper right to the lower left all over an area, as the data of a path.
fn diagonals(x: f64, y: f64, width: f64, height: f64) -> String {
    const STEP: f64 = 5.0;
    let count = ((width + height) / STEP) as usize;
    let line = |at: usize| {
        let along = at as f64 * STEP;
        let from = (x + along.min(width), y + (along - width).max(0.0));
        let to = (x + (along - height).max(0.0), y + along.min(height));
        format!("M{},{} L{},{}", round(from.0), round(from.1), round(to.0), round(to.1))
    };
    (1..=count).map(line).collect::<Vec<_>>().join(" ")
}

/// To what can be seen.
fn round(points: f64) -> f64 {
    (points * 100.0).round() / 100.0
}

fn rule(x: f64, from: f64, to: f64) -> Line {
    Line::new().set("x1", x).set("x2", x).set("y1", from).set("y2", to).set("stroke", INK)
}

/// Text that comes from outside goes into text nodes only, which the library escapes.
fn words(text: &str, x: f64, y: f64, anchor: &str) -> Text {
    Text::new(text).set("x", round(x)).set("y", round(y)).set("text-anchor", anchor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explained::{by_differences, explanation};
    use analysis::explain::Explanation;

    fn drawn(all: &[Explanation]) -> String {
        let bar = |explanation: &'_ Explanation| -> (String, Decomposition) {
            let size = explanation.case.size_bytes.unwrap().to_string();
            (size, explanation.decomposition.clone().unwrap())
        };
        let owned: Vec<(String, Decomposition)> = all.iter().map(bar).collect();
        let bars = owned.iter().map(|(name, sum)| (name.clone(), sum)).collect();
        sums(&[Bars { heading: "pipe".to_owned(), bars }])
    }

    /// The widths of the pieces that are as high as bars.
    fn widths(svg: &str) -> Vec<f64> {
        let value = |tag: &str, name: &str| {
            tag.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse::<f64>().ok()
        };
        let bars = svg.split("<rect").skip(1).filter(|tag| value(tag, "height") == Some(BAR));
        bars.filter_map(|tag| value(tag, "width")).collect()
    }

    #[test]
    fn pieces_are_as_long_as_their_times() {
        let svg = drawn(&[explanation("pipe", 64, 1_000.0), explanation("pipe", 4096, 2_000.0)]);
        let widths = widths(&svg);
        assert_eq!(widths.len(), 2 * 6, "five terms and the residual");
        let of_bar = |bar: usize| widths[6 * bar..][..6].iter().sum::<f64>();
        assert!((of_bar(1) / of_bar(0) - 2.0).abs() < 0.01, "{widths:?}");
        assert!((widths[2] / of_bar(0) - 0.45).abs() < 0.01, "wake-ups are 45%: {widths:?}");
        for text in [
            "1.00 µs by samples",
            "wake-ups and switches: 450 ns, 45%",
            "residual: 100 ns, 10%",
            "time of an iteration",
            "4K",
        ] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }

    #[test]
    fn what_differs_too_much_is_drawn_in_shares() {
        let svg = drawn(&[explanation("pipe", 1, 1_000.0), explanation("pipe", 1 << 20, 400_000.0)]);
        let widths = widths(&svg);
        assert_eq!(widths[..6], widths[6..]);
        assert!(
            svg.contains("part of the iteration") && svg.contains("400 µs by samples") && svg.contains("20%")
        );
    }

    #[test]
    fn what_lies_over_one_another_goes_beyond_the_end_of_the_iteration() {
        let svg = drawn(&[by_differences("shm-ring", 64, 400.0)]);
        assert_eq!(widths(&svg).len(), 3, "a residual below 0 has no length");
        assert!(svg.contains("iteration's end") && svg.contains("400 ns by difference"), "{svg}");
        assert!(!drawn(&[explanation("pipe", 64, 400.0)]).contains("iteration's end"));
    }
}
