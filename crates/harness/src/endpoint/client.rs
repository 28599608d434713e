//! The client's side of a connected trial: it announces one phase after the other, keeps the clock and makes the sample.

use super::control::Link;
use super::injected::InjectedDelay;
use super::loop_error::LoopError;
use super::meters::{CallLog, IterationLog, StepLog, Watch, call_counts, each};
use super::network_meter::SliceNetwork;
use super::pacer::Pacer;
use super::phase_iterations::{
    GROWTH, LEAST_COMMON_PHASE_NS, LEAST_WARM_UP_ITERATIONS, MOST_ITERATIONS, PhaseIterations, growing_pieces,
};
use super::session::{Outcome, Session, WARM_UP_SHARE, observed_iterations};
use super::sides::{ClientSide, Extras, Watched};
use super::speed::SpeedReader;
use super::usage::usage_between;
use crate::clock::{Clock, Stamp};
use crate::protocol::error::{Blame, EndpointError};
use crate::protocol::message::{EndpointMessage, PeerMessage};
use crate::protocol::orders::{MOST_RECORDED_ITERATIONS, Singly, Sizing, SliceOrders};
use crate::protocol::phase::{Iterations, Phase, PhaseKind, ServerPhase};
use crate::protocol::report::{IterationTimes, SliceReport};
use model::observation::{Observation, Probe, ProbeRequest, ServedOn};
use model::record::{ClockSource, Each, Sample, Setting, StepSamples, TimedCalls, Usage};
use model::speed::{SpeedReading, SpeedReadings};
use model::{Case, EndpointRole, Pace, Peers, Workload};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ops::Range;
use sys::usage::of_this_thread;

/// How often the server of a stream waits at least while its messages are timed, where both endpoints share a CPU.
const LEAST_CYCLES: u64 = 16;
/// The most times as many messages as fill a slice.
const MOST_STRETCH: u64 = 32;
/// How many iterations of its last phases a client remembers while it goes on for other clients, which are served less often.
/// That is many short phases: where CPUs are busy, the message that all are done comes late.
const MOST_REMEMBERED: usize = 1 << 18;

/// The client of a connected trial.
pub(crate) struct Client<'a> {
    session: &'a Session,
    clock: Clock,
    /// An endpoint for every link of the session, in the same order.
    endpoints: Box<dyn ClientSide + 'a>,
    /// What goes with each message of a `session`.
    fds: Vec<OwnedFd>,
    /// What is injected in each iteration, if anything is.
    delay: Option<InjectedDelay>,
    speed: SpeedReader,
    /// Where the server may be on another host.
    network: Option<SliceNetwork>,
    /// By which descriptors the server's calls for this client are known, where it has said it.
    served_on: Option<ServedOn>,
    /// Where an endpoint was since the last slice instead of on its CPU.
    elsewhere: Option<u32>,
    /// How many iterations there were since the last slice, in all phases.
    iterations_so_far: u64,
    /// How many times as many messages of a stream are timed as fill a slice.
    stretch: u64,
    /// What an unchecked iteration took when it was last timed, in nanoseconds; absent until the trial is warm.
    iteration_ns: Option<f64>,
    /// Draws how many messages of a stream come before those that are timed.
    random: SmallRng,
}

/// What the client measured around the iterations of one phase.
pub(super) struct ClientPhase {
    /// The timed iterations together. Of a stream in its steady state, by the server's clock.
    pub(super) elapsed_ns: f64,
    usage: Usage,
    speed: Option<SpeedReadings>,
}

impl<'a> Client<'a> {
    /// The client of `session`, with an endpoint for each of its links.
    pub(crate) fn new(session: &'a Session, mut endpoints: Box<dyn ClientSide + 'a>) -> Outcome<Self> {
        let clock = Clock::new(session.orders.clock);
        let speed = match session.links.as_slice() {
            [link] if session.reads_pair() => SpeedReader::of_client(clock, link)?,
            _ => SpeedReader::new(clock, None),
        };
        let network = match endpoints.ends().as_slice() {
            [end] => session.network_meter(end.network_socket()),
            _ => None,
        };
        Ok(Self {
            session,
            clock,
            endpoints,
            fds: session.fds()?,
            delay: InjectedDelay::from_orders(&session.orders, EndpointRole::Client, &clock)?,
            speed,
            network: network.map(SliceNetwork::new),
            served_on: None,
            elsewhere: None,
            iterations_so_far: 0,
            stretch: 1,
            iteration_ns: None,
            random: SmallRng::seed_from_u64(session.orders.number),
        })
    }

