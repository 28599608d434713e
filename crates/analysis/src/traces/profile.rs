//! From the observation of one trial to the profile that a results file keeps.

use super::calls::CallTally;
use super::schedule::ScheduleTally;
use super::subsystem::samples_by_subsystem;
use model::observation::profile::{EndpointProfile, Profile, Timeline};
use model::observation::{EndpointObservation, EventKind, Observation, Probe};
use model::record::Fact;
use std::collections::BTreeMap;

/// Of so many iterations all events are kept: enough to choose typical ones from, and few enough for a results file.
const MOST_KEPT_ITERATIONS: usize = 64;

/// The profile of `observation`, which `probe` made. `effect` is the time of its iterations over that of the same
/// iterations without a probe. `call_name` names a system call by its number.
pub fn profile(
    probe: Probe,
    observation: Observation,
    effect: f64,
    call_name: impl Fn(u32) -> String,
) -> Profile {
    let mut schedules = ScheduleTally::default();
    if probe == Probe::Scheduler {
        schedules.add(&observation);
    }
    let mut schedules = schedules.profiles().into_iter().flatten();
    let mut end = |end: &EndpointObservation| {
        let mut calls = CallTally::default();
        if matches!(probe, Probe::Syscalls | Probe::Ptrace) {
            calls.add(end, observation.iterations);
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
            calls: calls.profiles(&call_name),
            schedule: schedules.next(),
            counters,
            uncounted,
            subsystems: samples_by_subsystem(&end.stacks).into_iter().collect(),
            unavailable: end.unavailable.clone(),
            lost: end.lost,
        }
    };
    let (client, server) = (end(&observation.client), observation.server.as_ref().map(&mut end));
    let (iterations, iteration_ns) = (observation.iterations, observation.iteration_ns());
    let timeline = (probe == Probe::Timeline)
        .then(|| timeline(observation.first_iterations(MOST_KEPT_ITERATIONS), call_name));
    Profile { iterations, iteration_ns, effect, client, server, timeline }
}

fn timeline(observation: Observation, call_name: impl Fn(u32) -> String) -> Timeline {
    let events = observation.endpoints().flat_map(|end| &end.events);
    let numbers = events.filter_map(|event| match event.what {
        EventKind::Enter { number, .. } => Some(number),
        _ => None,
    });
    let call_names = numbers.map(|number| (number, call_name(number))).collect();
    Timeline { observation, call_names }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::observation::subsystem::Subsystem;
    use model::observation::{EndpointEvent, EventKind, SampledStack, StackFrame};

    fn seen() -> Observation {
        let event = |at_ns, what| EndpointEvent { at_ns, what };
        let read = |at_ns| {
            [
                event(at_ns, EventKind::Enter { number: 0, first: 3, third: 64 }),
                event(at_ns + 10, EventKind::Exit { number: 0, value: 64 }),
            ]
        };
        let client = EndpointObservation {
            from_ns: 0,
            until_ns: 100,
            events: [read(10), read(50)].concat(),
            stacks: vec![SampledStack { frames: vec![StackFrame::User("main".to_owned())], samples: 3 }],
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
        let profile_by = |probe| profile(probe, seen(), 1.5, name);
        let calls = profile_by(Probe::Syscalls);
        assert_eq!((calls.iterations, calls.iteration_ns, calls.effect), (2, 50.0, 1.5));
        let [read] = calls.client.calls.as_slice() else { panic!("{calls:?}") };
        assert_eq!((read.name.as_str(), read.per_iteration, read.mean_ns), ("read", 1.0, 10.0));
        assert_eq!((calls.client.schedule.is_none(), calls.timeline.is_none()), (true, true));
        let scheduled = profile_by(Probe::Scheduler);
        assert_eq!(scheduled.client.schedule.unwrap().running_ns, 50.0);
        assert!(scheduled.server.unwrap().schedule.is_some());
        assert_eq!(profile_by(Probe::Sampling).client.subsystems, BTreeMap::from([(Subsystem::User, 3)]));
    }

    #[test]
    fn a_timeline_is_kept_whole_with_the_names_of_its_calls() {
        let kept = profile(Probe::Timeline, seen(), 1.0, name);
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), kept);
        let timeline = kept.timeline.unwrap();
        assert_eq!((timeline.call_name(0), timeline.call_name(7)), ("read".to_owned(), "call 7".to_owned()));
        assert_eq!(timeline.observation.client.events.len(), 4);
    }
}
