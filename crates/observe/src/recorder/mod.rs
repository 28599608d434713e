//! Recording which processes communicate, through what, and when: of a command that it starts, or of processes that run.
//!
//! The program goes on as if nobody had been there, while it is recorded, when the recording ends and when the recorder is killed: nothing
//! that it has open is held, nor its memory. What the events mean is not known here: `analysis::recording` makes a scenario of them.

mod assembly;
mod between_calls;
mod bpf;
mod calls;
mod clock;
mod cpus;
mod described;
mod descriptors;
mod holders;
mod objects;
pub mod privileged;
mod process_events;
mod raw;
mod record_by;
mod shared_memory;
mod socket_diagnostics;
mod socket_params;
pub mod starter;
mod stopped;
mod stops;
mod thread;
mod tracepoints;

use assembly::Assembly;
use between_calls::between_calls;
use bpf::BpfEvents;
use clock::{now_ns, since};
use cpus::online_cpus;
use model::communication::{BetweenCalls, Communication, RecordingStretch, progress};
use process_events::ProcessEvents;
use raw::{RawEvent, RawKind};
pub use record_by::RecordBy;
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;
use stops::Followed;
use sys::{Failure, OrFail};
use thread::ThreadId;
use tracepoints::TracepointEvents;

/// How long the recorder sleeps at most while events come.
const NAP: Duration = Duration::from_millis(20);
/// The share of the time after which recording is switched off and on at the latest, if the program still runs.
const RECORDED_SHARE: f64 = 0.6;
/// By how much the recording of calls may slow a program over the whole time. A tenth is what the recorder may cost in all: what it
/// does to begin, to read records and to make a scenario of them takes a busy host's CPUs too.
const MOST_SLOWDOWN: f64 = 0.04;
/// The part of that which the first, unbroken stretch may take, as far as is known beforehand.
const FIRST_PART: f64 = 0.5;
/// How long a stretch with or without recording is.
const STRETCH: Duration = Duration::from_millis(50);
/// How long what switching itself changes lasts, which is no part of a stretch.
const SWITCHING: Duration = Duration::from_millis(50);
/// With off and on in this order, what drifts evenly counts for both alike.
const ORDER: [bool; 4] = [false, true, true, false];
/// How often it is switched off, on, on and off in any case. Before that, the slowdown that is seen is chance to a great part: to stop because
/// it is large would keep large ones, and go on from small ones.
const LEAST_GROUPS: usize = 6;
/// How long processes that run are observed before their recording begins. What the recorder does first keeps a CPU busy, and two
/// processes that have a CPU each otherwise share the other one meanwhile, and for some 50 ms after it.
const SETTLING: Duration = Duration::from_millis(150);
/// Events of a moment are all there so long after it.
const ALL_THERE: Duration = Duration::from_millis(2);
/// What is said where the kernel does not tell which processes a process has made.
const CHILDREN_UNKNOWN: &str = "what these processes had started before is not recorded unless it is named: this kernel does not tell it \
                                (CONFIG_PROC_CHILDREN)";
/// More threads have too many events.
const MOST_THREADS: usize = 4096;

/// Who is recorded.
#[derive(Debug, Clone)]
pub enum RecorderTarget {
    /// A program that is started for it, and all that it makes.
    Command(Vec<OsString>),
    /// Processes, and all that they have made or make from then on.
    Processes(Vec<u32>),
}

/// What was recorded.
#[derive(Debug)]
pub struct RecorderOutcome {
    /// Who called what.
    pub communication: Communication,
    /// By what it was recorded.
    pub by: RecordBy,
    /// Stretches with and without recording, if there were any.
    pub stretches: Vec<RecordingStretch>,
    /// The command, which may still run.
    pub child: Option<Child>,
    /// Whether the command was started: it may not exist.
    pub started: bool,
}

