//! Tests of recommendations, on records made by hand.

use super::*;
use crate::summary::summarise_alone;
use model::card::{Card, CardKind};
use model::estimate::Estimate;
use model::need::{Cause, Exclusion, Need, Objective, Pattern};
use model::record::{Record, ScheduleSample, Usage};
use model::testing::{card, record, sample};
use model::{Case, Domain, Outcome, Pace, Param, Sample, Size, Spec, Workload, floor};
use proptest::prelude::*;

const SIZE: Size = Size(4096);

fn case(spec: &Spec, workload: Workload, size: Size) -> Case {
    Case { workload, size_bytes: Some(size), spec: spec.clone(), ..floor::operation("pipe", 0) }
}

/// Twelve trials around `ns`, each 1% from its neighbours, which take `cpu_ns` of CPU time.
fn samples(ns: f64, cpu_ns: u64) -> Vec<Sample> {
    let usage = Usage { cpu_ns: cpu_ns * 1200, ..Usage::default() };
    (0..12)
        .map(|round| {
            let ns = ns * (1.0 + 0.01 * f64::from(round * 5 % 3));
            Sample { client: usage, ..sample(round, ns, None) }
        })
        .collect()
}

fn measured_record(case: Case, samples: Vec<Sample>) -> Record {
    let summary = summarise_alone(&case, &samples);
    Record { summary, ..record(case, samples) }
}

fn latency(name: &str, ns: f64, cpu_ns: u64) -> Record {
    measured_record(case(&Spec::plain(name), Workload::Latency, SIZE), samples(ns, cpu_ns))
}

fn specs(names: &[&str]) -> Vec<Spec> {
    names.iter().map(|name| Spec::plain(name)).collect()
}

fn need() -> Need {
    Need::new(Pattern::RequestReply, SIZE)
}

fn estimate(median: f64, part: f64) -> Estimate {
    Estimate { median, interval: Some((median / (1.0 + part), median * (1.0 + part))) }
}

#[test]
fn the_best_is_first_and_the_others_stand_as_their_intervals_say() {
    let records = [latency("slow", 3000.0, 10), latency("best", 1000.0, 30), latency("near", 1005.0, 40)];
    let advice = recommend(&need(), "same-core", &specs(&["slow", "best", "near"]), &records, Vec::new());
    let names: Vec<&str> = advice.ranked.iter().map(|ranked| ranked.measured.spec.name.as_str()).collect();
    assert_eq!(names, ["best", "near", "slow"]);
    assert_eq!(advice.ranked[0].standing, Standing::Best);
    assert!(matches!(advice.ranked[1].standing, Standing::Close | Standing::NotToldApart));
    assert_eq!(advice.ranked[2].standing, Standing::Worse);
    // The slow one takes less CPU time than any, one that is close is worse in both.
    let on_front: Vec<bool> = advice.ranked.iter().map(|ranked| ranked.on_front).collect();
    assert_eq!(on_front, [true, false, true]);
    let worst = advice.worst.unwrap();
    assert!((worst.over_best.median - 3.0).abs() < 0.1, "{worst:?}");
    assert_eq!(advice.second.unwrap().spec.name, "near");
    let cheapest = Need { objective: Objective::Cpu, ..need() };
    let advice = recommend(&cheapest, "same-core", &specs(&["slow", "best"]), &records, Vec::new());
    assert_eq!(advice.ranked[0].measured.spec.name, "slow");
}

#[test]
fn what_a_few_trials_say_is_not_the_best() {
    let few = |name: &str, ns: f64| {
        let of_one_trial = samples(ns, 10).into_iter().filter(|sample| sample.trial == 0).collect();
        measured_record(case(&Spec::plain(name), Workload::Latency, SIZE), of_one_trial)
    };
    let ranked = |records: &[Record]| -> Vec<String> {
        let names = specs(&["lucky", "known", "slow"]);
        let advice = recommend(&need(), "same-core", &names, records, Vec::new());
        assert_eq!(advice.worst.unwrap().spec.name, "slow");
        advice.ranked.into_iter().map(|ranked| ranked.measured.spec.name).collect()
    };
    let known = [few("lucky", 900.0), latency("known", 1000.0, 10), latency("slow", 3000.0, 10)];
    assert_eq!(ranked(&known), ["known", "lucky", "slow"]);
    let none_is_known = [few("lucky", 900.0), few("known", 1000.0), few("slow", 3000.0)];
    assert_eq!(ranked(&none_is_known), ["lucky", "known", "slow"]);
}

