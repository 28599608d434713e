//! Scenarios run for real: it starts their processes, has them measure slice by slice, one scenario or two in turn, ends them, and starts
//! them anew.
//!
//! What the slices mean is for `analysis` to say.

use super::endpoint_process::{EndpointProcess, lost};
use super::own_child::unless_closed;
use super::run_directory::RunDirectory;
use super::trial_error::TrialError;
use super::trials::{root_cause, unexpected};
use crate::clock::{Clock, Timer};
use crate::host::topology;
use crate::protocol::channel::{Channel, wait_any};
use crate::protocol::message::{CoordinatorMessage, EndpointMessage};
use crate::protocol::scenario::{CAPABILITY, FlowCounts, FlowTicket, ProcessSnapshot, ScenarioOrders};
use mechanisms::registry;
use model::card::Support;
use model::cpu_list::format_cpulist;
use model::elsewhere::Elsewhere;
use model::record::{ClockSource, Setting};
use model::scenario::{Begin, Behaviour, Flow, FlowBehaviour, FlowTotals, ProcessBehaviour};
use model::{Invalid, Scenario};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sys::{Errno, Failure};

/// From what sizes, work and times are drawn. It is the same in every run, so that runs differ by what the host does alone.
const SEED: u64 = 0x1bc3_a4c0;
/// How long a slice is, at the longest and the shortest, and how many there should be.
const LONGEST_SLICE: Duration = Duration::from_millis(200);
const SHORTEST_SLICE: Duration = Duration::from_millis(20);
const SLICES: u32 = 48;
/// How often the processes are started: where the kernel puts those that are free to move, and what lies where in memory, differs more
/// from one start to the next than from slice to slice.
const TRIALS: u32 = 8;
/// How long the processes go before they are measured first, and at most which part of the time of a trial.
const WARM_UP: Duration = Duration::from_millis(500);
const WARM_UP_DIVISOR: u32 = 6;
/// How long a scenario that was asleep goes before it is measured again.
const SETTLE: Duration = Duration::from_millis(10);

/// What replays of a run have in common.
#[derive(Debug, Clone, Copy)]
pub struct ReplayBounds<'a> {
    /// The clock that times round trips.
    pub clock: ClockSource,
    /// Where names in the file system go.
    pub directory: &'a RunDirectory,
    /// Set from outside to end the replay.
    pub interrupted: &'a AtomicBool,
    /// How long nothing may happen in a scenario beyond what it waits by itself.
    pub timeout: Duration,
    /// How long all slices may take together.
    pub time: Duration,
}

/// What a replay measured.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// How the scenario behaved in each slice of each trial, in the order of time.
    pub trials: Vec<Vec<Behaviour>>,
    /// What all slices came to, for each flow in the order of the scenario.
    pub flows: Vec<FlowTotals>,
    /// The slices in which a process was not on its CPUs alone, for each process in the order of the scenario. They count.
    pub elsewhere: Vec<Elsewhere>,
    /// Whether it was ended early, by a signal.
    pub interrupted: bool,
}

/// Refuses a scenario that this host cannot run.
pub fn check(scenario: &Scenario) -> Result<(), Invalid> {
    let allowed = topology::allowed();
    for process in &scenario.processes {
        if let Some(cpu) = process.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            let problem =
                format!("process '{}' is to run on CPU {cpu}, which there is not for ipcmark", process.name);
            let remedy = format!("leave cpus out, or name some of {}", format_cpulist(&allowed));
            return Err(Invalid::new(problem, remedy));
        }
    }
    let mut support = HashMap::new();
    let mut alone = HashSet::new();
    for flow in &scenario.flows {
        let spec = &flow.mechanism;
        let largest = flow.reply.iter().map(|reply| reply.largest()).chain([flow.size.largest()]).max();
        let largest = largest.map_or(0, |size| size.0);
        let known = support.entry(spec).or_insert_with(|| registry::probe(&spec.name, &spec.params));
        match known {
            Some(Support::No { reason, remedy }) => {
                return Err(Invalid::new(
                    format!("flow '{}': {spec} does not work here: {reason}", flow.name),
                    remedy.clone(),
                ));
            }
            Some(Support::Yes { largest_bytes: Some(most) }) if largest > *most => {
                let problem = format!("flow '{}': {spec} carries at most {most} bytes here", flow.name);
                return Err(Invalid::new(problem, "give smaller messages, or another mechanism"));
            }
            _ => {}
        }
        let is_alone = registry::card(&spec.name).is_some_and(|card| card.one_endpoint);
        let both = [flow.from, flow.to];
        if let Some(process) = both.into_iter().find(|at| is_alone && !alone.insert(*at)) {
            let name = &scenario.processes[process].name;
            return Err(Invalid::new(
                format!(
                    "flow '{}': {spec} reaches a process, not one of its flows, and '{name}' has another such",
                    flow.name
                ),
                "give a process one such flow at most",
            ));
        }
    }
    Ok(())
}

