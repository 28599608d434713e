//! The programs that record the events of CPUs: one for each tracepoint, which writes one small record into the memory of its CPU. It
//! says what a record is. What loads the programs is in `cpu_bpf`.
//!
//! A program gets what the kernel passes to the tracepoint, so that no record of the tracepoint's own is made. The endpoints' threads are
//! numbers in the program.

use crate::btf::Btf;
use Register::{R0, R1, R2, R3, R6, R7, R8, R9, Stack};
use Width::{Eight, Four};
use model::observation::{CpuEventKind, EventSet};
use std::collections::BTreeMap;
use sys::Failure;
use sys::bpf::{BpfInstruction, BpfMemory, BpfProgram};
use sys::bpf_assembler::{Assembler, Condition, Helper, Label, Register, Width};

/// So many records have room on each CPU.
pub(crate) const RECORDS: usize = 1 << 16;
/// A record has four numbers: when, who and what, and two of which the kind says what they are.
pub(crate) const RECORD_WORDS: usize = 4;
/// Before them, on a cache line of its own, is how many records were written or would have been.
pub(crate) const HEAD_WORDS: usize = 8;
/// Behind it is how many interrupts are being served, in the bits of [`IN_INTERRUPT`], where only programs count that.
pub(crate) const SERVED_WORD: usize = 1;
const SERVED: i16 = SERVED_WORD as i16 * 8;
const ONE_SERVED: i32 = 0x1_0000;
/// What that is while nothing is to be recorded.
pub(crate) const NOT_RECORDED: u64 = 1 << 62;
/// How many threads' numbers a program may have in it: it compares one after the other.
const MOST_THREADS: usize = 64;
/// The interrupts between CPUs and of the local timer, which x86 does not report as `irq_handler`.
const VECTORS: [&str; 4] = ["local_timer", "reschedule", "call_function_single", "call_function"];
/// Others, which are not recorded, but may wake a thread.
const FURTHER_VECTORS: [&str; 2] = ["irq_work", "x86_platform_ipi"];
/// The bits of the count of what forbids preemption that say that an interrupt (`HARDIRQ_MASK`) or a softirq (`SOFTIRQ_OFFSET`) is
/// being served.
const IN_INTERRUPT: u64 = 0xf_0000 | 0x100;
/// What `cpu_idle` says of a CPU that ends to idle (`PWR_EVENT_EXIT`).
const IDLE_ENDS: u64 = u32::MAX as u64;
/// The structures of which members are read.
const STRUCTURES: [&str; 2] = ["task_struct", "pt_regs"];
/// Where things lie on the stack, from its end.
const PREEMPTION: i16 = -8;

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Enter,
    Exit,
    Switch,
    /// The name of the thread that the last switch went to.
    Name,
    Waking,
    InterruptIn,
    InterruptOut,
    SoftirqIn,
    SoftirqOut,
    Idle,
    PageFault,
    /// A fault of the kernel's, which is a thread's if it is at an address of user code.
    KernelPageFault,
    /// No record: an interrupt or a softirq is being served, or no more.
    Served,
    ServedNoMore,
}

/// Those of which there are records.
const KINDS: [Kind; 12] = [
    Kind::Enter,
    Kind::Exit,
    Kind::Switch,
    Kind::Name,
    Kind::Waking,
    Kind::InterruptIn,
    Kind::InterruptOut,
    Kind::SoftirqIn,
    Kind::SoftirqOut,
    Kind::Idle,
    Kind::PageFault,
    Kind::KernelPageFault,
];

impl Kind {
    fn is_of_endpoints(self) -> bool {
        matches!(self, Kind::Enter | Kind::Exit | Kind::Waking | Kind::PageFault | Kind::KernelPageFault)
    }
}

/// What the kernel says of itself, as far as programs need it.
#[derive(Debug)]
pub(crate) struct KernelTypes {
    btf: Btf,
    pid: i16,
    name: i16,
    call: i16,
    first_argument: i16,
    /// The variable in which each CPU counts what forbids preemption. Many kernels do not tell programs where it lies
    /// (`CONFIG_KALLSYMS_ALL`), and some have it elsewhere.
    preemption: Option<u32>,
}

