//! Sums of trials of which the truth is known: what was put in is found, and intervals cover it.

use super::segment::SegmentKind as Kind;
use super::tests::{on_one_cpu, trace};
use super::*;
use crate::simulated::Random;
use model::endpoint::EndpointRole::{Client, Server};
use model::observation::{CpuEvent, CpuTrace, EventSet};

/// What recording an event of each set costs beside what is paid once, in the order of [`EventSet::ALL`].
const COSTS_NS: [u64; 6] = [90, 60, 140, 0, 0, 0];
/// What an instrument costs by itself.
const BASE_NS: u64 = 30;
/// What the events of an iteration, whichever they are, cost together beside that.
const COMMON_NS: u64 = 200;
const RECORDED: [EventSet; 3] = [EventSet::Switches, EventSet::WakeUps, EventSet::Calls];

/// What is recorded in a round beside the bare slice: nothing, each set alone, pairs, and all.
fn doses() -> Vec<Vec<EventSet>> {
    let [a, b, c] = RECORDED;
    vec![vec![], vec![a], vec![b], vec![c], vec![a, b], vec![a, c], vec![b, c], vec![a, b, c]]
}

/// A trace of `iterations` round trips on one CPU of a host that is `slow` times as slow. Each event of `sets` makes an iteration
/// longer by its cost, and each iteration ends `extra_ns` later.
fn simulated(
    sets: Option<&[EventSet]>,
    iterations: u64,
    slow: f64,
    extra_ns: u64,
    random: &mut Random,
) -> CpuTrace {
    let records = |set: EventSet| sets.is_some_and(|sets| sets.contains(&set));
    let recorded = on_one_cpu().iter().filter(|event| records(event.what.set())).count();
    let common_ns = COMMON_NS / recorded.max(1) as u64;
    let (mut at_ns, mut events, mut ends) = (1000, Vec::new(), Vec::new());
    for _ in 0..iterations {
        let mut before_ns = 1000;
        for template in on_one_cpu() {
            let jitter = 1.0 + 0.05 * random.normal();
            at_ns += ((template.at_ns - before_ns) as f64 * slow * jitter).max(0.0) as u64;
            before_ns = template.at_ns;
            let set = template.what.set();
            if records(set) {
                events.push(CpuEvent { at_ns, ..template });
                let cost_ns = COSTS_NS[EventSet::ALL.iter().position(|of| *of == set).unwrap()];
                at_ns += ((cost_ns + common_ns) as f64 * slow) as u64;
            }
        }
        at_ns += ((50 + if sets.is_some() { BASE_NS } else { 0 }) as f64 * slow) as u64 + extra_ns;
        ends.push(at_ns);
    }
    CpuTrace { iteration_ends_ns: ends, ..trace(0, sets.unwrap_or_default(), events) }
}

/// The trials of `rounds` rounds at a host whose speed wanders. Recording everything at once costs `extra_ns` more an iteration than
/// what is recorded alone.
fn trials(rounds: u32, extra_ns: u64, random: &mut Random) -> DosedTrials {
    let mut trials = DosedTrials::default();
    let iteration_ns = |trace: &CpuTrace| {
        (trace.iteration_ends_ns.last().unwrap() - trace.from_ns) as f64
            / trace.iteration_ends_ns.len() as f64
    };
    for round in 0..rounds {
        let speed = 1.0 + 0.1 * random.normal().abs();
        let slow = |random: &mut Random| speed * (1.0 + 0.01 * random.normal());
        trials.add_bare(round, means(iteration_ns(&simulated(None, 20, slow(random), 0, random))));
        for sets in doses() {
            let extra_ns = if sets.len() == RECORDED.len() { extra_ns } else { 0 };
            let trace = simulated(Some(&sets), 20, slow(random), extra_ns, random);
            trials.add(round, &trace, means(iteration_ns(&trace)));
        }
    }
    trials
}

fn means(iteration_ns: f64) -> SliceMeans {
    SliceMeans { iteration_ns, switches: Some(2.0) }
}

fn covers(estimate: crate::interval::MeanEstimate, truth: f64) -> bool {
    estimate.interval.is_some_and(|(low, high)| low <= truth && truth <= high)
}

#[test]
fn costs_that_were_put_in_are_found_and_taken_from_where_they_sit() {
    let sum = trials(60, 0, &mut Random(1)).sum().unwrap();
    assert!(sum.is_tested && sum.rounds + sum.rounds_left_out == 60);
    let slow = sum.bare_ns.mean / 2050.0;
    for cost in &sum.costs {
        let truth = COSTS_NS[EventSet::ALL.iter().position(|of| *of == cost.set).unwrap()] as f64 * slow;
        let found = cost.event_ns.unwrap();
        assert!((found.mean - truth).abs() < 0.15 * truth, "{:?}: {found:?} of {truth}", cost.set);
    }
    let common = sum.common_ns.unwrap();
    assert!((common.mean - COMMON_NS as f64 * slow).abs() < 0.15 * COMMON_NS as f64, "{common:?}");
    // What each segment takes without an instrument.
    for (of, kind, truth) in [
        (Client, Kind::UntilWaking, 200.0),
        (Client, Kind::AfterWaking, 200.0),
        (Client, Kind::UntilSleep, 250.0),
        (Server, Kind::AfterSleep, 200.0),
        (Server, Kind::UntilWaking, 250.0),
    ] {
        let line = sum
            .segments
            .iter()
            .find(|line| line.place.is_some_and(|place| (place.of, place.kind) == (of, kind)));
        let found = line.unwrap().corrected_ns.mean / slow;
        assert!((found - truth).abs() < 0.05 * truth, "{of:?} {kind:?}: {found} of {truth}");
    }
    let added: f64 = sum.segments.iter().map(|line| line.corrected_ns.mean).sum();
    assert!((added - sum.corrected_ns.mean).abs() < 1e-6, "lines add up");
    assert!(covers(sum.residual_ns, 0.0), "{:?}", sum.residual_ns);
}

