//! Events of one thread, recorded by the kernel into rings and read out after the iterations.
//!
//! All are switched on and off together, so that they observe the same span of time.

use crate::instrument::ProbeInstrument;
use crate::mappings::Mappings;
use crate::perf::{counter, on_this_thread, ring, switched};
use crate::tracefs::{self, Field, REMEDY, Tracefs};
use model::observation::{EndpointEvent, EndpointObservation, EventKind};
use perf_event::data::Record as Parsed;
use perf_event::events::{Software, Tracepoint};
use perf_event::{Builder, Counter, SampleFlag, Sampler};
use std::ops::Range;
use sys::Failure;

/// `PERF_RECORD_SWITCH` and the flags of its header (perf_event_open(2)).
pub(crate) const RECORD_SWITCH: u32 = 14;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// The flag of a tracepoint's record that an interrupt was being served (`TRACE_FLAG_HARDIRQ`).
const IN_INTERRUPT: u64 = 1 << 3;

/// EventKind of a thread's life is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// System calls, when they begin and end.
    Calls,
    /// One of them, clock_getres(2).
    OneCall,
    /// When the thread leaves its CPU and comes back. Every user may observe that of their own threads.
    Switches,
    /// Whom the thread wakes.
    WakeUps,
    /// Page faults.
    Faults,
}

/// The records of one thread.
pub(crate) struct Recorder {
    /// Counts nothing: it leads the group.
    leader: Counter,
    sources: Vec<Source>,
    payload: Range<u64>,
    /// EventKind else was wanted, and why it could not be had.
    unavailable: Vec<String>,
}

/// One ring, and how its records are read.
struct Source {
    ring: Sampler,
    form: Form,
}

/// Of what form the records of a ring are.
enum Form {
    Enter { number: Field, arguments: Field },
    Exit { number: Field, value: Field },
    Wakes { tid: Field, flags: Field },
    Switch,
    PageFault { major: bool },
}

impl Recorder {
    /// Opens what it takes to record the kinds that are `needed`, and those that are `wanted` as far as they can be
    /// had, of the calling thread. `payload` is where its messages lie.
    pub(crate) fn open(needed: &[Kind], wanted: &[Kind], payload: Range<u64>) -> Result<Self, Failure> {
        let mut leader = counter(&on_this_thread(Software::DUMMY), "an event of its own thread")?;
        let (mut sources, mut unavailable) = (Vec::new(), Vec::new());
        for kind in needed {
            sources.extend(kind.sources(&mut leader)?);
        }
        for kind in wanted {
            match kind.sources(&mut leader) {
                Ok(more) => sources.extend(more),
                Err(failure) => unavailable.push(failure.to_string()),
            }
        }
        Ok(Self { leader, sources, payload, unavailable })
    }
}

impl Kind {
    fn sources(self, leader: &mut Counter) -> Result<Vec<Source>, Failure> {
        match self {
            Kind::Calls => {
                let tracefs = Tracefs::open()?;
                let enter = tracefs.tracepoint("raw_syscalls/sys_enter")?;
                let exit = tracefs.tracepoint("raw_syscalls/sys_exit")?;
                let enters = Form::Enter { number: enter.field("id")?, arguments: enter.field("args")? };
                let exits = Form::Exit { number: exit.field("id")?, value: exit.field("ret")? };
                Ok(vec![tracepoint(&enter, leader, enters)?, tracepoint(&exit, leader, exits)?])
            }
            Kind::OneCall => {
                let tracefs = Tracefs::open()?;
                let enter = tracefs.tracepoint("syscalls/sys_enter_clock_getres")?;
                let exit = tracefs.tracepoint("syscalls/sys_exit_clock_getres")?;
                let number = "__syscall_nr";
                let enters =
                    Form::Enter { number: enter.field(number)?, arguments: enter.field("which_clock")? };
                let exits = Form::Exit { number: exit.field(number)?, value: exit.field("ret")? };
                Ok(vec![tracepoint(&enter, leader, enters)?, tracepoint(&exit, leader, exits)?])
            }
            Kind::WakeUps => {
                let waking = Tracefs::open()?.tracepoint("sched/sched_waking")?;
                let form = Form::Wakes { tid: waking.field("pid")?, flags: waking.field("common_flags")? };
                Ok(vec![tracepoint(&waking, leader, form)?])
            }
            Kind::Switches => {
                let mut builder = switches(on_this_thread(Software::DUMMY));
                Ok(vec![source(&mut builder, leader, Form::Switch, "context switches")?])
            }
            Kind::Faults => {
                let minor = faults(Software::PAGE_FAULTS_MIN, leader, Form::PageFault { major: false })?;
                Ok(vec![minor, faults(Software::PAGE_FAULTS_MAJ, leader, Form::PageFault { major: true })?])
            }
        }
    }
}

impl ProbeInstrument for Recorder {
    fn begin(&mut self) -> Result<(), Failure> {
        switched(self.leader.enable(), "the events of this thread")
    }

