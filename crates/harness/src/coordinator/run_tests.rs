//! Tests of the policy of runs: order, floors, trials that stay alive, stopping, failure, interruption.

use super::fake_trials::{FakeTrials, LONG, SLICE_TIME, case, failure};
use super::run::{
    FinishedCase, GROUP, RunBounds, RunEvent, RunFinish, SLICES_IN_A_ROW, SettledRule, measure,
};
use super::schedule::TrialProgress;
use super::trial_error::TrialError;
use crate::protocol::orders::{Singly, Sizing};
use model::Case;
use model::Workload;
use model::floor::CONTEXT_SWITCH;
use model::floor::floor_of;
use model::plan::Plan;
use model::record::{Outcome, Sample};
use std::time::Duration;

/// What a run came to.
struct Ran {
    finish: RunFinish,
    ended: Vec<FinishedCase>,
    progress: Vec<TrialProgress>,
    first_floors: Vec<Option<f64>>,
    sampled: Vec<(String, Sample)>,
    /// How many samples were reported when each slice was over.
    sampled_by_then: Vec<usize>,
}

impl Ran {
    fn case(&self, name: &str) -> &FinishedCase {
        self.ended.iter().find(|ended| ended.case.spec.name == name).unwrap()
    }

    /// How each case ended, in the order in which they did.
    fn outcomes(&self) -> Vec<(&str, &Outcome)> {
        self.ended.iter().map(|ended| (ended.case.spec.name.as_str(), &ended.outcome)).collect()
    }
}

/// The cases called `names`, and their floor.
fn plan(names: &[&str]) -> Plan {
    let floors = floor_of(&case("a")).unwrap().cases().cloned().collect();
    Plan { cases: names.iter().map(|name| case(name)).collect(), floors, ..Plan::default() }
}

fn bounds<'a>(settled: SettledRule<'a>, rounds: Option<u32>) -> RunBounds<'a> {
    RunBounds {
        settled,
        ends_early: settled,
        slices: &|_, _| 1,
        rounds,
        slice_ns: 1000,
        total: None,
        iterations: None,
    }
}

fn run(plan: &Plan, trials: &FakeTrials<'_>, time: Duration, bounds: RunBounds<'_>) -> Ran {
    let (mut ended, mut progress, mut first_floors) = (Vec::new(), Vec::new(), Vec::new());
    let (mut sampled, mut sampled_by_then) = (Vec::new(), Vec::new());
    let finish = measure(plan, trials, trials.budget(time), bounds, |event| match event {
        RunEvent::Floors(floors) => first_floors = floors.into_iter().map(|(_, ns)| ns).collect(),
        RunEvent::Sample(case, sample) => sampled.push((case.spec.name.clone(), sample.clone())),
        RunEvent::Progress(reached) => {
            progress.push(reached);
            sampled_by_then.push(sampled.len());
        }
        RunEvent::Ended(finished) => ended.push(*finished),
    });
    Ran { finish, ended, progress, first_floors, sampled, sampled_by_then }
}

const NEVER: SettledRule<'static> = &|_, _| false;

fn same(_: usize, _: &str) -> Result<f64, TrialError> {
    Ok(100.0)
}

#[test]
fn each_round_has_floors_before_cases_and_after_them() {
    let trials = FakeTrials::new(&same);
    let ran = run(&plan(&["a"]), &trials, LONG, bounds(NEVER, Some(2)));
    let floor = CONTEXT_SWITCH;
    assert_eq!(trials.order(), format!("{floor} a {floor} {floor} a {floor}"));
    assert_eq!((ran.finish.rounds, ran.finish.interrupted), (2, false));
    assert_eq!(ran.first_floors, [Some(100.0)]);
    assert_eq!(ran.case("a").samples.len(), 2);
    assert!(ran.ended.last().unwrap().floor && ran.case(floor).samples.len() == 4);
}

#[test]
fn trials_are_started_and_ended_between_rounds_and_no_slice_comes_right_after() {
    let trials = FakeTrials::new(&same);
    run(&plan(&["a", "b"]), &trials, LONG, bounds(NEVER, Some(3)));
    // A round has two cases between two slices of their floor, and each trial has one round.
    assert_eq!(*trials.waited_after.borrow(), [0, 4, 8]);
    assert_eq!(trials.started.borrow().len(), 3 * 3);
    let trials = FakeTrials::new(&same);
    run(&plan(&["a", "b"]), &trials, LONG, RunBounds { slices: &|_, _| 1000, ..bounds(NEVER, Some(3)) });
    assert_eq!(*trials.waited_after.borrow(), [0], "trials that stay alive disturb nothing");
}

