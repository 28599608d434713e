//! From the events of threads to calls on objects: which thread was in which call, for how long it slept in it, and to what
//! the descriptor referred then. It takes events in the order of time, and opens no probe.

mod effects;
mod held;
mod referents;
mod wake_ups;

use super::calls::{CallMeaning, meaning};
use super::described::DescribedFile;
use super::descriptors::{Descriptors, Referent};
use super::holders::{Holder, process_name};
use super::objects::Objects;
use super::raw::{RawCall, RawEvent, RawKind};
use super::record_by::RecordBy;
use super::thread::{Entered, Thread, ThreadTotals};
use model::communication::{
    BetweenCalls, Boundaries, CommunicatingProcess, Communication, CommunicationCall, CommunicationKind,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// More calls are not kept: some 300 MB.
pub(super) const MOST_CALLS: usize = 3_000_000;
/// More processes are not distinguished.
const MOST_PROCESSES: usize = 1 << 16;
/// What is said of calls of which that was never known.
const NEVER_FOUND: &str = "calls are in no flow: it could not be found out to what their descriptors refer";

/// What was assembled so far.
pub(super) struct Assembly {
    objects: Objects,
    by: RecordBy,
    from_ns: u64,
    processes: Vec<CommunicatingProcess>,
    /// The processes that are known by a number now, as indices.
    by_pid: HashMap<u32, u32>,
    /// Every number that a recorded process had.
    recorded: HashSet<u32>,
    /// The processes to which another has sent a signal that they have not taken.
    signalled: HashSet<u32>,
    tables: HashMap<u32, Descriptors>,
    /// What files are that the kernel tells of, by where it has them, and to what they refer.
    files: HashMap<u64, (DescribedFile, Referent)>,
    /// Words by process and address, for the mapping is not always told; `None` of private memory.
    words: HashMap<(u32, u64), Option<u32>>,
    threads: HashMap<u32, Thread>,
    calls: Vec<CommunicationCall>,
    /// Calls through descriptors of which it is not known yet to what they refer: a connection has no other side before it is accepted.
    pending: HashMap<Through, Vec<CommunicationCall>>,
    /// What is not in flows, and how often it was.
    aside: BTreeMap<String, u64>,
    closed: Option<Closed>,
}

/// Through what a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Through {
    /// A file, by where the kernel has it.
    File(u64),
    /// A descriptor of a process.
    Descriptor { pid: u32, fd: u32 },
}

/// What there was when the recording ended. Events may go on for a while.
struct Closed {
    until_ns: u64,
    calls: usize,
    processes: Vec<CommunicatingProcess>,
    aside: BTreeMap<String, u64>,
}

/// A call of the process `pid` that has ended.
struct EndedCall {
    pid: u32,
    meaning: CallMeaning,
    entered: Entered,
    value: i64,
    /// The same as it is kept, with nothing of what it moved yet.
    call: CommunicationCall,
}

impl Assembly {
    pub(super) fn new(by: RecordBy) -> Self {
        Self {
            objects: Objects::default(),
            by,
            from_ns: 0,
            processes: Vec::new(),
            by_pid: HashMap::new(),
            recorded: HashSet::new(),
            signalled: HashSet::new(),
            tables: HashMap::new(),
            files: HashMap::new(),
            words: HashMap::new(),
            threads: HashMap::new(),
            calls: Vec::new(),
            pending: HashMap::new(),
            aside: BTreeMap::new(),
            closed: None,
        }
    }

    /// Whether no more calls are kept.
    pub(super) fn is_full(&self) -> bool {
        self.calls() >= MOST_CALLS
    }

    /// How many calls are kept.
    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Something could not be recorded, so many times.
    pub(super) fn lost(&mut self, what: &str, count: u64) {
        self.count(what, Some(count));
    }

    /// Forgets what came before `at_ns`, when the recording begins.
    pub(super) fn begin(&mut self, at_ns: u64) {
        self.from_ns = at_ns;
        self.calls.clear();
        self.pending.clear();
        self.aside.clear();
        self.processes.iter_mut().for_each(CommunicatingProcess::forget);
    }