impl KernelTypes {
    pub(crate) fn read() -> Result<Self, Failure> {
        let btf = Btf::read(&STRUCTURES)?;
        let member = |of, name: &str| btf.member(of, name).ok_or_else(|| unknown(name));
        let arguments = btf.arguments_of_call();
        Ok(Self {
            first_argument: arguments.ok_or_else(|| unknown("the arguments of a call"))?[0],
            pid: member("task_struct", "pid")?,
            name: member("task_struct", "comm")?,
            call: btf.number_of_call().ok_or_else(|| unknown("the number of a call"))?,
            preemption: btf.variable("__preempt_count").filter(|number| is_at_hand(&btf, *number)),
            btf,
        })
    }
}

/// Whether programs may read the variable of this number.
fn is_at_hand(btf: &Btf, variable: u32) -> bool {
    let mut code = Assembler::default();
    code.refer_to_variable(R1, variable);
    code.exit();
    let waking = btf.tracepoint("sched_waking").unwrap_or(0);
    BpfProgram::load("tried", &code.finish().0, waking, &[]).is_ok()
}

fn unknown(what: &str) -> Failure {
    let answer = format!("this kernel does not describe {what}");
    Failure::new("write", "programs for its tracepoints", answer, "none is needed: perf records serve")
}

/// A program, and the tracepoint for which it is.
pub(crate) struct CpuProgram {
    pub(crate) tracepoint: String,
    /// The tracepoint's type.
    pub(crate) type_number: u32,
    pub(crate) instructions: Vec<BpfInstruction>,
}

/// The programs for `sets`, of the threads `tids`, into the memory of each CPU. A tracepoint has one, whatever sets it is of: to take one
/// of two away, the kernel waits until no CPU can be in it any more, which takes longer than all else.
pub(crate) fn programs(
    sets: &[EventSet],
    types: &KernelTypes,
    tids: &[u32],
    memories: &[(u32, BpfMemory)],
) -> Result<Vec<CpuProgram>, Failure> {
    if tids.len() > MOST_THREADS {
        let answer = format!("the endpoints have {} threads", tids.len());
        return Err(Failure::new("write", "programs", answer, "none is needed: perf records serve"));
    }
    let mut by_tracepoint: BTreeMap<String, Vec<Kind>> = BTreeMap::new();
    for (tracepoint, kind) in sets.iter().flat_map(|set| wanted(*set, types)) {
        // Where there is no endpoint, nothing is an endpoint's.
        if !tids.is_empty() || !kind.is_of_endpoints() {
            by_tracepoint.entry(tracepoint).or_default().push(kind);
        }
    }
    let program = |(tracepoint, kinds): (String, Vec<Kind>)| {
        let type_number = types.btf.tracepoint(&tracepoint).ok_or_else(|| unknown(&tracepoint))?;
        let instructions = Writer::program(&kinds, types, tids, memories);
        Ok(CpuProgram { tracepoint, type_number, instructions })
    };
    by_tracepoint.into_iter().map(program).collect()
}

/// The tracepoints of `set`, and what is to be recorded of each.
fn wanted(set: EventSet, types: &KernelTypes) -> Vec<(String, Kind)> {
    let mut wanted: Vec<(String, Kind)> = Vec::new();
    let has = |name: &String| types.btf.tracepoint(name).is_some();
    let ends = |name: &&str| (format!("{name}_entry"), format!("{name}_exit"));
    let vectors = VECTORS.iter().map(ends).filter(|(entry, exit)| has(entry) && has(exit));
    let mut served: Vec<_> =
        FURTHER_VECTORS.iter().map(ends).filter(|(entry, exit)| has(entry) && has(exit)).collect();
    let mut want = |name: &str, kind| wanted.push((name.to_owned(), kind));
    match set {
        EventSet::Switches => want("sched_switch", Kind::Switch),
        EventSet::WakeUps => {
            if types.preemption.is_none() {
                served.extend(vectors);
                served.extend(["softirq", "irq_handler"].iter().map(ends));
                for (entry, exit) in served {
                    want(&entry, Kind::Served);
                    want(&exit, Kind::ServedNoMore);
                }
            }
            want("sched_waking", Kind::Waking);
        }
        EventSet::Calls => {
            want("sys_enter", Kind::Enter);
            want("sys_exit", Kind::Exit);
        }
        EventSet::Interrupts => {
            want("softirq_entry", Kind::SoftirqIn);
            want("softirq_exit", Kind::SoftirqOut);
            want("irq_handler_entry", Kind::InterruptIn);
            want("irq_handler_exit", Kind::InterruptOut);
            for (entry, exit) in vectors {
                want(&entry, Kind::InterruptIn);
                want(&exit, Kind::InterruptOut);
            }
        }
        EventSet::Idle => want("cpu_idle", Kind::Idle),
        EventSet::Faults => {
            want("page_fault_user", Kind::PageFault);
            want("page_fault_kernel", Kind::KernelPageFault);
        }
    }
    wanted
}

