//! Endpoints that are other programs: the drivers that come with the program are built, keep the protocol and are measured; one that breaks a rule is
//! found out; and whatever dies, nothing is left.

use crate::common::{GONE_WITHIN, Place, Running, Said, asked, error, has, read, run, skip, wait_until};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::process::Command;
use std::thread;

/// The endpoint that 'ipcmark driver new python' writes.
const TEMPLATE: &str = include_str!("../../../../drivers/python/template.py");

/// `ipcmark` with `words` in `place`, where drivers are the place's own.
fn ipcmark(place: &Place, words: &[&str]) -> Command {
    let mut command = place.ipcmark(words);
    command.env("XDG_DATA_HOME", place.path("data"));
    command
}

/// The template, changed.
fn changed(from: &str, to: &str) -> String {
    assert!(TEMPLATE.contains(from), "{from}");
    TEMPLATE.replace(from, to)
}

fn has_python() -> bool {
    has("python3", "python3", "endpoints that are other programs")
}

/// Slow: it starts the driver a hundred times.
#[test]
fn the_driver_in_c_is_measured() {
    is_built_keeps_the_protocol_and_is_measured("c", "cc", "gcc");
}

/// Slow: it starts the driver a hundred times.
#[test]
fn the_driver_in_go_is_measured() {
    // go itself has no --version.
    is_built_keeps_the_protocol_and_is_measured("go", "true", "golang-go");
}

/// Slow: it starts the driver a hundred times.
#[test]
fn the_driver_in_java_is_measured() {
    is_built_keeps_the_protocol_and_is_measured("java", "javac", "default-jdk-headless");
}

/// Slow: it starts the driver a hundred times.
#[test]
fn the_driver_in_node_is_measured() {
    is_built_keeps_the_protocol_and_is_measured("node", "node", "nodejs");
}

/// Slow: it starts the driver a hundred times.
#[test]
fn the_driver_in_python_is_measured() {
    is_built_keeps_the_protocol_and_is_measured("python", "python3", "python3");
}

