//! Little is allowed: an ordinary user, few descriptors, no directory for names, one CPU, no /sys, no /dev/shm.
//!
//! The run must measure what it can and say what it dropped and why, or end with an error that says what to
//! mend. What stands for a privilege here is that the tests themselves may be run by root: then they give it up.

use crate::common::{AS_ROOT, IPCMARK, Place, Said, asked, assert_none_failed, has, read, run, skip};
use mechanisms::registry::{self, CARDS};
use model::card::{Card, CardKind, Support};
use model::record::{ClockSource, Results};
use model::{Params, Placement};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Who owns nothing, on every Linux.
const NOBODY: u32 = 65_534;

pub fn root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A place that an ordinary user may enter and write, with a copy of the binary that it may execute.
pub fn open_place() -> Place {
    let place = Place::new();
    let all = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(place.path("."), all(0o777)).unwrap();
    // By another process: a copy that this one still writes, when a test beside it forks, is busy there.
    let copied = Command::new("cp").arg(IPCMARK).arg(place.path("ipcmark")).status().unwrap();
    assert!(copied.success());
    fs::set_permissions(place.path("ipcmark"), all(0o755)).unwrap();
    if root() {
        chown(place.tmp(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    place
}

/// `program`, found by its path or in `PATH`, as an ordinary user in `place`.
pub fn ordinary(place: &Place, program: &str) -> Command {
    let mut command = place.command(program);
    if root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// `ipcmark ARGUMENTS` as an ordinary user, after `setup` in a shell.
fn after(place: &Place, setup: &str, arguments: &[&str]) -> Command {
    let mut command = ordinary(place, "sh");
    command.args(["-c", &format!("{setup}; exec ./ipcmark \"$@\""), "sh"]).args(arguments);
    command
}

/// `ipcmark ARGUMENTS` as an ordinary user in a mount namespace of its own, after `setup` as its root. `None`, and
/// a word on standard error, where this host allows no such thing.
pub fn in_namespace(place: &Place, setup: &str, arguments: &[&str]) -> Option<Command> {
    let otherwise = "what a missing file system does is not tested";
    if !has("unshare", "util-linux", otherwise) || !has("setpriv", "util-linux", otherwise) {
        return None;
    }
    let mut command = place.command("unshare");
    // An ordinary user is root in a user namespace of its own, where that is allowed.
    let kind = if root() { "-m" } else { "-rm" };
    let drop = if root() { "setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs" } else { "" };
    command.args([
        kind,
        "sh",
        "-c",
        &format!("{setup} && echo READY >&2 && exec {drop} ./ipcmark \"$@\""),
        "sh",
    ]);
    let tried = run(place.command("unshare").args([kind, "sh", "-c", setup]));
    if tried.status.success() {
        command.args(arguments);
        Some(command)
    } else {
        skip(&format!("unshare(1) refuses: {}; {AS_ROOT}", tried.err.trim()), otherwise);
        None
    }
}

/// `ipcmark ARGUMENTS` as the user of the tests, who is root, in a mount namespace of its own, after `setup`. `None`, and a word on standard
/// error, where this host allows no such thing.
pub fn in_own_mounts(place: &Place, setup: &str, arguments: &[&str]) -> Option<Command> {
    if !has("unshare", "util-linux", "what a missing file system does is not tested") {
        return None;
    }
    let mut command = place.command("unshare");
    command.args(["-m", "sh", "-c", &format!("{setup} && exec \"$@\""), "sh", IPCMARK]).args(arguments);
    Some(command)
}

/// A scenario in which messages go through a pipe.
const THROUGH_A_PIPE: &str = r#"
name = "through a pipe"
[[process]]
name = "a"
recorded = { cpu = 0.9, switches_per_s = 1000, in_calls = 0.5, waited = 0.1 }
[[process]]
name = "b"
[[flow]]
name = "all"
from = "a"
to = "b"
mechanism = "pipe"
size = "64K"
recorded = { messages = 1000, per_s = 1000, client_waited = 0.1, server_waited = 0.5, partial_reads = 0 }
"#;

/// Slow: it measures by every command that shows a rate, long enough for a host that is busy.
#[test]
pub fn a_pipe_that_is_smaller_than_usual_is_told_of_wherever_its_rate_is() {
    /// A user of whom no other test has pipes.
    const LODGER: u32 = 65_533;
    const HOLD: &str = "import os,resource,sys; resource.setrlimit(resource.RLIMIT_NOFILE,(8192,8192)); os.setuid(65533); \
                        pipes=[os.pipe() for _ in range(1100)]; print('held',flush=True); sys.stdin.read()";
    let otherwise = "what a user with many pipes is told is not tested";
    if !root() {
        return skip("it takes root to be another user; run `sudo cargo xtask test`", otherwise);
    }
    if !has("python3", "python3", otherwise) {
        return;
    }
    let place = open_place();
    chown(place.tmp(), Some(LODGER), Some(LODGER)).unwrap();
    let mut holder = Command::new("python3");
    let mut holder = holder.args(["-c", HOLD]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut held = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut held).unwrap();

    let as_lodger = |arguments: &[&str]| {
        let mut command = place.command("./ipcmark");
        run(command.uid(LODGER).gid(LODGER).args(arguments)).expect(0)
    };
    let said = as_lodger(&[
        "run",
        "pipe",
        "-s",
        "64K",
        "-w",
        "throughput",
        "-p",
        "unpinned",
        "--rounds",
        "2",
        "-o",
        "results.jsonl",
    ]);
    // What is printed where no record is shown. The ratio is known after some trials, whatever its time.
    let others = [
        "compare pipe unix-stream -s 64K -w throughput -p unpinned --time 60s",
        "advise --pattern stream --size 64K pipe --time 20s",
        "explain pipe -s 64K -w throughput -p unpinned --probes counters --time 5s",
        "explain pipe -s 64K -w throughput -p unpinned --against unix-stream --time 20s",
        "predict scenario.toml --set all=unix-stream --time 15s",
    ];
    fs::write(place.path("scenario.toml"), THROUGH_A_PIPE).unwrap();
    let others = others.map(|words| as_lodger(&words.split(' ').collect::<Vec<_>>()));
    let doctor = as_lodger(&["doctor"]).out;
    drop(holder.stdin.take());
    holder.wait().unwrap();

    let usual = "pipe capacity usually 65536, here 8192";
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat(&said.out).contains(usual), "{said}");
    let record = asked(&read(&place.path("results.jsonl"))).next().unwrap().clone();
    assert_eq!(record.settings[0].usual.as_deref(), Some("65536"), "{record:?}");
    for other in &others {
        assert!(flat(&other.out).contains(&format!("pipe: {usual}; 'ipcmark doctor'")), "{other}");
    }
    let of_files = as_lodger(&["compare", "results.jsonl", "results.jsonl"]);
    assert!(flat(&of_files.out).contains(&format!("in B, pipe: {usual};")), "{of_files}");
    let report = |form: &str| as_lodger(&["report", "results.jsonl", "--format", form]).out;
    for form in ["table", "markdown"] {
        assert!(flat(&report(form)).contains(usual), "{form}");
    }
    assert!(report("csv").contains("pipe capacity: usually 65536, here 8192"));
    as_lodger(&["report", "results.jsonl", "--html", "tmp/page.html"]);
    let page = fs::read_to_string(place.path("tmp/page.html")).unwrap();
    assert!(page.contains(usual), "the page says nothing of it");
    // Where the output sends its reader, the reader finds what it is.
    assert!(flat(&said.out).contains("'ipcmark doctor'"), "{said}");
    assert!(doctor.contains("pipe-pages: a new pipe of this user holds 8K, not 64K"), "{doctor}");
}

/// `NAME` for every mechanism that works here for whoever runs the tests.
fn every_mechanism() -> Vec<&'static str> {
    let works = |name| matches!(registry::probe(name, &Params::default()), Some(Support::Yes { .. }));
    let mechanisms = CARDS.iter().filter(|card| card.kind != CardKind::Operation && works(card.name));
    mechanisms.map(|card| card.name).collect()
}

/// The arguments of a short run over every mechanism.
pub fn short_run() -> Vec<&'static str> {
    let effort =
        ["-s", "1,4096", "--iterations", "20", "--rounds", "1", "--time", "5m", "-o", "results.jsonl"];
    // Beside other programs that keep every CPU busy, ptys were seen to stand still for more than ten seconds.
    [["run", "--timeout", "4m"].as_slice(), &every_mechanism(), &effort].concat()
}

/// Runs `command`, which must measure all that it did not drop, and say why it dropped what it dropped.
pub fn measures_what_it_can(place: &Place, command: &mut Command) -> (Results, Said) {
    let said = run(command).expect(0);
    place.assert_nothing_is_left("after a restricted run");
    let results = read(&place.path("results.jsonl"));
    assert_none_failed(&results);
    assert!(asked(&results).count() > 0, "nothing was measured\n{said}");
    for record in asked(&results) {
        assert!(!record.samples.is_empty(), "{} was not measured\n{said}", record.case);
    }
    for dropped in &results.header.plan.dropped {
        assert!(dropped.reason.len() > 10, "{} was dropped without a word\n{said}", dropped.case);
    }
    (results, said)
}

/// The reason for which the case that begins with `start` was dropped.
pub fn dropped<'a>(results: &'a Results, start: &str) -> Option<&'a str> {
    let found = results.header.plan.dropped.iter().find(|dropped| dropped.case.starts_with(start));
    found.map(|dropped| dropped.reason.as_str())
}

