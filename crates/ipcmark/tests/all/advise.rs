//! `ipcmark advise`: what it refuses, that it ends in its time, and that it never offers what the need excludes.

use crate::common::{Place, run};
use serde_json::Value;
use std::fs;

const FEW: [&str; 5] = ["pipe", "unix-stream", "unix-dgram", "-p", "unpinned"];

#[test]
fn bad_input_is_refused_with_status_2_and_leaves_nothing() {
    let place = Place::new();
    for arguments in [
        &["advise"][..],
        &["advise", "--pattern", "chat", "--size", "64"],
        &["advise", "--pattern", "stream"],
        &["advise", "--pattern", "signal", "--size", "64"],
        &["advise", "--pattern", "request-reply", "--size", "64", "--needs", "speed"],
        &["advise", "--pattern", "request-reply", "--size", "64", "pip"],
        &["advise", "--pattern", "request-reply", "--size", "64", "--svg", "."],
        &["advise", "none.toml"],
    ] {
        let said = run(&mut place.ipcmark(arguments));
        assert_eq!(said.status.code(), Some(2), "{arguments:?}: {said:?}");
        assert!(said.out.is_empty() && !said.err.is_empty(), "{arguments:?}");
    }
    place.assert_nothing_is_left("bad input");
}

#[test]
fn a_few_candidates_are_ranked_in_the_time_that_is_given() {
    let place = Place::new();
    let need =
        ["advise", "--pattern", "request-reply", "--size", "4K", "--needs", "boundaries", "--time", "2s"];
    let files = ["--format=json", "--html", "page.html", "--svg", "front.svg"];
    let said = run(&mut place.ipcmark(need.iter().chain(&FEW).chain(&files))).expect(0);
    let json: Value = serde_json::from_str(&said.out).unwrap();
    let advice = &json[0]["advice"];
    let ranked = advice["ranked"].as_array().unwrap();
    let names: Vec<&str> = ranked.iter().map(|one| one["spec"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["unix-dgram"]);
    let excluded = advice["excluded"].as_array().unwrap();
    for name in ["pipe", "unix-stream"] {
        let reason = excluded.iter().find(|one| one["mechanism"] == name).unwrap();
        assert_eq!(reason["reason"], "keeps no boundaries between messages");
    }
    assert!(fs::read_to_string(place.path("page.html")).unwrap().contains("Take unix-dgram"));
    assert!(fs::read_to_string(place.path("front.svg")).unwrap().contains("unix-dgram"));
    place.assert_nothing_is_left("advise");
}

#[test]
fn each_flow_of_a_scenario_has_an_answer() {
    let place = Place::new();
    place.file(
        "scenario.toml",
        r#"
name = "two flows"
[[process]]
name = "a"
[[process]]
name = "b"
[[flow]]
name = "ask"
from = "a"
to = "b"
mechanism = "unix-stream"
size = "64"
reply = "64"
fds = 1
[[flow]]
name = "tell"
from = "b"
to = "a"
mechanism = "pipe"
size = "1K"
"#,
    );
    let said =
        run(&mut place.ipcmark(["advise", "scenario.toml", "--time", "1s"].iter().chain(&FEW))).expect(0);
    assert!(said.out.contains("ask: request-reply of 64, with descriptors, order, reliable"), "{}", said.out);
    assert!(
        said.out.contains("tell: stream of 1K, with order, reliable, best in throughput"),
        "{}",
        said.out
    );
    assert!(said.out.contains("carries no descriptors: pipe"), "{}", said.out);
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{}", said.out);
}

#[test]
fn a_need_that_nothing_meets_says_so_with_status_1() {
    let place = Place::new();
    let need =
        ["advise", "--pattern", "stream", "--size", "64", "--needs", "hosts,descriptors", "--time", "1s"];
    let said = run(&mut place.ipcmark(need));
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(said.out.contains("No mechanism meets this need here"), "{}", said.out);
}
