//! Events of processes by programs in the kernel (bpf(2)), which follow threads themselves and tell of each call once, when it has
//! ended. Which threads there are, the kernel knows by the first PID namespace's numbers, so that it works there only.

mod file_programs;
mod file_record;
mod file_types;
mod layout;
mod programs;
mod records;
mod search;

pub(super) use search::{FoundFile, who_has};

use super::calls::wanted;
use super::clock::now_ns;
use super::process_events::{EventsInOrder, ProcessEvents};
use super::raw::{RawEvent, RawKind};
use super::thread::{Entered, ThreadId};
use super::tracepoints::LOST_RECORDS;
use crate::tracefs::in_first_pid_namespace;
use file_programs::SEEN_BYTES;
use layout::{announcements, new_thread, thread, totals};
use model::communication::RecordedProgress;
use programs::{Maps, TracepointProgram, programs};
use records::event;
use std::collections::HashSet;
use std::time::Duration;
use sys::Failure;
use sys::bpf::{BpfLink, BpfMap, BpfProgram, BpfRing};

/// More threads are not recorded at the same time.
const MOST_THREADS: u32 = 1 << 15;
/// More files are not known at the same time: one that is used again is told of again.
const MOST_FILES: u32 = 1 << 16;
/// No call has a higher number.
const MOST_CALLS: u32 = 1024;
/// Room for records: a third of a second of half a million calls each second.
const RING_BYTES: usize = 32 << 20;
const LOST_THREADS: &str = "threads were not recorded, for there were too many at the same time";

/// The programs, loaded.
pub(super) struct BpfEvents {
    maps: Maps,
    programs: Vec<AttachableProgram>,
    waiting: EventsInOrder,
}

struct AttachableProgram {
    program: BpfProgram,
    of_calls: bool,
    /// The program is attached as long as this is open.
    attached: Option<BpfLink>,
}

impl BpfEvents {
    /// Loads the programs for the `recorded` threads and whatever they make. With `calls`, a thread may be in a call already.
    pub(super) fn open(recorded: &[ThreadId], calls: bool) -> Result<Self, Failure> {
        in_first_pid_namespace()?;
        let maps = Maps {
            threads: BpfMap::hash(4, thread::BYTES as usize, MOST_THREADS)?,
            files: BpfMap::recent(8, SEEN_BYTES, MOST_FILES)?,
            calls: BpfMap::array(4, MOST_CALLS)?,
            lost: BpfMap::array(8, 2)?,
            switches: BpfMap::array(8, 1)?,
            sends: BpfMap::array(8, 1)?,
            ring: BpfRing::create(RING_BYTES)?,
        };
        for (number, meaning) in wanted() {
            maps.calls.set(&number.to_ne_bytes(), &announcements(*number, *meaning).to_ne_bytes())?;
        }
        let load = |program: TracepointProgram| {
            let TracepointProgram { tracepoint, type_number, instructions, functions, of_calls } = program;
            let program = BpfProgram::load(tracepoint, &instructions, type_number, &functions)?;
            Ok(AttachableProgram { program, of_calls, attached: None })
        };
        let programs = programs(&maps)?.into_iter().map(load).collect::<Result<_, Failure>>()?;
        let mut events = Self { maps, programs, waiting: EventsInOrder::default() };
        // Nobody is recorded yet: it shows whether they may be attached.
        events.switch(true)?;
        for ThreadId { pid, tid } in recorded {
            let now_ns = now_ns();
            let entered = Entered::by(*tid, now_ns).filter(|_| calls);
            let state = new_thread(*pid, now_ns, entered.as_ref());
            events.maps.threads.set(&tid.to_ne_bytes(), &state)?;
        }
        Ok(events)
    }

    fn threads(&self) -> Result<Vec<u32>, Failure> {
        let keys = self.maps.threads.keys()?;
        Ok(keys.iter().filter_map(|key| Some(u32::from_ne_bytes(*key.first_chunk()?))).collect())
    }
}

impl ProcessEvents for BpfEvents {
    fn switch(&mut self, on: bool) -> Result<(), Failure> {
        for program in &mut self.programs {
            match on {
                true if program.attached.is_none() => program.attached = Some(program.program.attach()?),
                false if program.of_calls => program.attached = None,
                true | false => {}
            }
        }
        Ok(())
    }

