//! The run of a simulation: events in order, the steps of processes, and what is counted.

mod streams;

use super::channel::Channel;
use super::cpus::Cpus;
use super::events::{Event, Events};
use super::homes::{Homes, Neighbours};
use super::process::{Arrived, SimulatedProcess, Step, ThreadState};
use super::setup::{Simulated, SimulationSetup, allowed};
use crate::predict::case_costs::FlowEnd;
use crate::predict::flow_costs::{EndCost, Ends, LateAnswer, WakeCost};
use model::Scenario;
use model::pace::Arrivals;
use model::scenario::{Begin, Behaviour, Concurrency, FlowBehaviour, Mix, MixValue, ProcessBehaviour};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Simulated time ends here, however few events there were.
const LONGEST_NS: u64 = 1_000_000_000_000;
/// The part of the events before anything is counted.
const WARM_UP: u64 = 5;

/// Runs `scenario` for as many events as `setup` says.
pub(in crate::predict) fn simulate(scenario: &Scenario, setup: &SimulationSetup<'_>) -> Simulated {
    let mut run = Run::new(scenario, setup);
    run.begin();
    let warm_up = setup.events / WARM_UP;
    for event in 0..setup.events {
        if event == warm_up {
            run.forget();
        }
        let next = run.events.next().or_else(|| run.unblock().then(|| run.events.next()).flatten());
        match next {
            Some((at_ns, event)) if at_ns <= LONGEST_NS => run.take(at_ns, event),
            _ => break,
        }
    }
    run.finish()
}

