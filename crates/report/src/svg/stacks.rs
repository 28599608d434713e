//! Sums of layers as a picture: a bar for each, whose pieces are what its layers add.
//!
//! What a layer adds is decided in `analysis::study`.

use super::canvas::{Anchor, Canvas, GRID, Ground, Mark, Point, area, hatching, length, rule, words};
use super::line_style::COLORS;
use crate::quantity::{percent, tight_estimate, time};
use crate::scale::{Scale, tick_text};
use crate::words::{clean, clip};
use analysis::study::evaluated::{EvaluatedBar, EvaluatedCell, EvaluatedLayer, EvaluatedStack};
use model::estimate::Estimate;
use model::units::Unit;

const WIDTH: f64 = 720.0;
/// Right of the bars, for the time of the longest.
const RIGHT: f64 = 90.0;
const TOP: f64 = 6.0;
const ROW: f64 = 26.0;
const BAR: f64 = 18.0;
/// Under the bars: the axis, and the lines of the key.
const AXIS: f64 = 44.0;
const KEY_LINE: f64 = 17.0;
const LETTERS: f64 = 11.0;
/// A name longer than this is cut off.
const LONGEST_NAME: usize = 40;
const LONGEST_LAYER: usize = 50;
/// Where the longest bar is more times as long as the shortest, the pieces of the shortest could not be seen, and every bar is drawn as parts of
/// its own time.
const COMPARABLE: f64 = 12.0;

/// `stack` as an SVG file.
pub(crate) fn stack(stack: &EvaluatedStack) -> String {
    let bars: Vec<&EvaluatedBar> = stack.bars.iter().filter(|bar| total(bar).is_some()).collect();
    let layers = layers(&bars);
    let along = Along::from_bars(&bars);
    let bottom = TOP + ROW * bars.len() as f64;
    let mut canvas = Canvas {
        width: WIDTH,
        height: bottom + AXIS + KEY_LINE * layers.len() as f64,
        title: format!("{}: {}, as stacked bars", clean(&stack.name), clean(&stack.title)),
        letters: LETTERS,
        ground: Ground::Paper,
        marks: Vec::new(),
    };
    along.draw_axis(&mut canvas, bottom);
    for (nth, bar) in bars.iter().enumerate() {
        draw_bar(&mut canvas, bar, &layers, &along, TOP + ROW * nth as f64);
    }
    for (nth, name) in layers.iter().enumerate() {
        let (x, y) = (along.left, bottom + AXIS + KEY_LINE * nth as f64);
        piece(nth, (x, y), 16.0, 11.0).into_iter().for_each(|mark| canvas.add(mark));
        canvas.add(words(&clip(name, LONGEST_LAYER), (x + 22.0, y + 9.5), Anchor::Start));
    }
    canvas.document()
}

