//! Verdicts of conclusions, and how often one is called false by chance.

use super::super::evaluated::{self, StudyVerdict};
use super::fixture::*;
use model::Workload;
use model::record::{Record, Results, Setting};
use model::suite::Suite;
use model::testing;
use model::units::Size;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

fn verdict_in(results: &Results, tests: &str) -> StudyVerdict {
    let study = suite(&format!("[[study.conclusion]]\nclaim = 'c'\ntests = [{tests}]"));
    evaluate(&study.study.unwrap(), results).conclusions.remove(0).verdict
}

fn verdict(tests: &str) -> StudyVerdict {
    verdict_in(&results(), tests)
}

#[test]
fn a_verdict_follows_from_where_the_interval_lies() {
    let formula = "of = 'time of tcp at 1K / time of pipe at 1K'";
    assert_eq!(verdict(&format!("{{ {formula}, at_least = 1.9, at_most = 2.1 }}")), StudyVerdict::Holds);
    assert_eq!(verdict(&format!("{{ {formula}, at_most = 1.9 }}")), StudyVerdict::DoesNotHold);
    assert_eq!(verdict(&format!("{{ {formula}, at_least = 2.1 }}")), StudyVerdict::DoesNotHold);
    // An interval that straddles the border.
    assert_eq!(
        verdict("{ of = 'time of pipe at 1K', at_least = '104ns' }"),
        StudyVerdict::NotTestedLongEnough
    );
    // One test that holds and one that does not; one that is not measured.
    let holds = format!("{{ {formula}, at_least = 1 }}");
    let not = format!("{{ {formula}, at_most = 1 }}");
    let lost = "{ of = 'time of mq', at_least = '1ns' }";
    assert_eq!(verdict(&format!("{holds}, {not}, {lost}")), StudyVerdict::DoesNotHold);
    assert_eq!(
        verdict(&format!("{holds}, {lost}")),
        StudyVerdict::CannotBeMeasured("mq latency 1K: no mq here".to_owned())
    );
}

#[test]
fn a_case_whose_buffers_were_clamped_tests_nothing() {
    let clamp = |results: &mut Results, size: u64| {
        let is = |record: &&mut Record| {
            record.case.spec.name == "pipe" && record.case.size_bytes == Some(Size(size))
        };
        let setting = |clamped| Setting {
            name: "SO_SNDBUF".to_owned(),
            asked: Some("1M".to_owned()),
            got: "425984".to_owned(),
            clamped,
            usual: None,
        };
        results.records.iter_mut().find(is).unwrap().settings = vec![setting(false), setting(true)];
    };
    let mut results = results();
    clamp(&mut results, 4096);
    // A buffer that the kernel made larger is as good.
    let small = results.records.iter_mut().find(|record| record.case.size_bytes == Some(Size(1024))).unwrap();
    let got = "4608".to_owned();
    small.settings = vec![Setting {
        name: "SO_SNDBUF".to_owned(),
        asked: Some("1K".to_owned()),
        got,
        clamped: true,
        usual: None,
    }];
    let ratio = "of = 'time of tcp / time of pipe'";
    let verdict = |test: &str| verdict_in(&results, test);
    assert_eq!(verdict(&format!("{{ {ratio}, sizes = '1K,2K', at_least = 1 }}")), StudyVerdict::Holds);
    let peak = "{ of = 'peak time of pipe', at_least = '1K' }".to_owned();
    for test in [format!("{{ {ratio}, at_least = 1 }}"), peak] {
        let StudyVerdict::CannotBeMeasured(why) = verdict(&test) else { panic!("{test}") };
        assert!(why.starts_with("pipe latency 4K same-core: the kernel gave less"), "{why}");
    }
    // What other sizes refute stays refuted.
    assert_eq!(verdict(&format!("{{ {ratio}, at_most = 1 }}")), StudyVerdict::DoesNotHold);
}