struct Run<'a> {
    scenario: &'a Scenario,
    setup: &'a SimulationSetup<'a>,
    caused: Vec<Vec<usize>>,
    events: Events,
    now_ns: u64,
    since_ns: u64,
    cpus: Cpus,
    processes: Vec<SimulatedProcess>,
    channels: Vec<Channel>,
    placing: SmallRng,
    /// Where threads are, if that was recorded.
    homes: Option<Homes>,
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, setup: &'a SimulationSetup<'a>) -> Self {
        let allowed = allowed(scenario, setup.cpus);
        let first = |(at, cpus): (usize, &Vec<usize>)| SimulatedProcess::new(cpus[at % cpus.len()]);
        let processes = allowed.iter().enumerate().map(first).collect();
        Self {
            caused: (0..scenario.flows.len()).map(|flow| scenario.caused_by(flow).collect()).collect(),
            homes: homes(scenario, setup, &allowed),
            cpus: Cpus::new(setup.cpus.len(), allowed),
            events: Events::default(),
            now_ns: 0,
            since_ns: 0,
            processes,
            channels: (0..scenario.flows.len()).map(|flow| Channel::new(setup.seed, flow)).collect(),
            placing: SmallRng::seed_from_u64(setup.seed),
            scenario,
            setup,
        }
    }

    /// Has every process begin its own flows.
    fn begin(&mut self) {
        for at in 0..self.processes.len() {
            for roots in self.scenario.root_groups(at) {
                let activity = self.processes[at].add(vec![Step::NextRoot], false, roots);
                self.processes[at].go_on(activity);
            }
            self.wake(at, None, WakeCost::default());
        }
    }

    /// Counts from now on.
    fn forget(&mut self) {
        self.since_ns = self.now_ns;
        for process in &mut self.processes {
            (process.cpu_ns, process.messages_ns, process.switches) = (0.0, 0.0, 0.0);
        }
        self.channels.iter_mut().for_each(Channel::forget);
    }

    fn finish(self) -> Simulated {
        let seconds = (self.now_ns.saturating_sub(self.since_ns)) as f64 / 1e9;
        let per_s = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        let flows = self.channels.iter().map(|channel| FlowBehaviour {
            per_s: per_s(channel.count as f64),
            round_trip_ns: (channel.answered > 0).then(|| channel.round_trips_ns / channel.answered as f64),
        });
        let processes = self.processes.iter().map(|process| ProcessBehaviour {
            cpu: per_s(process.cpu_ns) / 1e9,
            switches_per_s: per_s(process.switches),
        });
        let messages_cpu = self.processes.iter().map(|process| per_s(process.messages_ns) / 1e9);
        Simulated {
            messages_cpu: messages_cpu.collect(),
            behaviour: Behaviour { flows: flows.collect(), processes: processes.collect() },
            counts: self.channels.iter().map(|channel| channel.count).collect(),
            on_one_cpu: self.channels.iter().map(Channel::on_one_cpu).collect(),
        }
    }

    /// Where nothing is left to happen, processes wait for one another in a circle: one of them takes a request though it is at
    /// another. Whether there was one.
    fn unblock(&mut self) -> bool {
        let stuck = (0..self.processes.len()).find(|at| {
            let process = &self.processes[*at];
            process.state == ThreadState::Asleep && process.serving.is_some() && !process.inbox.is_empty()
        });
        let Some(at) = stuck else { return false };
        self.processes[at].serving = None;
        self.wake(at, None, WakeCost::default());
        true
    }

    fn take(&mut self, at_ns: u64, event: Event) {
        self.now_ns = at_ns;
        match event {
            Event::Begins(at) => self.dispatch(at),
            Event::Due(at, activity) => {
                self.processes[at].go_on(activity);
                // Whose flow it is decides how long waking takes.
                let flow = self.processes[at]
                    .activity(activity)
                    .and_then(|activity| activity.roots.first().copied());
                let cost = flow.map_or_else(WakeCost::default, |flow| self.wake_for_time(at, flow));
                self.wake(at, None, cost);
            }
            Event::Arrives(flow) => {
                let to = self.scenario.flows[flow].to;
                if let Some(message) = self.channels[flow].travelling.pop_front() {
                    self.processes[to].inbox.push_back(message);
                    let cost = self.message_wake(flow, FlowEnd::To, 0, self.processes[to].cpu);
                    self.wake(to, None, cost);
                }
            }
            Event::BurstEnds(at) => {
                let process = &mut self.processes[at];
                process.left_ns = process.left_ns.saturating_sub(process.slice_ns);
                process.had_ns += process.slice_ns;
                self.proceed(at);
            }
        }
    }

    /// What it takes until process `at`, whose think time before a message of `flow` is over, begins, if its CPU is idle.
    fn wake_for_time(&self, at: usize, flow: usize) -> WakeCost {
        let idle = self.cpus.idle_since(self.processes[at].cpu);
        idle.map_or_else(WakeCost::default, |since| {
            self.setup.costs[flow].wake_for_time(self.now_ns.saturating_sub(since) as f64)
        })
    }

    /// Wakes process `at`, if it sleeps and has something to do, on `cpu` if one was chosen. `cost` is what that takes: sleep on any CPU, the
    /// rest if it is idle.
    fn wake(&mut self, at: usize, cpu: Option<usize>, cost: WakeCost) {
        let process = &mut self.processes[at];
        if process.state != ThreadState::Asleep || !process.has_work() {
            return;
        }
        let home = || self.homes.as_mut().map(|homes| homes.of(at, self.now_ns));
        let cpu = cpu.or_else(home).unwrap_or_else(|| self.cpus.place(at, process.cpu, None, false));
        (process.state, process.cpu, process.slept) = (ThreadState::Ready, cpu, true);
        process.sleep = cost.slept;
        if self.cpus.idle_since(cpu).is_some() {
            self.cpus.occupy(cpu, at);
            self.processes[at].cpu_ns += cost.cpu_ns;
            self.events.add(self.now_ns + whole(cost.delay_ns), Event::Begins(at));
        } else {
            self.cpus.enqueue(cpu, at);
        }
    }

    /// Process `at` has its CPU.
    fn dispatch(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let sleep = std::mem::take(&mut process.sleep);
        (process.state, process.had_ns) = (ThreadState::Running, 0);
        process.left_ns += whole(sleep.path_ns);
        process.cpu_ns += sleep.cpu_ns;
        process.switches += sleep.switches;
        self.proceed(at);
    }

    /// The thread of `at` leaves its CPU, which the next one gets.
    fn leave(&mut self, at: usize, state: ThreadState) {
        let cpu = self.processes[at].cpu;
        self.processes[at].state = state;
        if state == ThreadState::Ready {
            self.processes[at].switches += 1.0;
            self.cpus.enqueue(cpu, at);
        }
        if let Some(next) = self.cpus.next(cpu, self.now_ns) {
            self.processes[next].cpu = cpu;
            self.events.add(self.now_ns, Event::Begins(next));
        }
    }

    /// Does the steps of the process `at`, which has a CPU, until one takes time.
    fn proceed(&mut self, at: usize) {
        loop {
            let process = &mut self.processes[at];
            let is_over = process.had_ns >= self.setup.quantum_ns && self.cpus.is_wanted(process.cpu);
            if is_over && process.has_work() {
                return self.leave(at, ThreadState::Ready);
            }
            if process.left_ns > 0 {
                process.slice_ns = process.left_ns.min(self.setup.quantum_ns);
                self.events.add(self.now_ns + process.slice_ns, Event::BurstEnds(at));
                return;
            }
            let next = process.current.take().or_else(|| process.next_ready()).or_else(|| self.receive(at));
            let Some(activity) = next else { return self.leave(at, ThreadState::Asleep) };
            self.processes[at].current = Some(activity);
            self.step(at, activity);
        }
    }

    /// Takes the first message that came for `at`, unless it is at another.
    fn receive(&mut self, at: usize) -> Option<usize> {
        let process = &mut self.processes[at];
        if process.serving.is_some() {
            return None;
        }
        let message = process.inbox.pop_front()?;
        let slept = std::mem::take(&mut process.slept);
        let flow = &self.scenario.flows[message.flow];
        let ends = Ends::of(message.is_together);
        let cost = if flow.is_stream() {
            self.read_cost(at, &message, slept)
        } else {
            self.message_cost(at, message.flow, FlowEnd::To, message.bytes, ends)
        };
        let mut steps = vec![Step::Done];
        if message.is_whole {
            if let Some(to) = message.answer_to {
                steps.push(Step::Answer { flow: message.flow, to });
            } else {
                self.channels[message.flow].count += 1;
            }
        }
        // A part of a message has its share of the work.
        if message.is_whole || flow.is_stream() {
            let channel = &mut self.channels[message.flow];
            let work_ns = draw(&flow.server_work, &mut channel.random) as f64;
            let rest = self.setup.rests[message.flow].answer;
            let work_ns = (work_ns + rest.work_ns).max(0.0) * message.share();
            let wait_ns = rest.wait_ns * message.share();
            if wait_ns > 0.0 {
                steps.push(Step::Pause { ns: whole(wait_ns) });
            }
            let causes = if message.is_whole { &self.caused[message.flow][..] } else { &[] };
            for cause in causes.iter().rev() {
                let Begin::After { per_message, .. } = self.scenario.flows[*cause].begin else { continue };
                let owed = &mut self.channels[*cause].owed;
                *owed += per_message;
                let left = owed.floor();
                *owed -= left;
                if left >= 1.0 {
                    steps.push(Step::Cause { flow: *cause, left: left as u64 });
                }
            }
            steps.push(Step::Work { path_ns: whole(work_ns), cpu_ns: work_ns });
        }
        steps.push(work(cost));
        self.processes[at].switches += cost.switches;
        let activity = self.processes[at].add(steps, true, Vec::new());
        let taken_ns = self.now_ns + whole(cost.path_ns);
        if let Some(activity) = self.processes[at].activity(activity) {
            activity.began_ns = taken_ns;
        }
        if self.scenario.processes[at].serves == Concurrency::InTurn {
            self.processes[at].serving = Some(activity);
        }
        Some(activity)
    }

    /// Does the next step of `activity` of process `at`.
    fn step(&mut self, at: usize, activity: usize) {
        let Some(step) = self.processes[at].activity(activity).and_then(|activity| activity.steps.pop())
        else {
            self.processes[at].current = None;
            return;
        };
        match step {
            Step::Sleep { until_ns } => {
                if until_ns > self.now_ns {
                    self.events.add(until_ns, Event::Due(at, activity));
                    self.processes[at].current = None;
                }
            }
            Step::Pause { ns } => {
                let until_ns = self.now_ns.saturating_add(ns);
                self.push(at, activity, [Step::Sleep { until_ns }]);
            }
            Step::Work { path_ns, cpu_ns } => {
                self.processes[at].left_ns = path_ns;
                self.processes[at].cpu_ns += cpu_ns;
            }
            Step::NextRoot => self.next_root(at, activity),
            Step::Begin { flow } => self.begin_flow(at, activity, flow),
            Step::Cause { flow, left } => {
                let more = (left > 1).then(|| Step::Cause { flow, left: left - 1 });
                self.push(at, activity, more.into_iter().chain([Step::Begin { flow }]));
            }
            Step::Send { flow, left } => self.send(at, activity, flow, left),
            Step::Sent { flow, bytes, is_together, cpu, left } => {
                let is_last = left <= 1;
                let answer_to = is_last.then_some(activity);
                let message =
                    Arrived { flow, bytes, whole_bytes: bytes, is_together, answer_to, is_whole: is_last };
                self.sent(at, activity, message, cpu, left);
            }
            Step::SendPart { flow, left_bytes, whole_bytes } => {
                self.send_part(at, activity, flow, left_bytes, whole_bytes);
            }
            Step::PartSent { part, cpu, left_bytes } => {
                let Arrived { flow, whole_bytes, .. } = part;
                let more = (left_bytes > 0).then_some(Step::SendPart { flow, left_bytes, whole_bytes });
                self.push(at, activity, more);
                self.part_sent(part, cpu);
            }
            Step::Answered { flow } => {
                let began_ns =
                    self.processes[at].activity(activity).map_or(self.now_ns, |activity| activity.began_ns);
                let channel = &mut self.channels[flow];
                channel.answered += 1;
                channel.count += 1;
                channel.round_trips_ns += self.now_ns.saturating_sub(began_ns) as f64;
            }
            Step::Answer { flow, to } => self.answer(at, activity, flow, to),
            Step::AnswerSent { flow, bytes, is_together, cpu, to, work_ns } => {
                let from = self.scenario.flows[flow].from;
                let ends = Ends::of(is_together);
                let cost = self.message_cost(from, flow, FlowEnd::From, bytes, ends);
                let slept = self.setup.costs[flow].slept(FlowEnd::From, bytes as f64, ends);
                let late = self.late_answer(flow, cpu, ends, work_ns);
                self.push(from, to, [Step::Answered { flow }, work(cost)]);
                self.processes[from].go_on(to);
                let cost = match late {
                    Some(late) => {
                        self.processes[from].cpu_ns += late.client_ns;
                        self.processes[from].switches += late.client_switches;
                        self.setup.costs[flow].answer_wake(bytes as f64, late)
                    }
                    None => self.message_wake(flow, FlowEnd::From, bytes, cpu),
                };
                self.wake(from, Some(cpu), WakeCost { slept, ..cost });
            }
            Step::Done => {
                self.processes[at].end(activity);
                self.processes[at].current = None;
            }
        }
    }

    fn push(&mut self, at: usize, activity: usize, steps: impl IntoIterator<Item = Step>) {
        if let Some(activity) = self.processes[at].activity(activity) {
            activity.steps.extend(steps);
        }
    }

    /// Chooses what `activity` begins next, and when.
    fn next_root(&mut self, at: usize, activity: usize) {
        let Some(root) = self.processes[at].activity(activity).map(|activity| {
            let root = activity.roots[activity.next_root % activity.roots.len()];
            activity.next_root = (activity.next_root + 1) % activity.roots.len();
            root
        }) else {
            return;
        };
        let channel = &mut self.channels[root];
        let rest = self.setup.rests[root].begin;
        let until_ns = match &self.scenario.flows[root].begin {
            Begin::Closed { think_time } => {
                let think_ns = draw(think_time, &mut channel.random) as f64;
                self.now_ns + whole((think_ns + rest.wait_ns).max(0.0))
            }
            Begin::Open(rate) => {
                let due_ns = whole(channel.due_ns);
                channel.due_ns += rate.interval_ns()
                    * match rate.arrivals {
                        Arrivals::Uniform => 1.0,
                        Arrivals::Poisson => -(1.0 - channel.random.random_range(0.0..1.0f64)).ln(),
                    };
                due_ns
            }
            Begin::After { .. } => self.now_ns,
        };
        self.push(at, activity, [Step::NextRoot, Step::Begin { flow: root }, Step::Sleep { until_ns }]);
    }

    /// Begins one request or message of `flow`: the work before it, then its messages.
    fn begin_flow(&mut self, at: usize, activity: usize, flow: usize) {
        let of = &self.scenario.flows[flow];
        let work_ns = draw(&of.client_work, &mut self.channels[flow].random) as f64;
        let rest = self.setup.rests[flow].begin;
        let work_ns = (work_ns + rest.work_ns).max(0.0);
        let send = Step::Send { flow, left: of.messages.max(1) };
        self.push(at, activity, [send, Step::Work { path_ns: whole(work_ns), cpu_ns: work_ns }]);
    }

    /// Sends the first of `left` messages of a request, or the message of a stream.
    fn send(&mut self, at: usize, activity: usize, flow: usize, left: u32) {
        let of = &self.scenario.flows[flow];
        if left == of.messages.max(1) {
            let now_ns = self.now_ns;
            if let Some(activity) = self.processes[at].activity(activity) {
                activity.began_ns = now_ns;
            }
        }
        let bytes = draw(&of.size, &mut self.channels[flow].random);
        if of.is_stream() {
            self.push(at, activity, [Step::SendPart { flow, left_bytes: bytes, whole_bytes: bytes }]);
            return;
        }
        let (cpu, ends) = self.receiver_place(at, of.to, flow);
        self.processes[at].slept = false;
        let cost = self.message_cost(at, flow, FlowEnd::From, bytes, ends);
        let cost = cost.and(self.interrupt(flow, FlowEnd::From, bytes, ends, cpu));
        let sent = Step::Sent { flow, bytes, is_together: ends == Ends::Together, cpu, left };
        self.push(at, activity, [sent, work(cost)]);
    }

    /// The message is with the kernel: its receiver is woken, and the sender goes on or waits for the answer.
    fn sent(&mut self, at: usize, activity: usize, message: Arrived, cpu: usize, left: u32) {
        let Arrived { flow, bytes, is_whole, is_together, .. } = message;
        let to = self.scenario.flows[flow].to;
        let ends = Ends::of(is_together);
        let slept = self.setup.costs[flow].slept(FlowEnd::To, bytes as f64, ends);
        let cost = self.message_wake(flow, FlowEnd::To, bytes, cpu);
        self.processes[to].inbox.push_back(message);
        self.wake(to, Some(cpu), WakeCost { slept, ..cost });
        if is_whole {
            self.processes[at].current = None;
        } else {
            self.push(at, activity, [Step::Send { flow, left: left - 1 }]);
        }
    }

    fn answer(&mut self, at: usize, activity: usize, flow: usize, to: usize) {
        let of = &self.scenario.flows[flow];
        let channel = &mut self.channels[flow];
        let bytes = of.reply.as_ref().map_or(0, |reply| draw(reply, &mut channel.random));
        let (cpu, ends) = self.receiver_place(at, of.from, flow);
        let cost = self.message_cost(at, flow, FlowEnd::To, bytes, ends);
        let cost = cost.and(self.interrupt(flow, FlowEnd::To, bytes, ends, cpu));
        let taken_ns =
            self.processes[at].activity(activity).map_or(self.now_ns, |activity| activity.began_ns);
        // What nothing explains may be anywhere in the round trip, and is no time that passes between receiving and answering.
        let rest = self.setup.rests[flow].answer;
        let unexplained_ns = whole(rest.ns().max(0.0));
        let work_ns = self.now_ns.saturating_sub(taken_ns + unexplained_ns);
        let late = self.late_answer(flow, cpu, ends, work_ns);
        let server_ns = late.map_or(0.0, |late| late.server_ns);
        let cost = cost.and(EndCost { path_ns: server_ns, cpu_ns: server_ns, switches: 0.0 });
        let is_together = ends == Ends::Together;
        let sent = Step::AnswerSent { flow, bytes, is_together, cpu, to, work_ns };
        self.push(at, activity, [sent, work(cost)]);
    }

    /// What an answer after `work_ns` takes besides, to a client that sleeps on `cpu`; `None` where that is not known, or where the CPU
    /// is not idle.
    fn late_answer(&self, flow: usize, cpu: usize, ends: Ends, work_ns: u64) -> Option<LateAnswer> {
        let is_asleep = ends == Ends::Apart && self.cpus.idle_since(cpu).is_some();
        self.setup.costs[flow].late_answer(work_ns as f64).filter(|_| is_asleep)
    }

    /// The CPU on which `receiver` will go on when process `at` sends to it, and whether that is the sender's.
    fn receiver_place(&mut self, at: usize, receiver: usize, flow: usize) -> (usize, Ends) {
        let own = self.processes[at].cpu;
        let process = &self.processes[receiver];
        let is_asleep = process.state == ThreadState::Asleep;
        let cpu = match &mut self.homes {
            Some(homes) if is_asleep => homes.of(receiver, self.now_ns),
            None if is_asleep => {
                let costs = &self.setup.costs[flow];
                let share = self.setup.rests[flow].stay.unwrap_or(costs.stay) + costs.stay_off;
                let stays = self.placing.random_range(0.0..1.0) < share;
                self.cpus.place(receiver, process.cpu, Some(own), stays)
            }
            _ => process.cpu,
        };
        self.channels[flow].sent += 1;
        self.channels[flow].sent_together += u64::from(cpu == own);
        (cpu, Ends::of(cpu == own))
    }

    /// What `end` of a flow with answers, which is process `at`, does for a message of `bytes`.
    fn message_cost(&mut self, at: usize, flow: usize, end: FlowEnd, bytes: u64, ends: Ends) -> EndCost {
        let rest = &self.setup.rests[flow];
        let rest = if end == FlowEnd::From { rest.begin } else { rest.answer };
        let cost = self.setup.costs[flow].answered(end, bytes as f64, ends).times(rest.message_factor);
        self.processes[at].messages_ns += cost.cpu_ns;
        cost
    }

    /// What it costs `end`, which sends `bytes`, besides if `cpu`, on which its receiver will go on, is idle.
    fn interrupt(&self, flow: usize, end: FlowEnd, bytes: u64, ends: Ends, cpu: usize) -> EndCost {
        let costs = &self.setup.costs[flow];
        self.cpus.idle_since(cpu).map_or_else(EndCost::default, |_| costs.interrupt(end, bytes as f64, ends))
    }

    /// What it takes until `end`, which is woken on `cpu` for a message, begins, if that CPU is idle.
    fn message_wake(&self, flow: usize, end: FlowEnd, bytes: u64, cpu: usize) -> WakeCost {
        let idle = self.cpus.idle_since(cpu);
        idle.map_or_else(WakeCost::default, |since| {
            let idle_ns = self.now_ns.saturating_sub(since) as f64;
            self.setup.costs[flow].wake(end, bytes as f64, idle_ns)
        })
    }
}