/// Runs `scenario`, and measures slice by slice until the time is up.
pub fn replay(scenario: &Scenario, bounds: &ReplayBounds<'_>) -> Result<Replayed, TrialError> {
    let [replayed] = in_trials([scenario], |number| {
        let mut live = LiveScenario::start(scenario, bounds, number)?;
        live.begin()?;
        let (time, warm_up, slice) = times(bounds.time);
        live.listen_for(warm_up)?;
        let timer = Timer::start();
        live.snapshot(true)?;
        // One at the least: where there are many processes, to ask them all takes longer than the time that is left.
        loop {
            live.slice(slice)?;
            if live.is_interrupted() || timer.elapsed() + warm_up + slice / 2 >= time {
                break;
            }
        }
        Ok([live.finish()?])
    })?;
    Ok(replayed)
}

/// Runs two scenarios, which are alive at once, and measures slices of both in turn: A B B A, A B B A, … One sleeps while the
/// other is measured.
pub fn replay_both(
    scenarios: [&Scenario; 2],
    bounds: &ReplayBounds<'_>,
) -> Result<[Replayed; 2], TrialError> {
    let [a, b] = scenarios;
    in_trials(scenarios, |number| {
        let (time, warm_up, slice) = times(bounds.time);
        let start = |scenario, at| LiveScenario::start(scenario, bounds, 2 * number + at);
        let mut both = [start(a, 0)?, start(b, 1)?];
        let timer = Timer::start();
        for live in &mut both {
            live.begin()?;
            live.listen_for(warm_up / 2)?;
            live.snapshot(true)?;
            live.pause()?;
        }
        let is_over = || bounds.interrupted.load(Ordering::Relaxed) || timer.elapsed() + 4 * slice > time;
        loop {
            for at in [0, 1, 1, 0] {
                let live = &mut both[at];
                live.begin()?;
                live.listen_for(SETTLE)?;
                live.snapshot(false)?;
                live.slice(slice)?;
                live.pause()?;
            }
            if is_over() {
                break;
            }
        }
        let [a, b] = both;
        let mut both = [a.finish()?, b.finish()?];
        // Of an interrupted quadruple nothing is left that could be compared.
        let whole = both.iter().flat_map(|one| &one.trials).map(Vec::len).min().unwrap_or(0) / 2 * 2;
        both.iter_mut().flat_map(|one| &mut one.trials).for_each(|slices| slices.truncate(whole));
        Ok(both)
    })
}

/// What all trials of `scenarios` measured, each of which `trial` starts and ends.
fn in_trials<const N: usize>(
    scenarios: [&Scenario; N],
    trial: impl Fn(u64) -> Result<[Replayed; N], TrialError>,
) -> Result<[Replayed; N], TrialError> {
    let mut replayed = scenarios.map(Replayed::nothing);
    for number in 0..u64::from(TRIALS) {
        match trial(number) {
            Ok(more) => replayed.iter_mut().zip(more).for_each(|(all, more)| all.add(more)),
            // What was measured before is kept.
            Err(TrialError::Interrupted) if number > 0 => {
                replayed.iter_mut().for_each(|all| all.interrupted = true);
            }
            Err(error) => return Err(error),
        }
        if replayed.iter().any(|all| all.interrupted) {
            break;
        }
    }
    Ok(replayed)
}

/// Adds `setting`, if it is not among `all`: the endpoints of a flow, and its trials, mostly get the same.
fn note(all: &mut Vec<Setting>, setting: Setting) {
    if !all.contains(&setting) {
        all.push(setting);
    }
}

/// How long a trial, its warm-up and a slice are, where all trials have so much time.
fn times(all: Duration) -> (Duration, Duration, Duration) {
    let time = all / TRIALS;
    let slice = (all / SLICES).clamp(SHORTEST_SLICE, LONGEST_SLICE);
    (time, WARM_UP.min(time / WARM_UP_DIVISOR), slice)
}

