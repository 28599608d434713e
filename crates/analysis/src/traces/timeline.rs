//! Single iterations: which are worth showing, what each endpoint did from moment to moment, and who woke whom.
//!
//! All of it is worked out of the events of a timeline. How it is drawn is `report`'s affair.

use super::calls::{SystemCall, in_order};
use super::schedule::{self, SchedulerState, StateSpan, comes_on_after, wake_ups_of};
use crate::stats::median;
use model::endpoint::EndpointRole;
use model::observation::{EndpointObservation, EventKind, Observation};
use serde::Serialize;

/// The slow iteration is at this quantile: above it are rare accidents.
const SLOW: f64 = 0.999;
/// With fewer iterations that quantile is the slowest of them.
const LEAST_FOR_SLOW: usize = 1000;

/// An iteration that is worth showing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Iteration {
    /// Why it was chosen.
    pub choice: IterationChoice,
    /// Which of the iterations it is, from 0.
    pub number: usize,
    /// When it began: when the iteration before it ended.
    pub from_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    /// What happened from then to then; what began before or ended after keeps its own times.
    pub tracks: Tracks,
}

/// Why an iteration was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IterationChoice {
    /// It took about the median of all iterations.
    Typical,
    /// One in a thousand took as long.
    Slow,
    /// It took longest. There are too few iterations for one in a thousand.
    Slowest {
        /// How many iterations there were to choose from.
        of: usize,
    },
}

impl std::fmt::Display for IterationChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IterationChoice::Typical => f.pad("typical"),
            IterationChoice::Slow => f.pad("slowest 0.1%"),
            IterationChoice::Slowest { of } => f.pad(&format!("slowest of {of}")),
        }
    }
}

/// What both endpoints did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tracks {
    /// The client's track.
    pub client: Track,
    /// The server's; operations have no server.
    pub server: Option<Track>,
    /// When one woke the other, in the order of time.
    pub wake_ups: Vec<WakeUp>,
}

/// What one endpoint did, each kind of thing in the order of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Track {
    /// The thread, as the kernel numbers it.
    pub tid: u32,
    /// Whether it ran; without think times.
    pub spans: Vec<StateSpan>,
    /// The system calls that it made.
    pub calls: Vec<NamedCall>,
    /// The page faults that it took.
    pub faults: Vec<PageFault>,
}

/// A system call with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedCall {
    /// The name, such as `read`.
    pub name: String,
    /// The call.
    pub call: SystemCall,
}

/// A page fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageFault {
    /// When.
    pub at_ns: u64,
    /// Where.
    pub address: u64,
    /// It waited for a device.
    pub major: bool,
    /// The mapping that it lies in, where that is known.
    pub mapping: Option<String>,
}

/// One endpoint wakes the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WakeUp {
    /// Who wakes; the other is woken.
    pub waker: EndpointRole,
    /// When.
    pub at_ns: u64,
    /// When the other had a CPU; absent where it still had one.
    pub on_ns: Option<u64>,
    /// It was an interrupt that came while the waker ran.
    pub by_interrupt: bool,
}

/// The iterations of `observation` that are worth showing: `typical` typical ones, in the order of time, and a slow one.
/// `name` names a call by its number. There are none where iterations were not timed one by one.
pub fn chosen_iterations(
    observation: &Observation,
    typical: usize,
    name: impl Fn(u32) -> String,
) -> Vec<Iteration> {
    let bounds = bounds(observation);
    let tracks = tracks(observation, name);
    let iteration = |(choice, number): (IterationChoice, usize)| {
        let (from_ns, until_ns) = bounds[number];
        let tracks = tracks.within(from_ns, until_ns);
        Iteration { choice, number: number + 1, from_ns, until_ns, tracks }
    };
    choices(&bounds, typical).into_iter().map(iteration).collect()
}

/// When each iteration began and ended. When the first began was not noted, so that it is left out.
fn bounds(observation: &Observation) -> Vec<(u64, u64)> {
    observation.iteration_ends_ns.windows(2).map(|ends| (ends[0], ends[1])).collect()
}

