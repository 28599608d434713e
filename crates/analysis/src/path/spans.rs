//! What each CPU did from moment to moment: the events of a trace as spans, each with what ran in it.
//!
//! Any sequence of events gives spans that follow each other on each CPU and do not overlap; whether they make sense is not
//! asked here.

use super::segment::{EventCounts, SegmentKind, place_of};
use super::service::{Service, service};
use model::endpoint::EndpointRole;
use model::observation::{CpuEvent, CpuEventKind, CpuTrace, EventSet};
use std::collections::{BTreeMap, HashMap};

/// The thread of a CPU that idles.
pub(super) const IDLE: u32 = 0;
/// What a call returns that would have to wait (EAGAIN).
const AGAIN: i64 = -11;

/// A stretch of time on one CPU in which one thread ran one kind of code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    pub(super) cpu: u32,
    pub(super) tid: u32,
    /// What ran. Of an idle CPU: [`SegmentKind::IdleExit`] while it idles, [`SegmentKind::IdleToSwitch`] after it.
    pub(super) kind: SegmentKind,
    pub(super) call: Option<u32>,
    /// The events at its beginning.
    pub(super) events: EventCounts,
    /// At its end the thread lost the CPU although it could run.
    pub(super) preempted: bool,
    /// The thread of the client that the server of several serves in it.
    pub(super) serves: Option<u32>,
}

/// A waking of a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waking {
    pub(super) at_ns: u64,
    pub(super) cpu: u32,
    pub(super) by: u32,
}

/// A trace as spans.
pub(super) struct Spans<'a> {
    pub(super) trace: &'a CpuTrace,
    all: Vec<Span>,
    by_cpu: HashMap<u32, Vec<usize>>,
    by_thread: HashMap<u32, Vec<usize>>,
    wakings: HashMap<u32, Vec<Waking>>,
}

impl<'a> Spans<'a> {
    pub(super) fn from_trace(trace: &'a CpuTrace) -> Self {
        let mut reader = Reader::new(trace);
        trace.events.iter().for_each(|event| reader.take(event));
        let (all, wakings) = reader.finish(trace.iteration_ends_ns.last().copied().unwrap_or(0));
        let (mut by_cpu, mut by_thread) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for (at, span) in all.iter().enumerate() {
            by_cpu.entry(span.cpu).or_default().push(at);
            by_thread.entry(span.tid).or_default().push(at);
        }
        // Where the clocks of two CPUs differ, a thread seems to run on both, and the span that ends first need not have begun first.
        by_thread.values_mut().for_each(|of| of.sort_by_key(|at| all[*at].from_ns));
        Self { trace, all, by_cpu, by_thread, wakings }
    }

    /// The endpoint that the thread `tid` belongs to.
    pub(super) fn role(&self, tid: u32) -> Option<EndpointRole> {
        role(self.trace, tid)
    }

    /// Whether the set of events was recorded.
    pub(super) fn has(&self, set: EventSet) -> bool {
        self.trace.sets.contains(&set)
    }

    /// The last span of the thread that begins before `at_ns`, and the one after it.
    pub(super) fn of_thread(&self, tid: u32, at_ns: u64) -> (Option<&Span>, Option<&Span>) {
        self.before(self.by_thread.get(&tid), at_ns)
    }

    /// The last span of the CPU that begins before `at_ns`.
    pub(super) fn on_cpu(&self, cpu: u32, at_ns: u64) -> Option<&Span> {
        self.before(self.by_cpu.get(&cpu), at_ns).0
    }

    fn before(&self, of: Option<&Vec<usize>>, at_ns: u64) -> (Option<&Span>, Option<&Span>) {
        let Some(of) = of else { return (None, None) };
        let next = of.partition_point(|at| self.all[*at].from_ns < at_ns);
        let span = |at: usize| of.get(at).map(|at| &self.all[*at]);
        (next.checked_sub(1).and_then(span), span(next))
    }

    /// The spans of the thread that begin at `from_ns` and later.
    pub(super) fn of_thread_from(&self, tid: u32, from_ns: u64) -> impl Iterator<Item = &Span> {
        let own_spans = self.by_thread.get(&tid).map_or(&[][..], Vec::as_slice);
        let first = own_spans.partition_point(|at| self.all[*at].from_ns < from_ns);
        own_spans[first..].iter().map(|at| &self.all[*at])
    }