    fn progress(&mut self) -> Result<RecordedProgress, Failure> {
        // A counter of perf_event_open(2) for each thread would slow each switch, recorded or not.
        let running: u64 = self.threads()?.into_iter().map(switches_of).sum();
        let switches = running + counted(&self.maps.switches, 0);
        Ok(RecordedProgress { switches, sends: counted(&self.maps.sends, 0) })
    }

    fn wait(&self, longest: Duration) {
        // Nothing that is recorded must be looked up: it is told with the call.
        std::thread::sleep(longest);
    }

    fn fetch(&mut self, last: bool, take: &mut dyn FnMut(RawEvent)) {
        let read_ns = now_ns();
        let waiting = &mut self.waiting;
        self.maps.ring.read(|bytes| event(bytes).into_iter().for_each(|event| waiting.push(event)));
        waiting.take_complete(read_ns, last, take);
    }

    fn count(&self, take: &mut dyn FnMut(RawEvent)) -> Result<(), Failure> {
        let mut seen = HashSet::new();
        for tid in self.threads()?.into_iter().filter(|tid| seen.insert(*tid)) {
            let at_ns = now_ns();
            let state = self.maps.threads.get(&tid.to_ne_bytes())?;
            let Some((pid, counted)) = state.and_then(|bytes| totals(&bytes, at_ns)) else { continue };
            take(RawEvent { at_ns, pid, tid, cpu: None, totals: Some(counted), what: RawKind::Counted });
        }
        Ok(())
    }

    fn call_cost(&self) -> Duration {
        // 0.8 us of two processes that wait for each other, 1.1 to 1.5 us of five that keep two CPUs busy.
        Duration::from_nanos(1_500)
    }

    fn lost(&self) -> Vec<(&'static str, u64)> {
        vec![(LOST_RECORDS, counted(&self.maps.lost, 0)), (LOST_THREADS, counted(&self.maps.lost, 1))]
    }
}

/// One of the numbers that programs count up. One that cannot be read is as good as none.
fn counted(map: &BpfMap, which: u32) -> u64 {
    let bytes = map.get(&which.to_ne_bytes()).ok().flatten();
    bytes.and_then(|bytes| Some(u64::from_ne_bytes(*bytes.first_chunk()?))).unwrap_or(0)
}

/// How often the thread `tid` was given a CPU (/proc/PID/schedstat; its status would be read with its memory held, see `with_descendants`).
/// If it has just ended, it is counted elsewhere.
fn switches_of(tid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{tid}/schedstat")).unwrap_or_default();
    text.split_whitespace().nth(2).and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn a_thread_is_switched_when_it_sleeps() {
        let own = ThreadId::own().tid;
        let before = switches_of(own);
        (0..5).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
        assert!(switches_of(own) >= before + 5);
        assert_eq!(switches_of(u32::MAX), 0);
    }

    #[test]
    fn what_ended_threads_have_done_stays_counted() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "read go; sleep 0.01; sleep 0.01; sleep 0.01"]).stdin(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut events = match BpfEvents::open(&[ThreadId { pid: shell.id(), tid: shell.id() }], true) {
            Ok(events) => events,
            Err(failure) => {
                eprintln!("not tested here: {failure}");
                shell.kill().unwrap();
                shell.wait().unwrap();
                return;
            }
        };
        // What is made while calls are not recorded is counted all the same.
        events.switch(false).unwrap();
        let before = events.progress().unwrap().switches;
        shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
        shell.wait().unwrap();
        let after = events.progress().unwrap().switches;
        // The shell waits for each of three processes, and each of them sleeps.
        assert!(after >= before + 6, "{before} and then {after}");
    }

    #[test]
    fn what_is_sent_through_sockets_is_counted_exactly_whether_it_is_recorded_or_not() {
        const SENDS: u64 = 23;
        let Ok(mut events) = BpfEvents::open(&[ThreadId::own()], false) else {
            return eprintln!("not tested here: programs may not be loaded");
        };
        if events.programs.iter().filter(|program| !program.of_calls).count() < 4 {
            return eprintln!("not tested here: this kernel has no tracepoint of what sockets send");
        }
        let (mut to, _from) = std::os::unix::net::UnixStream::pair().unwrap();
        for recorded in [true, false] {
            events.switch(recorded).unwrap();
            let before = events.progress().unwrap().sends;
            (0..SENDS).for_each(|_| to.write_all(b"x").unwrap());
            assert_eq!(events.progress().unwrap().sends - before, SENDS, "recorded: {recorded}");
        }
    }
}