    /// Measures one slice after the other until the coordinator wants no more.
    pub(crate) fn serve(mut self) -> Outcome<()> {
        let server_settings = self.receive_from_all("the server's settings", |message| match message {
            PeerMessage::Settings(settings) => Some(settings),
            _ => None,
        })?;
        self.session.tell(&EndpointMessage::Connected)?;
        while let Some(orders) = self.session.next_slice()? {
            let report = self.slice(orders, &server_settings)?;
            self.session.tell(&EndpointMessage::Slice(Box::new(report)))?;
        }
        self.send_to_all(&Phase { kind: PhaseKind::End, iterations: 0, check: false, reads_speed: false })
    }

    fn slice(&mut self, orders: SliceOrders, server_settings: &[Vec<Setting>]) -> Outcome<SliceReport> {
        let Case { pace, peers, .. } = self.session.orders.case;
        let before = self.session.elsewhere();
        let (sample, iteration_times, observation) = match (&self.session.orders.probe, peers, pace) {
            (Some(request), ..) => {
                let (sample, observation) = self.observed(orders, request)?;
                (sample, Vec::new(), Some(observation))
            }
            (None, ..) if orders.singly == Singly::Throughout && self.session.is_the_only_client() => {
                let (sample, ends) = self.logged(orders)?;
                (sample, vec![ends], None)
            }
            (None, Peers::Pair, Pace::BackToBack) => (self.back_to_back(orders)?, Vec::new(), None),
            (None, Peers::Pair, pace) => (self.paced(orders, pace)?, Vec::new(), None),
            _ => {
                let (sample, iteration_times) = self.among_peers(orders)?;
                (sample, iteration_times, None)
            }
        };
        let elsewhere = before.or(self.session.elsewhere()).or(self.elsewhere.take());
        let ends = self.endpoints.ends();
        let socket = ends.first().and_then(|end| end.network_socket());
        let network = self.network.as_mut().map(|network| network.slice(socket));
        let trial_iterations = std::mem::take(&mut self.iterations_so_far);
        let sample = Sample { trial_iterations, network, ..sample };
        let client_settings = ends.iter().flat_map(|end| end.settings());
        Ok(SliceReport {
            sample,
            settings: once_each(client_settings.chain(server_settings.iter().flatten().cloned())),
            iteration_times,
            served_on: self.served_on,
            observation,
            elsewhere,
        })
    }

    /// The phases of iterations that follow at once on one another.
    fn back_to_back(&mut self, orders: SliceOrders) -> Outcome<Sample> {
        let PhaseIterations { together, singly } = self.phase_iterations(orders)?;
        let (mut total, mut each, mut calls, mut steps) = (None, None, None, None);
        let order: &[bool] = match orders.singly {
            Singly::First => &[false, true],
            Singly::Last => &[true, false],
            Singly::Omitted | Singly::Throughout => &[true],
        };
        for is_total in order {
            match (*is_total, self.session.workload()) {
                (true, Workload::Throughput) => total = Some(self.stream(together, orders.size)?),
                (true, _) => total = Some((self.total(together, Watched::Nothing)?, together)),
                (false, Workload::Throughput) => calls = Some(self.calls(singly)?),
                (false, Workload::Session(_)) => {
                    each = Some(self.each(singly.div_ceil(2))?);
                    steps = Some(self.steps(singly.div_ceil(2))?);
                }
                (false, _) => each = Some(self.each(singly)?),
            }
        }
        let ((client, server), together) =
            total.ok_or_else(|| EndpointError::bug("measure", "the slice", "its total phase is missing"))?;
        self.iteration_ns = Some(client.elapsed_ns / together as f64);
        Ok(Sample {
            each,
            calls,
            steps,
            lost: server.lost,
            speed: client.speed,
            ..Sample::new(together, client.elapsed_ns, client.usage, Some(server.usage))
        })
    }

