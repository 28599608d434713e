//! What a process and all that it has started have used of the machine: CPU time, context switches, memory.

use model::record::Usage;
use rustix::process::Pid;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::ops::Sub;

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ProgramUsage {
    /// CPU time of all threads, in nanoseconds.
    pub cpu_ns: u64,
    /// How often they left their CPUs.
    pub switches: u64,
    /// The most memory that one of its processes had at a time, in bytes.
    pub peak_bytes: u64,
}

impl Sub for ProgramUsage {
    type Output = Self;

    /// What was used between two moments; of memory, the most until the later.
    fn sub(self, earlier: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            switches: self.switches.saturating_sub(earlier.switches),
            peak_bytes: self.peak_bytes,
        }
    }
}

impl ProgramUsage {
    fn add(&mut self, other: Self) {
        self.cpu_ns += other.cpu_ns;
        self.switches += other.switches;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
    }
}

/// The descendants of `root`, itself not among them (proc_pid_task_children(5)).
pub(crate) fn descendants(root: Pid) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut open = vec![root.as_raw_nonzero().get()];
    while let Some(pid) = open.pop() {
        for child in children(pid) {
            if found.insert(child) {
                open.push(child);
            }
        }
    }
    found
}

fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut all = Vec::new();
    for task in tasks {
        let said = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(said.split_whitespace().filter_map(|child| child.parse::<i32>().ok()));
    }
    all
}

/// What the descendants of `starter` that are alive have used, those that ended before and were waited for by one of them included.
pub(crate) fn of_descendants(starter: Pid) -> ProgramUsage {
    let mut sum = ProgramUsage::default();
    for pid in descendants(starter) {
        sum.add(of_process(pid));
    }
    sum
}

fn of_process(pid: i32) -> ProgramUsage {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let threads = of_threads(pid);
    ProgramUsage {
        cpu_ns: threads.cpu_ns + of_ended_children_ns(pid),
        switches: threads.voluntary_switches + threads.involuntary_switches,
        peak_bytes: field(&status, "VmHWM:") * 1024,
    }
}

/// What a process and all its descendants that are alive have used. The kernel tells the time on CPUs by the nanosecond, and how it was parted
/// into the program's and its own by the tick: the parts are in the proportion of the ticks so far.
pub fn of_tree(root: Pid) -> Usage {
    let mut sum = Usage::default();
    for pid in descendants(root).into_iter().chain([root.as_raw_nonzero().get()]) {
        sum = sum + of_threads(pid);
    }
    sum
}

/// The memory of a process and all its descendants that are alive, in bytes, of which several share counts in parts (proc_pid_smaps(5), `Pss`).
/// `None` where the kernel does not say.
pub fn memory_of_tree_bytes(root: Pid) -> Option<u64> {
    let all = descendants(root).into_iter().chain([root.as_raw_nonzero().get()]);
    let of_each = all.filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok());
    let bytes: u64 = of_each.map(|rollup| field(&rollup, "Pss:") * 1024).sum();
    (bytes > 0).then_some(bytes)
}

fn of_threads(pid: i32) -> Usage {
    const MINFLT: usize = 10;
    const MAJFLT: usize = 12;
    const UTIME: usize = 14;
    const STIME: usize = 15;
    let mut sum = Usage::default();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for task in tasks {
        let text_of = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let status = text_of("status");
        // The first number is the time on a CPU, in nanoseconds (Documentation/scheduler/sched-stats.rst).
        sum.cpu_ns +=
            text_of("schedstat").split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        sum.voluntary_switches += field(&status, "voluntary_ctxt_switches:");
        sum.involuntary_switches += field(&status, "nonvoluntary_ctxt_switches:");
    }
    let [user, system, minor, major] = stat_fields(pid, [UTIME, STIME, MINFLT, MAJFLT]);
    (sum.minor_faults, sum.major_faults) = (minor, major);
    sum.user_ns = (u128::from(sum.cpu_ns) * u128::from(user) / u128::from((user + system).max(1))) as u64;
    sum.system_ns = sum.cpu_ns - sum.user_ns;
    sum
}

/// The CPU time of the children that the process has waited for.
fn of_ended_children_ns(pid: i32) -> u64 {
    const CUTIME: usize = 16;
    const CSTIME: usize = 17;
    let [user, system] = stat_fields(pid, [CUTIME, CSTIME]);
    (user + system) * (1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
}

/// Fields of the process's `stat`, counted as proc_pid_stat(5) counts them; 0 for one that is not there.
fn stat_fields<const N: usize>(pid: i32, numbers: [usize; N]) -> [u64; N] {
    /// The first behind the name, which may have blanks in it.
    const STATE: usize = 3;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> =
        stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace().collect();
    numbers.map(|number| fields.get(number - STATE).and_then(|field| field.parse().ok()).unwrap_or(0))
}

/// The number behind `name`, at the begin of a line.
fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn what_descendants_use_is_added_up() {
        let mut shell = Command::new("sh")
            // The inner shell has what was typed to the outer, and waits for more.
            .args(["-c", "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo; read x'; true"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let own = rustix::process::getpid();
        let all = descendants(own);
        assert!(all.contains(&(shell.id() as i32)), "{all:?}");
        assert!(memory_of_tree_bytes(own).is_none_or(|bytes| bytes > 100_000));
        let usage = of_descendants(own);
        assert!(usage.cpu_ns > 1_000_000 && usage.peak_bytes > 100_000, "{usage:?}");
        drop(shell.stdin.take());
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
}