    /// The process `pid` is recorded. If it `is_stopped`, it is looked up what descriptors it has.
    pub(super) fn add_process(&mut self, pid: u32, is_stopped: bool) {
        self.new_process(pid, process_name(pid));
        if is_stopped && self.by != RecordBy::Bpf {
            self.look_up_stopped(pid);
        }
    }

    /// The thread `tid` is in the call in which it is found now, since `at_ns`.
    pub(super) fn add_thread(&mut self, tid: u32, at_ns: u64) {
        let Some(entered) = Entered::by(tid, at_ns) else { return };
        let thread = self.threads.entry(tid).or_default();
        thread.off_since = Some(at_ns);
        thread.entered = Some(entered);
    }

    fn new_process(&mut self, pid: u32, name: String) -> u32 {
        let index = u32::try_from(self.processes.len()).unwrap_or(u32::MAX);
        if self.processes.len() >= MOST_PROCESSES {
            let what = "there were more processes than are distinguished; the later ones count as the first";
            *self.aside.entry(what.to_owned()).or_default() += 1;
            self.by_pid.insert(pid, 0);
            return 0;
        }
        self.processes.push(CommunicatingProcess::new(name));
        self.by_pid.insert(pid, index);
        self.find_cpus(pid, pid);
        self.recorded.insert(pid);
        index
    }

    fn process(&mut self, pid: u32) -> u32 {
        match self.by_pid.get(&pid) {
            Some(index) => *index,
            None => self.new_process(pid, process_name(pid)),
        }
    }

    /// Takes the next event.
    pub(super) fn take(&mut self, event: RawEvent) {
        let RawEvent { at_ns, pid, tid, cpu, totals, what } = event;
        if let Some(totals) = totals {
            self.count_up(pid, tid, totals);
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            (thread.pid, thread.on_cpu) = (pid, cpu);
        }
        match what {
            RawKind::Enter { number, arguments } => self.enter(at_ns, pid, tid, (number, arguments)),
            RawKind::Exit { number, value } => self.exit(at_ns, pid, tid, number, value),
            RawKind::Call(call) => self.ended(at_ns, pid, tid, cpu, call),
            RawKind::Begins(entered) => self.begins_to_signal(pid, &entered),
            RawKind::File { file, is } => self.learn_file(pid, file, is),
            RawKind::Counted => {}
            RawKind::Off { preempted } => {
                let at = self.process(pid) as usize;
                let thread = self.threads.entry(tid).or_default();
                let sums = self.processes[at].thread(tid);
                if let Some(since) = thread.on_since.take() {
                    thread.cpu_ns += at_ns.saturating_sub(since);
                    sums.cpu_ns += at_ns.saturating_sub(since.max(self.from_ns));
                }
                thread.off_since = (!preempted).then_some(at_ns);
                sums.switches += 1;
            }
            RawKind::On => {
                let thread = self.threads.entry(tid).or_default();
                if let Some(since) = thread.off_since.take() {
                    thread.asleep_ns += at_ns.saturating_sub(since);
                }
                thread.on_since = Some(at_ns);
            }
            RawKind::Fork { pid: child, tid: thread } => self.fork(pid, child, thread),
            RawKind::Exec { name } => self.exec(pid, name),
            RawKind::End => self.end(at_ns, pid, tid),
        }
    }

    fn fork(&mut self, pid: u32, child: u32, thread: u32) {
        if child != pid {
            let parent = self.process(pid) as usize;
            let name = self.processes[parent].name.clone();
            self.new_process(child, name);
            if let Some(table) = self.tables.get(&pid).cloned() {
                self.tables.insert(child, table);
            }
        }
        self.threads.insert(thread, Thread::default());
    }

    fn exec(&mut self, pid: u32, name: String) {
        let process = self.process(pid) as usize;
        self.processes[process].name = name;
        self.find_cpus(pid, pid);
        if let Some(table) = self.tables.get_mut(&pid) {
            table.exec();
        }
        self.forget_words(pid);
    }

