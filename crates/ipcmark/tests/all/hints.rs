//! Where a refusal sends its reader: each hint is followed, and what it leads to must speak of what was refused.
//!
//! Refusals are provoked by namespaces and filters of the kernel's own; what this host does not allow is skipped by name.

use crate::common::{Place, Said, has, run, skip};
use crate::confined::refuse;
use crate::limits::filtered;
use crate::restricted::{
    a_pipe_that_is_smaller_than_usual_is_told_of_wherever_its_rate_is, in_namespace, open_place, ordinary,
    root,
};
use mechanisms::registry::CARDS;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The words of `text` with single blanks between them.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `ipcmark` with each list of `arguments`, in a place of its own made by `start`.
fn said_in(start: &dyn Fn(&Place, &[&str]) -> Option<Command>, arguments: &[&[&str]]) -> Option<Vec<Said>> {
    let place = open_place();
    arguments.iter().map(|one| Some(run(&mut start(&place, one)?))).collect()
}

/// A run of `spec` in namespaces after `setup`, which must be refused with the hint `doctor`, and what the doctor says there.
fn refused_and_diagnosed(setup: &str, spec: &str) -> Option<(String, String)> {
    let start = |place: &Place, arguments: &[&str]| in_namespace(place, setup, arguments);
    let run = ["run", spec, "-s", "1", "-p", "unpinned", "--rounds", "1"];
    let mut said = said_in(&start, &[&run, &["doctor"]])?;
    let doctor = said.pop()?.expect(0).out;
    let refusal = said.pop()?;
    let refusal = flat(&format!("{} {}", refusal.out, refusal.err));
    assert!(refusal.contains("'ipcmark doctor'"), "{refusal}");
    Some((refusal, flat(&doctor)))
}

#[test]
fn a_network_without_loopback_is_named_by_the_doctor() {
    let otherwise = "what is said where loopback is down";
    if !has("unshare", "util-linux", otherwise) {
        return;
    }
    let start = |place: &Place, arguments: &[&str]| {
        let mut command = place.command("unshare");
        command.args([if root() { "-n" } else { "-rn" }, "./ipcmark"]).args(arguments);
        Some(command)
    };
    let place = open_place();
    let tried = run(place.command("unshare").args([if root() { "-n" } else { "-rn" }, "true"]));
    if !tried.status.success() {
        return skip(&format!("unshare(1) refuses: {}", tried.err.trim()), otherwise);
    }
    let run = ["run", "tcp", "-s", "1", "-p", "unpinned", "--rounds", "1"];
    let said = said_in(&start, &[&run, &["doctor"]]).unwrap();
    let refusal = flat(&format!("{} {}", said[0].out, said[0].err));
    assert!(refusal.contains("'ipcmark doctor'"), "{refusal}");
    let doctor = flat(&said[1].out);
    assert!(doctor.contains("loopback: the interface lo is down"), "{doctor}");
    assert!(doctor.contains("ip link set lo up"), "{doctor}");
}

/// Slow: it starts the program and its doctor in three sets of mounts.
#[test]
fn posix_objects_that_cannot_be_made_are_named_by_the_doctor() {
    for spec in ["shm-ring:memory=posix", "shm-queue:memory=posix", "shm:memory=posix"] {
        let setup = "mount -t tmpfs -o ro none /dev/shm";
        let Some((refusal, doctor)) = refused_and_diagnosed(setup, spec) else { return };
        assert!(!refusal.contains("TMPDIR"), "no TMPDIR mends this: {refusal}");
        assert!(doctor.contains("shared-memory: /dev/shm is read-only"), "{doctor}");
    }
}

/// A /dev with what every program needs, and nothing more.
const BARE_DEV: &str = "mkdir -p $TMPDIR/dev && mount --rbind /dev $TMPDIR/dev && mount -t tmpfs none /dev && \
                        for n in null zero full random urandom tty; do touch /dev/$n && mount --bind $TMPDIR/dev/$n /dev/$n; done";

