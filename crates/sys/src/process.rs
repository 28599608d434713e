//! What a process sets for itself when it starts: when it dies, and where it runs. Not how it is started.

use crate::{Failure, OrFail};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Makes the kernel kill this process when the thread that started it ends (prctl(2), `PR_SET_PDEATHSIG`).
pub fn die_with_parent() -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL)).or_fail("prctl(PR_SET_PDEATHSIG)", "this process")
}

/// Pins the calling thread to one logical CPU (sched_setaffinity(2)).
pub fn pin_to(cpu: u32) -> Result<(), Failure> {
    run_on(&[cpu])
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
