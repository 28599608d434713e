//! One iteration as a picture: what client and server did from moment to moment, and who woke whom.
//!
//! Which iterations are drawn, and what happened in them, is decided in `analysis::traces::timeline`. Both endpoints' states
//! face each other, so that nothing but wake-ups lies between them; calls and page faults stand on the outer sides.

use super::canvas::{
    Anchor, Canvas, GRID, Ground, INK, Mark, Point, QUIET, Shape, area, hatching, length, polygon, rule,
    words,
};
use super::line_style::COLORS;
use crate::quantity::time;
use crate::scale::{Scale, tick_text};
use crate::words::{clean, clip};
use analysis::traces::schedule::{SchedulerState, StateSpan};
use analysis::traces::timeline::{Iteration, NamedCall, PageFault, Track, WakeUp};
use model::endpoint::EndpointRole;
use model::units::Unit;

/// The size of the picture, in points: narrow enough that its letters can be read on a phone.
const WIDTH: f64 = 600.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 16.0;
/// Where the client's lane begins: above it are the title and the case.
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
/// The height of letters, and of those that stand out.
const LETTERS: f64 = 10.5;
const LARGE: f64 = 12.0;
/// About how many marks the axis has.
const TICKS: f64 = 8.0;

const CALL: &str = "#f1f3f5";
const FAULT: &str = COLORS[5];
const ASLEEP: &str = "#f4f5f7";
const ASLEEP_LINES: &str = "#b4bcc5";

/// `iteration` of `case` as an SVG file.
pub fn timeline(iteration: &Iteration, case: &str) -> String {
    draw(iteration, case).document()
}

/// `iteration` of `case` as an element of a page.
pub(crate) fn timeline_element(iteration: &Iteration, case: &str) -> String {
    draw(iteration, case).element()
}

/// Which iteration it is, in words.
pub(crate) fn title(iteration: &Iteration) -> String {
    let took = time_text(iteration.until_ns.saturating_sub(iteration.from_ns));
    format!("{}: {took} (iteration {})", iteration.choice, iteration.number)
}

fn draw(iteration: &Iteration, case: &str) -> Canvas {
    let view = View::from_iteration(iteration);
    let title = title(iteration);
    let mut canvas = Canvas {
        width: WIDTH,
        height: view.bottom() + AXIS + KEY,
        title: format!("{}, {title}", clean(case)),
        letters: LETTERS,
        ground: Ground::Paper,
        marks: Vec::new(),
    };
    canvas.add(words(&title, (LEFT, 20.0), Anchor::Start).letters(LARGE + 2.0).bold());
    let longest_case = ((WIDTH - LEFT - RIGHT) / length("x", LETTERS)) as usize;
    canvas.add(words(&clip(&clean(case), longest_case), (LEFT, 38.0), Anchor::Start).color(QUIET));
    view.draw_axis(&mut canvas);
    for (end, track) in iteration.tracks.endpoints() {
        view.draw_lane(&mut canvas, end, track);
    }
    view.draw_wake_ups(&mut canvas, &iteration.tracks.wake_ups);
    view.draw_key(&mut canvas, iteration);
    canvas
}

fn time_text(ns: u64) -> String {
    time(ns as f64).unwrap_or_default()
}

/// Where moments and endpoints come to stand.
struct View {
    from_ns: u64,
    until_ns: u64,
    /// Of the time since the iteration began.
    scale: Scale,
    /// Operations have the client's lane alone.
    lanes: usize,
}

impl View {
    fn from_iteration(iteration: &Iteration) -> Self {
        let (from_ns, until_ns) = (iteration.from_ns, iteration.until_ns.max(iteration.from_ns + 1));
        let scale = Scale::linear(0.0, (until_ns - from_ns) as f64);
        Self { from_ns, until_ns, scale, lanes: iteration.tracks.endpoints().count() }
    }

    /// Where a moment stands, at the edge if it lies outside of the iteration.
    fn x(&self, at_ns: u64) -> f64 {
        self.x_after(at_ns.saturating_sub(self.from_ns) as f64)
    }

    fn x_after(&self, elapsed_ns: f64) -> f64 {
        LEFT + self.scale.place(elapsed_ns) * (WIDTH - LEFT - RIGHT)
    }

    fn bottom(&self) -> f64 {
        if self.lanes > 1 { TOP + 2.0 * LANE + BETWEEN } else { TOP + LANE }
    }

    /// Whether a moment lies in the iteration.
    fn has(&self, at_ns: u64) -> bool {
        (self.from_ns..=self.until_ns).contains(&at_ns)
    }

    /// Where an endpoint's states are, and where they face the other's.
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
    fn draw_axis(&self, canvas: &mut Canvas) {
        let bottom = self.bottom();
        for tick_ns in self.scale.ticks(TICKS) {
            let x = self.x_after(tick_ns);
            canvas.add(rule((x, TOP), (x, bottom + 4.0), GRID));
            canvas.add(words(&tick_text(tick_ns, Unit::Ns), (x, bottom + 17.0), Anchor::Middle));
        }
        let across = f64::midpoint(LEFT, WIDTH - RIGHT);
        let title = words("time since the iteration began", (across, bottom + 34.0), Anchor::Middle);
        canvas.add(title.color(QUIET));
    }

