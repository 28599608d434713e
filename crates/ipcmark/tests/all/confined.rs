//! A container's confinement: Docker's seccomp profile, no /proc/sys, a read-only root, 16 processes, 64 MB of memory.
//!
//! No container engine is needed: filters, namespaces and control groups are the kernel's own, and what this host does not allow is
//! skipped by name. The profile is emulated by the calls that it refuses to a process without capabilities.

use crate::common::{
    Place, Running, TIMEOUT, asked, assert_none_failed, endpoints, error, read, run, skip, wait_until,
};
use crate::restricted::{dropped, in_namespace, measures_what_it_can, open_place, ordinary, root, short_run};
use mechanisms::registry;
use model::Params;
use model::card::Support;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// What Docker's default profile refuses to a process without capabilities (moby, profiles/seccomp/default.json).
const REFUSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_clock_settime,
    libc::SYS_fanotify_init,
    libc::SYS_fsopen,
    libc::SYS_get_mempolicy,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_keyctl,
    libc::SYS_mbind,
    libc::SYS_mount,
    libc::SYS_move_pages,
    libc::SYS_open_by_handle_at,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_request_key,
    libc::SYS_set_mempolicy,
    libc::SYS_setns,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// Refuses with `errno`, to this thread and what it starts, the calls of `rules`.
pub fn refuse(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) {
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let action = SeccompAction::Errno(errno.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

/// Puts this thread, and what it starts, under the profile.
fn confine_as_docker() {
    let vsock = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, libc::AF_VSOCK as u64);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(vec![vsock.unwrap()]).unwrap()]);
    // To ask is allowed, to fix addresses is not.
    let fixed = libc::ADDR_NO_RANDOMIZE as u64;
    let persona = |op, value| SeccompCondition::new(0, SeccompCmpArgLen::Dword, op, value).unwrap();
    let fixes = [persona(SeccompCmpOp::MaskedEq(fixed), fixed), persona(SeccompCmpOp::Ne, 0xffff_ffff)];
    rules.insert(libc::SYS_personality, vec![SeccompRule::new(fixes.into()).unwrap()]);
    refuse(rules, libc::EPERM);
    // With this answer the C library takes clone(2) instead.
    refuse([(libc::SYS_clone3, Vec::new())].into(), libc::ENOSYS);
}

/// Slow: it measures every mechanism under a restriction.
#[test]
fn dockers_seccomp_profile_is_in_force() {
    let place = open_place();
    let works_outside = |name| matches!(registry::probe(name, &Params::default()), Some(Support::Yes { .. }));
    let uring = works_outside("pipe-uring");
    // What works without the filter is asked for.
    let arguments = short_run();
    // A filter is its thread's, and what the thread starts inherits it.
    let confined = || {
        confine_as_docker();
        let (results, said) = measures_what_it_can(&place, ordinary(&place, "./ipcmark").args(&arguments));
        let reason = dropped(&results, "pipe-uring");
        assert!(!uring || reason.is_some_and(|reason| reason.contains("io_uring")), "{reason:?}\n{said}");
        for command in ["list", "doctor", "clean"] {
            run(ordinary(&place, "./ipcmark").arg(command)).expect(0);
        }
        let explain = ["explain", "pipe", "-p", "unpinned", "--time", "1s"];
        let said = run(ordinary(&place, "./ipcmark").args(explain)).expect(0);
        assert!(said.out.contains("perf_event_open"), "what cannot be observed is not said\n{said}");
        let compare =
            ["compare", "pipe", "fifo", "-w", "latency", "-s", "1", "-p", "same-core", "--time", "1s"];
        let said = run(ordinary(&place, "./ipcmark").args(compare)).expect(0);
        assert!(said.out.contains("personality: Operation not permitted"), "{said}");
        let said = run(ordinary(&place, "./ipcmark").args(compare).arg("--format=json")).expect(0);
        let pairs: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let why = pairs[0]["addresses_by_chance"].as_str().unwrap();
        assert!(why.starts_with("personality: Operation not permitted"), "{said}");
    };
    std::thread::scope(|threads| threads.spawn(confined).join().unwrap());
}

