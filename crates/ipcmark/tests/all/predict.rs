//! `ipcmark predict`: what it needs, what it says, and what it refuses. No number that was measured is tested here.

use crate::common::{Place, Said, run};
use serde_json::Value;
use std::sync::OnceLock;

const PAIR: &str = r#"
name = "pair"

[[process]]
name = "client"

[[process]]
name = "server"

[[flow]]
name = "query"
from = "client"
to = "server"
mechanism = "pipe"
size = "64"
reply = "64"
server_work = "20us"
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
fn a_prediction_begins_with_its_sentence_and_a_seed_gives_it_again() {
    let place = Place::new();
    let arguments = ["--set", "query=unix-stream", "--costs", "costs.jsonl"];
    let first = predict(&place, &arguments).expect(0);
    assert!(first.out.starts_with("'query' over unix-stream instead of pipe: round trip "), "{}", first.out);
    assert!(first.out.lines().all(|line| line.chars().count() <= 80), "{}", first.out);
    assert_eq!(predict(&place, &arguments).expect(0).out, first.out);
    assert_ne!(predict(&place, &[&arguments[..], &["--seed", "2"]].concat()).expect(0).out, first.out);
    let json = predict(&place, &[&arguments[..], &["--format=json"]].concat()).expect(0).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    let trip = &json["prediction"]["flows"][0]["round_trip_ns"];
    let (low, high) = (&trip["ratio_interval"][0], &trip["ratio_interval"][1]);
    assert!(low.as_f64() < trip["ratio"].as_f64() && trip["ratio"].as_f64() < high.as_f64(), "{trip}");
}

/// Slow: it measures what predictions rest on.
#[test]
fn missing_cases_are_named_and_measured_on_request() {
    let place = Place::new();
    let said = predict(&place, &["--set", "query=pipe:capacity=4K", "--costs", "costs.jsonl"]).expect(2);
    for words in ["pipe:capacity=4K latency 64 on one CPU", "--measure 60s measures them", "--costs"] {
        assert!(said.err.contains(words), "{}", said.err);
    }
    let measured = ["--set", "query=pipe:capacity=4K", "--costs", "costs.jsonl", "--measure", "6s"];
    assert!(predict(&place, &measured).expect(0).out.contains("pipe:capacity=4K latency, one CPU"));
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
        (&["--set", "query=tcp", "--measure", "soon"], "soon"),
        (&[], "--set"),
    ] {
        let said = predict(&place, arguments).expect(2);
        assert!(said.err.contains(says), "{arguments:?}: {}", said.err);
    }
    place.file("broken.toml", "name = 1");
    let said = run(&mut place.ipcmark(["predict", "broken.toml", "--set", "query=tcp"])).expect(2);
    assert!(said.err.contains("broken.toml") && said.err.contains("line 1"), "{}", said.err);
}
