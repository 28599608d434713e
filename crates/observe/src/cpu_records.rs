//! Events of CPUs as records of perf_event_open(2), which the kernel writes into one ring a CPU. For where programs in the kernel may not
//! be used, and for an ordinary user, who sees when their own threads leave a CPU.

use crate::cpu_tracepoints::{Said, Source, sources};
use crate::events::{RECORD_SWITCH, switch, switches};
use crate::perf::{LEAST_RING_BYTES, RING_BYTES, counter, refused, ring, switched};
use crate::tracefs::{self, REMEDY, Tracefs};
use model::observation::{CpuEvent, CpuEventKind, CpuTrace, EndpointEvent, EventKind, EventSet};
use perf_event::events::{Event, Software, Tracepoint};
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};
use sys::{Failure, OrFail};

/// Types of records (perf_event_open(2)).
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;

/// Tracepoints of which one event stays open, switched off, until this process ends.
///
/// To close the last event of a tracepoint, the kernel waits until no CPU can be in it any more: some 40 ms, and interrupts have a dozen
/// tracepoints. An event that is open and off costs a comparison whenever its tracepoint is passed. Interrupts are few. Switches, wake-ups,
/// calls and idling come in every iteration, and these are closed after each slice: a bare slice is bare.
static KEPT: Mutex<BTreeMap<u64, Counter>> = Mutex::new(BTreeMap::new());

/// Sets of events, open on CPUs.
pub(crate) struct CpuRecords {
    tids: Vec<u32>,
    pub(crate) sets: Vec<EventSet>,
    pub(crate) unavailable: Vec<String>,
    cpus: Vec<CpuRing>,
    /// The tracepoints by their numbers.
    sources: BTreeMap<u64, Source>,
    /// Where CPUs may not be observed: when each thread leaves its CPU and comes back.
    own: Vec<(u32, Sampler)>,
}

/// What is open on one CPU.
struct CpuRing {
    cpu: u32,
    /// Counts nothing: it leads the group, which is on when it is, and the records of all tracepoints go into its ring.
    leader: Sampler,
    tracepoints: Vec<Counter>,
    faults: Option<Sampler>,
}

impl CpuRecords {
    /// Opens `sets` on `cpus`, as far as that is permitted, of what the threads `tids` do there.
    pub(crate) fn open(cpus: &[u32], tids: Vec<u32>, sets: &[EventSet]) -> Result<Self, Failure> {
        let mut records = Self {
            tids,
            sets: Vec::new(),
            unavailable: Vec::new(),
            cpus: Vec::new(),
            sources: BTreeMap::new(),
            own: Vec::new(),
        };
        let opened: Result<Vec<CpuRing>, Failure> = cpus.iter().map(|cpu| CpuRing::open(*cpu)).collect();
        let refusal = match opened {
            Ok(cpus) => {
                records.cpus = cpus;
                None
            }
            Err(failure) => Some(failure),
        };
        for set in sets {
            let opened = refusal.clone().map_or_else(|| records.add(*set), Err);
            match opened {
                Ok(()) => records.sets.push(*set),
                Err(failure) => {
                    records.unavailable.push(format!("{set}: {failure}"));
                    if *set == EventSet::Switches {
                        records.add_own_switches()?;
                    }
                }
            }
        }
        Ok(records)
    }

    /// Opens `set` on every CPU, or on none.
    fn add(&mut self, set: EventSet) -> Result<(), Failure> {
        if set == EventSet::Faults {
            let faults = self.cpus.iter_mut().map(CpuRing::faults).collect::<Result<Vec<_>, _>>()?;
            self.cpus.iter_mut().zip(faults).for_each(|(on, faults)| on.faults = Some(faults));
            return Ok(());
        }
        tracefs::in_first_pid_namespace()?;
        let sources = sources(set, &Tracefs::open()?)?;
        let tids = self.tids.clone();
        let open = |on: &mut CpuRing| -> Result<Vec<Counter>, Failure> {
            sources.iter().map(|source| on.tracepoint(source, &tids)).collect()
        };
        let opened = self.cpus.iter_mut().map(open).collect::<Result<Vec<_>, _>>()?;
        self.cpus.iter_mut().zip(opened).for_each(|(on, opened)| on.tracepoints.extend(opened));
        if set == EventSet::Interrupts {
            self.cpus.first().map_or(Ok(()), |on| on.keep(&sources))?;
        }
        self.sources.extend(sources.into_iter().map(|source| (source.tracepoint.id, source)));
        Ok(())
    }