/// Writes one program. R6 is what the tracepoint was passed, R7 the thread, R8 the memory of the CPU, R9 the time.
struct Writer<'a> {
    code: Assembler,
    end: Label,
    tids: &'a [u32],
}

impl<'a> Writer<'a> {
    fn program(
        kinds: &[Kind],
        types: &KernelTypes,
        tids: &'a [u32],
        memories: &[(u32, BpfMemory)],
    ) -> Vec<BpfInstruction> {
        let mut code = Assembler::default();
        let end = code.label();
        code.set(R6, R1);
        code.call(Helper::ProcessAndThread);
        code.lower_half(R7, R0);
        let mut writer = Self { code, end, tids };
        // Only what is of all threads has a tracepoint in common with another kind.
        kinds.iter().for_each(|kind| writer.only_of_endpoints(*kind, types));
        writer.memory_of_this_cpu(memories);
        for kind in kinds {
            match kind {
                Kind::Served | Kind::ServedNoMore => writer.count_served(*kind),
                _ => writer.write(*kind, types),
            }
        }
        writer.code.put(end);
        writer.code.exit();
        writer.code.finish().0
    }

    fn write(&mut self, kind: Kind, types: &KernelTypes) {
        self.code.call(Helper::Time);
        self.code.set(R9, R0);
        self.record(kind);
        self.fields(kind, types);
        if kind == Kind::Switch {
            self.name(types);
        }
    }

    /// Counts what is being served. An interrupt that comes between leaves the count as it was; one that began before the programs were
    /// attached was not counted.
    fn count_served(&mut self, kind: Kind) {
        let code = &mut self.code;
        let none = code.label();
        code.load(Eight, R1, R8, SERVED);
        if kind == Kind::ServedNoMore {
            code.jump_if(R1, Condition::Equal, 0, none);
            code.subtract(R1, ONE_SERVED);
        } else {
            code.add(R1, ONE_SERVED);
        }
        code.store(Eight, R8, SERVED, R1);
        code.put(none);
    }

    /// Ends the program if no thread of the endpoints is concerned, where only they are wanted.
    fn only_of_endpoints(&mut self, kind: Kind, types: &KernelTypes) {
        let end = self.end;
        match kind {
            Kind::Enter | Kind::Exit | Kind::PageFault => self.only_if_it_is_an_endpoint(R7),
            Kind::KernelPageFault => {
                self.only_if_it_is_an_endpoint(R7);
                self.code.load(Eight, R1, R6, 0);
                self.code.jump_if(R1, Condition::SignedLess, 0, end);
            }
            Kind::Waking => {
                self.code.load(Eight, R1, R6, 0);
                self.code.load(Four, R1, R1, types.pid);
                self.only_if_it_is_an_endpoint(R1);
                if let Some(preemption) = types.preemption {
                    self.code.refer_to_variable(R1, preemption);
                    self.code.call(Helper::OfThisCpu);
                    self.code.load(Four, R1, R0, 0);
                    self.code.store(Eight, Stack, PREEMPTION, R1);
                }
            }
            _ => {}
        }
    }

    fn only_if_it_is_an_endpoint(&mut self, thread: Register) {
        let it_is = self.code.label();
        self.jump_if_endpoint(thread, it_is);
        self.code.jump(self.end);
        self.code.put(it_is);
    }

