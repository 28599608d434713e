//! What a process sets for itself when it starts: when it dies, and where it runs. Not how it is started.

use crate::{Errno, Failure, OrFail};
use rustix::process::{Pid, Signal, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::ffi::OsStr;

/// Makes the kernel kill this process when the thread that started it ends (prctl(2), `PR_SET_PDEATHSIG`).
pub fn die_with_parent() -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL)).or_fail("prctl(PR_SET_PDEATHSIG)", "this process")
}

/// Pins the calling thread to one logical CPU (sched_setaffinity(2)).
pub fn pin_to(cpu: u32) -> Result<(), Failure> {
    run_on(&[cpu])
}

/// Where the calling thread is, or may be, though it was pinned to `cpu`; `None` where it is there and may be nowhere else.
///
/// Others may move a thread (taskset(1), cpusets), and the kernel does when its CPU goes offline. One that was moved and moved back before
/// this is asked is not found.
pub fn strayed_from(cpu: u32) -> Option<u32> {
    let here = u32::try_from(sched_getcpu()).ok();
    here.filter(|here| *here != cpu).or_else(|| allowed_beside(None, &[cpu]))
}

/// Where a thread of this process may be, though all were to run on `cpus` alone; `None` where each may be nowhere else, and of threads
/// that cannot be asked for.
///
/// Who moves a process may move one of its threads alone (`taskset -p`), or all (`taskset -ap`).
pub fn threads_strayed_from(cpus: &[u32]) -> Option<u32> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let tid = |name: &OsStr| Pid::from_raw(name.to_str()?.parse().ok()?);
    let mut tids = threads.flatten().filter_map(|entry| tid(&entry.file_name()));
    tids.find_map(|tid| allowed_beside(Some(tid), cpus))
}

/// The first CPU beside `cpus` on which `thread`, or else the calling one, may run.
fn allowed_beside(thread: Option<Pid>, cpus: &[u32]) -> Option<u32> {
    let allowed = sched_getaffinity(thread).ok()?;
    (0..CpuSet::MAX_CPU)
        .filter(|at| allowed.is_set(*at))
        .filter_map(|at| u32::try_from(at).ok())
        .find(|at| !cpus.contains(at))
}

/// Lets the calling thread, and the threads that it starts, run on some logical CPUs alone.
pub fn run_on(cpus: &[u32]) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu as usize >= CpuSet::MAX_CPU {
            let object = format!("CPU {cpu}");
            return Err(Failure::new("sched_setaffinity", object, "no such CPU", "name another"));
        }
        set.set(*cpu as usize);
    }
    let names: Vec<String> = cpus.iter().map(u32::to_string).collect();
    sched_setaffinity(None, &set).map_err(|errno| {
        let failure = Failure::from_errno("sched_setaffinity", format!("CPU {}", names.join(", ")), errno);
        // The kernel says so where none of them is left.
        if errno == Errno::INVAL { Failure { next: NONE_IS_LEFT.to_owned(), ..failure } } else { failure }
    })
}

/// What to do where a thread may run on none of the CPUs that it is to run on.
const NONE_IS_LEFT: &str = "it is offline (see /sys/devices/system/cpu/online), or a cpuset forbids it: bring it back, or name another";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_may_run_elsewhere_has_strayed() {
        let own = sched_getaffinity(None).unwrap();
        let cpus: Vec<u32> = (0..CpuSet::MAX_CPU as u32).filter(|cpu| own.is_set(*cpu as usize)).collect();
        // A thread of its own: where it may run is its own affair.
        let of_thread = move || {
            let first = cpus[0];
            pin_to(first).unwrap();
            assert_eq!(strayed_from(first), None);
            let Some(second) = cpus.get(1) else { return };
            run_on(&[first, *second]).unwrap();
            assert_eq!(strayed_from(first), Some(*second), "it may run elsewhere");
            pin_to(*second).unwrap();
            assert_eq!(strayed_from(first), Some(*second));
        };
        std::thread::spawn(of_thread).join().unwrap();
    }

    #[test]
    fn any_thread_of_a_process_may_have_strayed() {
        let own = sched_getaffinity(None).unwrap();
        let cpus: Vec<u32> = (0..CpuSet::MAX_CPU as u32).filter(|cpu| own.is_set(*cpu as usize)).collect();
        assert_eq!(threads_strayed_from(&cpus), None);
        // Whatever other tests of this process do, this thread may run on the last.
        assert!(threads_strayed_from(&cpus[..cpus.len() - 1]).is_some());
    }

    #[test]
    fn a_cpu_that_is_not_there_is_named_with_where_to_see_which_are() {
        let last = CpuSet::MAX_CPU as u32 - 1;
        let refused = std::thread::spawn(move || pin_to(last)).join().unwrap();
        // A kernel with so many CPUs has none to refuse.
        let Err(failure) = refused else { return };
        let words = failure.to_string();
        assert!(words.contains("CPU 1023") && words.contains("/sys/devices/system/cpu/online"), "{words}");
    }
}
