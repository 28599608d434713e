//! Numbers of scenario files at their extremes: what cannot be is refused with the name of its field, and whatever is taken is run or
//! computed to an end. No number that comes out is tested here.

use crate::common::{Place, Said, run};

/// A scenario in which each number of the form is written once.
const ALL: &str = r#"name = "extremes"
[recorded]
command = "x"
seconds = 1.0
by = "bpf"
host = "h"
slowdown = 0.05
slowdown_interval = [0.04, 0.06]
[[process]]
name = "a"
cpus = [0]
[process.recorded]
cpu = 0.5
switches_per_s = 100.0
in_calls = 0.1
waited = 0.1
[[process]]
name = "b"
[[process]]
name = "c"
[[flow]]
name = "f"
from = "a"
to = "b"
mechanism = "unix-stream"
size = "64"
reply = "64"
messages = 1
fds = 0
think_time = "0"
client_work = "0"
server_work = "0"
[flow.recorded]
messages = 100
per_s = 100.0
round_trip = "10us"
client_waited = 0.1
server_waited = 0.1
partial_reads = 0.0
on_one_cpu = 0.5
[[flow]]
name = "g"
from = "b"
to = "a"
mechanism = "pipe"
size = "64"
read = "64"
rate = "100"
[[flow]]
name = "h"
from = "b"
to = "c"
mechanism = "pipe"
size = "64"
reply = "64"
after = "f"
per_message = 1.0
"#;

/// What numbers are in TOML.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-1",
    "nan",
    "inf",
    "1e308",
    "1e-308",
    "-0.0",
];
const SIZES: &[&str] = &[
    "0",
    "1",
    "4294967295",
    "18446744073709551615",
    "16777216G",
    "99999999999999999999",
    "-1",
    "NaN",
    "1e308",
    "",
    "1:0.001%,2:99.999%",
    "1:50%",
];
const TIMES: &[&str] = &[
    "0",
    "1ns",
    "4294967295ns",
    "18446744073709551615ns",
    "18446744073709551616ns",
    "584y",
    "9999999999y",
    "-1s",
    "NaN",
    "1e308s",
    "",
    "1ns:0.001%,584y:99.999%",
];
const RATES: &[&str] = &[
    "0",
    "1",
    "100M",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "-1",
    "NaN",
    "1e308",
    "1e-308",
    "",
    "100M-poisson",
];

/// Each field with the line that has its number, and what stands there instead.
const FIELDS: &[(&str, &str, &[&str])] = &[
    ("seconds", "seconds = 1.0", NUMBERS),
    ("slowdown", "slowdown = 0.05", NUMBERS),
    ("slowdown_interval", "slowdown_interval = [0.04,", NUMBERS),
    ("cpus", "cpus = [0]", NUMBERS),
    ("cpu", "cpu = 0.5", NUMBERS),
    ("switches_per_s", "switches_per_s = 100.0", NUMBERS),
    ("in_calls", "in_calls = 0.1", NUMBERS),
    ("waited", "\nwaited = 0.1", NUMBERS),
    ("size", "size = \"64\"", SIZES),
    ("reply", "reply = \"64\"", SIZES),
    ("read", "read = \"64\"", SIZES),
    ("messages", "messages = 1\n", NUMBERS),
    ("fds", "fds = 0", NUMBERS),
    ("think_time", "think_time = \"0\"", TIMES),
    ("client_work", "client_work = \"0\"", TIMES),
    ("server_work", "server_work = \"0\"", TIMES),
    ("messages", "messages = 100", NUMBERS),
    ("per_s", "\nper_s = 100.0", NUMBERS),
    ("round_trip", "round_trip = \"10us\"", TIMES),
    ("client_waited", "client_waited = 0.1", NUMBERS),
    ("server_waited", "server_waited = 0.1", NUMBERS),
    ("partial_reads", "partial_reads = 0.0", NUMBERS),
    ("on_one_cpu", "on_one_cpu = 0.5", NUMBERS),
    ("rate", "rate = \"100\"", RATES),
    ("per_message", "per_message = 1.0", NUMBERS),
];

/// `ALL` with `value` in the line of a field.
fn with(line: &str, value: &str) -> String {
    let at = line.find(|c: char| c.is_ascii_digit()).unwrap();
    let end = line[at..].find(|c: char| !c.is_ascii_digit() && c != '.' && c != 'u' && c != 's');
    let end = end.map_or(line.len(), |length| at + length);
    assert!(ALL.contains(line), "{line}");
    ALL.replacen(line, &format!("{}{value}{}", &line[..at], &line[end..]), 1)
}

