//! What comparisons say of simulated runs and of runs made by hand.

use super::simulation::{CASES, Drift, WORLD, World, on_cpu, worlds};
use super::*;
use crate::simulated::Random;
use crate::stats;
use model::case::Case;
use model::fact::Fact;
use model::floor::{CACHE_LINE, CONTEXT_SWITCH, SYSCALL};
use model::placement::CpuPair;
use model::record::{Outcome, Record, Results};
use model::sample::Sample;
use model::spec::Spec;
use model::speed::{SpeedReading, SpeedReadings};
use model::testing;
use model::units::{Percent, Size};
use model::workload::Workload;
use proptest::prelude::*;
use std::slice::from_ref;

/// Slow: it simulates many runs.
#[test]
fn at_most_one_unchanged_case_in_20_is_called_different_however_the_host_drifts() {
    let rates: Vec<(World, f64)> =
        worlds().into_iter().map(|world| (world, world.rates(20).called)).collect();
    for (world, called) in &rates {
        assert!(*called <= 0.05, "{called} in {world:?}");
    }
    let mean = stats::mean(&rates.iter().map(|(_, called)| *called).collect::<Vec<_>>());
    assert!(mean <= 0.02, "{mean}");
}

/// Slow: it simulates many runs.
#[test]
fn a_real_change_is_found_as_far_as_the_noise_permits() {
    let found = |effect: f64, world: World| World { effect, ..world }.rates(40).found;
    let calm = World { case_shift: 0.01, ..WORLD };
    for (drift, least_10, least_15) in [
        (Drift::Rest, 0.75, 0.95),
        (Drift::Wander(15.0), 0.45, 0.8),
        (Drift::Modes(10.0), 0.3, 0.75),
        (Drift::Modes(30.0), 0.45, 0.8),
    ] {
        let world = World { drift, ..calm };
        let (ten, fifteen) = (found(1.10, world), found(1.15, world));
        assert!(ten >= least_10 && fifteen >= least_15, "{drift:?}: {ten} of 10%, {fifteen} of 15%");
    }
    let restless = found(1.15, World { drift: Drift::Modes(10.0), ..WORLD });
    // Without speed readings nothing tells a state of the host from a change: intervals that hold find less here.
    assert!(restless >= 0.4, "{restless}");
}

#[test]
fn on_a_host_at_rest_most_cases_show_no_difference() {
    let rates = World { case_shift: 0.008, floor_shift: 0.004, ..WORLD }.rates(20);
    assert!(rates.same > 0.6, "{rates:?}");
}

/// A run with one latency case and the floors `syscall` and `context-switch`, each of `trials` trials
/// with a ripple of 1%.
fn run(trials: u32, case_ns: f64, floor_ns: Option<f64>) -> Results {
    let samples = |iteration_ns: f64| -> Vec<Sample> {
        let ripple = |round: u32| 1.0 + 0.0025 * (f64::from(round * 7 % 5) - f64::from(round * 3 % 4));
        (0..trials).map(|round| testing::sample(round, iteration_ns * ripple(round), floor_ns)).collect()
    };
    let mut records = vec![testing::record(on_cpu("pipe", Workload::Latency), samples(case_ns))];
    for (name, workload) in [(SYSCALL, Workload::Cost), (CONTEXT_SWITCH, Workload::Latency)] {
        if let Some(floor_ns) = floor_ns {
            let record = testing::record(on_cpu(name, workload), samples(floor_ns));
            records.push(Record { floor: true, ..record });
        }
    }
    Results { records, ..testing::results() }
}

fn only_case(a: &Results, b: &Results) -> ComparedCase {
    compare(from_ref(a), from_ref(b), ComparisonOptions::default()).cases[0].clone()
}

