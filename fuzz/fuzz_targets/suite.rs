//! Suites: what is read can be written and read again, and its plan says what becomes of every row.

#![no_main]

use fuzz::CARDS;
use libfuzzer_sys::fuzz_target;
use model::card::Support;
use model::plan::{Row, plan};
use model::suite::{Block, Suite};
use model::topology::{Cpu, Topology};
use model::{Endpoints, Spec};
use std::fmt::Write;

fuzz_target!(|text: &str| {
    let Ok(suite) = Suite::parse(text, CARDS) else { return };
    let again = Suite::parse(&text_of(&suite), CARDS).expect("what was written can be read");
    assert!((again.precision.0 - suite.precision.0).abs() <= 0.000_005_1);
    assert_eq!(Suite { precision: suite.precision, ..again }, suite);

    // Text can ask for a product of millions of cases; the plan is as large, and slow to look through.
    let cases = |block: &Block| {
        block.specs.len() * block.workloads.len() * block.placements.len() * block.sizes.len().max(1)
    };
    if suite.blocks.iter().map(cases).sum::<usize>() > 1000 {
        return;
    }
    let plan = plan(&suite.blocks, Endpoints::Processes, &two_cores(), row);
    let all: Vec<_> = plan.cases.iter().chain(&plan.floors).collect();
    for (nth, case) in all.iter().enumerate() {
        assert!(!all[..nth].contains(case), "{case} is planned twice");
        assert!(case.cpus.is_none_or(|cpus| cpus.near < 2 && cpus.far < 2), "{case}");
    }
    assert_eq!(plan.floors.is_empty(), all.is_empty());
    for spec in suite.blocks.iter().flat_map(|block| &block.specs) {
        let planned = all.iter().any(|case| case.spec == *spec);
        let dropped = plan.dropped.iter().any(|dropped| dropped.case.starts_with(&spec.to_string()));
        assert!(planned || dropped, "nothing is said of {spec}");
    }
});

fn row(spec: &Spec) -> Row {
    let card = *CARDS.iter().find(|card| card.name == spec.name).expect("only known rows are accepted");
    Row { spec: spec.clone(), card, support: Support::Yes { largest_bytes: Some(1 << 20) } }
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
    for block in &suite.blocks {
        let texts = |items: &mut dyn Iterator<Item = String>| list(items.collect());
        let rows = texts(&mut block.specs.iter().map(ToString::to_string));
        let workloads = texts(&mut block.workloads.iter().map(ToString::to_string));
        let placements = texts(&mut block.placements.iter().map(ToString::to_string));
        let _ = writeln!(
            out,
            "[[block]]\nrows = [{rows}]\nworkloads = [{workloads}]\nplacements = [{placements}]"
        );
        let sizes: Vec<String> = block.sizes.iter().map(ToString::to_string).collect();
        if !sizes.is_empty() {
            let _ = writeln!(out, "sizes = {}", quoted(&sizes.join(",")));
        }
    }
    out
}