/// Records `target` by what is asked for, or else by the first way that may be used, until the program ends, `longest` is over or
/// `is_over` says so.
pub fn record(
    target: &RecorderTarget,
    by: Option<RecordBy>,
    longest: Duration,
    is_over: &dyn Fn() -> bool,
) -> Result<RecorderOutcome, Failure> {
    let mut unseen = None;
    let (child, root, threads) = match target {
        RecorderTarget::Command(words) => {
            let (child, pid) = starter::start(words)?;
            let own = pid.as_raw_nonzero().get().cast_unsigned();
            (Some(child), Some(pid), vec![ThreadId { pid: own, tid: own }])
        }
        RecorderTarget::Processes(pids) => {
            let (all, are_children_known) = with_descendants(pids);
            unseen = (!are_children_known).then_some(CHILDREN_UNKNOWN);
            (None, None, threads_of(pids, &all)?)
        }
    };
    let program = match target {
        RecorderTarget::Command(words) => words.first().and_then(|word| privileged::program(word)),
        RecorderTarget::Processes(_) => None,
    };
    let mut recorder = Recorder {
        child,
        root,
        threads,
        program,
        unseen,
        cpus: online_cpus(),
        longest,
        is_over,
        begun_ns: now_ns(),
        stretches: Vec::new(),
    };
    let outcome = recorder.record(by);
    if outcome.is_err()
        && let Some(child) = &mut recorder.child
    {
        // It has not begun yet, or has nobody who waits for it.
        let _ = child.kill();
        let _ = child.wait();
    }
    let (communication, by, started) = outcome?;
    Ok(RecorderOutcome { communication, by, stretches: recorder.stretches, child: recorder.child, started })
}

/// Events of the target, open.
struct OpenedEvents {
    events: Box<dyn ProcessEvents>,
    between_calls: BetweenCalls,
}

/// A recording under way.
struct Recorder<'a> {
    child: Option<Child>,
    root: Option<Pid>,
    threads: Vec<ThreadId>,
    /// The file of the command, where that is found.
    program: Option<PathBuf>,
    /// What cannot be recorded, as is known beforehand.
    unseen: Option<&'static str>,
    cpus: Vec<u32>,
    longest: Duration,
    is_over: &'a dyn Fn() -> bool,
    begun_ns: u64,
    stretches: Vec<RecordingStretch>,
}

