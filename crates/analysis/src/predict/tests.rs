//! Bounds of scenarios whose answers are known by hand.

use super::costs::{EndPlace, MeasuredCosts, MessageCost};
use super::{LimitOn, Prediction, needed, predict};
use model::pace::{Arrivals, Rate};
use model::scenario::{Begin, Concurrency, Flow, Mix, Process, RecordedFlow, RecordedProcess, Recording};
use model::testing::{record, sample};
use model::units::Nanoseconds;
use model::{Case, CpuPair, Placement, Scenario, Size, Spec, Workload, floor};

/// A round trip of `fast` takes 10 µs on two CPUs and 8 on one, a quarter of it for each end; one of `slow` twice as much.
fn costs() -> MeasuredCosts {
    let mut costs = MeasuredCosts::default();
    for (name, factor) in [("slow", 2.0), ("fast", 1.0)] {
        for (place, elapsed_ns) in [(EndPlace::OneCpu, 8000.0), (EndPlace::TwoCpus, 10_000.0)] {
            for (bytes, larger) in [(64, 1.0), (1088, 2.0)] {
                let ns = factor * elapsed_ns * larger;
                let cost =
                    MessageCost { elapsed_ns: ns, client_ns: ns / 4.0, server_ns: ns / 4.0, error_ns: 0.0 };
                costs.add((Spec::plain(name), Workload::Latency, place), bytes, cost);
            }
        }
    }
    costs
}

fn flow(from: usize, to: usize, per_s: f64) -> Flow {
    let none = || Mix::only(Nanoseconds(0));
    Flow {
        name: format!("f{from}-{to}"),
        from,
        to,
        mechanism: Spec::plain("slow"),
        size: Mix::only(Size(64)),
        reply: Some(Mix::only(Size(64))),
        messages: 1,
        fds: 0,
        read: None,
        begin: Begin::Closed { think_time: none() },
        client_work: none(),
        server_work: none(),
        recorded: Some(RecordedFlow {
            messages: 1000,
            per_s,
            round_trip: None,
            client_waited: 0.0,
            server_waited: 0.0,
            partial_reads: 0.0,
            on_one_cpu: Some(0.0),
            held_back: None,
        }),
    }
}

/// Processes that used so much of a CPU each, all at once.
fn scenario(cpu: &[f64], flows: Vec<Flow>) -> Scenario {
    let process = |(at, cpu): (usize, &f64)| Process {
        name: format!("p{at}"),
        cpus: Vec::new(),
        roots: Concurrency::Together,
        serves: Concurrency::Together,
        recorded: Some(RecordedProcess { cpu: *cpu, switches_per_s: 0.0, in_calls: 0.0, waited: 0.0 }),
    };
    Scenario {
        name: "test".to_owned(),
        summary: String::new(),
        recorded: None,
        processes: cpu.iter().enumerate().map(process).collect(),
        flows,
    }
}

/// All flows over `fast`.
fn predicted(scenario: &Scenario) -> Prediction {
    let mut after = scenario.clone();
    after.flows.iter_mut().for_each(|flow| flow.mechanism = Spec::plain("fast"));
    predict(scenario, &after, &costs(), &[0, 1, 2, 3]).unwrap()
}

#[track_caller]
fn assert_near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9, "{found} instead of {wanted}");
}

#[test]
fn a_client_and_a_server_that_wait_for_each_other_gain_what_a_round_trip_does() {
    // A cycle of 100 µs, of which the exchange saves 10.
    let found = predicted(&scenario(&[0.3, 0.6], vec![flow(0, 1, 10_000.0)]));
    assert_near(found.alone.ratio, 100.0 / 90.0);
    // The server's 60 µs become 57.5.
    assert_eq!(found.busiest.on, LimitOn::Process("p1".to_owned()));
    assert_near(found.busiest.ratio, 60.0 / 57.5);
    assert_near(found.ratio_bounds.0, 60.0 / 57.5);
    assert_near(found.ratio_bounds.1, 100.0 / 90.0);
    assert_near(found.processes[1].cpu_after, 0.575);
}

#[test]
fn no_rate_goes_beyond_what_a_busy_process_can_do() {
    // Alone, requests would be twice as fast; but the server has no time left.
    let found = predicted(&scenario(&[0.2, 1.0], vec![flow(0, 1, 50_000.0)]));
    assert_near(found.busiest.ratio, 20.0 / 17.5);
    assert_near(found.alone.ratio, 20.0 / 17.5);
}

#[test]
fn what_several_connections_wait_for_is_the_server() {
    let clients = (0..4).map(|client| flow(client, 4, 10_000.0)).collect();
    let found = predicted(&scenario(&[0.1, 0.1, 0.1, 0.1, 0.9], clients));
    assert_near(found.alone.ratio, 100.0 / 90.0);
    // Four times 10,000 requests a second, each of which costs the server 2.5 µs less.
    assert_near(found.busiest.ratio, 0.9 / 0.8);
}

#[test]
fn a_chain_is_as_long_as_its_parts_and_what_comes_at_a_rate_stays() {
    let second = Flow { begin: Begin::After { flow: 0, per_message: 1.0 }, ..flow(1, 2, 10_000.0) };
    let chain = scenario(&[0.1, 0.2, 0.1], vec![flow(0, 1, 10_000.0), second]);
    assert_near(predicted(&chain).alone.ratio, 100.0 / 80.0);
    let open =
        Flow { begin: Begin::Open(Rate { per_s: 1000, arrivals: Arrivals::Uniform }), ..flow(0, 1, 1000.0) };
    assert_near(predicted(&scenario(&[0.1, 0.1], vec![open])).alone.ratio, 1.0);
}