impl Replayed {
    /// Whether a message went in any slice.
    pub fn has_measured(&self) -> bool {
        self.flows.iter().any(|flow| flow.messages > 0)
    }

    /// Of no trial yet.
    fn nothing(scenario: &Scenario) -> Self {
        let flows = scenario.flows.iter().map(|_| FlowTotals::default()).collect();
        let elsewhere = vec![Elsewhere::default(); scenario.processes.len()];
        Self { trials: Vec::new(), flows, elsewhere, interrupted: false }
    }

    fn add(&mut self, more: Self) {
        self.trials.extend(more.trials);
        for (all, more) in self.flows.iter_mut().zip(more.flows) {
            all.messages += more.messages;
            all.bytes += more.bytes;
            match (&mut all.round_trips, more.round_trips) {
                (Some(all), Some(more)) => all.merge(&more),
                (all, more) => *all = more.or(all.take()),
            }
            more.settings.into_iter().for_each(|setting| note(&mut all.settings, setting));
        }
        self.elsewhere.iter_mut().zip(&more.elsewhere).for_each(|(all, more)| all.add(more));
        self.interrupted |= more.interrupted;
    }
}

/// What the coordinator waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Every process has its endpoints of flows.
    Connected,
    /// Every process has nothing under way.
    Parked,
    /// Every process has said what it has done.
    Snapshots,
    /// The time is up.
    Elapsed,
}

/// A scenario whose processes are alive.
struct LiveScenario<'a> {
    scenario: &'a Scenario,
    bounds: &'a ReplayBounds<'a>,
    clock: Clock,
    processes: Vec<EndpointProcess>,
    /// What each process has said last of what it has done.
    last: Vec<ProcessSnapshot>,
    slices: Vec<Behaviour>,
    totals: Vec<FlowTotals>,
    elsewhere: Vec<Elsewhere>,
    /// For how long nothing has happened.
    still: Timer,
    was_interrupted: bool,
}

impl<'a> LiveScenario<'a> {
    /// Starts the processes of `scenario`, for the time `number` in this run.
    fn start(scenario: &'a Scenario, bounds: &'a ReplayBounds<'a>, number: u64) -> Result<Self, TrialError> {
        let started = scenario.processes.iter().map(|_| EndpointProcess::start_in_scenario());
        let processes = started.collect::<Result<Vec<_>, Failure>>()?;
        let mut live = Self {
            scenario,
            bounds,
            clock: Clock::new(bounds.clock),
            processes,
            last: Vec::new(),
            slices: Vec::new(),
            totals: scenario.flows.iter().map(|_| FlowTotals::default()).collect(),
            elsewhere: vec![Elsewhere::default(); scenario.processes.len()],
            still: Timer::start(),
            was_interrupted: false,
        };
        let text = scenario.to_toml();
        for (process, live) in live.processes.iter().enumerate() {
            let orders = ScenarioOrders {
                scenario: text.clone(),
                process,
                clock: bounds.clock,
                directory: bounds.directory.path().to_owned(),
                number: number * scenario.flows.len().max(256) as u64,
                seed: SEED,
            };
            send(live, &CoordinatorMessage::Scenario(Box::new(orders)), &[])?;
        }
        live.converse(Until::Connected, bounds.timeout)?;
        Ok(live)
    }

    fn begin(&mut self) -> Result<(), TrialError> {
        self.still = Timer::start();
        self.tell_all(&CoordinatorMessage::Begin)
    }

    /// Has everything end that is under way, and puts the processes to sleep.
    fn pause(&mut self) -> Result<(), TrialError> {
        self.tell_all(&CoordinatorMessage::Pause)?;
        self.converse(Until::Parked, self.longest_silence()).map(drop)
    }

    /// Listens for errors for so long.
    fn listen_for(&mut self, time: Duration) -> Result<(), TrialError> {
        self.converse(Until::Elapsed, time).map(drop)
    }

