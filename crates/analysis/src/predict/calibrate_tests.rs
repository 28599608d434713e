//! What the simulation is brought to: loops that wait for one another, their CPU time, where their receivers are, and what they wait for.

use super::calibrate::calibrated;
use super::fixture::{costs, flow, message_ns, scenario, us};
use super::flow_costs::{DrawnCosts, FlowCosts};
use super::simulation::{Rest, RestTime, Simulated, SimulationSetup, simulate};
use super::tests::{QUICK, exchanged, recording};
use super::{Measured, predict};
use model::Scenario;
use model::scenario::{Concurrency, Flow, FlowBehaviour, ProcessBehaviour};

/// Runs `scenario` on two CPUs with `rests`.
fn run(scenario: &Scenario, rests: &[Rest]) -> Simulated {
    let known = costs();
    let costs: Vec<DrawnCosts> =
        scenario.flows.iter().map(|flow| FlowCosts::of(flow, &known).draw(None, 0.0, 0.0)).collect();
    let (cpus, quantum_ns, seed, events) = (&[0, 1], 2_000_000, 5, 40_000);
    simulate(scenario, &SimulationSetup { costs: &costs, rests, cpus, quantum_ns, seed, events })
}

/// What a run was measured to do, with `flow` for what was seen of each flow.
fn measured(was: &Simulated, flow: impl Fn(&FlowBehaviour) -> FlowBehaviour) -> Measured {
    Measured {
        flows: was.behaviour.flows.iter().map(|found| Some(flow(found))).collect(),
        processes: was.behaviour.processes.iter().copied().map(Some).collect(),
        on_one_cpu: vec![None; was.behaviour.flows.len()],
        slowdown: 0.0,
        off: 0.0,
    }
}

/// A process on CPU 0 that begins all `flows` at once, to processes on CPU 1.
fn crowd(flows: Vec<Flow>) -> Scenario {
    let servers = flows.iter().map(|flow| flow.to).max().unwrap_or(0);
    let mut cpus: Vec<&[u32]> = vec![&[1]; servers + 1];
    cpus[0] = &[0];
    let mut crowd = scenario(&cpus, flows);
    crowd.processes[0].roots = Concurrency::Together;
    crowd.processes[1].serves = Concurrency::Together;
    crowd
}

#[test]
fn receivers_are_put_where_they_were_seen() {
    let served = |from, to| Flow { server_work: us(20), client_work: us(5), ..flow(from, to) };
    let free = scenario(&[&[], &[], &[]], vec![served(0, 1), served(0, 2)]);
    for seen in [0.1, 0.8] {
        let flows = vec![Some(FlowBehaviour { per_s: 10_000.0, round_trip_ns: None }); 2];
        let measured = Measured {
            flows,
            processes: vec![None; 3],
            on_one_cpu: vec![Some(seen); 2],
            slowdown: 0.0,
            off: 0.0,
        };
        let rests = calibrated(&free, &measured, None, 5, |rests| run(&free, rests));
        let found = run(&free, &rests).on_one_cpu;
        assert!(found.iter().flatten().all(|share| (share - seen).abs() < 0.05), "{seen}: {found:?}");
    }
}

#[test]
fn loops_that_wait_for_one_server_are_brought_to_what_was_measured() {
    // All CPU time of the servers' CPU is used: what one loop waits is mostly the work of the others.
    let looped = |server| Flow { server_work: us(30), client_work: us(3), ..flow(0, server) };
    let crowd = crowd((1..=4).map(looped).collect());
    // It was quicker than the scenario says.
    let mut quicker = crowd.clone();
    quicker.flows.iter_mut().for_each(|flow| flow.server_work = us(24));
    let was = run(&quicker, &[Rest::default(); 4]);
    let rests = calibrated(&crowd, &measured(&was, |flow| *flow), None, 20, |rests| run(&crowd, rests));
    for (found, was) in run(&crowd, &rests).behaviour.flows.iter().zip(&was.behaviour.flows) {
        assert!((found.per_s / was.per_s - 1.0).abs() < 0.02, "{found:?} {was:?} {rests:?}");
    }
}