/// Slow: it measures every mechanism under a restriction.
#[test]
fn an_ordinary_user_measures_as_much_as_any() {
    let place = open_place();
    assert_ordinary(&place);
    let (results, _) = measures_what_it_can(&place, ordinary(&place, "./ipcmark").args(short_run()));
    // A floor has no meaning in some placements; a mechanism has one in all. What this host lacks, it lacks for any.
    let works =
        |card: &&Card| matches!(registry::probe(card.name, &Params::default()), Some(Support::Yes { .. }));
    for card in CARDS.iter().filter(|card| card.kind == CardKind::Mechanism).filter(works) {
        // A token of four bytes holds no 4096.
        let refused = dropped(&results, &format!("{} latency ", card.name))
            .filter(|reason| !reason.starts_with("its largest message"));
        assert_eq!(refused, None, "{} needs no privilege", card.name);
    }
    for command in ["list", "doctor", "clean"] {
        run(ordinary(&place, "./ipcmark").arg(command)).expect(0);
    }
}

/// Fails unless commands really run as an ordinary user.
fn assert_ordinary(place: &Place) {
    let id = run(ordinary(place, "id").arg("-u")).expect(0);
    assert_ne!(id.out.trim(), "0");
}

/// Slow: it measures every mechanism under a restriction.
#[test]
fn descriptors_are_few() {
    let place = open_place();
    measures_what_it_can(&place, &mut after(&place, "ulimit -n 32", &short_run()));
}

