//! One iteration as SVG: what client and server did from moment to moment, and who woke whom.
//!
//! Which iterations are drawn, and what happened in them, is decided in `analysis::traces::timeline`. Both ends' states
//! face each other, so that nothing but wake-ups lies between them; calls and faults stand on the outer sides.

use crate::drawing::{FONT, GRID, INK, LETTERS, round_step, tick_text};
use crate::line_style::COLORS;
use crate::quantity::time;
use crate::text::{clean, clip, width};
use analysis::traces::schedule::{SchedulerState, StateSpan};
use analysis::traces::timeline::{Iteration, NamedCall, PageFault, Track, WakeUp};
use model::EndpointRole;
use model::units::Unit;
use svg::Document;
use svg::node::element::{Definitions, Group, Line, Pattern, Polygon, Polyline, Rectangle, Text, Title};

/// The size of the picture, in points: narrow enough that its letters can be read on a phone.
const WIDTH: f64 = 600.0;
const LEFT: f64 = 42.0;
const RIGHT: f64 = 16.0;
/// Where client's lane begins: above it are the title and the case.
const TOP: f64 = 52.0;
/// The parts of a lane: names that found no room in their call, the calls, the states.
const NAMES: f64 = 16.0;
const CALLS: f64 = 26.0;
const STATES: f64 = 14.0;
const LANE: f64 = NAMES + CALLS + STATES;
/// Between the lanes, for the wake-ups.
const BETWEEN: f64 = 54.0;
/// Under the lanes: the axis, and the key.
const AXIS: f64 = 44.0;
const KEY: f64 = 24.0;
/// What letters in the drawing take; a letter's width is that of the widest usual font.
const SMALL: f64 = 10.5;
const LETTER: f64 = 6.4;

const QUIET: &str = "#59626d";
const CALL: &str = "#f1f3f5";
const FAULT: &str = COLORS[5];

/// `iteration` of `case` as SVG.
pub fn timeline(iteration: &Iteration, case: &str) -> String {
    timeline_among(iteration, case, "iteration")
}

/// The same for a page that has several: what its parts refer to is named after `id`, which must be of no other there.
pub(crate) fn timeline_among(iteration: &Iteration, case: &str, id: &str) -> String {
    let view = View::of(iteration, format!("{id}-asleep"));
    let height = view.bottom() + AXIS + KEY;
    let title = title(iteration);
    let mut document = Document::new()
        .set("viewBox", (0, 0, WIDTH, height))
        .set("width", WIDTH)
        .set("height", height)
        .set("style", "max-width: 100%; height: auto")
        .set("role", "img")
        .set("font-family", FONT)
        .set("font-size", SMALL)
        .set("fill", INK)
        .add(Title::new(format!("{}, {title}", clean(case))))
        .add(Definitions::new().add(view.lines_of_sleep()))
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"))
        .add(words(&title, LEFT, 20.0, "start").set("font-size", LETTERS + 2.0).set("font-weight", "bold"))
        .add(words(&case_text(case), LEFT, 38.0, "start").set("fill", QUIET))
        .add(view.axis());
    for (end, track) in iteration.tracks.endpoints() {
        document = document.add(view.lane(end, track));
    }
    document = document.add(view.wake_ups(&iteration.tracks.wake_ups)).add(view.key(iteration));
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{document}\n")
}

/// Which iteration it is, in words.
pub(crate) fn title(iteration: &Iteration) -> String {
    let took = time_text(iteration.until_ns.saturating_sub(iteration.from_ns));
    format!("{}: {took} (iteration {})", iteration.choice, iteration.number)
}

fn case_text(case: &str) -> String {
    clip(&clean(case), ((WIDTH - LEFT - RIGHT) / LETTER) as usize)
}

fn time_text(ns: u64) -> String {
    time(ns as f64).unwrap_or_default()
}

/// Where moments and ends come to stand.
struct View {
    from_ns: f64,
    until_ns: f64,
    /// Operations have client's lane alone.
    lanes: usize,
    /// The id of the pattern that stands for sleep.
    asleep: String,
}