    /// The messages of a stream, timed together, and how many there were.
    ///
    /// On one CPU the client fills the buffers and the server empties them, one after the other. Where a few such cycles are timed,
    /// the result is where in a cycle the clock was read: then more messages are timed, in this slice and in those after it.
    fn stream(&mut self, together: u64, size: Sizing) -> Outcome<((ClientPhase, ServerPhase), u64)> {
        let is_exact = matches!(size, Sizing::Iterations(_));
        loop {
            let messages = together.saturating_mul(self.stretch).min(MOST_ITERATIONS);
            let (client, server) = self.total(messages, Watched::Nothing)?;
            let waits = server.usage.voluntary_switches + server.usage.involuntary_switches;
            let is_enough = !self.session.has_one_cpu() || waits >= LEAST_CYCLES;
            if is_enough || is_exact || self.stretch >= MOST_STRETCH {
                return Ok(((client, server), messages));
            }
            self.stretch *= 2;
        }
    }

    /// The one phase of a slice during which the CPUs are recorded: the same iterations as without, and when each ended. Of the only
    /// client there is.
    fn logged(&mut self, orders: SliceOrders) -> Outcome<(Sample, IterationTimes)> {
        if self.session.orders.case.pace != Pace::BackToBack {
            return Err(EndpointError {
                remedy: "leave out --rate and --think-time".to_owned(),
                ..EndpointError::bug("record", "the CPUs", "that is done of iterations back to back")
            });
        }
        let iterations = self.phase_iterations(orders)?.together.min(MOST_RECORDED_ITERATIONS);
        let mut log = IterationLog::new(Clock::new(ClockSource::MonotonicRaw), iterations);
        let (client, server) = self.total(iterations, Watched::Logged(&mut log))?;
        let sample = Sample {
            lost: server.lost,
            speed: client.speed,
            ..Sample::new(iterations, client.elapsed_ns, client.usage, Some(server.usage))
        };
        Ok((sample, log.times()))
    }

    /// The one phase of iterations before which the client waits: each is timed, so that the waits do not count.
    fn paced(&mut self, orders: SliceOrders, pace: Pace) -> Outcome<Sample> {
        let PhaseIterations { together, .. } = self.phase_iterations(orders)?;
        let mut pacer = Pacer::new(pace, self.clock, together, self.random.random())
            .ok_or_else(|| EndpointError::bug("pace", "the iterations", "they have no pace"))?;
        let (client, server) = self.total(together, Watched::Paced(&mut pacer))?;
        let elapsed_ns = self.clock.ns(pacer.ticks.iter().sum());
        let each = Some(each(&self.clock, &pacer.ticks));
        Ok(Sample {
            each,
            schedule: pacer.schedule(),
            speed: client.speed,
            ..Sample::new(together, elapsed_ns, client.usage, Some(server.usage))
        })
    }

    /// The phase in which iterations are timed together, with the speed of the CPUs before and after it.
    fn total(&mut self, iterations: u64, watched: Watched<'_>) -> Outcome<(ClientPhase, ServerPhase)> {
        let is_stream = self.session.workload() == Workload::Throughput;
        let is_paced = self.session.orders.case.pace != Pace::BackToBack;
        let kind = if is_stream && !is_paced { self.steady(iterations) } else { PhaseKind::Total };
        let reads_speed = self.session.reads_speed();
        self.phase(Phase { kind, iterations, check: false, reads_speed }, watched)
    }

    /// A stream of so many timed messages. The run-up is of random length, so that the buffers are not at the same point of their cycle in
    /// every slice: it is a cycle or two, of which at least [`LEAST_CYCLES`] are timed on one CPU. What follows is a cycle there too; on two
    /// CPUs, where nobody knows how many messages are on their way, it is half as many as are timed.
    fn steady(&mut self, iterations: u64) -> PhaseKind {
        let cycle = iterations / LEAST_CYCLES;
        let run_up = self.random.random_range(cycle..=3 * cycle);
        let run_out = if self.session.has_one_cpu() { run_up } else { iterations / 2 };
        PhaseKind::Steady { run_up, run_out }
    }

