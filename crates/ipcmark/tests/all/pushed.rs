//! Copies of the program that a run pushes: neighbours who want to be run in their place, deaths of whoever holds them, and the
//! commands that they come by.

use crate::common::{
    GONE_WITHIN, IPCMARK, Place, Process, Running, asked, assert_none_failed, has, read, run, send, skip,
    tool_is_missing, wait_until,
};
use crate::remote::TwoHosts;
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The user of neighbours.
const NOBODY: &str = "65534";
/// What the names of directories of copies begin with.
const PUSHED: &str = "ipcmark-push-";

/// A neighbour: whatever name of a copy in `place` shows in a command line of the host, there it puts a link to a file of the user, or a
/// program of its own once the user has made it one to be run. It says what it tried. The copies of other tests, whose names the host
/// shows too, are none of its.
const NEIGHBOUR: &str = r##"
import os, re, sys, time
way, place, precious, program = sys.argv[1:]
names, mine = re.compile(re.escape(place.encode()) + rb"/ipcmark-push-\w+(?:/ipcmark)?"), set()
def put(name):
    try:
        if way == "link":
            os.symlink(precious, name)
        else:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755))
        mine.add(name)
    except OSError as error:
        print("tried", name, error, flush=True)
def swap(name):
    if os.stat(name).st_mode & 0o777 == 0o700:
        with open(name + b".mine", "w") as file:
            file.write("#!/bin/sh\n" + program)
        os.chmod(name + b".mine", 0o755)
        os.rename(name + b".mine", name)
        mine.discard(name)
print("begun", flush=True)
while True:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                for name in names.findall(file.read()):
                    put(name)
        except OSError:
            pass
    for name in list(mine):
        try:
            way == "link" or swap(name)
        except OSError:
            mine.discard(name)
    time.sleep(0.005)
"##;

/// A place that other users may enter, with `PATH` to slow tools in it, so that a neighbour has time: between a command line and what it
/// does lies half a second.
fn open_place() -> (Place, String) {
    let place = Place::new();
    let open = |path: PathBuf, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    open(place.path(""), 0o755);
    open(place.tmp(), 0o1777);
    let slow = place.path("slow");
    fs::create_dir(&slow).unwrap();
    for tool in ["mktemp", "head", "tee", "chmod"] {
        fs::write(slow.join(tool), format!("#!/bin/sh\nsleep 0.5\nexec /usr/bin/{tool} \"$@\"\n")).unwrap();
        open(slow.join(tool), 0o755);
    }
    let path = std::env::var("PATH").unwrap();
    (place, format!("env PATH={}:{path}", slow.display()))
}

/// A neighbour who tries `way` with `precious` and `program` while `command` runs; what the command said, and what the neighbour did.
fn beside_a_neighbour(place: &Place, way: &str, rest: [&str; 2], command: &mut Command) -> String {
    let mut neighbour = Command::new("setpriv");
    neighbour.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "python3", "-c", NEIGHBOUR, way]);
    neighbour.arg(place.tmp());
    // Another user has no programs in root's own directories.
    let neighbour = neighbour.env("PATH", "/usr/bin:/bin").args(rest);
    let neighbour = neighbour.stdin(Stdio::null()).stdout(fs::File::create(place.path("said")).unwrap());
    let mut neighbour = neighbour.spawn().unwrap();
    let said = || fs::read_to_string(place.path("said")).unwrap();
    assert!(wait_until(GONE_WITHIN, || said().contains("begun")), "the neighbour does not begin");
    let outcome = run(command);
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
    // What the neighbour has put there is not the run's.
    let put = fs::read_dir(place.tmp()).unwrap().flatten();
    let put = put.filter(|entry| entry.metadata().is_ok_and(|at| at.uid().to_string() == NOBODY));
    put.for_each(|entry| fs::remove_file(entry.path()).unwrap());
    outcome.expect(0);
    said()
}