impl View {
    fn of(iteration: &Iteration, asleep: String) -> Self {
        let (from_ns, until_ns) = (iteration.from_ns as f64, iteration.until_ns as f64);
        Self {
            from_ns,
            until_ns: until_ns.max(from_ns + 1.0),
            lanes: iteration.tracks.endpoints().count(),
            asleep,
        }
    }

    /// Where a moment stands, at the edge if it lies outside of the iteration.
    fn x(&self, at_ns: u64) -> f64 {
        let share = (at_ns as f64 - self.from_ns) / (self.until_ns - self.from_ns);
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn bottom(&self) -> f64 {
        if self.lanes > 1 { TOP + 2.0 * LANE + BETWEEN } else { TOP + LANE }
    }

    /// Whether a moment lies in the iteration.
    fn has(&self, at_ns: u64) -> bool {
        (self.from_ns..=self.until_ns).contains(&(at_ns as f64))
    }

    /// Where an end's states are, and where they face the other end's.
    fn states_y(&self, end: EndpointRole) -> f64 {
        match end {
            EndpointRole::Client => TOP + NAMES + CALLS,
            EndpointRole::Server => TOP + LANE + BETWEEN,
        }
    }

    fn calls_y(&self, end: EndpointRole) -> f64 {
        match end {
            EndpointRole::Client => self.states_y(end) - CALLS,
            EndpointRole::Server => self.states_y(end) + STATES,
        }
    }

    /// Moments at round distances from the iteration's beginning.
    fn axis(&self) -> Group {
        let (took_ns, bottom) = (self.until_ns - self.from_ns, self.bottom());
        let step_ns = round_step(took_ns / 8.0);
        let ticks = (0..20).map(|at| f64::from(at) * step_ns).take_while(|tick| *tick <= took_ns);
        let mut axis = Group::new();
        for tick_ns in ticks {
            let x = LEFT + tick_ns / took_ns * (WIDTH - LEFT - RIGHT);
            let line = rule((x, TOP), (x, bottom + 4.0), GRID);
            let text = if tick_ns == 0.0 { "0".to_owned() } else { tick_text(tick_ns, Unit::Ns) };
            axis = axis.add(line).add(words(&text, x, bottom + 17.0, "middle"));
        }
        let across = LEFT + (WIDTH - LEFT - RIGHT) / 2.0;
        axis.add(words("time since the iteration began", across, bottom + 34.0, "middle").set("fill", QUIET))
    }

    /// One end: its name, its calls and faults, and its states.
    fn lane(&self, end: EndpointRole, track: &Track) -> Group {
        let middle = self.states_y(end) + if end == EndpointRole::Client { 0.0 } else { STATES };
        let name = words(end.name(), LEFT - 8.0, middle + 4.0, "end").set("font-weight", "bold");
        let mut lane = Group::new().add(name.set("font-size", LETTERS));
        for span in &track.spans {
            lane = lane.add(self.state(end, span));
        }
        let mut names_until = LEFT;
        for call in &track.calls {
            lane = lane.add(self.call(end, call, &mut names_until));
        }
        for fault in &track.faults {
            lane = lane.add(self.fault(end, fault));
        }
        lane
    }

    fn state(&self, end: EndpointRole, span: &StateSpan) -> Group {
        let (from, until) = (self.x(span.from_ns), self.x(span.until_ns));
        let text = format!("{} {}", span.state.name(), time_text(span.until_ns - span.from_ns));
        self.swatch(span.state, from, self.states_y(end), (until - from).max(0.5), STATES)
            .add(Title::new(text))
    }

    /// A box with the call's name and its time, as far as there is room, and dots where it goes on outside of the iteration.
    /// The name alone stands outside of a narrow box, if it is not in the way of the name before, which ends at
    /// `names_until`.
    fn call(&self, end: EndpointRole, named: &NamedCall, names_until: &mut f64) -> Group {
        let call = &named.call;
        let (from, until, y) = (self.x(call.from_ns), self.x(call.until_ns), self.calls_y(end));
        let (space, middle) = (until - from, f64::midpoint(from, until));
        let name = clean(&named.name);
        let took = time_text(call.until_ns - call.from_ns);
        let body = Rectangle::new()
            .set("x", round(from))
            .set("y", y)
            .set("width", round(space.max(1.0)))
            .set("height", CALLS)
            .set("fill", CALL)
            .set("stroke", INK)
            .set("stroke-width", 0.7);
        let group = Group::new().add(body).add(Title::new(format!("{name} = {}, {took}", call.answer)));
        let before = if self.has(call.from_ns) { "" } else { "… " };
        let after = if self.has(call.until_ns) { "" } else { " …" };
        let name = format!("{before}{name}{after}");
        let both = format!("{name} {took}");
        let inside = [&both, &name].into_iter().find(|text| length(text) + 6.0 <= space);
        if let Some(text) = inside {
            return group.add(words(text, middle, y + CALLS / 2.0 + 4.0, "middle"));
        }
        let half = length(&name) / 2.0;
        let at = middle.clamp(LEFT + half, WIDTH - half);
        if at - half < *names_until {
            return group;
        }
        *names_until = at + half + LETTER;
        let outside = if end == EndpointRole::Client { y - 4.0 } else { y + CALLS + SMALL };
        group.add(words(&name, at, outside, "middle"))
    }

    /// A mark that points at the moment from the side of the calls.
    fn fault(&self, end: EndpointRole, fault: &PageFault) -> Group {
        let x = self.x(fault.at_ns);
        let states = self.states_y(end);
        let (tip, base) = if end == EndpointRole::Client {
            (states, states - 8.0)
        } else {
            (states + STATES, states + STATES + 8.0)
        };
        let place = fault.mapping.as_deref().map(clean).unwrap_or_default();
        let kind = if fault.major { "major page fault" } else { "page fault" };
        let text = format!("{kind} at {:#x} {place}", fault.address);
        Group::new().add(triangle((x, tip), base, FAULT)).add(Title::new(text.trim_end()))
    }

    /// An arrow from who wakes to the moment at which the other has a CPU, with the time that this took.
    fn wake_ups(&self, wake_ups: &[WakeUp]) -> Group {
        let mut arrows = Group::new();
        let mut texts_until = 0.0;
        for wake_up in wake_ups {
            let (from, to) = self.arrow(wake_up);
            let color = if wake_up.on_ns.is_some() { COLORS[1] } else { QUIET };
            let mut line = rule(from, to, color).set("stroke-width", 1.4);
            if wake_up.by_interrupt {
                line = line.set("stroke-dasharray", "4 3");
            }
            let waiting_ns = wake_up.on_ns.map(|on_ns| on_ns.saturating_sub(wake_up.at_ns));
            let by = if wake_up.by_interrupt { "an interrupt on " } else { "" };
            let mut text = format!("{by}{} wakes {}", wake_up.waker.name(), wake_up.waker.other().name());
            text += &waiting_ns
                .map(|ns| format!(", which runs {} later", time_text(ns)))
                .unwrap_or(", which was awake".to_owned());
            let mut arrow = Group::new().add(line).add(Title::new(text));
            if wake_up.on_ns.is_none_or(|on_ns| self.has(on_ns)) {
                arrow = arrow.add(head(from, to, color));
            }
            if let Some(label) = waiting_ns.map(time_text) {
                let (x, y) = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
                let half = length(&label) / 2.0;
                let at = x.min(WIDTH - RIGHT - half);
                if at - half >= texts_until {
                    texts_until = at + half;
                    arrow = arrow.add(on_white(words(&label, at, y + 4.0, "middle").set("fill", color)));
                }
            }
            arrows = arrows.add(arrow);
        }
        arrows
    }

    /// Where an arrow begins and ends, cut where it leaves the iteration.
    fn arrow(&self, wake_up: &WakeUp) -> ((f64, f64), (f64, f64)) {
        let (upper, lower) =
            (self.states_y(EndpointRole::Client) + STATES, self.states_y(EndpointRole::Server));
        let (begins, ends) =
            if wake_up.waker == EndpointRole::Client { (upper, lower) } else { (lower, upper) };
        let (at_ns, on_ns) = (wake_up.at_ns as f64, wake_up.on_ns.unwrap_or(wake_up.at_ns) as f64);
        let y = |moment_ns: f64| {
            let share = if on_ns > at_ns { (moment_ns - at_ns) / (on_ns - at_ns) } else { 0.0 };
            begins + share * (ends - begins)
        };
        let from = (self.x(wake_up.at_ns), y(at_ns.max(self.from_ns)));
        let to = (self.x(on_ns as u64), if on_ns > at_ns { y(on_ns.min(self.until_ns)) } else { ends });
        (from, to)
    }

    /// A stretch of one state.
    fn swatch(&self, state: SchedulerState, x: f64, y: f64, width: f64, height: f64) -> Group {
        let area =
            Rectangle::new().set("x", round(x)).set("y", y).set("width", round(width)).set("height", height);
        let area = match state {
            SchedulerState::Runs => area.set("fill", COLORS[0]),
            SchedulerState::Sleeps => area.set("fill", format!("url(#{})", self.asleep)),
            SchedulerState::Wakes => area.set("fill", COLORS[1]),
            SchedulerState::Preempted => area.set("fill", COLORS[3]),
        };
        Group::new().add(area)
    }

    /// The lines that stand for sleep.
    fn lines_of_sleep(&self) -> Pattern {
        let line = Polyline::new().set("points", "0,0 0,6").set("stroke", "#b4bcc5").set("stroke-width", 2);
        let pattern = Pattern::new().set("id", &*self.asleep).set("width", 6).set("height", 6);
        let pattern = pattern.set("patternUnits", "userSpaceOnUse").set("patternTransform", "rotate(45)");
        pattern.add(Rectangle::new().set("width", 6).set("height", 6).set("fill", "#f4f5f7")).add(line)
    }

    /// What the colours and marks stand for, of those that occur.
    fn key(&self, iteration: &Iteration) -> Group {
        let tracks = || iteration.tracks.endpoints().map(|(_, track)| track);
        let states =
            [SchedulerState::Runs, SchedulerState::Sleeps, SchedulerState::Wakes, SchedulerState::Preempted];
        let occurs = |state: &SchedulerState| {
            tracks().any(|track| track.spans.iter().any(|span| span.state == *state))
        };
        let y = self.bottom() + AXIS;
        let mut key = Group::new();
        let mut x = LEFT;
        for state in states.into_iter().filter(occurs) {
            key = key.add(self.swatch(state, x, y, 14.0, 10.0)).add(words(
                state.name(),
                x + 19.0,
                y + 9.0,
                "start",
            ));
            x += 19.0 + length(state.name()) + 14.0;
        }
        if tracks().any(|track| !track.faults.is_empty()) {
            let mark = triangle((x + 4.0, y + 9.0), y + 1.0, FAULT);
            key = key.add(mark).add(words("page fault", x + 13.0, y + 9.0, "start"));
        }
        key
    }
}

/// How long `text` is, in points.
fn length(text: &str) -> f64 {
    width(text) as f64 * LETTER
}

/// To what can be seen: files would be full of digits else.
fn round(points: f64) -> f64 {
    (points * 100.0).round() / 100.0
}

fn rule(from: (f64, f64), to: (f64, f64), color: &str) -> Line {
    let line = Line::new().set("x1", round(from.0)).set("y1", round(from.1));
    line.set("x2", round(to.0)).set("y2", round(to.1)).set("stroke", color)
}

/// Text that comes from outside goes into text nodes only, which the library escapes.
fn words(text: &str, x: f64, y: f64, anchor: &str) -> Text {
    Text::new(text).set("x", round(x)).set("y", round(y)).set("text-anchor", anchor)
}

/// `text` with a rim that keeps it legible on lines.
fn on_white(text: Text) -> Text {
    text.set("stroke", "white")
        .set("stroke-width", 4)
        .set("stroke-linejoin", "round")
        .set("paint-order", "stroke")
}

/// A triangle whose tip is at a point, and whose base is level.
fn triangle((x, tip): (f64, f64), base: f64, color: &str) -> Polygon {
    let points =
        [(x, tip), (x - 4.0, base), (x + 4.0, base)].map(|(x, y)| format!("{},{}", round(x), round(y)));
    Polygon::new().set("points", points.join(" ")).set("fill", color)
}

/// The head of an arrow between two points.
fn head(from: (f64, f64), to: (f64, f64), color: &str) -> Polygon {
    const LENGTH: f64 = 8.0;
    const HALF_WIDTH: f64 = 3.2;
    let along = (to.0 - from.0).hypot(to.1 - from.1).max(1.0);
    let (dx, dy) = ((to.0 - from.0) / along, (to.1 - from.1) / along);
    let (back_x, back_y) = (to.0 - LENGTH * dx, to.1 - LENGTH * dy);
    let corners = [
        to,
        (back_x - HALF_WIDTH * dy, back_y + HALF_WIDTH * dx),
        (back_x + HALF_WIDTH * dy, back_y - HALF_WIDTH * dx),
    ];
    let points = corners.map(|(x, y)| format!("{},{}", round(x), round(y)));
    Polygon::new().set("points", points.join(" ")).set("fill", color)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed;
    use analysis::traces::timeline::chosen_iterations;
    use model::observation::Observation;

    const CASE: &str = "pipe, latency, 64, same-llc (cpus 0,1)";

    fn drawn(case: &str) -> Vec<String> {
        let iterations = chosen_iterations(&observed::observation(), 1, observed::call_name);
        iterations.iter().map(|iteration| timeline(iteration, case)).collect()
    }

    #[test]
    fn every_call_state_and_wake_up_is_drawn() {
        let [typical, slow] = drawn(CASE).try_into().unwrap();
        let has = |svg: &str, text: &str| {
            assert!(
                svg.contains(&format!("\n{text}\n")) || svg.contains(&format!(">{text}<")),
                "{text}: {svg}"
            );
        };
        for text in [
            "typical: 14.2 µs (iteration 3)",
            CASE,
            "client",
            "server",
            "write 2.90 µs",
            "read 10.7 µs",
            "woken, waits for a CPU 2.60 µs",
            "client wakes server, which runs 2.60 µs later",
            "2 µs",
        ] {
            has(&typical, text);
        }
        for text in [
            "slowest of 5: 44.2 µs (iteration 5)",
            "page fault at 0x7f0000001000 [heap]",
            "preempted 27.0 µs",
            "preempted",
        ] {
            has(&slow, text);
        }
        assert!(!typical.contains("preempted"), "the key has what occurs");
    }

    #[test]
    fn nothing_is_drawn_outside_and_words_do_no_harm() {
        for svg in drawn("<script>&\u{202e}") {
            assert!(!svg.contains("<script>") && !svg.contains('\u{202e}') && !svg.contains("NaN"), "{svg}");
            let xs = svg.split(" x=\"").skip(1).filter_map(|rest| rest.split('"').next());
            for x in xs.map(|x| x.parse::<f64>().unwrap()) {
                assert!((0.0..=WIDTH).contains(&x), "{x}: {svg}");
            }
        }
    }

    #[test]
    fn an_operation_has_one_lane() {
        let alone = Observation { server: None, ..observed::observation() };
        let svg = timeline(&chosen_iterations(&alone, 0, observed::call_name)[0], "getpid, cost");
        assert!(svg.contains("client") && !svg.contains(">server<") && !svg.contains("wakes"), "{svg}");
    }
}