#[test]
fn slices_of_one_trial_are_no_evidence_of_many() {
    let mut results = results();
    let test = "{ of = 'time of tcp at 1K / time of pipe at 1K', at_most = 1 }";
    assert_eq!(verdict_in(&results, test), StudyVerdict::DoesNotHold);
    // The same rounds, but all of one trial of each case.
    results.records.iter_mut().flat_map(|record| &mut record.samples).for_each(|sample| sample.trial = 0);
    assert_eq!(verdict_in(&results, test), StudyVerdict::NotTestedLongEnough);
}

#[test]
fn what_is_not_tested_long_enough_says_how_long_a_run_would_decide_it() {
    let longer = |results: &Results, tests: &str| {
        let study = suite(&format!("[[study.conclusion]]\nclaim = 'c'\ntests = [{tests}]"));
        evaluate(&study.study.unwrap(), results).conclusions.remove(0).longer
    };
    let mut results = results();
    results.header.settings.time_ns = 60_000_000_000;
    let straddles = longer(&results, "{ of = 'time of pipe at 1K', at_least = '103.9ns' }").unwrap();
    assert!(straddles.starts_with("a run with --time ") && straddles.ends_with("decide it"), "{straddles}");
    assert_eq!(longer(&results, "{ of = 'time of pipe at 1K', at_least = '1ns' }"), None);
    // Ten rounds of one trial, of which it takes six.
    results.records.iter_mut().flat_map(|record| &mut record.samples).for_each(|sample| sample.trial = 0);
    let few = longer(&results, "{ of = 'time of tcp at 1K / time of pipe at 1K', at_most = 1 }").unwrap();
    assert_eq!(few, "a run with --time 9m would probably decide it");
}

#[test]
fn what_had_no_trial_lacks_time_and_what_was_not_asked_for_does_not() {
    let mut results = results();
    results.header.settings.time_ns = 60_000_000_000;
    let concluded = |results: &Results, tests: &str| {
        let study = suite(&format!("[[study.conclusion]]\nclaim = 'c'\ntests = [{tests}]"));
        evaluate(&study.study.unwrap(), results).conclusions.remove(0)
    };
    // A minute for 7 rounds of a trial of each of 7 cases, of which it takes 6; half as much to spare.
    let times = "{ of = 'time of tcp / time of pipe', at_least = 1 }";
    let last = results.records.iter_mut().find(|record| record.case.spec.name == "tcp").unwrap();
    last.samples.clear();
    let untried = concluded(&results, times);
    assert_eq!(untried.verdict, StudyVerdict::NotTestedLongEnough);
    let evidence = &untried.tests[0].evidence;
    assert!(
        evidence.contains("not measured: tcp latency 1K same-core: no trial of it before the run ended"),
        "{evidence}"
    );
    assert_eq!(untried.longer.as_deref(), Some("a run with --time 2m would probably decide it"));
    // More time does not help where something else is missing, and what is refuted stays so.
    let stream = "{ of = 'time of stream', at_least = '1ns' }";
    let why = "pipe throughput 1K: not asked for in this run".to_owned();
    let not_asked = concluded(&results, &format!("{times}, {stream}"));
    assert_eq!((not_asked.verdict, not_asked.longer), (StudyVerdict::NotAskedFor(why), None));
    let lost = "{ of = 'time of mq', at_least = '1ns' }";
    let verdict = concluded(&results, &format!("{times}, {stream}, {lost}")).verdict;
    assert_eq!(verdict, StudyVerdict::CannotBeMeasured("mq latency 1K: no mq here".to_owned()));
    let refuted = concluded(&results, &format!("{}, {lost}", times.replace("at_least", "at_most")));
    assert_eq!(refuted.verdict, StudyVerdict::DoesNotHold);
    // Of trials with probes nobody knows how many were to come.
    let probed = "{ of = 'counter.cycles of pipe at 1K', at_least = 1 }";
    let verdict = |results: &Results| concluded(results, probed).verdict;
    assert!(matches!(verdict(&results), StudyVerdict::NotAskedFor(_)), "{:?}", verdict(&results));
    results.header.settings.observe_ns = 6_000_000_000;
    let probed = concluded(&results, probed);
    assert_eq!((probed.verdict, probed.longer), (StudyVerdict::NotTestedLongEnough, None));
}