    /// What every user may see of their own threads.
    fn add_own_switches(&mut self) -> Result<(), Failure> {
        for tid in self.tids.clone() {
            let mut builder = Builder::new(Software::DUMMY);
            builder.observe_pid(tid.cast_signed()).any_cpu().clockid(Clock::MONOTONIC_RAW);
            let opened = ring(&mut switches(builder), None, "context switches of an endpoint")?;
            self.own.push((tid, opened));
        }
        self.sets.push(EventSet::Switches);
        Ok(())
    }

    /// Switches the events on. The endpoints sleep meanwhile.
    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        self.leaders().try_for_each(|leader| switched(leader.enable(), "the events of a CPU"))
    }

    /// Switches them off.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        self.leaders().try_for_each(|leader| switched(leader.disable(), "the events of a CPU"))
    }

    fn leaders(&mut self) -> impl Iterator<Item = &mut Sampler> {
        let of_cpus = self.cpus.iter_mut().map(|on| &mut on.leader);
        of_cpus.chain(self.own.iter_mut().map(|(_, ring)| ring))
    }

    /// Adds to `trace` what was recorded.
    pub(crate) fn read(&mut self, trace: &mut CpuTrace) -> Result<(), Failure> {
        for on in &mut self.cpus {
            on.read(&self.sources, &self.tids, trace)?;
        }
        for (tid, ring) in &mut self.own {
            read_own(*tid, ring, trace);
        }
        Ok(())
    }
}

impl CpuRing {
    fn open(cpu: u32) -> Result<Self, Failure> {
        let leader = ring(&mut on_cpu(Software::DUMMY, cpu), None, &format!("the events of CPU {cpu}"))?;
        Ok(Self { cpu, leader, tracepoints: Vec::new(), faults: None })
    }

    /// Has `source` recorded into the ring of this CPU, of the threads `tids` where it is of endpoints only.
    fn tracepoint(&mut self, source: &Source, tids: &[u32]) -> Result<Counter, Failure> {
        let tracepoint = &source.tracepoint;
        let what = || format!("the tracepoint {}", tracepoint.name);
        let mut builder = on_cpu(Tracepoint::with_id(tracepoint.id), self.cpu);
        // No more than is needed: which CPU and which thread it was, the ring and the tracepoint's own fields tell.
        builder.sample_period(1).sample(SampleFlag::TIME | SampleFlag::RAW).enabled(true);
        let opened = builder.build_with_group(self.leader.as_counter_mut());
        let opened =
            opened.map_err(|error| Failure { next: REMEDY.to_owned(), ..refused(&what(), &error) })?;
        sys::perf_event::set_output(&opened, self.leader.as_counter())
            .or_fail("ioctl(PERF_EVENT_IOC_SET_OUTPUT)", what())?;
        if let Some(filter) = source.filter(tids).and_then(|filter| CString::new(filter).ok()) {
            sys::perf_event::set_filter(&opened, &filter)
                .or_fail("ioctl(PERF_EVENT_IOC_SET_FILTER)", what())?;
        }
        Ok(opened)
    }

    /// Has an event of each of `sources` stay open.
    fn keep(&self, sources: &[Source]) -> Result<(), Failure> {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        for Source { tracepoint, .. } in sources {
            if let Entry::Vacant(place) = kept.entry(tracepoint.id) {
                let builder = on_cpu(Tracepoint::with_id(tracepoint.id), self.cpu);
                place.insert(counter(&builder, &tracepoint.name)?);
            }
        }
        Ok(())
    }