#[test]
fn costs_are_those_of_the_place_and_of_the_sizes() {
    let mut one = flow(0, 1, 10_000.0);
    one.recorded.as_mut().unwrap().on_one_cpu = Some(0.5);
    let found = predicted(&scenario(&[0.1, 0.1], vec![one.clone()]));
    let [before, after] = found.flows[0].costs.unwrap();
    assert_near(before.elapsed_ns, 18_000.0);
    assert_near(after.elapsed_ns, 9000.0);
    // Between two sizes it is in between, beyond the last as steep, and below the first the same.
    for (bytes, wanted) in [(576, 1.5), (2112, 3.0), (1, 1.0)] {
        one.reply = Some(Mix::only(Size(bytes)));
        let found = predicted(&scenario(&[0.1, 0.1], vec![one.clone()]));
        assert_near(found.flows[0].costs.unwrap()[1].elapsed_ns, 4500.0 * (1.0 + wanted));
    }
    // Where nobody saw it, processes with a CPU each say it, and else it is said that nobody knows.
    one.recorded.as_mut().unwrap().on_one_cpu = None;
    one.reply = Some(Mix::only(Size(64)));
    let mut pinned = scenario(&[0.1, 0.1], vec![one]);
    assert!(predicted(&pinned).notes.iter().any(|note| note.contains("it was not recorded how often")));
    pinned.processes.iter_mut().for_each(|process| process.cpus = vec![1]);
    assert_near(predicted(&pinned).flows[0].costs.unwrap()[1].elapsed_ns, 8000.0);
}

#[test]
fn a_host_with_one_cpu_has_the_costs_of_one() {
    let mut costs = MeasuredCosts::default();
    for (name, elapsed_ns) in [("slow", 16_000.0), ("fast", 8000.0)] {
        let cost = MessageCost { elapsed_ns, client_ns: 4000.0, server_ns: 4000.0, error_ns: 0.0 };
        costs.add((Spec::plain(name), Workload::Latency, EndPlace::OneCpu), 64, cost);
    }
    let mut before = scenario(&[0.3, 0.6], vec![flow(0, 1, 10_000.0)]);
    before.flows[0].recorded.as_mut().unwrap().on_one_cpu = None;
    let mut after = before.clone();
    after.flows[0].mechanism = Spec::plain("fast");
    assert_near(predict(&before, &after, &costs, &[0]).unwrap().alone.ratio, 100.0 / 92.0);
}

#[test]
fn what_recording_cost_is_taken_out_of_rates() {
    let mut slowed = scenario(&[0.3, 0.6], vec![flow(0, 1, 8000.0)]);
    slowed.recorded = Some(Recording {
        command: String::new(),
        seconds: 1.0,
        by: "bpf".to_owned(),
        host: String::new(),
        slowdown: Some(0.25),
        slowdown_interval: None,
        unseen: Vec::new(),
    });
    let found = predicted(&slowed);
    assert_near(found.alone.ratio, 100.0 / 90.0);
    assert!(found.notes.iter().any(|note| note.contains("25% longer")), "{:?}", found.notes);
}

#[test]
fn bounds_are_as_wide_as_costs_may_be_off() {
    let mut costs = costs();
    let key = (Spec::plain("fast"), Workload::Latency, EndPlace::TwoCpus);
    costs.add(
        key,
        64,
        MessageCost { elapsed_ns: 10_000.0, client_ns: 2500.0, server_ns: 2500.0, error_ns: 1000.0 },
    );
    let before = scenario(&[0.3, 0.6], vec![flow(0, 1, 10_000.0)]);
    let mut after = before.clone();
    after.flows[0].mechanism = Spec::plain("fast");
    let found = predict(&before, &after, &costs, &[0, 1]).unwrap();
    assert_near(found.alone.interval.0, 1.0 / (1.0 - 0.1 + 0.01 * 1.645));
    assert_near(found.alone.interval.1, 1.0 / (1.0 - 0.1 - 0.01 * 1.645));
}

#[test]
fn what_is_missing_is_named_and_measured() {
    let before = scenario(&[0.3, 0.6], vec![flow(0, 1, 10_000.0), flow(1, 0, 1.0)]);
    let mut after = before.clone();
    after.flows[0].mechanism = Spec::plain("pipe");
    let needs = needed([&before, &after], 2);
    assert_eq!(needs.missing(&costs()), ["pipe latency 64 on one CPU", "pipe latency 64 on two CPUs"]);
    assert_eq!(needs.blocks().len(), 2);
    assert_eq!(predict(&before, &after, &costs(), &[0, 1]), None);
    // What nobody recorded is not predicted.
    let mut unknown = before.clone();
    unknown.flows[0].recorded = None;
    after.flows[0].mechanism = Spec::plain("fast");
    assert_eq!(predict(&unknown, &after, &costs(), &[0, 1]), None);
}

#[test]
fn costs_come_from_records() {
    let case = Case {
        workload: Workload::Latency,
        size_bytes: Some(Size(64)),
        placement: Placement::SameCore,
        cpus: Some(CpuPair { client: 1, server: 1 }),
        spec: Spec::plain("pipe"),
        ..floor::operation("getpid", 0)
    };
    let slices = (0..12).map(|at| sample(at, 30.0, None)).collect();
    let mut costs = MeasuredCosts::default();
    costs.add_run(&[record(case.clone(), slices)]);
    assert!(costs.has(&case) && !costs.has(&Case { size_bytes: Some(Size(65)), ..case }));
    let key = (Spec::plain("pipe"), Workload::Latency, EndPlace::OneCpu);
    assert_eq!(costs.at(&key, 64.0).map(|cost| cost.elapsed_ns.round()), Some(30.0));
    assert_eq!(costs.at(&(Spec::plain("pipe"), Workload::Latency, EndPlace::TwoCpus), 64.0), None);
}