/// Slow: it copies the program again and again.
#[test]
fn a_neighbour_who_reads_every_command_line_gets_nothing_overwritten_and_nothing_run() {
    let untested = "neighbours of a pushed copy are not tested";
    if !rustix::process::geteuid().is_root() {
        return skip("the tests do not run as root; run `sudo cargo xtask test`", untested);
    }
    if !has("python3", "python3", untested) || !has("setpriv", "util-linux", untested) {
        return;
    }
    for way in ["link", "swap"] {
        let (place, via) = open_place();
        let precious = place.file("precious", "private");
        fs::set_permissions(&precious, Permissions::from_mode(0o600)).unwrap();
        let proof = place.path("proof");
        let program = format!("id -u > {}\n", proof.display());
        let line = ["run", "tcp", "-s", "1", "--rounds", "1", "--server-via", &via, "--push"];
        let rest = [precious.to_str().unwrap(), &program];
        let said = beside_a_neighbour(&place, way, rest, &mut place.ipcmark(line));
        assert!(!proof.exists(), "a neighbour's program ran as user {:?}", fs::read_to_string(&proof));
        assert_eq!(fs::read(&precious).unwrap(), b"private", "a private file was written to");
        assert!(
            said.contains(&format!("tried b'{}/{PUSHED}", place.tmp().display())),
            "it saw nothing: {said}"
        );
        place.assert_nothing_is_left("a run beside a neighbour");
    }
}

#[test]
fn nothing_is_pushed_where_others_may_rename_what_lies_there() {
    let (place, shared) = (Place::new(), Place::new());
    fs::set_permissions(shared.tmp(), Permissions::from_mode(0o777)).unwrap();
    let via = format!("env TMPDIR={}", shared.tmp().display());
    let said = run(&mut place.ipcmark(["run", "tcp", "-s", "1", "--server-via", &via, "--push"]));
    assert!(said.expect(1).err.contains("others may rename what lies in"));
    assert!(shared.leftovers().is_empty() && place.leftovers().is_empty());
}

/// A run of a minute with a pushed copy, which has a sample.
fn begun(place: &Place) -> Running {
    let output = place.path("begun.jsonl");
    let line = ["run", "tcp", "-s", "1", "--time", "60s", "--server-via", "env", "--push", "-o"];
    let running = Running::start(place.ipcmark(line).arg(&output));
    let begun = || fs::read_to_string(&output).is_ok_and(|text| text.contains("\"type\":\"sample\""));
    assert!(wait_until(GONE_WITHIN, begun), "no sample came");
    assert_eq!(copies(place), 1);
    running
}

fn copies(place: &Place) -> usize {
    place.leftovers().iter().filter(|name| name.starts_with(PUSHED)).count()
}

/// Whether `process` is the shell that pushes, or the copy that holds itself.
fn pushes(process: &Process) -> bool {
    process.command[0] == "sh" || process.command.get(1).is_some_and(|word| word == "__hold")
}

/// Slow: it pushes the program several times.
#[test]
fn whoever_of_a_push_is_killed_the_copy_is_removed() {
    // The shell and the copy, one of them or none, together with the coordinator.
    for killed in [&["sh", "__hold"][..1], &["__hold"], &[]] {
        let place = Place::new();
        let running = begun(&place);
        let is_meant = |process: &Process| process.command.iter().any(|word| killed.contains(&word.as_str()));
        let pushing: Vec<Process> = place.processes().into_iter().filter(pushes).collect();
        assert_eq!(pushing.len(), 2, "{pushing:?}");
        running.signal(Signal::STOP);
        pushing.iter().filter(|process| is_meant(process)).for_each(|process| {
            send(process.pid, Signal::KILL);
        });
        running.kill();
        place.assert_nothing_is_left(&format!("the coordinator and {killed:?} were killed"));
    }
}

#[test]
fn what_is_left_when_all_are_killed_at_once_is_for_clean_which_leaves_a_living_copy_alone() {
    let place = Place::new();
    let running = begun(&place);
    let cleaned = run(&mut place.ipcmark(["clean"])).expect(0);
    assert!(cleaned.out.contains("nothing to clean"), "{cleaned}");
    let all = place.processes();
    for signal in [Signal::STOP, Signal::KILL] {
        all.iter().for_each(|process| {
            send(process.pid, signal);
        });
    }
    running.kill();
    assert!(wait_until(GONE_WITHIN, || place.processes().is_empty()), "{:?}", place.processes());
    assert_eq!(copies(&place), 1);
    let cleaned = run(&mut place.ipcmark(["clean"])).expect(0);
    assert_eq!(cleaned.out.matches("removed ").count(), 2, "{cleaned}");
    place.assert_nothing_is_left("clean");
}