#[test]
fn two_rounds_decide_what_is_far_from_its_bound_and_one_decides_nothing() {
    let formula = "of = 'time of tcp at 1K / time of pipe at 1K'";
    let with = |rounds| {
        let mut results = results();
        results.records.iter_mut().for_each(|record| record.samples.truncate(rounds));
        results
    };
    let (one, two) = (with(1), with(2));
    assert_eq!(verdict_in(&two, &format!("{{ {formula}, at_least = 1 }}")), StudyVerdict::Holds);
    assert_eq!(verdict_in(&two, &format!("{{ {formula}, at_most = 1 }}")), StudyVerdict::DoesNotHold);
    assert_eq!(
        verdict_in(&two, &format!("{{ {formula}, at_least = 1.99 }}")),
        StudyVerdict::NotTestedLongEnough
    );
    assert_eq!(
        verdict_in(&one, &format!("{{ {formula}, at_least = 1 }}")),
        StudyVerdict::NotTestedLongEnough
    );
}

/// Fourteen sizes of a pipe, whose ratio to `tcp` over `rounds` rounds is 1 in truth and scatters by chance.
fn scattered(rounds: u32, runner: &mut TestRunner) -> Results {
    let size = |nth: u32| Some(1 << nth);
    let mut results = testing::results();
    for nth in 0..14 {
        let factors =
            proptest::collection::vec(0.0..1.0f64, rounds as usize).new_tree(runner).unwrap().current();
        let pipe = record(case("pipe", Workload::Latency, size(nth)), rounds, |_| 1000.0);
        let tcp = record(case("tcp", Workload::Latency, size(nth)), rounds, |round| {
            1000.0 * (factors[round as usize] - 0.5).exp()
        });
        results.records.extend([pipe, tcp]);
    }
    results
}

/// What becomes of the claim that `tcp` takes `bounds` times as long as a pipe, at each of fourteen sizes.
fn concluded(results: &Results, bounds: &str) -> evaluated::EvaluatedConclusion {
    let text = SUITE.replace("1K,2K,4K", "1..8K")
        + &format!(
            "[[study.conclusion]]\nclaim = 'c'\ntests = [{{ of = 'time of tcp / time of pipe', {bounds} }}]"
        );
    let suite = Suite::parse(&text, CARDS).unwrap_or_else(|invalid| panic!("{invalid}"));
    evaluate(&suite.study.unwrap(), results).conclusions.remove(0)
}

#[test]
fn a_claim_that_just_holds_at_many_sizes_is_seldom_called_false() {
    const RUNS: usize = 200;
    let mut runner = TestRunner::deterministic();
    let is_false = |runner: &mut TestRunner| {
        concluded(&scattered(20, runner), "at_most = 1").verdict == StudyVerdict::DoesNotHold
    };
    let called_false = (0..RUNS).filter(|_| is_false(&mut runner)).count();
    assert!(called_false * 20 <= RUNS, "{called_false} of {RUNS}");
}