    /// The last span of the thread that begins before `at_ns` and that `is_meant` takes.
    pub(super) fn last_of_thread(
        &self,
        tid: u32,
        at_ns: u64,
        is_meant: impl Fn(&Span) -> bool,
    ) -> Option<&Span> {
        let own_spans = self.by_thread.get(&tid)?;
        let next = own_spans.partition_point(|at| self.all[*at].from_ns < at_ns);
        own_spans[..next].iter().rev().map(|at| &self.all[*at]).find(|span| is_meant(span))
    }

    /// The first waking of the thread from `from_ns` to `until_ns`.
    pub(super) fn waking(&self, tid: u32, from_ns: u64, until_ns: u64) -> Option<Waking> {
        let own_wakings = self.wakings.get(&tid)?;
        let first = own_wakings.partition_point(|waking| waking.at_ns < from_ns);
        own_wakings.get(first).copied().filter(|waking| waking.at_ns <= until_ns)
    }
}

/// The endpoint of `trace` that the thread `tid` belongs to.
fn role(trace: &CpuTrace, tid: u32) -> Option<EndpointRole> {
    if trace.client_tids.contains(&tid) {
        return Some(EndpointRole::Client);
    }
    trace.server_tids.contains(&tid).then_some(EndpointRole::Server)
}

/// Who has a CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occupant {
    /// It is known from the next event.
    Unseen,
    /// Somebody else than the endpoint that left it, and nobody may know who.
    Somebody,
    Thread(u32),
}

struct CpuState {
    since_ns: u64,
    occupant: Occupant,
    interrupts: Vec<SegmentKind>,
    idles: bool,
    /// Events that begin the next span.
    events: EventCounts,
}

/// How a stretch of a call begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Entered,
    Woke,
    CameBack,
}

/// What a thread is about.
struct ThreadState {
    /// The call that it is in.
    call: Option<u32>,
    stage: Stage,
    /// No call of it was recorded, neither its beginning nor how it ended.
    runs_unknown: bool,
    /// Its last call found nothing yet.
    polls: bool,
    faults: bool,
    /// Spans of the stage that goes on: what it is called is known at its end.
    open: Vec<usize>,
    /// Spans of user code since the last call.
    user: Vec<usize>,
    /// The last span that it ran in.
    last: Option<usize>,
    /// Of the server of several clients: whom it serves, by its thread.
    serves: Option<u32>,
}

struct Reader<'a> {
    trace: &'a CpuTrace,
    cpus: BTreeMap<u32, CpuState>,
    threads: HashMap<u32, ThreadState>,
    spans: Vec<Span>,
    wakings: HashMap<u32, Vec<Waking>>,
}

impl<'a> Reader<'a> {
    fn new(trace: &'a CpuTrace) -> Self {
        Self {
            trace,
            cpus: BTreeMap::new(),
            threads: first_states(trace),
            spans: Vec::new(),
            wakings: HashMap::new(),
        }
    }

    fn take(&mut self, event: &CpuEvent) {
        let at_ns = self.close(event);
        if let Some(cpu) = self.cpus.get_mut(&event.cpu) {
            cpu.events[place_of(event.what.set())] += 1;
        }
        match event.what {
            CpuEventKind::Enter { number, first } => self.enter(event.tid, number, first),
            CpuEventKind::Exit { value, .. } => self.exit(event.tid, value),
            CpuEventKind::Waking { woken, .. } => self.waking(event, woken, at_ns),
            CpuEventKind::Switch { from, to, preempted } => self.switch(event.cpu, from, to, preempted),
            CpuEventKind::On => self.occupy(event.cpu, Occupant::Thread(event.tid)),
            CpuEventKind::PageFault { .. } => self.thread(event.tid).faults = true,
            CpuEventKind::InterruptIn => self.interrupt(event.cpu, Some(SegmentKind::Interrupt)),
            CpuEventKind::SoftirqIn { vector } => {
                self.interrupt(event.cpu, Some(SegmentKind::Softirq { vector }));
            }
            CpuEventKind::InterruptOut | CpuEventKind::SoftirqOut => self.interrupt(event.cpu, None),
            CpuEventKind::IdleIn => self.idle(event.cpu, true),
            CpuEventKind::IdleOut => self.idle(event.cpu, false),
        }
    }

