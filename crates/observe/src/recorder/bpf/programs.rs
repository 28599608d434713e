//! The programs that follow threads in the kernel: which call a thread is in, its CPU time and its sleep so far, in a map; and a
//! record of each call when it has ended, and of each thread that is made, becomes another program or ends. A record that a
//! tracepoint makes by itself costs several times as much, and there would be two for a call and two for a sleep.
//!
//! A program gets what the kernel passes to the tracepoint, so that no record of the tracepoint's own is made.

use super::file_types::FileTypes;
use super::layout::{RecordKind, announced, file, record, thread};
use crate::btf::Btf;
use Register::{R0, R1, R2, R3, R4, R6, R7, R8, R9, Stack};
use Width::{Eight, Four};
use sys::Failure;
use sys::bpf::{BpfInstruction, BpfMap, BpfRing};
use sys::bpf_assembler::{Assembler, Condition, Helper, Label, Register, Width};

/// Where things lie on the stack, from its end: a key of four bytes, and a record, of which the longest is that of a file.
pub(super) const KEY: i16 = -4;
/// What is to be done with the call, while R7 is used for something else.
pub(super) const TO_DO: i16 = -8;
pub(super) const RECORD: i16 = -8 - file::BYTES;
/// A thread that is made. What files are looked up by lies in the same place: no program does both.
const THREAD: i16 = RECORD - thread::BYTES;
/// `BPF_RB_NO_WAKEUP`: who reads the records comes by itself.
const NO_WAKEUP: i32 = 1;
/// `CLONE_THREAD`.
const CLONE_THREAD: i32 = 0x1_0000;
/// The bits of `prev_state` that say that a thread sleeps, stops or ends.
const NOT_RUNNABLE: i32 = 0xff;
/// `FUTEX_PRIVATE_FLAG`.
const FUTEX_PRIVATE: i32 = 128;

/// The tracepoint of what sockets send.
const SENDS: &str = "sock_send_length";

/// What the programs share with each other and with us.
#[derive(Debug)]
pub(super) struct Maps {
    /// The recorded threads, by their numbers.
    pub(super) threads: BpfMap,
    /// The files that were told of, by where the kernel has them: which those are, and when they were.
    pub(super) files: BpfMap,
    /// What is to be done with a call, by its number: flags of [`announced`].
    pub(super) calls: BpfMap,
    /// How many records found no room, and how many threads did not.
    pub(super) lost: BpfMap,
    /// How often recorded threads were switched that have ended.
    pub(super) switches: BpfMap,
    /// How often recorded threads have sent something through a socket.
    pub(super) sends: BpfMap,
    /// The records.
    pub(super) ring: BpfRing,
}

/// A tracepoint, and the program for it.
pub(super) struct TracepointProgram {
    pub(super) tracepoint: &'static str,
    /// The tracepoint's type.
    pub(super) type_number: u32,
    pub(super) instructions: Vec<BpfInstruction>,
    /// Where functions of it begin.
    pub(super) functions: Vec<usize>,
    /// Whether it runs only while calls are recorded: the others go on following threads and counting what they send.
    pub(super) of_calls: bool,
}

/// All programs, for this kernel.
pub(super) fn programs(maps: &Maps) -> Result<Vec<TracepointProgram>, Failure> {
    let types = KernelTypes::read()?;
    let calls = ["sys_enter", "sys_exit", "sched_switch"];
    let lives = ["task_newtask", "sched_process_exec", "sched_process_exit"];
    let all = calls.map(|name| (name, true)).into_iter().chain(lives.map(|name| (name, false)));
    let program = |(tracepoint, of_calls): (&'static str, bool)| {
        let mut writer = Writer { code: Assembler::default(), maps, types: &types, end: None, mapping: None };
        match tracepoint {
            "sys_enter" => writer.call_begins(),
            "sys_exit" => writer.call_ends(),
            "sched_switch" => writer.cpu_changes(),
            "task_newtask" => writer.thread_is_made(),
            "sched_process_exec" => writer.program_changes(),
            SENDS => writer.counts_what_is_sent(),
            _ => writer.thread_ends(),
        }
        let type_number = types.btf.tracepoint(tracepoint).ok_or_else(|| unknown(tracepoint))?;
        let (instructions, functions) = writer.finish();
        Ok(TracepointProgram { tracepoint, type_number, instructions, functions, of_calls })
    };
    let mut programs = all.map(program).collect::<Result<Vec<_>, Failure>>()?;
    // Kernels before 6.3 have none for what sockets send.
    programs.extend(program((SENDS, false)).ok());
    Ok(programs)
}

