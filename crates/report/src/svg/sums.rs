//! Iterations as sums: a stacked bar for each case, in a picture for a page.
//!
//! What the groups are is decided in `analysis::path`. The ink and the letters are those of the page, so that the picture is right in
//! light and dark; and nothing in it has an id, for a page has many such pictures.

use super::canvas::{
    Anchor, Canvas, Ground, Mark, PAGE_INK, Point, Shape, Words, area, hatching, length, rule, words,
};
use super::line_style::COLORS;
use crate::quantity::{percent, time};
use crate::scale::{Scale, tick_text};
use crate::text::path::RESIDUAL;
use crate::words::clip;
use analysis::path::{PathGroup, PathSum};
use model::units::Unit;
use std::collections::BTreeSet;

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
/// A name longer than this is cut off.
const LONGEST_NAME: usize = 12;
/// The least width of a piece that has its share written on it.
const LEAST_FOR_SHARE: f64 = 30.0;
/// Where the longest bar is more times as long as the shortest, the pieces of the shortest could not be seen, and every bar
/// is drawn as parts of its own iteration.
const COMPARABLE: f64 = 8.0;
/// More than this part of an iteration beyond its end is shown as such.
const BEYOND: f64 = 0.005;

/// Bars under a heading.
pub(crate) struct Bars<'a> {
    /// What they have in common; may be empty.
    pub(crate) heading: String,
    /// What each is called, and what it shows.
    pub(crate) bars: Vec<(String, &'a PathSum)>,
}

/// `all` as an element of a page.
pub(crate) fn sums(all: &[Bars<'_>]) -> String {
    let along = Along::from_bars(all);
    let mut canvas = Canvas {
        width: WIDTH,
        height: 0.0,
        title: "where the time of iterations goes, as stacked bars".to_owned(),
        letters: LETTERS,
        ground: Ground::Page(LARGEST),
        marks: Vec::new(),
    };
    let headings = all.iter().filter(|of| !of.heading.is_empty()).count();
    let bars: usize = all.iter().map(|of| of.bars.len()).sum();
    let bottom = TOP + HEADING * headings as f64 + ROW * bars as f64;
    along.draw_axis(&mut canvas, bottom);
    let mut y = TOP;
    for of in all {
        if !of.heading.is_empty() {
            canvas.add(words(&of.heading, (0.0, y + HEADING - 8.0), Anchor::Start).bold());
            y += HEADING;
        }
        for (name, sum) in &of.bars {
            draw_bar(&mut canvas, name, sum, &along, y);
            y += ROW;
        }
    }
    canvas.height = draw_key(&mut canvas, all, bottom + AXIS);
    canvas.element()
}

/// What a piece of a bar stands for, in the order in which they are drawn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    Group(PathGroup),
    Residual,
}

impl Piece {
    fn name(self) -> &'static str {
        match self {
            Piece::Group(group) => group.name(),
            Piece::Residual => RESIDUAL,
        }
    }

    /// An area of it. A group looks the same in every picture; those for which there is no colour left have
    /// stripes.
    fn area(self, at: Point, width: f64, height: f64) -> Vec<Mark> {
        const STEP: f64 = 5.0;
        let stripes = |color| hatching(at, width, height, STEP, color);
        match self {
            Piece::Group(group) => {
                let nth = group as usize;
                let stripes = (nth >= COLORS.len()).then(|| stripes("white").into());
                let area = area(at, width, height, COLORS[nth % COLORS.len()]);
                [area.into()].into_iter().chain(stripes).collect()
            }
            Piece::Residual => {
                let area = area(at, width, height, "none").stroke(PAGE_INK, 1.0).opacity(0.6);
                vec![area.into(), stripes(PAGE_INK).opacity(0.4).into()]
            }
        }
    }
}

/// What is drawn of `sum`, in the order of its groups. A group below 0 has no length; it stands in the tables. A residual is
/// drawn where the groups do not fill the iteration.
fn pieces(sum: &PathSum) -> impl Iterator<Item = (Piece, f64)> {
    let groups = sum.groups().into_iter().map(|(group, ns)| (Piece::Group(group), ns.mean));
    let all = groups.chain([(Piece::Residual, -sum.residual_ns.mean)]);
    all.filter(|(_, ns)| ns.is_finite() && *ns > 0.0)
}

