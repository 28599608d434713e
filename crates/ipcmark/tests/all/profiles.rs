//! Runs whose study draws what probes see: the trials with probes, what is drawn of them, and what is said where
//! they cannot be had.

use crate::common::{Place, read, run, skip};
use model::observation::Probe;
use model::record::{Fact, Results};
use serde_json::Value;
use std::fs;

/// A pipe of a size that is nobody else's, drawn by what tracepoints see of it.
const SUITE: &str = r#"name = "seen"
summary = "what probes see of a pipe"
precision = "50%"
time = "2s"
observe = "6s"
rounds = 8

[[block]]
mechanisms = ["pipe", "eventfd"]
workloads = ["latency"]
sizes = "777"
placements = ["same-core"]

[[block]]
mechanisms = ["file-pass"]
workloads = ["session"]
sizes = "777"
placements = ["same-core"]

[study]
title = "T"
source = "S"
[study.cases]
pipe = "pipe"
file = "file-pass"

[[study.table]]
name = "Calls"
title = "of an iteration"
columns = ["client writes", "server reads", "bytes"]
rows = [
    { name = "pipe", cells = ["observed.client.write.calls of pipe", "observed.server.read.calls of pipe", "observed.client.read.bytes of pipe"] },
    { name = "file", cells = ["observed.client.write.calls of file", "observed.server.read.calls of file", "observed.server.read.bytes of file"] },
]

[[study.figure]]
name = "Figure 1"
title = "an iteration"
timeline = "pipe"
"#;

/// What is drawn of a run of [`SUITE`] with `more` arguments, and the place where it is kept.
fn report_of(more: &[&str]) -> (Place, Value) {
    let place = Place::new();
    fs::write(place.path("seen.toml"), SUITE).unwrap();
    let (suite, file) = (place.path("seen.toml"), place.path("r.jsonl"));
    let words = ["run", suite.to_str().unwrap(), "--format", "json", "-o", file.to_str().unwrap()];
    let said = run(&mut place.ipcmark(words.iter().chain(more))).expect(0);
    let all: Value = serde_json::from_str(&said.out).unwrap();
    (place, all["study"].clone())
}

/// Why the first profile that is missing is missing.
fn refusal(results: &Results) -> Option<String> {
    results.profiles.iter().find_map(|profile| match &profile.profile {
        Fact::Unknown(reason) => Some(reason.clone()),
        Fact::Known(_) => None,
    })
}

/// The cells of the first table of a study.
fn cells(study: &Value) -> impl Iterator<Item = &Value> {
    let rows = study["tables"][0]["rows"].as_array().unwrap();
    rows.iter().flat_map(|row| row["cells"].as_array().unwrap())
}

/// A run of [`SUITE`] with so much time for probes that each has had some, however busy the host is.
fn observed() -> (Place, Value, Results) {
    let mut times = ["6s", "60s", "5m"].into_iter();
    loop {
        let (place, study) = report_of(&["--observe", times.next().unwrap()]);
        let results = read(&place.path("r.jsonl"));
        let had_time = match refusal(&results) {
            Some(reason) => !reason.contains("time"),
            // Of a case whose turn never came there is no profile.
            None => cells(&study).all(|cell| cell["missing"].is_null()),
        };
        if times.len() == 0 || had_time {
            return (place, study, results);
        }
    }
}

/// Slow: a run with probes takes seconds, and more where the host is busy.
#[test]
fn a_study_counts_the_calls_of_an_iteration_exactly() {
    let (place, study, results) = observed();
    // Nothing draws the eventfd, so that no probe observes it; no profile is among the records.
    assert!(results.profiles.iter().all(|profile| profile.case.spec.name != "eventfd"));
    let mut cases = results.records.iter().filter(|record| !record.floor);
    assert!(cases.all(|record| record.samples.len() <= 8));
    let refused = refusal(&results);
    if let Some(reason) = refused {
        assert!(reason.contains("; "), "it has no next step: {reason}");
        assert!(
            study["tables"][0]["rows"][0]["cells"][0]["missing"]
                .as_str()
                .unwrap_or_else(|| panic!("{reason}: {}", study["tables"][0]))
                .contains(&reason)
        );
        return skip(&reason, "what a study draws of tracepoints is not tested");
    }
    // Five messages make a session.
    for (row, expected) in [[1.0, 1.0, 777.0], [5.0, 5.0, 777.0]].into_iter().enumerate() {
        let cells = study["tables"][0]["rows"][row]["cells"].as_array().unwrap();
        let medians: Vec<f64> = cells.iter().map(|cell| cell["value"]["median"].as_f64().unwrap()).collect();
        assert_eq!(medians, expected);
    }
    let rounds = |probe| results.profiles.iter().filter(|profile| profile.probe == probe).count();
    assert!(rounds(Probe::Syscalls) > 0 && rounds(Probe::Timeline) > 0 && rounds(Probe::Scheduler) == 0);

    let iterations = study["figures"][0]["timeline"]["iterations"].as_array().unwrap();
    assert_eq!(iterations.last().unwrap()["tracks"]["client"]["calls"][0]["name"], "write");
    let pictures = place.path("pictures");
    fs::create_dir(&pictures).unwrap();
    let directory = pictures.to_str().unwrap();
    let file = place.path("r.jsonl");
    let made = run(&mut place.ipcmark([
        "report",
        file.to_str().unwrap(),
        "--svg",
        directory,
        "--traces",
        directory,
    ]));
    let made = made.expect(0).out;
    for name in ["figure-1-iteration-1.svg", "pipe-latency-777-same-core.json"] {
        assert!(made.contains(name) && pictures.join(name).exists(), "{name}: {made}");
    }
    let table = run(&mut place.ipcmark(["report", file.to_str().unwrap(), "--detail"])).expect(0).out;
    assert!(table.contains("drawn with --html and --svg"), "{table}");
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_run_without_probes_says_how_to_have_them() {
    let (place, study) = report_of(&["--observe", "0s"]);
    assert!(read(&place.path("r.jsonl")).profiles.is_empty());
    let missing = study["tables"][0]["rows"][0]["cells"][0]["missing"].as_str().unwrap();
    assert!(missing.contains("give it time for them with --observe"), "{missing}");
    let file = place.path("r.jsonl");
    let said = run(&mut place.ipcmark(["report", file.to_str().unwrap(), "--traces", "."])).expect(2);
    assert!(said.err.contains("there are no traces"), "{}", said.err);
}

#[test]
fn a_dry_run_says_what_probes_will_observe() {
    let place = Place::new();
    fs::write(place.path("seen.toml"), SUITE).unwrap();
    let suite = place.path("seen.toml");
    let said = run(&mut place.ipcmark(["run", suite.to_str().unwrap(), "--dry-run"])).expect(0).out;
    assert!(said.contains("then probes observe 2 cases, at most 6 s"), "{said}");
    assert!(said.contains("probe  pipe latency 777 same-core: syscalls, timeline"), "{said}");
    // A shorter run observes for a shorter time.
    let said =
        run(&mut place.ipcmark(["run", suite.to_str().unwrap(), "--dry-run", "--time", "1s"])).expect(0).out;
    assert!(said.contains("at most 3 s\n"), "{said}");
}
