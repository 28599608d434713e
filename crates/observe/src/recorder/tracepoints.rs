//! Events of processes by records of the kernel's tracepoints: each thread has events of its own on each CPU, which the kernel gives to
//! whatever it makes (`inherit`), so that no fork is too fast to be followed. All events of a CPU go into one ring, which is
//! read out while the program runs.

use super::calls::{filter, meaning};
use super::clock::now_ns;
use super::process_events::{EventsInOrder, ProcessEvents};
use super::raw::{RawEvent, RawKind};
use super::thread::ThreadId;
use crate::perf::{counter, refused, ring, switched};
use crate::tracefs::{Field, REMEDY, Tracefs};
use model::communication::RecordedProgress;
use perf_event::events::{Event, Software, Tracepoint};
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use std::ffi::CString;
use std::time::Duration;
use sys::{Failure, OrFail};

/// Types of records, and flags of their headers (perf_event_open(2)).
const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_EXIT: u32 = 4;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const RECORD_SWITCH: u32 = 14;
const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// What every record ends with that is no sample: process, thread and time.
const TRAILER_BYTES: usize = 16;
/// What is said of records for which a ring had no room.
pub(super) const LOST_RECORDS: &str =
    "records were lost, for the program made them faster than they were read";

/// The tracepoints of processes, open.
pub(super) struct TracepointEvents {
    /// The ring of each CPU, in the order of `cpus`.
    rings: Vec<Sampler>,
    cpus: Vec<u32>,
    /// One leader for each thread and CPU, which switches its group on and off.
    leaders: Vec<Counter>,
    members: Vec<Counter>,
    /// Count context switches, and what sockets send where the kernel has a tracepoint for it, whether events are recorded or not.
    switches: Vec<Counter>,
    sends: Vec<Counter>,
    enter: Form,
    exit: Form,
    waiting: EventsInOrder,
    /// Records for which a ring had no room.
    lost: u64,
}

/// Where the fields of a tracepoint lie.
struct Form {
    id: u64,
    number: Field,
    value: Field,
}

impl TracepointEvents {
    /// Opens the events of `threads` and whatever they make, switched off.
    pub(super) fn open(cpus: &[u32], threads: &[ThreadId]) -> Result<Self, Failure> {
        let tracefs = Tracefs::open()?;
        let enter = tracefs.tracepoint("raw_syscalls/sys_enter")?;
        let exit = tracefs.tracepoint("raw_syscalls/sys_exit")?;
        let rings = cpus.iter().map(|cpu| {
            let mut owner = Builder::new(Software::DUMMY);
            owner.any_pid().one_cpu(*cpu as usize).include_kernel().clockid(Clock::MONOTONIC);
            // Records wait until they are fetched.
            owner.wakeup_watermark(2 << 20);
            ring(&mut owner, None, &format!("the events of CPU {cpu}"))
        });
        let mut events = Self {
            rings: rings.collect::<Result<_, _>>()?,
            cpus: cpus.to_vec(),
            leaders: Vec::new(),
            members: Vec::new(),
            switches: Vec::new(),
            sends: Vec::new(),
            enter: Form { id: enter.id, number: enter.field("id")?, value: enter.field("args")? },
            exit: Form { id: exit.id, number: exit.field("id")?, value: exit.field("ret")? },
            waiting: EventsInOrder::default(),
            lost: 0,
        };
        let sends = tracefs.tracepoint("sock/sock_send_length").ok().map(|tracepoint| tracepoint.id);
        for ThreadId { tid, .. } in threads {
            for (at, cpu) in cpus.iter().enumerate() {
                events.open_on(*tid, *cpu, at)?;
            }
            events.switches.push(count_of(Software::CONTEXT_SWITCHES, *tid)?);
            if let Some(sends) = sends {
                events.sends.push(count_of(Tracepoint::with_id(sends), *tid)?);
            }
        }
        Ok(events)
    }

    fn open_on(&mut self, tid: u32, cpu: u32, at: usize) -> Result<(), Failure> {
        let what = format!("the events of thread {tid}");
        let mut leader = of_thread(Software::DUMMY, tid, cpu);
        leader.context_switch(true).task(true).comm(true).comm_exec(true).sample_id_all(true);
        let mut leader = counter(&leader, &what)?;
        let owner = self.rings[at].as_counter();
        let into_ring = |event: &Counter| {
            sys::perf_event::set_output(event, owner).or_fail("ioctl(PERF_EVENT_IOC_SET_OUTPUT)", &what)
        };
        into_ring(&leader)?;
        for id in [self.enter.id, self.exit.id] {
            let mut builder = of_thread(Tracepoint::with_id(id), tid, cpu);
            builder.sample_period(1).sample(SampleFlag::RAW).sample_id_all(true).enabled(true);
            let opened = builder.build_with_group(&mut leader);
            let opened =
                opened.map_err(|error| Failure { next: REMEDY.to_owned(), ..refused(&what, &error) })?;
            into_ring(&opened)?;
            let filter = CString::new(filter()).unwrap_or_default();
            sys::perf_event::set_filter(&opened, &filter)
                .or_fail("ioctl(PERF_EVENT_IOC_SET_FILTER)", &what)?;
            self.members.push(opened);
        }
        self.leaders.push(leader);
        Ok(())
    }
}

impl ProcessEvents for TracepointEvents {
    fn switch(&mut self, on: bool) -> Result<(), Failure> {
        for leader in &mut self.leaders {
            let outcome = if on { leader.enable() } else { leader.disable() };
            switched(outcome, "the events of a thread")?;
        }
        Ok(())
    }

