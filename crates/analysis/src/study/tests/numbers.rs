//! Numbers of formulas: what is taken within rounds, of all trials together, and not at all.

use super::super::evaluated::{self, StudyVerdict};
use super::fixture::*;
use model::Workload;
use model::histogram::Histogram;
use model::record::{CallCounts, Outcome, Setting, TimedCalls, Usage};
use model::units::Unit;

#[test]
fn times_and_ratios_are_those_of_the_calm_host() {
    for (measure, truth) in [
        ("time of pipe at 1K", 104.0),
        ("time of tcp at 1K / time of pipe at 1K", 2.0),
        ("time of tcp at 4K - time of pipe at 4K", 208.0),
        ("(time of tcp at 4K - time of pipe at 4K) / time of pipe at 1K", 2.0),
    ] {
        let (median, interval) = number(measure);
        let (low, high) = interval.unwrap();
        assert!((median / truth - 1.0).abs() < 0.01, "{measure}: {median}");
        assert!(
            0.9 * truth < low && low < truth && truth < high && high < 1.1 * truth,
            "{measure}: {low} {high}"
        );
    }
}

#[test]
fn other_numbers_are_taken_within_rounds_so_that_drift_cancels_where_they_share_any() {
    let ratio = "floor of tcp at 1K / floor of pipe at 1K";
    let (median, interval) = number(ratio);
    let (low, high) = interval.unwrap();
    assert!(close(median, 2.0) && close(low, 2.0) && close(high, 2.0), "{median} {low} {high}");
    let mut results = results();
    for record in results.records.iter_mut().filter(|record| record.case.spec.name == "tcp") {
        record.samples.iter_mut().for_each(|sample| sample.round += 100);
    }
    let evaluated::EvaluatedCell::Value(apart, _) = cell_in(&results, ratio) else { panic!("no number") };
    let (low, high) = apart.interval.unwrap();
    assert!(close(apart.median, 2.0) && low < 1.95 && high > 2.05 && low > 1.7, "{apart:?}");
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
    assert_eq!(number("flat 90% time of pipe"), (2048.0, Some((2048.0, 2048.0))));
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
    let StudyVerdict::CannotBeMeasured(why) = &drawn.conclusions[0].verdict else { panic!("{drawn:?}") };
    assert_eq!(why, "pipe latency 1K same-core: it failed: pipe: too many files");
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
fn what_one_slice_of_five_uses_up_is_in_the_cpu_time() {
    let mut results = results();
    let pipes = results.records.iter_mut().filter(|record| record.case.spec.name == "pipe");
    for record in pipes {
        for sample in &mut record.samples {
            // A collector, which runs in the rounds 0 and 5.
            let collects = sample.round.is_multiple_of(5);
            let cpu_ns = sample.iterations * if collects { 150 } else { 100 };
            sample.client = Usage { cpu_ns, ..Usage::default() };
        }
    }
    let cell = cell_in(&results, "cpu.client of pipe at 1K");
    let evaluated::EvaluatedCell::Value(cpu, _) = cell else { panic!("no number") };
    assert!(close(cpu.median, 110.0), "{cpu:?}");
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
    assert_eq!(cell(&format!("{tcp}, {pipe}")), evaluated::EvaluatedCell::Words("P (104 ns)".to_owned()));
    assert_eq!(
        cell(&format!("{tcp}, {pipe}, {again}, {mq}")),
        evaluated::EvaluatedCell::Words(
            "P (104 ns); not distinguished from it: A; not measured: Q".to_owned()
        )
    );
}

#[test]
fn a_setting_is_of_the_size_that_is_named() {
    let mut results = results();
    for (nth, record) in results.records.iter_mut().enumerate() {
        let got = format!("{nth}");
        record.settings =
            vec![Setting { name: "B".to_owned(), asked: None, got, clamped: false, usual: None }];
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