/// Which iterations are chosen, and why.
fn choices(bounds: &[(u64, u64)], typical: usize) -> Vec<(IterationChoice, usize)> {
    let took_ns = |iteration: usize| bounds[iteration].1.saturating_sub(bounds[iteration].0);
    let all: Vec<f64> = (0..bounds.len()).map(|iteration| took_ns(iteration) as f64).collect();
    let Some(median_ns) = median(&all) else { return Vec::new() };
    let mut by_time: Vec<usize> = (0..bounds.len()).collect();
    by_time.sort_by_key(|iteration| took_ns(*iteration));
    let slow = ((bounds.len() as f64 * SLOW).ceil() as usize).clamp(1, bounds.len()) - 1;
    let slow = by_time[slow];
    let slow_choice = if bounds.len() < LEAST_FOR_SLOW {
        IterationChoice::Slowest { of: bounds.len() }
    } else {
        IterationChoice::Slow
    };

    let mut by_distance: Vec<usize> = by_time.into_iter().filter(|iteration| *iteration != slow).collect();
    by_distance.sort_by(|a, b| {
        let distance = |iteration: &usize| (took_ns(*iteration) as f64 - median_ns).abs();
        distance(a).total_cmp(&distance(b)).then(a.cmp(b))
    });
    by_distance.truncate(typical);
    by_distance.sort_unstable();
    let typical = by_distance.into_iter().map(|iteration| (IterationChoice::Typical, iteration));
    typical.chain([(slow_choice, slow)]).collect()
}

/// What both endpoints did while they were observed. `name` names a call by its number.
pub fn tracks(observation: &Observation, name: impl Fn(u32) -> String) -> Tracks {
    let (client, server) = (&observation.client, observation.server.as_ref());
    let mut wake_ups = Vec::new();
    if let Some(server) = server {
        wake_ups.extend(woken_by(EndpointRole::Client, client, server));
        wake_ups.extend(woken_by(EndpointRole::Server, server, client));
        wake_ups.sort_by_key(|wake_up| wake_up.at_ns);
    }
    Tracks {
        client: track(client, EndpointRole::Client, &wake_ups, &name),
        server: server.map(|server| track(server, EndpointRole::Server, &wake_ups, &name)),
        wake_ups,
    }
}

fn woken_by(
    end: EndpointRole,
    waker: &EndpointObservation,
    woken: &EndpointObservation,
) -> impl Iterator<Item = WakeUp> {
    wake_ups_of(woken.tid, waker).map(move |(at_ns, by_interrupt)| WakeUp {
        waker: end,
        at_ns,
        on_ns: comes_on_after(woken, at_ns),
        by_interrupt,
    })
}

fn track(
    seen: &EndpointObservation,
    end: EndpointRole,
    wake_ups: &[WakeUp],
    name: impl Fn(u32) -> String,
) -> Track {
    let woken: Vec<u64> =
        wake_ups.iter().filter(|wake_up| wake_up.waker != end).map(|wake_up| wake_up.at_ns).collect();
    let named = |call: SystemCall| NamedCall { name: name(call.number), call };
    let faults = seen.events.iter().filter_map(|event| match event.what {
        EventKind::PageFault { address, major, mapping } => {
            let mapping = seen.mappings.get(mapping as usize).cloned();
            Some(PageFault { at_ns: event.at_ns, address, major, mapping })
        }
        _ => None,
    });
    Track {
        tid: seen.tid,
        spans: schedule::spans(seen).into_iter().flat_map(|span| parts(span, &woken)).collect(),
        calls: in_order(&seen.events).map(named).collect(),
        faults: faults.collect(),
    }
}

/// For the kernel a sleep ends when the sleeper has a CPU again. It is cut where the peer woke the sleeper: from there on
/// it only waits for the CPU. `woken` says when that was, in the order of time.
fn parts(span: StateSpan, woken: &[u64]) -> impl Iterator<Item = StateSpan> {
    let next = woken.get(woken.partition_point(|at_ns| *at_ns < span.from_ns));
    let parts = match next.filter(|at_ns| span.state == SchedulerState::Sleeps && **at_ns < span.until_ns) {
        None => [Some(span), None],
        Some(&at_ns) => {
            let asleep = StateSpan { until_ns: at_ns, ..span };
            let awake = StateSpan { from_ns: at_ns, state: SchedulerState::Wakes, ..span };
            [Some(asleep).filter(|span| span.from_ns < span.until_ns), Some(awake)]
        }
    };
    parts.into_iter().flatten()
}

