//! Scenarios that are run for real: what is counted, how long it takes, what is refused, and that nothing is left.
//!
//! No test relies on how fast this machine is.

use crate::common::{
    IPCMARK, Place, Running, Said, TIMEOUT, endpoints, endpoints_at_once, run, skip, wait_until,
};
use crate::restricted::{open_place, ordinary};
use mechanisms::registry::CARDS;
use model::Scenario;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rustix::process::{Pid, Signal};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Processes of these names, and flows: name, from, to, mechanism, and more lines.
fn scenario(processes: &[&str], flows: &[(&str, &str, &str, &str, &str)]) -> String {
    let processes = processes.iter().map(|name| format!("[[process]]\nname = \"{name}\"\n"));
    let flows = flows.iter().map(|(name, from, to, mechanism, more)| {
        format!(
            "[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nmechanism = \"{mechanism}\"\n{more}\n"
        )
    });
    format!("name = \"test\"\n{}{}", processes.collect::<String>(), flows.collect::<String>())
}

/// What a replay of `text` for `time` came to.
fn replayed(text: &str, time: &str) -> Value {
    let place = Place::new();
    place.file("s.toml", text);
    let said = run(&mut place.ipcmark(["replay", "s.toml", "--format=json", "--time", time])).expect(0);
    place.assert_nothing_is_left("after a replay");
    serde_json::from_str(&said.out).unwrap()
}

/// A number of the flow at `at`.
fn of_flow(replay: &Value, at: usize, key: &str) -> f64 {
    let value = &replay["flows"][at][key];
    value.as_f64().or(value["mean"].as_f64()).unwrap_or_else(|| panic!("{key} of {at} in {replay:#}"))
}

#[test]
fn flows_that_are_after_others_are_as_many_as_was_asked_for() {
    let text = scenario(
        &["client", "proxy", "store"],
        &[
            (
                "query",
                "client",
                "proxy",
                "unix-stream",
                "size = \"100:50%,3000:50%\"\nreply = \"200:50%,9000:50%\"",
            ),
            (
                "fetch",
                "proxy",
                "store",
                "pipe",
                "size = \"64\"\nreply = \"8K\"\nafter = \"query\"\nper_message = 0.25",
            ),
            (
                "log",
                "proxy",
                "store",
                "pipe",
                "size = \"500\"\nafter = \"query\"\nper_message = 3\nread = \"4K\"",
            ),
        ],
    );
    let replay = replayed(&text, "400ms");
    let [query, fetch, log] = [0, 1, 2].map(|at| of_flow(&replay, at, "messages"));
    // The processes are asked one after the other, which a busy host draws out; a pipe holds some 130 of the log's messages.
    let is_near = |count: f64, due: f64| (count - due).abs() <= 0.2 * due + 300.0;
    assert!(query > 20.0 && is_near(fetch, query / 4.0) && is_near(log, query * 3.0), "{replay:#}");
    assert_eq!(of_flow(&replay, 1, "bytes"), 64.0 * fetch);
    assert_eq!(of_flow(&replay, 2, "bytes"), 500.0 * log);
    let mean = of_flow(&replay, 0, "bytes") / query;
    assert!(query < 400.0 || (1300.0..1800.0).contains(&mean), "{mean}");
}

#[test]
fn a_request_has_its_messages_and_their_descriptors() {
    for mechanism in ["unix-dgram", "unix-seqpacket", "unix-stream", "file-pass"] {
        let more = "size = \"1000\"\nreply = \"1\"\nmessages = 5\nfds = 3";
        let replay = replayed(&scenario(&["a", "b"], &[("f", "a", "b", mechanism, more)]), "200ms");
        let messages = of_flow(&replay, 0, "messages");
        assert!(messages > 0.0, "{mechanism}");
        assert_eq!(of_flow(&replay, 0, "bytes"), 5000.0 * messages, "{mechanism}");
    }
}

/// Slow: it replays for some seconds.
/// Work is so many steps, as many as take that long where the host is as busy as when the process began: on a busy one some of it
/// may be missing, or it takes longer.
#[test]
fn work_is_in_the_round_trip() {
    const WORK_NS: f64 = 50e6;
    let median_ns = |work: &str, time: &str| {
        let more = format!("size = \"1\"\nreply = \"1\"\nserver_work = \"{work}\"\nclient_work = \"30us\"");
        of_flow(&replayed(&scenario(&["a", "b"], &[("f", "a", "b", "pipe", &more)]), time), 0, "median_ns")
    };
    let (without_ns, with_ns) = (median_ns("0", "500ms"), median_ns("50ms", "6s"));
    assert!(without_ns < 0.2 * WORK_NS && with_ns > 0.2 * WORK_NS, "{without_ns}, {with_ns}");
}

