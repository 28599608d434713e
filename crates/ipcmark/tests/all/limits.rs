//! Limits and places that hardly any host has, and that end a program without a word if it does not look for them: the size of files, a
//! small stack, no /dev/null, names that cannot be made, and filters that kill who makes a system call.

use crate::common::{IPCMARK, Place, Said, asked, error, example, read, run, skip};
use crate::restricted::{dropped, in_namespace, measures_what_it_can, open_place};
use mechanisms::registry;
use model::Params;
use model::card::Support;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::process::Command;

/// A run that is over soon.
const SHORT: [&str; 9] = ["-s", "1", "-p", "unpinned", "--rounds", "1", "--iterations", "20", "--time=5m"];

/// `ipcmark ARGUMENTS` after `setup` in a shell.
fn after(place: &Place, setup: &str, arguments: &[&str]) -> Command {
    let mut command = place.command("sh");
    command.args(["-c", &format!("{setup}; exec \"$@\""), "sh", crate::common::IPCMARK]).args(arguments);
    command
}

/// All that was said, its lines joined.
fn words(said: &Said) -> String {
    format!("{} {}", said.out, said.err).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_limit_of_file_sizes_is_an_error_and_what_was_measured_is_shown() {
    let place = Place::new();
    let arguments = [&["run", "pipe", "tsc", "-o", "results.jsonl"][..], &SHORT].concat();
    // In units of 512 bytes: the header of the results is longer.
    let said = run(&mut after(&place, "ulimit -f 4", &arguments)).expect(1);
    let all = words(&said);
    assert!(said.out.contains("tsc") && all.contains("the results file is incomplete"), "{said}");
    assert!(
        all.contains("write results.jsonl: File too large") && all.contains("raise 'ulimit -f'"),
        "{said}"
    );
    place.assert_nothing_is_left("after a run with a limit of file sizes");
    // Even where nothing can be written at all, a run that writes nothing is measured.
    let arguments = [&["run", "pipe"][..], &SHORT].concat();
    let said = run(&mut after(&place, "ulimit -f 0", &arguments)).expect(0);
    assert!(said.out.contains("pipe"), "{said}");
    // What is started has the signal as it would be without.
    let recorded =
        ["record", "--time", "5s", "--", "sh", "-c", "echo 0123456789 >written; echo rest >>written"];
    let said = run(&mut after(&place, "ulimit -f 0", &recorded));
    assert!(
        !words(&said).contains("File too large"),
        "SIGXFSZ is not the default in a recorded program: {said}"
    );
}

/// Slow: it measures every mechanism under a restriction.
#[test]
fn a_small_stack_is_enough() {
    let place = Place::new();
    for kilobytes in [64, 128, 512] {
        for words in [&["list"][..], &["doctor"], &["--help"], &["clean"], &["run", "--such"]] {
            let said = run(&mut after(&place, &format!("ulimit -s {kilobytes}"), words));
            said.expect(if words.len() == 2 { 2 } else { 0 });
        }
        let mechanisms = ["run", "pipe", "udp", "shm-ring", "process"];
        run(&mut after(&place, &format!("ulimit -s {kilobytes}"), &[&mechanisms[..], &SHORT].concat()))
            .expect(0);
        place.assert_nothing_is_left("after a run on a small stack");
    }
}

#[test]
fn a_missing_dev_null_is_named() {
    let place = open_place();
    let arguments = [&["run", "pipe"][..], &SHORT].concat();
    // Closed standard streams would be opened there by the library.
    let Some(mut command) = in_namespace(&place, "mount -t tmpfs none /dev", &arguments) else { return };
    let said = run(&mut command).expect(1);
    assert!(said.err.contains("open /dev/null: No such file or directory"), "{said}");
    assert!(
        said.err.contains("mknod -m 666 /dev/null c 1 3") && !said.err.contains("/proc/self/exe"),
        "{said}"
    );
}

#[test]
fn a_directory_whose_name_is_not_utf8_is_said_once_and_what_needs_no_name_is_measured() {
    let place = Place::new();
    let directory = place.path("tmp").join(OsStr::from_bytes(b"\xff\xfe"));
    fs::create_dir(&directory).unwrap();
    let arguments = [&["run", "pipe", "fifo", "unix-stream", "-o", "results.jsonl"][..], &SHORT];
    let said = run(place.ipcmark(arguments.concat()).env("TMPDIR", &directory)).expect(0);
    let results = read(&place.path("results.jsonl"));
    assert!(asked(&results).any(|record| record.case.spec.name == "pipe"), "{said}");
    assert!(asked(&results).all(|record| error(record).is_none()), "{said}");
    assert!(dropped(&results, "fifo").is_some_and(|reason| reason.contains("is not UTF-8")), "{said}");
    assert!(!words(&said).contains("report this bug"), "{said}");
    assert!(fs::read_dir(&directory).unwrap().next().is_none());
}

#[test]
fn a_directory_in_which_none_can_be_made_is_no_fault_of_a_case() {
    let place = open_place();
    // Its mode allows it, and the file system has no room for a further entry.
    let setup = "mount -t tmpfs -o nr_inodes=2,mode=1777 none $TMPDIR && touch $TMPDIR/full";
    let arguments = [&["run", "pipe", "fifo", "-o", "results.jsonl"][..], &SHORT].concat();
    let Some(mut command) = in_namespace(&place, setup, &arguments) else { return };
    let (results, said) = measures_what_it_can(&place, &mut command);
    assert!(asked(&results).all(|record| record.case.spec.name == "pipe"), "{said}");
    let reason = dropped(&results, "fifo").unwrap_or_default();
    assert!(reason.contains("make something in") && reason.contains("No space left on device"), "{said}");
    let list = run(&mut in_namespace(&place, setup, &["list", "fifo"]).unwrap()).expect(0);
    assert!(words(&list).contains("No space left on device"), "{list}");
}

#[test]
fn a_file_that_the_kernel_does_not_read_is_no_bad_input() {
    let place = Place::new();
    // Nothing is mapped at the address 0.
    for words in
        [&["report", "/proc/self/mem"][..], &["run", "/proc/self/mem"], &["replay", "/proc/self/mem"]]
    {
        let said = run(&mut place.ipcmark(words)).expect(1);
        assert!(said.err.contains("read /proc/self/mem: Input/output error"), "{said}");
    }
    for words in [&["report", "none"][..], &["report", "."], &["run", "./none"], &["report", "none/x"]] {
        run(&mut place.ipcmark(words)).expect(2);
    }
}

#[test]
fn a_link_that_was_planted_is_not_followed_by_the_manual() {
    let place = Place::new();
    fs::create_dir(place.path("man1")).unwrap();
    place.file("precious", "precious");
    let link = place.path("man1/ipcmark-run.1");
    std::os::unix::fs::symlink(place.path("precious"), &link).unwrap();
    let said = run(&mut place.ipcmark(["man", "--directory", "man1"])).expect(2);
    assert!(said.err.contains("ipcmark-run.1 exists"), "{said}");
    // A link that leads nowhere is replaced, and nothing is made where it leads.
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(place.path("new"), &link).unwrap();
    run(&mut place.ipcmark(["man", "--directory", "man1", "--overwrite"])).expect(0);
    assert!(!place.path("new").exists() && !link.is_symlink());
    assert_eq!(fs::read_to_string(place.path("precious")).unwrap(), "precious");
    run(&mut place.ipcmark(["man", "--directory", "man1"])).expect(2);
}

/// `ipcmark ARGUMENTS` in `place`, under a filter that kills who makes `call`.
fn under(place: &Place, call: i64, arguments: &[&str]) -> Command {
    filtered(place, call, None, arguments)
}

/// The same, under a filter that answers `call` with `errno`, or kills who makes it.
pub fn filtered(place: &Place, call: i64, errno: Option<i32>, arguments: &[&str]) -> Command {
    let answer = errno.map_or("kill".to_owned(), |errno| errno.to_string());
    let mut command = place.command(example("under_filter"));
    command.args([call.to_string(), answer]).arg(IPCMARK).args(arguments);
    command
}

/// Calls that mechanisms make, and no program needs: by name, number, and a mechanism that makes it.
const CALLS: &[(&str, i64, &str)] = &[
    ("msgget", libc::SYS_msgget, "sysv-msg"),
    ("semget", libc::SYS_semget, "sysv-sem"),
    ("shmget", libc::SYS_shmget, "shm-ring:memory=sysv"),
    ("mq_open", libc::SYS_mq_open, "posix-mq"),
    ("io_uring_setup", libc::SYS_io_uring_setup, "pipe-uring"),
    ("io_uring_enter", libc::SYS_io_uring_enter, "pipe-uring"),
    ("memfd_create", libc::SYS_memfd_create, "shm-ring"),
    ("pidfd_open", libc::SYS_pidfd_open, "pidfd-signal"),
    ("pidfd_send_signal", libc::SYS_pidfd_send_signal, "pidfd-signal"),
    ("eventfd2", libc::SYS_eventfd2, "eventfd"),
    ("signalfd4", libc::SYS_signalfd4, "signalfd"),
    ("process_vm_readv", libc::SYS_process_vm_readv, "process-vm"),
    ("splice", libc::SYS_splice, "pipe-splice"),
    ("vmsplice", libc::SYS_vmsplice, "pipe-vmsplice"),
    ("tee", libc::SYS_tee, "tee"),
    ("mknodat", libc::SYS_mknodat, "fifo"),
    ("accept4", libc::SYS_accept4, "tcp"),
    ("socket", libc::SYS_socket, "udp"),
    ("msgsnd", libc::SYS_msgsnd, "sysv-msg"),
];

/// Slow: it measures every mechanism under a restriction.
#[test]
fn a_call_that_a_filter_kills_costs_its_mechanism_and_no_more() {
    for &(call, number, spec) in CALLS {
        let name = spec.split(':').next().unwrap();
        if !matches!(registry::probe(name, &Params::default()), Some(Support::Yes { .. })) {
            skip(&format!("{name} does not work here"), &format!("a filter that kills {call}"));
            continue;
        }
        let place = Place::new();
        let arguments = [&["run", "pipe", spec, "-o", "results.jsonl"][..], &SHORT].concat();
        for command in ["doctor", "clean"] {
            run(&mut under(&place, number, &[command])).expect(0);
        }
        let list = run(&mut under(&place, number, &["list"])).expect(0);
        let said = run(&mut under(&place, number, &arguments));
        assert!(list.out.contains("pipe"), "{call}: {list}");
        place.assert_nothing_is_left(call);
        let results = read(&place.path("results.jsonl"));
        let pipe = asked(&results).find(|record| record.case.spec.name == "pipe").unwrap();
        assert!(!pipe.samples.is_empty(), "{call}: pipe was not measured\n{said}");
        // It was seen before, or ended an endpoint.
        let failed = asked(&results).filter_map(error).next();
        let why = dropped(&results, name).or(failed).unwrap_or_else(|| panic!("{call}: {said}"));
        assert!(why.contains(&format!("a seccomp filter kills who calls {call}(2)")), "{call}: {why}");
        assert_eq!(said.code(), i32::from(failed.is_some()), "{call}: {said}");
    }
}

#[test]
fn without_a_call_that_all_need_nothing_is_begun() {
    for (call, number) in [
        ("flock", libc::SYS_flock),
        ("kill", libc::SYS_kill),
        ("prctl", libc::SYS_prctl),
        ("clock_nanosleep", libc::SYS_clock_nanosleep),
        ("socketpair", libc::SYS_socketpair),
        ("sendmsg", libc::SYS_sendmsg),
        ("futex", libc::SYS_futex),
    ] {
        let place = Place::new();
        let arguments = [&["run", "pipe"][..], &SHORT].concat();
        let said = run(&mut under(&place, number, &arguments)).expect(1);
        assert!(said.err.contains(&format!("a seccomp filter kills who calls {call}(2)")), "{call}: {said}");
        assert!(said.err.contains("SystemCallFilter"), "{call}: {said}");
        place.assert_nothing_is_left(call);
    }
}

#[test]
fn what_cannot_be_removed_under_a_filter_stays_with_its_record() {
    let place = Place::new();
    let directory = place.tmp().join("ipcmark-run-1-0000abcd");
    fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
    fs::write(directory.join("1.name"), "sysv-msg 1234567890").unwrap();
    let said = run(&mut under(&place, libc::SYS_msgget, &["clean"])).expect(1);
    let why = "a seccomp filter kills who calls msgget(2)";
    assert!(said.out.contains("not removed: ") && said.out.contains(why), "{said}");
    assert!(directory.join("1.name").exists(), "{said}");
    let said = run(&mut place.ipcmark(["clean"])).expect(0);
    assert!(said.out.starts_with("removed ") && !directory.exists(), "{said}");
}
