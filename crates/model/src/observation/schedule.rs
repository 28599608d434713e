//! When endpoints ran and slept, who woke them, and how long they then waited for a CPU. Worked out of events alone.

use super::{Event, Observation, Seen, What};
use crate::histogram::{EncodedHistogram, Histogram};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stretch of time in which an endpoint had a CPU, or had none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// When it began.
    pub from_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    /// What the endpoint did.
    pub state: State,
}

/// What an endpoint does, as the scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It has a CPU.
    Runs,
    /// It waits for something.
    Sleeps,
    /// It was woken by its peer and waits for a CPU: only where the peer's events are looked at too.
    Wakes,
    /// It could run, but another has the CPU.
    Preempted,
}

impl State {
    /// In words, as it is shown.
    pub fn name(self) -> &'static str {
        match self {
            State::Runs => "running",
            State::Sleeps => "asleep",
            State::Wakes => "woken, waits for a CPU",
            State::Preempted => "preempted",
        }
    }
}

/// The spans of `seen` in the order of time, which fill its window. It runs at first: it is its own thread that looks.
pub fn spans(seen: &Seen) -> Vec<Span> {
    let mut spans = Vec::new();
    let (mut from_ns, mut state) = (seen.from_ns, State::Runs);
    for event in &seen.events {
        let next = match event.what {
            What::Off { preempted: true } => State::Preempted,
            What::Off { preempted: false } => State::Sleeps,
            What::On { .. } => State::Runs,
            _ => continue,
        };
        spans.push(Span { from_ns, until_ns: event.at_ns, state });
        (from_ns, state) = (event.at_ns, next);
    }
    spans.push(Span { from_ns, until_ns: seen.until_ns, state });
    spans.retain(|span| span.until_ns > span.from_ns);
    spans
}

/// How one endpoint was scheduled, per turn where that makes sense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleRow {
    /// The time on a CPU, per turn, in nanoseconds.
    pub runs_ns: f64,
    /// The time asleep, per turn, in nanoseconds.
    pub sleeps_ns: f64,
    /// The time without the CPU though it could run, per turn, in nanoseconds.
    pub preempted_ns: f64,
    /// How often it went to sleep, per turn.
    pub sleeps: f64,
    /// How often it lost the CPU, per turn.
    pub preemptions: f64,
    /// How often it came back on another CPU, per turn.
    pub migrations: f64,
    /// The turns in which it slept, as a part of all: at most one sleep a turn counts.
    pub sleeping_turns: f64,
    /// How often its peer woke it, per turn; absent where wake-ups cannot be seen.
    pub woken_by_peer: Option<f64>,
    /// How often an interrupt that came while the peer ran, or the peer's own, woke it, per turn.
    pub woken_by_interrupt: Option<f64>,
    /// From being woken by the peer to having a CPU, in nanoseconds.
    pub wake_up: Option<EncodedHistogram>,
}

/// How the two endpoints' times lie over one another, per turn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overlap {
    /// Near alone has a CPU.
    pub near_ns: f64,
    /// Far alone has one.
    pub far_ns: f64,
    /// Both have.
    pub both_ns: f64,
    /// Neither has: somebody is on the way from being woken to running, or another process is in between.
    pub neither_ns: f64,
}

/// Schedules gathered over launches.
#[derive(Debug, Clone, Default)]
pub struct Schedules {
    turns: u64,
    near: Tally,
    far: Tally,
    overlap_ns: [u64; 4],
    sees_wake_ups: bool,
}

#[derive(Debug, Clone, Default)]
struct Tally {
    runs_ns: u64,
    sleeps_ns: u64,
    preempted_ns: u64,
    sleeps: u64,
    preemptions: u64,
    migrations: u64,
    woken_by_peer: u64,
    woken_by_interrupt: u64,
    wake_up: Histogram,
}

impl Schedules {
    /// Adds a launch that was looked at by the scheduler's events.
    pub fn add(&mut self, observation: &Observation) {
        self.turns += observation.turns;
        let (near, far) = (&observation.near, observation.far.as_ref());
        self.near.add(near, far);
        if let Some(far) = far {
            self.far.add(far, Some(near));
            for (sum, part) in self.overlap_ns.iter_mut().zip(overlap_ns(near, far)) {
                *sum += part;
            }
        }
        let wakes = |event: &Event| matches!(event.what, What::Wakes { .. });
        self.sees_wake_ups |= observation.ends().any(|end| end.events.iter().any(wakes));
    }