/// So seldom that any host keeps up. What is due is drawn, and 2 s of the one that is by chance have 100 +- 10 messages.
#[test]
fn what_is_due_at_a_rate_comes_at_it() {
    for (rate, per_s) in [("20", 20.0), ("50-poisson", 50.0)] {
        let more = format!("size = \"64\"\nrate = \"{rate}\"");
        let came =
            of_flow(&replayed(&scenario(&["a", "b"], &[("f", "a", "b", "tcp", &more)]), "2s"), 0, "per_s");
        assert!((0.5..1.5).contains(&(came / per_s)), "{rate}: {came}");
    }
}

#[test]
fn whoever_could_wait_in_a_circle_does_not() {
    let stream = "size = \"20K\"";
    let circle = [("there", "a", "b", "pipe", stream), ("back", "b", "a", "unix-stream", stream)];
    let large = "size = \"300K\"\nreply = \"300K\"";
    let crossed = [("there", "a", "b", "unix-stream", large), ("back", "b", "a", "shm-ring", large)];
    for flows in [circle, crossed] {
        let replay = replayed(&scenario(&["a", "b"], &flows), "300ms");
        assert!((0..2).all(|at| of_flow(&replay, at, "messages") > 0.0), "{replay:#}");
    }
}

#[test]
fn what_was_recorded_stands_first_beside_what_was_replayed() {
    let place = Place::new();
    let more = "size = \"64\"\nreply = \"64\"";
    let seen = "client_waited = 0.1\nserver_waited = 0.1\npartial_reads = 0.0";
    let recorded = format!("{more}\n[flow.recorded]\nmessages = 50\nper_s = 25.0\n{seen}");
    place.file("by-hand.toml", scenario(&["a", "b"], &[("f", "a", "b", "pipe", more)]));
    place.file("s.toml", scenario(&["a", "b"], &[("f", "a", "b", "pipe", &recorded)]));
    let said = |file: &str| {
        let out = run(&mut place.ipcmark(["replay", file, "--time", "400ms"])).expect(0).out;
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = said("s.toml");
    let sentence = text.strip_prefix("test f over pipe: replayed at ").unwrap_or_else(|| panic!("{text}"));
    let (rate, rest) = sentence.split_once("/s ").unwrap();
    let (_, rest) =
        rest.split_once("the program was recorded at 25.0/s: ").unwrap_or_else(|| panic!("{text}"));
    let times = rest.split_once(" times as many").unwrap().0;
    let [rate, times] = [rate, times].map(|number| number.parse::<f64>().unwrap());
    assert!((rate / 25.0 / times - 1.0).abs() < 0.01, "{text}");
    assert!(rest.contains("Each f begins when the one before is over"), "{text}");
    assert!(!said("by-hand.toml").contains("recorded at"));
}

#[test]
fn two_scenarios_are_compared_in_turn() {
    let place = Place::new();
    let more = "size = \"64\"\nreply = \"64\"";
    place.file("s.toml", scenario(&["a", "b"], &[("f", "a", "b", "tcp", more)]));
    place.file("other.toml", scenario(&["a", "b"], &[("f", "a", "b", "pipe", more)]));
    for against in ["f=unix-stream:sndbuf=64K,rcvbuf=64K", "other.toml"] {
        let arguments = ["replay", "s.toml", "--format=json", "--time", "1s", "--against", against];
        let said = run(place.ipcmark(arguments).args(["--html", "both.html", "--overwrite"])).expect(0);
        let page = fs::read_to_string(place.path("both.html")).unwrap();
        assert!(
            page.contains("rate of the second over that of the first") && page.contains("<svg"),
            "{page}"
        );
        let both: Value = serde_json::from_str(&said.out).unwrap();
        let ratio = both["flows"][0]["rate"]["mean"].as_f64().unwrap();
        assert!(ratio > 0.0 && ratio.is_finite(), "{both:#}");
        let slices = |at: usize| both["replays"][at]["slices"].as_u64().unwrap();
        assert!(slices(0) == slices(1) && slices(0) > 0 && slices(0).is_multiple_of(2), "{both:#}");
    }
    place.assert_nothing_is_left("after two scenarios in turn");
    let text =
        run(&mut place
            .ipcmark(["replay", "s.toml", "--time", "300ms", "--set", "f=pipe", "--html", "one.html"]))
        .expect(0)
        .out;
    assert!(fs::read_to_string(place.path("one.html")).unwrap().contains("f over pipe"));
    assert!(text.contains("f over pipe") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn wrong_input_is_refused_with_what_to_give() {
    let place = Place::new();
    let more = "size = \"64\"\nreply = \"64\"";
    let text = scenario(&["a", "b"], &[("f", "a", "b", "tcp", more)]);
    place.file("s.toml", &text);
    place.file("broken.toml", "name = ");
    place.file("cpu.toml", text.replacen("name = \"a\"", "name = \"a\"\ncpus = [9999]", 1));
    let twice = [("f", "a", "b", "signal", more), ("g", "a", "b", "sigqueue", "size = \"1\"\nreply = \"1\"")];
    place.file("signals.toml", scenario(&["a", "b"], &twice));
    for (arguments, says) in [
        (&["missing.toml"][..], "cannot be read"),
        (&["broken.toml"], "not valid at line 1"),
        (&["cpu.toml"], "CPU 9999"),
        (&["signals.toml"], "has another such"),
        (&["s.toml", "--set", "f"], "names no flow and mechanism"),
        (&["s.toml", "--set", "g=pipe"], "unknown flow 'g'"),
        (&["s.toml", "--set", "f=pip"], "unknown mechanism"),
        (&["s.toml", "--set", "f=getrusage"], "does not carry requests"),
        (&["s.toml", "--against", "f=pipe:capacity=x"], "capacity"),
        (&["s.toml", "--against", "missing.toml"], "cannot be read"),
        (&["s.toml", "--time", "0s"], "leaves nothing to measure"),
        (&[], "SCENARIO"),
    ] {
        let arguments = ["replay"].iter().chain(arguments);
        let said = run(&mut place.ipcmark(arguments)).expect(2);
        assert!(said.err.contains(says), "{says}\n{said}");
    }
    place.assert_nothing_is_left("after refusals");
}

/// A replay of some seconds whose processes can be killed.
fn long_replay(place: &Place) -> Command {
    let text = scenario(
        &["a", "b", "c"],
        &[
            ("f", "a", "b", "shm-ring:memory=sysv", "size = \"64\"\nreply = \"64\""),
            ("g", "b", "c", "posix-mq", "size = \"64\"\nreply = \"64\"\nafter = \"f\""),
        ],
    );
    place.file("s.toml", text);
    place.ipcmark(["replay", "s.toml", "--time", "60s", "--timeout", "2s"])
}

#[test]
fn whichever_process_is_killed_nothing_is_left() {
    let mut random = SmallRng::seed_from_u64(5);
    for killed in 0..4 {
        let place = Place::new();
        let running = crate::common::Running::start(&mut long_replay(&place));
        assert!(wait_until(TIMEOUT, || endpoints(running.pid()).len() == 3));
        std::thread::sleep(Duration::from_millis(random.random_range(0..300)));
        match endpoints(running.pid()).get(killed) {
            Some(endpoint) => {
                crate::common::send(endpoint.pid, Signal::KILL);
                let said = running.finish().expect(1);
                assert!(said.err.contains("ipcmark: ") && !said.err.contains("panicked"), "{said}");
            }
            None => {
                running.kill();
            }
        }
        place.assert_nothing_is_left("after a kill");
    }
}

/// Slow: the first slice of a long replay comes after some seconds of warm-up.
#[test]
fn an_interrupted_replay_shows_what_it_measured() {
    // When the first slice is over nothing tells from outside: a replay that had none yet is repeated and left alone for longer.
    let mut left_alone = Duration::from_secs(2);
    loop {
        let place = Place::new();
        let running = crate::common::Running::start(&mut long_replay(&place));
        assert!(wait_until(TIMEOUT, || endpoints(running.pid()).len() == 3), "it did not begin");
        std::thread::sleep(left_alone);
        running.signal(Signal::INT);
        let said = running.finish().expect(130);
        place.assert_nothing_is_left("after an interruption");
        if said.out.contains("then it was interrupted") {
            return;
        }
        assert!(said.out.is_empty() && left_alone < TIMEOUT, "{said}");
        left_alone *= 2;
    }
}

/// Slow: it replays for some seconds.
#[test]
fn a_replay_in_which_no_message_went_is_no_success() {
    let place = Place::new();
    let late = "size = \"64\"\nreply = \"64\"\nthink_time = \"5s\"";
    place.file("s.toml", scenario(&["a", "b"], &[("f", "a", "b", "pipe", late)]));
    for more in [&["--format=json"][..], &["--against", "f=unix-stream"]] {
        let replay = ["replay", "s.toml", "--time", "200ms", "--timeout", "300s"];
        let said = run(&mut place.ipcmark(replay.iter().chain(more))).expect(1);
        assert!(said.err.contains("no message went in the time that was measured"), "{said}");
        assert!(said.err.contains("give it more --time") && !said.out.is_empty(), "{said}");
    }
}

#[test]
fn an_ordinary_user_may_replay_and_few_descriptors_are_named() {
    let place = open_place();
    let more = "size = \"64\"\nreply = \"64\"";
    let text = scenario(&["a", "b"], &[("f", "a", "b", "pipe", more), ("g", "a", "b", "unix-dgram", more)]);
    place.file("s.toml", text);
    let replay = ["replay", "s.toml", "--time", "200ms"];
    run(ordinary(&place, "./ipcmark").args(replay)).expect(0);
    place.assert_nothing_is_left("after an ordinary user's replay");
    let mut has_failed = false;
    for limit in 6..16 {
        let mut command = place.command("sh");
        let script = format!("ulimit -n {limit}; exec {IPCMARK} replay s.toml --time 200ms");
        let Said { status, err, .. } = run(command.args(["-c", &script]));
        let words: Vec<&str> = err.split_whitespace().collect();
        match status.code() {
            Some(0 | 126 | 127) => {}
            Some(1 | 2) => {
                has_failed = true;
                let is_named = words.join(" ").contains("raise 'ulimit -n'") || !err.contains("ipcmark");
                assert!(is_named && !err.contains("panicked"), "{limit}: {err}");
            }
            code => panic!("{limit}: {code:?} {err}"),
        }
    }
    assert!(has_failed, "even 6 descriptors are enough");
    place.assert_nothing_is_left("after replays without descriptors");
}

/// Slow: it replays every scenario.
#[test]
fn the_scenarios_that_come_along_run() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for entry in std::fs::read_dir(directory).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        // A busy host may not get to the last process of a pipeline in a short time.
        let has_all = ["200ms", "2s", "20s"].into_iter().any(|time| {
            let replay = replayed(&text, time);
            let flows = replay["flows"].as_array().unwrap().len();
            (0..flows).all(|at| of_flow(&replay, at, "messages") > 0.0)
        });
        assert!(has_all, "{text}");
    }
}

/// A valid scenario of 2 to 8 processes.
fn any_scenario(random: &mut SmallRng) -> String {
    const MECHANISMS: &[&str] = &["pipe", "tcp", "unix-stream", "unix-dgram", "posix-mq", "shm-ring", "udp"];
    const SIZES: &[&str] = &["1", "64", "1:50%, 5000:50%", "8K"];
    loop {
        let count = random.random_range(2..=8);
        let names: Vec<String> = (0..count).map(|at| format!("p{at}")).collect();
        let mut flows: Vec<(String, usize, usize, &str, String)> = Vec::new();
        for at in 0..random.random_range(count - 1..=2 * count) {
            let from = random.random_range(0..count);
            let to = if at + 1 < count { at + 1 } else { random.random_range(0..count) };
            let mut more = format!("size = \"{}\"\n", SIZES.choose(random).unwrap());
            if random.random_bool(0.7) {
                more += &format!("reply = \"{}\"\n", SIZES.choose(random).unwrap());
            }
            let causes: Vec<&str> =
                flows.iter().filter(|flow| flow.2 == from).map(|flow| flow.0.as_str()).collect();
            match causes.choose(random).filter(|_| random.random_bool(0.7)) {
                Some(cause) => {
                    more += &format!(
                        "after = \"{cause}\"\nper_message = {}\n",
                        [0.3, 1.0, 2.0].choose(random).unwrap()
                    );
                }
                None => {
                    more += ["", "think_time = \"50us\"\n", "rate = \"1k\"\n", "rate = \"2k-poisson\"\n"]
                        .choose(random)
                        .unwrap();
                }
            }
            if random.random_bool(0.3) {
                more += "server_work = \"5us:50%, 50us:50%\"\n";
            }
            flows.push((format!("f{at}"), from, to, MECHANISMS.choose(random).unwrap(), more));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let lines: Vec<(&str, &str, &str, &str, &str)> = flows
            .iter()
            .map(|(name, from, to, mechanism, more)| {
                (name.as_str(), names[*from], names[*to], *mechanism, more.as_str())
            })
            .collect();
        let mut text = scenario(&names, &lines);
        if random.random_bool(0.5) {
            text = text.replace("[[process]]\n", "[[process]]\nroots = \"together\"\n");
        }
        if random.random_bool(0.5) {
            text = text.replace("[[process]]\n", "[[process]]\nserves = \"together\"\n");
        }
        if Scenario::parse(&text, CARDS).is_ok() {
            return text;
        }
    }
}

/// Slow: it replays for some seconds.
#[test]
fn any_valid_scenario_starts_runs_and_ends() {
    let cases: u64 = std::env::var("IPCMARK_TEST_SCENARIOS").map_or(6, |count| count.parse().unwrap());
    for seed in 0..cases {
        let text = any_scenario(&mut SmallRng::seed_from_u64(seed));
        let place = Place::new();
        place.file("s.toml", &text);
        let said = run(&mut place.ipcmark(["replay", "s.toml", "--time", "200ms", "--format=json"]));
        assert_eq!(said.status.code(), Some(0), "seed {seed}\n{said}\n{text}");
        let replay: Value = serde_json::from_str(&said.out).unwrap();
        assert!(replay["slices"].as_u64().unwrap() > 0, "seed {seed}\n{text}");
        place.assert_nothing_is_left("after a scenario");
    }
}

#[test]
fn what_the_kernel_granted_instead_is_said() {
    let place = Place::new();
    let more = "size = \"64\"\nreply = \"64\"";
    place.file("s.toml", scenario(&["a", "b"], &[("f", "a", "b", "unix-stream:sndbuf=1G", more)]));
    let said = run(&mut place.ipcmark(["replay", "s.toml", "--format=json", "--time", "200ms"])).expect(0);
    let replay: Value = serde_json::from_str(&said.out).unwrap();
    let settings = replay["flows"][0]["settings"].as_array().unwrap();
    let clamped: Vec<_> = settings.iter().filter(|setting| setting["clamped"] == true).collect();
    // The two endpoints ask for the same, and get the same.
    assert!(clamped.len() == 1 && clamped[0]["name"] == "SO_SNDBUF", "{replay:#}");
    let text = run(&mut place.ipcmark(["replay", "s.toml", "--time", "200ms"])).expect(0).out;
    assert!(text.contains("f: SO_SNDBUF asked for 1G, got "), "{text}");
}

/// Slow: it replays for some seconds.
#[test]
fn processes_that_were_moved_are_named() {
    let cpus = harness::host::topology::allowed();
    let &[first, second, ..] = cpus.as_slice() else {
        return skip("there is one CPU; run it where there are two", "what a replay says of moved processes");
    };
    let text = scenario(&["a", "b"], &[("f", "a", "b", "pipe", "size = \"64\"\nreply = \"64\"")]);
    let place = Place::new();
    place.file("s.toml", text.replacen("name = \"a\"", &format!("name = \"a\"\ncpus = [{first}]"), 1));
    let mut elsewhere = CpuSet::new();
    elsewhere.set(second as usize);
    for more in [&[][..], &["--format=json"]] {
        let mut running = Running::start(place.ipcmark(["replay", "s.toml", "--time", "4s"]).args(more));
        // Whichever thread of whichever process there is, at any time, so that slices of some are under way or still to come.
        while running.lives() {
            for process in endpoints_at_once(running.pid()) {
                let threads = std::fs::read_dir(format!("/proc/{}/task", process.pid));
                let tid = |name: &std::ffi::OsStr| Pid::from_raw(name.to_str()?.parse().ok()?);
                for tid in threads.into_iter().flatten().flatten().filter_map(|entry| tid(&entry.file_name()))
                {
                    // It may have ended.
                    let _ = sched_setaffinity(Some(tid), &elsewhere);
                }
            }
        }
        let said = running.finish().expect(0);
        let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        if more.is_empty() {
            assert!(flat.contains("a: ") && flat.contains(&format!("but on CPU {second}")), "{said}");
            assert!(!flat.contains("b: "), "it may run anywhere: {said}");
            continue;
        }
        let replay: Value = serde_json::from_str(&said.out).unwrap();
        let [a, b] = [0, 1].map(|at| &replay["processes"][at]["elsewhere"]);
        assert!(a["slices"].as_u64().unwrap() > 0 && b.is_null(), "{replay:#}");
        assert_eq!(a["cpus"], serde_json::json!([second]), "{replay:#}");
    }
}