    fn progress(&mut self) -> Result<RecordedProgress, Failure> {
        Ok(RecordedProgress { switches: sum_of(&mut self.switches)?, sends: sum_of(&mut self.sends)? })
    }

    fn wait(&self, longest: Duration) {
        let fds: Vec<BorrowedFd<'_>> =
            self.rings.iter().map(|ring| sys::perf_event::descriptor(ring.as_counter())).collect();
        wait_for(&fds, longest);
    }

    fn fetch(&mut self, last: bool, take: &mut dyn FnMut(RawEvent)) {
        let read_ns = now_ns();
        for at in 0..self.rings.len() {
            while let Some(record) = self.rings[at].next_record() {
                let (kind, misc) = (record.ty(), record.misc());
                let bytes = record.to_contiguous();
                if kind == RECORD_LOST {
                    self.lost += number(&bytes, 8).unwrap_or(0);
                } else if let Some(event) =
                    event(kind, misc, &bytes, self.cpus[at], [&self.enter, &self.exit])
                {
                    self.waiting.push(event);
                }
            }
        }
        self.waiting.take_complete(read_ns, last, take);
    }

    fn count(&self, _: &mut dyn FnMut(RawEvent)) -> Result<(), Failure> {
        Ok(())
    }

    fn call_cost(&self) -> Duration {
        // 2 us of two processes that wait for each other, 4 us of five that keep two CPUs busy.
        Duration::from_micros(3)
    }

    fn lost(&self) -> Vec<(&'static str, u64)> {
        vec![(LOST_RECORDS, self.lost)]
    }
}

/// Counts how often `event` happens in the thread `tid` and what it makes.
fn count_of(event: impl Event, tid: u32) -> Result<Counter, Failure> {
    let mut builder = Builder::new(event);
    builder.observe_pid(tid.cast_signed()).any_cpu().inherit(true).include_kernel().enabled(true);
    counter(&builder, "how far a thread comes")
}

/// What such counters have counted together.
fn sum_of(counters: &mut [Counter]) -> Result<u64, Failure> {
    let counts = counters.iter_mut().map(Counter::read);
    counts.sum::<Result<u64, _>>().map_err(|error| refused("the count of how far threads come", &error))
}

/// Sleeps until one of `fds` can be read, or for so long.
fn wait_for(fds: &[BorrowedFd<'_>], longest: Duration) {
    let mut polled: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(longest).ok();
    // A signal ends it early, which is as well.
    let _ = poll(&mut polled, timeout.as_ref());
}

/// `event` of the thread `tid` and what it makes, on `cpu`, switched off.
fn of_thread<'a>(event: impl Event, tid: u32, cpu: u32) -> Builder<'a> {
    let mut builder = Builder::new(event);
    builder.observe_pid(tid.cast_signed()).one_cpu(cpu as usize).include_kernel().inherit(true);
    builder.clockid(Clock::MONOTONIC).sample(SampleFlag::TID | SampleFlag::TIME);
    builder
}

/// What a record of `cpu` says.
fn event(kind: u32, misc: u16, bytes: &[u8], cpu: u32, [enter, exit]: [&Form; 2]) -> Option<RawEvent> {
    let event =
        |at_ns, pid, tid, what| Some(RawEvent { at_ns, pid, tid, cpu: Some(cpu), totals: None, what });
    if kind == RECORD_SAMPLE {
        let fields = bytes.get(20..)?;
        let id = u64::from(u16::from_ne_bytes(*fields.first_chunk()?));
        let number_of = |form: &Form| u32::try_from(form.number.read_from(fields)).ok();
        let what = if id == enter.id {
            let arguments = [0, 1, 2, 3].map(|at| enter.value.element(fields, at, 8));
            RawKind::Enter { number: number_of(enter)?, arguments }
        } else if id == exit.id {
            RawKind::Exit { number: number_of(exit)?, value: exit.value.read_from(fields).cast_signed() }
        } else {
            return None;
        };
        if let RawKind::Enter { number, .. } | RawKind::Exit { number, .. } = what {
            meaning(number)?;
        }
        return event(number(bytes, 8)?, short(bytes, 0)?, short(bytes, 4)?, what);
    }
    let trailer = bytes.len().checked_sub(TRAILER_BYTES)?;
    let [pid, tid] = [short(bytes, trailer)?, short(bytes, trailer + 4)?];
    let at_ns = number(bytes, trailer + 8)?;
    match kind {
        RECORD_SWITCH if misc & MISC_SWITCH_OUT == 0 => event(at_ns, pid, tid, RawKind::On),
        RECORD_SWITCH => {
            event(at_ns, pid, tid, RawKind::Off { preempted: misc & MISC_SWITCH_OUT_PREEMPT != 0 })
        }
        // The process and its parent, then the thread and its parent.
        RECORD_FORK => {
            let made = RawKind::Fork { pid: short(bytes, 0)?, tid: short(bytes, 8)? };
            event(at_ns, short(bytes, 4)?, short(bytes, 12)?, made)
        }
        RECORD_EXIT => event(at_ns, short(bytes, 0)?, short(bytes, 8)?, RawKind::End),
        RECORD_COMM if misc & MISC_COMM_EXEC != 0 => {
            let name = bytes.get(8..trailer)?.split(|byte| *byte == 0).next().unwrap_or_default();
            event(at_ns, pid, tid, RawKind::Exec { name: String::from_utf8_lossy(name).into_owned() })
        }
        _ => None,
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