    /// Several peers at once: each client goes on, phase after phase, until every client has measured one whole phase. It notes
    /// when its iterations were over, or the server when its messages came, so that the coordinator can tell what all did at
    /// the same time.
    fn among_peers(&mut self, orders: SliceOrders) -> Outcome<(Sample, Vec<IterationTimes>)> {
        let is_answered = self.session.workload().is_answered();
        // What the kernel records beside the iterations is stamped by this clock.
        let clock = Clock::new(orders.singly.clock(self.session.orders.clock));
        let iterations = self.iterations_among_peers(orders, is_answered)?;
        let phase = Phase { kind: PhaseKind::Common, iterations, check: false, reads_speed: false };
        let (mut all, mut times) =
            (Sample::new(0, 0.0, Usage::default(), Some(Usage::default())), Vec::new());
        self.session.wait_for_the_others()?;
        // One more phase when all have measured one, so that every client was at work while the last of them measured.
        let mut is_last = self.session.is_the_only_client();
        loop {
            let mut log = IterationLog::new(clock, if is_answered { iterations } else { 0 });
            // Where iterations are not answered, the server notes when messages came, which is when they are over.
            let watched = if is_answered { Watched::Logged(&mut log) } else { Watched::Nothing };
            let (client, server) = self.phase(phase, watched)?;
            times.push(match server.times {
                None => log.times(),
                Some(arrivals) => arrivals,
            });
            while times.len() > 1
                && times.iter().map(|phase| phase.ticks.len()).sum::<usize>() > MOST_REMEMBERED
            {
                times.remove(0);
            }
            all = Sample {
                iterations: all.iterations + iterations,
                elapsed_ns: all.elapsed_ns + client.elapsed_ns,
                client: all.client + client.usage,
                server: all.server.map(|so_far| so_far + server.usage),
                lost: server.lost.map(|lost| all.lost.unwrap_or(0) + lost),
                ..all
            };
            if is_last {
                break;
            }
            if all.iterations == iterations {
                self.session.report_first_phase()?;
            }
            is_last = self.session.others_are_done()?;
        }
        let ticks: Vec<u64> = times.iter().flat_map(|phase| phase.ticks.iter().copied()).collect();
        Ok((Sample { each: is_answered.then(|| each(&clock, &ticks)), ..all }, times))
    }

    /// How many iterations a phase of several peers is to have.
    fn iterations_among_peers(&mut self, orders: SliceOrders, is_answered: bool) -> Outcome<u64> {
        let Sizing::Slice { slice_ns, hint_ns } = orders.size else {
            return Ok(self.phase_iterations(orders)?.together);
        };
        let size = Sizing::Slice { slice_ns: slice_ns.max(LEAST_COMMON_PHASE_NS), hint_ns };
        let together = self.phase_iterations(SliceOrders { size, singly: Singly::Omitted })?.together;
        Ok(together.min(if is_answered { IterationLog::CAPACITY } else { MOST_ITERATIONS }))
    }

