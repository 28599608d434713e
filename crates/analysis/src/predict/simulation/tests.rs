//! The simulation against closed forms, and that it ends whatever the scenario is.

use super::cpus::Cpus;
use super::run::simulate;
use super::setup::{Rest, RestTime, Simulated, SimulationSetup};
use crate::predict::case_costs::{FlowEnd, MeasuredCosts};
use crate::predict::fixture::{
    WAKE_NS, add_costs, add_interrupts, add_late_answers, add_sleep, add_sleepy_stream,
    add_stream_that_slept, add_think_time, costs, flow, message_ns, scenario, us,
};
use crate::predict::flow_costs::{DrawnCosts, Ends, FlowCosts};
use model::pace::{Arrivals, Rate};
use model::scenario::{Begin, Concurrency, Flow, Mix, RecordedFlow};
use model::testing::scenarios::random_scenario;
use model::units::Nanoseconds;
use model::{Scenario, Size, Spec};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

fn run_for(scenario: &Scenario, cpus: &[u32], events: u64) -> Simulated {
    let measured = costs();
    let costs: Vec<DrawnCosts> =
        scenario.flows.iter().map(|flow| FlowCosts::of(flow, &measured).draw(None, 0.0, 0.0)).collect();
    let rests = vec![Rest::default(); scenario.flows.len()];
    let setup =
        SimulationSetup { costs: &costs, rests: &rests, cpus, quantum_ns: 2_000_000, seed: 3, events };
    simulate(scenario, &setup)
}

fn run(scenario: &Scenario, cpus: &[u32]) -> Simulated {
    run_for(scenario, cpus, 60_000)
}

fn near(found: f64, expected: f64, within: f64) {
    assert!((found / expected - 1.0).abs() < within, "{found} and not {expected}");
}

fn stream(from: usize, to: usize) -> Flow {
    Flow { reply: None, ..flow(from, to) }
}

#[test]
fn a_closed_loop_takes_the_sum_of_its_parts() {
    let looped = Flow { client_work: us(30), server_work: us(50), ..flow(0, 1) };
    let messages = 4.0 * message_ns(64.0);
    let together = run(&scenario(&[&[0], &[0]], vec![looped.clone()]), &[0, 1]);
    near(1e9 / together.behaviour.flows[0].per_s, messages + 80_000.0, 0.01);
    near(together.behaviour.flows[0].round_trip_ns.unwrap(), messages + 50_000.0, 0.01);
    let apart = run(&scenario(&[&[0], &[1]], vec![looped]), &[0, 1]);
    near(1e9 / apart.behaviour.flows[0].per_s, messages + 2.0 * WAKE_NS + 80_000.0, 0.01);
    // Each end has half of the messages' CPU time, and its own work.
    let cycle_ns = 1e9 / apart.behaviour.flows[0].per_s;
    near(apart.behaviour.processes[0].cpu * cycle_ns, messages / 2.0 + 30_000.0, 0.02);
    near(apart.behaviour.processes[1].cpu * cycle_ns, messages / 2.0 + 50_000.0, 0.02);
}

#[test]
fn a_think_time_is_part_of_the_cycle_and_not_of_the_round_trip() {
    let thinking = Flow { begin: Begin::Closed { think_time: us(500) }, ..flow(0, 1) };
    let found = run(&scenario(&[&[0], &[0]], vec![thinking]), &[0]).behaviour.flows[0];
    near(1e9 / found.per_s, 500_000.0 + 4.0 * message_ns(64.0), 0.01);
    near(found.round_trip_ns.unwrap(), 4.0 * message_ns(64.0), 0.01);
}

#[test]
fn a_server_with_random_arrivals_has_the_waiting_time_of_m_d_1() {
    // Many clients, each rarely, all on CPUs of their own: together they are random arrivals at one server.
    let clients = 40;
    let work_us = 200;
    let rate = Rate { per_s: 70, arrivals: Arrivals::Poisson };
    let flows: Vec<Flow> = (0..clients)
        .map(|at| Flow { begin: Begin::Open(rate), server_work: us(work_us), ..flow(at, clients) })
        .collect();
    let own: Vec<[u32; 1]> = (0..=clients as u32).map(|cpu| [cpu]).collect();
    let processes: Vec<&[u32]> = own.iter().map(|cpu| cpu.as_slice()).collect();
    let cpus: Vec<u32> = (0..=clients as u32).collect();
    let found = run_for(&scenario(&processes, flows), &cpus, 600_000);
    let trips: f64 = found.behaviour.flows.iter().map(|flow| flow.round_trip_ns.unwrap()).sum();
    let mean = trips / clients as f64;
    // The server is busy with a request while it receives it, works, and answers.
    let service_ns = f64::from(work_us as u32) * 1000.0 + 2.0 * message_ns(64.0);
    let load = clients as f64 * 70.0 * service_ns / 1e9;
    let waiting_ns = load * service_ns / (2.0 * (1.0 - load));
    let beside_ns = mean - service_ns - 2.0 * message_ns(64.0);
    // Both wake-ups are in it, the server's where it was asleep.
    let wakes_ns = WAKE_NS * (2.0 - load);
    near(beside_ns - wakes_ns, waiting_ns, 0.15);
}