    /// Page faults have a ring of their own, for they are no tracepoint: their records have another form, and no filter.
    fn faults(&mut self) -> Result<Sampler, Failure> {
        let mut builder = on_cpu(Software::PAGE_FAULTS, self.cpu);
        builder.sample_period(1).sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::ADDR);
        ring(&mut builder, Some(self.leader.as_counter_mut()), "page faults")
    }

    /// Adds to `trace` what was recorded on this CPU.
    ///
    /// A ring that stays full until the end says nothing of what it had no room for. But the kernel counts every event, recorded or
    /// not: where there are many records, the difference was lost. Where there are few, there was room, and it is of interrupts of
    /// an idle CPU and of what they wake: the kernel counts them, and was seen to record few of them (Linux 6.18; nor has
    /// perf-record(1) more of them).
    fn read(
        &mut self,
        sources: &BTreeMap<u64, Source>,
        tids: &[u32],
        trace: &mut CpuTrace,
    ) -> Result<(), Failure> {
        let (mut happened, mut recorded, mut bytes, cpu) = (0, 0, 0, self.cpu);
        for counter in self.tracepoints.iter_mut().chain(self.faults.as_deref_mut()) {
            let count = counter.read();
            happened += count.map_err(|error| refused("the count of an event", &error))?;
        }
        while let Some(record) = self.leader.next_record() {
            if record.ty() != RECORD_SAMPLE {
                continue;
            }
            recorded += 1;
            bytes += record.len();
            let record = record.to_contiguous();
            let Some((at_ns, fields)) = tracepoint_fields(&record) else { continue };
            let Some(source) =
                fields.first_chunk().and_then(|number| sources.get(&u64::from(u16::from_ne_bytes(*number))))
            else {
                continue;
            };
            let Some(Said { tid, what, name }) = source.read(fields) else { continue };
            trace.events.push(CpuEvent { at_ns, cpu, tid, what });
            if let Some((named, name)) = name.filter(|(named, _)| !tids.contains(named)) {
                trace.task_names.entry(named).or_insert_with(|| name.text(fields));
            }
        }
        while let Some(record) = self.faults.as_mut().and_then(Sampler::next_record) {
            if record.ty() != RECORD_SAMPLE {
                continue;
            }
            recorded += 1;
            bytes += record.len();
            let fault = page_fault(&record.to_contiguous(), cpu);
            trace.events.extend(fault.filter(|fault| tids.contains(&fault.tid)));
        }
        if bytes >= LEAST_RING_BYTES / 2 {
            trace.lost += happened.saturating_sub(recorded);
        }
        Ok(())
    }
}

/// `event` on `cpu`, whoever runs there, of user code and of the kernel, stamped by our clock. Nobody is woken before the ring is
/// full.
fn on_cpu<'a>(event: impl Event, cpu: u32) -> Builder<'a> {
    let mut builder = Builder::new(event);
    builder.any_pid().one_cpu(cpu as usize).include_kernel().clockid(Clock::MONOTONIC_RAW);
    builder.wakeup_watermark(RING_BYTES);
    builder
}

/// When a record of a tracepoint was made, and the tracepoint's fields, before which their length stands.
fn tracepoint_fields(record: &[u8]) -> Option<(u64, &[u8])> {
    let (at_ns, rest) = record.split_first_chunk()?;
    let (_length, fields) = rest.split_first_chunk::<4>()?;
    Some((u64::from_ne_bytes(*at_ns), fields))
}

/// The page fault on `cpu` of which a record tells: of a process and its thread, when, and where.
fn page_fault(record: &[u8], cpu: u32) -> Option<CpuEvent> {
    let (_process, rest) = record.split_first_chunk::<4>()?;
    let (tid, rest) = rest.split_first_chunk()?;
    let (at_ns, rest) = rest.split_first_chunk()?;
    let what = CpuEventKind::PageFault { address: u64::from_ne_bytes(*rest.first_chunk()?) };
    Some(CpuEvent { at_ns: u64::from_ne_bytes(*at_ns), cpu, tid: u32::from_ne_bytes(*tid), what })
}

/// Adds to `trace` when the thread `tid` left its CPU and came back. Who ran meanwhile is not known.
fn read_own(tid: u32, ring: &mut Sampler, trace: &mut CpuTrace) {
    while let Some(record) = ring.next_record() {
        let bytes = record.to_contiguous();
        match record.ty() {
            RECORD_SWITCH => trace.events.extend(own_switch(tid, &bytes, record.misc())),
            RECORD_LOST => {
                let lost = bytes.get(8..).and_then(|lost| lost.first_chunk());
                trace.lost += lost.map_or(0, |lost| u64::from_ne_bytes(*lost));
            }
            _ => {}
        }
    }
}

/// What a record of the thread's own switches tells: when, and on which CPU.
fn own_switch(tid: u32, record: &[u8], misc: u16) -> Option<CpuEvent> {
    let EndpointEvent { at_ns, what } = switch(record, misc)?;
    let cpu = u32::from_ne_bytes(*record.get(8..)?.first_chunk()?);
    let what = match what {
        EventKind::Off { preempted } => CpuEventKind::Switch { from: tid, to: None, preempted },
        _ => CpuEventKind::On,
    };
    Some(CpuEvent { at_ns, cpu, tid, what })
}