    fn jump_if_endpoint(&mut self, thread: Register, label: Label) {
        for tid in self.tids {
            self.code.jump_if(thread, Condition::Equal, tid.cast_signed(), label);
        }
    }

    /// R8 is the memory of the CPU on which the program runs; it ends on others.
    fn memory_of_this_cpu(&mut self, memories: &[(u32, BpfMemory)]) {
        let code = &mut self.code;
        code.call(Helper::Cpu);
        let found = code.label();
        for (cpu, memory) in memories {
            let (this, next) = (code.label(), code.label());
            code.jump_if(R0, Condition::Equal, cpu.cast_signed(), this);
            code.jump(next);
            code.put(this);
            code.refer_to_memory(R8, memory);
            code.jump(found);
            code.put(next);
        }
        code.jump(self.end);
        code.put(found);
    }

    /// R2 is a new record, R3 its place; the program ends if there is no room. An interrupt that comes between takes another one.
    fn record(&mut self, kind: Kind) {
        let code = &mut self.code;
        code.set(R1, 1);
        code.fetch_add(R8, 0, R1);
        code.jump_if(R1, Condition::AtLeast, RECORDS as i32, self.end);
        code.shift_left(R1, 5);
        code.set(R2, R8);
        code.add(R2, R1);
        code.store(Eight, R2, word(0), R9);
        code.store(Four, R2, word(1), R7);
        code.store(Four, R2, word(1) + 4, kind as i32);
    }

    /// What else the record says.
    fn fields(&mut self, kind: Kind, types: &KernelTypes) {
        let code = &mut self.code;
        let mut passed = |from: i16, to: i16| {
            code.load(Eight, R1, R6, 8 * from);
            code.store(Eight, R2, to, R1);
        };
        match kind {
            Kind::Enter => {
                passed(1, word(2));
                code.load(Eight, R1, R6, 0);
                code.load(Eight, R1, R1, types.first_argument);
                code.store(Eight, R2, word(3), R1);
            }
            Kind::SoftirqIn | Kind::Idle | Kind::PageFault | Kind::KernelPageFault => passed(0, word(2)),
            Kind::Exit => {
                passed(1, word(2));
                code.load(Eight, R1, R6, 0);
                code.load(Eight, R1, R1, types.call);
                code.store(Eight, R2, word(3), R1);
            }
            Kind::Switch => {
                code.load(Eight, R1, R6, 16);
                code.load(Four, R1, R1, types.pid);
                code.store(Four, R2, word(2), R1);
                code.set(R3, R1);
                // Whether it was preempted, and what it waits for if not.
                code.load(Eight, R1, R6, 0);
                code.store(Four, R2, word(2) + 4, R1);
                code.load(Eight, R1, R6, 24);
                code.store(Eight, R2, word(3), R1);
            }
            Kind::Waking => {
                code.load(Eight, R1, R6, 0);
                code.load(Four, R1, R1, types.pid);
                code.store(Eight, R2, word(2), R1);
                match types.preemption {
                    Some(_) => code.load(Eight, R1, Stack, PREEMPTION),
                    None => code.load(Eight, R1, R8, SERVED),
                }
                code.store(Eight, R2, word(3), R1);
            }
            Kind::Name
            | Kind::InterruptIn
            | Kind::InterruptOut
            | Kind::SoftirqOut
            | Kind::Served
            | Kind::ServedNoMore => {}
        }
    }

    /// Another record has the name of the thread R3 to which the CPU goes, unless that is an endpoint's or idles.
    fn name(&mut self, types: &KernelTypes) {
        let end = self.end;
        self.code.jump_if(R3, Condition::Equal, 0, end);
        self.jump_if_endpoint(R3, end);
        self.code.set(R7, R3);
        self.record(Kind::Name);
        let code = &mut self.code;
        code.load(Eight, R3, R6, 16);
        for half in 0..2 {
            code.load(Eight, R1, R3, types.name + 8 * half);
            code.store(Eight, R2, word(2 + half), R1);
        }
    }
}

