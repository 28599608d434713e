//! To which CPUs processes are held while they are recorded. What they do is in `assembly`.

use super::Assembly;
use crate::recorder::cpus::held_cpus;

impl Assembly {
    /// The thread `tid` of `pid` has ended one more call. A program holds its threads to CPUs before they begin their work or never, and may be gone
    /// when the recording ends: so it is looked up after 1, 2, 4, 8, … calls.
    pub(super) fn count_ended(&mut self, pid: u32, tid: u32) {
        let ended = &mut self.threads.entry(tid).or_default().ended;
        *ended += 1;
        if ended.is_power_of_two() {
            self.find_cpus(pid, tid);
        }
    }

    /// The threads that communicated and run still are where they are now.
    pub(super) fn look_up_running(&mut self) {
        let communicated = self.threads.iter().filter(|(_, thread)| thread.ended > 0);
        let running: Vec<(u32, u32)> = communicated.map(|(tid, thread)| (thread.pid, *tid)).collect();
        running.iter().for_each(|(pid, tid)| self.find_cpus(*pid, *tid));
    }

    /// To which CPUs the thread `tid` of the process `pid` is held, if it is not gone.
    pub(super) fn find_cpus(&mut self, pid: u32, tid: u32) {
        if let (Some(process), Some(cpus)) = (self.by_pid.get(&pid), held_cpus(tid)) {
            self.processes[*process as usize].thread(tid).cpus = cpus;
        }
    }
}
