//! `ipcmark record`: programs of which it is known what they say to each other, and programs that are strange. A recorded
//! program is never harmed.
//!
//! The programs are one, `examples/talks`, which plays what it is told by its environment.

mod cpu_lists;
#[path = "../../examples/talks/exchange.rs"]
mod exchange;
mod held_back;
mod known_work;
mod late_settings;
mod rights;
mod signals;
mod stopped;
mod unharmed;

use self::exchange::{PEER, REPLY_BYTES, REQUEST_BYTES, REQUESTS, ROLE};
use self::signals::signals;
use crate::common::{GONE_WITHIN, Place, Said, example, run, skip, wait_until};
use crate::restricted::{open_place, ordinary, root};
use mechanisms::registry::CARDS;
use model::Scenario;
use model::scenario::Flow;
use model::units::Size;
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const WAYS: [&str; 3] = ["bpf", "tracepoints", "ptrace"];

/// The program that plays `role`.
fn player(role: &str) -> Command {
    let mut command = Command::new(example("talks"));
    command.env(ROLE, role);
    command
}

/// What is said of a recording in which no message was seen.
const NOTHING_SAID: &str = "said nothing to each other";

/// Whether this user may record by `way`; says so if not. A recording that has nothing in it was allowed.
fn may(way: &str) -> bool {
    let place = Place::new();
    let said = run(&mut place.ipcmark(["record", "--by", way, "--", "sh", "-c", "echo | cat"]));
    let allowed = said.status.success() || said.err.contains(NOTHING_SAID);
    if !allowed {
        skip(&said.err, &format!("recording by {way}"));
    }
    allowed
}

/// What is recorded by `way` of `player`.
fn recorded(way: &str, player: &Command, peer: &str) -> (Place, Scenario) {
    let place = Place::new();
    let peer = place.path(peer).display().to_string();
    recorded_in(place, way, player, &peer)
}

/// The same in `place`, of a player whose peer is called `peer`.
fn recorded_in(place: Place, way: &str, player: &Command, peer: &str) -> (Place, Scenario) {
    let mut command = place.ipcmark(["record", "--time", "60s", "--by", way, "-o", "scenario.toml", "--"]);
    command.arg(player.get_program()).args(player.get_args());
    command.envs(player.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run(command.env(PEER, peer)).expect(0);
    let scenario = read(&place);
    (place, scenario)
}

fn read(place: &Place) -> Scenario {
    let text = fs::read_to_string(place.path("scenario.toml")).unwrap();
    Scenario::parse(&text, CARDS).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The only flow of `scenario` over a mechanism, if there is one.
fn only_flow<'a>(scenario: &'a Scenario, mechanism: &str) -> Option<&'a Flow> {
    let mut flows = scenario.flows.iter().filter(|flow| flow.mechanism.name == mechanism);
    let flow = flows.next();
    assert_eq!(flows.next(), None, "{scenario:#?}");
    flow
}

/// Records `player` by `way`, and gives the flow over `mechanism`.
fn flow_of(way: &str, player: &Command, mechanism: &str) -> Flow {
    let (_place, scenario) = recorded(way, player, "socket");
    only_flow(&scenario, mechanism).unwrap_or_else(|| panic!("{way}, {mechanism}: {scenario:#?}")).clone()
}

/// The same of a flow that must have every request.
fn flow_with_every_request(way: &str, player: &Command, mechanism: &str) -> Flow {
    let flow = flow_of(way, player, mechanism);
    assert_eq!(flow.recorded.as_ref().unwrap().messages, REQUESTS, "{way}, {mechanism}: {flow:#?}");
    flow
}