#[test]
fn a_pipeline_is_as_fast_as_its_slowest_stage() {
    let after = |flow, from, to| Flow { begin: Begin::After { flow, per_message: 1.0 }, ..stream(from, to) };
    let flows = vec![
        Flow { client_work: us(20), server_work: us(10), ..stream(0, 1) },
        Flow { server_work: us(70), ..after(0, 1, 2) },
        Flow { server_work: us(30), ..after(1, 2, 3) },
    ];
    let found = run_for(&scenario(&[&[0], &[1], &[2], &[3]], flows), &[0, 1, 2, 3], 200_000);
    // For each message it also wakes the next stage; the one before it, when a page is free.
    let slowest_ns = 70_000.0 + 3.0 * message_ns(64.0);
    for flow in &found.behaviour.flows {
        near(1e9 / flow.per_s, slowest_ns, 0.03);
    }
    near(found.behaviour.processes[2].cpu, 1.0, 0.02);
}

#[test]
fn who_does_not_sleep_has_no_part_in_the_sleep_that_was_measured() {
    let mut known = costs();
    // Streams of which each end slept once for each message, as in a round trip.
    add_sleepy_stream(&mut known, "sleepy");
    let mut flow = Flow { server_work: us(100), ..stream(0, 1) };
    flow.mechanism = Spec::plain("sleepy");
    let drawn = FlowCosts::of(&flow, &known).draw(None, 0.0, 0.0);
    let each_ns = message_ns(64.0);
    near(drawn.streamed(FlowEnd::To, 64.0, Ends::Apart).cpu_ns, each_ns, 0.01);
    let beside = |slept, wakes| drawn.around_call(FlowEnd::To, Ends::Apart, slept, wakes);
    near(beside(true, true).cpu_ns, 2.0 * each_ns, 0.01);
    near(beside(true, false).cpu_ns, each_ns, 0.01);
    assert_eq!((beside(false, false).cpu_ns, beside(true, false).switches), (0.0, 1.0));
    // Nor does a message come later to a receiver that is at work.
    near(drawn.pace_ns(64.0, true), 3.0 * each_ns, 0.01);
    near(drawn.pace_ns(64.0, false), each_ns, 0.01);
}

#[test]
fn who_does_not_sleep_for_a_message_does_not_pay_for_sleep() {
    let mut known = MeasuredCosts::default();
    add_costs(&mut known, "fast", 1.0);
    // Half of what a round trip costs each end is one sleep.
    add_sleep(&mut known, message_ns(64.0));
    let drawn = FlowCosts::of(&flow(0, 1), &known).draw(None, 0.0, 0.0);
    for ends in [Ends::Together, Ends::Apart] {
        let (awake, slept) = (drawn.answered(FlowEnd::To, 64.0, ends), drawn.slept(FlowEnd::To, 64.0, ends));
        near(2.0 * awake.cpu_ns, message_ns(64.0), 0.01);
        near(2.0 * awake.path_ns, message_ns(64.0), 0.01);
        assert_eq!((awake.switches, slept.switches), (0.0, 1.0));
        near(slept.cpu_ns, message_ns(64.0), 0.01);
    }
    // One client asks one server on the same CPU, and each sleeps for each message. Ten clients of a server that keeps its CPU busy do so as
    // well; it does not.
    let server_ns = |clients: usize| {
        let mut crowd = scenario(&[&[0], &[1]], (0..clients).map(|_| flow(0, 1)).collect());
        crowd.processes[0].roots = Concurrency::Together;
        crowd.processes[1].serves = Concurrency::Together;
        let cpus: &[u32] = if clients == 1 { &[0] } else { &[0, 1] };
        crowd.processes[1].cpus = vec![cpus[cpus.len() - 1]];
        crowd.flows.iter_mut().for_each(|flow| flow.server_work = us(if clients == 1 { 0 } else { 10 }));
        let costs = vec![drawn.clone(); clients];
        let rests = vec![Rest::default(); clients];
        let (quantum_ns, seed, events) = (2_000_000, 3, 40_000);
        let found = simulate(
            &crowd,
            &SimulationSetup { costs: &costs, rests: &rests, cpus, quantum_ns, seed, events },
        );
        let per_s: f64 = found.behaviour.flows.iter().map(|flow| flow.per_s).sum();
        1e9 * found.behaviour.processes[1].cpu / per_s
    };
    near(server_ns(1), 2.0 * message_ns(64.0), 0.02);
    near(server_ns(10), message_ns(64.0) + 10_000.0, 0.02);
}