#[test]
fn a_change_of_the_case_alone_is_called_and_one_of_the_host_is_not() {
    let before = run(20, 1000.0, Some(500.0));
    let slower = only_case(&before, &run(20, 1300.0, Some(500.0)));
    assert_eq!((slower.verdict, slower.floors_differ), (ComparisonVerdict::Slower, false), "{slower:?}");
    let ratio = slower.ratio.unwrap();
    assert!((ratio.ratio - 1.3).abs() < 1e-9 && ratio.interval.0 > 1.2 && ratio.interval.1 < 1.4);
    assert!(ratio.interval.0 <= ratio.own_interval.0 && ratio.own_interval.1 <= ratio.interval.1);
    let faster = only_case(&run(20, 1300.0, Some(500.0)), &before);
    assert_eq!(faster.verdict, ComparisonVerdict::Faster);

    let host = compare(from_ref(&before), &[run(20, 1300.0, Some(650.0))], ComparisonOptions::default());
    let case = &host.cases[0];
    assert_eq!((case.verdict, case.floors_differ), (ComparisonVerdict::NoDifference, true), "{case:?}");
    assert!(host.floors.iter().all(|floor| floor.verdict == ComparisonVerdict::Slower), "{:?}", host.floors);
    assert!(host.totals.floors.unwrap().interval.unwrap().0 > 1.2);
    assert_eq!((host.totals.compared, host.totals.no_difference), (1, 1));

    let floors_alone = only_case(&before, &run(20, 1000.0, Some(650.0)));
    assert_eq!(floors_alone.verdict, ComparisonVerdict::Undecided, "{floors_alone:?}");
}

#[test]
fn another_floor_can_explain_a_change_that_the_own_floor_does_not_share() {
    let mut after = run(20, 1300.0, Some(500.0));
    for sample in &mut after.records[1].samples {
        sample.elapsed_ns *= 1.3;
    }
    let case = only_case(&run(20, 1000.0, Some(500.0)), &after);
    assert_eq!((case.verdict, case.floors_differ), (ComparisonVerdict::Undecided, true));
    assert!(case.reason.unwrap().contains("'syscall'"));
}

#[test]
fn a_time_that_wanders_is_told_by_a_floor_that_does_as_the_case_does_and_by_no_other() {
    // Both move between two speeds every ten trials; B takes 15% more in either.
    let wandering = |factor: f64, cpus: CpuPair| {
        let speed = |round: u32| if (round / 10).is_multiple_of(2) { 1.0 } else { 2.5 };
        let samples = (0..40).map(|round| {
            let ripple = 1.0 + 0.002 * f64::from(round * 7 % 5);
            testing::sample(round, 1000.0 * factor * ripple * speed(round), Some(500.0 * speed(round)))
        });
        let case = Case { cpus: Some(cpus), ..on_cpu("pipe", Workload::Latency) };
        Results { records: vec![testing::record(case, samples.collect())], ..testing::results() }
    };
    let compared = |cpus| only_case(&wandering(1.0, cpus), &wandering(1.15, cpus));
    let one_cpu = compared(CpuPair { client: 1, server: 1 });
    let ratio = one_cpu.ratio.unwrap();
    assert!(ratio.interval.0 < 1.0 && ratio.interval.1 > 1.0, "{ratio:?}");
    assert_eq!(one_cpu.verdict, ComparisonVerdict::Slower);
    assert_eq!(compared(CpuPair { client: 1, server: 0 }).verdict, ComparisonVerdict::Undecided);
}

#[test]
fn an_operation_is_held_against_the_bare_system_call() {
    let with_operation = |results: &Results| {
        let mut results = results.clone();
        results.records[0].case = on_cpu("getpid", Workload::Cost);
        results.records[0].samples.iter_mut().for_each(|sample| sample.floor_ns = None);
        results
    };
    let before = with_operation(&run(20, 1000.0, Some(500.0)));
    let slower = only_case(&before, &with_operation(&run(20, 1300.0, Some(500.0))));
    assert_eq!(slower.adjusted.unwrap().by, SYSCALL);
    assert_eq!(slower.verdict, ComparisonVerdict::Slower);
    let host = only_case(&before, &with_operation(&run(20, 1300.0, Some(650.0))));
    assert_eq!((host.verdict, host.floors_differ), (ComparisonVerdict::NoDifference, true));
}

