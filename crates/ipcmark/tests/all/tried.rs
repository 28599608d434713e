//! `ipcmark try`: programs do not notice what is exchanged, what changes is told, and nothing of a program is left whoever is killed.

use crate::common::{GONE_WITHIN, IPCMARK, Place, Process, Running, Said, has, run, send, skip, wait_until};
use crate::restricted::{open_place, ordinary, root};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Every call that sets a socket up, and what a program sees of it.
const SOCKETS: &str = include_str!("../programs/sockets.c");

/// In which a Unix socket differs by calls that carry data, which are not answered, and by TCP_DEFER_ACCEPT: docs/lab/choose.md names each.
const DIFFERENT: [&str; 4] = ["bad_arguments", "defer_accept", "message_names", "shutdown_read"];

/// A server that sends back what it gets, and says when it listens.
const ECHO: &str = "\
import socket, sys
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(('127.0.0.1', int(sys.argv[1])))
print('about to listen', flush=True)
listener.listen()
while True:
    connection, _ = listener.accept()
    while data := connection.recv(65536):
        connection.sendall(data)
";

/// Asks it, and prints numbers.
const ASK: &str = "\
import socket, sys
server = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(200):
    server.sendall(b'x')
    assert server.recv(10) == b'x'
assert server.getpeername() == ('127.0.0.1', int(sys.argv[1]))
print('rounds=200 late=7')
";

/// Ports below those that the kernel chooses, one for each test, which run at once.
const PORTS: [u16; 5] = [21_011, 21_012, 21_013, 21_014, 21_015];

fn place_with_programs() -> Option<Place> {
    let place = Place::new();
    place.file("echo.py", ECHO);
    place.file("ask.py", ASK);
    has("python3", "python3", "servers under try").then_some(place)
}

/// Where programs see that their TCP goes through a sockmap: what a closed connection says and what a full one, what is written after shutdown(2),
/// and splice(2), which waits for ever for what went past TCP.
const DIFFERENT_BY_SOCKMAP: [&str; 4] = ["closed_peer", "data_calls", "half_close", "timeouts"];

/// The same of MPTCP: its own answers about options, and, now and then, when a connection is there to be accepted or is gone.
const DIFFERENT_BY_MPTCP: [&str; 5] =
    ["closed_peer", "epoll_listen", "option_errors", "option_values", "timeouts"];

/// A place with the program that sets sockets up; `None` without a compiler.
fn place_with_sockets() -> Option<Place> {
    if !has("cc", "gcc", "what programs see of exchanged sockets") {
        return None;
    }
    let place = Place::new();
    place.file("sockets.c", SOCKETS);
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", "-o"]).arg(place.path("sockets")).arg(place.path("sockets.c"));
    assert!(compiler.status().unwrap().success());
    Some(place)
}

/// What `ipcmark try` says of the scenarios that are not `different`, under each of the `sets`, and what each run of them has seen.
fn seen_under(place: &Place, different: &[&str], sets: &[&str]) -> (Value, Vec<String>) {
    let listed = run(place.command("./sockets").arg("--list")).expect(0).out;
    let same: Vec<&str> = listed.split_whitespace().filter(|name| !different.contains(name)).collect();
    assert!(same.len() > 25, "{listed}");
    let line = format!("./sockets {} > seen && mv seen seen.$$", same.join(" "));
    let arguments = ["try", "--time", "1s", "--timeout", "500s", "--format", "json"];
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let said = run(place.ipcmark(arguments).args(sets).args(["--", "sh", "-c", &line])).expect(0);
    let seen: Vec<_> = fs::read_dir(place.path("")).unwrap().flatten().map(|entry| entry.path()).collect();
    let seen = seen.iter().filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("seen."));
    let seen = seen.map(|path| fs::read_to_string(path).unwrap()).collect();
    (serde_json::from_str(&said.out).unwrap(), seen)
}