/// The names of all layers, each once, in the order in which they occur: a layer looks the same in every bar.
fn layers(bars: &[&EvaluatedBar]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for layer in bars.iter().flat_map(|bar| &bar.layers) {
        let name = clean(&layer.name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// An area of the layer of that number. Those for which there is no colour left have stripes.
fn piece(nth: usize, at: Point, width: f64, height: f64) -> Vec<Mark> {
    const STEP: f64 = 5.0;
    let stripes = (nth >= COLORS.len()).then(|| hatching(at, width, height, STEP, "white").into());
    [area(at, width, height, COLORS[nth % COLORS.len()]).into()].into_iter().chain(stripes).collect()
}

fn number(cell: &EvaluatedCell) -> Option<Estimate> {
    match cell {
        EvaluatedCell::Value(estimate, _) if estimate.median.is_finite() => Some(*estimate),
        _ => None,
    }
}

/// The time of a whole bar, if it was measured.
fn total(bar: &EvaluatedBar) -> Option<Estimate> {
    number(&bar.layers.last()?.so_far).filter(|estimate| estimate.median > 0.0)
}

/// How long the bar is: longer than its total where one of its layers takes nothing or less.
fn length_ns(bar: &EvaluatedBar) -> f64 {
    pieces(bar).map(|(_, ns)| ns).sum::<f64>().max(total(bar).map_or(0.0, |total| total.median))
}

/// The layers that are drawn, with their lengths.
fn pieces(bar: &EvaluatedBar) -> impl Iterator<Item = (&EvaluatedLayer, f64)> {
    bar.layers.iter().filter_map(|layer| {
        let ns = number(&layer.adds)?.median;
        (ns > 0.0).then_some((layer, ns))
    })
}

/// Where times come to stand.
struct Along {
    left: f64,
    /// Bars are drawn as parts of their own times.
    shares: bool,
    /// In nanoseconds, or in parts.
    scale: Scale,
}

impl Along {
    fn from_bars(bars: &[&EvaluatedBar]) -> Self {
        let names = bars.iter().map(|bar| length(&clip(&clean(&bar.name), LONGEST_NAME), LETTERS));
        let longest_ns = bars.iter().map(|bar| length_ns(bar)).fold(0.0, f64::max);
        let shortest_ns = bars.iter().map(|bar| length_ns(bar)).fold(f64::INFINITY, f64::min);
        let shares = longest_ns > COMPARABLE * shortest_ns;
        let most = if shares { 1.0 } else { longest_ns.max(f64::MIN_POSITIVE) };
        Self { left: 12.0 + names.fold(0.0, f64::max), shares, scale: Scale::linear(0.0, most) }
    }

    fn x(&self, along: f64) -> f64 {
        self.left + self.scale.place(along) * (WIDTH - self.left - RIGHT)
    }

    fn x_of(&self, bar: &EvaluatedBar, ns: f64) -> f64 {
        self.x(if self.shares { ns / length_ns(bar) } else { ns })
    }

    fn draw_axis(&self, canvas: &mut Canvas, bottom: f64) {
        const TICKS: f64 = 5.0;
        for tick in self.scale.ticks(TICKS) {
            let text = if self.shares && tick > 0.0 { percent(tick) } else { tick_text(tick, Unit::Ns) };
            let x = self.x(tick);
            canvas.add(rule((x, TOP), (x, bottom + 3.0), GRID));
            canvas.add(words(&text, (x, bottom + 15.0), Anchor::Middle));
        }
        let title = if self.shares { "part of the time" } else { "time of an iteration" };
        canvas.add(words(title, (f64::midpoint(self.left, WIDTH - RIGHT), bottom + 29.0), Anchor::Middle));
    }
}

/// A row: the name, the pieces one after the other, and at their end the time of all.
fn draw_bar(canvas: &mut Canvas, bar: &EvaluatedBar, layers: &[String], along: &Along, y: f64) {
    let (top, letters) = (y + (ROW - BAR) / 2.0, y + ROW / 2.0 + 4.0);
    let name = clip(&clean(&bar.name), LONGEST_NAME);
    canvas.add(words(&name, (along.left - 8.0, letters), Anchor::End));
    let mut from_ns = 0.0;
    for (layer, ns) in pieces(bar) {
        let (from, until) = (along.x_of(bar, from_ns), along.x_of(bar, from_ns + ns));
        from_ns += ns;
        let name = clean(&layer.name);
        let nth = layers.iter().position(|known| *known == name).unwrap_or_default();
        let took = number(&layer.adds).map(|estimate| tight_estimate(estimate, Unit::Ns)).unwrap_or_default();
        canvas.add(Mark::Group(format!("{name}: {took}"), piece(nth, (from, top), until - from, BAR)));
    }
    let took = total(bar).and_then(|total| time(total.median)).unwrap_or_default();
    canvas.add(words(&took, (along.x_of(bar, length_ns(bar)) + 6.0, letters), Anchor::Start));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, adds_ns: &[f64]) -> EvaluatedBar {
        let value = |ns: f64| EvaluatedCell::Value(Estimate { median: ns, interval: None }, Unit::Ns);
        let mut so_far_ns = 0.0;
        let layers = adds_ns.iter().enumerate().map(|(at, ns)| {
            so_far_ns += ns;
            EvaluatedLayer {
                name: format!("layer {at}"),
                adds: value(*ns),
                so_far: value(so_far_ns),
                share: None,
            }
        });
        EvaluatedBar { name: name.to_owned(), layers: layers.collect() }
    }

    fn picture(bars: Vec<EvaluatedBar>) -> String {
        stack(&EvaluatedStack { name: "s".to_owned(), title: "t".to_owned(), bars })
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
    fn pieces_are_as_long_as_what_their_layers_add() {
        let svg = picture(vec![bar("a", &[1000.0, 500.0]), bar("b", &[1000.0, 2000.0, -10.0])]);
        let widths = widths(&svg);
        assert_eq!(widths.len(), 4, "a layer that takes less than nothing has no length: {svg}");
        assert!(
            (widths[0] - widths[2]).abs() < 0.1 && (widths[3] / widths[1] - 4.0).abs() < 0.01,
            "{widths:?}"
        );
        for text in ["layer 2", "1.50 µs", "time of an iteration"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }

    #[test]
    fn what_differs_too_much_is_drawn_in_parts_of_its_own_time() {
        let svg = picture(vec![bar("a", &[1000.0]), bar("b", &[50_000.0, 50_000.0])]);
        let widths = widths(&svg);
        assert!((widths[0] - widths[1] - widths[2]).abs() < 0.1, "{widths:?}");
        assert!(svg.contains("part of the time"));
        assert!(picture(vec![bar("none", &[])]).contains("<svg"));
    }
}