#[test]
fn a_case_that_sleeps_on_two_cpus_is_held_against_the_floor_of_a_wake_up() {
    // The cache line became 20% slower, which is nothing to a case that waits for a wake-up; then the wake-up did, which is.
    let run = |case_ns: f64, line_ns: f64, wake_ns: f64| {
        let sample = |round: u32| {
            let ripple = 1.0 + 0.002 * f64::from(round * 7 % 5);
            let sample = testing::sample(round, case_ns * ripple, Some(line_ns));
            Sample { wake_floor_ns: Some(wake_ns), ..sample }
        };
        let cpus = Some(CpuPair { client: 1, server: 0 });
        let case = Case { cpus, ..on_cpu("pipe", Workload::Latency) };
        let line = Case { cpus, ..on_cpu(CACHE_LINE, Workload::Latency) };
        let lines = (0..20).map(|round| testing::sample(round, line_ns, None)).collect();
        let records = vec![
            testing::record(case, (0..20).map(sample).collect()),
            Record { floor: true, ..testing::record(line, lines) },
        ];
        Results { records, ..testing::results() }
    };
    let before = run(30e3, 100.0, 25e3);
    let verdict = |after: &Results| {
        let case = only_case(&before, after);
        (case.verdict, case.adjusted.unwrap().by)
    };
    let by = || "its floor of a wake-up".to_owned();
    assert_eq!(verdict(&run(30e3, 120.0, 25e3)), (ComparisonVerdict::NoDifference, by()));
    assert_eq!(verdict(&run(36e3, 120.0, 25e3)), (ComparisonVerdict::Slower, by()));
    assert_eq!(verdict(&run(36e3, 100.0, 30e3)), (ComparisonVerdict::NoDifference, by()));
}

#[test]
fn an_operation_is_held_against_the_speed_of_its_cpu_where_that_was_read() {
    let run = |case_ns: f64, reading_ns: f64| {
        let sample = |round: u32| {
            let ripple = 1.0 + 0.002 * f64::from(round * 7 % 5);
            let reading = SpeedReading { before_ns: reading_ns, after_ns: reading_ns };
            let speed = Some(SpeedReadings { client: reading, server: None, pair: None });
            Sample { speed, ..testing::sample(round, case_ns * ripple, None) }
        };
        let record = testing::record(on_cpu("tsc", Workload::Cost), (0..20).map(sample).collect());
        Results { records: vec![record], ..testing::results() }
    };
    let before = run(20.0, 7000.0);
    let slower = only_case(&before, &run(26.0, 7000.0));
    assert_eq!(
        (slower.verdict, &*slower.adjusted.unwrap().by),
        (ComparisonVerdict::Slower, "the speed readings")
    );
    assert_eq!(only_case(&before, &run(26.0, 9100.0)).verdict, ComparisonVerdict::NoDifference);
}

#[test]
fn what_cannot_be_told_says_why() {
    let before = run(20, 1000.0, Some(500.0));
    let few = only_case(&before, &run(5, 1300.0, Some(500.0)));
    assert_eq!(few.verdict, ComparisonVerdict::Undecided);
    let reason = few.reason.unwrap();
    assert!(reason.starts_with("B has 5 of the 6 trials needed: measure it with --time "), "{reason}");
    assert_eq!((few.ratio, few.b.trials), (None, 5));

    let mut failed = run(0, 1.0, Some(500.0));
    failed.records[0].outcome = Outcome::Failed { error: "pipe: EMFILE".to_owned() };
    let case = only_case(&before, &failed);
    assert_eq!(case.reason.unwrap(), "B has 0 of the 6 trials needed (pipe: EMFILE)");
    assert_eq!(case.b.median_ns, None);

    let bare = only_case(&run(20, 1000.0, None), &run(20, 1300.0, None));
    assert_eq!(bare.verdict, ComparisonVerdict::Undecided);
    assert!(bare.reason.unwrap().contains("no floor"));

    let slight = only_case(&before, &run(20, 1060.0, Some(500.0)));
    assert_eq!(slight.verdict, ComparisonVerdict::Slower, "a case alone: {slight:?}");
    let cautious = ComparisonOptions { repeatability: Percent(0.03), ..ComparisonOptions::default() };
    let slight = compare(from_ref(&before), &[run(20, 1060.0, Some(500.0))], cautious).cases[0].clone();
    assert!(slight.reason.clone().unwrap().contains("its interval reaches beyond ±5%"), "{slight:?}");
}

#[test]
fn a_delay_that_was_injected_in_one_side_is_named() {
    let mut delayed = run(12, 1000.0, Some(300.0));
    for record in delayed.records.iter_mut().filter(|record| !record.floor) {
        record.case.inject = Some("5%".parse().unwrap());
    }
    let plain = run(12, 1000.0, Some(300.0));
    let reason = |a: &Results, b: &Results| only_case(a, b).reason.unwrap_or_default();
    let injected = reason(&plain, &delayed);
    assert!(
        injected.starts_with("A was measured with no delay injected, B with a delay of 5%"),
        "{injected}"
    );
    assert!(!reason(&delayed, &delayed).contains("injected"));
}

