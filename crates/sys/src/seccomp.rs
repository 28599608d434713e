//! System calls that a seccomp filter answers with the death of who makes them (SIGSYS, seccomp(2)): which these are, and work that is tried
//! in a child first. It sets no filter.
//!
//! Nothing here costs anything where no filter is in force.

use crate::fork::Child;
use crate::{Errno, Failure};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What to do where a filter is in the way.
pub const REMEDY: &str =
    "allow it in the filter, as systemd's SystemCallFilter= does, or have it answer with an error";

/// The calls that are looked for. Each does nothing when its first argument is -1 and all others are 0.
#[rustfmt::skip]
const CALLS: &[(&str, libc::c_long)] = &[
    ("accept4", libc::SYS_accept4),
    ("bpf", libc::SYS_bpf),
    ("clock_getres", libc::SYS_clock_getres),
    ("clock_gettime", libc::SYS_clock_gettime),
    ("clock_nanosleep", libc::SYS_clock_nanosleep),
    ("clone3", libc::SYS_clone3),
    ("close_range", libc::SYS_close_range),
    ("copy_file_range", libc::SYS_copy_file_range),
    ("epoll_create1", libc::SYS_epoll_create1),
    ("eventfd2", libc::SYS_eventfd2),
    ("faccessat2", libc::SYS_faccessat2),
    ("fallocate", libc::SYS_fallocate),
    ("flock", libc::SYS_flock),
    ("ftruncate", libc::SYS_ftruncate),
    ("futex", libc::SYS_futex),
    ("getrusage", libc::SYS_getrusage),
    ("io_uring_enter", libc::SYS_io_uring_enter),
    ("io_uring_register", libc::SYS_io_uring_register),
    ("io_uring_setup", libc::SYS_io_uring_setup),
    ("kcmp", libc::SYS_kcmp),
    ("kill", libc::SYS_kill),
    ("madvise", libc::SYS_madvise),
    ("membarrier", libc::SYS_membarrier),
    ("memfd_create", libc::SYS_memfd_create),
    ("mknodat", libc::SYS_mknodat),
    ("mlock", libc::SYS_mlock),
    ("mount", libc::SYS_mount),
    ("mq_open", libc::SYS_mq_open),
    ("msgget", libc::SYS_msgget),
    ("msgsnd", libc::SYS_msgsnd),
    ("nanosleep", libc::SYS_nanosleep),
    ("openat2", libc::SYS_openat2),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("pidfd_getfd", libc::SYS_pidfd_getfd),
    ("pidfd_open", libc::SYS_pidfd_open),
    ("pidfd_send_signal", libc::SYS_pidfd_send_signal),
    ("pipe2", libc::SYS_pipe2),
    ("prctl", libc::SYS_prctl),
    ("prlimit64", libc::SYS_prlimit64),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("ptrace", libc::SYS_ptrace),
    ("rt_sigqueueinfo", libc::SYS_rt_sigqueueinfo),
    ("sched_getaffinity", libc::SYS_sched_getaffinity),
    ("sched_setaffinity", libc::SYS_sched_setaffinity),
    ("sched_setattr", libc::SYS_sched_setattr),
    ("sched_setscheduler", libc::SYS_sched_setscheduler),
    ("seccomp", libc::SYS_seccomp),
    ("semget", libc::SYS_semget),
    ("sendmmsg", libc::SYS_sendmmsg),
    ("sendmsg", libc::SYS_sendmsg),
    ("setpriority", libc::SYS_setpriority),
    ("shmat", libc::SYS_shmat),
    ("shmget", libc::SYS_shmget),
    ("signalfd4", libc::SYS_signalfd4),
    ("socket", libc::SYS_socket),
    ("socketpair", libc::SYS_socketpair),
    ("splice", libc::SYS_splice),
    ("statx", libc::SYS_statx),
    ("tee", libc::SYS_tee),
    ("tgkill", libc::SYS_tgkill),
    ("timer_create", libc::SYS_timer_create),
    ("timerfd_create", libc::SYS_timerfd_create),
    ("unshare", libc::SYS_unshare),
    ("vmsplice", libc::SYS_vmsplice),
    ("waitid", libc::SYS_waitid),
];

/// Fails if a filter kills who makes one of `calls`, without which `what` cannot be done.
pub fn require(what: &str, calls: &[&str]) -> Result<(), Failure> {
    let killed: Vec<&str> = killed().iter().copied().filter(|name| calls.contains(name)).collect();
    if killed.is_empty() {
        return Ok(());
    }
    Err(Failure::new(what, format!("without {}", listed(&killed)), words(&killed), REMEDY))
}

/// Why something was killed by a filter, in words.
pub fn cause() -> String {
    match killed() {
        [] => "a seccomp filter kills who makes a system call that it needs".to_owned(),
        killed => words(killed),
    }
}

/// `failure` of a child that tried a call, with the cause where a filter killed it: it is reported as a call that there is not.
pub(crate) fn explained(failure: Failure) -> Failure {
    if failure.errno != Some(Errno::NOSYS) || killed().is_empty() {
        return failure;
    }
    Failure { answer: cause(), next: REMEDY.to_owned(), ..failure }
}