    /// Near's row and far's, if anything was added.
    pub fn rows(&self) -> Option<[ScheduleRow; 2]> {
        (self.turns > 0)
            .then(|| [&self.near, &self.far].map(|tally| tally.row(self.turns, self.sees_wake_ups)))
    }

    /// How the times of both lie over one another, if anything was added.
    pub fn overlap(&self) -> Option<Overlap> {
        let per_turn = |ns: u64| ns as f64 / self.turns as f64;
        let [near, far, both, neither] = self.overlap_ns;
        (self.turns > 0).then(|| Overlap {
            near_ns: per_turn(near),
            far_ns: per_turn(far),
            both_ns: per_turn(both),
            neither_ns: per_turn(neither),
        })
    }
}

impl Tally {
    fn add(&mut self, seen: &Seen, peer: Option<&Seen>) {
        for span in spans(seen) {
            let took_ns = span.until_ns - span.from_ns;
            match span.state {
                State::Runs => self.runs_ns += took_ns,
                State::Sleeps | State::Wakes => self.sleeps_ns += took_ns,
                State::Preempted => self.preempted_ns += took_ns,
            }
        }
        let mut last_cpu = None;
        for event in &seen.events {
            match event.what {
                What::Off { preempted: false } => self.sleeps += 1,
                What::Off { preempted: true } => self.preemptions += 1,
                What::On { cpu } => {
                    self.migrations += u64::from(last_cpu.is_some_and(|last| last != cpu));
                    last_cpu = Some(cpu);
                }
                _ => {}
            }
        }
        for (woken_ns, by_interrupt) in peer.into_iter().flat_map(|peer| wake_ups_of(seen.tid, peer)) {
            self.woken_by_peer += u64::from(!by_interrupt);
            self.woken_by_interrupt += u64::from(by_interrupt);
            if let Some(on_ns) = comes_on_after(seen, woken_ns) {
                self.wake_up.record(on_ns - woken_ns);
            }
        }
    }

    fn row(&self, turns: u64, sees_wake_ups: bool) -> ScheduleRow {
        let per_turn = |sum: u64| sum as f64 / turns as f64;
        let seen = |sum: u64| sees_wake_ups.then(|| per_turn(sum));
        ScheduleRow {
            runs_ns: per_turn(self.runs_ns),
            sleeps_ns: per_turn(self.sleeps_ns),
            preempted_ns: per_turn(self.preempted_ns),
            sleeps: per_turn(self.sleeps),
            preemptions: per_turn(self.preemptions),
            migrations: per_turn(self.migrations),
            sleeping_turns: per_turn(self.sleeps).min(1.0),
            woken_by_peer: seen(self.woken_by_peer),
            woken_by_interrupt: seen(self.woken_by_interrupt),
            wake_up: (self.wake_up.count() > 0).then(|| self.wake_up.encode()),
        }
    }
}

/// When `waker` woke the thread `tid`, and whether an interrupt did.
pub fn wake_ups_of(tid: u32, waker: &Seen) -> impl Iterator<Item = (u64, bool)> {
    waker.events.iter().filter_map(move |event| match event.what {
        What::Wakes { tid: woken, by_interrupt } if woken == tid => Some((event.at_ns, by_interrupt)),
        _ => None,
    })
}

/// When `seen` next had a CPU after it was woken at `woken_ns`; `None` if it ran then.
pub fn comes_on_after(seen: &Seen, woken_ns: u64) -> Option<u64> {
    let next = seen.events.partition_point(|event| event.at_ns < woken_ns);
    let mut rest = seen.events[next..].iter();
    match rest.find(|event| matches!(event.what, What::On { .. } | What::Off { .. }))? {
        Event { at_ns, what: What::On { .. } } => Some(*at_ns),
        _ => None,
    }
}