#[test]
fn descriptors_are_too_few() {
    for limit in 3..12 {
        let place = open_place();
        let arguments = ["run", "pipe", "-p", "unpinned", "--iterations", "20", "--rounds", "1"];
        let said = run(&mut after(&place, &format!("ulimit -n {limit}"), &arguments));
        place.assert_nothing_is_left("after a run that was out of descriptors");
        let all = format!("{}{}", said.out, said.err);
        let words: Vec<&str> = all.split_whitespace().collect();
        match said.status.code() {
            Some(0) => return,
            // With fewer than the loader or a shell needs, nothing of the program's own runs.
            Some(126 | 127) => {}
            // It began and failed, or it saw beforehand that it could not.
            Some(1 | 2) => assert!(
                words.join(" ").contains("raise 'ulimit -n'") || !all.contains("ipcmark"),
                "{limit} descriptors: the remedy is not said\n{said}"
            ),
            _ => panic!("{limit} descriptors\n{said}"),
        }
        assert!(!said.err.contains("panicked"), "{limit} descriptors\n{said}");
    }
}

#[test]
fn names_have_no_place_to_go() {
    for home in ["/proc", "/nonexistent"] {
        let place = open_place();
        let short = ["run", "pipe", "fifo", "-s", "1", "-p", "unpinned", "--rounds", "1"];
        let said = run(ordinary(&place, "./ipcmark").env("TMPDIR", home).args(short)).expect(0);
        // What needs no name is measured and listed as working, and what does is not.
        assert!(said.out.contains("pipe"), "{said}");
        assert!(said.out.contains(&format!("access {home}")), "{said}");
        assert!(said.out.contains("TMPDIR"), "{said}");
        let list =
            run(ordinary(&place, "./ipcmark").env("TMPDIR", home).args(["list", "pipe", "fifo"])).expect(0);
        let works: Vec<&str> = list.out.lines().filter(|line| line.contains("works here")).collect();
        assert!(works[0].ends_with("yes"), "{list}");
        assert!(works[1].contains(&format!("no: access {home}")), "{list}");
        let clean = run(ordinary(&place, "./ipcmark").env("TMPDIR", home).arg("clean"));
        assert!([0, 1].contains(&clean.code()), "{clean}");
    }
}

