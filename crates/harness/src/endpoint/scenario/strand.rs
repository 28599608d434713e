//! A thread of a process of a scenario: it begins flows, receives others, works, and answers.

use super::draws::{DrawKind, Draws};
use super::flow_end::FlowEnd;
use super::gate::{Gate, Woken};
use super::meters::Meters;
use super::plan::StrandPlan;
use crate::clock::{Clock, Stamp};
use crate::endpoint::loop_error::LoopError;
use model::Scenario;
use model::record::Setting;
use model::scenario::Begin;
use model::units::Nanoseconds;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use sys::Errno;
use sys::busy::multiply;

/// What all threads of a process share.
pub(super) struct Shared {
    pub(super) scenario: Scenario,
    /// The CPUs on which this process is to run; any where there are none.
    pub(super) cpus: Vec<u32>,
    pub(super) clock: Clock,
    pub(super) seed: u64,
    pub(super) gate: Gate,
    pub(super) meters: Meters,
    /// Whoever works holds it, where there are several threads: a process does one thing at a time.
    pub(super) work: Option<Mutex<()>>,
    /// What goes with messages that pass descriptors.
    pub(super) passed: Vec<OwnedFd>,
    /// What the endpoints of flows asked the kernel for, and got.
    pub(super) settings: Mutex<Vec<(usize, Setting)>>,
}

impl Shared {
    /// Where one of the threads may be though it is to run on the CPUs of this process.
    pub(super) fn elsewhere(&self) -> Option<u32> {
        if self.cpus.is_empty() { None } else { sys::process::threads_strayed_from(&self.cpus) }
    }

    pub(super) fn settings(&self) -> MutexGuard<'_, Vec<(usize, Setting)>> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread's sides of flows, and where it is with each flow.
pub(super) struct Strand<'a> {
    shared: &'a Shared,
    at: usize,
    plan: &'a StrandPlan,
    steps_per_ns: f64,
    ends: Vec<Option<FlowEnd>>,
    /// The number of the next request or message of each flow.
    next: Vec<u64>,
    /// What is due of each flow that is after another, in messages.
    owed: Vec<f64>,
    /// When the next message of each flow with a rate is due, in ticks.
    due_ticks: Vec<f64>,
    groups: Vec<Group>,
    is_parked: bool,
}

/// Where a group of flows is that are begun one after the other.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// The place of the current flow, among those of the group.
    current: usize,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The next message is begun then.
    Idle { due: Stamp },
    /// A request was begun then, and is not answered yet.
    Asked { began: Stamp },
}

/// What went wrong with which flow.
pub(super) type FlowError = (usize, LoopError);

impl<'a> Strand<'a> {
    /// The thread at `at` of its process, with `ends`, one for each flow of the scenario that it has to do with.
    pub(super) fn new(
        shared: &'a Shared,
        at: usize,
        plan: &'a StrandPlan,
        steps_per_ns: f64,
        ends: Vec<Option<FlowEnd>>,
    ) -> Self {
        let flows = shared.scenario.flows.len();
        let due = shared.clock.now();
        Self {
            shared,
            at,
            plan,
            steps_per_ns,
            ends,
            next: vec![0; flows],
            owed: vec![0.0; flows],
            due_ticks: vec![0.0; flows],
            groups: vec![Group { current: 0, state: State::Idle { due } }; plan.groups.len()],
            is_parked: false,
        }
    }

    /// Takes part in the scenario until something goes wrong, or the process is ended.
    pub(super) fn run(mut self) -> Result<(), FlowError> {
        match (self.plan.groups.len(), self.plan.receives.as_slice()) {
            (1, []) => self.begin_one_group(),
            (0, [flow]) => loop {
                self.serve(*flow)?;
            },
            _ => self.wait_for_all(),
        }
    }

    /// The loop of a thread that only begins flows, one after the other. It waits in the calls.
    fn begin_one_group(&mut self) -> Result<(), FlowError> {
        self.rest();
        loop {
            let State::Idle { due } = self.groups[0].state else { continue };
            // Whoever does not wait need not lock anything.
            let is_due = due <= self.shared.clock.now() && self.shared.gate.is_open();
            if !is_due && self.shared.gate.sleep_until(due) == Woken::Resumed {
                self.rest();
                continue;
            }
            self.begin_next(0)?;
            if let State::Asked { began } = self.groups[0].state {
                self.finish_asked(0, began)?;
            }
        }
    }

    /// The loop of a thread with several things to wait for.
    fn wait_for_all(&mut self) -> Result<(), FlowError> {
        loop {
            let now = self.shared.clock.now();
            if self.is_parked && self.shared.gate.resume() {
                self.is_parked = false;
                self.rest();
            }
            let is_open = !self.is_parked && self.shared.gate.is_open();
            for group in 0..self.groups.len() {
                if matches!(self.groups[group].state, State::Idle { due } if is_open && due <= now) {
                    self.begin_next(group)?;
                }
            }
            let is_idle = |group: &Group| matches!(group.state, State::Idle { .. });
            if !is_open && !self.is_parked && !self.groups.is_empty() && self.groups.iter().all(is_idle) {
                self.is_parked = true;
                self.shared.gate.park();
            }
            for at in self.ready(is_open)? {
                match at.checked_sub(self.plan.receives.len()) {
                    None => self.serve(self.plan.receives[at])?,
                    Some(group) => {
                        if let State::Asked { began } = self.groups[group].state {
                            self.finish_asked(group, began)?;
                        }
                    }
                }
            }
        }
    }