/// Fifty loops of one client that keeps its CPU busy, as of a benchmark of a server with as many connections: most of a
/// round trip is what it does for the others. With what is missing of each taken for its own work, they came to half of their rate.
/// Slow: it simulates many runs.
#[test]
fn many_loops_of_a_busy_client_are_brought_to_what_was_measured_whose_messages_take_longer() {
    const LOOPS: usize = 50;
    const FACTOR: f64 = 1.6;
    let looped = |_| Flow { server_work: us(2), client_work: us(4), ..flow(0, 1) };
    let crowd = crowd((0..LOOPS).map(looped).collect());
    let longer = RestTime { message_factor: FACTOR, ..RestTime::default() };
    let truth = vec![Rest { begin: longer, answer: longer, ..Rest::default() }; LOOPS];
    // The client waits with what it sends, so that less of a cycle is a round trip.
    let sooner = |flow: &FlowBehaviour| FlowBehaviour {
        round_trip_ns: flow.round_trip_ns.map(|ns| 0.5 * ns),
        ..*flow
    };
    let measured = measured(&run(&crowd, &truth), sooner);
    let rests = calibrated(&crowd, &measured, None, 20, |rests| run(&crowd, rests));
    for Rest { begin, answer, .. } in &rests {
        assert!(
            (begin.message_factor - FACTOR).abs() < 0.05 && (answer.message_factor - FACTOR).abs() < 0.05,
            "{rests:?}"
        );
    }
    let after = exchanged(&crowd, "slow");
    let rate =
        |rests: &[Rest]| -> f64 { run(&after, rests).behaviour.flows.iter().map(|flow| flow.per_s).sum() };
    let (found, expected) = (rate(&rests), rate(&truth));
    assert!((found / expected - 1.0).abs() < 0.02, "{found} and not {expected}");
}

#[test]
fn loops_that_hardly_use_their_cpus_wait_for_something_else() {
    let mut crowd = crowd((0..4).map(|_| Flow { server_work: us(10), ..flow(0, 1) }).collect());
    crowd.recorded = Some(recording(None));
    // A thousand requests a second each, with the CPU time that the costs have: the rest of the millisecond is waiting.
    let flows = vec![Some(FlowBehaviour { per_s: 1000.0, round_trip_ns: Some(900_000.0) }); 4];
    let process = |work_ns: f64| {
        let cpu = 4000.0 * (work_ns + 2.0 * message_ns(64.0)) / 1e9;
        Some(ProcessBehaviour { cpu, switches_per_s: 4000.0 })
    };
    let processes = vec![process(0.0), process(10_000.0)];
    let measured = Measured { flows, processes, ..Measured::recorded(&crowd) };
    let after = exchanged(&crowd, "slow");
    let found = predict(&crowd, &after, &costs(), &measured, &[0, 1], QUICK);
    let rate = found.together_per_s.unwrap();
    assert!(found.notes.iter().all(|note| !note.contains("comes to")), "{:?}", found.notes);
    // Four messages take as long again, and waking too, of a millisecond.
    assert!((0.97..0.999).contains(&rate.ratio), "{rate:?}");
}

#[test]
fn work_that_was_seen_is_not_left_out() {
    // Two loops that are said to be much quicker than their work and their messages let them be.
    let pair =
        crowd((1..=2).map(|to| Flow { server_work: us(30), client_work: us(10), ..flow(0, to) }).collect());
    let quicker = |flow: &FlowBehaviour| FlowBehaviour {
        per_s: flow.per_s * 2.0,
        round_trip_ns: flow.round_trip_ns.map(|ns| ns / 2.0),
    };
    let measured = measured(&run(&pair, &[Rest::default(); 2]), quicker);
    // A message of 64 bytes takes each end 2 µs, a little for its bytes, and a tenth less where that is missing.
    let a_fifth = |work_ns: f64| -0.2 * (work_ns + 0.9 * 2.0 * message_ns(64.0));
    for Rest { begin, answer, .. } in calibrated(&pair, &measured, None, 20, |rests| run(&pair, rests)) {
        assert!((begin.work_ns - a_fifth(10_000.0)).abs() < 50.0, "{begin:?}");
        assert!((answer.work_ns - a_fifth(30_000.0)).abs() < 50.0, "{answer:?}");
    }
}