impl Recorder<'_> {
    fn record(&mut self, by: Option<RecordBy>) -> Result<(Communication, RecordBy, bool), Failure> {
        let (by, opened) = self.first_of(by.as_ref().map_or(RecordBy::ALL, std::slice::from_ref))?;
        let mut taken = Taken::new(by, self.root);
        let pids: BTreeSet<u32> = self.threads.iter().map(|thread| thread.pid).collect();
        // The command is stopped until it is let go on.
        pids.into_iter().for_each(|pid| taken.assembly.add_process(pid, self.root.is_some()));
        let between_calls = opened.as_ref().map(|opened| opened.between_calls).unwrap_or_default();
        match opened {
            Some(mut opened) => self.by_events(&mut *opened.events, &mut taken)?,
            None => self.by_ptrace(&mut taken)?,
        }
        let Taken { mut assembly, began, .. } = taken;
        self.unseen.into_iter().for_each(|what| assembly.lost(what, 1));
        Ok((assembly.finish(between_calls), by, began))
    }

    /// The events of the first of these ways that may be used. There are none by ptrace.
    fn first_of(&self, ways: &[RecordBy]) -> Result<(RecordBy, Option<OpenedEvents>), Failure> {
        let cpus = &self.cpus;
        let open = |by: RecordBy| match by {
            RecordBy::Bpf => {
                self.opened(|threads, calls| Ok(Box::new(BpfEvents::open(threads, calls)?))).map(Some)
            }
            RecordBy::Tracepoints => {
                self.opened(|threads, _| Ok(Box::new(TracepointEvents::open(cpus, threads)?))).map(Some)
            }
            // Who names ptrace has it at any rate.
            RecordBy::Ptrace if ways.len() > 1 => self.may_be_traced().map(|()| None),
            RecordBy::Ptrace => Ok(None),
        };
        let mut refused = None;
        for by in ways {
            match open(*by) {
                Ok(events) => return Ok((*by, events)),
                Err(failure) => refused = Some(failure),
            }
        }
        Err(refused
            .unwrap_or_else(|| Failure::new("record", "this program", "no way was given", "report this bug")))
    }

    /// Refuses a command that ptrace would have run without the rights that its file gives.
    fn may_be_traced(&self) -> Result<(), Failure> {
        match self.program.as_deref().filter(|program| privileged::loses_rights(program)) {
            Some(program) => Err(Failure::new(
                "record",
                program.display(),
                "its file gives it rights (setuid, setgid or capabilities) that ptrace, the only way left here, takes from it",
                "record as root, or have it run without these rights: --by ptrace",
            )),
            None => Ok(()),
        }
    }

    /// The events that `open` gives for threads, which may be in a call already.
    fn opened(
        &self,
        open: impl Fn(&[ThreadId], bool) -> Result<Box<dyn ProcessEvents>, Failure> + Sync,
    ) -> Result<OpenedEvents, Failure> {
        let between_calls = between_calls(|threads| open(threads, false))?;
        Ok(OpenedEvents { events: open(&self.threads, self.root.is_none())?, between_calls })
    }

    fn by_events(&mut self, events: &mut dyn ProcessEvents, taken: &mut Taken) -> Result<(), Failure> {
        events.switch(true)?;
        if self.root.is_none() {
            self.settle(events, taken);
        }
        self.go_on()?;
        let recorded = self.longest.mul_f64(RECORDED_SHARE);
        let most_calls = self.most_calls_at_first(events.call_cost());
        while !self.is_over(recorded) && taken.assembly.calls() < most_calls {
            events.wait(NAP);
            events.fetch(false, &mut |event| taken.take(event));
        }
        let until_ns = now_ns();
        let mut counted = Vec::new();
        events.count(&mut |event| counted.push(event))?;
        let still_runs = !self.has_ended();
        let later = taken.take_until(until_ns, events, still_runs);
        counted.into_iter().for_each(|event| taken.take(event));
        events.lost().into_iter().for_each(|(what, count)| taken.assembly.lost(what, count));
        taken.assembly.close(until_ns);
        later.into_iter().for_each(|event| taken.take(event));
        if still_runs && taken.began && !(self.is_over)() {
            self.alternate(events, taken)?;
        }
        events.switch(false)
    }

    /// Observes processes that run until what the recorder does first is over, and begins their recording then. Where they end
    /// before, all is recorded.
    fn settle(&mut self, events: &mut dyn ProcessEvents, taken: &mut Taken) {
        let from_ns = now_ns();
        taken.assembly.begin(from_ns);
        self.threads.iter().for_each(|thread| taken.assembly.add_thread(thread.tid, from_ns));
        while since(from_ns) < SETTLING && !self.is_over(self.longest) {
            events.wait(NAP);
            events.fetch(false, &mut |event| taken.take(event));
        }
        let begin_ns = now_ns();
        let still_runs = !self.has_ended();
        let later = taken.take_until(begin_ns, events, still_runs);
        if still_runs {
            taken.assembly.begin(begin_ns);
        }
        later.into_iter().for_each(|event| taken.take(event));
    }

    /// How many calls are recorded before recording is switched off for the first time.
    fn most_calls_at_first(&self, call_cost: Duration) -> usize {
        let busy_cpus = self.cpus.len().min(self.threads.len()).max(1);
        let most = self.longest.mul_f64(MOST_SLOWDOWN * FIRST_PART * busy_cpus as f64);
        let calls = most.as_nanos() / call_cost.as_nanos().max(1);
        usize::try_from(calls).unwrap_or(usize::MAX).min(assembly::MOST_CALLS)
    }

    /// Switches recording off and on, and leaves it off while the program has been slowed enough. All else is done as before, so that
    /// it costs the same.
    fn alternate(&mut self, events: &mut dyn ProcessEvents, taken: &mut Taken) -> Result<(), Failure> {
        let first = since(self.begun_ns);
        while !self.is_over(self.longest) {
            if self.would_slow_too_much(first) {
                events.switch(false)?;
                std::thread::sleep(NAP);
                continue;
            }
            for recorded in ORDER {
                if self.is_over(self.longest) {
                    break;
                }
                events.switch(recorded)?;
                if self.stretches.last().is_none_or(|last| last.recorded != recorded) {
                    take_for(SWITCHING, events, taken);
                }
                let (start_ns, before) = (now_ns(), events.progress()?);
                take_for(STRETCH, events, taken);
                let ns = u64::try_from(since(start_ns).as_nanos()).unwrap_or(u64::MAX);
                let progress = events.progress()?.since(before);
                self.stretches.push(RecordingStretch { recorded, ns, progress });
                taken.assembly.forget();
            }
        }
        Ok(())
    }

    /// Whether the program would be slowed by more than it may be over the whole time, if it were recorded off, on, on, off now. It
    /// was recorded all the time at `first`.
    fn would_slow_too_much(&self, first: Duration) -> bool {
        let total = |recorded: bool| {
            let all = self.stretches.iter().zip(progress(&self.stretches));
            let chosen = all.filter(|(stretch, _)| stretch.recorded == recorded);
            chosen.fold((0, 0), |sum, (stretch, progress)| (sum.0 + stretch.ns, sum.1 + progress))
        };
        let ((on_ns, on), (off_ns, off)) = (total(true), total(false));
        if on == 0 || off == 0 || self.stretches.len() < LEAST_GROUPS * ORDER.len() {
            return false;
        }
        let kept = (on as f64 / on_ns as f64) / (off as f64 / off_ns as f64);
        // It was on while the kernel dealt with each switch, too, and would be for this one.
        let groups = (self.stretches.len() / ORDER.len()) as u32;
        let recorded = first + Duration::from_nanos(on_ns) + (groups + 1) * SWITCHING + 2 * STRETCH;
        recorded.mul_f64((1.0 - kept).max(0.0)) > self.longest.mul_f64(MOST_SLOWDOWN)
    }

    fn by_ptrace(&mut self, taken: &mut Taken) -> Result<(), Failure> {
        let mut followed = Followed::seize(&self.threads)?;
        if self.root.is_none() {
            taken.assembly.begin(now_ns());
        }
        self.go_on()?;
        while !followed.is_empty()
            && since(self.begun_ns) < self.longest
            && !(self.is_over)()
            && !taken.assembly.is_full()
        {
            followed.run(NAP, |event| taken.take(event))?;
        }
        followed.changed().for_each(|(what, count)| taken.assembly.lost(&what, count));
        taken.assembly.close(now_ns());
        followed.let_go();
        Ok(())
    }

    /// Lets the command begin. Time counts from now on.
    fn go_on(&mut self) -> Result<(), Failure> {
        self.begun_ns = now_ns();
        self.root.map_or(Ok(()), starter::go_on)
    }

    fn is_over(&mut self, longest: Duration) -> bool {
        since(self.begun_ns) >= longest || (self.is_over)() || self.has_ended()
    }

    /// Whether the command, or every process, has ended.
    fn has_ended(&mut self) -> bool {
        match &mut self.child {
            Some(child) => child.try_wait().map_or(true, |status| status.is_some()),
            None => {
                let is_gone = |thread: &ThreadId| !Path::new(&format!("/proc/{}", thread.tid)).exists();
                self.threads.iter().all(is_gone)
            }
        }
    }
}