    /// Waits until something has come, or is due, and says what has come: places of the flows that are received, and behind them
    /// those of groups.
    fn ready(&self, is_open: bool) -> Result<Vec<usize>, FlowError> {
        let receives = self.plan.receives.iter().copied().enumerate();
        let asked = self.groups.iter().enumerate().filter_map(|(at, group)| match group.state {
            State::Asked { .. } => Some((self.plan.receives.len() + at, self.current(at))),
            State::Idle { .. } => None,
        });
        let waits: Vec<(usize, usize)> = receives.chain(asked).collect();
        let has_more = |flow: usize| self.ends[flow].as_ref().is_some_and(FlowEnd::has_more);
        let idle = self.groups.iter().filter_map(|group| match group.state {
            State::Idle { due } if is_open => Some(due),
            _ => None,
        });
        let mut left_ns = idle.min().map(|due| self.shared.clock.ns_between(self.shared.clock.now(), due));
        if waits.iter().any(|(_, flow)| has_more(*flow)) {
            left_ns = Some(0.0);
        }
        let timeout = left_ns.map(|ns| Timespec { tv_sec: (ns / 1e9) as i64, tv_nsec: (ns % 1e9) as i64 });
        let input = |flow: usize| self.ends[flow].as_ref().and_then(FlowEnd::input);
        let mut fds = vec![PollFd::from_borrowed_fd(self.shared.gate.bell(self.at), PollFlags::IN)];
        for (_, flow) in &waits {
            let missing = || (*flow, LoopError::Call { name: "poll", errno: Errno::OPNOTSUPP });
            fds.push(PollFd::from_borrowed_fd(input(*flow).ok_or_else(missing)?, PollFlags::IN));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => {
                let flow = waits.first().map_or(0, |(_, flow)| *flow);
                return Err((flow, LoopError::Call { name: "poll", errno }));
            }
        }
        if !fds[0].revents().is_empty() {
            self.shared.gate.silence(self.at);
        }
        let ready = waits.iter().zip(&fds[1..]);
        let ready = ready.filter(|((_, flow), fd)| !fd.revents().is_empty() || has_more(*flow));
        Ok(ready.map(|((at, _), _)| *at).collect())
    }

    /// Begins what the group does next anew, from now on: nothing was due while it slept.
    fn rest(&mut self) {
        let now = self.shared.clock.now();
        for group in 0..self.plan.groups.len() {
            for flow in &self.plan.groups[group] {
                self.due_ticks[*flow] = now.ticks() as f64;
            }
            self.schedule(group);
        }
    }

    /// The current flow in a group.
    fn current(&self, group: usize) -> usize {
        self.plan.groups[group][self.groups[group].current]
    }

    /// Says when the current flow begins.
    fn schedule(&mut self, group: usize) {
        let flow = self.current(group);
        let (clock, number) = (self.shared.clock, self.next[flow]);
        let now = clock.now();
        let due = match &self.shared.scenario.flows[flow].begin {
            Begin::Open(rate) => {
                let distance_ns = self.draws(flow).distance_ns(*rate, number);
                self.due_ticks[flow] += distance_ns * clock.ticks_per_ns();
                now.at_ticks(self.due_ticks[flow] as u64)
            }
            Begin::Closed { think_time } if !think_time.is_zero() => {
                let think_time = self.draws(flow).value(think_time, DrawKind::ThinkTime, number);
                now.after(clock.ticks(think_time.0 as f64))
            }
            Begin::Closed { .. } | Begin::After { .. } => now,
        };
        self.groups[group].state = State::Idle { due };
    }

    /// Begins a message of the current flow.
    fn begin_next(&mut self, group: usize) -> Result<(), FlowError> {
        let flow = self.current(group);
        let began = self.begin(flow)?;
        self.groups[group].state = State::Asked { began };
        if self.shared.scenario.flows[flow].is_stream() {
            self.advance(group);
        }
        Ok(())
    }

    /// Takes the answer to the current flow.
    fn finish_asked(&mut self, group: usize, began: Stamp) -> Result<(), FlowError> {
        self.finish(self.current(group), began)?;
        self.advance(group);
        Ok(())
    }

    fn advance(&mut self, group: usize) {
        self.groups[group].current = (self.groups[group].current + 1) % self.plan.groups[group].len();
        self.schedule(group);
    }