/// Slow: it starts the program and its doctor in two sets of mounts.
#[test]
fn what_is_not_in_dev_is_named_by_the_doctor() {
    let Some((_, doctor)) = refused_and_diagnosed(BARE_DEV, "shm-ring:memory=posix") else { return };
    assert!(doctor.contains("shared-memory: there is no /dev/shm"), "{doctor}");
    let Some((refusal, doctor)) = refused_and_diagnosed(BARE_DEV, "pty") else { return };
    assert!(refusal.contains("/dev/ptmx"), "{refusal}");
    assert!(doctor.contains("pseudo-terminals: there is no /dev/ptmx"), "{doctor}");
}

#[test]
fn a_filter_that_forbids_calls_is_named_by_the_doctor() {
    let place = open_place();
    let confined = || {
        refuse([(libc::SYS_io_uring_setup, Vec::new())].into(), libc::EOPNOTSUPP);
        let ring = ["run", "pipe-uring", "-s", "1", "-p", "unpinned", "--rounds", "1"];
        let said = run(ordinary(&place, "./ipcmark").args(ring));
        let refusal = flat(&format!("{} {}", said.out, said.err));
        assert!(refusal.contains("io_uring switched off"), "{said}");
        let doctor = flat(&run(ordinary(&place, "./ipcmark").arg("doctor")).expect(0).out);
        assert!(doctor.contains("seccomp: system calls are filtered by seccomp"), "{doctor}");
    };
    std::thread::scope(|threads| threads.spawn(confined).join().unwrap());
}

/// A run of `spec` that is over soon.
fn short(spec: &str) -> [&str; 8] {
    ["run", spec, "-s", "1", "-p", "unpinned", "--rounds", "1"]
}

#[test]
fn a_filter_that_forbids_new_processes_is_named_by_the_doctor() {
    let place = Place::new();
    // The C library takes clone(2) where there is no clone3, and asks for nothing else where that is not permitted.
    run(&mut filtered(&place, libc::SYS_clone3, Some(libc::ENOSYS), &short("pipe"))).expect(0);
    let mut refused = false;
    for call in [libc::SYS_clone3, libc::SYS_clone] {
        let said = run(&mut filtered(&place, call, Some(libc::EPERM), &short("pipe")));
        let refusal = flat(&format!("{} {}", said.out, said.err));
        assert!(!refusal.contains("panicked"), "{said}");
        // Which of the two makes processes is the C library's affair.
        if said.code() == 0 {
            continue;
        }
        refused = true;
        assert!(refusal.contains("'ipcmark doctor' whether calls are filtered"), "{said}");
        let doctor = run(&mut filtered(&place, call, Some(libc::EPERM), &["doctor"])).expect(0);
        assert!(flat(&doctor.out).contains("seccomp: system calls are filtered by seccomp"), "{doctor}");
    }
    assert!(refused, "processes are made by another call");
    place.assert_nothing_is_left("after runs without processes");
}

#[test]
fn a_call_that_is_hidden_is_named_by_the_doctor() {
    let place = Place::new();
    let said = run(&mut filtered(&place, libc::SYS_msgget, Some(libc::ENOSYS), &short("sysv-msg"))).expect(2);
    let refusal = flat(&said.err);
    assert!(refusal.contains("a filter of calls hides it, which 'ipcmark doctor' tells"), "{said}");
    let doctor = run(&mut filtered(&place, libc::SYS_msgget, Some(libc::ENOSYS), &["doctor"])).expect(0);
    assert!(flat(&doctor.out).contains("seccomp: system calls are filtered by seccomp"), "{doctor}");
}

#[test]
fn a_call_that_is_not_permitted_is_named_by_the_doctor_and_what_it_is_for_by_the_list() {
    let place = Place::new();
    let said = run(&mut filtered(&place, libc::SYS_socket, Some(libc::EACCES), &short("tcp"))).expect(2);
    let refusal = flat(&said.err);
    assert!(
        refusal.contains("'ipcmark list NAME' says what it needs, 'ipcmark doctor' whether calls"),
        "{said}"
    );
    let list = run(&mut filtered(&place, libc::SYS_socket, Some(libc::EACCES), &["list", "tcp"])).expect(0);
    assert!(list.out.contains("limits ") && list.out.contains("tcp(7)"), "{list}");
    let doctor = run(&mut filtered(&place, libc::SYS_socket, Some(libc::EACCES), &["doctor"])).expect(0);
    assert!(flat(&doctor.out).contains("seccomp: system calls are filtered by seccomp"), "{doctor}");
}