/// Takes events for so long.
fn take_for(time: Duration, events: &mut dyn ProcessEvents, taken: &mut Taken) {
    let start_ns = now_ns();
    while since(start_ns) < time {
        events.wait(time.saturating_sub(since(start_ns)).min(NAP));
        events.fetch(false, &mut |event| taken.take(event));
    }
}

/// The events that were taken.
struct Taken {
    assembly: Assembly,
    /// The command, which begins when it becomes the program.
    root: Option<u32>,
    /// Whether it has begun.
    began: bool,
}

impl Taken {
    fn new(by: RecordBy, root: Option<Pid>) -> Self {
        let root = root.map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
        Self { assembly: Assembly::new(by), root, began: root.is_none() }
    }

    /// Takes what happened until `until_ns`. What has happened since is handed back. Of a program that still runs, not all of it is
    /// there yet.
    fn take_until(
        &mut self,
        until_ns: u64,
        events: &mut dyn ProcessEvents,
        still_runs: bool,
    ) -> Vec<RawEvent> {
        if still_runs {
            std::thread::sleep(ALL_THERE);
        }
        let mut later = Vec::new();
        events.fetch(true, &mut |event| match event.at_ns <= until_ns {
            true => self.take(event),
            false => later.push(event),
        });
        later
    }

