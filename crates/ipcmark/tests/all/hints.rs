//! Where a refusal sends its reader: each hint is followed, and what it leads to must speak of what was refused.
//!
//! Refusals are provoked by namespaces and filters of the kernel's own; what this host does not allow is skipped by name.

use crate::common::{Place, Said, has, run, skip};
use crate::confined::refuse;
use crate::restricted::{in_namespace, open_place, ordinary, root};
use std::process::Command;

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
    let run = ["run", "-m", spec, "-s", "1", "-p", "unpinned", "--rounds", "1"];
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
    let run = ["run", "-m", "tcp", "-s", "1", "-p", "unpinned", "--rounds", "1"];
    let said = said_in(&start, &[&run, &["doctor"]]).unwrap();
    let refusal = flat(&format!("{} {}", said[0].out, said[0].err));
    assert!(refusal.contains("'ipcmark doctor'"), "{refusal}");
    let doctor = flat(&said[1].out);
    assert!(doctor.contains("loopback: the interface lo is down"), "{doctor}");
    assert!(doctor.contains("ip link set lo up"), "{doctor}");
}

#[test]
fn posix_objects_that_cannot_be_made_are_named_by_the_doctor() {
    let Some((refusal, doctor)) =
        refused_and_diagnosed("mount -t tmpfs -o ro none /dev/shm", "shm-ring:memory=posix")
    else {
        return;
    };
    assert!(!refusal.contains("TMPDIR"), "no TMPDIR mends this: {refusal}");
    assert!(doctor.contains("shared-memory: /dev/shm is read-only"), "{doctor}");
}

/// A /dev with what every program needs, and nothing more.
const BARE_DEV: &str = "mkdir -p $TMPDIR/dev && mount --rbind /dev $TMPDIR/dev && mount -t tmpfs none /dev && \
                        for n in null zero full random urandom tty; do touch /dev/$n && mount --bind $TMPDIR/dev/$n /dev/$n; done";

#[test]
fn what_is_not_in_dev_is_named_by_the_doctor() {
    let Some((_, doctor)) = refused_and_diagnosed(BARE_DEV, "shm-ring:memory=posix") else { return };
    assert!(doctor.contains("shared-memory: there is no /dev/shm"), "{doctor}");
    let Some((_, doctor)) = refused_and_diagnosed(BARE_DEV, "pty") else { return };
    assert!(doctor.contains("pseudo-terminals: there is no /dev/ptmx"), "{doctor}");
}

#[test]
fn a_filter_that_forbids_calls_is_named_by_the_doctor() {
    let place = open_place();
    let confined = || {
        refuse([(libc::SYS_io_uring_setup, Vec::new())].into(), libc::EOPNOTSUPP);
        let ring = ["run", "-m", "pipe-uring", "-s", "1", "-p", "unpinned", "--rounds", "1"];
        let said = run(ordinary(&place, "./ipcmark").args(ring));
        let refusal = flat(&format!("{} {}", said.out, said.err));
        assert!(refusal.contains("io_uring switched off"), "{said}");
        let doctor = flat(&run(ordinary(&place, "./ipcmark").arg("doctor")).expect(0).out);
        assert!(doctor.contains("seccomp: system calls are filtered by seccomp"), "{doctor}");
    };
    std::thread::scope(|threads| threads.spawn(confined).join().unwrap());
}
