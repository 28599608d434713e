//! When endpoints ran and slept, who woke them, and how long they then waited for a CPU. From events alone.

use model::histogram::Histogram;
use model::observation::profile::ScheduleProfile;
use model::observation::{EndpointEvent, EndpointObservation, EventKind, Observation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stretch of time in which an endpoint had a CPU, or had none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StateSpan {
    /// When it began.
    pub from_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    /// What the endpoint did.
    pub state: SchedulerState,
}

/// What an endpoint does, as the scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerState {
    /// It has a CPU.
    Runs,
    /// It waits for something.
    Sleeps,
    /// Its peer woke it, and it waits for a CPU. Known only with the events of the peer.
    Wakes,
    /// It could run, but another has the CPU.
    Preempted,
}

impl SchedulerState {
    /// In words, as it is shown.
    pub fn name(self) -> &'static str {
        match self {
            SchedulerState::Runs => "running",
            SchedulerState::Sleeps => "asleep",
            SchedulerState::Wakes => "woken, waits for a CPU",
            SchedulerState::Preempted => "preempted",
        }
    }
}

/// The spans of `seen` in the order of time, which fill its window. It runs at first: its own thread starts the probe.
pub fn spans(seen: &EndpointObservation) -> Vec<StateSpan> {
    let mut spans = Vec::new();
    let (mut from_ns, mut state) = (seen.from_ns, SchedulerState::Runs);
    for event in &seen.events {
        let next = match event.what {
            EventKind::Off { preempted: true } => SchedulerState::Preempted,
            EventKind::Off { preempted: false } => SchedulerState::Sleeps,
            EventKind::On { .. } => SchedulerState::Runs,
            _ => continue,
        };
        spans.push(StateSpan { from_ns, until_ns: event.at_ns, state });
        (from_ns, state) = (event.at_ns, next);
    }
    spans.push(StateSpan { from_ns, until_ns: seen.until_ns, state });
    spans.retain(|span| span.until_ns > span.from_ns);
    spans
}

/// How much of the time both endpoints, one of them or neither had a CPU, per iteration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overlap {
    /// Only the client had one.
    pub client_ns: f64,
    /// Only the server had one.
    pub server_ns: f64,
    /// Both had.
    pub both_ns: f64,
    /// Neither had: one was woken and did not run yet, or another process had the CPU.
    pub neither_ns: f64,
}

/// How both endpoints were scheduled, summed over trials.
#[derive(Debug, Clone, Default)]
pub struct ScheduleTally {
    iterations: u64,
    client: Tally,
    server: Tally,
    overlap_ns: [u64; 4],
    sees_wake_ups: bool,
}

#[derive(Debug, Clone, Default)]
struct Tally {
    running_ns: u64,
    asleep_ns: u64,
    preempted_ns: u64,
    sleeps: u64,
    preemptions: u64,
    migrations: u64,
    woken_by_peer: u64,
    woken_by_interrupt: u64,
    wake_up: Histogram,
}

impl ScheduleTally {
    /// Adds a trial with the events of the scheduler.
    pub fn add(&mut self, observation: &Observation) {
        self.iterations += observation.iterations;
        let (client, server) = (&observation.client, observation.server.as_ref());
        self.client.add(client, server);
        if let Some(server) = server {
            self.server.add(server, Some(client));
            for (sum, part) in self.overlap_ns.iter_mut().zip(overlap_ns(client, server)) {
                *sum += part;
            }
        }
        let wakes = |event: &EndpointEvent| matches!(event.what, EventKind::Wakes { .. });
        self.sees_wake_ups |= observation.endpoints().any(|end| end.events.iter().any(wakes));
    }

    /// The client's schedule and the server's, if anything was added.
    pub fn profiles(&self) -> Option<[ScheduleProfile; 2]> {
        (self.iterations > 0)
            .then(|| [&self.client, &self.server].map(|tally| tally.row(self.iterations, self.sees_wake_ups)))
    }