fn assert_all_the_same(seen: &[String]) {
    for other in &seen[1..] {
        let lines = seen[0].lines().zip(other.lines()).find(|(a, b)| a != b);
        assert!(seen[0] == *other, "{lines:?}");
    }
}

/// Slow: it runs a program of a thousand calls a dozen times.
#[test]
fn programs_see_the_same_of_their_sockets_whatever_is_exchanged() {
    let Some(place) = place_with_sockets() else { return };
    let others = "unix-stream=unix-stream:sndbuf=1M unix-dgram=unix-dgram:sndbuf=1M udp=udp:rcvbuf=1M pipe=pipe:capacity=1M";
    let (tried, seen) = seen_under(&place, &DIFFERENT, &["tcp=unix-stream", others]);
    // To see what there is of each variant, and then a pass there and one back, with the program that nobody looks at.
    assert_eq!(seen.len(), 3 + 8, "{tried:#}");
    assert!(seen[0].lines().count() > 700, "{}", seen[0]);
    assert_all_the_same(&seen);
    assert_eq!(tried["variants"].as_array().unwrap().len(), 3, "{tried:#}");
    assert_eq!(tried["variants"][1]["exchanges"][0], "tcp=unix-stream");
    place.assert_nothing_is_left("after a try");
}

/// Slow: it runs a program of a thousand calls a dozen times.
#[test]
fn a_sockmap_and_mptcp_are_seen_only_where_it_is_said() {
    for (exchange, different) in
        [("tcp=sockmap", &DIFFERENT_BY_SOCKMAP[..]), ("tcp=mptcp", &DIFFERENT_BY_MPTCP)]
    {
        let Some(place) = place_with_sockets() else { return };
        let (tried, seen) = seen_under(&place, different, &[exchange]);
        let not_kept = tried["not_kept"].to_string();
        if ["there is no sockmap", "Protocol not"].iter().any(|lack| not_kept.contains(lack)) {
            let remedy =
                "run it as root, on a kernel with CONFIG_BPF_STREAM_PARSER, cgroup2 and CONFIG_MPTCP";
            skip(&format!("{exchange}: {not_kept}; {remedy}"), "what programs see of it is not tested");
            continue;
        }
        assert_eq!(seen.len(), 2 + 6, "{tried:#}");
        assert_all_the_same(&seen);
        place.assert_nothing_is_left("after a try");
    }
}

/// Tries the program of this `place` with its server on `port`.
fn trying(place: &Place, port: u16, more: &[&str]) -> Command {
    let mut command = place.ipcmark(["try", "--time", "1s", "--server", &format!("python3 echo.py {port}")]);
    command.args(more).args(["--", "python3", "ask.py", &port.to_string()]);
    command
}

/// Slow: it tries a program with several variants, whose starts are awaited.
#[test]
fn what_can_be_exchanged_is_found_and_every_number_told() {
    let Some(place) = place_with_programs() else { return };
    let port = PORTS[0];
    let metrics =
        ["--metric", "rounds=rounds=([0-9]+)", "--metric", "less:late=late=([0-9]+)", "--html", "try.html"];
    let said = run(&mut trying(&place, port, &metrics)).expect(0);
    let text = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Unix sockets instead of TCP on port 21011: undecided for rounds",
        "tcp:21011=unix-stream",
        "tcp:21011=unix-stream:sndbuf=1M",
        "late",
        "The filter by which calls are answered is in both",
    ] {
        assert!(text.contains(part), "{part}: {said}");
    }
    // It sets TCP_NODELAY by itself.
    assert!(!text.contains("nodelay=on"), "{said}");
    place.assert_nothing_is_left("after a try");
    let page = fs::read_to_string(place.path("try.html")).unwrap();
    assert!(page.contains("rounds over that as it is") && page.contains("undecided for rounds"), "{page}");

    let said =
        run(&mut trying(&place, port, &["--set", "tcp:21011=unix-stream", "--format", "json"])).expect(0);
    let tried: Value = serde_json::from_str(&said.out).unwrap();
    let [as_it_is, exchanged] = &tried["variants"].as_array().unwrap()[..] else { panic!("{tried:#}") };
    assert_eq!(
        (&as_it_is["title"], &exchanged["exchanges"][0]),
        (&"as it is".into(), &"tcp:21011=unix-stream".into())
    );
    let names: Vec<&str> = exchanged["numbers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|number| number["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["time", "CPU", "switches", "memory"]);
    for number in exchanged["numbers"].as_array().unwrap() {
        assert!(
            number["value"].as_f64().unwrap() > 0.0 && number["ratio"]["median"].as_f64().unwrap() > 0.0,
            "{number:#}"
        );
    }
    // Without calls of TCP the client sleeps 200 times at the least, and so does the server.
    assert!(exchanged["numbers"][2]["value"].as_f64().unwrap() >= 200.0, "{exchanged:#}");
}