#[test]
fn a_run_is_no_different_from_itself() {
    let results = WORLD.run(1.0, &mut Random(3));
    let comparison = compare(from_ref(&results), from_ref(&results), ComparisonOptions::default());
    assert_eq!((comparison.totals.faster, comparison.totals.slower), (0, 0));
    assert_eq!((comparison.only_in_a.len(), comparison.only_in_b.len()), (0, 0));
    assert_eq!((comparison.cases.len(), comparison.floors.len()), (CASES, 3));
    assert!(comparison.differences.is_empty());
    for case in comparison.cases.iter().chain(&comparison.floors) {
        assert_eq!(case.ratio.unwrap().ratio, 1.0);
    }
    assert_eq!(comparison.totals.ratio.unwrap().median, 1.0);
}

#[test]
fn mechanisms_that_move_together_are_called_where_a_floor_does_as_they_do_and_noted() {
    let mut random = Random(5);
    let (a, mut b) = (WORLD.run(1.0, &mut random), WORLD.run(1.0, &mut random));
    for record in b.records.iter_mut().filter(|record| !record.floor) {
        record.samples.iter_mut().for_each(|sample| sample.elapsed_ns *= 1.4);
    }
    let comparison = compare(from_ref(&a), from_ref(&b), ComparisonOptions::default());
    // A round trip on one CPU switches, as its floor does. Of the two operations each has only one other in its place, which is too few to
    // blame the host. A stream has the floor of a copy, which drifts by laws of its own.
    let called: Vec<String> =
        [0, 1, 2, 3, 4, 9, 10, 11, 12, 13, 14, 19].iter().map(|row| format!("row-{row}")).collect();
    assert_eq!(slower(&comparison), called);
    assert!(
        comparison.cases[5]
            .reason
            .as_deref()
            .is_some_and(|why| why.contains("the other mechanisms with this workload"))
    );
    assert!(!comparison.cases[5].floors_differ);
    assert!(
        comparison.notes.iter().any(|note| note.contains("more time together")),
        "{:?}",
        comparison.notes
    );
    assert!(comparison.notes.iter().any(|note| note.starts_with("run A was cut off")));
}

#[test]
fn all_sizes_of_one_mechanism_may_change_for_one_reason() {
    let mut random = Random(6);
    let (mut a, mut b) = (WORLD.run(1.0, &mut random), WORLD.run(1.0, &mut random));
    // The first four are round trips: one mechanism in four sizes.
    for results in [&mut a, &mut b] {
        for (nth, record) in results.records[..4].iter_mut().enumerate() {
            record.case.spec = Spec::plain("pipe");
            record.case.size_bytes = Some(Size(1 << nth));
        }
    }
    for record in &mut b.records[..4] {
        record.samples.iter_mut().for_each(|sample| sample.elapsed_ns *= 1.4);
    }
    assert_eq!(slower(&compare(from_ref(&a), from_ref(&b), ComparisonOptions::default())), ["pipe"; 4]);
}

fn slower(comparison: &Comparison) -> Vec<&str> {
    let slower = comparison.cases.iter().filter(|case| case.verdict == ComparisonVerdict::Slower);
    slower.map(|case| case.case.spec.name.as_str()).collect()
}

#[test]
fn hosts_that_differ_are_named() {
    let a = testing::results();
    let mut b = a.clone();
    b.header.host.kernel = Fact::Known("6.2".to_owned());
    b.header.host.governor = Fact::Known("powersave".to_owned());
    b.header.host.queueing = Fact::Known([("lo".to_owned(), "netem".to_owned())].into());
    b.header.host.limits.insert("fs/pipe-max-size".to_owned(), Fact::Known("4096".to_owned()));
    // Of what A does not record it cannot be said that it differs.
    b.header.host.limits.insert("net/core/somaxconn".to_owned(), Fact::Known("8".to_owned()));
    let difference =
        |what: &str, a: &str, b: &str| Difference { what: what.to_owned(), a: a.to_owned(), b: b.to_owned() };
    assert_eq!(
        compare(from_ref(&a), from_ref(&b), ComparisonOptions::default()).differences,
        [
            difference("governor", "unknown", "powersave"),
            difference("kernel", "6.1", "6.2"),
            difference("queueing of interfaces", "unknown", "lo netem"),
            difference("fs/pipe-max-size", "1048576", "4096"),
        ]
    );
}