/// Slow: it measures every mechanism under a restriction.
#[test]
fn proc_sys_is_not_there() {
    let place = open_place();
    let Some(mut command) = in_namespace(&place, "mount -t tmpfs none /proc/sys", &short_run()) else {
        return;
    };
    measures_what_it_can(&place, &mut command);
}

#[test]
fn the_root_is_read_only() {
    let place = open_place();
    // Everything that can be written but /proc, /dev and /sys, as `docker run --read-only` has it.
    let setup = "mount -o remount,bind,ro / && { mountpoint -q /tmp && mount -o remount,bind,ro /tmp || true; } && ! touch $TMPDIR/x 2>/dev/null";
    let arguments = ["run", "pipe", "fifo", "-s", "1", "-p", "unpinned", "--rounds", "1"];
    let Some(mut command) = in_namespace(&place, setup, &arguments) else { return };
    let said = run(&mut command).expect(0);
    place.assert_nothing_is_left("after a run on a read-only root");
    assert!(said.out.contains("pipe") && said.out.contains("Read-only file system"), "{said}");
    for command in ["list", "doctor", "clean"] {
        run(&mut in_namespace(&place, setup, &[command]).unwrap()).expect(0);
    }
    // Results that cannot be kept are refused before anything is measured.
    let arguments = ["run", "pipe", "-o", "results.jsonl"];
    let said = run(&mut in_namespace(&place, setup, &arguments).unwrap()).expect(2);
    assert!(said.err.contains("results.jsonl cannot be written"), "{said}");
}

