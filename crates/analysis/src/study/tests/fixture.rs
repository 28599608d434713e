//! A suite, and results made by hand whose ratios are known exactly.

use super::super::evaluated::{self, EvaluatedStudy};
use crate::run::RunModel;
use model::card::{Card, CardKind};
use model::observation::profile::ProfileRecord;
use model::observation::{
    Counter, EndpointEvent, EndpointObservation, EventKind, Observation, Probe, SampledStack, StackFrame,
};
use model::record::{Dropped, Fact, Record, Results, Sample};
use model::speed::{SpeedReading, SpeedReadings};
use model::study::Study;
use model::suite::Suite;
use model::testing;
use model::testing::card;
use model::topology::CpuPair;
use model::units::Size;
use model::{Case, Endpoints, Placement};
use model::{Pace, Peers, Spec, Workload};

pub(super) const CARDS: &[Card] = &[
    card("pipe", CardKind::Mechanism, &[Workload::Latency, Workload::Throughput], true),
    card("tcp", CardKind::Mechanism, &[Workload::Latency, Workload::Throughput], true),
    card("mq", CardKind::Mechanism, &[Workload::Latency], true),
    card("getpid", CardKind::Operation, &[Workload::Cost], false),
];

pub(super) const SUITE: &str = r#"name = "s"
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

pub(super) fn suite(more: &str) -> Suite {
    Suite::parse(&format!("{SUITE}{more}"), CARDS).unwrap_or_else(|invalid| panic!("{invalid}"))
}

/// What is said of the suite with `more`, and what of its text is marked, by line, column and length.
pub(super) fn refused(more: &str) -> (String, String) {
    let text = format!("{SUITE}{more}");
    let said = Suite::parse(&text, CARDS).unwrap_err().problem;
    let place = said.strip_prefix("the suite is not valid at line ").unwrap();
    let (line, rest) = place.split_once(", column ").unwrap();
    let column: usize = rest.lines().next().unwrap().parse().unwrap();
    let line = text.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap();
    let marked = line.chars().skip(column - 1).take(said.matches('^').count()).collect();
    (said, marked)
}

pub(super) fn case(name: &str, workload: Workload, size: Option<u64>) -> Case {
    Case {
        workload,
        size_bytes: size.map(Size),
        placement: Placement::SameCore,
        cpus: Some(CpuPair { client: 0, server: 0 }),
        endpoints: Endpoints::Processes,
        pace: Pace::BackToBack,
        inject: None,
        peers: Peers::Pair,
        spec: Spec::plain(name),
    }
}

/// A record whose trial in round r takes `iteration_ns(r)`.
pub(super) fn record(case: Case, rounds: u32, iteration_ns: impl Fn(u32) -> f64) -> Record {
    let samples: Vec<Sample> =
        (0..rounds).map(|round| testing::sample(round, iteration_ns(round), Some(50.0))).collect();
    testing::record(case, samples)
}

/// A host that wanders: in round r everything takes so many times as long. In the calmest quarter it is 1.04.
pub(super) fn drift(round: u32) -> f64 {
    1.0 + 0.02 * f64::from(round * 7 % 10)
}

/// Reads beside `sample` by how much everything takes longer.
fn read_drift(sample: &mut Sample) {
    let read_ns = 1000.0 * drift(sample.round);
    let client = SpeedReading { before_ns: read_ns, after_ns: read_ns };
    sample.speed = Some(SpeedReadings { client, server: None, pair: None });
}

/// Over rounds that drift by a fifth, tcp takes exactly twice as long as a pipe; a pipe twice as long for 4K as for 1K.
pub(super) fn results() -> Results {
    let latency = Workload::Latency;
    let sized = |name: &str, ns: f64| {
        [(1024, 1.0), (2048, 1.05), (4096, 2.0)].map(|(size, factor)| {
            let mut record =
                record(case(name, latency, Some(size)), 10, move |round| ns * factor * drift(round));
            record.samples.iter_mut().for_each(read_drift);
            record
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

/// `study` with the numbers of `results`.
pub(super) fn evaluate(study: &Study, results: &Results) -> EvaluatedStudy {
    super::super::evaluate(study, results, &RunModel::of_results(results))
}

pub(super) fn evaluated(more: &str) -> EvaluatedStudy {
    evaluate(&suite(more).study.unwrap(), &results())
}

pub(super) fn value(measure: &str) -> evaluated::EvaluatedCell {
    let table = format!(
        "[[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['c']\nrows = [{{ name = 'r', cells = ['{measure}'] }}]"
    );
    evaluated(&table).tables[0].rows[0].cells[0].clone()
}

pub(super) fn number(measure: &str) -> (f64, Option<(f64, f64)>) {
    match value(measure) {
        evaluated::EvaluatedCell::Value(estimate, _) => (estimate.median, estimate.interval),
        other => panic!("{measure}: {other:?}"),
    }
}

pub(super) fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

/// What `probe` observed of two iterations of a pipe in `round`: the client reads once an iteration (by the name with `at`), 10 ns of it asleep, and is found copying in
/// three samples of four.
pub(super) fn profile_record(probe: Probe, round: u32) -> ProfileRecord {
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
    let observation =
        Observation { iterations: 2, elapsed_ns: 100.0, iteration_ends_ns, client, server: Some(server) };
    let effect = if round.is_multiple_of(2) { 1.5 } else { 1.6 };
    ProfileRecord {
        case: case("pipe", Workload::Latency, Some(1024)),
        probe,
        round,
        profile: Fact::Known(crate::traces::profile::profile(probe, observation, effect, |_| {
            "readat".to_owned()
        })),
    }
}

pub(super) fn results_with_profiles() -> Results {
    let mut results = results();
    let probes = Probe::ALL.iter().copied().filter(|probe| *probe != Probe::Ptrace);
    results.profiles =
        probes.flat_map(|probe| (1..9).map(move |round| profile_record(probe, round))).collect();
    results
}

pub(super) fn cell_in(results: &Results, measure: &str) -> evaluated::EvaluatedCell {
    let table = format!(
        "[[study.table]]\nname = 'n'\ntitle = 't'\ncolumns = ['c']\nrows = [{{ name = 'r', cells = ['{measure}'] }}]"
    );
    evaluate(&suite(&table).study.unwrap(), results).tables[0].rows[0].cells[0].clone()
}