#[test]
fn what_cannot_be_offered_has_its_reason() {
    let mut failed = latency("failed", 1.0, 1);
    failed.outcome = Outcome::Failed { error: "connect: refused\nmore".to_owned() };
    let records = [latency("good", 1000.0, 1), failed];
    let known = Exclusion {
        mechanism: "other".to_owned(),
        cause: Cause::Requirement,
        reason: "carries no descriptors".to_owned(),
    };
    let names = specs(&["good", "failed", "unmeasured"]);
    let advice = recommend(&need(), "unpinned", &names, &records, vec![known.clone()]);
    let reasons: Vec<(Cause, &str)> =
        advice.excluded.iter().map(|exclusion| (exclusion.cause, exclusion.reason.as_str())).collect();
    assert_eq!(
        reasons,
        [
            (Cause::Requirement, "carries no descriptors"),
            (Cause::Failed, "failed: connect: refused"),
            (Cause::Failed, "was not measured in the time"),
        ]
    );
    let throughput = Need { objective: Objective::Throughput, ..need() };
    let advice = recommend(&throughput, "unpinned", &specs(&["good"]), &records, Vec::new());
    assert_eq!(advice.excluded[0].cause, Cause::Pattern);
    assert!(advice.ranked.is_empty() && !advice.told_apart && advice.second.is_none());
}

#[test]
fn who_cannot_hold_the_rate_is_excluded() {
    let rate = |text: &str| match Pace::rate(text).unwrap() {
        Pace::Rate(rate) => Some(rate),
        _ => None,
    };
    let paced = |name: &str, ns: f64, late_ns: f64| {
        let bare = latency(name, ns, 1);
        let case = Case { pace: Pace::rate("20k").unwrap(), ..bare.case };
        let schedule = Some(ScheduleSample { span_ns: 1e6, late_ns, backlog_slope: None });
        let samples: Vec<Sample> =
            samples(ns, 1).into_iter().map(|sample| Sample { schedule, ..sample }).collect();
        let record = measured_record(case, samples);
        let missed = record.summary.as_ref().and_then(|summary| summary.missed());
        let outcome = missed.map_or(Outcome::Settled, |achieved| Outcome::Missed { achieved });
        Record { outcome, ..record }
    };
    let need = Need { rate: rate("20k"), ..need() };
    let records = [
        latency("holds", 9000.0, 1),
        latency("misses", 20_000.0, 1),
        latency("slower", 40_000.0, 1),
        latency("hopeless", 90_000.0, 1),
        paced("holds", 12_000.0, 0.0),
        paced("misses", 30_000.0, 1e6),
    ];
    let names = specs(&["holds", "misses", "slower", "hopeless"]);
    let advice = recommend(&need, "unpinned", &names, &records, Vec::new());
    assert_eq!(advice.ranked.len(), 1);
    assert_eq!(advice.ranked[0].measured.round_trip_ns.unwrap().median.round(), 12_120.0);
    let causes: Vec<Cause> = advice.excluded.iter().map(|exclusion| exclusion.cause).collect();
    assert_eq!(causes, [Cause::Rate, Cause::Slower, Cause::Rate]);
    let stream = |name: &str, ns: f64| {
        measured_record(case(&Spec::plain(name), Workload::Throughput, SIZE), samples(ns, 1))
    };
    let need = Need { rate: rate("1M"), ..Need::new(Pattern::Stream, SIZE) };
    let records = [stream("fast", 700.0), stream("slow", 1500.0)];
    let advice = recommend(&need, "unpinned", &specs(&["fast", "slow"]), &records, Vec::new());
    assert_eq!((advice.ranked.len(), advice.excluded[0].cause), (1, Cause::Rate));
}

#[test]
fn the_size_at_which_the_answer_changes_lies_where_the_lines_cross() {
    let at = |name: &str, size: u64, ns: f64| {
        measured_record(case(&Spec::plain(name), Workload::Latency, Size(size)), samples(ns, 1))
    };
    // 1000 and 2000 at 1K, 16000 and 8000 at 16K: they cross in the middle of the logarithms.
    let records =
        [at("a", 1024, 1000.0), at("b", 1024, 2000.0), at("a", 16_384, 16_000.0), at("b", 16_384, 8000.0)];
    let changes = size_changes(&specs(&["a", "b"]), Workload::Latency, &records);
    let [change] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!((change.below.name.as_str(), change.above.name.as_str()), ("a", "b"));
    assert!((change.size_bytes.median - 4096.0).abs() < 1.0, "{change:?}");
    let (low, high) = change.size_bytes.interval.unwrap();
    assert!(low < 4096.0 && high > 4096.0 && low > 3000.0 && high < 6000.0, "{change:?}");
    // What cannot be told at a size says nothing of it.
    let wide = |name: &str, size: u64, ns: f64| {
        let samples =
            (0..12).map(|round| sample(round, ns * (1.0 + f64::from(round * 5 % 3)), None)).collect();
        measured_record(case(&Spec::plain(name), Workload::Latency, Size(size)), samples)
    };
    let unsure =
        [records[0].clone(), records[1].clone(), wide("a", 16_384, 1600.0), wide("b", 16_384, 1500.0)];
    assert!(size_changes(&specs(&["a", "b"]), Workload::Latency, &unsure).is_empty());
    assert!(size_changes(&specs(&["a"]), Workload::Latency, &records).is_empty());
}

