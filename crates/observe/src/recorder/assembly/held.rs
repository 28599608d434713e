//! To which CPUs processes are held while they are recorded, and whether they wait for room. What they do is in `assembly`.

use super::Assembly;
use crate::recorder::cpus::held_cpus;
use crate::recorder::room_watches::has_room_watch;

/// After so many calls of a thread it is looked up for the first time whether its process watches for room.
const FIRST_FOR_WATCHES: u64 = 16;

impl Assembly {
    /// The thread `tid` of `pid` has ended one more call. A program holds its threads to CPUs before they begin their work or never, and may be gone
    /// when the recording ends: so it is looked up after 1, 2, 4, 8, … calls.
    pub(super) fn count_ended(&mut self, pid: u32, tid: u32) {
        let ended = &mut self.threads.entry(tid).or_default().ended;
        *ended += 1;
        if ended.is_power_of_two() {
            let finds_watches =
                *ended >= FIRST_FOR_WATCHES && ended.ilog2() % 3 == FIRST_FOR_WATCHES.ilog2() % 3;
            self.find_cpus(pid, tid);
            if finds_watches {
                self.find_room_watches(pid);
            }
        }
    }

    /// The threads that communicated and run still are where they are now, and watch what they watch.
    pub(super) fn look_up_running(&mut self) {
        let communicated = self.threads.iter().filter(|(_, thread)| thread.ended > 0);
        let mut running: Vec<(u32, u32)> = communicated.map(|(tid, thread)| (thread.pid, *tid)).collect();
        running.sort_unstable();
        running.iter().for_each(|(pid, tid)| self.find_cpus(*pid, *tid));
        running.dedup_by_key(|(pid, _)| *pid);
        running.iter().for_each(|(pid, _)| self.find_room_watches(*pid));
    }

    /// The process `pid` may have descriptors that are watched for room. That goes through all that it has, and is done less often.
    fn find_room_watches(&mut self, pid: u32) {
        let process = self.by_pid.get(&pid).map(|process| &mut self.processes[*process as usize]);
        if let Some(process) = process.filter(|process| !process.watches_for_room) {
            process.watches_for_room = has_room_watch(pid);
        }
    }

    /// To which CPUs the thread `tid` of the process `pid` is held, if it is not gone.
    pub(super) fn find_cpus(&mut self, pid: u32, tid: u32) {
        if let (Some(process), Some(cpus)) = (self.by_pid.get(&pid), held_cpus(tid)) {
            self.processes[*process as usize].thread(tid).cpus = cpus;
        }
    }
}