#[test]
fn only_idle_cpus_are_paid_for_by_who_sends_to_one_and_who_wakes_on_one() {
    let mut known = MeasuredCosts::default();
    // A round trip costs each end twice as much on two CPUs as on one.
    add_interrupts(&mut known, "fast", 2.0);
    let drawn = FlowCosts::of(&flow(0, 1), &known).draw(None, 0.0, 0.0);
    let message_cpu_ns = drawn.answered(FlowEnd::To, 64.0, Ends::Apart).cpu_ns;
    let interrupt_ns = drawn.interrupt(FlowEnd::To, 64.0, Ends::Apart).cpu_ns;
    let woken = drawn.wake(FlowEnd::To, 64.0, 0.0);
    near(2.0 * message_cpu_ns + interrupt_ns + woken.cpu_ns, 4.0 * message_ns(64.0), 0.01);
    near(message_cpu_ns, message_ns(64.0), 0.01);
    assert!(interrupt_ns > 0.0 && woken.cpu_ns > 0.0 && woken.delay_ns >= woken.cpu_ns, "{woken:?}");
}

#[test]
fn what_a_mechanism_costs_beyond_an_idle_cpu_is_paid_on_busy_cpus_too() {
    let mut known = MeasuredCosts::default();
    // On two CPUs one costs each end a message and a half more than on one, and the other two and a half: one of that is its own.
    add_interrupts(&mut known, "fast", 1.75);
    add_interrupts(&mut known, "slow", 2.25);
    let busy_ns = |name: &str| {
        let flow = Flow { mechanism: Spec::plain(name), ..flow(0, 1) };
        let drawn = FlowCosts::of(&flow, &known).draw(None, 0.0, 0.0);
        drawn.answered(FlowEnd::To, 64.0, Ends::Apart).cpu_ns
    };
    near(busy_ns("fast"), message_ns(64.0), 0.01);
    near(busy_ns("slow"), 1.5 * message_ns(64.0), 0.01);
}

#[test]
fn caches_are_cold_on_cpus_that_were_idle() {
    let mut known = costs();
    add_think_time(&mut known, "fast", false, 0.0);
    add_think_time(&mut known, "fast", true, 8000.0);
    let drawn = |coldness| FlowCosts::of(&flow(0, 1), &known).draw(None, 0.0, coldness);
    let (warm, cold) = (drawn(0.0), drawn(1.0));
    for ends in [Ends::Together, Ends::Apart] {
        assert_eq!(cold.answered(FlowEnd::To, 64.0, ends), warm.answered(FlowEnd::To, 64.0, ends));
    }
    // Each end wakes once in a round trip.
    let woken = |drawn: &DrawnCosts| drawn.wake(FlowEnd::To, 64.0, 0.0);
    near(woken(&cold).cpu_ns - woken(&warm).cpu_ns, 4000.0, 0.01);
    near(woken(&cold).delay_ns - woken(&warm).delay_ns, 4000.0, 0.01);
    near(drawn(1.0).wake_for_time(0.0).cpu_ns, 4000.0, 0.01);
}

#[test]
fn what_nothing_explains_is_work_as_far_as_that_was_seen_and_no_short_sleep() {
    let of = |ns, most_cpu_ns, thought_ns| {
        let rest = RestTime { most_cpu_ns, ..RestTime::default() }.of(ns, thought_ns);
        [rest.work_ns, rest.wait_ns]
    };
    assert_eq!(of(3000.0, 5000.0, 0.0), [3000.0, 0.0]);
    assert_eq!(of(25_000.0, 5000.0, 0.0), [5000.0, 20_000.0]);
    assert_eq!(of(8000.0, 0.0, 0.0), [8000.0, 0.0], "nobody sleeps for so short a time");
    // Of what is too long already, a think time is left out before work.
    assert_eq!(of(-3000.0, 5000.0, 2000.0), [-1000.0, -2000.0]);
}

