//! System calls by kind: how many per iteration, how long each took, what they returned. From events alone.

use model::histogram::Histogram;
use model::observation::profile::CallProfile;
use model::observation::{EndpointEvent, EndpointObservation, EventKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// How many different answers of a kind of call are kept apart.
const MOST_ANSWERS: usize = 64;
/// The errnos by which the kernel marks a call that it will restart (ERESTARTSYS and its kin).
const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;

/// The calls of one endpoint, counted over trials.
#[derive(Debug, Clone, Default)]
pub struct CallTally {
    iterations: u64,
    by_number: BTreeMap<u32, Kind>,
}

#[derive(Debug, Clone, Default)]
struct Kind {
    time: Histogram,
    total_ns: u64,
    errors: BTreeMap<i64, u64>,
    restarts: u64,
    returned: BTreeMap<i64, u64>,
    asked_sum: u64,
}

impl CallTally {
    /// Adds what an endpoint did in `iterations`.
    pub fn add(&mut self, observation: &EndpointObservation, iterations: u64) {
        self.iterations += iterations;
        for call in in_order(&observation.events) {
            let kind = self.by_number.entry(call.number).or_default();
            kind.time.record(call.until_ns - call.from_ns);
            kind.total_ns += call.until_ns - call.from_ns;
            match call.answer {
                answer if RESTARTS.contains(&answer) => kind.restarts += 1,
                answer if (-4095..0).contains(&answer) => *kind.errors.entry(-answer).or_default() += 1,
                answer => {
                    *kind.returned.entry(answer).or_default() += 1;
                    kind.asked_sum = kind.asked_sum.saturating_add(call.third);
                }
            }
        }
    }

    /// The profile of each kind, the most frequent first. `name` names a call by its number.
    pub fn profiles(&self, name: impl Fn(u32) -> String) -> Vec<CallProfile> {
        let row = |(number, kind): (&u32, &Kind)| {
            let count = kind.time.count();
            CallProfile {
                name: name(*number),
                count,
                per_iteration: count as f64 / self.iterations as f64,
                time: kind.time.encode(),
                mean_ns: kind.total_ns as f64 / count as f64,
                errors: kind.errors.clone(),
                restarts: kind.restarts,
                returned: most_frequent(&kind.returned),
                returned_sum: sum(&kind.returned),
                asked_sum: kind.asked_sum,
            }
        };
        let mut rows: Vec<CallProfile> = self.by_number.iter().map(row).collect();
        rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        rows
    }
}

/// The sum of all answers, some of which may be addresses: there it stops at what 64 bits hold.
fn sum(returned: &BTreeMap<i64, u64>) -> i64 {
    let of_answer =
        |(answer, times): (&i64, &u64)| answer.saturating_mul(i64::try_from(*times).unwrap_or(i64::MAX));
    returned.iter().map(of_answer).fold(0, i64::saturating_add)
}

/// The answers that came most often, in their own order.
fn most_frequent(returned: &BTreeMap<i64, u64>) -> Vec<(i64, u64)> {
    let mut answers: Vec<(i64, u64)> = returned.iter().map(|(answer, times)| (*answer, *times)).collect();
    answers.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    answers.truncate(MOST_ANSWERS);
    answers.sort_unstable();
    answers
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SystemCall {
    /// Its number.
    pub number: u32,
    /// When it began.
    pub from_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    /// Its third argument.
    pub third: u64,
    /// What it returned.
    pub answer: i64,
}

/// The calls that both began and ended, in the order of time. A thread makes one call at a time.
pub fn in_order(events: &[EndpointEvent]) -> impl Iterator<Item = SystemCall> {
    let mut begun: Option<(u32, u64, u64)> = None;
    events.iter().filter_map(move |event| match event.what {
        EventKind::Enter { number, third, .. } => {
            begun = Some((number, event.at_ns, third));
            None
        }
        EventKind::Exit { number, value } => {
            let (entered, from_ns, third) = begun.take()?;
            (entered == number).then_some(SystemCall {
                number,
                from_ns,
                until_ns: event.at_ns,
                third,
                answer: value,
            })
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(at: u64, took: u64, number: u32, third: u64, value: i64) -> [EndpointEvent; 2] {
        [
            EndpointEvent { at_ns: at, what: EventKind::Enter { number, first: 0, third } },
            EndpointEvent { at_ns: at + took, what: EventKind::Exit { number, value } },
        ]
    }

    #[test]
    fn calls_are_counted_by_kind_and_answer() {
        let events = [
            call(0, 10, 0, 64, 64),
            call(20, 30, 0, 64, 8),
            call(60, 5, 0, 64, -11),
            call(70, 5, 0, 64, -512),
            call(80, 7, 1, 64, 64),
        ];
        let seen = EndpointObservation { events: events.concat(), ..EndpointObservation::default() };
        let mut calls = CallTally::default();
        calls.add(&seen, 2);
        let rows = calls.profiles(|number| ["read", "write"][number as usize].to_owned());
        let [read, write] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((read.name.as_str(), read.count, read.per_iteration, read.restarts), ("read", 4, 2.0, 1));
        assert_eq!((read.mean_ns, read.returned_sum, read.asked_sum), (12.5, 72, 128));
        assert_eq!(read.returned, [(8, 1), (64, 1)]);
        assert_eq!(read.errors, BTreeMap::from([(11, 1)]));
        assert_eq!((write.name.as_str(), write.per_iteration), ("write", 0.5));
    }

    #[test]
    fn the_sum_of_addresses_stops_at_what_64_bits_hold() {
        let address = i64::MAX / 2;
        let events = (0..4).flat_map(|at| call(at * 10, 5, 0, u64::MAX, address)).collect();
        let mut calls = CallTally::default();
        calls.add(&EndpointObservation { events, ..EndpointObservation::default() }, 1);
        let rows = calls.profiles(|_| "mmap".to_owned());
        assert_eq!((rows[0].returned_sum, rows[0].asked_sum), (i64::MAX, u64::MAX));
    }

    #[test]
    fn an_exit_of_another_call_ends_none() {
        let events = [call(0, 10, 0, 1, 1)[0], call(0, 10, 1, 1, 1)[1], call(20, 10, 0, 1, 1)[1]];
        assert_eq!(in_order(&events).count(), 0);
    }
}