#[test]
fn a_setting_is_compared_with_the_default_that_was_measured_beside_it() {
    const WAIT: Param = Param {
        name: "wait",
        summary: "",
        domain: Domain::Choice(&["block", "spin"]),
        default: Some("block"),
    };
    const NAME: Param =
        Param { name: "name", summary: "", domain: Domain::Choice(&["none", "path"]), default: Some("none") };
    let socket =
        Card { params: &[NAME, WAIT], ..card("socket", CardKind::Mechanism, &[Workload::Latency], true) };
    // A need for names has candidates with one.
    for (plain, with) in [("socket", "socket:wait=spin"), ("socket:name=path", "socket:name=path,wait=spin")]
    {
        let [plain, with] = [plain, with].map(|text| Spec::parse(text, &[socket]).unwrap());
        let record = |spec: &Spec, ns: f64, cpu_ns: u64| {
            measured_record(case(spec, Workload::Latency, SIZE), samples(ns, cpu_ns))
        };
        let records = [record(&plain, 3000.0, 10), record(&plain, 1000.0, 10), record(&with, 500.0, 20)];
        let advice = recommend(&need(), "same-llc", &[plain], &records, Vec::new());
        let [knob] = advice.knobs.as_slice() else { panic!("{:?}", advice.knobs) };
        assert_eq!(knob.spec, with);
        assert!((knob.time_ratio.median - 0.5).abs() < 0.01);
        assert!((knob.cpu_ratio.unwrap().median - 2.0).abs() < 0.01);
    }
}

#[test]
fn a_ranking_is_told_when_every_other_is_surely_worse_or_surely_close() {
    assert!(are_told_apart(&[estimate(100.0, 0.02), estimate(150.0, 0.02)]));
    assert!(are_told_apart(&[estimate(100.0, 0.01), estimate(101.0, 0.01)]));
    assert!(!are_told_apart(&[estimate(100.0, 0.1), estimate(104.0, 0.1)]));
    assert!(!are_told_apart(&[Estimate { median: 1.0, interval: None }]));
    assert!(!are_told_apart(&[]));
    let few = Estimate { median: 90.0, interval: None };
    assert_eq!(
        best_of(&[few, estimate(150.0, 0.02), estimate(100.0, 0.02)]),
        Some(2),
        "a few trials may be chance"
    );
    assert_eq!(best_of(&[Estimate { median: 95.0, interval: None }, few]), Some(1));
    assert!(is_surely_worse(estimate(120.0, 0.02), estimate(100.0, 0.02)));
    assert!(!is_surely_worse(estimate(106.0, 0.02), estimate(100.0, 0.02)));
    assert!(is_hopeless(estimate(250.0, 0.1), 100.0) && !is_hopeless(estimate(160.0, 0.1), 100.0));
}

/// Of those that are as good, the plainest is recommended: not the fastest by a hair, and no variant of another.
#[test]
fn a_tie_goes_to_the_plainest() {
    let taken = |times: &[(&str, f64)]| {
        let records: Vec<Record> = times.iter().map(|(name, ns)| latency(name, *ns, 100)).collect();
        let names: Vec<&str> = times.iter().map(|(name, _)| *name).collect();
        let advice = recommend(&need(), "same-core", &specs(&names), &records, Vec::new());
        advice.ranked[0].measured.spec.name.clone()
    };
    assert_eq!(taken(&[("pipe", 1010.0), ("pipe-vmsplice", 1000.0), ("tcp", 1005.0)]), "pipe");
    assert_eq!(taken(&[("pipe-vmsplice", 1000.0), ("pipe", 3000.0), ("tcp", 1005.0)]), "tcp");
    assert_eq!(taken(&[("pipe", 3000.0), ("tcp", 1000.0)]), "tcp");
}

proptest! {
    #[test]
    fn the_first_is_the_least_or_as_good_and_the_others_are_in_order(times in prop::collection::vec(1.0..1e6_f64, 1..8)) {
        let names: Vec<String> = (0..times.len()).map(|at| format!("m{at}")).collect();
        let records: Vec<Record> =
            names.iter().zip(&times).map(|(name, ns)| latency(name, *ns, (1e6 / ns) as u64 + 1)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let advice = recommend(&need(), "same-core", &specs(&names), &records, Vec::new());
        let ns: Vec<f64> =
            advice.ranked.iter().map(|ranked| ranked.measured.round_trip_ns.unwrap().median).collect();
        prop_assert!(ns[1..].is_sorted());
        let least = ns.iter().copied().fold(f64::INFINITY, f64::min);
        let first = &advice.ranked[0].measured;
        let is_as_good = ns[0] <= least * 1.05 || first.round_trip_ns.unwrap().interval.unwrap().0 <= least * 1.05;
        prop_assert!(is_as_good, "{ns:?}");
        prop_assert!(advice.ranked.iter().any(|ranked| ranked.on_front));
    }
}
