//! Events of processes by programs in the kernel (bpf(2)), which follow threads themselves and tell of each call once, when it has
//! ended. Which threads there are, the kernel knows by the first PID namespace's numbers, so that it works there only.

mod layout;
mod programs;

use super::calls::wanted;
use super::clock::now_ns;
use super::process_events::{EventsInOrder, ProcessEvents};
use super::raw::{RawEvent, RawKind};
use super::stops::process_of;
use super::thread::Entered;
use super::tracepoints::LOST_RECORDS;
use crate::tracefs::in_first_pid_namespace;
use layout::{announcements, event, new_thread, thread, totals};
use model::communication::RecordedProgress;
use programs::{Maps, TracepointProgram, programs};
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::time::Duration;
use sys::bpf::{BpfLink, BpfMap, BpfProgram, BpfRing};
use sys::{Failure, OrFail};

/// More threads are not recorded at the same time.
const MOST_THREADS: u32 = 1 << 15;
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
    /// Can be waited for until something is recorded that must be looked up at once.
    urgent: OwnedFd,
}

struct AttachableProgram {
    program: BpfProgram,
    of_calls: bool,
    /// The program is attached as long as this is open.
    attached: Option<BpfLink>,
}

impl BpfEvents {
    /// Loads the programs for the threads `tids` and whatever they make. With `calls`, a thread may be in a call already.
    pub(super) fn open(tids: &[u32], calls: bool) -> Result<Self, Failure> {
        in_first_pid_namespace()?;
        let maps = Maps {
            threads: BpfMap::hash(4, thread::BYTES as usize, MOST_THREADS)?,
            calls: BpfMap::array(4, MOST_CALLS)?,
            lost: BpfMap::array(8, 2)?,
            switches: BpfMap::array(8, 1)?,
            sends: BpfMap::array(8, 1)?,
            ring: BpfRing::create(RING_BYTES)?,
        };
        for (number, meaning) in wanted() {
            maps.calls.set(&number.to_ne_bytes(), &announcements(*meaning).to_ne_bytes())?;
        }
        let load = |program: TracepointProgram| {
            let TracepointProgram { tracepoint, type_number, instructions, of_calls } = program;
            let program = BpfProgram::load(tracepoint, &instructions, type_number)?;
            Ok(AttachableProgram { program, of_calls, attached: None })
        };
        let programs = programs(&maps)?.into_iter().map(load).collect::<Result<_, Failure>>()?;
        let urgent = urgent(&maps.ring)?;
        let mut events = Self { maps, programs, waiting: EventsInOrder::default(), urgent };
        // Nobody is recorded yet: it shows whether they may be attached.
        events.switch(true)?;
        for tid in tids {
            let now_ns = now_ns();
            let entered = Entered::by(*tid, now_ns).filter(|_| calls);
            let state = new_thread(process_of(*tid), now_ns, entered.as_ref());
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
        let mut woken = [const { MaybeUninit::uninit() }; 1];
        let timeout = Timespec::try_from(longest).ok();
        // A signal ends it early, which is as well.
        let _ = epoll::wait(&self.urgent, &mut woken, timeout.as_ref());
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

/// What can be waited for until a program wakes who reads `ring`. A ring can be read as long as anything is in it: without EPOLLET, or by
/// poll(2), the recorder would not sleep at all while calls are recorded, and so keep a CPU of the recorded program busy.
fn urgent(ring: &BpfRing) -> Result<OwnedFd, Failure> {
    let what = "the ring of records";
    let instance = epoll::create(epoll::CreateFlags::CLOEXEC).or_fail("epoll_create1", what)?;
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&instance, ring, epoll::EventData::new_u64(0), flags).or_fail("epoll_ctl", what)?;
    Ok(instance)
}

/// One of the numbers that programs count up. One that cannot be read is as good as none.
fn counted(map: &BpfMap, which: u32) -> u64 {
    let bytes = map.get(&which.to_ne_bytes()).ok().flatten();
    bytes.and_then(|bytes| Some(u64::from_ne_bytes(*bytes.first_chunk()?))).unwrap_or(0)
}

/// How often the thread `tid` was switched (proc_pid_status(5)). If it has just ended, it is counted elsewhere.
fn switches_of(tid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let counts = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
    counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::super::clock::since;
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn a_thread_is_switched_when_it_sleeps() {
        let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
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
        let mut events = match BpfEvents::open(&[shell.id()], true) {
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
    fn the_recorder_sleeps_while_calls_are_recorded() {
        const WRITES: u32 = 50;
        let (mut to, _from) = std::os::unix::net::UnixStream::pair().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let writer = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            for _ in 0..WRITES {
                to.write_all(b"x").unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let events = BpfEvents::open(&[told.recv().unwrap()], true);
        let Ok(mut events) = events else { return eprintln!("not tested here: programs may not be loaded") };
        let start_ns = now_ns();
        let (mut waits, mut records) = (0, 0);
        while !writer.is_finished() {
            events.wait(Duration::from_millis(20));
            waits += 1;
            events.fetch(false, &mut |_| records += 1);
        }
        events.fetch(true, &mut |_| records += 1);
        assert!(records >= WRITES, "{records} records");
        // Each of them lasts for 20 ms, but for a few that end early.
        let most = 5 + since(start_ns).as_millis() / 10;
        assert!(waits < most, "{waits} waits, and not {most}");
    }

    #[test]
    fn what_is_sent_through_sockets_is_counted_exactly_whether_it_is_recorded_or_not() {
        const SENDS: u64 = 23;
        let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let Ok(mut events) = BpfEvents::open(&[own], false) else {
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
