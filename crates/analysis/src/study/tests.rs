//! Studies over results made by hand, whose ratios are known exactly.

use super::evaluated::{self, EvaluatedStudy, StudyVerdict};
use super::*;
use model::card::{Card, CardKind};
use model::histogram::Histogram;
use model::observation::profile::ProfileRecord;
use model::observation::subsystem::Subsystem;
use model::observation::{
    Counter, EndpointEvent, EndpointObservation, EventKind, Observation, Probe, SampledStack, StackFrame,
};
use model::record::{
    CallCounts, Dropped, Fact, Outcome, Record, Results, Sample, Setting, TimedCalls, Usage,
};
use model::suite::Suite;
use model::testing;
use model::testing::card;
use model::topology::CpuPair;
use model::units::{Size, Unit};
use model::{Case, Endpoints, Placement};
use model::{Pace, Peers, Spec, Workload};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

const CARDS: &[Card] = &[
    card("pipe", CardKind::Mechanism, &[Workload::Latency, Workload::Throughput], true),
    card("tcp", CardKind::Mechanism, &[Workload::Latency, Workload::Throughput], true),
    card("mq", CardKind::Mechanism, &[Workload::Latency], true),
    card("getpid", CardKind::Operation, &[Workload::Cost], false),
];

const SUITE: &str = r#"name = "s"
summary = "small"
precision = "2%"
time = "1m"
quick = "5s"
observe = "6s"

[[block]]
mechanisms = ["pipe", "tcp"]
workloads = ["latency", "throughput"]
sizes = "1K,2K,4K"
placements = ["same-core"]

[[block]]
mechanisms = ["mq", "getpid"]
workloads = ["latency", "cost"]
sizes = "1K"
placements = ["same-core", "same-llc|unpinned"]

[study]
title = "T"
source = "S"
[study.cases]
pipe = "pipe latency"
tcp = "tcp latency"
mq = "mq latency same-core"
getpid = "getpid"
stream = "pipe throughput"
"#;

fn suite(more: &str) -> Suite {
    Suite::parse(&format!("{SUITE}{more}"), CARDS).unwrap_or_else(|invalid| panic!("{invalid}"))
}

/// What is said of the suite with `more`, and what of its text is marked, by line, column and length.
fn refused(more: &str) -> (String, String) {
    let text = format!("{SUITE}{more}");
    let said = Suite::parse(&text, CARDS).unwrap_err().problem;
    let place = said.strip_prefix("the suite is not valid at line ").unwrap();
    let (line, rest) = place.split_once(", column ").unwrap();
    let column: usize = rest.lines().next().unwrap().parse().unwrap();
    let line = text.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap();
    let marked = line.chars().skip(column - 1).take(said.matches('^').count()).collect();
    (said, marked)
}

fn case(name: &str, workload: Workload, size: Option<u64>) -> Case {
    Case {
        workload,
        size_bytes: size.map(Size),
        placement: Placement::SameCore,
        cpus: Some(CpuPair { client: 0, server: 0 }),
        endpoints: Endpoints::Processes,
        pace: Pace::BackToBack,
        peers: Peers::Pair,
        spec: Spec::plain(name),
    }
}

/// A record whose trial in round r takes `iteration_ns(r)`.
fn record(case: Case, rounds: u32, iteration_ns: impl Fn(u32) -> f64) -> Record {
    let samples: Vec<Sample> =
        (0..rounds).map(|round| testing::sample(round, iteration_ns(round), Some(50.0))).collect();
    testing::record(case, samples)
}

/// A host that wanders: in round r everything takes so many times as long.
fn drift(round: u32) -> f64 {
    1.0 + f64::from(round * 7 % 10)
}

/// Over rounds that drift tenfold, tcp takes exactly twice as long as a pipe; a pipe twice as long for 4K as for 1K.
fn results() -> Results {
    let latency = Workload::Latency;
    let sized = |name: &str, ns: f64| {
        [(1024, 1.0), (2048, 1.05), (4096, 2.0)].map(|(size, factor)| {
            record(case(name, latency, Some(size)), 10, move |round| ns * factor * drift(round))
        })
    };
    let mut results = testing::results();
    results.records.extend(sized("pipe", 100.0));
    results.records.extend(sized("tcp", 200.0));
    results.records.push(record(case("getpid", Workload::Cost, None), 10, |_| 50.0));
    results
        .header
        .plan
        .dropped
        .push(Dropped { case: "mq latency".to_owned(), reason: "no mq here".to_owned() });
    results
}