    /// Measures for so long.
    fn slice(&mut self, time: Duration) -> Result<(), TrialError> {
        let before = self.last.clone();
        self.listen_for(time)?;
        if self.is_interrupted() {
            self.was_interrupted = true;
            return Ok(());
        }
        self.snapshot(false)?;
        let slice = self.behaviour(&before);
        self.slices.push(slice);
        self.add_up(&before);
        for ((elsewhere, first), last) in self.elsewhere.iter_mut().zip(&before).zip(&self.last) {
            first.elsewhere.or(last.elsewhere).into_iter().for_each(|cpu| elsewhere.note(cpu));
        }
        let counted = |snapshots: &[ProcessSnapshot]| -> u64 {
            snapshots.iter().flat_map(|snapshot| &snapshot.flows).map(|flow| flow.messages).sum()
        };
        let limit = self.longest_silence();
        if counted(&self.last) > counted(&before) {
            self.still = Timer::start();
        } else if self.still.elapsed() > limit {
            return Err(TrialError::Silent { limit });
        }
        Ok(())
    }

    /// Asks every process what it has done; for its round trips too, if they are wanted.
    fn snapshot(&mut self, round_trips: bool) -> Result<(), TrialError> {
        self.tell_all(&CoordinatorMessage::Snapshot { round_trips })?;
        let snapshots = self.converse(Until::Snapshots, self.bounds.timeout)?;
        // In the middle of an interruption some are missing.
        if snapshots.len() == self.processes.len() {
            self.last = snapshots;
        }
        for (flow, setting) in self.last.iter().flat_map(|snapshot| &snapshot.settings) {
            if let Some(total) = self.totals.get_mut(*flow) {
                note(&mut total.settings, setting.clone());
            }
        }
        Ok(())
    }

    /// The result. The processes are ended.
    fn finish(mut self) -> Result<Replayed, TrialError> {
        if !self.is_interrupted() {
            self.snapshot(true)?;
            for counts in self.last.iter().flat_map(|snapshot| &snapshot.flows) {
                self.totals[counts.flow].round_trips = counts.round_trips.as_ref().map(|text| text.decode());
            }
        }
        let interrupted = self.was_interrupted || self.is_interrupted();
        let Self { slices, totals, elsewhere, .. } = self;
        Ok(Replayed { trials: vec![slices], flows: totals, elsewhere, interrupted })
    }

    /// How the scenario behaved since `before`.
    fn behaviour(&self, before: &[ProcessSnapshot]) -> Behaviour {
        let seconds = |at: usize| self.clock.ns_between(before[at].at, self.last[at].at).max(1.0) / 1e9;
        let counts = |snapshot: &ProcessSnapshot, flow: usize| {
            snapshot.flows.iter().find(|counts| counts.flow == flow).cloned().unwrap_or_default()
        };
        let flow = |(at, of): (usize, &Flow)| {
            let counting = if of.is_stream() { of.to } else { of.from };
            let (first, last) = (counts(&before[counting], at), counts(&self.last[counting], at));
            let messages = (last.messages - first.messages) as f64;
            let is_timed = !of.is_stream() && messages > 0.0;
            FlowBehaviour {
                per_s: messages / seconds(counting),
                round_trip_ns: is_timed.then(|| (last.round_trips_ns - first.round_trips_ns) / messages),
            }
        };
        let process = |at: usize| ProcessBehaviour {
            cpu: self.last[at].cpu_ns.saturating_sub(before[at].cpu_ns) as f64 / 1e9 / seconds(at),
            switches_per_s: self.last[at].switches.saturating_sub(before[at].switches) as f64 / seconds(at),
        };
        Behaviour {
            flows: self.scenario.flows.iter().enumerate().map(flow).collect(),
            processes: (0..before.len()).map(process).collect(),
        }
    }

    /// Adds what happened since `before` to the totals.
    fn add_up(&mut self, before: &[ProcessSnapshot]) {
        let counts = |snapshots: &[ProcessSnapshot]| -> Vec<FlowCounts> {
            snapshots.iter().flat_map(|snapshot| snapshot.flows.iter().cloned()).collect()
        };
        for (first, last) in counts(before).iter().zip(counts(&self.last)) {
            let total = &mut self.totals[last.flow];
            total.messages += last.messages - first.messages;
            total.bytes += last.bytes - first.bytes;
        }
    }

