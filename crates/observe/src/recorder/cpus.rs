//! Which CPUs there are, and to which of them a process is held. It moves no process.

use model::cpu_list::parse_cpulist;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};

/// The CPUs that run: as sysfs lists them, or by their lines in /proc/stat where it is not there or says what cannot be. If neither says it,
/// those on which this process may run.
pub(super) fn online_cpus() -> Vec<u32> {
    let in_sysfs = || {
        let list = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
        parse_cpulist(&list).ok().filter(|cpus| !cpus.is_empty())
    };
    let in_proc = || {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        Some(text.lines().filter_map(cpu_of_line).collect::<Vec<u32>>()).filter(|cpus| !cpus.is_empty())
    };
    let own = || {
        let allowed = sched_getaffinity(None).ok()?;
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        Some(cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect())
    };
    in_sysfs().or_else(in_proc).or_else(own).unwrap_or_default()
}

/// The CPU of a line of /proc/stat: `cpu3 5204 …`. The first line is of all.
fn cpu_of_line(line: &str) -> Option<u32> {
    line.strip_prefix("cpu")?.split_once(' ')?.0.parse().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_have_lines_and_all_together_is_none() {
        let lines = ["cpu  1 2 3", "cpu0 1 2 3", "cpu17 4", "cpux 1", "intr 5", ""];
        let cpus: Vec<u32> = lines.into_iter().filter_map(cpu_of_line).collect();
        assert_eq!(cpus, [0, 17]);
    }

    #[test]
    fn both_places_name_the_same_cpus() {
        let text = std::fs::read_to_string("/proc/stat").unwrap();
        let in_proc: Vec<u32> = text.lines().filter_map(cpu_of_line).collect();
        assert_eq!(online_cpus(), in_proc);
    }
}