/// The time in which near alone, far alone, both and neither had a CPU, where both windows lie over one another.
fn overlap_ns(near: &Seen, far: &Seen) -> [u64; 4] {
    let (from_ns, until_ns) = (near.from_ns.max(far.from_ns), near.until_ns.min(far.until_ns));
    let runs = |seen: &Seen| -> Vec<(u64, u64)> {
        let cut = |span: Span| (span.from_ns.max(from_ns), span.until_ns.min(until_ns));
        spans(seen)
            .into_iter()
            .filter(|span| span.state == State::Runs)
            .map(cut)
            .filter(|(a, b)| a < b)
            .collect()
    };
    let (near, far) = (runs(near), runs(far));
    let total = |spans: &[(u64, u64)]| spans.iter().map(|(from, until)| until - from).sum::<u64>();
    let mut both_ns = 0;
    let mut others = far.iter().peekable();
    for (from, until) in &near {
        while let Some((other_from, other_until)) = others.peek() {
            both_ns += other_until.min(until).saturating_sub(*other_from.max(from));
            if other_until > until {
                break;
            }
            others.next();
        }
    }
    let (near_ns, far_ns) = (total(&near) - both_ns, total(&far) - both_ns);
    let window_ns = until_ns.saturating_sub(from_ns);
    [near_ns, far_ns, both_ns, window_ns.saturating_sub(near_ns + far_ns + both_ns)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_ns: u64, what: What) -> Event {
        Event { at_ns, what }
    }

    const SLEEP: What = What::Off { preempted: false };
    const LOSE: What = What::Off { preempted: true };

    fn seen(tid: u32, events: Vec<Event>) -> Seen {
        Seen { tid, events, from_ns: 0, until_ns: 100, ..Seen::default() }
    }

    /// Near runs to 20 and wakes far at 15; far runs from 30 to 60 and wakes near at 55, which runs from 65.
    fn ping_pong() -> Observation {
        let wakes = |tid| What::Wakes { tid, by_interrupt: false };
        let near = seen(1, vec![at(15, wakes(2)), at(20, SLEEP), at(65, What::On { cpu: 0 })]);
        let far = seen(2, vec![at(1, SLEEP), at(30, What::On { cpu: 1 }), at(55, wakes(1)), at(60, SLEEP)]);
        Observation { turns: 1, elapsed_ns: 100.0, turn_ends_ns: Vec::new(), near, far: Some(far) }
    }

    #[test]
    fn spans_fill_the_window() {
        let observation = ping_pong();
        let states: Vec<_> =
            spans(&observation.near).iter().map(|s| (s.from_ns, s.until_ns, s.state)).collect();
        assert_eq!(states, [(0, 20, State::Runs), (20, 65, State::Sleeps), (65, 100, State::Runs)]);
    }

    #[test]
    fn sleeps_and_wake_ups_are_told() {
        let mut schedules = Schedules::default();
        schedules.add(&ping_pong());
        let [near, far] = schedules.rows().unwrap();
        assert_eq!((near.runs_ns, near.sleeps_ns, near.sleeps), (55.0, 45.0, 1.0));
        assert_eq!((near.woken_by_peer, far.woken_by_peer), (Some(1.0), Some(1.0)));
        let waited = |row: &ScheduleRow| row.wake_up.as_ref().unwrap().decode().max_ns();
        assert_eq!((waited(&near), waited(&far)), (Some(10), Some(15)));
        let overlap = schedules.overlap().unwrap();
        assert_eq!(
            (overlap.near_ns, overlap.far_ns, overlap.both_ns, overlap.neither_ns),
            (54.0, 30.0, 1.0, 15.0)
        );
    }

    #[test]
    fn a_cpu_that_is_lost_is_no_sleep() {
        let events =
            vec![at(10, LOSE), at(20, What::On { cpu: 0 }), at(30, LOSE), at(40, What::On { cpu: 1 })];
        let observation = Observation { far: None, near: seen(1, events), ..ping_pong() };
        let mut schedules = Schedules::default();
        schedules.add(&observation);
        let [near, _] = schedules.rows().unwrap();
        assert_eq!(
            (near.preempted_ns, near.preemptions, near.sleeps, near.migrations),
            (20.0, 2.0, 0.0, 1.0)
        );
        assert_eq!(near.woken_by_peer, None, "no wake-up was seen at all");
    }

    #[test]
    fn who_was_awake_already_did_not_wait_for_a_cpu() {
        let end = seen(1, vec![at(20, SLEEP), at(30, What::On { cpu: 0 })]);
        assert_eq!(comes_on_after(&end, 25), Some(30));
        assert_eq!(comes_on_after(&end, 10), None);
        assert_eq!(comes_on_after(&end, 40), None);
    }
}
