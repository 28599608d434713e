//! Predictions from costs that are known.

use super::case_costs::FlowEnd;
use super::fixture::{
    add_costs, add_round_trips, add_think_time, add_woken_more, costs, flow, message_ns, scenario, us,
};
use super::flow_costs::{DrawnCosts, FlowCosts};
use super::simulation::{Rest, SimulationSetup, simulate};
use super::{Change, CostCase, EndPlace, Measured, MeasuredCosts, PredictOptions, held, needed, predict};
use model::record::{Record, Setting};
use model::scenario::{
    Behaviour, Concurrency, Flow, FlowBehaviour, Mix, ProcessBehaviour, RecordedFlow, Recording,
};
use model::testing::scenarios::random_scenario;
use model::testing::{record, sample};
use model::{Case, CpuPair, Pace, Placement, Sample, Scenario, Size, Spec, Workload, floor};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

pub(super) const QUICK: PredictOptions = PredictOptions { seed: 1, draws: 8, events: 4000 };

/// `scenario` with `name` for the mechanism of every flow.
pub(super) fn exchanged(scenario: &Scenario, name: &str) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.flows.iter_mut().for_each(|flow| flow.mechanism = Spec::plain(name));
    scenario
}

pub(super) fn recording(slowdown: Option<f64>) -> Recording {
    Recording {
        command: String::new(),
        seconds: 1.0,
        by: "tracepoints".to_owned(),
        host: String::new(),
        slowdown,
        slowdown_interval: None,
        unseen: Vec::new(),
    }
}

#[test]
fn a_dearer_mechanism_adds_what_it_costs_more() {
    let before = scenario(&[&[0], &[0]], vec![Flow { server_work: us(50), ..flow(0, 1) }]);
    let after = exchanged(&before, "slow");
    let found = predict(&before, &after, &costs(), &Measured::recorded(&before), &[0], QUICK);
    let trip = found.flows[0].round_trip_ns.unwrap();
    let (old, new) = (50_000.0 + 4.0 * message_ns(64.0), 50_000.0 + 8.0 * message_ns(64.0));
    assert!((trip.ratio / (new / old) - 1.0).abs() < 0.01, "{trip:?}");
    let (low, high) = trip.ratio_interval;
    assert!(low < new / old && new / old < high, "{trip:?}");
    assert!(!found.is_calibrated && found.notes.iter().any(|note| note.contains("nothing was measured")));
    // The client does nothing but its messages, which take twice the CPU time.
    let cpu = found.processes[0].cpu.unwrap();
    assert!((cpu.ratio / (2.0 * old / new) - 1.0).abs() < 0.02, "{cpu:?}");
}

#[test]
fn what_was_measured_beside_the_costs_stays_the_same() {
    let before = scenario(&[&[0], &[0]], vec![flow(0, 1)]);
    let after = exchanged(&before, "slow");
    let mechanism_ns = 4.0 * message_ns(64.0);
    // Of 100 us nothing is known but that the mechanism takes less than a tenth of it.
    let flows = vec![FlowBehaviour { per_s: 1e9 / 130_000.0, round_trip_ns: Some(100_000.0) }];
    let process = |cpu| ProcessBehaviour { cpu, switches_per_s: 15_000.0 };
    let replay = Behaviour { flows, processes: vec![process(0.3), process(0.7)] };
    let measured = Measured::replayed(&[replay]).unwrap();
    let found = predict(&before, &after, &costs(), &measured, &[0], QUICK);
    let (trip, rate) = (found.flows[0].round_trip_ns.unwrap(), found.flows[0].per_s.unwrap());
    assert!((trip.after - 100_000.0 - mechanism_ns).abs() < 1000.0, "{trip:?}");
    assert!((1e9 / rate.after - 130_000.0 - mechanism_ns).abs() < 1500.0, "{rate:?}");
    assert!(found.is_calibrated);
    // The other end did half of it.
    let cpu = found.processes[1].cpu.unwrap();
    assert!(
        (cpu.after - (91_000.0 + mechanism_ns / 2.0) / (130_000.0 + mechanism_ns)).abs() < 0.02,
        "{cpu:?}"
    );
}