    /// Ends the span that `event` ends. Returns when: not before it began, whatever the trace says.
    fn close(&mut self, event: &CpuEvent) -> u64 {
        let ran = match event.what {
            CpuEventKind::Switch { from, .. } => Some(from),
            // It comes after the switch: who ran before is another.
            CpuEventKind::On => None,
            _ => Some(event.tid),
        };
        let cpu = self.cpus.entry(event.cpu).or_insert_with(|| CpuState {
            since_ns: self.trace.from_ns.min(event.at_ns),
            occupant: Occupant::Unseen,
            interrupts: Vec::new(),
            idles: true,
            events: EventCounts::default(),
        });
        let at_ns = event.at_ns.max(cpu.since_ns);
        if let (Occupant::Unseen, Some(tid)) = (cpu.occupant, ran) {
            cpu.occupant = Occupant::Thread(tid);
        }
        self.end_span(event.cpu, at_ns);
        let cpu = self.cpus.get_mut(&event.cpu);
        if let (Some(cpu), Some(tid)) = (cpu, ran) {
            // Where switches are not recorded, the next event tells who runs.
            cpu.occupant = Occupant::Thread(tid);
        }
        if !matches!(
            event.what,
            CpuEventKind::InterruptIn
                | CpuEventKind::InterruptOut
                | CpuEventKind::SoftirqIn { .. }
                | CpuEventKind::SoftirqOut
        ) && let Some(tid) = ran
        {
            self.thread(tid).faults = false;
        }
        at_ns
    }

    /// Ends the span of `cpu` at `at_ns`. An empty one leaves its events to the next.
    fn end_span(&mut self, cpu: u32, at_ns: u64) {
        let Some(state) = self.cpus.get_mut(&cpu) else { return };
        let from_ns = std::mem::replace(&mut state.since_ns, at_ns);
        let Occupant::Thread(tid) = state.occupant else { return };
        if from_ns >= at_ns {
            return;
        }
        let events = std::mem::take(&mut state.events);
        let (interrupt, idles) = (state.interrupts.last().copied(), state.idles);
        let at = self.spans.len();
        let thread = thread_of(&mut self.threads, tid);
        let own = thread.kind(tid, idles);
        let kind = interrupt.unwrap_or(own);
        if interrupt.is_none() {
            match own {
                SegmentKind::WholeCall => thread.open.push(at),
                SegmentKind::User => thread.user.push(at),
                _ => {}
            }
        }
        thread.last = Some(at);
        let call = if kind.is_in_call() { thread.call } else { None };
        let (until_ns, serves) = (at_ns, thread.serves);
        let preempted = false;
        self.spans.push(Span { from_ns, until_ns, cpu, tid, kind, call, events, preempted, serves });
    }

    fn thread(&mut self, tid: u32) -> &mut ThreadState {
        thread_of(&mut self.threads, tid)
    }

    /// What the stage that ends here is called.
    fn end_stage(&mut self, tid: u32, kind: SegmentKind) {
        for at in std::mem::take(&mut self.thread(tid).open) {
            self.spans[at].kind = kind;
        }
    }

    fn enter(&mut self, tid: u32, number: u32, first: u64) {
        let serves = match service(self.trace, tid, first) {
            Service::Of(client) => Some(client),
            Service::None => None,
            Service::AsBefore => self.thread(tid).serves,
        };
        let thread = thread_of(&mut self.threads, tid);
        thread.serves = serves;
        // The code before a call leads to it.
        thread.user.iter().for_each(|at| self.spans[*at].serves = serves);
        (thread.call, thread.stage, thread.runs_unknown) = (Some(number), Stage::Entered, false);
        thread.open.clear();
    }

    fn exit(&mut self, tid: u32, value: i64) {
        let kind = match self.thread(tid).stage {
            Stage::Entered if value == AGAIN => SegmentKind::Polling,
            Stage::Entered => SegmentKind::WholeCall,
            Stage::Woke => SegmentKind::AfterWaking,
            Stage::CameBack => SegmentKind::AfterSleep,
        };
        self.end_stage(tid, kind);
        let thread = self.thread(tid);
        (thread.call, thread.runs_unknown, thread.polls) = (None, false, kind == SegmentKind::Polling);
        let before = std::mem::take(&mut thread.user);
        if kind == SegmentKind::Polling {
            before.into_iter().for_each(|at| self.spans[at].kind = SegmentKind::Polling);
        }
    }