    fn end(&mut self, at_ns: u64, pid: u32, tid: u32) {
        if let Some(thread) = self.threads.remove(&tid)
            && let (Some(since), Some(process)) = (thread.on_since, self.by_pid.get(&pid))
        {
            let ran_ns = at_ns.saturating_sub(since.max(self.from_ns));
            self.processes[*process as usize].thread(tid).cpu_ns += ran_ns;
        }
        if pid == tid {
            self.tables.remove(&pid);
            self.forget_words(pid);
        }
    }

    fn enter(&mut self, at_ns: u64, pid: u32, tid: u32, (number, arguments): (u32, [u64; 4])) {
        let has_switches = self.has_switches();
        let thread = self.threads.entry(tid).or_default();
        if thread.on_since.is_none() {
            thread.on_since = Some(at_ns);
            thread.off_since = None;
        }
        let cpu_ns = thread.cpu(at_ns);
        if !has_switches {
            (thread.cpu_ns, thread.on_since) = (cpu_ns, None);
        }
        let asleep_ns = thread.asleep_ns;
        let entered = Entered { number, arguments, at_ns, cpu_ns, asleep_ns, files: [0; 2] };
        thread.entered = Some(entered);
        match meaning(number) {
            // It never returns: the thread goes on where the signal came.
            Some(CallMeaning::SignalReturn) => self.exit(at_ns, pid, tid, number, 0),
            Some(CallMeaning::Signal) => self.begins_to_signal(pid, &entered),
            _ => {}
        }
    }

    /// Whether CPU time and sleep are known.
    fn has_switches(&self) -> bool {
        self.by != RecordBy::Ptrace
    }

    fn exit(&mut self, at_ns: u64, pid: u32, tid: u32, number: u32, value: i64) {
        let has_switches = self.has_switches();
        let thread = self.threads.entry(tid).or_default();
        let entered = thread.entered.take().filter(|entered| entered.number == number);
        if thread.on_since.is_none() {
            thread.on_since = Some(at_ns);
        }
        let Some(entered) = entered else { return };
        if !has_switches {
            thread.asleep_ns += at_ns.saturating_sub(entered.at_ns);
        }
        let cpu = thread.on_cpu;
        let call = RawCall { entered, value, cpu_ns: thread.cpu(at_ns), asleep_ns: thread.asleep_ns };
        self.ended(at_ns, pid, tid, cpu, call);
    }

    /// What the kernel has counted of the thread `tid`.
    fn count_up(&mut self, pid: u32, tid: u32, totals: ThreadTotals) {
        let process = self.process(pid) as usize;
        let counted = &mut self.threads.entry(tid).or_default().counted;
        let sums = self.processes[process].thread(tid);
        sums.cpu_ns += totals.cpu_ns.saturating_sub(counted.cpu_ns);
        sums.switches += totals.switches.saturating_sub(counted.switches);
        *counted = totals;
    }

    fn ended(&mut self, at_ns: u64, pid: u32, tid: u32, cpu: Option<u32>, ended: RawCall) {
        let RawCall { entered, value, cpu_ns, asleep_ns } = ended;
        let Some(meaning) = meaning(entered.number) else { return };
        self.count_ended(pid, tid);
        let call = CommunicationCall {
            process: self.process(pid),
            tid,
            kind: CommunicationKind::Wait,
            object: None,
            from_ns: entered.at_ns,
            until_ns: at_ns,
            cpu,
            asleep_ns: asleep_ns.saturating_sub(entered.asleep_ns),
            cpu_from_ns: entered.cpu_ns,
            cpu_until_ns: cpu_ns,
            slept_from_ns: entered.asleep_ns,
            bytes: None,
            asked: None,
        };
        self.apply(&EndedCall { pid, meaning, entered, value, call });
    }

    /// The same call of which it is known to what it refers. The other side of a pipe or a queue is what `kind` says.
    fn pass(
        &mut self,
        (object, side): (u32, Option<u8>),
        kind: CommunicationKind,
        bytes: Option<u64>,
        call: &CommunicationCall,
    ) {
        let object = (object, side.unwrap_or_else(|| u8::from(kind == CommunicationKind::Receive)));
        let is_empty_stream = bytes == Some(0) && self.objects.boundaries(object.0) == Boundaries::None;
        let is_end = bytes == Some(0) && kind == CommunicationKind::Receive;
        let bytes = bytes.filter(|_| !is_empty_stream && !is_end);
        self.keep(CommunicationCall { kind, object: Some(object), bytes, ..*call });
    }

