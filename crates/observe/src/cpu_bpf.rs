//! Events of CPUs by programs in the kernel, which write into the memory of each CPU. The programs are in `cpu_programs`.
//!
//! They are attached before a slice, which takes some tens of milliseconds, and detached after it, which takes less: a bare slice is bare.
//! What begins and ends the recording is a number in the memory, so that all begin and end at the same time.

use crate::clocks::{ClockReading, by_raw};
use crate::cpu_programs::{
    CpuProgram, CpuRecord, HEAD_WORDS, KernelTypes, NOT_RECORDED, RECORD_WORDS, RECORDS, SERVED_WORD,
    programs,
};
use crate::tracefs::in_first_pid_namespace;
use model::observation::{CpuEvent, CpuTrace, EventSet};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use sys::Failure;
use sys::bpf::{BpfLink, BpfMemory, BpfProgram};

/// What the running kernel says of itself. To find it takes some milliseconds, and it stays the same.
static TYPES: OnceLock<Result<KernelTypes, Failure>> = OnceLock::new();

/// Programs that record sets of events.
pub(crate) struct CpuPrograms {
    pub(crate) sets: Vec<EventSet>,
    tids: Vec<u32>,
    memories: Vec<(u32, BpfMemory)>,
    /// How many records each CPU wrote or would have written.
    written: Vec<u64>,
    began: ClockReading,
    ended: ClockReading,
    /// The programs run until these are dropped.
    _links: Vec<BpfLink>,
}

impl CpuPrograms {
    /// Attaches the programs of `sets` for the threads `tids`: all, or none. They record nothing yet.
    pub(crate) fn open(cpus: &[u32], tids: &[u32], sets: &[EventSet]) -> Result<Self, Failure> {
        in_first_pid_namespace()?;
        let types = TYPES.get_or_init(KernelTypes::read).as_ref().map_err(Clone::clone)?;
        let memory = |cpu: &u32| {
            let memory = BpfMemory::create(HEAD_WORDS + RECORDS * RECORD_WORDS)?;
            memory.words()[0].store(NOT_RECORDED, Ordering::Relaxed);
            Ok((*cpu, memory))
        };
        let memories = cpus.iter().map(memory).collect::<Result<Vec<_>, Failure>>()?;
        let attach = |program: CpuProgram| {
            BpfProgram::load(&program.tracepoint, &program.instructions, program.type_number, &[])?.attach()
        };
        let links =
            programs(sets, types, tids, &memories)?.into_iter().map(attach).collect::<Result<_, _>>()?;
        let now = ClockReading::now();
        Ok(Self {
            sets: sets.to_vec(),
            tids: tids.to_vec(),
            memories,
            written: Vec::new(),
            began: now,
            ended: now,
            _links: links,
        })
    }

    pub(crate) fn begin(&mut self) {
        self.began = ClockReading::now();
        for (_, memory) in &self.memories {
            // The beginning of an interrupt may have been counted before its end could be.
            memory.words()[SERVED_WORD].store(0, Ordering::Relaxed);
            memory.words()[0].store(0, Ordering::Release);
        }
    }

    pub(crate) fn end(&mut self) {
        let written =
            self.memories.iter().map(|(_, memory)| memory.words()[0].swap(NOT_RECORDED, Ordering::AcqRel));
        self.written = written.collect();
        self.ended = ClockReading::now();
    }

    /// Adds to `trace` what was recorded between `begin` and `end`.
    pub(crate) fn read(&self, trace: &mut CpuTrace) {
        for ((cpu, memory), written) in self.memories.iter().zip(&self.written) {
            // Never switched on: nothing was written.
            let written = if *written >= NOT_RECORDED { 0 } else { *written };
            let recorded = usize::try_from(written).unwrap_or(RECORDS).min(RECORDS);
            trace.lost += written - recorded as u64;
            for record in memory.words()[HEAD_WORDS..].chunks_exact(RECORD_WORDS).take(recorded) {
                let word = |at: usize| record[at].load(Ordering::Acquire);
                match CpuRecord::read([word(0), word(1), word(2), word(3)]) {
                    Some(CpuRecord::Event { at_ns, tid, what }) => {
                        let at_ns = by_raw(at_ns, self.began, self.ended);
                        trace.events.push(CpuEvent { at_ns, cpu: *cpu, tid, what });
                    }
                    Some(CpuRecord::Name { tid, name }) if !self.tids.contains(&tid) => {
                        trace.task_names.entry(tid).or_insert(name);
                    }
                    Some(CpuRecord::Name { .. }) | None => {}
                }
            }
        }
    }
}