    /// One endpoint: its name, its calls and page faults, and its states.
    fn draw_lane(&self, canvas: &mut Canvas, end: EndpointRole, track: &Track) {
        let middle = self.states_y(end) + if end == EndpointRole::Client { 0.0 } else { STATES };
        canvas.add(words(end.name(), (LEFT - 8.0, middle + 4.0), Anchor::End).bold().letters(LARGE));
        for span in &track.spans {
            canvas.add(self.state(end, span));
        }
        let mut names_until = LEFT;
        for call in &track.calls {
            canvas.add(self.call(end, call, &mut names_until));
        }
        for fault in &track.faults {
            canvas.add(self.fault(end, fault));
        }
    }

    fn state(&self, end: EndpointRole, span: &StateSpan) -> Mark {
        let (from, until) = (self.x(span.from_ns), self.x(span.until_ns));
        let title = format!("{} {}", span.state.name(), time_text(span.until_ns - span.from_ns));
        Mark::Group(title, swatch(span.state, (from, self.states_y(end)), (until - from).max(0.5), STATES))
    }

    /// A box with the call's name and its time, as far as there is room, and dots where it goes on outside of the iteration.
    /// The name alone stands outside of a narrow box, if it is not in the way of the name before, which ends at
    /// `names_until`.
    fn call(&self, end: EndpointRole, named: &NamedCall, names_until: &mut f64) -> Mark {
        let call = &named.call;
        let (from, until, y) = (self.x(call.from_ns), self.x(call.until_ns), self.calls_y(end));
        let (room, middle) = (until - from, f64::midpoint(from, until));
        let name = clean(&named.name);
        let took = time_text(call.until_ns - call.from_ns);
        let title = format!("{name} = {}, {took}", call.answer);
        let mut marks = vec![area((from, y), room.max(1.0), CALLS, CALL).stroke(INK, 0.7).into()];
        let before = if self.has(call.from_ns) { "" } else { "… " };
        let after = if self.has(call.until_ns) { "" } else { " …" };
        let name = format!("{before}{name}{after}");
        let both = format!("{name} {took}");
        let inside = [&both, &name].into_iter().find(|text| length(text, LETTERS) + 6.0 <= room);
        if let Some(text) = inside {
            marks.push(words(text, (middle, y + CALLS / 2.0 + 4.0), Anchor::Middle).into());
            return Mark::Group(title, marks);
        }
        let half = length(&name, LETTERS) / 2.0;
        let at = middle.clamp(LEFT + half, (WIDTH - half).max(LEFT + half));
        if at - half >= *names_until {
            *names_until = at + half + length("x", LETTERS);
            let outside = if end == EndpointRole::Client { y - 4.0 } else { y + CALLS + LETTERS };
            marks.push(words(&name, (at, outside), Anchor::Middle).into());
        }
        Mark::Group(title, marks)
    }

    /// A mark that points at the moment from the side of the calls.
    fn fault(&self, end: EndpointRole, fault: &PageFault) -> Mark {
        let x = self.x(fault.at_ns);
        let states = self.states_y(end);
        let (tip, base) = if end == EndpointRole::Client {
            (states, states - 8.0)
        } else {
            (states + STATES, states + STATES + 8.0)
        };
        let place = fault.mapping.as_deref().map(clean).unwrap_or_default();
        let kind = if fault.major { "major page fault" } else { "page fault" };
        let title = format!("{kind} at {:#x} {place}", fault.address);
        Mark::Group(title.trim_end().to_owned(), vec![triangle((x, tip), base, FAULT).into()])
    }

    /// An arrow from who wakes to the moment at which the other has a CPU, with the time that this took.
    fn draw_wake_ups(&self, canvas: &mut Canvas, wake_ups: &[WakeUp]) {
        let mut texts_until = 0.0;
        for wake_up in wake_ups {
            let (from, to) = self.arrow(wake_up);
            let color = if wake_up.on_ns.is_some() { COLORS[1] } else { QUIET };
            let shaft = rule(from, to, color).width(1.4);
            let shaft = if wake_up.by_interrupt { shaft.dash(&[4.0, 3.0]) } else { shaft };
            let mut marks = vec![shaft.into()];
            if wake_up.on_ns.is_none_or(|on_ns| self.has(on_ns)) {
                marks.push(arrowhead(from, to, color).into());
            }
            let waiting_ns = wake_up.on_ns.map(|on_ns| on_ns.saturating_sub(wake_up.at_ns));
            if let Some(label) = waiting_ns.map(time_text) {
                let (x, y) = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
                let half = length(&label, LETTERS) / 2.0;
                let at = x.min(WIDTH - RIGHT - half);
                if at - half >= texts_until {
                    texts_until = at + half;
                    let label = words(&label, (at, y + 4.0), Anchor::Middle).color(color);
                    marks.push(label.rim("white", 4.0).into());
                }
            }
            canvas.add(Mark::Group(wake_up_title(wake_up, waiting_ns), marks));
        }
    }