#[test]
fn a_probe_that_is_killed_leads_to_what_the_doctor_says_of_filters() {
    let place = Place::new();
    let explain = ["explain", "pipe", "-p", "unpinned", "--time", "1s"];
    let said = run(&mut filtered(&place, libc::SYS_perf_event_open, None, &explain)).expect(0);
    assert!(flat(&said.out).contains("see 'ipcmark doctor'"), "{said}");
    let doctor = run(&mut filtered(&place, libc::SYS_perf_event_open, None, &["doctor"])).expect(0);
    assert!(flat(&doctor.out).contains("seccomp: system calls are filtered by seccomp"), "{doctor}");
}

#[test]
fn a_limit_of_processes_is_named_by_the_doctor() {
    if !has("prlimit", "util-linux", "what the doctor says where no process may be started") {
        return;
    }
    let place = open_place();
    let limited = |arguments: &[&str]| {
        run(ordinary(&place, "prlimit").args(["--nproc=1", "./ipcmark"]).args(arguments))
    };
    let said = limited(&short("pipe")).expect(1);
    assert!(flat(&said.err).contains("how many processes may be started 'ipcmark doctor' tells"), "{said}");
    let doctor = flat(&limited(&["doctor"]).expect(0).out);
    assert!(doctor.contains("processes: 0 more processes may be started"), "{doctor}");
}

#[test]
fn huge_pages_that_are_missing_are_counted_and_the_doctor_has_them() {
    let number =
        |name: &str| fs::read_to_string(format!("/proc/sys/vm/{name}")).map(|text| text.trim().to_owned());
    let none = ["nr_hugepages", "nr_overcommit_hugepages"].map(|name| number(name).ok());
    if none.iter().any(|number| number.as_deref() != Some("0")) {
        let lacks =
            format!("huge pages are reserved or unknown here, {none:?}; run `sysctl vm.nr_hugepages=0`");
        return skip(&lacks, "a host without huge pages");
    }
    let place = Place::new();
    let said = run(&mut place.ipcmark(short("shm-ring:memory=huge"))).expect(2);
    let refusal = flat(&said.err);
    assert!(refusal.contains("0 huge pages are free, 1 are needed; sysctl vm.nr_hugepages=1"), "{said}");
    let doctor = flat(&run(&mut place.ipcmark(["doctor"])).expect(0).out);
    assert!(doctor.contains("reserved-huge-pages: no huge pages are reserved"), "{doctor}");
}

