//! Endpoints that are other programs: the drivers that come with the program are built, keep the protocol and are measured; one that breaks a rule is
//! found out; and whatever dies, nothing is left.

use crate::common::{
    GONE_WITHIN, Place, Running, Said, asked, error, has, read, run, skip, tool_is_missing, wait_until,
};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::process::Command;
use std::thread;

/// The endpoint that 'ipcmark driver new python' writes.
pub const TEMPLATE: &str = include_str!("../../../../drivers/python/template.py");

/// `ipcmark` with `words` in `place`, where drivers are the place's own.
pub fn ipcmark(place: &Place, words: &[&str]) -> Command {
    let mut command = place.ipcmark(words);
    command.env("XDG_DATA_HOME", place.path("data"));
    command
}

/// The template, changed.
fn changed(from: &str, to: &str) -> String {
    assert!(TEMPLATE.contains(from), "{from}");
    TEMPLATE.replace(from, to)
}

pub fn has_python() -> bool {
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
        "python" => {
            ["venv/bin/python", "driver.py"].map(|file| directory.join(file).display().to_string()).to_vec()
        }
        "node" => vec!["node".to_owned(), directory.join("driver.js").display().to_string()],
        "java" => {
            let program = directory.join("driver.jar").display().to_string();
            vec!["java".to_owned(), "-XX:+UseSerialGC".to_owned(), "-jar".to_owned(), program]
        }
        _ => vec![directory.join("driver").display().to_string()],
    };
    let words: Vec<&str> =
        ["endpoint", "check"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let said = run(&mut ipcmark(&place, &words)).expect(0);
    assert!(said.out.lines().count() > 15 && !said.out.contains("failed"), "{said}");
    let cases = ["{}/pipe", "{}+ipcmark/tcp", "ipcmark+{}/pipe", "{}/udp"].map(|of| of.replace("{}", name));
    let [a, b, c, d] = cases.each_ref().map(String::as_str);
    let line =
        ["run", a, b, c, d, "-s", "64", "-p", "unpinned", "--rounds", "2", "--time", "60s", "-o", "x.jsonl"];
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

/// Slow: it builds five drivers.
#[test]
fn what_a_codec_makes_in_one_language_is_understood_in_another() {
    let place = Place::new();
    for (name, program, package) in [
        ("c", "cc", "gcc libcjson-dev libmsgpack-dev libssl-dev"),
        ("cpp", "c++", "g++ nlohmann-json3-dev libssl-dev"),
        ("go", "true", "golang-go"),
        ("node", "node", "nodejs"),
        ("python", "python3", "python3"),
    ] {
        if !has(program, package, "codecs between languages") {
            return;
        }
        let built = run(&mut ipcmark(&place, &["driver", "build", name])).expect(0);
        if built.to_string().contains("without codecs") {
            tool_is_missing("its library", package, &format!("codecs of the driver {name}"));
            return;
        }
    }
    let cases = [
        "c+node/pipe:codec=json",
        "node+cpp/pipe:codec=json",
        "cpp+python/pipe:codec=json",
        "python+go/pipe:codec=json",
        "go+c/pipe:codec=json",
        "c+cpp/pipe:codec=msgpack",
        "cpp+c/pipe:codec=msgpack",
    ];
    let mut line = vec!["run"];
    line.extend(cases);
    line.extend(["-s", "100", "-p", "unpinned", "--rounds", "1", "--check", "-o", "x.jsonl"]);
    run(&mut ipcmark(&place, &line)).expect(0);
    let results = read(&place.path("x.jsonl"));
    assert_eq!(asked(&results).filter(|record| error(record).is_none()).count(), cases.len());
    place.assert_nothing_is_left("a run of codecs");
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
            let runs_it = |process: &crate::common::Process| process.command.iter().any(|word| word == &file);
            place.processes().iter().filter(|process| runs_it(process)).count() >= 2
        };
        assert!(wait_until(GONE_WITHIN, is_at_work));
        running.signal(Signal::KILL);
        running.finish();
        place.assert_nothing_is_left("a run of middleware that was killed");
    }
}