    /// Where an arrow begins and ends, cut where it leaves the iteration.
    fn arrow(&self, wake_up: &WakeUp) -> (Point, Point) {
        let (upper, lower) =
            (self.states_y(EndpointRole::Client) + STATES, self.states_y(EndpointRole::Server));
        let (begins, ends) =
            if wake_up.waker == EndpointRole::Client { (upper, lower) } else { (lower, upper) };
        let (at_ns, on_ns) = (wake_up.at_ns, wake_up.on_ns.unwrap_or(wake_up.at_ns));
        let y = |moment_ns: u64| {
            let (since_ns, whole_ns) = (moment_ns.saturating_sub(at_ns), on_ns.saturating_sub(at_ns));
            let share = if whole_ns > 0 { since_ns as f64 / whole_ns as f64 } else { 0.0 };
            begins + share * (ends - begins)
        };
        let from = (self.x(at_ns), y(at_ns.max(self.from_ns)));
        let to = (self.x(on_ns), if on_ns > at_ns { y(on_ns.min(self.until_ns)) } else { ends });
        (from, to)
    }

    /// What the colours and marks stand for, of those that occur.
    fn draw_key(&self, canvas: &mut Canvas, iteration: &Iteration) {
        let tracks = || iteration.tracks.endpoints().map(|(_, track)| track);
        let states =
            [SchedulerState::Runs, SchedulerState::Sleeps, SchedulerState::Wakes, SchedulerState::Preempted];
        let occurs = |state: &SchedulerState| {
            tracks().any(|track| track.spans.iter().any(|span| span.state == *state))
        };
        let y = self.bottom() + AXIS;
        let mut x = LEFT;
        for state in states.into_iter().filter(occurs) {
            swatch(state, (x, y), 14.0, 10.0).into_iter().for_each(|mark| canvas.add(mark));
            canvas.add(words(state.name(), (x + 19.0, y + 9.0), Anchor::Start));
            x += 19.0 + length(state.name(), LETTERS) + 14.0;
        }
        if tracks().any(|track| !track.faults.is_empty()) {
            canvas.add(triangle((x + 4.0, y + 9.0), y + 1.0, FAULT));
            canvas.add(words("page fault", (x + 13.0, y + 9.0), Anchor::Start));
        }
    }
}

/// Who wakes whom, and how long that takes.
fn wake_up_title(wake_up: &WakeUp, waiting_ns: Option<u64>) -> String {
    let by = if wake_up.by_interrupt { "an interrupt on the " } else { "the " };
    let who = format!("{by}{} wakes the {}", wake_up.waker.name(), wake_up.waker.other().name());
    match waiting_ns {
        Some(ns) => format!("{who}, which runs {} later", time_text(ns)),
        None => format!("{who}, which was awake"),
    }
}

/// A stretch of one state.
fn swatch(state: SchedulerState, at: Point, width: f64, height: f64) -> Vec<Mark> {
    const STEP: f64 = 8.5;
    let plain = |color| vec![area(at, width, height, color).into()];
    match state {
        SchedulerState::Runs => plain(COLORS[0]),
        SchedulerState::Wakes => plain(COLORS[1]),
        SchedulerState::Preempted => plain(COLORS[3]),
        SchedulerState::Sleeps => vec![
            area(at, width, height, ASLEEP).into(),
            hatching(at, width, height, STEP, ASLEEP_LINES).into(),
        ],
    }
}

/// A triangle whose tip is at a point, and whose base is level.
fn triangle((x, tip): Point, base: f64, color: &'static str) -> Shape {
    polygon(vec![(x, tip), (x - 4.0, base), (x + 4.0, base)], color)
}

/// The head of an arrow between two points.
fn arrowhead(from: Point, to: Point, color: &'static str) -> Shape {
    const LENGTH: f64 = 8.0;
    const HALF_WIDTH: f64 = 3.2;
    let along = (to.0 - from.0).hypot(to.1 - from.1).max(1.0);
    let (dx, dy) = ((to.0 - from.0) / along, (to.1 - from.1) / along);
    let (back_x, back_y) = (to.0 - LENGTH * dx, to.1 - LENGTH * dy);
    let corners = vec![
        to,
        (back_x - HALF_WIDTH * dy, back_y + HALF_WIDTH * dx),
        (back_x + HALF_WIDTH * dy, back_y - HALF_WIDTH * dx),
    ];
    polygon(corners, color)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed;
    use analysis::traces::timeline::chosen_iterations;
    use model::observation::Observation;

    const CASE: &str = "pipe, latency, 64, same-llc (cpus 0,1)";

    fn pictures(case: &str) -> Vec<String> {
        let iterations = chosen_iterations(&observed::observation(), 1, observed::call_name);
        iterations.iter().map(|iteration| timeline(iteration, case)).collect()
    }

    #[test]
    fn every_call_state_and_wake_up_is_pictures() {
        let [typical, slow] = pictures(CASE).try_into().unwrap();
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
            "the client wakes the server, which runs 2.60 µs later",
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
        for svg in pictures("<script>&\u{202e}") {
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