    /// Keeps `call` if it moved something, or slept.
    fn keep(&mut self, call: CommunicationCall) {
        if (call.bytes.is_some() || call.asleep_ns > 0) && self.calls.len() < MOST_CALLS {
            self.calls.push(call);
        }
    }

    fn count(&mut self, what: &str, more: Option<u64>) {
        if let Some(more) = more.filter(|more| *more > 0) {
            *self.aside.entry(what.to_owned()).or_default() += more;
        }
    }

    /// The recording ends at `until_ns`.
    pub(super) fn close(&mut self, until_ns: u64) {
        if self.is_full() {
            self.count(&format!("the recording ended early, after {MOST_CALLS} calls"), Some(1));
        }
        self.look_up_running();
        let mut processes = self.processes.clone();
        for (tid, thread) in &self.threads {
            if let (Some(since), Some(process)) = (thread.on_since, self.by_pid.get(&thread.pid)) {
                processes[*process as usize].thread(*tid).cpu_ns +=
                    until_ns.saturating_sub(since.max(self.from_ns));
            }
        }
        self.closed =
            Some(Closed { until_ns, calls: self.calls.len(), processes, aside: self.aside.clone() });
    }

    /// Forgets calls that came after the end.
    pub(super) fn forget(&mut self) {
        if let Some(closed) = &self.closed {
            self.calls.truncate(closed.calls);
        }
    }

    /// What was recorded until the end, of calls with `between_calls` between them.
    pub(super) fn finish(mut self, between_calls: BetweenCalls) -> Communication {
        self.forget();
        let until_ns = match self.closed.take() {
            Some(closed) => {
                self.processes = closed.processes;
                self.aside = closed.aside;
                closed.until_ns
            }
            None => self.from_ns,
        };
        let pending = self.pending.values().map(|calls| calls.len() as u64).sum();
        self.count(NEVER_FOUND, Some(pending));
        self.calls.sort_by_key(|call| call.until_ns);
        let (outside, has_switches) = (self.outside(), self.has_switches());
        let aside = self.aside.into_iter().chain(std::mem::take(&mut self.objects.refused));
        let unseen = aside.map(|(what, count)| format!("{count} × {what}")).collect();
        let mut objects = self.objects.into_all();
        for ((object, side), process) in outside {
            objects[object as usize].outside[usize::from(side)] = Some(process);
        }
        Communication {
            from_ns: self.from_ns,
            until_ns,
            has_switches,
            between_calls,
            processes: self.processes,
            objects,
            calls: self.calls,
            unseen,
        }
    }

    /// The processes that were not recorded and hold the other side of what recorded ones used.
    fn outside(&mut self) -> Vec<((u32, u8), u32)> {
        let used: BTreeSet<(u32, u8)> =
            self.calls.iter().filter(|call| call.bytes.is_some()).filter_map(|call| call.object).collect();
        let missing: BTreeSet<(u32, u8)> = used
            .iter()
            .map(|(object, side)| (*object, 1 - side))
            .filter(|other| !used.contains(other))
            .collect();
        if missing.is_empty() {
            return Vec::new();
        }
        let recorded = &self.recorded;
        let searches = self.by == RecordBy::Bpf;
        let holders = self.objects.holders(&missing, searches, |pid| recorded.contains(&pid));
        let holders = holders.unwrap_or_else(|failure| {
            let what = format!("sides of pipes and sockets have no process that is known: {failure}");
            self.aside.insert(what, missing.len() as u64);
            Vec::new()
        });
        let mut known: BTreeMap<Holder, u32> = BTreeMap::new();
        let mut found = Vec::new();
        for (side, holder) in holders {
            let process = *known.entry(holder.clone()).or_insert_with(|| {
                self.processes.push(holder.process());
                u32::try_from(self.processes.len() - 1).unwrap_or(u32::MAX)
            });
            found.push((side, process));
        }
        found
    }
}