/// What an endpoint may do wrong, how the template does it, and what is then said.
const MUTANTS: &[[&str; 4]] = &[
    ["it speaks another version", "\"version\": 3", "\"version\": 2", "it speaks version 2"],
    ["its lengths are big-endian", "\"<I\", len(body)", "\">I\", len(body)", "the length is little-endian"],
    [
        "it prints where messages go",
        "hear()\nMECHANISMS",
        "print(\"starting\", flush=True)\nhear()\nMECHANISMS",
        "it printed 'starting' on standard output, which is for messages only",
    ],
    [
        "it says nothing",
        "    os.write(1, struct.pack(\"<I\", len(body)) + body)",
        "    pass",
        "it says nothing for 10 s; is what it writes flushed?",
    ],
    [
        "its mechanisms are names alone",
        "\"mechanisms\": MECHANISMS",
        "\"mechanisms\": [\"pipe\"]",
        "hello.mechanisms[0]: invalid type: string \"pipe\", expected an object",
    ],
    [
        "its payload is wrong",
        "0x9E3779B97F4A7C15",
        "0x8E3779B97F4A7C15",
        "byte 8 of message 0 is 0x71, and should be 0xf1",
    ],
    [
        "it numbers from 1",
        "\"<Q\", number)",
        "\"<Q\", number + 1)",
        "message 0 begins with the number 1, and should with 0",
    ],
    [
        "its numbers are big-endian",
        "\"<Q\", number)",
        "\">Q\", number)",
        "message 1 begins with the number 72057594037927936, and should with 1",
    ],
    [
        "it leaves out every second number",
        "            number += 1\n",
        "            number += 2\n",
        "message 1 begins with the number 2, and should with 1",
    ],
    [
        "it notices no damage",
        "fail(f\"message {number} came changed, or another in its place\")",
        "pass",
        "it says that the phase is done, though byte 99 of message 7 was changed",
    ],
    [
        "it verifies half of a number",
        "held = size if check else min(size, 8)",
        "held = size if check else min(size, 4)",
        "though byte 6 of message 7, which is of its number, was changed",
    ],
    [
        "it reads a message once",
        "    while len(message) < size:",
        "    if size:",
        "(messages of 262144 bytes may come in parts)",
    ],
    [
        "it is never connected",
        "say(\"connected\")",
        "pass",
        "it does not say \"connected\" within 10 s of its orders",
    ],
    [
        "it is never ready",
        "        say(\"ready\")",
        "        pass",
        "it does not say \"ready\" within 10 s of the phase",
    ],
    [
        "it acknowledges nothing",
        "            second(number, 1, check)",
        "            pass",
        "0 of 1 bytes of the acknowledgement after message 0 came, and nothing more for 10 s",
    ],
    [
        "it does not wait for an acknowledgement",
        "if stretch.get(\"acknowledged\"):",
        "if stretch.get(\"acknowledged\") and not client:",
        "a client waits for acknowledgements, and reads them: it says that the phase is done",
    ],
    [
        "its answers are a byte short",
        "second(number, answer, check)",
        "second(number, answer - (not client), check)",
        "99 of 100 bytes of the answer to message 0 came, and nothing more for 10 s",
    ],
    [
        "it answers a transfer in full",
        "answer = size if orders[\"workload\"] == \"latency\" else 1",
        "answer = size",
        "0 of 100 bytes of message 1 came, and nothing more for 10 s",
    ],
    [
        "it takes any orders",
        "if orders[\"mechanism\"] != \"pipe\" or orders[\"parameters\"]:",
        "if False:",
        "it says \"connected\", and should say that it failed",
    ],
    [
        "it takes any orders that have descriptors",
        "if orders[\"mechanism\"] != \"pipe\" or orders[\"parameters\"]:",
        "if len(orders[\"descriptors\"]) != 2:",
        "it says \"connected\", and should say that it failed",
    ],
    [
        "it takes any parameter",
        "if orders[\"mechanism\"] != \"pipe\" or orders[\"parameters\"]:",
        "if orders[\"mechanism\"] != \"pipe\":",
        "a parameter that is unknown is refused: it says \"connected\"",
    ],
    ["it fails without a word", "    say({\"failed\": why})\n", "", "without saying that it failed"],
    [
        "it fails and lives on",
        "    sys.exit(1)",
        "    time.sleep(600)",
        "it lives on for 20 s after it said that it failed",
    ],
    [
        "it outlives the coordinator",
        "    if len(length) < 4:\n        sys.exit()",
        "    while len(length) < 4:\n        time.sleep(1)",
        "it lives on for 20 s after its standard input ended",
    ],
    [
        "it outlives its trial",
        "    if name == \"goodbye\":\n        break",
        "    if name == \"goodbye\":\n        continue",
        "it lives on for 20 s after goodbye",
    ],
    [
        "it ends after a phase",
        "    say({\"done\": {\"elapsed_ns\": elapsed_ns}})",
        "    say({\"done\": {\"elapsed_ns\": elapsed_ns}})\n    break",
        "it ended after its first phase, and should wait for the next one, or for goodbye",
    ],
    [
        "it waits for a peer that is gone",
        "            fail(\"the peer has closed\")",
        "            time.sleep(600)",
        "though its peer closed the connection instead of sending message 7",
    ],
    ["its times are in microseconds", ELAPSED, "\"elapsed_ns\": elapsed_ns / 1000", "is it in µs?"],
    ["its times are in seconds", ELAPSED, "\"elapsed_ns\": elapsed_ns / 1e9", "is it in s?"],
    ["its times are half", ELAPSED, "\"elapsed_ns\": elapsed_ns / 2", "ns at least"],
    ["its times are in picoseconds", ELAPSED, "\"elapsed_ns\": elapsed_ns * 1000", "ns in all: is it in ns?"],
    ["its times are negative", ELAPSED, "\"elapsed_ns\": -elapsed_ns", "must not be negative"],
    [
        "its times are text",
        ELAPSED,
        "\"elapsed_ns\": str(elapsed_ns)",
        "done.elapsed_ns: invalid type: string",
    ],
    [
        "it times all stretches",
        "        if stretch.get(\"timed\"):\n            elapsed_ns = ",
        "        before_ns = elapsed_ns if number > stretch[\"messages\"] else 0\n        elapsed_ns = before_ns + ",
        "it has stretches in it that are not timed",
    ],
    [
        "it times to the end of the phase",
        "            elapsed_ns = time.perf_counter_ns() - start\n    say({\"done\": {\"elapsed_ns\": elapsed_ns}})",
        "            begin = start\n    say({\"done\": {\"elapsed_ns\": time.perf_counter_ns() - begin}})",
        "it has stretches in it that are not timed",
    ],
];
const ELAPSED: &str = "\"elapsed_ns\": elapsed_ns";