/// A control group with a limit, removed when this is dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    /// A group in which the first of `files` that there is says `limit`: each is one of a version of the controller.
    fn new(name: &str, files: [(&str, &str); 2], limit: &str) -> Option<Self> {
        files.iter().find_map(|(mount, file)| {
            let path = PathBuf::from(mount).join(format!("ipcmark-test-{name}-{}", std::process::id()));
            fs::create_dir(&path).ok()?;
            let group = Self(path);
            fs::write(group.0.join(file), limit).ok()?;
            Some(group)
        })
    }

    /// `ipcmark ARGUMENTS` in the group, as an ordinary user.
    fn ipcmark(&self, place: &Place, arguments: &[&str]) -> Command {
        let mut command = place.command("sh");
        let join = format!("echo $$ >{}/cgroup.procs", self.0.display());
        let drop = "setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs";
        command.args(["-c", &format!("{join} && exec {drop} ./ipcmark \"$@\""), "sh"]).args(arguments);
        command
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel takes a moment to let the last process go.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// The mechanisms of the runs with a limit: more trials than the limit leaves room for.
const MANY: [&str; 12] = [
    "pipe",
    "fifo",
    "unix-stream",
    "unix-dgram",
    "unix-seqpacket",
    "tcp",
    "udp",
    "eventfd",
    "futex",
    "posix-mq",
    "sysv-msg",
    "shm-ring",
];

/// Measures [`MANY`] in `group`, each of which must be measured.
fn measures_all_in(group: &Cgroup) {
    let place = open_place();
    let mut arguments =
        vec!["run", "-s", "1,4096", "-p", "unpinned", "--iterations", "20", "--rounds", "2", "-o"];
    arguments.push("results.jsonl");
    arguments.extend(MANY.iter().flat_map(|name| [*name]));
    let said = run(&mut group.ipcmark(&place, &arguments)).expect(0);
    place.assert_nothing_is_left("after a run with a limit");
    let results = read(&place.path("results.jsonl"));
    assert_none_failed(&results);
    assert!(asked(&results).count() >= MANY.len(), "{said}");
}

/// Slow: it measures every mechanism under a restriction.
#[test]
fn sixteen_processes_are_all_there_may_be() {
    let files = [("/sys/fs/cgroup/pids", "pids.max"), ("/sys/fs/cgroup", "pids.max")];
    match Cgroup::new("pids", files, "16").filter(|_| root()) {
        Some(group) => {
            measures_all_in(&group);
            // Pinned, each placement has floors of its own, which are processes too.
            let place = open_place();
            let pinned = "run pipe tcp unix-stream fifo -w latency -s 1 -p same-core -p smt|same-llc --rounds 3 -o results.jsonl";
            run(&mut group.ipcmark(&place, &pinned.split(' ').collect::<Vec<_>>())).expect(0);
            assert_none_failed(&read(&place.path("results.jsonl")));
            // More than there can be: the case fails with the reason, and what was measured is kept.
            let place = open_place();
            let fan_in = ["run", "pipe", "tcp", "--peers", "fan-in=20", "-p", "unpinned", "--rounds", "1"];
            let said = run(&mut group.ipcmark(&place, &fan_in)).expect(1);
            assert!(
                said.out.split_whitespace().collect::<Vec<_>>().join(" ").contains("temporarily unavailable"),
                "{said}"
            );
            place.assert_nothing_is_left("after a run that was out of processes");
        }
        None => skip(
            "no control group with pids.max can be made; run `sudo cargo xtask test`",
            "a run with 16 processes",
        ),
    }
}

#[test]
fn there_are_64_mb_of_memory() {
    let files = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
    match Cgroup::new("memory", files, "67108864").filter(|_| root()) {
        Some(group) => measures_all_in(&group),
        None => skip(
            "no control group with a limit of memory can be made; run `sudo cargo xtask test`",
            "a run with 64 MB of memory",
        ),
    }
}

/// Slow: a run goes on until its CPU is gone.
#[test]
fn a_cpu_that_is_taken_away_is_named_and_the_run_ends() {
    const OTHERWISE: &str = "a run whose CPU is taken away";
    let cpus = harness::host::topology::allowed();
    let &[first, second, ..] = cpus.as_slice() else {
        return skip("there is one CPU; run it where there are two", OTHERWISE);
    };
    let files = [("/sys/fs/cgroup/cpuset", "cpuset.cpus"), ("/sys/fs/cgroup", "cpuset.cpus")];
    let Some(group) = Cgroup::new("cpuset", files, &format!("{first},{second}")).filter(|_| root()) else {
        return skip("no control group with cpuset.cpus can be made; run `sudo cargo xtask test`", OTHERWISE);
    };
    // In version 1 a group has no memory until it is told which.
    let _ = fs::write(group.0.join("cpuset.mems"), "0");
    let place = open_place();
    let placement = format!("cpus={second},{second}");
    let arguments = ["run", "pipe", "-w", "latency", "-s", "1", "--time", "10m", "-p", &placement];
    let arguments = [&arguments[..], &["--precision", "0.001%", "-o", "results.jsonl"]].concat();
    let mut running = Running::start(&mut group.ipcmark(&place, &arguments));
    assert!(
        wait_until(TIMEOUT, || !running.lives() || endpoints(running.pid()).len() >= 2),
        "it did not begin"
    );
    fs::write(group.0.join("cpuset.cpus"), first.to_string()).unwrap();
    let said = running.finish().expect(1);
    place.assert_nothing_is_left("after a run whose CPU was taken away");
    let results = read(&place.path("results.jsonl"));
    let record = asked(&results).next().unwrap();
    let failed = error(record).unwrap_or_default();
    assert!(failed.contains(&format!("sched_setaffinity CPU {second}: ")), "{said}");
    assert!(failed.contains("a cpuset forbids it"), "{said}");
    // Between two trials no slice is under way that it could strike.
    let strayed = results.records.iter().filter(|record| !record.elsewhere.is_nothing());
    strayed.for_each(|record| assert!(record.elsewhere.cpus.contains(&first), "{record:?}"));
}