/// How long the bar of `sum` is: longer than the iteration where the corrected sum is.
fn length_ns(sum: &PathSum) -> f64 {
    let drawn_ns: f64 = pieces(sum).map(|(_, ns)| ns).sum();
    drawn_ns.max(sum.bare_ns.mean).max(f64::MIN_POSITIVE)
}

fn is_beyond(sum: &PathSum) -> bool {
    length_ns(sum) > (1.0 + BEYOND) * sum.bare_ns.mean
}

/// Where moments of iterations come to stand.
struct Along {
    left: f64,
    /// Bars are drawn as parts of their own iterations.
    shares: bool,
    /// In nanoseconds, or in iterations.
    scale: Scale,
}

impl Along {
    fn from_bars(all: &[Bars<'_>]) -> Self {
        let bars = || all.iter().flat_map(|of| &of.bars);
        let names = bars().map(|(name, _)| length(&clip(name, LONGEST_NAME), LETTERS));
        let longest_name = names.fold(0.0, f64::max);
        let longest_ns = bars().map(|(_, sum)| length_ns(sum)).fold(0.0, f64::max);
        let shortest_ns = bars().map(|(_, sum)| length_ns(sum)).fold(f64::INFINITY, f64::min);
        let shares = longest_ns > COMPARABLE * shortest_ns;
        let longest_share = bars().map(|(_, sum)| length_ns(sum) / sum.bare_ns.mean).fold(1.0, f64::max);
        Self {
            left: if longest_name > 0.0 { 10.0 + longest_name } else { 1.0 },
            shares,
            scale: Scale::linear(0.0, if shares { longest_share } else { longest_ns }),
        }
    }

    fn x(&self, along: f64) -> f64 {
        self.left + self.scale.place(along) * (WIDTH - self.left - RIGHT)
    }

    fn x_of(&self, sum: &PathSum, ns: f64) -> f64 {
        self.x(if self.shares { ns / sum.bare_ns.mean } else { ns })
    }

    /// Round values under the bars, which end at `bottom`.
    fn draw_axis(&self, canvas: &mut Canvas, bottom: f64) {
        const TICKS: f64 = 5.0;
        for tick in self.scale.ticks(TICKS) {
            let text = if self.shares && tick > 0.0 { percent(tick) } else { tick_text(tick, Unit::Ns) };
            let x = self.x(tick);
            canvas.add(rule((x, TOP), (x, bottom + 3.0), PAGE_INK).opacity(0.15));
            canvas.add(words(&text, (x.max(LETTERS / 2.0), bottom + 15.0), Anchor::Middle));
        }
        let title = if self.shares { "part of the iteration" } else { "time of an iteration" };
        let across = f64::midpoint(self.left, WIDTH - RIGHT);
        canvas.add(words(title, (across, bottom + 29.0), Anchor::Middle));
    }
}

/// A row: the name, the pieces one after the other, and at their end the time of the iteration.
fn draw_bar(canvas: &mut Canvas, name: &str, sum: &PathSum, along: &Along, y: f64) {
    let (top, letters) = (y + (ROW - BAR) / 2.0, y + ROW / 2.0 + 4.0);
    canvas.add(words(&clip(name, LONGEST_NAME), (along.left - 8.0, letters), Anchor::End));
    let mut from_ns = 0.0;
    for (piece, ns) in pieces(sum) {
        let (from, until) = (along.x_of(sum, from_ns), along.x_of(sum, from_ns + ns));
        from_ns += ns;
        let share = percent(ns / sum.bare_ns.mean);
        let mut marks = piece.area((from, top), until - from, BAR);
        if until - from >= LEAST_FOR_SHARE {
            let share = words(&share, (f64::midpoint(from, until), letters), Anchor::Middle);
            marks.push(on_area(share, piece).into());
        }
        let title = format!("{}: {}, {share}", piece.name(), time(ns).unwrap_or_default());
        canvas.add(Mark::Group(title, marks));
    }
    if is_beyond(sum) {
        canvas.add(end_of_iteration(along.x_of(sum, sum.bare_ns.mean), top, top + BAR));
    }
    let took = time(sum.bare_ns.mean).unwrap_or_default();
    canvas.add(words(&took, (along.x_of(sum, length_ns(sum)) + 6.0, letters), Anchor::Start));
}

/// Words on an area: black can be read on every colour, on stripes with a rim.
fn on_area(text: Words, piece: Piece) -> Words {
    match piece {
        Piece::Residual => text,
        Piece::Group(group) if (group as usize) < COLORS.len() => text.color("black"),
        Piece::Group(group) => text.color("black").rim(COLORS[group as usize % COLORS.len()], 3.0),
    }
}

/// A mark where an iteration ends whose pieces are longer.
fn end_of_iteration(x: f64, top: f64, bottom: f64) -> Shape {
    rule((x, top - 3.0), (x, bottom + 3.0), PAGE_INK).width(2.0)
}

/// What the pieces and marks stand for, of those that occur, from `top` on. Returns where that ends.
fn draw_key(canvas: &mut Canvas, all: &[Bars<'_>], top: f64) -> f64 {
    let sums = || all.iter().flat_map(|of| &of.bars).map(|(_, sum)| *sum);
    let occur: BTreeSet<Piece> = sums().flat_map(pieces).map(|(piece, _)| piece).collect();
    let place = |at: usize| {
        let column = (at % KEY_COLUMNS) as f64 * WIDTH / KEY_COLUMNS as f64;
        (column + 1.0, top + (at / KEY_COLUMNS) as f64 * KEY_LINE)
    };
    let name = |text: &str, (x, y): Point| words(text, (x + 22.0, y + 9.5), Anchor::Start);
    for (at, piece) in occur.iter().enumerate() {
        piece.area(place(at), 16.0, 11.0).into_iter().for_each(|mark| canvas.add(mark));
        canvas.add(name(piece.name(), place(at)));
    }
    let marked = sums().any(is_beyond);
    if marked {
        let (x, y) = place(occur.len());
        canvas.add(end_of_iteration(x + 8.0, y + 2.0, y + 9.0));
        canvas.add(name("iteration's end; the sum is longer", (x, y)));
    }
    let lines = (occur.len() + usize::from(marked)).div_ceil(KEY_COLUMNS);
    top + lines as f64 * KEY_LINE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explained::explanation;
    use analysis::explain::Explanation;

    fn picture(all: &[Explanation]) -> String {
        let bar = |explanation: &'_ Explanation| -> (String, PathSum) {
            let size = explanation.case.size_bytes.unwrap().to_string();
            (size, explanation.path.clone().unwrap())
        };
        let owned: Vec<(String, PathSum)> = all.iter().map(bar).collect();
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
        let svg = picture(&[explanation("pipe", 64, 1_000.0), explanation("pipe", 4096, 2_000.0)]);
        let widths = widths(&svg);
        assert_eq!(widths.len(), 2 * 4, "code and calls of both: {svg}");
        let of_bar = |bar: usize| widths[4 * bar..][..4].iter().sum::<f64>();
        assert!((of_bar(1) / of_bar(0) - 2.0).abs() < 0.01, "{widths:?}");
        for text in ["client&#x27;s calls", "time of an iteration", "4K", "1.01 µs"] {
            assert!(svg.contains(text) || svg.contains(&text.replace("&#x27;", "'")), "{text}: {svg}");
        }
    }

    #[test]
    fn what_differs_too_much_is_drawn_in_shares() {
        let svg = picture(&[explanation("pipe", 1, 1_000.0), explanation("pipe", 1 << 20, 400_000.0)]);
        let widths = widths(&svg);
        assert!(widths[..4].iter().zip(&widths[4..]).all(|(a, b)| (a - b).abs() < 0.5), "{widths:?}");
        assert!(svg.contains("part of the iteration"));
    }
}