/// Records `player` by `way`, by which it is not known to what its descriptors refer: then that is said.
fn assert_unknown(way: &str, player: &Command) {
    let place = Place::new();
    let mut command = place.ipcmark(["record", "--time", "60s", "--by", way, "--"]);
    command.arg(player.get_program()).args(player.get_args()).env(PEER, place.path("socket"));
    command.envs(player.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let said = run(&mut command).expect(1);
    for word in [NOTHING_SAID, "could not be found out", "--by bpf"] {
        assert!(said.err.contains(word), "{way}, {word}: {said}");
    }
}

/// Slow: it records a program by each way.
#[test]
fn requests_are_counted_exactly_by_every_way() {
    for way in WAYS.into_iter().filter(|way| may(way)) {
        for (role, mechanism, spec) in [
            ("pair", "unix-stream", "unix-stream"),
            ("path", "unix-stream", "unix-stream:name=path"),
            ("tcp", "tcp", "tcp:nodelay=off"),
            ("descriptors", "unix-stream", "unix-stream"),
            ("polls", "unix-stream", "unix-stream:wait=epoll"),
        ] {
            if way == "tracepoints" && ["path", "tcp"].contains(&role) {
                assert_unknown(way, &player(role));
                continue;
            }
            let flow = flow_with_every_request(way, &player(role), mechanism);
            let what = format!("{way}, {role}: {flow:#?}");
            assert_eq!(flow.mechanism.to_string(), spec, "{what}");
            assert_eq!(flow.size.parts(), [(Size(REQUEST_BYTES as u64), 1.0)], "{what}");
            let reply = flow.reply.as_ref().unwrap_or_else(|| panic!("{what}"));
            assert_eq!(reply.parts(), [(Size(REPLY_BYTES as u64), 1.0)], "{what}");
            assert_ne!(flow.from, flow.to, "{what}");
            assert!(flow.recorded.as_ref().unwrap().round_trip.as_ref().unwrap().mean() > 0.0, "{what}");
        }
    }
}

#[test]
fn recorders_take_no_events_from_each_other() {
    if !WAYS.into_iter().all(may) {
        return;
    }
    let place = Place::new();
    let mut bystander = place
        .ipcmark(["record", "--by", "bpf", "--time", "60s", "--", "sh", "-c", "touch started; read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(wait_until(GONE_WITHIN, || place.path("started").exists()), "its program did not begin");
    for way in WAYS {
        flow_with_every_request(way, &player("pair"), "unix-stream");
    }
    // At the end of its input its program ends, and then it does.
    drop(bystander.stdin.take());
    bystander.wait().unwrap();
}

/// Slow: it records a program by each way.
#[test]
fn where_messages_are_received_is_recorded_and_who_is_held_there() {
    let allowed = sched_getaffinity(None).unwrap();
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    for way in WAYS.into_iter().filter(|way| may(way)) {
        for (own, other) in [(first, first), (first, last)] {
            let (_place, scenario) =
                recorded_in(Place::new(), way, &player("placed"), &format!("{own} {other}"));
            let flow = only_flow(&scenario, "unix-stream").unwrap_or_else(|| panic!("{scenario:#?}"));
            let seen = flow.recorded.as_ref().unwrap().on_one_cpu;
            let is_told = way != "ptrace";
            assert_eq!(seen, is_told.then_some(f64::from(u8::from(own == other))), "{way}: {flow:#?}");
            // Where there is one CPU, nobody is held to it.
            if first != last {
                let held = [flow.from, flow.to].map(|at| scenario.processes[at].cpus.clone());
                let expected = [own, other].map(|cpu| vec![cpu as u32]);
                assert_eq!(BTreeSet::from(held), BTreeSet::from(expected), "{way}: {scenario:#?}");
            }
        }
    }
}

/// Slow: it records a program by each way.
#[test]
fn wake_ups_are_counted_exactly_by_every_way() {
    for way in WAYS.into_iter().filter(|way| may(way)) {
        let signals = [signals(), player("pidfd")].map(|player| (player, "signal", 0));
        let futexes = (way != "tracepoints").then(|| (player("futexes"), "futex", 1));
        if futexes.is_none() {
            assert_unknown(way, &player("futexes"));
        }
        for (player, mechanism, bytes) in signals.into_iter().chain(futexes) {
            let flow = flow_with_every_request(way, &player, mechanism);
            let what = format!("{way}: {flow:#?}");
            assert_eq!(flow.size.parts(), [(Size(bytes), 1.0)], "{what}");
            assert!(flow.reply.is_some() && flow.from != flow.to, "{what}");
        }
    }
}

#[test]
fn a_pipeline_has_all_its_bytes() {
    const BYTES: u64 = 300_000;
    for way in WAYS.into_iter().filter(|way| may(way)) {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("head -c {BYTES} /dev/zero | cat | wc -c >/dev/null")]);
        let (_place, scenario) = recorded(way, &shell, "none");
        let name = |process: usize| scenario.processes[process].name.as_str();
        for (from, to) in [("head", "cat"), ("cat", "wc")] {
            let mut flows =
                scenario.flows.iter().filter(|flow| name(flow.from) == from && name(flow.to) == to);
            let flow = flows.next().unwrap_or_else(|| panic!("{way}, {from}, {to}: {scenario:#?}"));
            assert!(flow.is_stream() && flow.mechanism.name == "pipe");
            let bytes = flow.recorded.as_ref().unwrap().messages as f64 * flow.size.mean();
            // Shares of sizes are rounded.
            assert!((bytes / BYTES as f64 - 1.0).abs() < 0.02, "{way}: {bytes} of {BYTES}: {flow:#?}");
        }
    }
}

#[test]
fn what_is_said_fits_the_terminal_and_files_are_made() {
    if !may("tracepoints") {
        return;
    }
    let place = Place::new();
    let arguments = ["record", "-o", "a.toml", "--svg", "a.svg", "--html", "a.html", "--", "sh", "-c"];
    let said = run(place.ipcmark(arguments).arg("seq 1 99999 | cat | wc -l >/dev/null")).expect(0);
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{said}");
    for word in ["seq-cat pipe", "Processes", "Flows", "wrote a.toml"] {
        assert!(said.out.contains(word), "{word}: {said}");
    }
    let [svg, html] = ["a.svg", "a.html"].map(|name| fs::read_to_string(place.path(name)).unwrap());
    assert!(svg.starts_with("<?xml") && svg.contains("seq") && svg.trim_end().ends_with("</svg>"));
    assert!(html.contains("seq-cat pipe") && !html.contains("<script"));
    // A scenario is overwritten only if that is asked for.
    let before = fs::read(place.path("a.toml")).unwrap();
    let again = run(&mut place.ipcmark(["record", "-o", "a.toml", "--", "true"])).expect(2);
    assert!(again.err.contains("a.toml exists"), "{again}");
    assert_eq!(fs::read(place.path("a.toml")).unwrap(), before);
}

#[test]
fn a_fork_storm_is_followed() {
    for way in WAYS.into_iter().filter(|way| may(way)) {
        let mut shell = Command::new("sh");
        let script =
            "i=0; while [ $i -lt 200 ]; do (exit 0) & i=$((i+1)); done; wait; seq 1 9999 | cat >/dev/null";
        shell.args(["-c", script]);
        let (_place, scenario) = recorded(way, &shell, "none");
        let flow = only_flow(&scenario, "pipe").unwrap_or_else(|| panic!("{way}: {scenario:#?}"));
        assert_eq!(scenario.processes[flow.from].name, "seq", "{way}: {scenario:#?}");
    }
}

#[test]
fn programs_without_communication_and_without_a_file_are_answered() {
    for way in WAYS.into_iter().filter(|way| may(way)) {
        let place = Place::new();
        let silent = run(&mut place.ipcmark(["record", "--by", way, "--", "true"])).expect(1);
        assert!(silent.err.contains(NOTHING_SAID), "{silent}");
        let missing = run(&mut place.ipcmark(["record", "--by", way, "--", "./no-such-program"])).expect(2);
        assert_eq!(missing.err.matches("cannot be started").count(), 1, "{missing}");
        assert!(missing.err.contains("name a program that exists"), "{missing}");
    }
    let place = Place::new();
    let gone = run(&mut place.ipcmark(["record", "--pid", "2147483647"])).expect(1);
    assert!(gone.err.contains("process 2147483647"), "{gone}");
    run(&mut place.ipcmark(["record"])).expect(2);
    run(&mut place.ipcmark(["record", "--pid", "1", "--", "true"])).expect(2);
}

#[test]
fn processes_of_others_are_refused_with_a_remedy() {
    if !root() {
        return skip(
            "it takes root to have processes of two users; run `sudo cargo xtask test`",
            "recording another user's process",
        );
    }
    let place = open_place();
    let mut command = ordinary(&place, "./ipcmark");
    let said: Said = run(command.args(["record", "--pid", &std::process::id().to_string()])).expect(1);
    assert!(said.err.contains("ptrace") && said.err.contains("run as root"), "{said}");
}

/// A program that repeats what it is told.
struct Echo {
    child: Child,
    replies: BufReader<std::process::ChildStdout>,
}

impl Echo {
    fn start() -> Self {
        let script = "while read line; do echo $line; done";
        let mut command = Command::new("sh");
        let piped = command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let replies = BufReader::new(child.stdout.take().unwrap());
        Self { child, replies }
    }

    fn answers(&mut self, word: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{word}").unwrap();
        let mut reply = String::new();
        self.replies.read_line(&mut reply).unwrap();
        assert_eq!(reply.trim(), word);
    }

    /// A line of its status.
    fn status(&self, name: &str) -> String {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim_start_matches(':').trim().to_owned()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn who_is_recorded_goes_on_when_the_recorder_is_killed() {
    for way in WAYS.into_iter().filter(|way| may(way)) {
        let mut echo = Echo::start();
        echo.answers("before");
        let place = Place::new();
        let pid = echo.child.id().to_string();
        let mut command = place.ipcmark(["record", "--by", way, "--time", "60s", "--pid", &pid]);
        let recorder = crate::common::Running::start(&mut command);
        if way == "ptrace" {
            assert!(wait_until(GONE_WITHIN, || echo.status("TracerPid") != "0"), "it is traced");
        }
        (0..50).for_each(|at| echo.answers(&format!("word{at}")));
        assert!(recorder.kill(), "it was recording");
        assert!(
            wait_until(GONE_WITHIN, || echo.status("TracerPid") == "0"),
            "{way}: nothing is left attached"
        );
        assert!(!echo.status("State").starts_with(['T', 't']), "{way}: it is not stopped");
        echo.answers("after");
    }
}

/// Slow: it records again and again.
#[test]
fn who_is_recorded_goes_on_when_the_recording_ends() {
    for way in WAYS.into_iter().filter(|way| may(way)) {
        // When the recording begins nothing tells from outside, and on a busy host it is late: then more is said.
        let is_recorded = [40, 400, 4000].into_iter().any(|words| is_recorded_to_its_end(way, words));
        assert!(is_recorded || way != "bpf", "{way}");
    }
}

/// Whether a program that says so many `words`, and is recorded in this `way`, was recorded while it did, and went on when the recorder was told to
/// end.
fn is_recorded_to_its_end(way: &str, words: u64) -> bool {
    let mut echo = Echo::start();
    let place = Place::new();
    let pid = echo.child.id().to_string();
    let mut command =
        place.ipcmark(["record", "--by", way, "--time", "600s", "-o", "scenario.toml", "--pid", &pid]);
    let recorder = crate::common::Running::start(&mut command);
    // The recorder is at work when it traces, or has opened something to record by.
    let begun = || fs::read_dir(format!("/proc/{}/fd", recorder.pid())).map_or(0, Iterator::count) > 8;
    let begun = if way == "ptrace" {
        wait_until(GONE_WITHIN, || echo.status("TracerPid") != "0")
    } else {
        wait_until(GONE_WITHIN, begun)
    };
    assert!(begun);
    (0..words).for_each(|at| {
        std::thread::sleep(Duration::from_millis(50));
        echo.answers(&format!("word{at}"));
    });
    std::thread::sleep(Duration::from_millis(100));
    recorder.signal(Signal::INT);
    let said = recorder.finish();
    assert_eq!(echo.status("TracerPid"), "0");
    echo.answers("after");
    if said.status.code() == Some(1) {
        assert!(said.err.contains(NOTHING_SAID), "{way}: {said}");
        // Who has the other end of a pipe, the kernel is asked by programs only: the others find nothing however long they record.
        return way != "bpf";
    }
    said.expect(130);
    // Its peer is this program, which was not recorded.
    let scenario = read(&place);
    let flow = only_flow(&scenario, "pipe").unwrap_or_else(|| panic!("{scenario:#?}"));
    assert!(flow.reply.is_some(), "{scenario:#?}");
    let found = flow.recorded.as_ref().unwrap().messages;
    assert!((1..=words).contains(&found), "{way}: {found}");
    assert!(scenario.processes.iter().filter(|process| process.recorded.is_none()).count() == 1);
    way == "bpf"
}

#[test]
fn a_program_whose_recorder_died_before_it_began_does_not_wait_for_it() {
    let place = Place::new();
    // Process 1 is not its parent, as after the death of that.
    let mut child = place.ipcmark(["__recorded", "1", "sleep", "600"]).spawn().unwrap();
    let has_ended = wait_until(GONE_WITHIN, || child.try_wait().unwrap().is_some());
    let _ = child.kill();
    child.wait().unwrap();
    assert!(has_ended);
}

#[test]
fn the_schema_of_scenarios_is_printed() {
    let place = Place::new();
    let said = run(&mut place.ipcmark(["schema", "scenario"])).expect(0);
    let schema: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(schema["title"], "An ipcmark scenario");
    let results = run(&mut place.ipcmark(["schema"])).expect(0);
    assert_ne!(results.out, said.out);
}