#[test]
fn a_thread_that_has_just_run_is_left_where_it_waits() {
    let mut cpus = Cpus::new(2, vec![vec![0, 1]; 3]);
    // The first two take turns on one CPU; the third has the other.
    cpus.occupy(0, 0);
    cpus.occupy(1, 2);
    cpus.enqueue(0, 1);
    assert_eq!(cpus.next(0, 1_000_000), Some(1));
    cpus.enqueue(0, 0);
    assert_eq!(cpus.next(1, 1_100_000), None, "it has run until a moment ago");
    assert_eq!(cpus.idle_since(1), Some(1_100_000));
    cpus.occupy(1, 2);
    assert_eq!(cpus.next(1, 1_600_000), Some(0));
}

#[test]
fn what_idle_cpus_cost_is_no_part_of_a_message_of_a_stream() {
    let mut known = MeasuredCosts::default();
    add_interrupts(&mut known, "fast", 2.0);
    // As much as a round trip costs an end on two CPUs, in which it falls asleep, wakes and wakes the other end, and a message.
    add_stream_that_slept(&mut known, "fast", 5.0 * message_ns(64.0));
    let drawn = FlowCosts::of(&stream(0, 1), &known).draw(None, 0.0, 0.0);
    for end in [FlowEnd::From, FlowEnd::To] {
        near(drawn.streamed(end, 64.0, Ends::Apart).cpu_ns, message_ns(64.0), 0.01);
    }
}

#[test]
fn an_answer_that_comes_late_to_a_client_that_was_woken_takes_what_was_measured() {
    let mut known = costs();
    add_late_answers(&mut known, "fast", 20_000, -2500.0, 2.0);
    let cycle = |known: &MeasuredCosts, work_us| {
        let looped = Flow { server_work: us(work_us), ..flow(0, 1) };
        let drawn = [FlowCosts::of(&looped, known).draw(None, 0.0, 0.0)];
        let setup = SimulationSetup {
            costs: &drawn,
            rests: &[Rest::default()],
            cpus: &[0, 1],
            quantum_ns: 2_000_000,
            seed: 3,
            events: 30_000,
        };
        let found = simulate(&scenario(&[&[0], &[1]], vec![looped]), &setup).behaviour;
        let cycle_ns = 1e9 / found.flows[0].per_s;
        (cycle_ns, found.processes[0].switches_per_s * cycle_ns / 1e9)
    };
    for (work_us, sooner_ns, switches) in
        [(0, 0.0, 1.0), (10, 1250.0, 1.5), (20, 2500.0, 2.0), (60, 2500.0, 2.0)]
    {
        let (plain, woken) = (cycle(&costs(), work_us), cycle(&known, work_us));
        assert!((plain.0 - woken.0 - sooner_ns).abs() < 50.0, "{work_us}: {plain:?} {woken:?}");
        assert!(
            (woken.1 - switches).abs() < 0.02 && (plain.1 - 1.0).abs() < 0.02,
            "{work_us}: {plain:?} {woken:?}"
        );
    }
}

#[test]
fn a_program_may_work_when_it_is_woken_for_nothing() {
    let mut known = costs();
    // After 20 µs the client has slept again; an answer after 5 µs finds it awake.
    add_late_answers(&mut known, "fast", 5000, -4000.0, 1.0);
    add_late_answers(&mut known, "fast", 20_000, 0.0, 2.0);
    let late = |flow: &Flow, work_ns| {
        FlowCosts::of(flow, &known).draw(None, 0.0, 0.0).late_answer(work_ns).unwrap().longer_wake_ns
    };
    let written = Flow { client_work: us(6), ..flow(0, 1) };
    let recorded = RecordedFlow {
        messages: 1,
        per_s: 1.0,
        round_trip: None,
        client_waited: 0.0,
        server_waited: 0.0,
        partial_reads: 0.0,
        on_one_cpu: None,
        held_back: None,
    };
    let program = Flow { recorded: Some(recorded), ..written.clone() };
    near(late(&written, 5000.0), -4000.0, 0.01);
    near(late(&program, 5000.0), -1000.0, 0.01);
    assert!(late(&program, 20_000.0).abs() < 10.0);
}

#[test]
fn who_serves_several_at_once_goes_on_with_others_while_it_waits() {
    let after = |cause, to| Flow {
        begin: Begin::After { flow: cause, per_message: 1.0 },
        server_work: us(200),
        ..flow(2, to)
    };
    let flows = vec![flow(0, 2), flow(1, 2), after(0, 3), after(1, 4)];
    let mut proxied = scenario(&[&[0], &[1], &[2], &[3], &[4]], flows);
    let cpus = [0, 1, 2, 3, 4];
    let in_turn = run(&proxied, &cpus).behaviour.flows[0].per_s;
    proxied.processes[2].serves = Concurrency::Together;
    let together = run(&proxied, &cpus).behaviour.flows[0].per_s;
    // Each request takes as long as its store, beside which those of others go on.
    let alone_ns = 200_000.0 + 8.0 * message_ns(64.0) + 4.0 * WAKE_NS;
    near(1e9 / together, alone_ns, 0.05);
    assert!(together > 1.7 * in_turn, "{together} {in_turn}");
}