impl Tracks {
    /// Both tracks with their endpoints, the client first.
    pub fn endpoints(&self) -> impl Iterator<Item = (EndpointRole, &Track)> {
        std::iter::once((EndpointRole::Client, &self.client))
            .chain(self.server.iter().map(|server| (EndpointRole::Server, server)))
    }

    /// What of it lies between two times, or reaches into them.
    pub fn within(&self, from_ns: u64, until_ns: u64) -> Self {
        let reaches_in =
            |wake_up: &&WakeUp| wake_up.at_ns < until_ns && wake_up.on_ns.unwrap_or(wake_up.at_ns) >= from_ns;
        Self {
            client: self.client.within(from_ns, until_ns),
            server: self.server.as_ref().map(|server| server.within(from_ns, until_ns)),
            wake_ups: self.wake_ups.iter().filter(reaches_in).copied().collect(),
        }
    }
}

impl Track {
    fn within(&self, from_ns: u64, until_ns: u64) -> Self {
        let overlaps = |from: u64, until: u64| from < until_ns && until > from_ns;
        let spans = self.spans.iter().filter(|span| overlaps(span.from_ns, span.until_ns));
        let calls = self.calls.iter().filter(|named| overlaps(named.call.from_ns, named.call.until_ns));
        let faults = self.faults.iter().filter(|fault| (from_ns..until_ns).contains(&fault.at_ns));
        Self {
            tid: self.tid,
            spans: spans.copied().collect(),
            calls: calls.cloned().collect(),
            faults: faults.cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::observation::EndpointEvent;
    use proptest::prelude::*;

    const SLEEP: EventKind = EventKind::Off { preempted: false };
    const LOSE: EventKind = EventKind::Off { preempted: true };

    fn at(at_ns: u64, what: EventKind) -> EndpointEvent {
        EndpointEvent { at_ns, what }
    }

    fn wakes(tid: u32) -> EventKind {
        EventKind::Wakes { tid, by_interrupt: false }
    }

    fn enter(number: u32) -> EventKind {
        EventKind::Enter { number, first: 0, third: 1 }
    }

    fn seen(tid: u32, events: Vec<EndpointEvent>) -> EndpointObservation {
        EndpointObservation {
            tid,
            events,
            from_ns: 0,
            until_ns: 100,
            mappings: vec!["heap".to_owned()],
            ..EndpointObservation::default()
        }
    }

    fn names(number: u32) -> String {
        ["read", "write"][number as usize].to_owned()
    }

    /// The client writes, which wakes the server, and sleeps in its read until the server, which lost its CPU for a while, wakes it.
    fn ping_pong() -> Observation {
        let fault = EventKind::PageFault { address: 0x1000, major: false, mapping: 0 };
        let client = vec![
            at(10, enter(1)),
            at(15, wakes(2)),
            at(18, EventKind::Exit { number: 1, value: 1 }),
            at(19, enter(0)),
            at(20, SLEEP),
            at(65, EventKind::On { cpu: 0 }),
            at(70, EventKind::Exit { number: 0, value: 1 }),
        ];
        let server = vec![
            at(1, SLEEP),
            at(30, EventKind::On { cpu: 1 }),
            at(32, fault),
            at(35, LOSE),
            at(45, EventKind::On { cpu: 1 }),
            at(55, wakes(1)),
            at(60, SLEEP),
        ];
        Observation {
            iterations: 2,
            elapsed_ns: 100.0,
            iteration_ends_ns: vec![5, 75],
            client: seen(1, client),
            server: Some(seen(2, server)),
        }
    }

    fn spans_of(track: &Track) -> Vec<(u64, u64, SchedulerState)> {
        track.spans.iter().map(|span| (span.from_ns, span.until_ns, span.state)).collect()
    }

    #[test]
    fn a_sleep_is_cut_where_the_peer_ends_it() {
        let tracks = tracks(&ping_pong(), names);
        use SchedulerState::{Preempted, Runs, Sleeps, Wakes};
        assert_eq!(
            spans_of(&tracks.client),
            [(0, 20, Runs), (20, 55, Sleeps), (55, 65, Wakes), (65, 100, Runs)]
        );
        let server = spans_of(tracks.server.as_ref().unwrap());
        let expected = [
            (0, 1, Runs),
            (1, 15, Sleeps),
            (15, 30, Wakes),
            (30, 35, Runs),
            (35, 45, Preempted),
            (45, 60, Runs),
            (60, 100, Sleeps),
        ];
        assert_eq!(server, expected);
        let wake_ups: Vec<_> = tracks.wake_ups.iter().map(|w| (w.waker, w.at_ns, w.on_ns)).collect();
        assert_eq!(wake_ups, [(EndpointRole::Client, 15, Some(30)), (EndpointRole::Server, 55, Some(65))]);
    }

    #[test]
    fn an_iteration_has_what_reaches_into_it() {
        let iterations = chosen_iterations(&ping_pong(), 3, names);
        let [iteration] = iterations.as_slice() else { panic!("{iterations:?}") };
        assert_eq!((iteration.number, iteration.from_ns, iteration.until_ns), (1, 5, 75));
        assert_eq!(iteration.choice, IterationChoice::Slowest { of: 1 });
        let calls: Vec<_> = iteration.tracks.client.calls.iter().map(|named| named.name.as_str()).collect();
        assert_eq!(calls, ["write", "read"]);
        let server = iteration.tracks.server.as_ref().unwrap();
        assert_eq!(spans_of(server)[0], (1, 15, SchedulerState::Sleeps), "it keeps its own times");
        assert_eq!(server.faults[0].mapping.as_deref(), Some("heap"));
        assert_eq!(iteration.tracks.within(16, 29).wake_ups.len(), 1, "client's, which is on its way");
        assert_eq!(iteration.tracks.within(31, 50).wake_ups, []);
    }

    #[test]
    fn typical_iterations_are_near_the_median_and_the_slow_one_is_one_in_a_thousand() {
        // Iterations of 1000 to 1999 ns in the order of time, then three accidents.
        let took = (1000..3000).map(|i| i / 2 + 500).chain([1_000_000, 2_000_000, 3_000_000]);
        let ends: Vec<u64> = std::iter::once(0)
            .chain(took)
            .scan(0, |sum, took| {
                *sum += took;
                Some(*sum)
            })
            .collect();
        let bounds: Vec<(u64, u64)> = ends.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let chosen = choices(&bounds, 2);
        let took = |iteration: usize| bounds[iteration].1 - bounds[iteration].0;
        let typical: Vec<u64> = chosen[..2].iter().map(|(_, iteration)| took(*iteration)).collect();
        assert_eq!(typical, [1500, 1500]);
        assert!(chosen[0].1 < chosen[1].1);
        let (choice, slow) = chosen[2];
        assert_eq!((choice, took(slow)), (IterationChoice::Slow, 1_000_000));
        assert_eq!(choices(&[], 2), []);
    }

    proptest! {
        #[test]
        fn spans_fill_the_time_whatever_happens(moments in proptest::collection::vec((1..99u64, 0..4u8), 0..40)) {
            let mut moments = moments;
            moments.sort_unstable();
            let mut client = Vec::new();
            let mut server = Vec::new();
            for (at_ns, what) in moments {
                match what {
                    0 => client.push(at(at_ns, SLEEP)),
                    1 => client.push(at(at_ns, LOSE)),
                    2 => client.push(at(at_ns, EventKind::On { cpu: 0 })),
                    _ => server.push(at(at_ns, wakes(1))),
                }
            }
            let observation = Observation { client: seen(1, client), server: Some(seen(2, server)), ..ping_pong() };
            let spans = tracks(&observation, names).client.spans;
            prop_assert_eq!(spans.first().map(|span| span.from_ns), Some(0));
            prop_assert_eq!(spans.last().map(|span| span.until_ns), Some(100));
            prop_assert!(spans.windows(2).all(|pair| pair[0].until_ns == pair[1].from_ns));
            prop_assert!(spans.iter().all(|span| span.from_ns < span.until_ns));
        }
    }
}