/// Builds the driver `name`, where its `program` is here, which is of `package`; checks it, and measures with it.
fn is_built_keeps_the_protocol_and_is_measured(name: &str, program: &str, package: &str) {
    if !has(program, package, &format!("the driver {name}")) {
        return;
    }
    let place = Place::new();
    let built = run(&mut ipcmark(&place, &["driver", "build", name])).expect(0);
    let directory = place.path("data/ipcmark/drivers").join(name);
    assert!(built.out.contains(directory.to_str().unwrap()), "{built}");
    let listed = run(&mut ipcmark(&place, &["driver", "list"])).expect(0);
    assert!(listed.out.contains("\n          built\n"), "{listed}");
    let words = match name {
        "python" => vec!["python3".to_owned(), directory.join("driver.py").display().to_string()],
        "node" => vec!["node".to_owned(), directory.join("driver.js").display().to_string()],
        "java" => ["java", "-XX:+UseSerialGC", "-cp", directory.to_str().unwrap(), "Driver"]
            .map(str::to_owned)
            .to_vec(),
        _ => vec![directory.join("driver").display().to_string()],
    };
    let words: Vec<&str> =
        ["endpoint", "check"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let said = run(&mut ipcmark(&place, &words)).expect(0);
    assert!(said.out.lines().count() > 15 && !said.out.contains("failed"), "{said}");
    let cases = [format!("{name}/pipe"), format!("{name}+ipcmark/tcp"), format!("ipcmark+{name}/pipe")];
    let [a, b, c] = cases.each_ref().map(String::as_str);
    let line =
        ["run", a, b, c, "-s", "64", "-p", "unpinned", "--rounds", "2", "--time", "60s", "-o", "x.jsonl"];
    run(&mut ipcmark(&place, &line)).expect(0);
    let results = read(&place.path("x.jsonl"));
    let measured: BTreeSet<String> = asked(&results).map(|record| record.case.spec.to_string()).collect();
    assert_eq!(measured, cases.into_iter().collect());
    for record in asked(&results) {
        assert_eq!(error(record), None);
        assert!(record.samples.iter().all(|sample| sample.client.cpu_ns > 0), "{}", record.case);
    }
    place.assert_nothing_is_left("a run of drivers");
}

/// Middleware is another package, from PyPI: without a network there is none, and that is said.
/// Slow: it installs packages.
#[test]
fn middleware_is_measured_and_its_daemons_end_with_the_run() {
    for (name, daemon, mechanism) in
        [("zeromq", "python3", "zeromq-ipc"), ("dbus", "dbus-daemon", "dbus-call")]
    {
        if !has(daemon, daemon, &format!("the driver {name}")) {
            continue;
        }
        let place = Place::new();
        let built = run(&mut ipcmark(&place, &["driver", "build", name]));
        if built.err.contains("pip") || built.err.contains("No matching distribution") {
            skip(
                "packages of PyPI cannot be installed here; give this host a network",
                &format!("the driver {name}"),
            );
            continue;
        }
        let built = built.expect(0);
        assert!(built.out.contains(name), "{built}");
        let directory = place.path("data/ipcmark/drivers").join(name);
        let [python, file] =
            ["venv/bin/python", "driver.py"].map(|file| directory.join(file).display().to_string());
        let said = run(&mut ipcmark(&place, &["endpoint", "check", &python, &file])).expect(0);
        assert!(said.out.contains(mechanism) && !said.out.contains("failed"), "{said}");
        let case = format!("{name}/{mechanism}");
        let line =
            ["run", &case, "-s", "64", "-p", "unpinned", "--rounds", "2", "--time", "60s", "-o", "x.jsonl"];
        run(&mut ipcmark(&place, &line)).expect(0);
        assert!(asked(&read(&place.path("x.jsonl"))).all(|record| error(record).is_none()));
        place.assert_nothing_is_left("a run of middleware");
        let line = ["run", &case, "-s", "64", "--time", "600s"];
        let running = Running::start(&mut ipcmark(&place, &line));
        let is_at_work = || {
            let of = |process: &crate::common::Process| process.command.iter().any(|word| word == &file);
            place.processes().iter().filter(|process| of(process)).count() >= 2
        };
        assert!(wait_until(GONE_WITHIN, is_at_work));
        running.signal(Signal::KILL);
        running.finish();
        place.assert_nothing_is_left("a run of middleware that was killed");
    }
}

/// What an endpoint may do wrong, and how the template does it.
const MUTANTS: [(&str, &str, &str); 13] = [
    ("it speaks another version", "\"version\": 3", "\"version\": 2"),
    ("its payload is wrong", "0x9E3779B97F4A7C15", "0x8E3779B97F4A7C15"),
    ("it notices no damage", "fail(f\"message {number} came changed, or another in its place\")", "pass"),
    ("it is never connected", "say(\"connected\")", "pass"),
    ("it is never ready", "        say(\"ready\")", "        pass"),
    ("it acknowledges nothing", "            second(number, 1, check)", "            pass"),
    ("it takes any orders", "if orders[\"mechanism\"] != \"pipe\" or orders[\"parameters\"]:", "if False:"),
    (
        "it outlives the coordinator",
        "    if len(length) < 4:\n        sys.exit()",
        "    while len(length) < 4:\n        time.sleep(1)",
    ),
    ("it takes no time", "\"elapsed_ns\": elapsed_ns", "\"elapsed_ns\": elapsed_ns / 1e9"),
    ("it takes more time than there was", "\"elapsed_ns\": elapsed_ns", "\"elapsed_ns\": elapsed_ns * 1000"),
    (
        "it waits for a peer that is gone",
        "            fail(\"the peer has closed\")",
        "            time.sleep(600)",
    ),
    ("it numbers from the start again", "            number += 1\n", "            number += 2\n"),
    (
        "it answers a transfer in full",
        "answer = size if orders[\"workload\"] == \"latency\" else 1",
        "answer = size",
    ),
];

/// Slow: it waits for endpoints that say nothing.
#[test]
fn an_endpoint_that_breaks_a_rule_is_found_out() {
    if !has_python() {
        return;
    }
    let place = Place::new();
    place.file("right.py", TEMPLATE);
    let said = run(&mut ipcmark(&place, &["endpoint", "check", "python3", "right.py"])).expect(0);
    assert!(!said.out.contains("failed"), "{said}");
    thread::scope(|scope| {
        let check = |(at, (rule, from, to)): (usize, &(&str, &str, &str))| {
            let name = format!("{at}.py");
            place.file(&name, changed(from, to));
            let mut command = ipcmark(&place, &["endpoint", "check", "python3", &name]);
            (rule.to_string(), scope.spawn(move || run(&mut command)))
        };
        let checks: Vec<_> = MUTANTS.iter().enumerate().map(check).collect();
        for (rule, check) in checks {
            let said: Said = check.join().unwrap();
            assert!(said.out.contains("\nfailed") || said.out.starts_with("failed"), "{rule}: {said}");
            assert!(!said.out.contains("this bug"), "{rule}: {said}");
        }
    });
    place.assert_nothing_is_left("checks of endpoints that are wrong");
}

/// Slow: it measures again and again.
#[test]
fn times_that_the_coordinator_did_not_see_are_not_believed() {
    if !has_python() {
        return;
    }
    let place = Place::new();
    place.file("short.py", changed("\"elapsed_ns\": elapsed_ns", "\"elapsed_ns\": elapsed_ns / 100"));
    let line = [
        "pipe",
        "--endpoint",
        "python3 short.py",
        "-s",
        "1",
        "-p",
        "unpinned",
        "--time",
        "60s",
        "--iterations",
        "20000",
    ];
    let said = run(&mut ipcmark(&place, &line)).expect(1);
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("by the clock of the coordinator"), "{said}");
}