/// How the template is connected where it has tcp instead of a pair of pipes.
const CONNECTED: &str = r#"
def connected(orders):
    host, token = orders["network"]["server"], bytes(orders["network"]["token"])
    if orders["role"] == "client":
        peer = socket.create_connection((host, int.from_bytes(bytes(hear()[1]), "big")))
        peer.sendall(token)
    else:
        listener = socket.create_server((host, 0))
        say({"ticket": list(listener.getsockname()[1].to_bytes(2, "big"))})
        while True:
            peer = listener.accept()[0]
            if peer.recv(16, socket.MSG_WAITALL) == token:
                break
            peer.close()
        listener.close()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return [peer.detach()] * 2


hear()
MECHANISMS"#;

/// What one over tcp may do wrong beside that.
const MUTANTS_OVER_TCP: &[[&str; 4]] = &[
    ["it takes strangers", "== token", "!= b\"\"", "it took a connection that showed a wrong token"],
    [
        "its ticket is little-endian",
        "to_bytes(2, \"big\")",
        "to_bytes(2, \"little\")",
        "where nobody listens",
    ],
    ["it shows no token", "peer.sendall(token)", "pass", "0 of 16 bytes of the token"],
    ["it waits for another ticket", "\"big\"))", "\"little\"))", "(two bytes, big-endian)"],
];

/// The template over tcp.
fn over_tcp() -> String {
    changed("\nhear()\nMECHANISMS", CONNECTED)
        .replace("import struct", "import socket\nimport struct")
        .replace("\"pipe\"", "\"tcp\"")
        .replace("orders[\"descriptors\"]", "connected(orders)")
}