#[test]
fn what_recording_cost_is_taken_out() {
    let mut before = scenario(&[&[0], &[0]], vec![flow(0, 1)]);
    let recorded = RecordedFlow {
        messages: 1000,
        per_s: 10_000.0,
        round_trip: Some(us(90)),
        client_waited: 0.0,
        server_waited: 0.0,
        partial_reads: 0.0,
        on_one_cpu: Some(1.0),
        held_back: None,
    };
    before.flows[0].recorded = Some(recorded);
    let rate = |slowdown| {
        let before = Scenario { recorded: Some(recording(Some(slowdown))), ..before.clone() };
        let after = exchanged(&before, "slow");
        let found = predict(&before, &after, &costs(), &Measured::recorded(&before), &[0], QUICK);
        (found.flows[0].per_s.unwrap(), found.notes.iter().any(|note| note.contains("taken out")))
    };
    let ((slow, is_told), (quick, is_quick_told)) = (rate(0.5), rate(0.0));
    assert!(is_told && !is_quick_told);
    assert_eq!((slow.before, quick.before), (15_000.0, 10_000.0));
    // What the mechanism costs more is more of a shorter cycle.
    let more_ns = 4.0 * message_ns(64.0);
    for (change, cycle_ns) in [(slow, 1e9 / 15_000.0), (quick, 1e5)] {
        assert!((change.ratio * (cycle_ns + more_ns) / cycle_ns - 1.0).abs() < 0.02, "{change:?}");
    }
    // Where it is hardly known, the change is not either.
    let width = |slowdown_interval| {
        let recorded = Recording { slowdown_interval, ..recording(Some(0.5)) };
        let before = Scenario { recorded: Some(recorded), ..before.clone() };
        let measured = Measured::recorded(&before);
        let options = PredictOptions { draws: 40, ..QUICK };
        let found = predict(&before, &exchanged(&before, "slow"), &costs(), &measured, &[0], options);
        let (low, high) = found.flows[0].per_s.unwrap().ratio_interval;
        high - low
    };
    let (unknown, known) = (width(Some([0.0, 1.0])), width(Some([0.49, 0.51])));
    assert!(unknown > 1.15 * known, "{unknown} {known}");
    // A file may say anything.
    assert!(width(Some([f64::NAN, f64::INFINITY])).is_finite());
}

#[test]
fn what_is_exchanged_is_also_predicted_together() {
    let two = scenario(&[&[0], &[0], &[1]], vec![flow(0, 1), flow(0, 2)]);
    let predicted =
        |after: &Scenario| predict(&two, after, &costs(), &Measured::recorded(&two), &[0, 1], QUICK);
    let found = predicted(&exchanged(&two, "slow"));
    let together = found.together_per_s.unwrap();
    let rates: Vec<Change> = found.flows.iter().map(|flow| flow.per_s.unwrap()).collect();
    let sum: f64 = rates.iter().map(|rate| rate.before).sum();
    assert!((together.before / sum - 1.0).abs() < 0.01, "{together:?} {rates:?}");
    let (least, most) = (rates[0].ratio.min(rates[1].ratio), rates[0].ratio.max(rates[1].ratio));
    assert!((least - 0.01..most + 0.01).contains(&together.ratio), "{together:?} {rates:?}");
    let mut one = two.clone();
    one.flows[0].mechanism = Spec::plain("slow");
    assert_eq!(predicted(&one).together_per_s, None);
}

#[test]
fn an_exchange_for_the_same_changes_nothing() {
    let before = scenario(&[&[], &[], &[]], vec![flow(0, 1), flow(1, 2)]);
    let found = predict(&before, &before, &costs(), &Measured::recorded(&before), &[0, 1], QUICK);
    for flow in found.flows {
        assert_eq!(flow.per_s.unwrap().ratio, 1.0);
    }
}