#[test]
fn a_gate_fails_on_a_slow_down_beyond_its_limit_of_the_mechanism_not_of_the_host() {
    let before = run(20, 1000.0, Some(500.0));
    let gated = |after: &Results, above: f64| {
        gate(&compare(from_ref(&before), from_ref(after), ComparisonOptions::default()), Percent(above))
    };
    let slower = run(20, 1120.0, Some(500.0));
    assert_eq!((gated(&slower, 0.05), gated(&slower, 0.15)), (Gate::Fails, Gate::Passes));
    assert_eq!(gated(&run(20, 880.0, Some(500.0)), 0.05), Gate::Passes, "faster");
    // 30% slower on a host that is 15% slower: the mechanism took 13% more.
    let on_slow_host = run(20, 1300.0, Some(575.0));
    assert_eq!((gated(&on_slow_host, 0.05), gated(&on_slow_host, 0.15)), (Gate::Fails, Gate::Passes));
    assert_eq!((gated(&before, 0.0001), gated(&before, 0.5)), (Gate::Undecided, Gate::Passes));
    // Too few trials for an interval pass nothing.
    assert_eq!(gated(&run(3, 1000.0, Some(500.0)), 0.5), Gate::Undecided);
}

#[test]
fn words_and_json_are_those_of_the_manual() {
    let words = [
        ComparisonVerdict::Faster,
        ComparisonVerdict::Slower,
        ComparisonVerdict::NoDifference,
        ComparisonVerdict::Undecided,
    ];
    assert_eq!(words.map(|verdict| verdict.to_string()), ["faster", "slower", "no difference", "undecided"]);
    assert_eq!(serde_json::to_string(&words).unwrap(), r#"["faster","slower","no-difference","undecided"]"#);
    let before = run(20, 1000.0, Some(500.0));
    let json =
        serde_json::to_value(compare(from_ref(&before), from_ref(&before), ComparisonOptions::default()))
            .unwrap();
    assert_eq!(json["cases"][0]["verdict"], "no-difference");
    assert_eq!(json["cases"][0]["ratio"]["ratio"], 1.0);
    assert_eq!(json["options"]["margin"], 0.05);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn exchanging_the_runs_exchanges_the_verdict(
        times_a in proptest::collection::vec(900.0..1100.0f64, 0..30),
        times_b in proptest::collection::vec(900.0..1400.0f64, 0..30),
        floor_b in 400.0..600.0f64,
    ) {
        let results = |times: &[f64], floor_ns: f64| {
            let samples = |of: &dyn Fn(f64) -> f64| -> Vec<Sample> {
                let samples = times.iter().zip(0..);
                samples.map(|(ns, round)| testing::sample(round, of(*ns), Some(floor_ns))).collect()
            };
            let floor = testing::record(on_cpu(SYSCALL, Workload::Cost), samples(&|_| floor_ns));
            let case = testing::record(on_cpu("pipe", Workload::Latency), samples(&|ns| ns));
            Results { records: vec![case, Record { floor: true, ..floor }], ..testing::results() }
        };
        let (a, b) = (results(&times_a, 500.0), results(&times_b, floor_b));
        let (there, back) = (only_case(&a, &b), only_case(&b, &a));
        let turned = match there.verdict {
            ComparisonVerdict::Faster => ComparisonVerdict::Slower,
            ComparisonVerdict::Slower => ComparisonVerdict::Faster,
            other => other,
        };
        prop_assert_eq!(back.verdict, turned);
        prop_assert_eq!(there.ratio.is_some(), times_a.len().min(times_b.len()) >= FEWEST_TRIALS);
        if let (Some(there), Some(back)) = (there.ratio, back.ratio) {
            prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
            prop_assert!(there.interval.0 <= there.ratio && there.ratio <= there.interval.1);
        }
    }
}

#[test]
fn a_faster_host_does_not_hide_a_slower_mechanism() {
    // The host is 8% faster and the mechanism 8% slower: its time is the same, and its multiple of the floor is not.
    let case = only_case(&run(20, 1000.0, Some(540.0)), &run(20, 1000.0, Some(500.0)));
    assert_eq!(case.verdict, ComparisonVerdict::Undecided, "{case:?}");
    let finds = case.finds.unwrap().0;
    assert!(finds > 0.028 && finds < 0.1, "{finds}");
}

#[test]
fn a_run_that_lacks_some_of_the_others_is_not_held_against_the_rest() {
    let mut random = Random(11);
    // Half of the others take ten times as long, and one of the runs of A lacks these.
    let is_long = |name: &str| matches!(name, "row-1" | "row-2" | "row-3" | "row-10" | "row-11" | "row-12");
    let mut runs = [(); 3].map(|()| WORLD.run(1.0, &mut random));
    for record in runs.iter_mut().flat_map(|run| &mut run.records) {
        let factor = if is_long(&record.case.spec.name) { 10.0 } else { 1.0 };
        record.samples.iter_mut().for_each(|sample| sample.elapsed_ns *= factor);
    }
    runs[1].records.retain(|record| !is_long(&record.case.spec.name));
    let (a, b) = runs.split_at(2);
    let models = chosen_pair::side_models([a, b]);
    let (pairs, ..) = pairing::pair(a, b);
    let cases: Vec<_> = pairs.iter().map(|pair| chosen_pair::ChosenPair::from_pair(pair, &models)).collect();
    let shift = references::shifts_beside_others(&cases, &models)[0].unwrap();
    assert!(shift.log.abs() < 0.1, "{}", shift.log);
}

#[test]
fn several_runs_of_one_side_say_how_much_runs_differ() {
    let runs =
        |times_ns: &[f64]| -> Vec<Results> { times_ns.iter().map(|ns| run(20, *ns, Some(500.0))).collect() };
    let compared = |a: &[f64], b: &[f64]| compare(&runs(a), &runs(b), ComparisonOptions::default());
    let close = compared(&[1000.0, 1004.0, 996.0], &[1030.0, 1034.0, 1027.0]);
    assert_eq!(close.run_deviation.source, RunVarianceSource::Replicates);
    assert!(close.run_deviation.adjusted.0 < 0.009, "{:?}", close.run_deviation);
    assert_eq!(close.cases[0].verdict, ComparisonVerdict::Slower, "{:?}", close.cases[0]);
    assert_eq!((close.cases[0].a.runs, close.cases[0].a.trials), (3, 60));
    let apart = compared(&[1000.0, 1100.0, 950.0], &[1030.0, 1130.0, 980.0]);
    assert!(apart.run_deviation.adjusted.0 > 0.035, "{:?}", apart.run_deviation);
    assert_eq!(apart.cases[0].verdict, ComparisonVerdict::Undecided);
    assert_eq!(compared(&[1000.0], &[1000.0]).run_deviation.source, RunVarianceSource::Assumed);
}

#[test]
fn where_there_are_no_replicates_most_cases_say_how_much_runs_differ() {
    for deviation in [0.008, 0.03] {
        let mut random = Random(13);
        let world = World { case_shift: deviation, effect: 1.3, ..WORLD };
        let found: Vec<f64> = (0..10)
            .map(|_| {
                let (a, b) = (world.run(1.0, &mut random), world.run(world.effect, &mut random));
                let comparison = compare(&[a], &[b], ComparisonOptions::default());
                assert_eq!(comparison.run_deviation.source, RunVarianceSource::Differences);
                comparison.run_deviation.time.0
            })
            .collect();
        let mean = stats::mean(&found);
        assert!(mean > 0.6 * deviation && mean < 1.5 * deviation, "{mean} for {deviation}");
    }
}

#[test]
fn runs_are_compared_at_one_state_of_the_host() {
    // B ran while the host was slow for two thirds of the time; at full speed both take the same.
    let run = |slow_trials: u32| {
        let sample = |nth: u32| {
            let slow = if nth % 3 < slow_trials { 1.4 } else { 1.0 };
            let reading = SpeedReading { before_ns: 7000.0 * slow, after_ns: 7000.0 * slow };
            let speed = SpeedReadings { client: reading, server: None, pair: None };
            let ripple = 1.0 + 0.001 * f64::from(nth * 7 % 5);
            Sample { speed: Some(speed), ..testing::sample(nth, 1000.0 * slow * ripple, None) }
        };
        let record = testing::record(on_cpu("pipe", Workload::Latency), (0..60).map(sample).collect());
        Results { records: vec![record], ..testing::results() }
    };
    let case = only_case(&run(0), &run(2));
    assert_eq!(case.verdict, ComparisonVerdict::NoDifference, "{case:?}");
    let found = case.ratio.unwrap().ratio;
    assert!((found - 1.0).abs() < 0.01, "{found}");
}