#[test]
fn a_stream_that_holds_little_keeps_sender_and_receiver_in_step() {
    // Work of sender and receiver comes in lumps: with room between them they overlap, without it one waits for the other.
    let lumpy = |us: u64| -> Mix<Nanoseconds> { format!("0:75%, {}us:25%", 4 * us).parse().unwrap() };
    let size = Mix::only(Size(10_240));
    let flow = Flow { client_work: lumpy(20), server_work: lumpy(20), size, ..stream(0, 1) };
    let rate = |capacity_bytes| {
        let mut drawn = FlowCosts::of(&flow, &costs()).draw(None, 0.0, 0.0);
        drawn.capacity_bytes = capacity_bytes;
        let costs = [drawn];
        let setup = SimulationSetup {
            costs: &costs,
            rests: &[Rest::default()],
            cpus: &[0, 1],
            quantum_ns: 2_000_000,
            seed: 3,
            events: 60_000,
        };
        simulate(&scenario(&[&[0], &[1]], vec![flow.clone()]), &setup).behaviour.flows[0].per_s
    };
    let each_ns = 20_000.0 + message_ns(10_240.0);
    let [small, middle, large] = [4096, 65_536, 1 << 20].map(rate);
    near(large, 1e9 / each_ns, 0.05);
    assert!(small < 0.85 * large && small < middle, "{small} {middle} {large}");
}

#[test]
fn two_loops_on_one_cpu_share_it() {
    let busy = |from, to| Flow { client_work: us(100), ..flow(from, to) };
    let alone = run(&scenario(&[&[0], &[0]], vec![busy(0, 1)]), &[0]);
    let both = run(&scenario(&[&[0], &[0], &[0], &[0]], vec![busy(0, 1), busy(2, 3)]), &[0]);
    for flow in &both.behaviour.flows {
        near(flow.per_s, alone.behaviour.flows[0].per_s / 2.0, 0.05);
    }
    let used: f64 = both.behaviour.processes.iter().map(|process| process.cpu).sum();
    near(used, 1.0, 0.02);
    let apart = run(&scenario(&[&[0], &[0], &[1], &[1]], vec![busy(0, 1), busy(2, 3)]), &[0, 1]);
    near(apart.behaviour.flows[1].per_s, alone.behaviour.flows[0].per_s, 0.01);
}

#[test]
fn flows_that_are_after_others_have_as_many_messages_as_they_should() {
    let half = Flow { begin: Begin::After { flow: 0, per_message: 0.5 }, ..flow(1, 2) };
    let found = run(&scenario(&[&[], &[], &[]], vec![flow(0, 1), half]), &[0, 1]);
    near(found.counts[1] as f64, found.counts[0] as f64 / 2.0, 0.02);
}

#[test]
fn an_open_loop_has_its_rate() {
    let rate = Rate { per_s: 2000, arrivals: Arrivals::Uniform };
    let open = Flow { begin: Begin::Open(rate), ..flow(0, 1) };
    near(run(&scenario(&[&[], &[]], vec![open]), &[0, 1]).behaviour.flows[0].per_s, 2000.0, 0.01);
}

#[test]
fn processes_that_ask_one_another_do_not_stand_still() {
    let found = run(&scenario(&[&[], &[]], vec![flow(0, 1), flow(1, 0)]), &[0, 1]);
    assert!(found.counts.iter().all(|count| *count > 100), "{found:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Slow: it simulates many runs.
    #[test]
    fn no_scenario_makes_it_hang_or_panic_and_a_seed_gives_the_same_again(seed in any::<u64>(), cpus in 1..5_u32) {
        let mut random = SmallRng::seed_from_u64(seed);
        let specs = [Spec::plain("fast"), Spec::plain("slow"), Spec::plain("unmeasured")];
        let scenario = random_scenario(&specs, &mut |below| random.random_range(0..below));
        let cpus: Vec<u32> = (0..cpus).collect();
        let found = run_for(&scenario, &cpus, 5000);
        prop_assert_eq!(&found, &run_for(&scenario, &cpus, 5000));
        for process in &found.behaviour.processes {
            prop_assert!(process.cpu.is_finite() && process.cpu >= 0.0);
        }
        // Whoever begins something gets it done.
        prop_assert!(found.counts.iter().sum::<u64>() > 0, "{:?}", scenario);
    }
}