#[test]
fn cases_that_are_missing_are_named_and_planned() {
    let mut one = scenario(&[&[], &[]], vec![flow(0, 1), Flow { reply: None, ..flow(0, 1) }]);
    one.flows[0].size = Mix::only(Size(100_000));
    one.flows[1].name = "stream".to_owned();
    let needs = needed([&one], 2);
    let missing = needs.missing(&MeasuredCosts::default());
    assert_eq!(
        missing,
        [
            "context-switch latency on one CPU",
            "fast latency 64,100000 on one CPU",
            "fast latency 64,100000 on two CPUs",
            "fast throughput 64 on one CPU",
            "fast throughput 64 on two CPUs"
        ]
    );
    assert_eq!(needs.missing(&costs()), Vec::<String>::new());
    assert_eq!(needed([&one], 1).missing(&MeasuredCosts::default()).len(), 3);
    let blocks = needs.blocks();
    assert!(blocks.iter().any(|block| block.workloads == [Workload::Throughput]), "{blocks:?}");
    assert!(blocks.iter().any(|block| block.paces.len() == 3), "{blocks:?}");
    let mut few = MeasuredCosts::default();
    add_costs(&mut few, "other", 1.0);
    assert_eq!(needs.missing(&few).len(), 5);
    let case = CostCase::plain(Spec::plain("fast"), Workload::Latency, EndPlace::OneCpu);
    assert_eq!(costs().sizes(&case).len(), 6);
}

#[test]
fn where_the_kernel_puts_endpoints_is_measured_unless_it_was_recorded() {
    let one = scenario(&[&[], &[]], vec![flow(0, 1)]);
    let is_measured = |seen: Option<f64>| {
        let measured = Measured { on_one_cpu: vec![seen], ..Measured::recorded(&one) };
        let blocks = needed([&one], 2).placed_as(&measured).blocks();
        blocks.iter().flat_map(|block| &block.placements).any(|place| place.to_string() == "unpinned")
    };
    assert!(is_measured(None) && !is_measured(Some(0.2)));
}

#[test]
fn a_reader_is_told_where_the_simulation_does_not_come_to_what_was_measured() {
    let told = |per_s: f64, round_trip_ns: f64| {
        let before = scenario(&[&[0], &[1]], vec![flow(0, 1)]);
        let flows = vec![Some(FlowBehaviour { per_s, round_trip_ns: Some(round_trip_ns) })];
        let measured = Measured { flows, ..Measured::recorded(&before) };
        let found = predict(&before, &exchanged(&before, "slow"), &costs(), &measured, &[0, 1], QUICK);
        found.notes.iter().any(|note| note.contains("comes to"))
    };
    assert!(!told(5000.0, 150_000.0));
    // No work that could be left out explains what is quicker than the messages alone.
    assert!(told(5e6, 100.0));
}

#[test]
fn a_reader_is_told_where_it_it_is_not_known_which_cpu_a_client_gets() {
    let told = |cpus: [&[u32]; 2], wait: &str| {
        let before = scenario(&cpus, vec![flow(0, 1)]);
        let mut after = exchanged(&before, "slow");
        after.flows[0].mechanism.params =
            serde_json::from_value(serde_json::json!({ "wait": wait })).unwrap();
        let mut known = costs();
        for place in [EndPlace::OneCpu, EndPlace::TwoCpus] {
            let spec = after.flows[0].mechanism.clone();
            add_round_trips(&mut known, &CostCase::plain(spec, Workload::Latency, place));
        }
        let found = predict(&before, &after, &known, &Measured::recorded(&before), &[0, 1], QUICK);
        found.notes.iter().any(|note| note.contains("hold the processes to CPUs"))
    };
    assert!(told([&[], &[]], "epoll-room"));
    assert!(!told([&[], &[]], "epoll") && !told([&[0], &[1]], "epoll-room"));
}

#[test]
fn what_is_the_same_before_and_after_is_no_part_of_the_change() {
    let of = |second: &str| {
        let mut flows = vec![flow(0, 1), flow(1, 2)];
        flows[1].mechanism = Spec::plain(second);
        scenario(&[&[], &[], &[]], flows)
    };
    let needs = needed([&of("slow"), &of("other")], 2);
    let case = |name: &str, pace, cpus: Option<CpuPair>| Case {
        workload: Workload::Latency,
        size_bytes: Some(Size(64)),
        pace,
        placement: if cpus.is_none() { Placement::Unpinned } else { Placement::SameLlc },
        cpus,
        spec: Spec::plain(name),
        ..floor::operation("getpid", 0)
    };
    let two = Some(CpuPair { client: 0, server: 1 });
    for name in ["slow", "other"] {
        for pace in [Pace::BackToBack, Pace::ColdThinkTime(100_000)] {
            assert!(needs.tells_the_change(&case(name, pace, two)), "{name} {pace}");
        }
        assert!(!needs.tells_the_change(&case(name, Pace::ThinkTime(100_000), two)), "{name}");
        assert!(!needs.tells_the_change(&case(name, Pace::BackToBack, None)), "{name}");
    }
    // The first flow keeps its mechanism.
    assert!(!needs.tells_the_change(&case("fast", Pace::BackToBack, two)));
}

