//! What a process sets for itself when it starts: when it dies, and where it runs. Not how it is started.

use crate::{Failure, OrFail};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

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
    let elsewhere = |other: &u32| *other != cpu;
    here.filter(elsewhere).or_else(|| {
        let allowed = sched_getaffinity(None).ok()?;
        (0..CpuSet::MAX_CPU)
            .filter(|at| allowed.is_set(*at))
            .filter_map(|at| u32::try_from(at).ok())
            .find(elsewhere)
    })
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
    sched_setaffinity(None, &set).or_fail("sched_setaffinity", format!("CPU {}", names.join(", ")))
}

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
}