    fn end(&mut self) -> Result<(), Failure> {
        switched(self.leader.disable(), "the events of this thread")
    }

    fn observation(mut self: Box<Self>) -> Result<EndpointObservation, Failure> {
        let mut seen =
            EndpointObservation { unavailable: self.unavailable, ..EndpointObservation::default() };
        for Source { ring, form } in &mut self.sources {
            while let Some(record) = ring.next_record() {
                if record.ty() == RECORD_SWITCH {
                    seen.events.extend(switch(&record.to_contiguous(), record.misc()));
                    continue;
                }
                match record.parse_record() {
                    Ok(Parsed::Sample(sample)) => {
                        let (fields, address) =
                            (sample.raw().unwrap_or_default(), sample.addr().unwrap_or_default());
                        let event = form.what(fields, address).zip(sample.time());
                        seen.events.extend(event.map(|(what, at_ns)| EndpointEvent { at_ns, what }));
                    }
                    Ok(Parsed::Lost(lost)) => seen.lost += lost.lost,
                    Ok(Parsed::LostSamples(lost)) => seen.lost += lost.lost,
                    _ => {}
                }
            }
        }
        let mappings = Mappings::read()?;
        for event in &mut seen.events {
            if let EventKind::PageFault { address, mapping, .. } = &mut event.what {
                let name = match self.payload.contains(address) {
                    true => "payload",
                    false => mappings.name(*address),
                };
                let at = seen.mappings.iter().position(|known| known == name).unwrap_or_else(|| {
                    seen.mappings.push(name.to_owned());
                    seen.mappings.len() - 1
                });
                *mapping = u32::try_from(at).unwrap_or(u32::MAX);
            }
        }
        Ok(seen)
    }
}

impl Form {
    /// EventKind a record says, from the fields of its tracepoint, or the address that it is about.
    fn what(&self, fields: &[u8], address: u64) -> Option<EventKind> {
        let short = |field: &Field| u32::try_from(field.read_from(fields)).ok();
        Some(match self {
            Form::Enter { number, arguments } => EventKind::Enter {
                number: short(number)?,
                first: arguments.element(fields, 0, 8),
                third: arguments.element(fields, 2, 8),
            },
            Form::Exit { number, value } => {
                EventKind::Exit { number: short(number)?, value: value.read_from(fields).cast_signed() }
            }
            Form::Wakes { tid, flags } => EventKind::Wakes {
                tid: short(tid)?,
                by_interrupt: flags.read_from(fields) & IN_INTERRUPT != 0,
            },
            Form::PageFault { major } => EventKind::PageFault { address, major: *major, mapping: 0 },
            Form::Switch => return None,
        })
    }
}

/// `builder`, of an event that counts nothing, with a record of each time a thread leaves its CPU and comes back.
pub(crate) fn switches(mut builder: Builder<'_>) -> Builder<'_> {
    builder.context_switch(true).sample_id_all(true).sample(SampleFlag::TIME | SampleFlag::CPU);
    builder
}

/// A switch: it has nothing but the time and the CPU, which every record of its event ends with.
pub(crate) fn switch(record: &[u8], misc: u16) -> Option<EndpointEvent> {
    let (time, rest) = record.split_first_chunk::<8>()?;
    let cpu = u32::from_ne_bytes(*rest.first_chunk()?);
    let what = match misc & MISC_SWITCH_OUT != 0 {
        true => EventKind::Off { preempted: misc & MISC_SWITCH_OUT_PREEMPT != 0 },
        false => EventKind::On { cpu },
    };
    Some(EndpointEvent { at_ns: u64::from_ne_bytes(*time), what })
}

fn tracepoint(of: &tracefs::Tracepoint, leader: &mut Counter, form: Form) -> Result<Source, Failure> {
    let mut builder = on_this_thread(Tracepoint::with_id(of.id));
    builder.include_kernel().sample_period(1).sample(SampleFlag::TIME | SampleFlag::RAW);
    let source = source(&mut builder, leader, form, &format!("the tracepoint {}", of.name));
    source.map_err(|failure| Failure { next: REMEDY.to_owned(), ..failure })
}

/// Without the privilege to observe the kernel's own page faults, those of user code can still be observed.
fn faults(event: Software, leader: &mut Counter, form: Form) -> Result<Source, Failure> {
    let mut builder = on_this_thread(event);
    builder.sample_period(1).sample(SampleFlag::TIME | SampleFlag::ADDR).include_kernel();
    if builder.build().is_err() {
        builder.exclude_kernel(true);
    }
    source(&mut builder, leader, form, "page faults")
}

fn source(
    builder: &mut Builder<'_>,
    leader: &mut Counter,
    form: Form,
    what: &str,
) -> Result<Source, Failure> {
    Ok(Source { ring: ring(builder, Some(leader), what)?, form })
}