/// Slow: it starts servers a dozen times.
#[test]
fn servers_are_ready_by_a_port_a_line_or_a_command() {
    let Some(place) = place_with_programs() else { return };
    let port = PORTS[1];
    let set = format!("tcp:{port}=unix-stream");
    let command = format!("python3 ask.py {port}");
    for ready in [port.to_string().as_str(), "line=about to listen", &command] {
        run(&mut trying(&place, port, &["--set", &set, "--ready", ready])).expect(0);
    }
    place.assert_nothing_is_left("after tries");
}

#[test]
fn what_cannot_be_tried_is_told_with_what_to_do() {
    let Some(place) = place_with_programs() else { return };
    let refused = |arguments: &[&str], code: i32, parts: &[&str]| {
        let said = run(&mut place.ipcmark([&["try", "--time", "1s"], arguments].concat())).expect(code);
        for part in parts {
            assert!(said.err.contains(part), "{part}: {said}");
        }
        assert!(said.err.starts_with("ipcmark: ") && said.err.lines().count() <= 2, "{said}");
    };
    refused(&["--", "true"], 1, &["neither it nor its servers make connections", "--server"]);
    refused(
        &["--set", "tcp=unix-stream", "--", "sh", "-c", "echo | cat"],
        1,
        &["tcp=unix-stream", "what it uses is pipe"],
    );
    refused(&["--", "no-such-program"], 1, &["start no-such-program", "with its path"]);
    refused(&["--", "sh", "-c", "echo | cat; echo broken; exit 3"], 1, &["exit status: 3", "broken"]);
    refused(
        &["--metric", "rps=([0-9]+) rps", "--", "sh", "-c", "echo | cat; echo many rps"],
        1,
        &["no rps", "many rps", "--metric"],
    );
    refused(&["--server", "sh -c 'echo gone; exit 1'", "--", "true"], 1, &["before it was ready", "gone"]);
    refused(
        &["--server", "sleep 1000", "--timeout", "1s", "--", "true"],
        1,
        &["none listens after 1 s", "--ready"],
    );
    refused(
        &["--timeout", "1s", "--", "sh", "-c", "echo | cat; sleep 1000"],
        1,
        &["it runs after 1 s", "--timeout"],
    );
    refused(&["--server", "'", "--", "true"], 2, &["is no command"]);
    refused(&["--ready", "7", "--", "true"], 2, &["--server"]);
    let mut running = Command::new("sleep").args(["1000", "0.5"]).spawn().unwrap();
    let pid = running.id().to_string();
    // For a moment it has its program and no words yet.
    let words = || fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| !words.is_empty());
    let is_there = wait_until(GONE_WITHIN, words);
    let said = run(&mut place.ipcmark(["try", "--pid", &pid]));
    running.kill().unwrap();
    running.wait().unwrap();
    let said = said.expect(2);
    let restart = "ipcmark try --server 'sleep 1000 0.5' -- COMMAND";
    assert!(is_there && said.err.contains("runs already") && said.err.contains(restart), "{said}");
    place.assert_nothing_is_left("after tries that failed");
}