    /// Works, and sends a request or a message of `flow`. Returns when sending began.
    fn begin(&mut self, flow: usize) -> Result<Stamp, FlowError> {
        let shared = self.shared;
        let described = &shared.scenario.flows[flow];
        let number = self.next[flow];
        self.worker().work(self.draws(flow).value(&described.client_work, DrawKind::ClientWork, number), 1.0);
        let fds: Vec<BorrowedFd<'_>> =
            shared.passed.iter().take(described.fds as usize).map(AsFd::as_fd).collect();
        let end = end(&mut self.ends, flow)?;
        let began = shared.clock.now();
        let first = number * u64::from(described.messages);
        for message in first..first + u64::from(described.messages) {
            end.send(message, (&described.size, DrawKind::Size), &fds).map_err(|error| (flow, error))?;
        }
        if described.is_stream() {
            self.next[flow] += 1;
        }
        Ok(began)
    }

    /// Takes the answer to the request of `flow` that began then.
    fn finish(&mut self, flow: usize, began: Stamp) -> Result<(), FlowError> {
        let shared = self.shared;
        let described = &shared.scenario.flows[flow];
        let number = self.next[flow];
        if let Some(reply) = &described.reply {
            let end = end(&mut self.ends, flow)?;
            end.receive(number, (reply, DrawKind::Reply), 0, |_, _| ()).map_err(|error| (flow, error))?;
            let round_trip_ns = shared.clock.ns_between(began, shared.clock.now());
            let draws = self.draws(flow);
            let first = number * u64::from(described.messages);
            let size = |message| draws.value(&described.size, DrawKind::Size, message).0;
            let bytes: u64 = (first..first + u64::from(described.messages)).map(size).sum();
            shared.meters.count(flow, bytes, Some(round_trip_ns));
            self.next[flow] += 1;
        }
        Ok(())
    }

    /// Receives a request or a message of `flow`, works, begins what is after it, and answers. Of the messages of a stream it works for
    /// what has come before it waits for the rest: who packs a file works for what a read gave, however little.
    fn serve(&mut self, flow: usize) -> Result<(), FlowError> {
        let shared = self.shared;
        let described = &shared.scenario.flows[flow];
        let (mut number, mut bytes) = (self.next[flow], 0);
        for message in 0..u64::from(described.messages) {
            let due = number * u64::from(described.messages) + message;
            let (worker, draws) = (self.worker(), self.draws(flow));
            let work = |number, share| {
                if described.is_stream() {
                    worker.work(draws.value(&described.server_work, DrawKind::ServerWork, number), share);
                }
            };
            let came = end(&mut self.ends, flow)?.receive(
                due,
                (&described.size, DrawKind::Size),
                described.fds,
                work,
            );
            let (came, size) = came.map_err(|error| (flow, error))?;
            bytes += size;
            if described.messages == 1 {
                number = came;
            }
        }
        if !described.is_stream() {
            self.worker()
                .work(self.draws(flow).value(&described.server_work, DrawKind::ServerWork, number), 1.0);
        }
        for after in shared.scenario.caused_by(flow) {
            self.follow(after)?;
        }
        match &described.reply {
            Some(reply) => {
                let end = end(&mut self.ends, flow)?;
                end.send(number, (reply, DrawKind::Reply), &[]).map_err(|error| (flow, error))?;
            }
            None => shared.meters.count(flow, bytes, None),
        }
        self.next[flow] = number + 1;
        Ok(())
    }

    /// Begins and finishes as many messages of `flow`, which is after another, as are due for one of that.
    fn follow(&mut self, flow: usize) -> Result<(), FlowError> {
        /// What rounding may take away from a whole message.
        const ROUNDING: f64 = 1e-9;
        if let Begin::After { per_message, .. } = self.shared.scenario.flows[flow].begin {
            self.owed[flow] += per_message;
        }
        while self.owed[flow] >= 1.0 - ROUNDING {
            self.owed[flow] -= 1.0;
            let began = self.begin(flow)?;
            self.finish(flow, began)?;
        }
        Ok(())
    }

    fn worker(&self) -> Worker<'a> {
        Worker { alone: self.shared.work.as_ref(), steps_per_ns: self.steps_per_ns }
    }

    fn draws(&self, flow: usize) -> Draws {
        Draws::of_flow(self.shared.seed, flow)
    }
}

/// What computes, for all threads of a process.
#[derive(Clone, Copy)]
struct Worker<'a> {
    alone: Option<&'a Mutex<()>>,
    steps_per_ns: f64,
}

impl Worker<'_> {
    /// Computes for such a share of `time`.
    fn work(self, time: Nanoseconds, share: f64) {
        if time.0 == 0 {
            return;
        }
        let _alone = self.alone.map(|alone| alone.lock().unwrap_or_else(PoisonError::into_inner));
        multiply((time.0 as f64 * share * self.steps_per_ns).round() as u64);
    }
}

/// This thread's end of `flow`.
fn end(ends: &mut [Option<FlowEnd>], flow: usize) -> Result<&mut FlowEnd, FlowError> {
    ends[flow].as_mut().ok_or((flow, LoopError::Call { name: "find", errno: Errno::BADF }))
}