    /// How long nothing may happen: the timeout, beyond what the flows wait by themselves.
    fn longest_silence(&self) -> Duration {
        let waits = self.scenario.flows.iter().map(|flow| {
            let own_ns = match &flow.begin {
                Begin::Closed { think_time } => think_time.largest().0,
                // Random arrivals may be far apart.
                Begin::Open(rate) => (10.0 * rate.interval_ns()) as u64,
                Begin::After { .. } => 0,
            };
            let work_ns = flow.client_work.largest().0.saturating_add(flow.server_work.largest().0);
            own_ns.saturating_add(work_ns)
        });
        let longest = waits.fold(0, u64::saturating_add);
        self.bounds.timeout.saturating_add(Duration::from_nanos(longest))
    }

    fn is_interrupted(&self) -> bool {
        self.bounds.interrupted.load(Ordering::Relaxed)
    }

    fn tell_all(&self, message: &CoordinatorMessage) -> Result<(), TrialError> {
        self.processes.iter().try_for_each(|process| send(process, message, &[]))
    }

    /// Takes what the processes say, and passes tickets on, until what is waited for has come. The first failure ends it.
    fn converse(&mut self, until: Until, limit: Duration) -> Result<Vec<ProcessSnapshot>, TrialError> {
        let timer = Timer::start();
        let count = self.processes.len();
        let mut snapshots: Vec<Option<ProcessSnapshot>> = vec![None; count];
        let mut come = 0;
        while until == Until::Elapsed || come < count {
            if self.is_interrupted() {
                return if until == Until::Connected { Err(TrialError::Interrupted) } else { Ok(Vec::new()) };
            }
            let channels: Vec<&Channel> = self.processes.iter().map(|process| &process.control).collect();
            let ready = match wait_any(&channels, timer.left_of(limit)) {
                Ok(Some(ready)) => ready,
                Ok(None) if until == Until::Elapsed => break,
                Ok(None) => return Err(TrialError::Silent { limit }),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(Failure::from_errno("poll", "control channels", errno).into()),
            };
            let (message, fds) = match self.processes[ready].control.receive::<EndpointMessage>() {
                Ok(received) => received,
                Err(failure) => return Err(self.died(ready, &failure)),
            };
            match message {
                EndpointMessage::Hello(hello) if !self.processes[ready].has_greeted => {
                    if let Some(refusal) = hello.refusal() {
                        return Err(TrialError::Refused(refusal));
                    }
                    if !hello.capabilities.iter().any(|name| name == CAPABILITY) {
                        let why = "it does not take part in scenarios".to_owned();
                        return Err(TrialError::Refused(why));
                    }
                    self.processes[ready].has_greeted = true;
                }
                EndpointMessage::FlowTicket(ticket) => self.pass_on(ready, ticket, &fds)?,
                EndpointMessage::Connected if until == Until::Connected => come += 1,
                EndpointMessage::Parked if until == Until::Parked => come += 1,
                EndpointMessage::Snapshot(snapshot) if until == Until::Snapshots => {
                    come += usize::from(snapshots[ready].replace(*snapshot).is_none());
                }
                EndpointMessage::Ended { error: Some(error) } => {
                    self.processes.remove(ready);
                    return Err(root_cause(error, &mut self.processes));
                }
                _ => {
                    let failure = unexpected("something that was not due");
                    return Err(self.died(ready, &failure));
                }
            }
        }
        Ok(snapshots.into_iter().flatten().collect())
    }

    /// What became of the process at `at`, whose channel gave `failure` instead of a message.
    fn died(&mut self, at: usize, failure: &Failure) -> TrialError {
        match lost(&mut self.processes[at].child, failure) {
            TrialError::Died { status } => {
                let status = format!("process '{}': {status}", self.scenario.processes[at].name);
                TrialError::Died { status }
            }
            other => other,
        }
    }

    /// Passes the ticket of the process `from` on to the receiver of its flow.
    fn pass_on(&self, from: usize, ticket: FlowTicket, fds: &[OwnedFd]) -> Result<(), TrialError> {
        let Some(flow) = self.scenario.flows.get(ticket.flow).filter(|flow| flow.from == from) else {
            return Err(unexpected("a ticket of a flow that it does not send").into());
        };
        let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
        send(&self.processes[flow.to], &CoordinatorMessage::FlowTicket(ticket), &fds)
    }
}

/// Tells `process` something. One that has ended by now has said why, which is read later.
fn send(
    process: &EndpointProcess,
    message: &CoordinatorMessage,
    fds: &[BorrowedFd<'_>],
) -> Result<(), TrialError> {
    Ok(unless_closed(process.control.send(message, fds))?)
}