/// Slow: it tries a program that opens thousands of descriptors.
#[test]
fn a_limit_of_descriptors_is_the_programs_own() {
    const MANY: &str = "\
import resource, socket, sys
assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 64
servers = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(50)]
servers[0].sendall(b'x')
assert servers[0].recv(10) == b'x'
";
    let Some(place) = place_with_programs() else { return };
    place.file("ask.py", MANY);
    let mut command = trying(&place, PORTS[4], &["--set", "tcp=unix-stream"]);
    // Of each of 50 connections ipcmark keeps a descriptor.
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = place.command("sh");
    run(command.args(["-c", "ulimit -S -n 64; exec \"$0\" \"$@\"", IPCMARK]).args(arguments)).expect(0);
    place.assert_nothing_is_left("after a try with few descriptors");
}

fn others(place: &Place, running: &Running) -> Vec<Process> {
    place.processes().into_iter().filter(|process| process.pid != running.pid()).collect()
}

/// Slow: it kills one process after the other.
#[test]
fn whichever_process_is_killed_nothing_of_the_program_is_left() {
    let Some(place) = place_with_programs() else { return };
    let port = PORTS[2];
    // Its child has left its parent, and its session, and so has every process that is not waited for.
    let server = format!("sh -c 'setsid sleep 1000 & python3 echo.py {port}'");
    let start = || {
        let arguments = ["try", "--timeout", "120s", "--server", &server, "--set", "tcp=unix-stream", "--"];
        let running = Running::start(place.ipcmark(arguments).args([
            "sh",
            "-c",
            &format!("python3 ask.py {port}; sleep 1000"),
        ]));
        let sleeps = |process: &Process| process.command.iter().take(2).eq(["sleep", "1000"]);
        // That of the server, and that of the command.
        let both = || others(&place, &running).iter().filter(|process| sleeps(process)).count() == 2;
        assert!(wait_until(GONE_WITHIN, both), "{:?}", place.processes());
        running
    };
    start().kill();
    place.assert_nothing_is_left("after ipcmark was killed");
    for (killed, told) in
        [("__guard", "the process that guards it has ended"), ("echo.py", "while the command ran")]
    {
        let running = start();
        let all = others(&place, &running);
        let victim =
            all.iter().find(|process| process.command.iter().take(2).any(|word| word == killed)).unwrap();
        send(victim.pid, Signal::KILL);
        let said: Said = running.finish().expect(1);
        assert!(said.err.contains(told), "{said}");
        place.assert_nothing_is_left(killed);
    }
}

/// Slow: it tries programs as another user.
#[test]
fn an_ordinary_user_tries_too_but_no_program_with_rights_of_its_own() {
    let otherwise = "trying as an ordinary user is not tested";
    if !root() {
        return skip("it takes root to become another user; run `sudo cargo xtask test`", otherwise);
    }
    if !has("python3", "python3", otherwise) {
        return;
    }
    let place = open_place();
    place.file("echo.py", ECHO);
    place.file("ask.py", ASK);
    let port = PORTS[3];
    let set = format!("tcp:{port}=unix-stream");
    let server = format!("python3 echo.py {port}");
    let mut command = ordinary(&place, "./ipcmark");
    command.args([
        "try",
        "--time",
        "1s",
        "--server",
        &server,
        "--set",
        &set,
        "--",
        "python3",
        "ask.py",
        &port.to_string(),
    ]);
    let said = run(&mut command).expect(0);
    assert!(said.out.contains("Unix sockets instead of TCP"), "{said}");

    let path = place.path("with-rights");
    fs::copy("/bin/true", &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
    let said = run(ordinary(&place, "./ipcmark").args(["try", "--", "./with-rights"])).expect(2);
    assert!(said.err.contains("gets rights from its file"), "{said}");
    place.assert_nothing_is_left("after tries of an ordinary user");
}