    /// Announces a phase to the server, runs the client's side of it, and takes the server's account of it.
    fn phase(&mut self, phase: Phase, mut watched: Watched<'_>) -> Outcome<(ClientPhase, ServerPhase)> {
        self.announce(phase)?;
        let Iterations { lead_in, settling, timed, lead_out } = Iterations::from_phase(&phase);
        let is_steady = matches!(phase.kind, PhaseKind::Steady { .. });
        self.iterations(lead_in, Watched::Nothing)?;
        let pair_before_ns = phase.reads_speed.then(|| self.speed.pair_ns()).flatten();
        let cpu_before_ns = phase.reads_speed.then(|| self.speed.cpu_ns());
        match is_steady {
            true => self.endpoints.stream(settling, self.delay, Watched::Nothing)?,
            false => self.iterations(settling, Watched::Nothing)?,
        }
        self.cool()?;
        let workload = self.session.workload();
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        let extras = Extras { fds: &fds, delay: self.delay };
        let before = of_this_thread();
        watched.start();
        let start = self.clock.now();
        match is_steady {
            true => self.endpoints.stream(timed, self.delay, watched)?,
            false => self.endpoints.run(workload, timed, extras, watched)?,
        }
        let end = self.clock.now();
        let after = of_this_thread();
        // Of a stream, the messages are still on their way: their speed is read when all have come.
        let cpu_after_ns = (phase.reads_speed && !is_steady).then(|| self.speed.cpu_ns());
        self.iterations(lead_out, Watched::Nothing)?;
        let cpu_after_ns = cpu_after_ns.or_else(|| phase.reads_speed.then(|| self.speed.cpu_ns()));
        let pair_after_ns = phase.reads_speed.then(|| self.speed.pair_ns()).flatten();
        let server = self.server_phase()?;
        let reading = |before: Option<f64>, after: Option<f64>| {
            Some(SpeedReading { before_ns: before?, after_ns: after? })
        };
        let speed = reading(cpu_before_ns, cpu_after_ns).map(|client| SpeedReadings {
            client,
            server: server.speed,
            pair: reading(pair_before_ns, pair_after_ns),
        });
        let elapsed_ns = server.steady_ns.unwrap_or_else(|| self.clock.ns_between(start, end));
        Ok((ClientPhase { elapsed_ns, usage: usage_between(before, after), speed }, server))
    }

    /// The phase in which a probe observes both endpoints, switched on after the lead-in and off before the lead-out.
    fn observed(&mut self, orders: SliceOrders, request: &ProbeRequest) -> Outcome<(Sample, Observation)> {
        let PhaseIterations { together, .. } = self.phase_iterations(orders)?;
        let iterations = observed_iterations(together, orders.size, request);
        let phase = Phase { kind: PhaseKind::Observed, iterations, check: false, reads_speed: false };
        self.announce(phase)?;
        let addresses = match self.endpoints.ends().as_slice() {
            [end] => end.addresses(),
            _ => {
                return Err(EndpointError {
                    remedy: "leave out --peers".to_owned(),
                    ..EndpointError::bug("observe", "the trial", "a probe observes one server")
                });
            }
        };
        let mut probe = self.session.attach(addresses)?;
        self.await_servers()?;
        let Iterations { lead_in, settling, timed, lead_out } = Iterations::from_phase(&phase);
        // By the clock of all that probes see, so that iterations can be laid beside it.
        let mut log = IterationLog::new(Clock::new(ClockSource::MonotonicRaw), iterations);
        self.iterations(lead_in, Watched::Nothing)?;
        self.iterations(settling, Watched::Nothing)?;
        self.cool()?;
        probe.begin()?;
        log.start();
        let start = self.clock.now();
        match request.probe {
            Some(Probe::Timeline) => self.iterations(timed, Watched::Logged(&mut log))?,
            _ => self.iterations(timed, Watched::Nothing)?,
        }
        let elapsed_ns = self.clock.ns_between(start, self.clock.now());
        probe.end()?;
        self.iterations(lead_out, Watched::Nothing)?;
        let observation = Observation {
            iterations,
            elapsed_ns,
            iteration_ends_ns: log.times().ends().map(Stamp::ticks).collect(),
            client: probe.observation()?,
            server: self.server_phase()?.observation,
        };
        Ok((Sample::new(iterations, elapsed_ns, Usage::default(), None), observation))
    }

    /// The client's side of `iterations`.
    fn iterations(&mut self, iterations: Range<u64>, watched: Watched<'_>) -> Result<(), LoopError> {
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        let extras = Extras { fds: &fds, delay: self.delay };
        self.endpoints.run(self.session.workload(), iterations, extras, watched)
    }

    /// Makes the memory of the endpoints cold, where it is to be.
    fn cool(&mut self) -> Result<(), LoopError> {
        match self.session.has_cold_memory() {
            true => self.endpoints.ends().iter_mut().try_for_each(|end| end.cool()),
            false => Ok(()),
        }
    }

