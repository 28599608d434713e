//! What the calling thread, or its process, has used: CPU time, context switches, page faults.

use rustix::time::{ClockId, clock_gettime};

/// The kernel's accounting of one thread, or of all threads of a process, since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// CPU time by the scheduler's own clock: exact. `CLOCK_THREAD_CPUTIME_ID`, clock_gettime(2).
    pub cpu_ns: u64,
    /// User CPU time. Most kernels estimate its share of the whole by sampling at ticks. `ru_utime`, getrusage(2).
    pub user_ns: u64,
    /// System CPU time, estimated in the same way. `ru_stime`.
    pub system_ns: u64,
    /// Switches because the thread waited. `ru_nvcsw`.
    pub voluntary_switches: u64,
    /// Switches because the scheduler preempted the thread. `ru_nivcsw`.
    pub involuntary_switches: u64,
    /// Page faults without I/O. `ru_minflt`.
    pub minor_faults: u64,
    /// Page faults with I/O. `ru_majflt`.
    pub major_faults: u64,
}

/// Reads the accounting of the calling thread (getrusage(2) with `RUSAGE_THREAD`, Linux 2.6.26).
pub fn of_this_thread() -> ThreadUsage {
    usage(libc::RUSAGE_THREAD, ClockId::ThreadCPUTime)
}

/// Reads the accounting of all threads of this process together (getrusage(2) with `RUSAGE_SELF`).
pub fn of_this_process() -> ThreadUsage {
    usage(libc::RUSAGE_SELF, ClockId::ProcessCPUTime)
}

/// What children that have ended and were waited for, and theirs, have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndedChildrenUsage {
    /// CPU time, user and system, to the microsecond.
    pub cpu_ns: u64,
    /// Context switches.
    pub switches: u64,
    /// The most memory that one of them had.
    pub peak_bytes: u64,
}

/// Reads the accounting of the children of this process that it has waited for (getrusage(2) with `RUSAGE_CHILDREN`).
pub fn of_ended_children() -> EndedChildrenUsage {
    let usage = rusage(libc::RUSAGE_CHILDREN);
    EndedChildrenUsage {
        cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
        switches: usage.ru_nvcsw as u64 + usage.ru_nivcsw as u64,
        peak_bytes: usage.ru_maxrss as u64 * 1024,
    }
}

fn ns(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000
}

fn rusage(who: libc::c_int) -> libc::rusage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for writes of one rusage, which is plain old data. It was zeroed, so that it is
    // initialised whether or not the call succeeds. None of the three kinds can fail.
    unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    }
}

fn usage(who: libc::c_int, clock: ClockId) -> ThreadUsage {
    let usage = rusage(who);
    let cpu = clock_gettime(clock);
    ThreadUsage {
        cpu_ns: cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64,
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
    }
}