/// What `ipcmark endpoint check` says of each of the `mutants` of the program `right`, of which nothing is said; a few at a time, so that they are
/// waited for together.
fn are_found_out(place: &Place, right: &str, mutants: &'static [[&'static str; 4]]) -> Said {
    const AT_ONCE: usize = 8;
    place.file("right.py", right);
    let said = run(&mut ipcmark(place, &["endpoint", "check", "python3", "right.py"])).expect(0);
    assert!(!said.out.contains("failed"), "{said}");
    for (first, some) in (0..).step_by(AT_ONCE).zip(mutants.chunks(AT_ONCE)) {
        thread::scope(|scope| {
            let check = |(at, [rule, from, to, why]): (usize, &[&'static str; 4])| {
                assert!(right.contains(from), "{rule}");
                let name = format!("{}.py", first + at);
                place.file(&name, right.replace(from, to));
                let mut command = ipcmark(place, &["endpoint", "check", "python3", &name]);
                (*rule, *why, scope.spawn(move || run(&mut command)))
            };
            let checks: Vec<_> = some.iter().enumerate().map(check).collect();
            for (rule, why, check) in checks {
                let said: Said = check.join().unwrap();
                assert_eq!(said.status.code(), Some(1), "{rule}: {said}");
                let failed: Vec<&str> = said.out.lines().filter(|line| line.starts_with("failed")).collect();
                assert!(failed.iter().any(|line| line.contains(why)), "{rule}: {said}");
                assert!(
                    !said.out.contains("this bug") && !said.out.contains("one version"),
                    "{rule}: {said}"
                );
            }
        });
    }
    place.assert_nothing_is_left("checks of endpoints that are wrong");
    said
}

/// Slow: it waits for endpoints that say nothing.
#[test]
fn an_endpoint_that_breaks_a_rule_is_found_out() {
    if !has_python() {
        return;
    }
    let said = are_found_out(&Place::new(), TEMPLATE, MUTANTS);
    // What was not tried is not said to be right.
    assert!(!said.out.contains("token"), "{said}");
}

/// Slow: it waits for endpoints that say nothing.
#[test]
fn an_endpoint_that_breaks_a_rule_of_networks_is_found_out() {
    if !has_python() {
        return;
    }
    let said = are_found_out(&Place::new(), &over_tcp(), MUTANTS_OVER_TCP);
    assert!(said.out.contains("\nok      a server takes nobody who does not show the token\n"), "{said}");
}

/// Slow: it waits for an endpoint that says nothing.
#[test]
fn one_mistake_is_told_once_and_a_command_that_cannot_be_started_with_what_to_type() {
    if !has_python() {
        return;
    }
    let place = Place::new();
    place.file("half.py", changed(ELAPSED, "\"elapsed_ns\": str(elapsed_ns)"));
    let said = run(&mut ipcmark(&place, &["endpoint", "check", "python3", "half.py"])).expect(1);
    let failed: Vec<&str> = said.out.lines().filter(|line| line.starts_with("failed")).collect();
    assert!(failed.iter().any(|line| line.contains("also in: a server answers in phases")), "{said}");
    assert_eq!(failed.iter().filter(|line| line.contains("expected f64")).count(), 1, "{said}");
    place.file("plain.py", TEMPLATE);
    for (words, why) in [
        (["endpoint", "check", "./plain.py"], "make it executable: chmod +x ./plain.py"),
        (["endpoint", "check", "python3 plain.py"], "without quotes: python3 plain.py"),
    ] {
        let said = run(&mut ipcmark(&place, &words)).expect(1);
        assert!(said.out.contains(why), "{said}");
    }
    let said = run(&mut ipcmark(&place, &["pipe", "--endpoint", "./plain.py"])).expect(2);
    assert!(said.err.contains("chmod +x ./plain.py"), "{said}");
}

#[test]
fn what_a_driver_cannot_do_is_refused_before_anything_is_measured() {
    if !has_python() {
        return;
    }
    let place = Place::new();
    place.file("right.py", TEMPLATE);
    for (option, value) in [
        ("--endpoints", "threads"),
        ("--rate", "1000"),
        ("--think-time", "1ms"),
        ("--peers", "pairs=2"),
        ("--inject", "1us"),
    ] {
        let line = [
            "pipe",
            "--endpoint",
            "python3 right.py",
            "-s",
            "1",
            "-p",
            "unpinned",
            "--time",
            "60s",
            option,
            value,
        ];
        let said = run(&mut ipcmark(&place, &line)).expect(2);
        assert!(said.err.contains(&format!("leave out {option}")) || said.err.contains(option), "{said}");
    }
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

/// Slow: it checks an endpoint by whole trials.
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