#[test]
fn what_a_driver_does_not_have_is_left_out_with_the_reason() {
    if !has_python() {
        return;
    }
    let place = Place::new();
    let said = run(&mut ipcmark(&place, &["python/pipe"])).expect(2);
    assert!(
        said.err.contains("is not built here") && said.err.contains("ipcmark driver build python"),
        "{said}"
    );
    run(&mut ipcmark(&place, &["driver", "build", "python"])).expect(0);
    let said = run(&mut ipcmark(&place, &["python/eventfd"])).expect(2);
    assert!(said.err.contains("the driver python has no eventfd; it has pipe"), "{said}");
    let said = run(&mut ipcmark(&place, &["explain", "python/pipe", "pipe"])).expect(2);
    assert!(said.err.contains("'run' and 'compare' alone"), "{said}");
    for (line, why) in [
        (["nosuch/pipe", "-s", "1"], "the driver nosuch is not built here"),
        (["Python/pipe", "-s", "1"], "is no name of a driver"),
        (["python/pip", "-s", "1"], "pipe"),
    ] {
        let said = run(&mut ipcmark(&place, &line)).expect(2);
        assert!(said.err.contains(why), "{said}");
    }
    let said =
        run(&mut ipcmark(&place, &["run", "pipe", "--endpoint", "sh -c 'echo no such thing >&2; exit 3'"]))
            .expect(2);
    assert!(said.err.contains("no such thing") && said.err.contains("endpoint check"), "{said}");
}

#[test]
fn a_driver_of_ones_own_begins_with_one_that_works() {
    if !has_python() {
        return;
    }
    let place = Place::new();
    let said = run(&mut ipcmark(&place, &["driver", "new", "python", "mine"])).expect(0);
    assert!(said.out.contains("ipcmark endpoint check python3 template.py"), "{said}");
    run(&mut ipcmark(&place, &["endpoint", "check", "python3", "mine/template.py"])).expect(0);
    run(&mut ipcmark(&place, &["driver", "new", "python", "mine"])).expect(2);
    // The document promises that one of latency is written in 120 lines, with streams in 160.
    assert!(TEMPLATE.lines().count() <= 120);
}

/// Slow: it waits until nothing is left.
#[test]
fn a_coordinator_that_is_killed_leaves_no_driver() {
    if !has_python() {
        return;
    }
    for signal in [Signal::KILL, Signal::INT] {
        let place = Place::new();
        place.file("right.py", TEMPLATE);
        let line = ["run", "pipe", "--endpoint", "python3 right.py", "-s", "1", "--time", "600s"];
        let running = Running::start(&mut ipcmark(&place, &line));
        let drivers = || {
            place
                .processes()
                .iter()
                .filter(|process| process.command.iter().any(|word| word == "right.py"))
                .count()
        };
        assert!(wait_until(GONE_WITHIN, || drivers() >= 2));
        running.signal(signal);
        running.finish();
        place.assert_nothing_is_left("a run with drivers that was ended");
    }
}