/// What the kernel says of itself, as far as programs need it.
pub(super) struct KernelTypes {
    pub(super) btf: Btf,
    /// The number of a thread.
    pid: i16,
    /// How often it was given a CPU.
    switches: i16,
    /// The number of a call, and its four first arguments.
    call: i16,
    arguments: [i16; 4],
    pub(super) files: FileTypes,
}

impl KernelTypes {
    pub(super) fn read() -> Result<Self, Failure> {
        let btf = Btf::read(&[&["pt_regs", "sched_info"], FileTypes::STRUCTURES].concat())?;
        let of_task = btf.member("task_struct", "sched_info").zip(btf.member("sched_info", "pcount"));
        Ok(Self {
            pid: btf.member("task_struct", "pid").ok_or_else(|| unknown("the number of a thread"))?,
            switches: of_task
                .map(|(from, at)| from + at)
                .ok_or_else(|| unknown("the switches of a thread"))?,
            call: btf.number_of_call().ok_or_else(|| unknown("the number of a call"))?,
            arguments: btf.arguments_of_call().ok_or_else(|| unknown("the arguments of a call"))?,
            files: FileTypes::from_btf(&btf).ok_or_else(|| unknown("files, pipes and sockets"))?,
            btf,
        })
    }
}

pub(super) fn unknown(what: &str) -> Failure {
    let answer = format!("this kernel does not describe {what}");
    Failure::new("write", "programs for its tracepoints", answer, "use --by tracepoints")
}

/// Writes one program. R6 is what the tracepoint was passed, R7 what is to be done with the call, R8 the thread, R9 the time.
pub(super) struct Writer<'a> {
    pub(super) code: Assembler,
    pub(super) maps: &'a Maps,
    pub(super) types: &'a KernelTypes,
    /// Where the program ends.
    end: Option<Label>,
    /// A function that is told of a mapping, if the program has one.
    pub(super) mapping: Option<Label>,
}