    fn take(&mut self, event: RawEvent) {
        let begins =
            !self.began && Some(event.pid) == self.root && matches!(event.what, RawKind::Exec { .. });
        let at_ns = event.at_ns;
        self.assembly.take(event);
        if begins {
            self.began = true;
            self.assembly.begin(at_ns);
        }
    }
}

/// `pids` and all that they have made and that still runs, and whether the kernel says what that is.
///
/// Who reads the state of a process in /proc (stat, status) has its memory for that time, and with it the files that are mapped there and the
/// program's own: if the process ends meanwhile, these stay open for longer than it. So nobody's is read for its parent.
fn with_descendants(pids: &[u32]) -> (BTreeSet<u32>, bool) {
    let mut found: BTreeSet<u32> = pids.iter().copied().collect();
    let mut are_known = true;
    let mut left = pids.to_vec();
    while let Some(pid) = left.pop() {
        for tid in threads_in(pid).unwrap_or_default() {
            let children = match std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")) {
                Ok(children) => children,
                Err(error) => {
                    are_known &= error.kind() != ErrorKind::NotFound || threads_in(pid).is_err();
                    continue;
                }
            };
            let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
            left.extend(children.filter(|child| *child != std::process::id() && found.insert(*child)));
        }
    }
    (found, are_known)
}

/// The threads of the process `pid`.
fn threads_in(pid: u32) -> std::io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task"))?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// The threads of `pids`, of which those that were `named` must be there. Another may have ended meanwhile.
fn threads_of(named: &[u32], pids: &BTreeSet<u32>) -> Result<Vec<ThreadId>, Failure> {
    let mut threads = Vec::new();
    for pid in pids {
        let tids = match threads_in(*pid) {
            Ok(tids) => tids,
            Err(_) if !named.contains(pid) => continue,
            Err(error) => {
                let next = "name processes that run, as ps lists them";
                return Err(Failure::new("find", format!("process {pid}"), error.to_string(), next));
            }
        };
        threads.extend(tids.into_iter().map(|tid| ThreadId { pid: *pid, tid }));
    }
    if threads.len() > MOST_THREADS {
        return Err(Failure::new(
            "record",
            "these processes",
            format!("they have {} threads, and at most {MOST_THREADS} can be recorded", threads.len()),
            "name fewer processes",
        ));
    }
    raise_descriptors().or_fail("setrlimit", "the number of descriptors")?;
    Ok(threads)
}

/// Each thread needs some descriptors for each CPU: as many are allowed as may be.
fn raise_descriptors() -> rustix::io::Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
}