#[test]
fn a_copy_under_way_goes_with_its_coordinator() {
    let (place, via) = open_place();
    let line = ["run", "tcp", "-s", "1", "--server-via", &via, "--push"];
    let running = Running::start(&mut place.ipcmark(line));
    assert!(wait_until(GONE_WITHIN, || copies(&place) == 1), "nothing is pushed");
    running.kill();
    place.assert_nothing_is_left("a copy under way whose coordinator was killed");
}

/// The shells and tools of small containers.
/// Slow: it pushes the program and measures.
#[test]
fn a_copy_is_pushed_by_the_tools_of_busybox() {
    let Some(busybox) =
        ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| fs::exists(path).unwrap_or(false))
    else {
        return tool_is_missing("busybox", "busybox", "pushing with its tools is not tested");
    };
    let place = Place::new();
    let tools = place.path("tools");
    fs::create_dir(&tools).unwrap();
    for tool in ["sh", "mktemp", "ls", "id", "timeout", "head", "tee", "chmod", "rm", "rmdir"] {
        symlink(busybox, tools.join(tool)).unwrap();
    }
    let (output, via) = (place.path("one.jsonl"), format!("env PATH={}", tools.display()));
    let line = ["run", "tcp", "-s", "1", "--rounds", "1", "--server-via", &via, "--push", "-o"];
    run(place.ipcmark(line).arg(&output)).expect(0);
    assert_none_failed(&read(&output));
    assert!(asked(&read(&output)).all(|record| !record.samples.is_empty()));
    place.assert_nothing_is_left("a run with a copy that busybox pushed");
}

/// Does as containerd does with a command: once this has closed its output, nothing more of the input reaches it.
const ENDS_INPUT_WITH_OUTPUT: &str = r#"
at=$(mktemp -d) && trap 'rm -r "$at"' EXIT && mkfifo "$at/input" && exec 3<&0
cat <&3 >"$at/input" & feeder=$!
"$@" <"$at/input" | { cat; kill $feeder 2>/dev/null; true; }
"#;

/// Slow: it pushes the program and measures.
#[test]
fn a_copy_is_pushed_by_a_command_that_ends_the_input_with_the_output() {
    let Some(hosts) = TwoHosts::new("pushing the program is not tested") else { return };
    let place = Place::new();
    fs::write(place.path("via.sh"), ENDS_INPUT_WITH_OUTPUT).unwrap();
    let via = format!("sh via.sh {}", hosts.via());
    // The command does as it is said to: what closes its output gets no more than was under way.
    let copied = |words: &str| {
        let line = format!("sh via.sh {words} < {IPCMARK} > /dev/null 2>&1; stat -c %s copy");
        run(place.command("sh").args(["-c", &line])).expect(0).out.trim().parse::<u64>().unwrap()
    };
    let whole = fs::metadata(IPCMARK).unwrap().len();
    assert!(copied("sh -c 'exec >copy; sleep 1; cat'") < whole);
    assert_eq!(copied("tee copy"), whole);
    let line = ["run", "tcp", "-s", "1", "--rounds", "1", "--server-via", &via, "--push"];
    run(&mut hosts.ipcmark(&place, &line)).expect(0);
}

#[test]
fn a_copy_that_arrives_in_part_or_with_something_else_is_not_run() {
    let place = Place::new();
    for (words, says) in [
        ("dd bs=4096 count=30 2>dd | \"$@\"", "what arrived there is another file, or a part of it"),
        ("\"$@\" | LC_ALL=C sed -u s/ELF/FLE/", "what arrived there is another file, or a part of it"),
        ("echo Welcome; \"$@\"", "it says 'Welcome' instead of where the copy is"),
        ("true", "the command ended before the copy was held"),
    ] {
        fs::write(place.path("via.sh"), words).unwrap();
        let line = ["run", "tcp", "-s", "1", "--server-via", "sh via.sh", "--push"];
        let said = run(&mut place.ipcmark(line)).expect(1);
        assert!(said.err.contains(says), "{words}: {}", said.err);
        place.assert_nothing_is_left("a push that failed");
    }
}

#[test]
fn a_copy_is_pushed_for_the_run_and_removed() {
    let Some(hosts) = TwoHosts::new("pushing the program is not tested") else { return };
    let (place, via) = (Place::new(), hosts.via());
    let line = ["run", "tcp", "-s", "1", "--rounds", "1", "--server-via", &via, "--push"];
    run(&mut hosts.ipcmark(&place, &line)).expect(0);
    place.assert_nothing_is_left("a run with a pushed copy");
}