impl Writer<'_> {
    /// `sys_enter(registers, number)`: notes which call the thread is in, since when.
    fn call_begins(&mut self) {
        const REGISTERS: i16 = 0;
        const NUMBER: i16 = 8;
        let [_, second, ..] = self.types.arguments;
        let end = self.begin();
        self.code.load(Eight, R1, R6, NUMBER);
        self.what_to_do_with_the_call(end);
        self.current_thread(end);
        self.time();
        self.it_runs();
        let code = &mut self.code;
        let counts = code.label();
        // What threads of one process do among themselves is nothing that processes do.
        code.jump_if(R7, Condition::AnyOf, announced::FUTEX, counts);
        let noted = code.label();
        code.jump(noted);
        code.put(counts);
        code.store(Eight, R8, thread::CALL, thread::NO_CALL);
        code.load(Eight, R1, R6, REGISTERS);
        code.load(Eight, R1, R1, second);
        code.jump_if(R1, Condition::AnyOf, FUTEX_PRIVATE, end);
        code.put(noted);
        code.load(Eight, R1, R6, NUMBER);
        code.store(Eight, R8, thread::CALL, R1);
        code.store(Eight, R8, thread::ENTERED, R9);
        self.cpu_time(R1);
        let code = &mut self.code;
        code.store(Eight, R8, thread::ENTERED_CPU, R1);
        code.load(Eight, R1, R8, thread::ASLEEP);
        code.store(Eight, R8, thread::ENTERED_ASLEEP, R1);
        code.load(Eight, R2, R6, REGISTERS);
        for (from, to) in self.types.arguments.into_iter().zip((thread::ARGUMENTS..).step_by(8)) {
            code.load(Eight, R1, R2, from);
            code.store(Eight, R8, to, R1);
        }
        let is_announced = code.label();
        let never_returns = code.label();
        code.jump_if(R7, Condition::AnyOf, announced::AT_ENTRY, is_announced);
        code.jump_if(R7, Condition::AnyOf, announced::NEVER_RETURNS, never_returns);
        code.jump(end);
        code.put(is_announced);
        self.files_of_call(None);
        self.record_of_call(RecordKind::Begins, 0);
        self.code.jump(end);
        self.code.put(never_returns);
        self.no_files();
        self.record_of_call(RecordKind::Call, 0);
        self.code.store(Eight, R8, thread::CALL, thread::NO_CALL);
    }

    /// `sys_exit(registers, returned)`: tells of the call that ended, if it did or waited for anything.
    fn call_ends(&mut self) {
        const REGISTERS: i16 = 0;
        const RETURNED: i16 = 8;
        let end = self.begin();
        self.number_of_call(REGISTERS);
        self.what_to_do_with_the_call(end);
        self.current_thread(end);
        self.number_of_call(REGISTERS);
        let code = &mut self.code;
        let (wanted, has_ended) = (code.label(), code.label());
        code.load(Eight, R2, R8, thread::CALL);
        code.jump_if(R1, Condition::NotEqual, R2, end);
        code.load(Eight, R1, R8, thread::ASLEEP);
        code.load(Eight, R2, R8, thread::ENTERED_ASLEEP);
        code.jump_if(R1, Condition::NotEqual, R2, wanted);
        code.jump_if(R7, Condition::AnyOf, announced::IF_IT_SLEPT, has_ended);
        let may_have_failed = code.label();
        code.jump_if(R7, Condition::AnyOf, announced::IF_IT_SUCCEEDED, may_have_failed);
        code.jump(wanted);
        code.put(may_have_failed);
        code.load(Eight, R1, R6, RETURNED);
        code.jump_if(R1, Condition::SignedLess, 0, has_ended);
        code.put(wanted);
        self.time();
        self.it_runs();
        self.files_of_call(Some(RETURNED));
        self.code.jump_if(R7, Condition::AnyOf, announced::SILENT, has_ended);
        self.code.load(Eight, R1, R6, RETURNED);
        self.code.store(Eight, Stack, RECORD + record::VALUE, R1);
        self.what_was_called();
        self.record(RecordKind::Call, record::BYTES);
        self.code.put(has_ended);
        self.code.store(Eight, R8, thread::CALL, thread::NO_CALL);
    }

    /// `sched_switch(preempted, previous, next, state of the previous)`: the CPU time of the one, and the sleep of the other.
    fn cpu_changes(&mut self) {
        const PREVIOUS: i16 = 8;
        const NEXT: i16 = 16;
        const STATE: i16 = 24;
        let end = self.begin();
        self.time();
        let code = &mut self.code;
        let other = code.label();
        code.load(Eight, R1, R6, PREVIOUS);
        code.load(Four, R1, R1, self.types.pid);
        code.jump_if(R1, Condition::Equal, 0, other);
        code.store(Four, Stack, KEY, R1);
        self.find_thread(other);
        let code = &mut self.code;
        let (had_run, sleeps, counted) = (code.label(), code.label(), code.label());
        code.load(Eight, R1, R8, thread::ON_SINCE);
        code.jump_if(R1, Condition::NotEqual, 0, had_run);
        code.jump(counted);
        code.put(had_run);
        self.cpu_time(R1);
        let code = &mut self.code;
        code.store(Eight, R8, thread::CPU, R1);
        code.store(Eight, R8, thread::ON_SINCE, 0);
        code.put(counted);
        code.load(Eight, R1, R8, thread::SWITCHES);
        code.add(R1, 1);
        code.store(Eight, R8, thread::SWITCHES, R1);
        code.store(Eight, R8, thread::OFF_SINCE, 0);
        code.load(Eight, R1, R6, STATE);
        code.and(R1, NOT_RUNNABLE);
        code.jump_if(R1, Condition::NotEqual, 0, sleeps);
        code.jump(other);
        code.put(sleeps);
        code.store(Eight, R8, thread::OFF_SINCE, R9);
        code.put(other);
        code.load(Eight, R1, R6, NEXT);
        code.load(Four, R1, R1, self.types.pid);
        code.jump_if(R1, Condition::Equal, 0, end);
        code.store(Four, Stack, KEY, R1);
        self.find_thread(end);
        let code = &mut self.code;
        let awake = code.label();
        code.store(Eight, R8, thread::ON_SINCE, R9);
        code.load(Eight, R1, R8, thread::OFF_SINCE);
        code.jump_if(R1, Condition::Equal, 0, awake);
        code.store(Eight, R8, thread::OFF_SINCE, 0);
        code.load(Eight, R2, R8, thread::ASLEEP);
        code.add(R2, R9);
        code.subtract(R2, R1);
        code.store(Eight, R8, thread::ASLEEP, R2);
        code.put(awake);
    }

    /// `task_newtask(task, flags)`, in the thread that makes another: the other is recorded too.
    fn thread_is_made(&mut self) {
        const TASK: i16 = 0;
        const FLAGS: i16 = 8;
        let end = self.begin();
        self.current_thread(end);
        self.time();
        let code = &mut self.code;
        for at in (0..thread::BYTES).step_by(8) {
            code.store(Eight, Stack, THREAD + at, 0);
        }
        code.store(Eight, Stack, THREAD + thread::CALL, thread::NO_CALL);
        code.load(Eight, R1, R6, TASK);
        code.load(Four, R7, R1, self.types.pid);
        code.store(Four, Stack, RECORD + record::MADE_TID, R7);
        let is_process = code.label();
        let known = code.label();
        code.load(Eight, R1, R6, FLAGS);
        code.jump_if(R1, Condition::AnyOf, CLONE_THREAD, is_process);
        code.jump(known);
        code.put(is_process);
        code.load(Four, R7, R8, thread::PID);
        code.put(known);
        code.store(Four, Stack, THREAD + thread::PID, R7);
        code.store(Four, Stack, RECORD + record::MADE_PID, R7);
        self.record(RecordKind::Fork, record::MADE_BYTES);
        let code = &mut self.code;
        code.load(Four, R1, Stack, RECORD + record::MADE_TID);
        code.store(Four, Stack, KEY, R1);
        code.set(R3, Stack);
        code.add(R3, i32::from(THREAD));
        self.keep_thread();
    }

    /// `sched_process_exec(task, number before, …)`: the thread has the number of its process now, whatever it had before.
    fn program_changes(&mut self) {
        const TASK: i16 = 0;
        const BEFORE: i16 = 8;
        let end = self.begin();
        let code = &mut self.code;
        code.load(Eight, R1, R6, BEFORE);
        code.store(Four, Stack, KEY, R1);
        self.find_thread(end);
        self.time();
        let code = &mut self.code;
        code.set(R1, Stack);
        code.add(R1, i32::from(RECORD + record::NAME));
        code.set(R2, i32::from(record::NAME_BYTES));
        code.call(Helper::Name);
        self.record(RecordKind::Exec, record::NAME + record::NAME_BYTES);
        let code = &mut self.code;
        // The key is a number of four bytes.
        code.load(Four, R1, Stack, KEY);
        code.load(Eight, R2, R6, TASK);
        code.load(Four, R2, R2, self.types.pid);
        code.jump_if(R1, Condition::Equal, R2, end);
        code.store(Four, Stack, KEY, R2);
        code.set(R3, R8);
        self.keep_thread();
        let code = &mut self.code;
        code.load(Eight, R1, R6, BEFORE);
        code.store(Four, Stack, KEY, R1);
        self.forget_thread();
    }

    /// `sched_process_exit(task, …)`: the thread is no more, and nobody else can tell any more how often it was switched.
    fn thread_ends(&mut self) {
        const TASK: i16 = 0;
        let end = self.begin();
        self.code.load(Eight, R1, R6, TASK);
        self.code.load(Four, R1, R1, self.types.pid);
        self.code.store(Four, Stack, KEY, R1);
        self.find_thread(end);
        self.time();
        self.record(RecordKind::End, record::HEAD_BYTES);
        self.forget_thread();
        self.code.store(Four, Stack, KEY, 0);
        self.find(&self.maps.switches, end);
        let code = &mut self.code;
        code.load(Eight, R1, R6, TASK);
        code.load(Eight, R2, R1, self.types.switches);
        code.atomic_add(R0, 0, R2);
    }

    /// `sock_send_length(socket, returned, flags)`, in the thread that sends.
    fn counts_what_is_sent(&mut self) {
        let end = self.begin();
        self.current_thread(end);
        self.code.store(Four, Stack, KEY, 0);
        self.find(&self.maps.sends, end);
        self.code.set(R1, 1);
        self.code.atomic_add(R0, 0, R1);
    }

    fn begin(&mut self) -> Label {
        self.code.set(R6, R1);
        let end = self.code.label();
        self.end = Some(end);
        end
    }

    fn finish(mut self) -> (Vec<BpfInstruction>, Vec<usize>) {
        if let Some(end) = self.end {
            self.code.put(end);
        }
        self.code.exit();
        self.function_of_mapping();
        self.code.finish()
    }

    /// R1 is the number of the call whose registers were passed.
    fn number_of_call(&mut self, registers: i16) {
        self.code.load(Eight, R1, R6, registers);
        self.code.load(Eight, R1, R1, self.types.call);
    }

    /// R7 is what the flags of the call are whose number R1 is. Most calls have none.
    fn what_to_do_with_the_call(&mut self, end: Label) {
        let code = &mut self.code;
        code.store(Four, Stack, KEY, R1);
        self.find(&self.maps.calls, end);
        self.code.load(Four, R7, R0, 0);
        self.code.jump_if(R7, Condition::Equal, 0, end);
    }

    /// R8 is the thread that runs; the program ends if it is not recorded.
    fn current_thread(&mut self, end: Label) {
        self.code.call(Helper::ProcessAndThread);
        self.code.store(Four, Stack, KEY, R0);
        self.find_thread(end);
    }

    /// R8 is the thread whose number is the key.
    fn find_thread(&mut self, absent: Label) {
        self.find(&self.maps.threads, absent);
        self.code.set(R8, R0);
    }

    /// R0 is the value of the key.
    pub(super) fn find(&mut self, map: &BpfMap, absent: Label) {
        let code = &mut self.code;
        code.refer(R1, map);
        code.set(R2, Stack);
        code.add(R2, i32::from(KEY));
        code.call(Helper::MapLookup);
        code.jump_if(R0, Condition::Equal, 0, absent);
    }

    /// The thread that R3 refers to is kept by the key.
    fn keep_thread(&mut self) {
        let code = &mut self.code;
        code.refer(R1, &self.maps.threads);
        code.set(R2, Stack);
        code.add(R2, i32::from(KEY));
        code.set(R4, 0);
        code.call(Helper::MapUpdate);
        self.count_unless_done(1);
    }

    fn forget_thread(&mut self) {
        let code = &mut self.code;
        code.refer(R1, &self.maps.threads);
        code.set(R2, Stack);
        code.add(R2, i32::from(KEY));
        code.call(Helper::MapDelete);
    }

    /// R9 is the time.
    fn time(&mut self) {
        self.code.call(Helper::Time);
        self.code.set(R9, R0);
    }

    /// The thread runs, though it may not be known since when.
    fn it_runs(&mut self) {
        let code = &mut self.code;
        let known = code.label();
        code.load(Eight, R1, R8, thread::ON_SINCE);
        code.jump_if(R1, Condition::NotEqual, 0, known);
        code.store(Eight, R8, thread::ON_SINCE, R9);
        code.store(Eight, R8, thread::OFF_SINCE, 0);
        code.put(known);
    }

    /// `to` is the CPU time of the thread until now. R2 is lost.
    fn cpu_time(&mut self, to: Register) {
        let code = &mut self.code;
        let known = code.label();
        code.load(Eight, to, R8, thread::CPU);
        code.load(Eight, R2, R8, thread::ON_SINCE);
        code.jump_if(R2, Condition::Equal, 0, known);
        code.add(to, R9);
        code.subtract(to, R2);
        code.put(known);
    }

    fn record_of_call(&mut self, kind: RecordKind, value: i32) {
        self.code.store(Eight, Stack, RECORD + record::VALUE, value);
        self.what_was_called();
        self.record(kind, record::BYTES);
    }

    /// The call and its arguments go into the record.
    fn what_was_called(&mut self) {
        let code = &mut self.code;
        for (from, to) in (thread::ENTERED..thread::BYTES).step_by(8).zip((record::ENTERED..).step_by(8)) {
            code.load(Eight, R1, R8, from);
            code.store(Eight, Stack, RECORD + to, R1);
        }
        self.what_files_it_used();
    }

    /// Fills in what all records say, and hands the record over.
    pub(super) fn record(&mut self, kind: RecordKind, bytes: i16) {
        let code = &mut self.code;
        code.store(Four, Stack, RECORD + record::KIND, kind as i32);
        code.call(Helper::Cpu);
        code.store(Four, Stack, RECORD + record::CPU, R0);
        code.load(Four, R1, R8, thread::PID);
        code.store(Four, Stack, RECORD + record::PID, R1);
        code.load(Four, R1, Stack, KEY);
        code.store(Four, Stack, RECORD + record::TID, R1);
        code.store(Eight, Stack, RECORD + record::AT, R9);
        self.cpu_time(R1);
        let code = &mut self.code;
        code.store(Eight, Stack, RECORD + record::CPU_TIME, R1);
        for (from, to) in [(thread::ASLEEP, record::ASLEEP), (thread::SWITCHES, record::SWITCHES)] {
            code.load(Eight, R1, R8, from);
            code.store(Eight, Stack, RECORD + to, R1);
        }
        code.refer(R1, &self.maps.ring);
        code.set(R2, Stack);
        code.add(R2, i32::from(RECORD));
        code.set(R3, i32::from(bytes));
        code.set(R4, NO_WAKEUP);
        code.call(Helper::RingOutput);
        self.count_unless_done(0);
    }

    /// Counts what was lost if a helper did not do what it should, which is other than zero.
    fn count_unless_done(&mut self, which: i32) {
        let done = self.code.label();
        self.code.jump_if(R0, Condition::Equal, 0, done);
        // The key is wanted again.
        self.code.load(Four, R7, Stack, KEY);
        self.code.store(Four, Stack, KEY, which);
        self.find(&self.maps.lost, done);
        self.code.set(R1, 1);
        self.code.atomic_add(R0, 0, R1);
        self.code.store(Four, Stack, KEY, R7);
        self.code.put(done);
    }
}
