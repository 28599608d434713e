//! To which CPUs processes are held while they are recorded. What they do there is in `assembly`.

use super::Assembly;
use crate::recorder::cpus::held_cpus;
use std::collections::BTreeSet;

impl Assembly {
    /// The thread `tid` of `pid` has ended one more call. A program holds its threads to CPUs before they begin their work or never, and may be gone
    /// when the recording ends: so it is looked up after 1, 2, 4, 8, … calls.
    pub(super) fn find_cpus(&mut self, pid: u32, tid: u32) {
        let ended = self.ended.entry(tid).or_default();
        *ended += 1;
        if ended.is_power_of_two() {
            self.look_up(pid, tid);
        }
    }

    /// The threads that communicated and run still are where they are now.
    pub(super) fn find_cpus_of_running(&mut self) {
        let running: Vec<(u32, u32)> = self.threads.iter().map(|(tid, thread)| (thread.pid, *tid)).collect();
        let communicated = running.into_iter().filter(|(_, tid)| self.ended.contains_key(tid));
        communicated.collect::<BTreeSet<_>>().into_iter().for_each(|(pid, tid)| self.look_up(pid, tid));
    }

    fn look_up(&mut self, pid: u32, tid: u32) {
        if let (Some(process), Some(cpus)) = (self.by_pid.get(&pid), held_cpus(tid)) {
            self.processes[*process as usize].cpus = cpus;
        }
    }
}