/// Does `work` in a child first, if there is a filter: whether that outlived it. Where this process has other threads it cannot be tried.
pub fn outlives(work: impl FnOnce()) -> bool {
    if !is_filtered() || !has_one_thread() {
        return true;
    }
    let work = || {
        work();
        Ok(())
    };
    // SAFETY: there is no other thread that could hold a lock.
    let child = unsafe { Child::start(work) };
    // What cannot be tried cannot be said to be killed either.
    !child.and_then(Child::killed_by_filter).unwrap_or(false)
}

fn words(killed: &[&str]) -> String {
    format!("a seccomp filter kills who calls {}", listed(killed))
}

fn listed(calls: &[&str]) -> String {
    const MOST: usize = 6;
    let named: Vec<String> = calls.iter().take(MOST).map(|name| format!("{name}(2)")).collect();
    let more = if calls.len() > MOST { " and others" } else { "" };
    format!("{}{more}", named.join(", "))
}

/// Those of [`CALLS`] that kill who makes them.
fn killed() -> &'static [&'static str] {
    static KILLED: OnceLock<Vec<&str>> = OnceLock::new();
    KILLED.get_or_init(|| if is_filtered() { find_killed() } else { Vec::new() })
}

/// Has children make all calls. Each notes in memory that it shares with this process which call it makes, so that it is known of
/// which it has died.
fn find_killed() -> Vec<&'static str> {
    const BYTES: usize = 4096;
    // SAFETY: a new mapping that nothing else refers to.
    let memory = unsafe {
        mmap_anonymous(std::ptr::null_mut(), BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED)
    };
    let Ok(memory) = memory else { return Vec::new() };
    // SAFETY: it is mapped until the end of this function, aligned, zero at first, and used as an atomic by both.
    let at = unsafe { &*memory.cast::<AtomicUsize>() };
    let mut killed = Vec::new();
    let mut next = 0;
    while next < CALLS.len() {
        let make_calls = || {
            for (index, (_, number)) in CALLS.iter().enumerate().skip(next) {
                at.store(index, Ordering::Relaxed);
                // SAFETY: with these arguments each does nothing but fail, or what ends with this process.
                unsafe { libc::syscall(*number, -1, 0, 0, 0, 0, 0) };
            }
            Ok(())
        };
        // SAFETY: the child makes system calls only.
        match unsafe { Child::start(make_calls) }.and_then(Child::killed_by_filter) {
            Ok(true) => {
                let index = at.load(Ordering::Relaxed);
                killed.push(CALLS[index].0);
                next = index + 1;
            }
            Ok(false) | Err(_) => break,
        }
    }
    // SAFETY: it was mapped above, and `at` is not used any more.
    let _ = unsafe { munmap(memory, BYTES) };
    killed
}

/// Whether there is a filter (proc_pid_status(5)).
fn is_filtered() -> bool {
    static FILTERED: OnceLock<bool> = OnceLock::new();
    *FILTERED.get_or_init(|| status_field("Seccomp:").as_deref() == Some("2"))
}

fn has_one_thread() -> bool {
    status_field("Threads:").as_deref() == Some("1")
}

/// A field of /proc/self/status, read by calls that no program can do without.
fn status_field(name: &str) -> Option<String> {
    let file = openat(CWD, "/proc/self/status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0; 8192];
    let length = rustix::io::read(&file, &mut text).ok()?;
    let text = String::from_utf8_lossy(&text[..length]);
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    use std::process::Command;

    /// In a process of its own, because a filter stays.
    const TEST: &str = "seccomp::tests::calls_that_a_filter_kills_are_found_without_dying";

    #[test]
    fn calls_that_a_filter_kills_are_found_without_dying() {
        if std::env::var_os("IPCMARK_TEST_FILTERED").is_none() {
            let mut again = Command::new("/proc/self/exe");
            let again = again.args([TEST, "--exact", "--test-threads=1"]).env("IPCMARK_TEST_FILTERED", "1");
            let said = again.output().unwrap();
            assert!(said.status.success(), "{said:?}");
            assert!(String::from_utf8_lossy(&said.stdout).contains("1 passed"), "{said:?}");
            return;
        }
        let arch = std::env::consts::ARCH.try_into().unwrap();
        let calls = [libc::SYS_msgget, libc::SYS_waitid, libc::SYS_accept4];
        let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::KillProcess, arch);
        let program: BpfProgram = filter.unwrap().try_into().unwrap();
        seccompiler::apply_filter_all_threads(&program).unwrap();
        assert_eq!(killed(), ["accept4", "msgget", "waitid"]);
        assert_eq!(cause(), "a seccomp filter kills who calls accept4(2), msgget(2), waitid(2)");
        require("measure", &["flock", "kill"]).unwrap();
        let failure = require("measure", &["flock", "msgget"]).unwrap_err();
        assert!(
            failure
                .to_string()
                .starts_with("measure without msgget(2): a seccomp filter kills who calls msgget(2) ("),
            "{failure}"
        );
    }

    #[test]
    fn without_a_filter_nothing_is_tried() {
        if is_filtered() {
            return;
        }
        assert!(killed().is_empty() && outlives(|| panic!("it is tried")));
    }
}
