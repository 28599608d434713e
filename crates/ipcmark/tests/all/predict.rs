//! `ipcmark predict`: what it needs, what it says, and what it refuses. No number that was measured is tested here.

use crate::common::{Place, Said, run};
use serde_json::Value;
use std::sync::OnceLock;

const PAIR: &str = r#"
name = "pair"

[recorded]
command = "a program"
seconds = 5.0
by = "bpf"
host = "a host"

[[process]]
name = "client"
recorded = { cpu = 0.4, switches_per_s = 10000, in_calls = 0.2, waited = 0.6 }

[[process]]
name = "server"
recorded = { cpu = 0.7, switches_per_s = 10000, in_calls = 0.2, waited = 0.3 }

[[flow]]
name = "query"
from = "client"
to = "server"
mechanism = "pipe"
size = "64"
reply = "64"
server_work = "20us"
recorded = { messages = 50000, per_s = 10000, client_waited = 0.6, server_waited = 0.3, partial_reads = 0, on_one_cpu = 0.5 }
"#;

/// Costs of two mechanisms, measured once for all tests.
fn costs() -> &'static str {
    static COSTS: OnceLock<String> = OnceLock::new();
    COSTS.get_or_init(|| {
        let place = Place::new();
        let what = ["run", "pipe", "unix-stream", "-s", "64", "-w", "latency"];
        let places = ["-p", "same-core", "-p", "same-llc|cross-llc|smt|cross-node"];
        let effort = ["--iterations", "30", "--rounds", "8", "-o", "costs.jsonl"];
        // Where there is one CPU alone, the second place is left out.
        run(&mut place.ipcmark(what.iter().chain(&places).chain(&effort))).expect(0);
        std::fs::read_to_string(place.path("costs.jsonl")).unwrap()
    })
}

fn predict(place: &Place, arguments: &[&str]) -> Said {
    place.file("pair.toml", PAIR);
    place.file("costs.jsonl", costs());
    run(&mut place.ipcmark(["predict", "pair.toml"].iter().chain(arguments)))
}

/// Slow: it measures what predictions rest on.
#[test]
fn a_prediction_begins_with_its_bounds_and_points_at_try() {
    let place = Place::new();
    let arguments = ["--set", "query=unix-stream", "--costs", "costs.jsonl"];
    let first = predict(&place, &arguments).expect(0);
    assert!(first.out.starts_with("'query' over unix-stream instead of pipe: between "), "{}", first.out);
    assert!(first.out.contains("'ipcmark try'"), "{}", first.out);
    assert!(first.out.lines().all(|line| line.chars().count() <= 80), "{}", first.out);
    assert_eq!(predict(&place, &arguments).expect(0).out, first.out);
    let json = predict(&place, &[&arguments[..], &["--format=json"]].concat()).expect(0).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    let bounds = &json["prediction"]["ratio_bounds"];
    assert!(bounds[0].as_f64() <= bounds[1].as_f64() && bounds[0].is_number(), "{json}");
}

/// Slow: it measures what predictions rest on.
#[test]
fn what_is_missing_is_measured() {
    let place = Place::new();
    let measured = ["--set", "query=pipe:capacity=4K", "--costs", "costs.jsonl", "--time", "6s"];
    let said = predict(&place, &measured).expect(0);
    assert!(said.out.contains("over pipe:capacity=4K instead of pipe"), "{}", said.out);
}

#[test]
fn wrong_input_is_refused_before_anything_is_measured() {
    let place = Place::new();
    for (arguments, says) in [
        (&["--set", "query"][..], "'query' names no flow and mechanism"),
        (&["--set", "querry=tcp"], "unknown flow 'querry'"),
        (&["--set", "query=tpc"], "unknown mechanism or operation 'tpc'"),
        (&["--set", "query=getpid"], "unknown mechanism or operation 'getpid'"),
        (&["--set", "query=memcpy"], "memcpy does not carry requests and replies"),
        (&["--set", "query=tcp", "--costs", "nowhere.jsonl"], "nowhere.jsonl cannot be read"),
        (&["--set", "query=tcp", "--costs", "pair.toml"], "pair.toml"),
        (&["--set", "query=tcp", "--time", "soon"], "soon"),
        (&[], "--set"),
    ] {
        let said = predict(&place, arguments).expect(2);
        assert!(said.err.contains(says), "{arguments:?}: {}", said.err);
    }
    place.file("broken.toml", "name = 1");
    let said = run(&mut place.ipcmark(["predict", "broken.toml", "--set", "query=tcp"])).expect(2);
    assert!(said.err.contains("broken.toml") && said.err.contains("line 1"), "{}", said.err);
}

#[test]
fn a_scenario_that_nobody_recorded_is_measured_by_replay() {
    let place = Place::new();
    let written: String =
        PAIR.lines().filter(|line| !line.starts_with("recorded =")).map(|line| format!("{line}\n")).collect();
    place.file("written.toml", &written);
    let said = run(&mut place.ipcmark(["predict", "written.toml", "--set", "query=tcp"])).expect(2);
    assert!(said.err.contains("'ipcmark replay written.toml --against"), "{}", said.err);
}