/// Slow: it simulates many runs.
#[test]
fn intervals_cover_the_truth_as_often_as_they_say() {
    let mut random = Random(7);
    let runs = 150;
    let (mut residuals, mut costs) = (0, 0);
    for _ in 0..runs {
        let sum = trials(12, 0, &mut random).sum().unwrap();
        residuals += u32::from(covers(sum.residual_ns, 0.0));
        let calls = sum.costs.iter().find(|cost| cost.set == EventSet::Calls).unwrap();
        costs += u32::from(covers(calls.event_ns.unwrap(), 140.0 * sum.bare_ns.mean / 2050.0));
    }
    // 95% of 150, less three standard deviations.
    assert!(residuals >= 134 && costs >= 134, "{residuals} and {costs} of {runs}");
}

#[test]
fn what_is_not_a_cost_of_events_stays_in_the_residual() {
    let sum = trials(30, 300, &mut Random(3)).sum().unwrap();
    assert!(sum.residual_ns.is_above(100.0), "{:?}", sum.residual_ns);
}

#[test]
fn switches_that_recording_brings_about_are_no_cost_of_events() {
    const SWITCH_NS: f64 = 400.0;
    let mut random = Random(9);
    let iteration_ns = |trace: &CpuTrace| {
        (trace.iteration_ends_ns[19] - trace.from_ns) as f64 / trace.iteration_ends_ns.len() as f64
    };
    let mut trials = DosedTrials::default();
    for round in 0..40 {
        let bare_ns = iteration_ns(&simulated(None, 20, 1.0, 0, &mut random));
        trials.add_bare(round, means(bare_ns));
        for sets in doses() {
            // With wake-ups alone there is about one switch more in each iteration.
            let further = if sets == RECORDED[1..2] { 1.0 + 0.3 * random.normal() } else { 0.0 };
            let trace = simulated(Some(&sets), 20, 1.0, 0, &mut random);
            let iteration_ns = iteration_ns(&trace) + SWITCH_NS * further;
            trials.add(round, &trace, SliceMeans { iteration_ns, switches: Some(2.0 + further) });
        }
    }
    let sum = trials.sum().unwrap();
    assert!(sum.residual_ns.mean.abs() < 0.05 * sum.bare_ns.mean, "{:?}", sum.residual_ns);
    let changed = sum.schedule_changes();
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!(changed[0].dose, Some(vec![EventSet::WakeUps]));
}

#[test]
fn a_difference_is_the_sum_of_the_differences_of_segments() {
    let mut random = Random(5);
    let (first, second) =
        (trials(20, 0, &mut random).sum().unwrap(), trials(20, 0, &mut random).sum().unwrap());
    let difference = differ(&first, &second).unwrap();
    let added: f64 = difference.segments.iter().map(|line| line.difference_ns.mean).sum();
    assert!((added - difference.sum_ns.mean).abs() < 1e-6);
    assert!((difference.sum_ns.mean - difference.bare_ns.mean - difference.residual_ns.mean).abs() < 1e-6);
    assert_eq!(difference.carriers().count(), 0, "they are the same: {difference:?}");
    assert_eq!(differ(&first, &first).unwrap().bare_ns.mean, 0.0);
}

#[test]
fn slow_iterations_are_explained_by_what_grew_in_them() {
    let mut random = Random(11);
    let mut trials = DosedTrials::default();
    for round in 0..10 {
        let mut trace = simulated(Some(&RECORDED), 200, 1.0, 0, &mut random);
        // In two of each trial the server works for 5 µs more.
        for slow in [50, 150] {
            let from_ns = trace.iteration_ends_ns[slow];
            let is_late = |at: u64| at > from_ns + 1500;
            for event in trace.events.iter_mut().filter(|event| is_late(event.at_ns)) {
                event.at_ns += 5000;
            }
            trace.iteration_ends_ns.iter_mut().filter(|end| is_late(**end)).for_each(|end| *end += 5000);
        }
        trials.add(round, &trace, means(2500.0));
    }
    let slow = trials.slow_iterations().unwrap();
    assert_eq!((slow.count, slow.segments[0].count), (20, 20), "{slow:?}");
    assert_eq!(slow.segments[0].place.of, Server);
    assert!((slow.segments[0].grew_ns - 5000.0).abs() < 100.0, "{slow:?}");
    assert!((slow.mean_ns - slow.others_ns - 5000.0).abs() < 200.0, "{slow:?}");
}