#[test]
fn a_user_with_many_descriptors_on_their_way_needs_a_higher_limit() {
    /// A user whom no other test has sending descriptors.
    const COURIER: u32 = 65_532;
    /// 600 descriptors that were sent and not received.
    const SEND: &str = "import array,os,resource,socket,sys; resource.setrlimit(resource.RLIMIT_NOFILE,(4096,4096)); \
                        os.setgid(65532); os.setuid(65532); pairs=[socket.socketpair() for _ in range(6)]; r,w=os.pipe(); \
                        [a.sendmsg([b'x'],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array('i',[r]*10))]) for a,b in pairs for _ in range(10)]; \
                        print('sent',flush=True); sys.stdin.read()";
    let otherwise = "what a user with many descriptors on their way is told";
    if !root() {
        return skip("it takes root to be another user; run `sudo cargo xtask test`", otherwise);
    }
    if !has("python3", "python3", otherwise) || !has("prlimit", "util-linux", otherwise) {
        return;
    }
    let place = open_place();
    std::os::unix::fs::chown(place.tmp(), Some(COURIER), Some(COURIER)).unwrap();
    let sender =
        Command::new("python3").args(["-c", SEND]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut sender = sender.unwrap();
    sender.stdout.as_mut().unwrap().read_exact(&mut [0; 4]).unwrap();
    let limited = |limit: u32| {
        let mut command = place.command("setpriv");
        command.args([
            "--reuid=65532",
            "--regid=65532",
            "--clear-groups",
            "prlimit",
            &format!("--nofile={limit}"),
        ]);
        run(command.arg("./ipcmark").args(short("pipe")))
    };
    let refused = limited(256);
    let mended = limited(4096);
    drop(sender.stdin.take());
    sender.wait().unwrap();
    let said = refused.expect(1);
    let words = "Too many references: cannot splice (os error 109) (too many descriptors are on their way to others: raise 'ulimit -n')";
    assert!(flat(&said.out).contains(words), "{said}");
    mended.expect(0);
}

#[test]
fn a_limit_that_clamped_is_named_by_the_list() {
    let place = open_place();
    let setting = [&short("unix-stream:sndbuf=1G")[..], &["--detail"]].concat();
    let said = run(ordinary(&place, "./ipcmark").args(setting)).expect(0);
    assert!(flat(&said.out).contains("raise the limit that 'ipcmark list NAME' names"), "{said}");
    let list = run(ordinary(&place, "./ipcmark").args(["list", "unix-stream"])).expect(0);
    assert!(list.out.contains("net.core.wmem_max"), "{list}");
}

#[test]
fn how_the_speed_of_the_host_changes_is_told_by_the_doctor() {
    let said = run(&mut Place::new().ipcmark(["doctor"])).expect(0);
    assert!(said.out.lines().any(|line| line.contains(" speed: ")), "{said}");
}

#[test]
fn what_is_unknown_is_found_in_the_list() {
    let place = Place::new();
    let said = run(&mut place.ipcmark(["run", "zzz"])).expect(2);
    assert!(said.err.contains("more, which 'ipcmark list' shows"), "{said}");
    let list = run(&mut place.ipcmark(["list"])).expect(0);
    assert!(CARDS.iter().all(|card| list.out.contains(card.name)), "{list}");
}

/// Each hint that leads to `doctor` or to `list`, by words of its line in the sources, and the test that follows it.
const FOLLOWED: &[(&str, fn())] = &[
    (
        "'ipcmark list NAME' says what it needs",
        a_call_that_is_not_permitted_is_named_by_the_doctor_and_what_it_is_for_by_the_list,
    ),
    ("a filter of calls hides it", a_call_that_is_hidden_is_named_by_the_doctor),
    ("how many processes may be started", a_limit_of_processes_is_named_by_the_doctor),
    ("what is missing in /dev", what_is_not_in_dev_is_named_by_the_doctor),
    ("whether loopback is up", a_network_without_loopback_is_named_by_the_doctor),
    ("POSIX objects lie in", posix_objects_that_cannot_be_made_are_named_by_the_doctor),
    ("const SEE_DOCTOR", a_probe_that_is_killed_leads_to_what_the_doctor_says_of_filters),
    (", which 'ipcmark list' shows", what_is_unknown_is_found_in_the_list),
    ("See 'ipcmark doctor'.", how_the_speed_of_the_host_changes_is_told_by_the_doctor),
    ("raise the limit that 'ipcmark list NAME' names", a_limit_that_clamped_is_named_by_the_list),
    ("the kernel gave less than was asked for as", a_limit_that_clamped_is_named_by_the_list),
    ("Warning::Unusual", a_pipe_that_is_smaller_than_usual_is_told_of_wherever_its_rate_is),
    ("another value than it usually does", a_pipe_that_is_smaller_than_usual_is_told_of_wherever_its_rate_is),
];

/// The sources below `directory`, without those of tests alone.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let of_tests = |path: &Path| {
        path.file_stem().is_some_and(|stem| stem == "tests" || stem.to_string_lossy().ends_with("_tests"))
    };
    let found = entries.filter(|path| !of_tests(path)).flat_map(|path| match path.is_dir() {
        true => sources(&path),
        false => vec![path],
    });
    found.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

#[test]
fn no_hint_is_without_a_test_that_follows_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut met = vec![false; FOLLOWED.len()];
    for source in fs::read_dir(crates).unwrap().flat_map(|one| sources(&one.unwrap().path().join("src"))) {
        let text = fs::read_to_string(&source).unwrap();
        // What a file's own tests expect is no hint.
        let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let lines = product.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in lines.filter(|line| line.contains("'ipcmark doctor'") || line.contains("'ipcmark list")) {
            let follower = FOLLOWED.iter().position(|(words, _)| line.contains(words));
            let follower =
                follower.unwrap_or_else(|| panic!("{}: nothing follows: {}", source.display(), line.trim()));
            met[follower] = true;
        }
    }
    let gone: Vec<&str> =
        FOLLOWED.iter().zip(met).filter(|(_, met)| !met).map(|((words, _), _)| *words).collect();
    assert!(gone.is_empty(), "these hints are no more: {gone:?}");
}
