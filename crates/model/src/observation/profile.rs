//! What trials that were looked at showed, in the numbers that a results file keeps of them.
//!
//! The events themselves are kept of a few iterations alone, where these are to be drawn. Nothing here looks at anything, and
//! what the numbers come to is worked out in `study`.

use super::calls::{CallRow, Calls};
use super::place::{Place, places};
use super::schedule::{ScheduleRow, Schedules};
use super::{Counter, EndpointObservation, Observation, Probe};
use crate::case::Case;
use crate::record::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The iterations of which all is kept: enough to choose typical ones of, and no burden to a results file.
const MOST_KEPT_ITERATIONS: usize = 64;

/// One trial of a case that a probe looked at, or why there was none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileRecord {
    /// The case.
    pub case: Case,
    /// The probe.
    pub probe: Probe,
    /// The round of looking, which are counted apart from those of plain trials; the same for all cases and probes.
    pub round: u32,
    /// What it showed.
    pub showed: Fact<Profile>,
}

/// What a trial showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// How many iterations were looked at.
    pub iterations: u64,
    /// The time of an iteration under the probe, in nanoseconds.
    pub iteration_ns: f64,
    /// That over the time of the same iterations in the trials before and after, which nobody looked at.
    pub effect: f64,
    /// What client did.
    pub client: EndpointProfile,
    /// What server did; operations have no server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<EndpointProfile>,
    /// All that happened in the iterations, where they are to be drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
}

/// What one endpoint did: of each probe what it can see.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointProfile {
    /// Its system calls by kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallRow>,
    /// How it was scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleRow>,
    /// What was counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<Counter>,
    /// What could not be counted, by the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uncounted: BTreeMap<String, Vec<String>>,
    /// In which part of the kernel, or the program, the processor was found, and how often.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<Place, u64>,
    /// What else was wanted, and why it could not be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// How many records the kernel had no room for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The events of a few iterations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// What happened.
    pub seen: Observation,
    /// The names of the system calls in it: their numbers differ from machine to machine.
    pub call_names: BTreeMap<u32, String>,
}

impl Timeline {
    /// What a system call in it is called.
    pub fn call_name(&self, number: u32) -> String {
        self.call_names.get(&number).cloned().unwrap_or_else(|| format!("call {number}"))
    }
}

impl Profile {
    /// What `seen` comes to, which `probe` saw. `call_name` names a system call by its number.
    pub fn of(probe: Probe, seen: Observation, effect: f64, call_name: impl Fn(u32) -> String) -> Self {
        let mut schedules = Schedules::default();
        if probe == Probe::Scheduler {
            schedules.add(&seen);
        }
        let mut schedules = schedules.rows().into_iter().flatten();
        let mut end = |end: &EndpointObservation| {
            let mut calls = Calls::default();
            if matches!(probe, Probe::Syscalls | Probe::Ptrace) {
                calls.add(end, seen.iterations);
            }
            let (mut counters, mut uncounted) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
            for counter in &end.counters {
                match &counter.count {
                    Fact::Known(_) => counters.push(counter.clone()),
                    Fact::Unknown(reason) => {
                        uncounted.entry(reason.clone()).or_default().push(counter.name.clone());
                    }
                }
            }
            EndpointProfile {
                calls: calls.rows(&call_name),
                schedule: schedules.next(),
                counters,
                uncounted,
                places: places(&end.stacks).into_iter().collect(),
                without: end.without.clone(),
                lost: end.lost,
            }
        };
        let (client, server) = (end(&seen.client), seen.server.as_ref().map(&mut end));
        let (iterations, iteration_ns) = (seen.iterations, seen.iteration_ns());
        let timeline = (probe == Probe::Timeline)
            .then(|| Timeline::of(seen.first_iterations(MOST_KEPT_ITERATIONS), call_name));
        Self { iterations, iteration_ns, effect, client, server, timeline }
    }

    /// Both ends, client first.
    pub fn ends(&self) -> impl Iterator<Item = &EndpointProfile> {
        std::iter::once(&self.client).chain(&self.server)
    }
}

impl Timeline {
    fn of(seen: Observation, call_name: impl Fn(u32) -> String) -> Self {
        let events = seen.ends().flat_map(|end| &end.events);
        let numbers = events.filter_map(|event| match event.what {
            super::What::Enter { number, .. } => Some(number),
            _ => None,
        });
        let call_names = numbers.map(|number| (number, call_name(number))).collect();
        Self { seen, call_names }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Event, Frame, Stack, What};
    use super::*;

    fn seen() -> Observation {
        let event = |at_ns, what| Event { at_ns, what };
        let read = |at_ns| {
            [
                event(at_ns, What::Enter { number: 0, first: 3, third: 64 }),
                event(at_ns + 10, What::Exit { number: 0, value: 64 }),
            ]
        };
        let client = EndpointObservation {
            from_ns: 0,
            until_ns: 100,
            events: [read(10), read(50)].concat(),
            stacks: vec![Stack { frames: vec![Frame::User("main".to_owned())], samples: 3 }],
            ..EndpointObservation::default()
        };
        let server = EndpointObservation { from_ns: 0, until_ns: 100, ..EndpointObservation::default() };
        Observation {
            iterations: 2,
            elapsed_ns: 100.0,
            iteration_ends_ns: vec![50, 100],
            client,
            server: Some(server),
        }
    }

    fn name(number: u32) -> String {
        ["read"][number as usize].to_owned()
    }

    #[test]
    fn each_probe_leaves_the_numbers_that_it_can_see() {
        let of = |probe| Profile::of(probe, seen(), 1.5, name);
        let calls = of(Probe::Syscalls);
        assert_eq!((calls.iterations, calls.iteration_ns, calls.effect), (2, 50.0, 1.5));
        let [read] = calls.client.calls.as_slice() else { panic!("{calls:?}") };
        assert_eq!((read.name.as_str(), read.per_iteration, read.mean_ns), ("read", 1.0, 10.0));
        assert_eq!((calls.client.schedule.is_none(), calls.timeline.is_none()), (true, true));
        let scheduled = of(Probe::Scheduler);
        assert_eq!(scheduled.client.schedule.unwrap().runs_ns, 50.0);
        assert!(scheduled.server.unwrap().schedule.is_some());
        assert_eq!(of(Probe::Sampling).client.places, BTreeMap::from([(Place::User, 3)]));
    }

    #[test]
    fn a_timeline_is_kept_whole_with_the_names_of_its_calls() {
        let kept = Profile::of(Probe::Timeline, seen(), 1.0, name);
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), kept);
        let timeline = kept.timeline.unwrap();
        assert_eq!((timeline.call_name(0), timeline.call_name(7)), ("read".to_owned(), "call 7".to_owned()));
        assert_eq!(timeline.seen.client.events.len(), 4);
    }
}