#[test]
fn every_sample_is_reported_once_when_the_floors_after_it_are_measured() {
    let trials = FakeTrials::new(&same);
    let ran = run(&plan(&["a"]), &trials, LONG, bounds(NEVER, Some(3)));
    let of_a = ran.sampled.iter().filter(|(name, _)| name == "a");
    let rounds: Vec<(u32, u32)> = of_a.map(|(_, sample)| (sample.trial, sample.round)).collect();
    assert_eq!(rounds, [(0, 0), (1, 1), (2, 2)]);
    assert_eq!(ran.sampled.len(), trials.count());
    // When each slice was over: the samples of the rounds before it.
    assert_eq!(ran.sampled_by_then, [0, 0, 0, 3, 3, 3, 6, 6, 6]);
    assert_samples_are_those_of_the_cases(&ran);
}

/// Fails unless each sample that was reported is one of a case that has ended, in its order, with the same floors.
fn assert_samples_are_those_of_the_cases(ran: &Ran) {
    for ended in &ran.ended {
        let reported = ran.sampled.iter().filter(|(name, _)| *name == ended.case.spec.name);
        let reported: Vec<&Sample> = reported.map(|(_, sample)| sample).collect();
        assert_eq!(reported, ended.samples.iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_run_that_is_interrupted_in_the_middle_of_a_group_reports_its_samples_with_the_floors_before_them() {
    // The floor, two cases in some order, and the floor, each round. The floor takes 10 ns, then 40 ns.
    let floors = std::cell::Cell::new(0);
    let answer = |_, name: &str| {
        if name != CONTEXT_SWITCH {
            return Ok(500.0);
        }
        floors.set(floors.get() + 1);
        Ok(if floors.get() == 1 { 10.0 } else { 40.0 })
    };
    let of_cases = |interrupted_after| {
        floors.set(0);
        let trials = FakeTrials::new(&answer).interrupted_after(interrupted_after);
        let ran = run(&plan(&["a", "b"]), &trials, LONG, bounds(NEVER, None));
        assert_eq!(ran.sampled.len(), interrupted_after);
        assert_samples_are_those_of_the_cases(&ran);
        let cases = ran.sampled.into_iter().filter(|(name, _)| name != CONTEXT_SWITCH);
        cases.map(|(_, sample)| sample.floor_ns.unwrap().round()).collect::<Vec<_>>()
    };
    // After the first case of the group; before its last floor; after it; and in the middle of the next group.
    assert_eq!(of_cases(2), [10.0]);
    assert_eq!(of_cases(3), [10.0, 10.0]);
    assert_eq!(of_cases(4), [20.0, 20.0]);
    let mut next = of_cases(6);
    next.sort_by(f64::total_cmp);
    assert_eq!(next, [20.0, 20.0, 40.0]);
}

#[test]
fn every_open_case_has_one_slice_a_round_and_is_measured_in_random_order() {
    let names = ["a", "b", "c", "d", "e"];
    let trials = FakeTrials::new(&same);
    run(&plan(&names), &trials, LONG, bounds(NEVER, Some(30)));
    let order = trials.names.borrow();
    let rounds: Vec<&[String]> = order.chunks(names.len() + 2).collect();
    assert_eq!(rounds.len(), 30);
    for round in &rounds {
        let mut cases = round[1..=names.len()].to_vec();
        cases.sort_unstable();
        assert_eq!(cases, names);
    }
    assert!(rounds.iter().any(|round| round[1..] != rounds[0][1..]), "30 rounds in one order");
}

#[test]
fn trials_live_for_as_many_slices_as_the_rule_says_and_all_at_once() {
    let trials = FakeTrials::new(&same);
    let bounds = RunBounds { slices: &|_, _| 4, ..bounds(NEVER, Some(40)) };
    let ran = run(&plan(&["a", "b", "c"]), &trials, LONG, bounds);
    assert_eq!(trials.most_were_alive.get(), 4);
    for name in ["a", "b", "c"] {
        let samples = &ran.case(name).samples;
        let trials_of: Vec<u32> = samples.iter().map(|sample| sample.trial).collect();
        let count = |trial: u32| trials_of.iter().filter(|of| **of == trial).count();
        // The first trial is shorter at random, and the last one may have been cut off.
        assert!((1..=4).contains(&count(0)), "{trials_of:?}");
        assert!((1..*trials_of.last().unwrap()).all(|trial| count(trial) == 4), "{trials_of:?}");
    }
}

#[test]
fn more_cases_than_may_be_alive_have_several_slices_in_a_row() {
    let names: Vec<String> = (0..12).map(|number| format!("case{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let trials = FakeTrials::new(&same).with_most_alive(10);
    let ran = run(&plan(&names), &trials, 200 * SLICE_TIME, bounds(NEVER, None));
    // A group of cases and their floor at a time.
    assert!(trials.most_were_alive.get() <= GROUP + 1);
    let of_first: Vec<(u32, u32)> =
        ran.case("case0").samples.iter().map(|sample| (sample.round, sample.trial)).collect();
    assert!(of_first.len() >= 4, "{of_first:?}");
    let in_round_0 = of_first.iter().filter(|(round, _)| *round == 0).count();
    assert_eq!(in_round_0, SLICES_IN_A_ROW as usize);
}

#[test]
fn no_more_are_alive_than_there_is_room_for_and_their_floors() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let trials = FakeTrials::new(&same).with_most_alive(2);
    let ran = run(&plan(&names), &trials, 200 * SLICE_TIME, bounds(NEVER, None));
    assert!(trials.most_were_alive.get() <= 2 + 1, "{}", trials.most_were_alive.get());
    assert!(names.iter().all(|name| !ran.case(name).samples.is_empty()));
}

#[test]
fn cases_with_other_floors_are_in_groups_of_their_own() {
    let two = |name: &str| Case { cpus: Some(model::CpuPair { client: 0, server: 1 }), ..case(name) };
    let cases = vec![case("a"), two("b"), case("c"), two("d")];
    let floors =
        cases.iter().filter_map(floor_of).flat_map(|floor| floor.cases().cloned().collect::<Vec<_>>());
    let mut floors: Vec<Case> = floors.collect();
    floors.sort();
    floors.dedup();
    let trials = FakeTrials::new(&same);
    run(&Plan { cases, floors, ..Plan::default() }, &trials, LONG, bounds(NEVER, Some(20)));
    let order = trials.names.borrow();
    let is_case = |name: &&String| ["a", "b", "c", "d"].contains(&name.as_str());
    let cases: Vec<&str> = order.iter().filter(is_case).map(String::as_str).collect();
    for pair in cases.chunks(2) {
        let mut pair = pair.to_vec();
        pair.sort_unstable();
        assert!(pair == ["a", "c"] || pair == ["b", "d"], "{pair:?}");
    }
}

#[test]
fn a_case_is_divided_by_the_geometric_mean_of_the_floors_around_it() {
    // The floor takes 10, 20, 40, 80 … ns from slice to slice.
    let floors_before = std::cell::Cell::new(0);
    let doubling = |_, name: &str| {
        if name != CONTEXT_SWITCH {
            return Ok(500.0);
        }
        floors_before.set(floors_before.get() + 1);
        Ok(10.0 * 2_f64.powi(floors_before.get() - 1))
    };
    let trials = FakeTrials::new(&doubling);
    let ran = run(&plan(&["a"]), &trials, LONG, bounds(NEVER, Some(2)));
    let floors: Vec<Option<f64>> = ran.case("a").samples.iter().map(|sample| sample.floor_ns).collect();
    let expected = [(10.0_f64 * 20.0).sqrt(), (40.0_f64 * 80.0).sqrt()];
    assert!(
        floors.iter().zip(expected).all(|(ns, expected)| (ns.unwrap() - expected).abs() < 1e-9),
        "{floors:?}"
    );
    let started: Vec<u64> = ran.case("a").samples.iter().map(|sample| sample.started_ns).collect();
    assert_eq!(started, [1_000_000_000, 4_000_000_000]);
}

#[test]
fn a_bracket_that_is_not_closed_is_divided_by_the_floor_before() {
    // Time is up just before the floors that would close the only round.
    let trials = FakeTrials::new(&same);
    let ran = run(&plan(&["a"]), &trials, 2 * SLICE_TIME, bounds(NEVER, None));
    assert_eq!(trials.count(), 2);
    assert_eq!(ran.case("a").samples[0].floor_ns, Some(100.0));
}

#[test]
fn the_order_of_phases_alternates_for_each_case_by_itself() {
    let trials = FakeTrials::new(&same);
    run(&plan(&["a", "b"]), &trials, LONG, bounds(NEVER, Some(6)));
    let (names, orders) = (trials.names.borrow(), trials.orders.borrow());
    let orders_of = |name: &str| -> Vec<Singly> {
        let of_name = names.iter().zip(orders.iter()).filter(|(ordered, _)| *ordered == name);
        of_name.map(|(_, orders)| orders.singly).collect()
    };
    let alternating = [Singly::Last, Singly::First].repeat(3);
    assert_eq!((orders_of("a"), orders_of("b")), (alternating.clone(), alternating));
    assert!(orders_of(CONTEXT_SWITCH).iter().all(|singly| *singly == Singly::Omitted));
}

#[test]
fn a_stream_has_its_calls_timed_in_the_first_of_four_slices_of_a_trial_and_after_it() {
    let trials = FakeTrials::new(&same);
    let mut plan = plan(&["a"]);
    plan.cases[0].workload = Workload::Throughput;
    run(&plan, &trials, LONG, RunBounds { slices: &|_, _| 6, ..bounds(NEVER, Some(8)) });
    let (names, orders) = (trials.names.borrow(), trials.orders.borrow());
    let of_stream = names.iter().zip(orders.iter()).filter(|(name, _)| *name == "a");
    let has_calls: Vec<bool> = of_stream
        .map(|(_, orders)| {
            assert_ne!(orders.singly, Singly::First);
            orders.singly == Singly::Last
        })
        .collect();
    assert_eq!(has_calls, [true, false, false, false, true, false, true, false]);
}

#[test]
fn a_case_stops_when_the_rule_says_so_and_the_run_when_all_have() {
    let trials = FakeTrials::new(&|_, name| Ok(if name == "a" { 1.0 } else { 2.0 }));
    let rule = |_: &Case, samples: &[Sample]| {
        samples.len() >= if samples.iter().any(|sample| sample.iteration_ns() == 1.0) { 2 } else { 4 }
    };
    let ran = run(&plan(&["a", "b"]), &trials, LONG, bounds(&rule, None));
    assert_eq!(ran.outcomes()[..2], [("a", &Outcome::Settled), ("b", &Outcome::Settled)]);
    assert_eq!((ran.case("a").samples.len(), ran.case("b").samples.len()), (2, 4));
    assert_eq!(ran.finish.rounds, 4);
}

#[test]
fn a_run_without_cases_goes_on_until_the_floors_that_were_asked_for_are_settled() {
    let plan = plan(&[]);
    let plan = Plan { awaited: plan.floors.clone(), ..plan };
    let trials = FakeTrials::new(&same);
    let ran = run(&plan, &trials, LONG, bounds(&|_, samples| samples.len() >= 3, None));
    assert_eq!(ran.outcomes(), [(CONTEXT_SWITCH, &Outcome::Settled)]);
    assert_eq!(ran.case(CONTEXT_SWITCH).samples.len(), 3);
}

#[test]
fn rounds_and_time_leave_cases_unsettled() {
    let trials = FakeTrials::new(&same);
    let ran = run(&plan(&["a"]), &trials, LONG, bounds(NEVER, Some(3)));
    assert_eq!(ran.outcomes()[0], ("a", &Outcome::Unsettled));
    let trials = FakeTrials::new(&same);
    let ran = run(&plan(&["a"]), &trials, 9 * SLICE_TIME, bounds(NEVER, None));
    assert_eq!(ran.outcomes()[0], ("a", &Outcome::Unsettled));
    assert_eq!((trials.count(), ran.finish.elapsed), (9, 9 * SLICE_TIME));
    let last = ran.progress.last().unwrap();
    assert_eq!((last.share, last.left), (1.0, Duration::ZERO));
}

#[test]
fn a_case_that_fails_ends_at_once_and_the_others_go_on() {
    let fails = |before, name: &str| {
        if name == "b" && before > 3 { Err(failure("it broke")) } else { Ok(100.0) }
    };
    let trials = FakeTrials::new(&fails);
    let ran = run(&plan(&["a", "b"]), &trials, LONG, bounds(NEVER, Some(4)));
    assert!(matches!(ran.outcomes()[0], ("b", Outcome::Failed { error }) if error.contains("it broke")));
    // Two rounds are before it; a floor is before and after the cases of each.
    assert_eq!((ran.case("b").samples.len(), ran.case("a").samples.len()), (1, 4));
    assert_eq!(ran.progress.last().unwrap().done, 1);
}

#[test]
fn a_slice_that_ran_elsewhere_is_counted_and_no_sample_and_its_trial_is_renewed() {
    let strays = |before, name: &str| {
        if name == "a" && before < 4 { Err(TrialError::Elsewhere { cpu: 7 }) } else { Ok(100.0) }
    };
    let trials = FakeTrials::new(&strays);
    // All slices would be of one trial.
    let ran = run(&plan(&["a"]), &trials, LONG, RunBounds { slices: &|_, _| 99, ..bounds(NEVER, Some(6)) });
    let ended = ran.case("a");
    let strayed = ended.elsewhere.slices;
    assert!(strayed > 0 && ended.elsewhere.cpus == [7].into(), "{ended:?}");
    assert_eq!((ended.samples.len() as u32, &ended.outcome), (6 - strayed, &Outcome::Unsettled));
    assert!(ended.samples.iter().all(|sample| sample.iteration_ns() == 100.0 && sample.trial == strayed));
    let started = trials.started.borrow().iter().filter(|name| *name == "a").count() as u32;
    assert_eq!(started, strayed + 1);
    // A floor that strayed divides nothing.
    let floor_strays =
        |_, name: &str| if name == "a" { Ok(100.0) } else { Err(TrialError::Elsewhere { cpu: 7 }) };
    let trials = FakeTrials::new(&floor_strays);
    let ran = run(&plan(&["a"]), &trials, LONG, bounds(NEVER, Some(3)));
    assert!(ran.case("a").samples.iter().all(|sample| sample.floor_ns.is_none()));
}

#[test]
fn a_case_that_fails_in_its_first_slice_has_no_samples() {
    let trials = FakeTrials::new(&|_, name| if name == "a" { Err(failure("no")) } else { Ok(1.0) });
    let ran = run(&plan(&["a"]), &trials, LONG, bounds(NEVER, None));
    assert!(matches!(&ran.case("a").outcome, Outcome::Failed { .. }));
    assert!(ran.case("a").samples.is_empty());
}

#[test]
fn a_floor_that_fails_is_not_tried_again_and_cases_have_no_floor() {
    let trials = FakeTrials::new(&|_, name| if name == "a" { Ok(1.0) } else { Err(failure("no")) });
    let ran = run(&plan(&["a"]), &trials, LONG, bounds(NEVER, Some(3)));
    assert_eq!(trials.order(), format!("{CONTEXT_SWITCH} a a a"));
    assert_eq!(ran.first_floors, [None]);
    assert!(ran.case("a").samples.iter().all(|sample| sample.floor_ns.is_none()));
    assert!(matches!(&ran.case(CONTEXT_SWITCH).outcome, Outcome::Failed { .. }));
}

#[test]
fn an_interruption_at_any_point_keeps_what_was_measured_and_ends_every_case_once() {
    let plan = plan(&["a", "b"]);
    for interrupted_at in 0..=9 {
        // Between two slices, and in the middle of one.
        let between = FakeTrials::new(&same).interrupted_after(interrupted_at);
        let answer = move |before, _: &str| {
            if before == interrupted_at { Err(TrialError::Interrupted) } else { Ok(100.0) }
        };
        let within = FakeTrials::new(&answer).interrupted_after(interrupted_at + 1);
        for (trials, started) in [(between, interrupted_at), (within, interrupted_at + 1)] {
            let ran = run(&plan, &trials, LONG, bounds(NEVER, None));
            assert_eq!(trials.count(), started);
            assert!(ran.finish.interrupted);
            assert_eq!(ran.ended.len(), 3);
            let cases = ran.ended.iter().filter(|ended| !ended.floor);
            assert!(cases.clone().all(|ended| ended.outcome == Outcome::Interrupted));
            let samples: usize = ran.ended.iter().map(|ended| ended.samples.len()).sum();
            assert_eq!(samples, interrupted_at);
        }
    }
}

#[test]
fn a_slice_gets_the_time_of_the_one_before_it_or_a_number_of_iterations() {
    let trials = FakeTrials::new(&same);
    run(&plan(&["a"]), &trials, LONG, bounds(NEVER, Some(2)));
    let sizes = |trials: &FakeTrials<'_>| -> Vec<Sizing> {
        trials.orders.borrow().iter().map(|orders| orders.size).collect()
    };
    let slice = |slice_ns, hint_ns| Sizing::Slice { slice_ns, hint_ns };
    let (first, later) = (None, Some(100.0));
    // A floor that nobody asked for is measured for a part of a slice.
    let expected =
        [slice(250, first), slice(1000, first), slice(250, later), slice(250, later), slice(1000, later)];
    assert_eq!(sizes(&trials)[..5], expected);
    let trials = FakeTrials::new(&same);
    let exact = RunBounds { iterations: Some(7), ..bounds(NEVER, Some(1)) };
    run(&plan(&["a"]), &trials, LONG, exact);
    assert!(sizes(&trials).iter().all(|size| *size == Sizing::Iterations(7)));
}