#[test]
fn processes_are_too_many() {
    if !has("prlimit", "util-linux", "a limit of processes is not tested") {
        return;
    }
    let place = open_place();
    let arguments = ["run", "pipe", "-p", "unpinned", "--iterations", "20", "--rounds", "1"];
    let mut command = ordinary(&place, "prlimit");
    let said = run(command.args(["--nproc=1", "./ipcmark"]).args(arguments)).expect(1);
    place.assert_nothing_is_left("after a run that was out of processes");
    assert!(
        said.err.contains("start the janitor (/proc/self/exe): Resource temporarily unavailable"),
        "{said}"
    );
}

/// Slow: it measures every mechanism under a restriction.
#[test]
fn standard_streams_are_closed() {
    let place = open_place();
    let said = run(&mut after(&place, "exec <&- >&- 2>&-", &short_run()));
    assert_eq!((said.code(), said.out.as_str(), said.err.as_str()), (0, "", ""));
    assert_none_failed(&read(&place.path("results.jsonl")));
    place.assert_nothing_is_left("after a run without standard streams");
}

/// Slow: it measures every mechanism under a restriction.
#[test]
fn one_cpu_is_allowed() {
    if !has("taskset", "util-linux", "a single CPU is not tested") {
        return;
    }
    let place = open_place();
    let cpu = harness::host::topology::allowed()[0];
    let mut arguments = short_run();
    arguments.extend(["pipe:wait=spin", "-p", "same-core", "-p", "same-llc", "-p", "unpinned"]);
    let mut command = ordinary(&place, "taskset");
    command.args(["-c", &cpu.to_string(), "./ipcmark"]).args(arguments);
    let (results, _) = measures_what_it_can(&place, &mut command);
    let reason = dropped(&results, "pipe latency same-llc").unwrap();
    assert!(reason.contains(&format!("this process may use CPU {cpu} alone")), "{reason}");
    let reason = dropped(&results, "pipe:wait=spin latency same-core").unwrap();
    assert!(reason.contains("spin on one CPU"), "{reason}");
    let reason = dropped(&results, "pipe:wait=spin latency unpinned").unwrap();
    assert!(reason.contains("spin on one CPU"), "{reason}");
    let pipe = asked(&results).filter(|record| record.case.spec.to_string() == "pipe");
    let placements: Vec<Placement> = pipe.map(|record| record.case.placement).collect();
    assert!(placements.contains(&Placement::SameCore) && placements.contains(&Placement::Unpinned));
    for record in &results.records {
        let own = |pair: model::topology::CpuPair| pair.client == cpu && pair.server == cpu;
        assert!(record.case.cpus.is_none_or(own), "{}", record.case);
    }
    // What is asked for by default takes the placement that there is.
    let mut command = ordinary(&place, "taskset");
    let mut by_default = place_free(&short_run());
    by_default.push("second.jsonl");
    run(command.args(["-c", &cpu.to_string(), "./ipcmark"]).args(by_default)).expect(0);
    assert_none_failed(&read(&place.path("second.jsonl")));
}

/// `arguments` without the name of the results file, which comes last.
fn place_free<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    arguments[..arguments.len() - 1].to_vec()
}