#[test]
fn how_late_answers_do_is_measured_where_a_client_is_woken_meanwhile() {
    let mut one = scenario(&[&[], &[]], vec![flow(0, 1)]);
    assert!(needed([&one], 2).worked().is_empty());
    one.flows[0].mechanism.params = serde_json::from_str(r#"{"wait":"epoll-room"}"#).unwrap();
    let mut known = MeasuredCosts::default();
    let spec = one.flows[0].mechanism.clone();
    for place in [EndPlace::OneCpu, EndPlace::TwoCpus] {
        add_round_trips(&mut known, &CostCase::plain(spec.clone(), Workload::Latency, place));
    }
    let is_told = |known: &MeasuredCosts| {
        let found = predict(&one, &one, known, &Measured::recorded(&one), &[0, 1], QUICK);
        found.notes.iter().any(|note| note.contains("answers are taken to come at once"))
    };
    assert!(is_told(&known));
    let plain = CostCase::plain(spec, Workload::Latency, EndPlace::TwoCpus);
    add_round_trips(&mut known, &CostCase { server_work_ns: 6000, ..plain });
    assert!(!is_told(&known));
    let worked = needed([&one], 2).worked();
    let delays: Vec<String> = worked.iter().map(|(_, inject)| inject.to_string()).collect();
    assert_eq!(delays, ["server:3us", "server:6us", "server:10us", "server:30us"]);
    assert!(worked.iter().all(|(block, _)| block.sizes.len() == 1 && block.placements.len() == 1));
    assert!(needed([&one], 1).worked().is_empty(), "there is no other CPU");
}

#[test]
fn settings_of_the_costs_of_its_mechanisms_are_in_a_prediction() {
    let measured_of = |name: &str| {
        let case = Case {
            workload: Workload::Latency,
            size_bytes: Some(Size(64)),
            placement: Placement::Unpinned,
            spec: Spec::plain(name),
            ..floor::operation("getpid", 0)
        };
        let small = Setting {
            name: "capacity".to_owned(),
            got: "8192".to_owned(),
            usual: Some("65536".to_owned()),
            ..Setting::default()
        };
        Record { settings: vec![small], ..record(case, vec![sample(0, 1000.0, None)]) }
    };
    let one = exchanged(&scenario(&[&[], &[]], vec![flow(0, 1)]), "fast");
    let mut known = costs();
    known.add_run(&[measured_of("slow"), measured_of("fast"), measured_of("fast")]);
    let found = predict(&one, &one, &known, &Measured::recorded(&one), &[0, 1], QUICK);
    let [told] = found.settings.as_slice() else { panic!("{:?}", found.settings) };
    assert_eq!(told.mechanism, Spec::plain("fast"));
    assert_eq!(told.warning.to_string(), "capacity: usually 65536, here 8192");
}

#[test]
fn who_reads_is_told_how_much_was_measured_in_slow_spells() {
    let case = Case {
        workload: Workload::Latency,
        size_bytes: Some(Size(64)),
        placement: Placement::SameLlc,
        cpus: Some(CpuPair { client: 0, server: 1 }),
        spec: Spec::plain("fast"),
        ..floor::operation("getpid", 0)
    };
    let of_run = |slow: std::ops::Range<u32>| {
        let slice = |at: u32| Sample {
            started_ns: u64::from(at) * 500_000_000,
            ..sample(at, if slow.contains(&at) { 400_000.0 } else { 100_000.0 }, None)
        };
        record(case.clone(), (0..100).map(slice).collect())
    };
    let told = |slow| {
        let one = exchanged(&scenario(&[&[], &[]], vec![flow(0, 1)]), "fast");
        let mut known = costs();
        known.add_run(&[of_run(slow)]);
        let found = predict(&one, &one, &known, &Measured::recorded(&one), &[0, 1], QUICK);
        found.notes.into_iter().find(|note| note.contains("left out"))
    };
    assert_eq!(told(0..0), None);
    assert!(told(30..50).unwrap().starts_with("20% of the costs"));
}

#[test]
fn what_cold_caches_cost_is_in_the_change_of_a_program_that_works_between_messages() {
    let mut with_cold = costs();
    for (name, longer_ns) in [("fast", 4000.0), ("slow", 12_000.0)] {
        add_think_time(&mut with_cold, name, false, 0.0);
        add_think_time(&mut with_cold, name, true, longer_ns);
    }
    let mut program = scenario(&[&[0], &[1]], vec![Flow { server_work: us(30), ..flow(0, 1) }]);
    let change = |before: &Scenario, costs: &MeasuredCosts| {
        let measured = Measured::recorded(before);
        let found = predict(before, &exchanged(before, "slow"), costs, &measured, &[0, 1], QUICK);
        let round_trip = found.flows[0].round_trip_ns.unwrap();
        (round_trip.after - round_trip.before, found.notes)
    };
    let is_told = |notes: &[String]| notes.iter().any(|note| note.contains("cold caches"));
    // Nobody recorded it: its work is computation.
    let (written_ns, notes) = change(&program, &with_cold);
    assert!(!is_told(&notes), "{notes:?}");
    program.recorded = Some(recording(None));
    let (warm_ns, notes) = change(&program, &costs());
    assert!(is_told(&notes), "{notes:?}");
    let (cold_ns, notes) = change(&program, &with_cold);
    assert!(!is_told(&notes), "{notes:?}");
    assert!((written_ns - warm_ns).abs() < 500.0, "{written_ns} {warm_ns}");
    // From 0.7 to 1.3 of 8 µs more, as the caches may be.
    assert!((5600.0..10_400.0).contains(&(cold_ns - warm_ns)), "{cold_ns} {warm_ns}");
    // A CPU that both share is never idle.
    program.processes[1].cpus = vec![0];
    let [warm_ns, cold_ns] = [&costs(), &with_cold].map(|costs| change(&program, costs).0);
    assert!((cold_ns - warm_ns).abs() < 200.0, "{cold_ns} {warm_ns}");
}

#[test]
fn four_loops_through_one_busy_cpu_are_predicted_alike_whatever_the_seed() {
    // The server's processes share a CPU that they keep busy; the client has the other.
    let looped = |to| Flow { client_work: us(3), server_work: us(15), ..flow(0, to) };
    let mut crowd = scenario(&[&[0], &[1], &[1], &[1], &[1]], (1..=4).map(looped).collect());
    crowd.processes[0].roots = Concurrency::Together;
    crowd.recorded = Some(recording(None));
    let known = costs();
    let costs: Vec<DrawnCosts> =
        crowd.flows.iter().map(|flow| FlowCosts::of(flow, &known).draw(None, 0.0, 0.0)).collect();
    let (rests, quantum_ns) = (&[Rest::default(); 4], 2_000_000);
    let setup = SimulationSetup { costs: &costs, rests, cpus: &[0, 1], quantum_ns, seed: 5, events: 20_000 };
    let was = simulate(&crowd, &setup).behaviour;
    // It was seen to take some microseconds longer for each message, and less of its CPUs.
    let slower = |found: &FlowBehaviour| FlowBehaviour {
        per_s: found.per_s * 0.87,
        round_trip_ns: found.round_trip_ns.map(|ns| ns / 0.87),
    };
    let less = |found: &ProcessBehaviour| ProcessBehaviour { cpu: found.cpu * 0.7, ..*found };
    let seen = Measured {
        flows: was.flows.iter().map(|flow| Some(slower(flow))).collect(),
        processes: was.processes.iter().map(|process| Some(less(process))).collect(),
        ..Measured::recorded(&crowd)
    };
    let after = exchanged(&crowd, "slow");
    let ratios: Vec<f64> = (1..=4)
        .map(|seed| {
            let options = PredictOptions { seed, ..QUICK };
            predict(&crowd, &after, &known, &seen, &[0, 1], options).together_per_s.unwrap().ratio
        })
        .collect();
    let spread = ratios.iter().copied().fold(0.0, f64::max) / ratios.iter().copied().fold(1.0, f64::min);
    assert!(spread < 1.04, "{ratios:?}");
}

#[test]
fn all_mechanisms_tell_together_what_longer_sleep_costs_but_for_one_that_is_woken_more_often() {
    let mut slept = costs();
    add_think_time(&mut slept, "fast", false, 2000.0);
    add_think_time(&mut slept, "slow", false, 4000.0);
    let longer_ns = |name: &str, costs: &MeasuredCosts| {
        let flow = Flow { mechanism: Spec::plain(name), ..flow(0, 1) };
        let drawn = FlowCosts::of(&flow, costs).draw(None, 0.0, 0.0);
        let delay_ns = |idle_ns| drawn.wake(FlowEnd::To, 64.0, idle_ns).delay_ns;
        delay_ns(1e6) - delay_ns(1.0)
    };
    for name in ["fast", "slow"] {
        assert!((longer_ns(name, &slept) - 3000.0).abs() < 50.0, "{name}: {}", longer_ns(name, &slept));
    }
    add_woken_more(&mut slept, "woken", 9000.0);
    assert!((longer_ns("woken", &slept) - 9000.0).abs() < 1.0);
    assert!((longer_ns("fast", &slept) - 3000.0).abs() < 50.0, "it tells nothing of the others");
}

#[test]
fn a_prediction_held_if_the_replay_is_in_its_interval() {
    let before = scenario(&[&[0], &[0]], vec![flow(0, 1)]);
    let found =
        predict(&before, &exchanged(&before, "slow"), &costs(), &Measured::recorded(&before), &[0], QUICK);
    let replay = |factor: f64| Behaviour {
        flows: vec![FlowBehaviour { per_s: 1000.0 / factor, round_trip_ns: Some(1000.0 * factor) }],
        processes: vec![ProcessBehaviour { cpu: 0.5, switches_per_s: 1.0 }; 2],
    };
    let ratio = found.flows[0].round_trip_ns.unwrap().ratio;
    let after = exchanged(&before, "slow");
    let of = |trials: [Vec<Vec<Behaviour>>; 2]| held(&found, [&before, &after], &trials);
    let good = of([vec![vec![replay(1.0); 2]], vec![vec![replay(ratio); 2]]]);
    assert!(good.changes().count() == 2 && good.changes().all(|change| change.held), "{good:?}");
    let bad = of([vec![vec![replay(1.0)]], vec![vec![replay(1.0)]]]);
    assert!(bad.changes().all(|change| !change.held && change.replayed == 1.0), "{bad:?}");
    assert_eq!(of([Vec::new(), Vec::new()]).changes().count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Slow: it simulates many runs.
    #[test]
    fn no_scenario_panics_and_intervals_hold_the_prediction(seed in any::<u64>(), per_s in 0.0..1e6f64, cpu in 0.0..3.0f64) {
        let mut random = SmallRng::seed_from_u64(seed);
        let before = random_scenario(&[Spec::plain("fast")], &mut |below| random.random_range(0..below));
        let after = exchanged(&before, "slow");
        let options = PredictOptions { seed, draws: 3, events: 1500 };
        let replay = Behaviour {
            flows: vec![FlowBehaviour { per_s, round_trip_ns: Some(per_s * 3.0) }; before.flows.len()],
            processes: vec![ProcessBehaviour { cpu, switches_per_s: per_s }; before.processes.len()],
        };
        let measured = Measured::replayed(&[replay]).unwrap();
        let found = predict(&before, &after, &costs(), &measured, &[0, 1], options);
        prop_assert_eq!(&found, &predict(&before, &after, &costs(), &measured, &[0, 1], options));
        for flow in &found.flows {
            for change in flow.per_s.iter().chain(&flow.round_trip_ns) {
                prop_assert!(change.ratio_interval.0 <= change.ratio && change.ratio <= change.ratio_interval.1);
                prop_assert!(change.after.is_finite());
            }
        }
    }
}