#[test]
fn what_refutes_at_one_of_many_sizes_allows_for_their_number() {
    let mut results = scattered(12, &mut TestRunner::deterministic());
    let is_last =
        |record: &&mut Record| record.case.spec.name == "tcp" && record.case.size_bytes == Some(Size(8192));
    let last = |results: &mut Results, of: &dyn Fn(usize) -> f64| {
        let record = results.records.iter_mut().find(is_last).unwrap();
        record
            .samples
            .iter_mut()
            .enumerate()
            .for_each(|(nth, sample)| sample.elapsed_ns = of(nth) * sample.iterations as f64);
    };
    // Just beyond the bound at 95%, not at what fourteen numbers want.
    last(&mut results, &|nth| if nth == 0 { 1000.0 } else { 3000.0 });
    let shown = concluded(&results, "at_most = 2").tests[0].numbers.last().unwrap().number;
    let conclusion = concluded(&results, &format!("at_most = {:.6}", 0.99 * shown.interval.unwrap().0));
    assert_eq!(conclusion.verdict, StudyVerdict::NotTestedLongEnough);
    let doubt = "too near a bound to judge one of 14 numbers";
    assert!(conclusion.tests[0].evidence.contains(doubt), "{:?}", conclusion.tests);
    last(&mut results, &|_| 3000.0);
    let conclusion = concluded(&results, "at_most = 2");
    assert_eq!(conclusion.verdict, StudyVerdict::DoesNotHold);
    assert!(conclusion.tests[0].evidence.contains("; refuted at 8K; wanted"), "{:?}", conclusion.tests);
    let only = "time of tcp at 8K / time of pipe at 8K', at_least = 2, at_most = 2 }";
    let text = SUITE.replace("1K,2K,4K", "1..8K")
        + &format!("[[study.conclusion]]\nclaim = 'c'\ntests = [{{ name = 'n', of = '{only}]");
    let alone = evaluate(&Suite::parse(&text, CARDS).unwrap().study.unwrap(), &results).conclusions.remove(0);
    let evidence = &alone.tests[0].evidence;
    assert!(evidence.starts_with("n: 3.0") && evidence.ends_with("; wanted 2"), "{evidence}");
    // What holds at every size needs no allowance.
    assert_eq!(concluded(&results, "at_most = 4").verdict, StudyVerdict::Holds);
    results.records.iter_mut().for_each(|record| record.samples.truncate(1));
    let conclusion = concluded(&results, "at_most = 2");
    assert_eq!(conclusion.verdict, StudyVerdict::NotTestedLongEnough);
    let few = "too few trials to judge one of 14 numbers: it takes 6 of each case";
    assert!(conclusion.tests[0].evidence.contains(few), "{:?}", conclusion.tests);
}

#[test]
fn a_test_over_sizes_holds_at_each() {
    let formula = "of = 'time of pipe / time of pipe at 1K'";
    assert_eq!(verdict(&format!("{{ {formula}, at_least = 0.9, at_most = 2.4 }}")), StudyVerdict::Holds);
    assert_eq!(verdict(&format!("{{ {formula}, at_most = 1.5 }}")), StudyVerdict::DoesNotHold);
    assert_eq!(verdict(&format!("{{ {formula}, sizes = '1K,2K', at_most = 1.5 }}")), StudyVerdict::Holds);
    let drawn = evaluated(&format!(
        "[[study.conclusion]]\nclaim = 'c'\ntests = [{{ name = 'growth', {formula}, at_most = 1.5, published = 3 }}]"
    ));
    let test = &drawn.conclusions[0].tests[0];
    let numbers: Vec<_> =
        test.numbers.iter().map(|tested| (tested.size_bytes, tested.number.median)).collect();
    for ((size, ratio), (found_size, found)) in
        [(1024, 1.0), (2048, 1.05), (4096, 2.0)].into_iter().zip(numbers)
    {
        assert!(found_size == Some(Size(size)) && (found / ratio - 1.0).abs() < 0.01, "{size}: {found}");
    }
    assert_eq!((test.at_least, test.at_most, test.published), (None, Some(1.5), Some(3.0)));
    let evidence = &test.evidence;
    assert!(evidence.starts_with("growth: from 1.00 (1.00 to 1.00) at 1K to 2.00 ("), "{evidence}");
    let end = " at 4K, 3 sizes; refuted at 4K; wanted at most 1.5, published 3";
    assert!(evidence.ends_with(end), "{evidence}");
}