    fn waking(&mut self, event: &CpuEvent, woken: u32, at_ns: u64) {
        let waking = Waking { at_ns, cpu: event.cpu, by: event.tid };
        let own_wakings = self.wakings.entry(woken).or_default();
        // The order holds on each CPU alone where the trace is nonsense.
        let place = own_wakings.partition_point(|other| other.at_ns <= at_ns);
        own_wakings.insert(place, waking);
        if woken != event.tid && role(self.trace, woken).is_some() {
            self.end_stage(event.tid, SegmentKind::UntilWaking);
            self.thread(event.tid).stage = Stage::Woke;
        }
    }

    fn switch(&mut self, cpu: u32, from: u32, to: Option<u32>, preempted: bool) {
        if preempted {
            if let Some(last) = self.thread(from).last {
                self.spans[last].preempted = true;
            }
        } else {
            self.end_stage(from, SegmentKind::UntilSleep);
            self.thread(from).stage = Stage::CameBack;
        }
        self.occupy(cpu, to.map_or(Occupant::Somebody, Occupant::Thread));
    }

    fn occupy(&mut self, cpu: u32, occupant: Occupant) {
        if let Some(cpu) = self.cpus.get_mut(&cpu) {
            cpu.occupant = occupant;
            cpu.interrupts.clear();
            cpu.idles = true;
        }
    }

    fn interrupt(&mut self, cpu: u32, begins: Option<SegmentKind>) {
        if let Some(cpu) = self.cpus.get_mut(&cpu) {
            match begins {
                Some(kind) => cpu.interrupts.push(kind),
                None => drop(cpu.interrupts.pop()),
            }
        }
    }

    fn idle(&mut self, cpu: u32, idles: bool) {
        if let Some(cpu) = self.cpus.get_mut(&cpu) {
            cpu.idles = idles;
        }
    }

    fn finish(mut self, until_ns: u64) -> (Vec<Span>, HashMap<u32, Vec<Waking>>) {
        let cpus: Vec<u32> = self.cpus.keys().copied().collect();
        for cpu in cpus {
            let since_ns = self.cpus.get(&cpu).map_or(0, |cpu| cpu.since_ns);
            self.end_span(cpu, until_ns.max(since_ns));
        }
        (self.spans, self.wakings)
    }
}

impl ThreadState {
    /// What the thread's own code is until the end of its stage says better.
    fn kind(&self, tid: u32, idles: bool) -> SegmentKind {
        match () {
            () if tid == IDLE && idles => SegmentKind::IdleExit,
            () if tid == IDLE => SegmentKind::IdleToSwitch,
            () if self.faults => SegmentKind::PageFault,
            () if self.call.is_some() => SegmentKind::WholeCall,
            () if self.runs_unknown => SegmentKind::Running,
            () if self.polls => SegmentKind::Polling,
            () => SegmentKind::User,
        }
    }
}

fn thread_of(threads: &mut HashMap<u32, ThreadState>, tid: u32) -> &mut ThreadState {
    threads.entry(tid).or_insert(ThreadState {
        call: None,
        stage: Stage::Entered,
        runs_unknown: true,
        polls: false,
        faults: false,
        open: Vec::new(),
        user: Vec::new(),
        last: None,
        serves: None,
    })
}

/// What each thread is about when the trace begins. A call of which only the end was recorded it was in, and slept.
fn first_states(trace: &CpuTrace) -> HashMap<u32, ThreadState> {
    let mut threads = HashMap::new();
    for event in &trace.events {
        if let CpuEventKind::Enter { .. } | CpuEventKind::Exit { .. } = event.what {
            let state = thread_of(&mut threads, event.tid);
            if let (true, CpuEventKind::Exit { number, .. }) = (state.runs_unknown, event.what) {
                (state.call, state.stage) = (Some(number), Stage::CameBack);
            }
            state.runs_unknown = false;
        }
    }
    threads
}