/// Where threads are, if that is known of the receivers of all flows.
fn homes(scenario: &Scenario, setup: &SimulationSetup<'_>, allowed: &[Vec<usize>]) -> Option<Homes> {
    let neighbours = (0..scenario.flows.len()).map(|at| {
        let flow = &scenario.flows[at];
        Some(Neighbours {
            processes: [flow.from, flow.to],
            per_s: flow.recorded.as_ref().map_or(0.0, |recorded| recorded.per_s),
            together: setup.rests[at].stay? + setup.costs[at].stay_off,
        })
    });
    Some(Homes::new(allowed.to_vec(), neighbours.collect::<Option<_>>()?, setup.seed))
}

/// A value of `mix`, in bytes or nanoseconds.
fn draw<T: MixValue>(mix: &Mix<T>, random: &mut SmallRng) -> u64 {
    whole(mix.at(random.random_range(0.0..1.0)).number())
}

/// The step that takes `cost`.
fn work(cost: EndCost) -> Step {
    Step::Work { path_ns: whole(cost.path_ns).max(1), cpu_ns: cost.cpu_ns }
}

/// Whole nanoseconds, of which no run needs more than [`LONGEST_NS`].
fn whole(ns: f64) -> u64 {
    // A cast takes what is no number as 0.
    (ns.round() as u64).min(LONGEST_NS)
}
