//! Which CPUs there are, and to which of them a process is held. It moves no process.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};

/// The CPUs that run, as the kernel lists them: `0-3,6`.
pub(super) fn online_cpus() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    let cpus: Vec<u32> = text.trim().split(',').filter_map(range).flatten().collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Those of the `online` CPUs on which the thread `tid` may run, or the first one of a process. `None` if it is gone.
pub(super) fn allowed_cpus(tid: u32, online: &[u32]) -> Option<Vec<u32>> {
    let tid = Pid::from_raw(tid.cast_signed())?;
    let allowed: CpuSet = sched_getaffinity(Some(tid)).ok()?;
    Some(online.iter().copied().filter(|cpu| allowed.is_set(*cpu as usize)).collect())
}

/// The CPUs to which it is held; none if it may run on all. `None` if it is gone.
pub(super) fn held_cpus(tid: u32) -> Option<Vec<u32>> {
    let online = online_cpus();
    let held = allowed_cpus(tid, &online)?;
    Some(if held.len() < online.len() { held } else { Vec::new() })
}