/// Slow: it measures every mechanism under a restriction.
#[test]
fn sysfs_is_not_mounted() {
    let place = open_place();
    let setup = "mount -t tmpfs none /sys";
    let Some(mut command) = in_namespace(&place, setup, &short_run()) else { return };
    let (results, _) = measures_what_it_can(&place, &mut command);
    let header = &results.header;
    let unknown = header.host.topology.unknown.as_deref().unwrap();
    assert!(unknown.contains("is sysfs mounted?"), "{unknown}");
    assert_eq!(header.clock.source, ClockSource::MonotonicRaw, "{}", header.clock.reason);
    assert!(header.clock.reason.contains("does not say by which clock"), "{}", header.clock.reason);
    assert!(header.host.caches_bytes.known().is_none() && header.host.governor.known().is_none());
    let arguments = ["run", "--dry-run", "pipe", "-p", "same-core", "-p", "same-llc"];
    let said = run(&mut in_namespace(&place, setup, &arguments).unwrap()).expect(0);
    assert!(said.out.contains("case   pipe latency 1 same-core"), "{said}");
    assert!(said.out.contains("not    pipe latency same-llc: "), "{said}");
    for command in ["doctor", "list", "clean"] {
        run(&mut in_namespace(&place, setup, &[command]).unwrap()).expect(0);
    }
}

/// Slow: it measures every mechanism under a restriction.
#[test]
fn shared_memory_has_no_file_system() {
    let place = open_place();
    let setup = "mount -t tmpfs -o ro none /dev/shm";
    let Some(mut command) = in_namespace(&place, setup, &short_run()) else { return };
    measures_what_it_can(&place, &mut command);
}

#[test]
fn procfs_is_not_mounted() {
    let place = open_place();
    let setup = "mount -t tmpfs none /proc";
    let arguments = ["run", "pipe", "-p", "unpinned", "--iterations", "20", "--rounds", "1"];
    let Some(mut command) = in_namespace(&place, setup, &arguments) else { return };
    // Endpoints are this very program again, which only /proc can name: without it there is no run.
    let said = run(&mut command).expect(1);
    assert!(said.err.contains("/proc"), "what is missing is not said: {said}");
    assert!(place.leftovers().is_empty());
    for command in ["doctor", "list", "clean"] {
        run(&mut in_namespace(&place, setup, &[command]).unwrap()).expect(0);
    }
}

#[test]
fn clean_leaves_alone_what_other_users_made() {
    let place = open_place();
    assert_ordinary(&place);
    let at = |number: u32| place.tmp().join(format!("ipcmark-run-{number}-0000abcd"));
    // What stands there and is no directory of the user's own; by root where the tests run as root.
    fs::create_dir(at(1)).unwrap();
    fs::write(at(1).join("1.name"), "posix-shm /ipcmark-run-1-0000abcd-1-memory").unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at(2), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    std::os::unix::fs::symlink("/etc", at(3)).unwrap();
    let said = run(ordinary(&place, "./ipcmark").arg("clean")).expect(0);
    let others = if root() { 3 } else { 2 };
    assert!(said.out.contains(&format!("left alone: {others} ")), "{said}");
    assert!(at(2).exists() && at(3).is_symlink() && (!root() || at(1).join("1.name").exists()));
    // And root leaves alone what the user made.
    if root() {
        fs::remove_dir_all(at(1)).unwrap();
        run(ordinary(&place, "mkdir").arg(at(1))).expect(0);
        run(ordinary(&place, "mkfifo").arg(at(1).join("1.name"))).expect(0);
        let said = run(&mut place.ipcmark(["clean"])).expect(0);
        assert!(said.out.contains("left alone: 3 ") && at(1).join("1.name").exists(), "{said}");
    }
}

#[test]
fn a_directory_in_which_others_rename_is_not_used() {
    let place = open_place();
    fs::set_permissions(place.tmp(), fs::Permissions::from_mode(0o777)).unwrap();
    let short = ["run", "pipe", "fifo", "-s", "1", "-p", "unpinned", "--rounds", "1"];
    let said = run(ordinary(&place, "./ipcmark").args(short)).expect(0);
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("other users may rename and remove what lies in"), "{said}");
    assert!(words.contains("set TMPDIR to a directory of your own"), "{said}");
    place.assert_nothing_is_left("after a run in a directory that others may write");
}

#[test]
fn an_endpoint_that_may_start_no_thread_says_so() {
    if !root() {
        return skip(
            "it takes root to be another user; run `sudo cargo xtask test`",
            "an endpoint without threads",
        );
    }
    let place = open_place();
    let mut command = ordinary(&place, "prlimit");
    let said = run(command.args(["--nproc=0:0", "./ipcmark", "endpoint"]).stdin(Stdio::null())).expect(1);
    assert!(said.err.contains("the thread that listens") && !said.err.contains("panicked"), "{said}");
}