    /// The phase in which every iteration is timed.
    fn each(&mut self, iterations: u64) -> Outcome<Each> {
        let mut log = IterationLog::new(self.clock, iterations);
        let phase = Phase { kind: PhaseKind::Total, iterations, check: false, reads_speed: false };
        self.phase(phase, Watched::Logged(&mut log))?;
        Ok(each(&self.clock, &log.ticks))
    }

    /// The phase in which every send and receive call is timed.
    fn calls(&mut self, messages: u64) -> Outcome<TimedCalls> {
        let mut log = CallLog::new(self.clock);
        let phase = Phase { kind: PhaseKind::Calls, iterations: messages, check: false, reads_speed: false };
        self.announce(phase)?;
        let iterations = Iterations::from_phase(&phase);
        for range in iterations.ranges() {
            match range == iterations.timed {
                true => self.endpoints.calls(range, &mut log)?,
                false => self.iterations(range, Watched::Nothing)?,
            }
        }
        let server = self.server_phase()?;
        let receive = server.calls.ok_or_else(|| missing("calls"))?;
        Ok(TimedCalls { messages, send: call_counts(&log, &self.clock), receive })
    }

    /// The phase in which every step of every message is timed.
    fn steps(&mut self, sessions: u64) -> Outcome<StepSamples> {
        let mut log = StepLog::new(self.clock);
        let phase = Phase { kind: PhaseKind::Steps, iterations: sessions, check: false, reads_speed: false };
        self.announce(phase)?;
        let Iterations { lead_in, settling, timed, lead_out } = Iterations::from_phase(&phase);
        self.iterations(lead_in, Watched::Nothing)?;
        self.iterations(settling, Watched::Nothing)?;
        if let Workload::Session(session) = self.session.workload() {
            let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
            self.endpoints.steps(timed, session, &fds, &mut log)?;
        }
        self.iterations(lead_out, Watched::Nothing)?;
        let server = self.server_phase()?;
        Ok(StepSamples { client: log.by_name(), server: server.steps.ok_or_else(|| missing("steps"))? })
    }

    fn announce(&mut self, phase: Phase) -> Outcome<()> {
        self.iterations_so_far += Iterations::from_phase(&phase).count();
        self.session.expect(phase.iterations, self.iteration_ns.unwrap_or(0.0))?;
        let checks = self.session.check(phase.check);
        self.endpoints.ends().iter_mut().for_each(|end| end.check(checks));
        self.send_to_all(&phase)?;
        // By way of the coordinator an announcement may come long after the first message, which then waits or is lost.
        let is_relayed = phase.kind != PhaseKind::Observed && self.session.links.iter().any(Link::is_relayed);
        if is_relayed { self.await_servers() } else { Ok(()) }
    }

    /// Waits until every server is ready for the phase that was announced.
    fn await_servers(&self) -> Outcome<()> {
        let ready = |message| matches!(message, PeerMessage::Ready).then_some(());
        self.receive_from_all("that the server is ready", ready).map(drop)
    }

    fn send_to_all(&self, phase: &Phase) -> Outcome<()> {
        self.session.links.iter().try_for_each(|link| link.send(PeerMessage::Phase(*phase), &[]))
    }

    /// What every server says next, if `take` finds it to be `what`.
    fn receive_from_all<T>(&self, what: &str, take: impl Fn(PeerMessage) -> Option<T>) -> Outcome<Vec<T>> {
        self.session.links.iter().map(|link| link.receive(what, &take).map(|(message, _)| message)).collect()
    }

    /// What the server says of the phase that is over; of several servers, what they used and lost together.
    fn server_phase(&mut self) -> Outcome<ServerPhase> {
        let mut rest = self.receive_from_all("the server's account of a phase", |message| match message {
            PeerMessage::Done(phase) => Some(*phase),
            _ => None,
        })?;
        let usage = rest.iter().map(|server| server.usage).sum();
        let mut first =
            rest.pop().ok_or_else(|| EndpointError::bug("receive from", "the server", "there is none"))?;
        if let (Some(network), Some(readings)) = (&mut self.network, first.network.take()) {
            network.server_read(readings);
        }
        self.served_on = first.served_on;
        let strayed = rest.iter().chain([&first]).find_map(|server| server.elsewhere);
        self.elsewhere = self.elsewhere.or(strayed);
        let lost = first.lost.map(|first| first + rest.iter().filter_map(|server| server.lost).sum::<u64>());
        Ok(ServerPhase { usage, lost, ..first })
    }
}