/// Where a number of the record lies, from the memory's beginning, of the first record.
const fn word(of_record: i16) -> i16 {
    (HEAD_WORDS as i16 + of_record) * 8
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CpuRecord {
    Event { at_ns: u64, tid: u32, what: CpuEventKind },
    Name { tid: u32, name: String },
}

impl CpuRecord {
    /// Understands a record. What is not written yet is nothing.
    pub(crate) fn read([at_ns, who, first, second]: [u64; RECORD_WORDS]) -> Option<Self> {
        if at_ns == 0 {
            return None;
        }
        let (tid, kind) = halves(who);
        let what = match KINDS.get(kind as usize)? {
            Kind::Enter => CpuEventKind::Enter { number: first as u32, first: second },
            Kind::Exit => CpuEventKind::Exit { number: second as u32, value: first.cast_signed() },
            Kind::Switch => {
                let (next, preempted) = halves(first);
                let runs_on = preempted & 0xff != 0 || second as u32 == 0;
                CpuEventKind::Switch { from: tid, to: Some(next), preempted: tid != 0 && runs_on }
            }
            Kind::Waking => {
                CpuEventKind::Waking { woken: first as u32, by_interrupt: second & IN_INTERRUPT != 0 }
            }
            Kind::InterruptIn => CpuEventKind::InterruptIn,
            Kind::InterruptOut => CpuEventKind::InterruptOut,
            Kind::SoftirqIn => CpuEventKind::SoftirqIn { vector: first as u32 },
            Kind::SoftirqOut => CpuEventKind::SoftirqOut,
            Kind::Idle if first & IDLE_ENDS == IDLE_ENDS => CpuEventKind::IdleOut,
            Kind::Idle => CpuEventKind::IdleIn,
            Kind::PageFault | Kind::KernelPageFault => CpuEventKind::PageFault { address: first },
            Kind::Name => {
                let bytes = [first.to_ne_bytes(), second.to_ne_bytes()].concat();
                let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
                return Some(Self::Name { tid, name: String::from_utf8_lossy(name).into_owned() });
            }
            Kind::Served | Kind::ServedNoMore => return None,
        };
        Some(Self::Event { at_ns, tid, what })
    }
}

/// Two numbers of four bytes as they lie in memory.
fn halves(word: u64) -> (u32, u32) {
    let bytes = word.to_ne_bytes();
    let half = |at: usize| bytes[at..].first_chunk().map_or(0, |half| u32::from_ne_bytes(*half));
    (half(0), half(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Kind, first: u64, second: u64) -> CpuEventKind {
        let halves = [7_u32.to_ne_bytes(), (kind as u32).to_ne_bytes()].concat();
        let who = u64::from_ne_bytes(*halves.first_chunk().unwrap());
        match CpuRecord::read([9, who, first, second]) {
            Some(CpuRecord::Event { at_ns: 9, tid: 7, what }) => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn kinds_are_listed_in_their_order() {
        assert!(KINDS.iter().enumerate().all(|(at, kind)| *kind as usize == at));
    }

    #[test]
    fn records_say_what_the_tracepoint_was_passed() {
        let negative = -11_i64;
        assert_eq!(read(Kind::Enter, 1, 5), CpuEventKind::Enter { number: 1, first: 5 });
        let exit = CpuEventKind::Exit { number: 1, value: negative };
        assert_eq!(read(Kind::Exit, negative.cast_unsigned(), 1), exit);
        let woken = |by_interrupt| CpuEventKind::Waking { woken: 5, by_interrupt };
        assert_eq!(read(Kind::Waking, 5, 0x8000_0001), woken(false));
        assert_eq!(read(Kind::Waking, 5, 0x8000_0200), woken(false), "softirqs are only forbidden");
        assert_eq!(read(Kind::Waking, 5, 0x8000_0100), woken(true));
        assert_eq!(read(Kind::Waking, 5, 0x8001_0000), woken(true));
        assert_eq!(read(Kind::Idle, IDLE_ENDS, 0), CpuEventKind::IdleOut);
        assert_eq!(read(Kind::Idle, 1, 0), CpuEventKind::IdleIn);
        assert_eq!(CpuRecord::read([0; 4]), None);
    }
}
