//! Suites: what is read can be written and read again, the plan says what becomes of every spec, and the study can be kept
//! in results and evaluated with results of no case.

#![no_main]

use analysis::run::RunModel;
use analysis::study::evaluate;
use analysis::study::evaluated::StudyVerdict;
use fuzz::CARDS;
use libfuzzer_sys::fuzz_target;
use model::block::Block;
use model::card::Support;
use model::plan::{PlanEntry, plan};
use model::study::Study;
use model::suite::Suite;
use model::topology::{Cpu, Topology};
use model::{Endpoints, Pace, Percent, Spec};
use std::fmt::Write;

fuzz_target!(|text: &str| {
    let Ok(suite) = Suite::parse(text, CARDS) else { return };
    let again = Suite::parse(&text_of(&suite), CARDS).expect("what was written can be read");
    let is_near = |a: Percent, b: Percent| (a.0 - b.0).abs() <= 0.000_005_1;
    assert!(is_near(again.precision.least, suite.precision.least));
    match (again.precision.on_two_cpus, suite.precision.on_two_cpus) {
        (Some(again), Some(precision)) => assert!(is_near(again, precision)),
        (again, precision) => assert_eq!(again, precision),
    }
    assert_eq!(Suite { precision: suite.precision, study: suite.study.clone(), ..again }, suite);
    if let Some(study) = &suite.study {
        keep_and_draw(study);
    }

    // Text can ask for a product of millions of cases; the plan is as large, and slow to look through.
    let cases = |block: &Block| {
        let axes =
            [block.workloads.len(), block.placements.len(), block.sizes.len().max(1), block.paces.len()];
        axes.iter().product::<usize>() * block.specs.len()
    };
    if suite.blocks.iter().map(cases).sum::<usize>() > 1000 {
        return;
    }
    let plan = plan(&suite.blocks, Endpoints::Processes, &two_cores(), entry);
    let all: Vec<_> = plan.cases.iter().chain(&plan.floors).collect();
    for (nth, case) in all.iter().enumerate() {
        assert!(!all[..nth].contains(case), "{case} is planned twice");
        assert!(case.cpus.is_none_or(|cpus| cpus.client < 2 && cpus.server < 2), "{case}");
    }
    assert_eq!(plan.floors.is_empty(), all.is_empty());
    for spec in suite.blocks.iter().flat_map(|block| &block.specs) {
        let planned = all.iter().any(|case| case.spec == *spec);
        let dropped = plan.dropped.iter().any(|dropped| dropped.case.starts_with(&spec.to_string()));
        assert!(planned || dropped, "nothing is said of {spec}");
    }
});

/// A study survives being kept, and without any case each of its numbers is missing with a reason.
fn keep_and_draw(study: &Study) {
    let json = serde_json::to_string(study).expect("a study has text keys");
    assert_eq!(serde_json::from_str::<Study>(&json).expect("what was kept can be read"), *study);
    assert_eq!(study.check(), Ok(()));
    let none = model::results::parse(HEADER.as_bytes(), "header").expect("the header is good");
    for conclusion in evaluate(study, &none, &RunModel::of_results(&none)).conclusions {
        assert!(
            !matches!(conclusion.verdict, StudyVerdict::Holds | StudyVerdict::DoesNotHold),
            "{conclusion:?}"
        );
    }
}

/// Results of no case.
const HEADER: &str = include_str!("../seeds/results/header.jsonl");

fn entry(spec: &Spec) -> PlanEntry {
    let card = *CARDS.iter().find(|card| card.name == spec.name).expect("only known names are accepted");
    PlanEntry { spec: spec.clone(), card, support: Support::Yes { largest_bytes: Some(1 << 20) } }
}

fn two_cores() -> Topology {
    let cpu = |id| Cpu { id, package: 0, core: id, llc: Some(0), node: 0 };
    Topology { cpus: vec![cpu(0), cpu(1)], unknown: None }
}

fn text_of(suite: &Suite) -> String {
    let quoted = |text: &str| serde_json::to_string(text).expect("text is text").replace('\u{7f}', "\\u007f");
    let list = |items: Vec<String>| items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", ");
    let mut out = String::new();
    let time = humantime::format_duration(suite.time);
    let _ = writeln!(out, "name = {}\nsummary = {}", quoted(&suite.name), quoted(&suite.summary));
    let _ = writeln!(out, "precision = \"{}\"\ntime = \"{time}\"", suite.precision);
    for (name, time) in [("quick", suite.quick), ("slice", suite.slice)] {
        if let Some(time) = time {
            let _ = writeln!(out, "{name} = \"{}\"", humantime::format_duration(time));
        }
    }
    if let Some(rounds) = suite.rounds {
        let _ = writeln!(out, "rounds = {rounds}");
    }
    if let Some(total) = suite.total {
        let _ = writeln!(out, "total = \"{total}\"");
    }
    if let Some(endpoints) = suite.endpoints {
        let _ = writeln!(out, "endpoints = \"{endpoints}\"");
    }
    for block in &suite.blocks {
        let texts = |items: &mut dyn Iterator<Item = String>| list(items.collect());
        let mechanisms = texts(&mut block.specs.iter().map(ToString::to_string));
        let workloads = texts(&mut block.workloads.iter().map(ToString::to_string));
        let placements = texts(&mut block.placements.iter().map(ToString::to_string));
        let _ = writeln!(
            out,
            "[[block]]\nmechanisms = [{mechanisms}]\nworkloads = [{workloads}]\nplacements = [{placements}]"
        );
        let [think_times, rates] = ["think-time=", "rate="].map(|kind| {
            let texts = block.paces.iter().map(|pace| match pace {
                Pace::BackToBack => "think-time=0".to_owned(),
                other => other.to_string(),
            });
            texts.filter_map(|pace| Some(pace.strip_prefix(kind)?.to_owned())).collect::<Vec<_>>().join(",")
        });
        for (name, list) in
            [("think_times", think_times), ("rates", rates)].iter().filter(|(_, list)| !list.is_empty())
        {
            let _ = writeln!(out, "{name} = {}", quoted(list));
        }
        let sizes: Vec<String> = block.sizes.iter().map(ToString::to_string).collect();
        if !sizes.is_empty() {
            let _ = writeln!(out, "sizes = {}", quoted(&sizes.join(",")));
        }
    }
    out
}