impl Client<'_> {
    /// How many iterations the phases of a slice are to have. The first slice of a trial begins with a warm-up.
    pub(super) fn phase_iterations(&mut self, orders: SliceOrders) -> Outcome<PhaseIterations> {
        let pace = self.session.orders.case.pace;
        match orders.size {
            Sizing::Iterations(iterations) => {
                self.warm_up_exactly(iterations)?;
                Ok(PhaseIterations { together: iterations, singly: iterations.min(IterationLog::CAPACITY) })
            }
            Sizing::Slice { slice_ns, hint_ns } => {
                let iteration_ns = match self.iteration_ns {
                    Some(iteration_ns) => iteration_ns,
                    None => self.warm_up(slice_ns as f64, hint_ns)?,
                };
                self.iteration_ns = Some(iteration_ns);
                Ok(PhaseIterations::filling(slice_ns, iteration_ns, pace, orders.singly))
            }
        }
    }

    /// As many checked iterations as a phase has, in pieces that grow, so that the coordinator can be told how long the next takes.
    fn warm_up_exactly(&mut self, iterations: u64) -> Outcome<()> {
        if self.iteration_ns.is_some() {
            return Ok(());
        }
        for piece in growing_pieces(iterations) {
            self.iteration_ns = Some(self.time(piece, true)?);
        }
        Ok(())
    }

    /// Iterations back to back, with every byte checked, until there were enough of them and they took long enough. Returns what
    /// one takes that is not checked: to make and to verify a long message may take many times as long as to send it.
    fn warm_up(&mut self, slice_ns: f64, hint_ns: Option<f64>) -> Outcome<f64> {
        let enough_ns = slice_ns * WARM_UP_SHARE;
        self.repeat(enough_ns, slice_ns, true)?;
        // What a paced iteration took before counts from when it was due.
        match hint_ns.filter(|_| self.session.orders.case.pace == Pace::BackToBack) {
            Some(hint_ns) => Ok(hint_ns),
            None => self.repeat(enough_ns / 2.0, slice_ns, false),
        }
    }

    /// Phases that grow until they took `enough_ns`. Returns what an iteration took in the last.
    fn repeat(&mut self, enough_ns: f64, most_ns: f64, check: bool) -> Outcome<f64> {
        let (mut iterations, mut ns_so_far) = (LEAST_WARM_UP_ITERATIONS, 0.0);
        loop {
            // One slow iteration may fill a slice: a warm-up of many would take longer than the measurement.
            let iteration_ns = self.time(iterations, check)?;
            ns_so_far += iteration_ns * iterations as f64;
            if ns_so_far >= enough_ns.min(most_ns) || iterations == MOST_ITERATIONS {
                return Ok(iteration_ns);
            }
            iterations = ((enough_ns / iteration_ns) as u64)
                .clamp(iterations, iterations.saturating_mul(GROWTH))
                .min(MOST_ITERATIONS);
        }
    }

    /// What an iteration takes in a phase of so many, in nanoseconds.
    fn time(&mut self, iterations: u64, check: bool) -> Outcome<f64> {
        let phase = Phase { kind: PhaseKind::Total, iterations, check, reads_speed: false };
        let (client, _) = self.phase(phase, Watched::Nothing)?;
        Ok(client.elapsed_ns.max(1.0) / iterations as f64)
    }
}

/// What a server did not note though it was told to.
fn missing(what: &str) -> EndpointError {
    EndpointError::bug("receive", what, "the server noted none").blaming(Blame::Peer)
}

/// The client's settings, and those of the server that differ from them.
fn once_each(settings: impl Iterator<Item = Setting>) -> Vec<Setting> {
    let mut different: Vec<Setting> = Vec::new();
    for setting in settings {
        if !different.contains(&setting) {
            different.push(setting);
        }
    }
    different
}