fn evaluated(more: &str) -> EvaluatedStudy {
    evaluate(&suite(more).study.unwrap(), &results())
}

fn value(measure: &str) -> evaluated::EvaluatedCell {
    let table = format!(
        "[[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['c']\nrows = [{{ name = 'r', cells = ['{measure}'] }}]"
    );
    evaluated(&table).tables[0].rows[0].cells[0].clone()
}

fn number(measure: &str) -> (f64, Option<(f64, f64)>) {
    match value(measure) {
        evaluated::EvaluatedCell::Value(estimate, _) => (estimate.median, estimate.interval),
        other => panic!("{measure}: {other:?}"),
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

#[test]
fn a_ratio_is_taken_within_rounds_so_that_drift_cancels() {
    let (median, interval) = number("time of tcp at 1K / time of pipe at 1K");
    let (low, high) = interval.unwrap();
    assert!(close(median, 2.0) && close(low, 2.0) && close(high, 2.0), "{median} {low} {high}");
    // What is no ratio has all of the drift in its interval.
    let (_, interval) = number("time of pipe at 1K");
    let (low, high) = interval.unwrap();
    assert!(low < 400.0 && high > 700.0, "{low} {high}");
}

#[test]
fn constants_and_sizes_scale() {
    assert!(close(number("time of getpid * 2").0, 100.0));
    assert!(close(number("1s / time of getpid").0, 2e7));
    let (median, interval) = number("time of getpid - time of getpid / 2");
    assert!(close(median, 25.0) && interval.is_some());
    assert!(close(number("time of getpid * (16M / size of pipe at 4K)").0, 50.0 * 4096.0));
}

#[test]
fn flat_and_peak_are_sizes() {
    assert_eq!(number("flat 10% time of pipe"), (2048.0, Some((2048.0, 2048.0))));
    assert_eq!(number("flat 1% time of pipe"), (1024.0, Some((1024.0, 1024.0))));
    assert_eq!(number("flat 100% time of pipe"), (4096.0, Some((4096.0, 4096.0))));
    assert_eq!(number("peak time of pipe"), (1024.0, Some((1024.0, 1024.0))));
}

#[test]
fn what_was_not_measured_says_why() {
    let why = |measure: &str| match value(measure) {
        evaluated::EvaluatedCell::Missing(why) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why("time of mq"), "mq latency 1K: no mq here");
    assert_eq!(why("time of stream at 2K"), "pipe throughput 2K: not asked for in this run");
    assert_eq!(why("p99 of pipe at 1K"), "pipe latency 1K same-core: it has no p99");
}

#[test]
fn a_case_that_failed_says_so() {
    let mut results = results();
    results.records[0].outcome = Outcome::Failed { error: "pipe: too many files".to_owned() };
    let study = suite(
        "[[study.conclusion]]\nclaim = 'c'\ntests = [{ of = 'time of pipe at 1K / time of getpid', at_least = 1 }]",
    );
    let drawn = evaluate(&study.study.unwrap(), &results);
    let StudyVerdict::NotMeasured(why) = &drawn.conclusions[0].verdict else { panic!("{drawn:?}") };
    assert_eq!(why, "pipe latency 1K same-core: it failed: pipe: too many files");
}

fn verdict_in(results: &Results, tests: &str) -> StudyVerdict {
    let study = suite(&format!("[[study.conclusion]]\nclaim = 'c'\ntests = [{tests}]"));
    evaluate(&study.study.unwrap(), results).conclusions.remove(0).verdict
}

fn verdict(tests: &str) -> StudyVerdict {
    verdict_in(&results(), tests)
}

#[test]
fn a_verdict_follows_from_where_the_interval_lies() {
    let of = "of = 'time of tcp at 1K / time of pipe at 1K'";
    assert_eq!(verdict(&format!("{{ {of}, at_least = 1.9, at_most = 2.1 }}")), StudyVerdict::Holds);
    assert_eq!(verdict(&format!("{{ {of}, at_most = 1.9 }}")), StudyVerdict::DoesNotHold);
    assert_eq!(verdict(&format!("{{ {of}, at_least = 2.1 }}")), StudyVerdict::DoesNotHold);
    // An interval that straddles the border.
    assert_eq!(verdict("{ of = 'time of pipe at 1K', at_least = '500ns' }"), StudyVerdict::Undecided);
    // One test that holds and one that does not; one that is not measured.
    let holds = format!("{{ {of}, at_least = 1 }}");
    let not = format!("{{ {of}, at_most = 1 }}");
    let lost = "{ of = 'time of mq', at_least = '1ns' }";
    assert_eq!(verdict(&format!("{holds}, {not}, {lost}")), StudyVerdict::DoesNotHold);
    assert_eq!(
        verdict(&format!("{holds}, {lost}")),
        StudyVerdict::NotMeasured("mq latency 1K: no mq here".to_owned())
    );
}

#[test]
fn too_few_trials_decide_nothing() {
    let mut results = results();
    results.records.iter_mut().for_each(|record| record.samples.truncate(5));
    let test = "{ of = 'time of tcp at 1K / time of pipe at 1K', at_least = 1 }";
    assert_eq!(verdict_in(&results, test), StudyVerdict::Undecided);
    // Rounds that are not shared leave the interval that each allows.
    let mut results = self::results();
    for record in results.records.iter_mut().filter(|record| record.case.spec.name == "tcp") {
        record.samples.iter_mut().for_each(|sample| sample.round += 100);
    }
    assert_eq!(verdict_in(&results, test), StudyVerdict::Undecided);
    let wide = "{ of = 'time of tcp at 1K / time of pipe at 1K', at_least = 0.01 }";
    assert_eq!(verdict_in(&results, wide), StudyVerdict::Holds);
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
    // Eleven of twelve trials above the bound: beyond at 95%, not at what fourteen numbers want.
    last(&mut results, &|nth| if nth == 0 { 1000.0 } else { 3000.0 });
    let conclusion = concluded(&results, "at_most = 2");
    assert_eq!(conclusion.verdict, StudyVerdict::Undecided);
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
    assert_eq!(alone.tests[0].evidence, "n: 3.00 (3.00 to 3.00); wanted 2");
    // Eight trials have a 95% interval, but none for fourteen numbers.
    results.records.iter_mut().for_each(|record| record.samples.truncate(8));
    let conclusion = concluded(&results, "at_most = 2");
    assert_eq!(conclusion.verdict, StudyVerdict::Undecided);
    let few = "too few trials to judge one of 14 numbers: it takes 10 of each case";
    assert!(conclusion.tests[0].evidence.contains(few), "{:?}", conclusion.tests);
    // What holds at every size needs no allowance.
    assert_eq!(concluded(&results, "at_most = 4").verdict, StudyVerdict::Holds);
}

#[test]
fn a_test_over_sizes_holds_at_each() {
    let of = "of = 'time of pipe / time of pipe at 1K'";
    assert_eq!(verdict(&format!("{{ {of}, at_least = 1, at_most = 2.1 }}")), StudyVerdict::Holds);
    assert_eq!(verdict(&format!("{{ {of}, at_most = 1.5 }}")), StudyVerdict::DoesNotHold);
    assert_eq!(verdict(&format!("{{ {of}, sizes = '1K,2K', at_most = 1.5 }}")), StudyVerdict::Holds);
    let drawn = evaluated(&format!(
        "[[study.conclusion]]\nclaim = 'c'\ntests = [{{ name = 'growth', {of}, at_most = 1.5, published = 3 }}]"
    ));
    let test = &drawn.conclusions[0].tests[0];
    let numbers: Vec<_> =
        test.numbers.iter().map(|tested| (tested.size_bytes, tested.number.median)).collect();
    let sized = |size, ratio| (Some(Size(size)), ratio);
    assert_eq!(numbers, [sized(1024, 1.0), sized(2048, 1.05), sized(4096, 2.0)]);
    assert_eq!((test.at_least, test.at_most, test.published), (None, Some(1.5), Some(3.0)));
    assert_eq!(
        test.evidence,
        "growth: from 1.00 (1.00 to 1.00) at 1K to 2.00 (2.00 to 2.00) at 4K, 3 sizes; refuted at 4K; wanted at most 1.5, published 3"
    );
}

#[test]
fn user_and_system_time_are_of_all_trials_together() {
    let mut results = results();
    for record in &mut results.records {
        let factor = if record.case.spec.name == "tcp" { 3 } else { 1 };
        for sample in &mut record.samples {
            // The tick fell into every other trial.
            let system_ns = if sample.round % 2 == 0 { 8_000_000 * factor } else { 0 };
            sample.client = Usage { system_ns, ..Usage::default() };
        }
    }
    let study = suite(
        "[[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['c']\nrows = [\n\
         { name = 'a', cells = ['system of pipe at 1K'] },\n\
         { name = 'b', cells = ['system of tcp at 1K / system of pipe at 1K'] }]",
    );
    let drawn = evaluate(&study.study.unwrap(), &results);
    let values: Vec<_> = drawn.tables[0].rows.iter().map(|row| row.cells[0].clone()).collect();
    let [
        evaluated::EvaluatedCell::Value(time, Unit::Ns),
        evaluated::EvaluatedCell::Value(ratio, Unit::Number),
    ] = &values[..]
    else {
        panic!("{values:?}")
    };
    assert!(close(time.median, 4000.0), "{time:?}");
    let (low, high) = time.interval.unwrap();
    assert!(low > 500.0 && high < 8000.0, "{time:?}");
    assert!(close(ratio.median, 3.0), "{ratio:?}");
}

#[test]
fn the_best_is_named_with_what_cannot_be_told_from_it() {
    let cell = |candidates: &str| {
        let table = format!(
            "[[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['c']\nrows = [{{ name = 'r', cells = [{{ least = [{candidates}] }}] }}]"
        );
        evaluated(&table).tables[0].rows[0].cells[0].clone()
    };
    let (pipe, tcp) =
        ("{ name = 'P', of = 'time of pipe at 1K' }", "{ name = 'T', of = 'time of tcp at 1K' }");
    let (again, mq) = ("{ name = 'A', of = 'time of pipe at 1K' }", "{ name = 'Q', of = 'time of mq' }");
    assert_eq!(cell(&format!("{tcp}, {pipe}")), evaluated::EvaluatedCell::Words("P (550 ns)".to_owned()));
    assert_eq!(
        cell(&format!("{tcp}, {pipe}, {again}, {mq}")),
        evaluated::EvaluatedCell::Words("P (550 ns); not told from it: A; not measured: Q".to_owned())
    );
}

#[test]
fn a_line_has_a_point_a_size_and_published_ones_stand_beside() {
    let drawn = evaluated(
        "[[study.figure]]\nname = 'f'\ntitle = 't'\ny = 'y'\nscale = 'log'\nseries = [\n\
         { name = 'pipe', of = 'time of pipe / 2' },\n\
         { name = 'old', published = [['1K', '3us'], ['4K', '4us']] },\n\
         { name = 'stream', of = 'time of stream' }]\n\
         [[study.figure]]\nname = 'g'\ntitle = 't'\nabsent = 'needs a second host'",
    );
    let figure = &drawn.figures[0];
    assert!(figure.x.logarithmic && !figure.y.logarithmic && figure.y.unit == Unit::Ns);
    let [pipe, old] = &figure.series[..] else { panic!("{figure:?}") };
    assert_eq!(pipe.points.iter().map(|point| point.x).collect::<Vec<_>>(), [1024.0, 2048.0, 4096.0]);
    assert!(!pipe.published && old.published && old.points[1].y.median == 4000.0);
    assert!(figure.missing.iter().any(|why| why.contains("not asked for")), "{figure:?}");
    assert_eq!(drawn.figures[1].missing, ["needs a second host"]);
}

#[test]
fn a_setting_is_of_the_size_that_is_named() {
    let mut results = results();
    for (nth, record) in results.records.iter_mut().enumerate() {
        let got = format!("{nth}");
        record.settings = vec![Setting { name: "B".to_owned(), asked: None, got, clamped: false }];
    }
    let more = "big = 'pipe latency 4K'\n[[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['c', 'd']\n\
                rows = [{ name = 'r', cells = [{ setting = { name = 'B', of = 'big' } }, { setting = { name = 'C', of = 'big' } }] }]";
    let drawn = evaluate(&suite(more).study.unwrap(), &results);
    assert_eq!(
        drawn.tables[0].rows[0].cells,
        [
            evaluated::EvaluatedCell::Words("2".to_owned()),
            evaluated::EvaluatedCell::Missing("pipe latency 4K same-core has no setting C".to_owned())
        ]
    );
}

#[test]
fn calls_are_told_apart_by_what_they_returned() {
    let mut results = results();
    let calls = |returned: Vec<(u64, u64)>| CallCounts {
        count: returned.iter().map(|(_, calls)| calls).sum(),
        time: Histogram::new().encode(),
        returned_bytes: returned,
    };
    let mut streaming = record(case("pipe", Workload::Throughput, Some(4096)), 8, |_| 100.0);
    for sample in &mut streaming.samples {
        sample.calls = Some(TimedCalls {
            messages: 100,
            send: calls(vec![(4096, 100)]),
            receive: calls(vec![(1024, 100), (3072, 100)]),
        });
    }
    results.records.push(streaming);
    let study = suite(
        "[[study.figure]]\nname = 'f'\ntitle = 't'\nx = 'returned'\nseries = [{ name = 'reads', of = 'receive.calls of stream at 4K * 8' }]\n\
         [[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['a', 'b']\nrows = [{ name = 'r', cells = ['receive.bytes of stream at 4K', 'send.calls of stream at 4K'] }]",
    );
    let drawn = evaluate(&study.study.unwrap(), &results);
    let points: Vec<_> = drawn.figures[0].series[0].points.iter().map(|p| (p.x, p.y.median)).collect();
    assert_eq!(points, [(1024.0, 8.0), (3072.0, 8.0)]);
    let medians: Vec<f64> = drawn.tables[0].rows[0]
        .cells
        .iter()
        .map(|cell| match cell {
            evaluated::EvaluatedCell::Value(estimate, _) => estimate.median,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(medians, [2048.0, 1.0]);
}

#[test]
fn a_suite_that_cannot_be_drawn_is_refused_with_line_and_column() {
    let table = |cells: &str| {
        format!(
            "[[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['c']\nrows = [{{ name = 'r', cells = {cells} }}]"
        )
    };
    let test = |test: &str| format!("[[study.conclusion]]\nclaim = 'c'\ntests = [{{ {test} }}]");
    let figure = |series: &str| {
        format!("[[study.figure]]\nname = 'n'\ntitle = 't'\nseries = [{{ name = 's', {series} }}]")
    };
    for (more, marked, says) in [
        ("new = 'pip latency'".to_owned(), "'pip latency'", "unknown mechanism or operation 'pip'"),
        ("new = 'pipe cost'".to_owned(), "'pipe cost'", "no [[block]] of the suite measures 'pipe cost'"),
        (
            "new = 'pipe'".to_owned(),
            "'pipe'",
            "'pipe' names several cases: pipe latency same-core; pipe throughput same-core",
        ),
        ("new = 'pipe latency 3K'".to_owned(), "'pipe latency 3K'", "measures pipe latency same-core at 3K"),
        ("new = 'pipe latency cost'".to_owned(), "'pipe latency cost'", "the second of its kind"),
        ("New = 'getpid'".to_owned(), "'getpid'", "'New' is not a name"),
        (table("[]"), "[]", "the row has 0 cells and its table 1 columns"),
        (table("['time of pip at 1K']"), "'time of pip at 1K'", "unknown case of the study 'pip'"),
        (table("['tim of pipe']"), "'tim of pipe'", "'tim' is not a metric"),
        (table("['time of pipe']"), "'time of pipe'", "is of several sizes"),
        (
            table("['time of pipe at 3K']"),
            "'time of pipe at 3K'",
            "no [[block]] of the suite measures 'pipe' at 3K",
        ),
        (
            table("['rate of pipe at 1K']"),
            "'rate of pipe at 1K'",
            "'pipe' has no rate: only throughput, transfer",
        ),
        (table("['3us']"), "'3us'", "the cell is of no case"),
        (table("[{ least = [] }]"), "[]", "nothing to choose from"),
        (table("[{ setting = { name = 'X', of = 'pipe' } }]"), "'pipe'", "of several sizes"),
        (table("[{ word = 'x' }]"), "word", "unknown variant `word`"),
        (test("of = 'time of getpid'"), "{ of = 'time of getpid' }", "holds whatever is measured"),
        (test("of = 'time of getpid', at_least = 3"), "3", "'3' is counted in another unit"),
        (
            test("of = 'time of getpid', at_least = '3us', at_most = '2us'"),
            "'3us'",
            "nothing is at least 3us and at most 2us",
        ),
        (test("of = 'time of getpid', sizes = '1K', at_least = '3us'"), "'1K'", "does not go over sizes"),
        (
            test("of = 'flat 10% time of getpid', at_least = '1K'"),
            "'flat 10% time of getpid'",
            "does not go over sizes",
        ),
        (figure("of = 'time of getpid'"), "'time of getpid'", "does not go over sizes"),
        (figure("published = [['1us', '1us']]"), "['1us', '1us']", "'1us' is counted in another unit"),
        (
            "[[study.figure]]\nname = 'n'\ntitle = 't'".to_owned(),
            "[[study.figure]]",
            "there are no series, and nothing",
        ),
        (
            format!("{0}\n{0}", "[[study.figure]]\nname = 'n'\ntitle = 't'\nabsent = 'a'"),
            "'n'",
            "'n' is there already",
        ),
    ] {
        let (said, of_text) = refused(&more);
        assert!(said.contains(says), "{says}\n{said}");
        assert_eq!(of_text, marked, "{said}");
    }
}

#[test]
fn a_study_travels_in_the_header() {
    let suite = suite(
        "[[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['c', 'd', 'e', 'f']\nrows = [\n\
         { name = 'r', cells = ['time of getpid / 2', '', { words = 'w' }, { host = 'cpu' }] },\n\
         { name = 's', published = true, cells = ['3.2us', '4K', { missing = 'm' }, ''] }]\n\
         [[study.figure]]\nname = 'f'\ntitle = 't'\nx = 'size'\nseries = [{ name = 'a', of = 'time of pipe' }, { name = 'b', published = [['1K', '3us']] }]\n\
         [[study.conclusion]]\nclaim = 'c'\ntests = [{ of = 'time of pipe', sizes = '1K,2K', at_least = '1ns', published = '1us' }]",
    );
    let mut results = results();
    results.header.study = suite.study;
    let line = model::results::to_line(&model::record::Line::Header(Box::new(results.header.clone())));
    let back = model::results::parse(line.as_bytes(), "r").unwrap();
    assert_eq!(back.header, results.header);
    // What a file says of formulas is checked as a suite's is.
    for (from, to, says) in [
        ("time of getpid / 2", "time of nobody", "unknown case of the study 'nobody'"),
        ("time of getpid / 2", "time of", "the name of a case must follow"),
        (r#""words":"w""#, r#""words":"\u001b[2J""#, "control characters"),
    ] {
        let broken = line.replace(from, to);
        let invalid = model::results::parse(broken.as_bytes(), "r").unwrap_err();
        assert!(invalid.problem.contains(says), "{invalid}");
    }
}

/// What `probe` saw of two iterations of a pipe in `round`: client reads once an iteration (by the name with `at`), 10 ns of it asleep, and is found copying in
/// three samples of four.
fn look(probe: Probe, round: u32) -> ProfileRecord {
    let at = |at_ns, what| EndpointEvent { at_ns, what };
    let read = |from_ns: u64| {
        [
            at(from_ns, EventKind::Enter { number: 0, first: 3, third: 1024 }),
            at(from_ns + 5, EventKind::Off { preempted: false }),
            at(from_ns + 15, EventKind::On { cpu: 0 }),
            at(from_ns + 20, EventKind::Exit { number: 0, value: 1024 }),
        ]
    };
    let stack =
        |name: &str, samples| SampledStack { frames: vec![StackFrame::Kernel(name.to_owned())], samples };
    let count = |name: &str, count| Counter { name: name.to_owned(), count, running: 1.0 };
    let client = EndpointObservation {
        from_ns: 0,
        until_ns: 100,
        events: [read(10), read(60)].concat(),
        stacks: vec![stack("copy_page_to_iter", 3), stack("schedule", 1)],
        counters: vec![
            count("cycles:user", Fact::Known(100.0)),
            count("cycles:kernel", Fact::Known(300.0)),
            count("bus-cycles", Fact::Unknown("this processor shows none".to_owned())),
        ],
        ..EndpointObservation::default()
    };
    let server = EndpointObservation { from_ns: 0, until_ns: 100, ..EndpointObservation::default() };
    let iteration_ends_ns = vec![10, 50, 100];
    let seen =
        Observation { iterations: 2, elapsed_ns: 100.0, iteration_ends_ns, client, server: Some(server) };
    let effect = if round.is_multiple_of(2) { 1.5 } else { 1.6 };
    ProfileRecord {
        case: case("pipe", Workload::Latency, Some(1024)),
        probe,
        round,
        profile: Fact::Known(crate::traces::profile::profile(probe, seen, effect, |_| "readat".to_owned())),
    }
}

fn looked_at() -> Results {
    let mut results = results();
    let probes = Probe::ALL.into_iter().filter(|probe| *probe != Probe::Ptrace);
    results.profiles = probes.flat_map(|probe| (1..9).map(move |round| look(probe, round))).collect();
    results
}

fn cell_in(results: &Results, measure: &str) -> evaluated::EvaluatedCell {
    let table = format!(
        "[[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['c']\nrows = [{{ name = 'r', cells = ['{measure}'] }}]"
    );
    evaluate(&suite(&table).study.unwrap(), results).tables[0].rows[0].cells[0].clone()
}

#[test]
fn what_probes_saw_is_counted_by_the_iteration() {
    let results = looked_at();
    for (measure, expected) in [
        ("observed.client.read.calls", 1.0),
        ("observed.client.read.mean", 20.0),
        ("observed.client.read.bytes", 1024.0),
        ("asleep", 10.0),
        ("asleep.client", 10.0),
        ("asleep.server", 0.0),
        ("running", 90.0),
        ("counter.cycles", 200.0),
        ("counter.cycles:user.client", 50.0),
        ("in.copy", 0.75),
        ("4K / size of pipe at 1K * asleep", 40.0),
        ("in.scheduling.client", 0.25),
    ] {
        let cell = cell_in(&results, &format!("{measure} of pipe at 1K"));
        let evaluated::EvaluatedCell::Value(found, _) = cell else { panic!("{measure}: {cell:?}") };
        assert!(close(found.median, expected), "{measure}: {found:?}");
        assert!(found.interval.is_some(), "{measure}: eight rounds");
    }
    // A call that is not made is made 0 times, not -0.
    let evaluated::EvaluatedCell::Value(none, _) =
        cell_in(&results, "observed.server.lseek.calls of pipe at 1K")
    else {
        panic!()
    };
    assert!(none.median == 0.0 && none.median.is_sign_positive());
    let evaluated::EvaluatedCell::Value(effect, _) = cell_in(&results, "1 / effect.syscalls of pipe at 1K")
    else {
        panic!()
    };
    assert!((0.62..0.67).contains(&effect.median), "{effect:?}");
    assert_eq!(
        Subsystem::ALL.map(|place| serde_json::to_value(place).unwrap()),
        Subsystem::ALL.map(Subsystem::word)
    );
}

#[test]
fn what_no_probe_saw_says_why() {
    let why = |results: &Results, measure: &str| match cell_in(results, measure) {
        evaluated::EvaluatedCell::Missing(why) => why,
        other => panic!("{other:?}"),
    };
    let mut results = looked_at();
    let of = "pipe latency 1K same-core: ";
    let bus = why(&results, "counter.bus-cycles of pipe at 1K");
    assert_eq!(bus, format!("{of}bus-cycles: this processor shows none"));
    let unknown = why(&results, "counter.tea of pipe at 1K");
    assert_eq!(unknown, format!("{of}it has no counter.tea"));
    results.profiles.retain(|look| look.probe != Probe::Scheduler);
    let none = why(&results, "asleep of pipe at 1K");
    assert!(none.ends_with("the run used no probes; give it time for them with --observe"), "{none}");
    results.header.settings.observe_ns = 1;
    let late = why(&results, "asleep of pipe at 1K");
    assert!(late.ends_with("give it more time with --observe"), "{late}");
    let refused = Fact::Unknown("no tracepoints; sudo".to_owned());
    results.profiles.push(ProfileRecord { profile: refused, ..look(Probe::Scheduler, 1) });
    assert_eq!(why(&results, "asleep of pipe at 1K"), format!("{of}scheduler: no tracepoints; sudo"));
}

#[test]
fn what_was_measured_and_what_was_seen_share_no_rounds() {
    let evaluated::EvaluatedCell::Value(found, _) =
        cell_in(&looked_at(), "asleep of pipe at 1K / time of pipe at 1K")
    else {
        panic!()
    };
    let (low, high) = found.interval.unwrap();
    assert!(
        low < found.median && found.median < high,
        "the time drifts tenfold, the sleep does not: {found:?}"
    );
}

#[test]
fn a_timeline_has_iterations_of_the_last_trial() {
    let figure = "[[study.figure]]\nname = 'n'\ntitle = 't'\ntimeline = 'small'";
    let text = SUITE.replace("pipe = ", "small = 'pipe latency 1K'\npipe = ") + figure;
    let study = Suite::parse(&text, CARDS).unwrap().study.unwrap();
    let drawn = evaluate(&study, &looked_at());
    let timeline = drawn.figures[0].timeline.as_ref().unwrap();
    assert_eq!((timeline.case.as_str(), timeline.iterations.len()), ("pipe latency 1K same-core", 2));
    assert_eq!(timeline.iterations[0].tracks.client.calls[0].name, "readat");
    let none = evaluate(&study, &results());
    assert!(none.figures[0].timeline.is_none());
    assert!(none.figures[0].missing[0].contains("--observe"), "{:?}", none.figures[0].missing);
    let pipe = case("pipe", Workload::Latency, Some(1024));
    assert_eq!(study.probes_of(&pipe), [Probe::Timeline]);
    assert_eq!(study.probes_of(&Case { size_bytes: Some(Size(2048)), ..pipe }), []);
}

#[test]
fn a_study_says_by_which_probes_it_wants_what_looked_at() {
    let study = suite(
        "[[study.figure]]\nname = 'n'\ntitle = 't'\nseries = [{ name = 'l', of = 'asleep of pipe + asleep of tcp' }]\n\
         [[study.conclusion]]\nclaim = 'c'\ntests = [{ of = 'observed.server.read.calls of pipe at 2K', at_least = 1 }]",
    );
    let study = study.study.unwrap();
    let of = |name, size| study.probes_of(&case(name, Workload::Latency, Some(size)));
    assert_eq!(of("pipe", 1024), [Probe::Scheduler]);
    assert_eq!(of("pipe", 2048), [Probe::Syscalls, Probe::Scheduler]);
    assert_eq!(of("tcp", 4096), [Probe::Scheduler]);
    assert_eq!(of("mq", 1024), []);
}

#[test]
fn looking_takes_time_that_the_suite_must_give_it() {
    let table = "[[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['c']\n\
                 rows = [{ name = 'r', cells = ['asleep of pipe at 1K'] }]";
    let suite = suite(table);
    // A run of half the time looks for half of it, and a longer one for no more.
    let in_seconds = |seconds| suite.observe_in(std::time::Duration::from_secs(seconds)).as_secs();
    assert_eq!([30, 60, 600].map(in_seconds), [3, 6, 6]);
    let without = SUITE.replace("observe = \"6s\"\n", "");
    let said = Suite::parse(&format!("{without}{table}"), CARDS).unwrap_err();
    assert!(said.problem.contains("no time for looking"), "{said}");
    assert!(said.remedy.contains("observe = "), "{said}");
    assert!(Suite::parse(&without, CARDS).is_ok());
}

#[test]
fn what_cannot_be_looked_at_is_refused() {
    let figure = |timeline: &str, more: &str| {
        format!("[[study.figure]]\nname = 'n'\ntitle = 't'\ntimeline = '{timeline}'\n{more}")
    };
    let (said, _) = refused(&figure("pipe", ""));
    assert!(said.contains("'pipe' is of several sizes"), "{said}");
    let (said, _) = refused(&figure("getpid", "series = [{ name = 'l', of = 'time of pipe' }]"));
    assert!(said.contains("lines or a timeline"), "{said}");
    let (said, _) = refused(&figure("tea", ""));
    assert!(said.contains("tea"), "{said}");
    let same_core = "placements = [\"same-core\"]\n";
    let paced = SUITE.replacen(same_core, &format!("{same_core}think_times = \"1us\"\n"), 1);
    let paced = paced.replace("stream = \"pipe throughput\"\n", "")
        + &figure("tcp", "").replace("timeline = 'tcp'", "series = [{ name = 'l', of = 'asleep of pipe' }]");
    let said = Suite::parse(&paced, CARDS).unwrap_err().problem;
    assert!(said.contains("'pipe' cannot be looked at"), "{said}");
}

#[test]
fn an_empty_message_has_no_place_on_a_logarithmic_axis_and_every_other_number() {
    let mut results = results();
    for record in results.records.iter_mut().filter(|record| record.case.size_bytes == Some(Size(1024))) {
        record.case.size_bytes = Some(Size(0));
    }
    let figure = |name: &str, scale: &str| {
        format!(
            "[[study.figure]]\nname = '{name}'\ntitle = 't'\ny = 'y'\nscale = '{scale}'\n\
             series = [{{ name = 's', of = 'time of pipe' }}]\n"
        )
    };
    let table = "[[study.table]]\nname = 't'\ntitle = 't'\ncolumns = ['a', 'b']\n\
                 rows = [{ name = 'r', cells = ['time of tcp at 0 / time of pipe at 0', 'flat 10% time of pipe'] }]\n";
    let text = SUITE.replace("1K,2K,4K", "0,2K,4K") + &figure("f", "log") + &figure("g", "linear") + table;
    let suite = Suite::parse(&text, CARDS).unwrap_or_else(|invalid| panic!("{invalid}"));
    let drawn = evaluate(&suite.study.unwrap(), &results);
    assert!(drawn.figures[0].missing.iter().any(|why| why.starts_with("0 bytes")), "{drawn:?}");
    assert_eq!(drawn.figures[1].missing, Vec::<String>::new());
    let points: Vec<f64> = drawn.figures[1].series[0].points.iter().map(|point| point.x).collect();
    assert_eq!(points, [0.0, 2048.0, 4096.0]);
    let cells = &drawn.tables[0].rows[0].cells;
    let median = |at: usize| match &cells[at] {
        evaluated::EvaluatedCell::Value(number, _) => number.median,
        other => panic!("{other:?}"),
    };
    assert!((median(0) - 2.0).abs() < 1e-9, "{cells:?}");
    assert_eq!(median(1), 2048.0);
}
