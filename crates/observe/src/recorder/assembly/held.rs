//! To which CPUs processes are held while they are recorded. What they do there is in `assembly`.

use super::Assembly;
use crate::recorder::cpus::held_cpus;
use std::collections::BTreeSet;

impl Assembly {
    /// The process `pid` has ended one more call. A program holds itself to CPUs before it begins its work or never, and may be gone when the
    /// recording ends: so it is looked up after 1, 2, 4, 8, … calls.
    pub(super) fn find_cpus(&mut self, pid: u32) {
        let ended = self.ended.entry(pid).or_default();
        *ended += 1;
        if ended.is_power_of_two() {
            self.look_up(pid);
        }
    }

    /// Those that run still are where they are now.
    pub(super) fn find_cpus_of_running(&mut self) {
        let running: BTreeSet<u32> = self.threads.values().map(|thread| thread.pid).collect();
        running.into_iter().for_each(|pid| self.look_up(pid));
    }

    fn look_up(&mut self, pid: u32) {
        if let (Some(process), Some(cpus)) = (self.by_pid.get(&pid), held_cpus(pid)) {
            self.processes[*process as usize].cpus = cpus;
        }
    }
}