/// Fails unless `said` is an end that somebody can do something with; says whether it was a refusal, which names `field`.
fn is_refusal(said: &Said, field: &str, value: &str) -> bool {
    assert!(!said.err.contains("panicked"), "{field} = {value}: {said}");
    let code = said.status.code();
    assert!(matches!(code, Some(0..=2)), "{field} = {value}: {said}");
    assert!(code != Some(2) || said.err.contains(field), "{field} = {value}: {said}");
    code == Some(2)
}

/// Slow: some 300 scenarios are read, and a third of them run.
#[test]
fn every_number_is_taken_or_refused_by_its_name() {
    let place = Place::new();
    let (mut taken, mut refused) = (0, 0);
    for (field, line, values) in FIELDS {
        for value in *values {
            place.file("s.toml", with(line, value));
            let said = run(&mut place.ipcmark(["replay", "s.toml", "--time", "50ms", "--timeout", "60s"]));
            *if is_refusal(&said, field, value) { &mut refused } else { &mut taken } += 1;
            if said.err.contains("the scenario is not valid at line") {
                for command in [&["predict", "s.toml", "--set", "f=tcp"][..], &["advise", "s.toml"]] {
                    assert!(
                        is_refusal(&run(&mut place.ipcmark(command)), field, value),
                        "{field} = {value}: {command:?}"
                    );
                }
            }
        }
    }
    assert!(taken > FIELDS.len() && refused > 3 * FIELDS.len(), "{taken} taken, {refused} refused");
    place.assert_nothing_is_left("after scenarios with extremes");
}

#[test]
fn there_may_be_as_many_processes_and_flows_as_is_said_and_no_more() {
    let place = Place::new();
    let pair = |at: usize| {
        format!(
            "[[process]]\nname = \"p{at}\"\n[[flow]]\nname = \"f{at}\"\nfrom = \"p{at}\"\nto = \"sink\"\nmechanism = \"pipe\"\nsize = \"1\"\n"
        )
    };
    let with_pairs = |count: usize| {
        let pairs: String = (0..count).map(pair).collect();
        format!("name = \"many\"\n[[process]]\nname = \"sink\"\n{pairs}")
    };
    for (text, says) in [
        ("name = \"none\"\nprocess = []\nflow = []\n".to_owned(), "there is no process"),
        (with_pairs(0), "flow"),
        (with_pairs(256), "more than 256 of kind process"),
        (with_pairs(20_000), "longer than 1048576 bytes"),
    ] {
        place.file("s.toml", text);
        for command in
            [&["replay", "s.toml"][..], &["predict", "s.toml", "--set", "f0=tcp"], &["advise", "s.toml"]]
        {
            let said = run(&mut place.ipcmark(command)).expect(2);
            assert!(said.err.contains(says), "{says}: {said}");
        }
    }
}

/// Slow: costs are measured.
#[test]
fn what_is_taken_is_predicted_and_advised() {
    let place = Place::new();
    let what = ["run", "unix-stream", "pipe", "tcp", "-s", "64,128", "-w", "latency,throughput"];
    let places = ["-p", "same-core", "-p", "same-llc|cross-llc|smt|cross-node", "-p", "unpinned"];
    let effort = ["--iterations", "30", "--rounds", "8", "-o", "costs.jsonl"];
    run(&mut place.ipcmark(what.iter().chain(&places).chain(&effort))).expect(0);
    for (field, line, value) in [
        ("think_time", "think_time = \"0\"", "18446744073709551615ns"),
        ("client_work", "client_work = \"0\"", "1ns:0.001%,584y:99.999%"),
        ("rate", "rate = \"100\"", "100M-poisson"),
        ("per_message", "per_message = 1.0", "5e-324"),
        ("messages", "messages = 1\n", "1000"),
        ("per_s", "\nper_s = 100.0", "1e12"),
        ("slowdown", "slowdown = 0.05", "1e6"),
        ("cpu", "cpu = 0.5", "1e12"),
    ] {
        let text = with(line, value);
        assert!(text.contains(value));
        place.file("s.toml", text);
        let predict = ["predict", "s.toml", "--set", "f=tcp", "--costs", "costs.jsonl", "--format=json"];
        let said = run(&mut place.ipcmark(predict));
        assert!(!is_refusal(&said, field, value), "{field} = {value}: {said}");
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert!(json["prediction"]["flows"].as_array().is_some_and(|flows| flows.len() == 3), "{said}");
    }
    for (field, line, value) in [("size", "size = \"64\"", "1G"), ("rate", "rate = \"100\"", "100M")] {
        place.file("s.toml", with(line, value));
        let said = run(&mut place.ipcmark(["advise", "s.toml", "tcp", "--time", "200ms"]));
        assert!(!is_refusal(&said, field, value), "{said}");
    }
}