    /// How much both ran at the same time, if anything was added.
    pub fn overlap(&self) -> Option<Overlap> {
        let per_iteration = |ns: u64| ns as f64 / self.iterations as f64;
        let [client, server, both, neither] = self.overlap_ns;
        (self.iterations > 0).then(|| Overlap {
            client_ns: per_iteration(client),
            server_ns: per_iteration(server),
            both_ns: per_iteration(both),
            neither_ns: per_iteration(neither),
        })
    }
}

impl Tally {
    fn add(&mut self, seen: &EndpointObservation, peer: Option<&EndpointObservation>) {
        for span in spans(seen) {
            let took_ns = span.until_ns - span.from_ns;
            match span.state {
                SchedulerState::Runs => self.running_ns += took_ns,
                SchedulerState::Sleeps | SchedulerState::Wakes => self.asleep_ns += took_ns,
                SchedulerState::Preempted => self.preempted_ns += took_ns,
            }
        }
        let mut last_cpu = None;
        for event in &seen.events {
            match event.what {
                EventKind::Off { preempted: false } => self.sleeps += 1,
                EventKind::Off { preempted: true } => self.preemptions += 1,
                EventKind::On { cpu } => {
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

    fn row(&self, iterations: u64, sees_wake_ups: bool) -> ScheduleProfile {
        let per_iteration = |sum: u64| sum as f64 / iterations as f64;
        let seen = |sum: u64| sees_wake_ups.then(|| per_iteration(sum));
        ScheduleProfile {
            running_ns: per_iteration(self.running_ns),
            asleep_ns: per_iteration(self.asleep_ns),
            preempted_ns: per_iteration(self.preempted_ns),
            sleeps: per_iteration(self.sleeps),
            preemptions: per_iteration(self.preemptions),
            migrations: per_iteration(self.migrations),
            sleeping_share: per_iteration(self.sleeps).min(1.0),
            woken_by_peer: seen(self.woken_by_peer),
            woken_by_interrupt: seen(self.woken_by_interrupt),
            wake_up: (self.wake_up.count() > 0).then(|| self.wake_up.encode()),
        }
    }
}

/// When `waker` woke the thread `tid`, and whether an interrupt did.
pub fn wake_ups_of(tid: u32, waker: &EndpointObservation) -> impl Iterator<Item = (u64, bool)> {
    waker.events.iter().filter_map(move |event| match event.what {
        EventKind::Wakes { tid: woken, by_interrupt } if woken == tid => Some((event.at_ns, by_interrupt)),
        _ => None,
    })
}

/// When `seen` next had a CPU after it was woken at `woken_ns`; `None` if it ran then.
pub fn comes_on_after(seen: &EndpointObservation, woken_ns: u64) -> Option<u64> {
    let next = seen.events.partition_point(|event| event.at_ns < woken_ns);
    let mut rest = seen.events[next..].iter();
    match rest.find(|event| matches!(event.what, EventKind::On { .. } | EventKind::Off { .. }))? {
        EndpointEvent { at_ns, what: EventKind::On { .. } } => Some(*at_ns),
        _ => None,
    }
}

/// The time in which only the client, only the server, both and neither had a CPU, where both windows overlap.
fn overlap_ns(client: &EndpointObservation, server: &EndpointObservation) -> [u64; 4] {
    let (from_ns, until_ns) = (client.from_ns.max(server.from_ns), client.until_ns.min(server.until_ns));
    let runs = |seen: &EndpointObservation| -> Vec<(u64, u64)> {
        let cut = |span: StateSpan| (span.from_ns.max(from_ns), span.until_ns.min(until_ns));
        spans(seen)
            .into_iter()
            .filter(|span| span.state == SchedulerState::Runs)
            .map(cut)
            .filter(|(a, b)| a < b)
            .collect()
    };
    let (client, server) = (runs(client), runs(server));
    let total = |spans: &[(u64, u64)]| spans.iter().map(|(from, until)| until - from).sum::<u64>();
    let mut both_ns = 0;
    let mut others = server.iter().peekable();
    for (from, until) in &client {
        while let Some((other_from, other_until)) = others.peek() {
            both_ns += other_until.min(until).saturating_sub(*other_from.max(from));
            if other_until > until {
                break;
            }
            others.next();
        }
    }
    let (client_ns, server_ns) = (total(&client) - both_ns, total(&server) - both_ns);
    let window_ns = until_ns.saturating_sub(from_ns);
    [client_ns, server_ns, both_ns, window_ns.saturating_sub(client_ns + server_ns + both_ns)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_ns: u64, what: EventKind) -> EndpointEvent {
        EndpointEvent { at_ns, what }
    }

    const SLEEP: EventKind = EventKind::Off { preempted: false };
    const LOSE: EventKind = EventKind::Off { preempted: true };

    fn seen(tid: u32, events: Vec<EndpointEvent>) -> EndpointObservation {
        EndpointObservation { tid, events, from_ns: 0, until_ns: 100, ..EndpointObservation::default() }
    }

    /// The client runs to 20 and wakes the server at 15; the server runs from 30 to 60 and wakes the client at 55, which runs from 65.
    fn ping_pong() -> Observation {
        let wakes = |tid| EventKind::Wakes { tid, by_interrupt: false };
        let client = seen(1, vec![at(15, wakes(2)), at(20, SLEEP), at(65, EventKind::On { cpu: 0 })]);
        let server =
            seen(2, vec![at(1, SLEEP), at(30, EventKind::On { cpu: 1 }), at(55, wakes(1)), at(60, SLEEP)]);
        Observation {
            iterations: 1,
            elapsed_ns: 100.0,
            iteration_ends_ns: Vec::new(),
            client,
            server: Some(server),
        }
    }

    #[test]
    fn spans_fill_the_window() {
        let observation = ping_pong();
        let states: Vec<_> =
            spans(&observation.client).iter().map(|s| (s.from_ns, s.until_ns, s.state)).collect();
        assert_eq!(
            states,
            [
                (0, 20, SchedulerState::Runs),
                (20, 65, SchedulerState::Sleeps),
                (65, 100, SchedulerState::Runs)
            ]
        );
    }

    #[test]
    fn sleeps_and_wake_ups_are_told() {
        let mut schedules = ScheduleTally::default();
        schedules.add(&ping_pong());
        let [client, server] = schedules.profiles().unwrap();
        assert_eq!((client.running_ns, client.asleep_ns, client.sleeps), (55.0, 45.0, 1.0));
        assert_eq!((client.woken_by_peer, server.woken_by_peer), (Some(1.0), Some(1.0)));
        let waited = |row: &ScheduleProfile| row.wake_up.as_ref().unwrap().decode().max_ns();
        assert_eq!((waited(&client), waited(&server)), (Some(10), Some(15)));
        let overlap = schedules.overlap().unwrap();
        assert_eq!(
            (overlap.client_ns, overlap.server_ns, overlap.both_ns, overlap.neither_ns),
            (54.0, 30.0, 1.0, 15.0)
        );
    }

    #[test]
    fn a_cpu_that_is_lost_is_no_sleep() {
        let events = vec![
            at(10, LOSE),
            at(20, EventKind::On { cpu: 0 }),
            at(30, LOSE),
            at(40, EventKind::On { cpu: 1 }),
        ];
        let observation = Observation { server: None, client: seen(1, events), ..ping_pong() };
        let mut schedules = ScheduleTally::default();
        schedules.add(&observation);
        let [client, _] = schedules.profiles().unwrap();
        assert_eq!(
            (client.preempted_ns, client.preemptions, client.sleeps, client.migrations),
            (20.0, 2.0, 0.0, 1.0)
        );
        assert_eq!(client.woken_by_peer, None, "no wake-up was seen at all");
    }

    #[test]
    fn who_was_awake_already_did_not_wait_for_a_cpu() {
        let end = seen(1, vec![at(20, SLEEP), at(30, EventKind::On { cpu: 0 })]);
        assert_eq!(comes_on_after(&end, 25), Some(30));
        assert_eq!(comes_on_after(&end, 10), None);
        assert_eq!(comes_on_after(&end, 40), None);
    }
}
