//! The client's side of a connected trial: it announces one phase after the other, keeps the clock and makes the sample.

use super::buffered::BufferedEndpoint;
use super::injected::{Injected, InjectedDelay};
use super::loop_error::LoopError;
use super::loops::{ask_all, stream_to_all};
use super::meters::{
    CallLog, IterationLog, StepLog, StepMeter, Unmetered, Unwatched, Watch, call_counts, each,
};
use super::pacer::{Pacer, wall_ns};
use super::sample::{sample, usage_between};
use super::session::{LEAST_WARM_UP_ITERATIONS, Outcome, Session, WARM_UP_SHARE, observed_iterations};
use crate::clock::{Clock, Stamp};
use crate::protocol::channel::Channel;
use crate::protocol::error::{Blame, EndpointError};
use crate::protocol::orders::Sizing;
use crate::protocol::phase::{Iterations, Phase, PhaseKind, ServerPhase};
use crate::protocol::report::{IterationTimes, TrialReport};
use mechanisms::{Endpoint, NoTrace};
use model::observation::{Observation, Probe, ProbeRequest};
use model::record::{ClockSource, Each, Sample, Setting, StepSamples, TimedCalls, Usage};
use model::{Case, Pace, Peers, Workload};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use serde::de::DeserializeOwned;
use std::ops::Range;
use sys::usage::of_this_thread;

/// The most iterations of a phase, however short they are.
const MOST_ITERATIONS: u64 = 1 << 32;
/// The share of a trial's slice that goes to the `total` iterations; the rest goes to iterations, calls or steps timed singly.
const TOTAL_SHARE: f64 = 0.6;

/// What a phase of several peers takes at least: some time slices of the kernel's scheduler, or else peers that share a CPU
/// would do their iterations one after the other.
const LEAST_COMMON_PHASE_NS: f64 = 20e6;
/// How many iterations of its last phases a client remembers while it goes on for other clients, which are served less often.
/// That is many short phases: where CPUs are busy, the message that all are done comes late.
const MOST_REMEMBERED: usize = 1 << 18;

/// The client of a connected trial.
pub(crate) struct Client<'a, E> {
    pub(crate) session: &'a Session,
    /// To every server.
    pub(crate) links: &'a [Channel],
    pub(crate) clock: Clock,
    /// One for every server, in the same order.
    pub(crate) endpoints: Vec<Box<BufferedEndpoint<E>>>,
    /// What goes with each message of a `session`.
    pub(crate) fds: Vec<OwnedFd>,
    /// What is injected in each timed iteration, if anything is.
    pub(crate) delay: Option<InjectedDelay>,
    /// How many iterations there were so far, in all phases.
    pub(crate) trial_iterations: u64,
}

/// What the client measured around the iterations of one phase.
struct ClientPhase {
    elapsed_ns: f64,
    usage: Usage,
}

impl<E: Endpoint> Client<'_, E> {
    pub(crate) fn measure(mut self) -> Outcome<TrialReport> {
        let server_settings: Vec<Vec<Setting>> = self.receive_from_all()?;
        let Case { pace, peers, .. } = self.session.orders.case;
        let (sample, iteration_times, observation) = match (&self.session.orders.probe, peers, pace) {
            (Some(request), ..) => {
                let (sample, observation) = self.observed(request)?;
                (sample, Vec::new(), Some(observation))
            }
            (None, Peers::Pair, Pace::BackToBack) => (self.back_to_back()?, Vec::new(), None),
            (None, Peers::Pair, pace) => (self.paced(pace)?, Vec::new(), None),
            _ => {
                let (sample, iteration_times) = self.among_peers()?;
                (sample, iteration_times, None)
            }
        };
        self.send_to_all(&Phase { kind: PhaseKind::End, iterations: 0, check: false })?;
        let sample = Sample { trial_iterations: self.trial_iterations, ..sample };
        let client_settings = self.endpoints.iter().flat_map(|endpoint| endpoint.inner.settings());
        Ok(TrialReport {
            sample,
            settings: once_each(client_settings.chain(server_settings.into_iter().flatten())),
            iteration_times,
            observation,
        })
    }

    /// The phases of iterations that follow at once on one another. Which comes first alternates from trial to trial.
    fn back_to_back(&mut self) -> Outcome<Sample> {
        let (total_iterations, single_iterations) = self.warm_up()?;
        let (mut total, mut each, mut calls, mut steps) = (None, None, None, None);
        let singly_first = self.session.orders.number % 2 == 1;
        let order = if singly_first { [false, true] } else { [true, false] };
        for is_total in order {
            match (is_total, self.session.workload()) {
                (true, _) => {
                    total = Some(self.phase(PhaseKind::Total, total_iterations, false, &mut Unwatched)?);
                }
                (false, Workload::Throughput) => calls = Some(self.calls(single_iterations)?),
                (false, Workload::Session(_)) => {
                    each = Some(self.each(single_iterations.div_ceil(2))?);
                    steps = Some(self.steps(single_iterations.div_ceil(2))?);
                }
                (false, _) => each = Some(self.each(single_iterations)?),
            }
        }
        let (client, server) =
            total.ok_or_else(|| EndpointError::bug("measure", "the trial", "its total phase is missing"))?;
        Ok(Sample {
            each,
            calls,
            steps,
            lost: server.lost,
            ..sample(total_iterations, client.elapsed_ns, client.usage, Some(server.usage))
        })
    }

    /// The one phase of iterations before which the client waits: each is timed, so that the waits do not count.
    fn paced(&mut self, pace: Pace) -> Outcome<Sample> {
        let (iterations, _) = self.warm_up()?;
        let seed = self.session.orders.number;
        let mut pacer = Pacer::new(pace, self.clock, iterations, seed)
            .ok_or_else(|| EndpointError::bug("pace", "the iterations", "they have no pace"))?;
        let (client, server) = self.phase(PhaseKind::Total, iterations, false, &mut pacer)?;
        let elapsed_ns = self.clock.ns(pacer.ticks.iter().sum());
        let each = Some(each(&self.clock, &pacer.ticks));
        Ok(Sample {
            each,
            schedule: pacer.schedule(),
            ..sample(iterations, elapsed_ns, client.usage, Some(server.usage))
        })
    }

    /// Several peers at once: each client goes on, phase after phase, until every client has measured one whole phase. It notes
    /// when its iterations were over, or the server when its messages came, so that the coordinator can tell what all did at
    /// the same time.
    fn among_peers(&mut self) -> Outcome<(Sample, Vec<IterationTimes>)> {
        let is_answered = self.session.workload().is_answered();
        let iterations = self.iterations_among_peers(is_answered)?;
        let (mut all, mut times) = (sample(0, 0.0, Usage::default(), Some(Usage::default())), Vec::new());
        self.session.wait_for_the_others()?;
        // One more phase when all have measured one, so that every client was at work while the last of them measured.
        let mut is_last = self.session.is_the_only_client();
        loop {
            let mut log = IterationLog::new(self.clock, if is_answered { iterations } else { 0 });
            // Where iterations are not answered, the server notes when messages came, which is when they are over.
            let (client, server) = if is_answered {
                self.phase(PhaseKind::Common, iterations, false, &mut log)?
            } else {
                self.phase(PhaseKind::Common, iterations, false, &mut Unwatched)?
            };
            times.push(match server.times {
                None => IterationTimes { start: log.start, ticks: log.ticks, stride: 1 },
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
        Ok((Sample { each: is_answered.then(|| each(&self.clock, &ticks)), ..all }, times))
    }

    /// How many iterations a phase of several peers is to have.
    fn iterations_among_peers(&mut self, is_answered: bool) -> Outcome<u64> {
        let (iterations, _) = self.warm_up()?;
        let Sizing::Slice { slice_ns, .. } = self.session.orders.size else { return Ok(iterations) };
        let longer = (LEAST_COMMON_PHASE_NS / (slice_ns as f64 * TOTAL_SHARE)).max(1.0);
        Ok(((iterations as f64 * longer) as u64).min(if is_answered {
            IterationLog::CAPACITY
        } else {
            MOST_ITERATIONS
        }))
    }

    /// Does iterations back to back, with every byte checked, until there were enough of them and they took long enough.
    /// Returns how many iterations the phases are to have in which iterations are timed together, and singly.
    fn warm_up(&mut self) -> Outcome<(u64, u64)> {
        let (slice_ns, hint_ns) = match self.session.orders.size {
            Sizing::Iterations(iterations) => {
                self.phase(PhaseKind::Total, iterations, true, &mut Unwatched)?;
                return Ok((iterations, iterations.min(IterationLog::CAPACITY)));
            }
            Sizing::Slice { slice_ns, hint_ns } => (slice_ns as f64, hint_ns),
        };
        let enough_ns = slice_ns * WARM_UP_SHARE;
        let fitting = |ns: f64, iteration_ns: f64| ((ns / iteration_ns) as u64).max(1);
        let mut iterations = hint_ns
            .map_or(LEAST_WARM_UP_ITERATIONS, |hint| fitting(enough_ns, hint).max(LEAST_WARM_UP_ITERATIONS));
        let (mut iterations_so_far, mut ns_so_far) = (0, 0.0);
        loop {
            // One slow iteration may fill a slice: a warm-up of many would take longer than the measurement.
            let (phase, _) = self.phase(PhaseKind::Total, iterations, true, &mut Unwatched)?;
            iterations_so_far += iterations;
            ns_so_far += phase.elapsed_ns;
            let iteration_ns = phase.elapsed_ns.max(1.0) / iterations as f64;
            let warm = iterations_so_far >= LEAST_WARM_UP_ITERATIONS && ns_so_far >= enough_ns;
            if warm || ns_so_far >= slice_ns || iterations == MOST_ITERATIONS {
                let wall_ns = wall_ns(self.session.orders.case.pace, iteration_ns);
                let single_iterations =
                    fitting(slice_ns * (1.0 - TOTAL_SHARE), wall_ns).min(IterationLog::CAPACITY);
                return Ok((
                    fitting(slice_ns * TOTAL_SHARE, wall_ns).min(MOST_ITERATIONS),
                    single_iterations,
                ));
            }
            iterations = fitting(enough_ns, iteration_ns)
                .clamp(iterations, iterations.saturating_mul(16))
                .min(MOST_ITERATIONS);
        }
    }

    /// Announces a phase to the server, runs the client's side of it, and takes the server's account of it.
    fn phase<W: Watch>(
        &mut self,
        kind: PhaseKind,
        iterations: u64,
        check: bool,
        watch: &mut W,
    ) -> Outcome<(ClientPhase, ServerPhase)> {
        self.announce(kind, iterations, check)?;
        let Iterations { lead_in, timed, lead_out } = Iterations::of(iterations);
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        let (workload, endpoints) = (self.session.workload(), &mut self.endpoints[..]);
        run(endpoints, workload, lead_in, &fds, &mut NoTrace, &mut Unwatched)?;
        watch.start();
        let before = of_this_thread();
        let start = self.clock.now();
        run_injected(endpoints, workload, timed, &fds, self.delay, watch)?;
        let end = self.clock.now();
        let usage = usage_between(before, of_this_thread());
        run(endpoints, workload, lead_out, &fds, &mut NoTrace, &mut Unwatched)?;
        let server = self.server_phase()?;
        Ok((ClientPhase { elapsed_ns: self.clock.ns_between(start, end), usage }, server))
    }

    /// The phase in which a probe observes both endpoints. It is switched on after the lead-in and off before the lead-out, so
    /// that it sees the timed iterations and nothing else.
    fn observed(&mut self, request: &ProbeRequest) -> Outcome<(Sample, Observation)> {
        let iterations = observed_iterations(self.warm_up()?.0, self.session.orders.size, request);
        self.announce(PhaseKind::Observed, iterations, false)?;
        let [endpoint] = self.endpoints.as_slice() else {
            return Err(EndpointError {
                remedy: "leave out --peers".to_owned(),
                ..EndpointError::bug("observe", "the trial", "a probe observes one server")
            });
        };
        let mut probe = self.session.attach(endpoint)?;
        self.receive_from_all::<()>()?;
        let Iterations { lead_in, timed, lead_out } = Iterations::of(iterations);
        // By the clock of all that probes see, so that iterations can be laid beside it.
        let mut log = IterationLog::new(Clock::new(ClockSource::MonotonicRaw), iterations);
        self.iterations(lead_in, &mut Unwatched)?;
        probe.begin()?;
        log.start();
        let start = self.clock.now();
        match request.probe {
            Some(Probe::Timeline) => self.iterations(timed, &mut log)?,
            _ => self.iterations(timed, &mut Unwatched)?,
        }
        let elapsed_ns = self.clock.ns_between(start, self.clock.now());
        probe.end()?;
        self.iterations(lead_out, &mut Unwatched)?;
        let observation = Observation {
            iterations,
            elapsed_ns,
            iteration_ends_ns: log.ends().map(Stamp::ticks).collect(),
            client: probe.observation()?,
            server: self.server_phase()?.observation,
        };
        Ok((sample(iterations, elapsed_ns, Usage::default(), None), observation))
    }

    /// The client's side of `iterations`.
    fn iterations(&mut self, iterations: Range<u64>, watch: &mut impl Watch) -> Outcome<()> {
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        run_injected(&mut self.endpoints, self.session.workload(), iterations, &fds, self.delay, watch)
            .map_err(EndpointError::from)
    }

    /// The phase in which every iteration is timed.
    fn each(&mut self, iterations: u64) -> Outcome<Each> {
        let mut log = IterationLog::new(self.clock, iterations);
        self.phase(PhaseKind::Total, iterations, false, &mut log)?;
        Ok(each(&self.clock, &log.ticks))
    }

    /// The phase in which every send and receive call is timed.
    fn calls(&mut self, messages: u64) -> Outcome<TimedCalls> {
        let mut log = CallLog::new(self.clock);
        self.announce(PhaseKind::Calls, messages, false)?;
        let Iterations { lead_in, timed, lead_out } = Iterations::of(messages);
        // One server only: calls are not timed where there are several peers.
        let [endpoint] = self.endpoints.as_mut_slice() else {
            return Err(EndpointError::bug("time", "single calls", "there are several servers"));
        };
        endpoint.stream(lead_in, &mut Unmetered, &mut Unwatched)?;
        endpoint.stream(timed, &mut log, &mut Unwatched)?;
        endpoint.stream(lead_out, &mut Unmetered, &mut Unwatched)?;
        let server = self.server_phase()?;
        let receive = server.calls.ok_or_else(|| missing("calls"))?;
        Ok(TimedCalls { messages, send: call_counts(&log, &self.clock), receive })
    }

    /// The phase in which every step of every message is timed.
    fn steps(&mut self, sessions: u64) -> Outcome<StepSamples> {
        let mut log = StepLog::new(self.clock);
        self.announce(PhaseKind::Steps, sessions, false)?;
        let Iterations { lead_in, timed, lead_out } = Iterations::of(sessions);
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        let (workload, endpoints) = (self.session.workload(), &mut self.endpoints[..]);
        run(endpoints, workload, lead_in, &fds, &mut NoTrace, &mut Unwatched)?;
        run(endpoints, workload, timed, &fds, &mut log, &mut Unwatched)?;
        run(endpoints, workload, lead_out, &fds, &mut NoTrace, &mut Unwatched)?;
        let server = self.server_phase()?;
        Ok(StepSamples { client: log.by_name(), server: server.steps.ok_or_else(|| missing("steps"))? })
    }

    fn announce(&mut self, kind: PhaseKind, iterations: u64, check: bool) -> Outcome<()> {
        self.trial_iterations += Iterations::in_all(iterations);
        let checks = self.session.check(check);
        self.endpoints.iter_mut().for_each(|endpoint| endpoint.check(checks));
        self.send_to_all(&Phase { kind, iterations, check })
    }

    fn send_to_all(&self, phase: &Phase) -> Outcome<()> {
        self.links.iter().try_for_each(|link| link.send(phase, &[])).map_err(EndpointError::from)
    }

    fn receive_from_all<T: DeserializeOwned>(&self) -> Outcome<Vec<T>> {
        self.links
            .iter()
            .map(|link| link.receive().map(|(message, _)| message))
            .collect::<Result<_, _>>()
            .map_err(EndpointError::from)
    }

    /// What the server says of the phase that is over; of several servers, what they used and lost together.
    fn server_phase(&self) -> Outcome<ServerPhase> {
        let mut rest = self.receive_from_all::<ServerPhase>()?;
        let usage = rest.iter().map(|server| server.usage).sum();
        let first =
            rest.pop().ok_or_else(|| EndpointError::bug("receive from", "the server", "there is none"))?;
        let lost = first.lost.map(|first| first + rest.iter().filter_map(|server| server.lost).sum::<u64>());
        Ok(ServerPhase { usage, lost, ..first })
    }
}

/// The client's iterations of `workload`.
fn run<E: Endpoint>(
    endpoints: &mut [Box<BufferedEndpoint<E>>],
    workload: Workload,
    iterations: Range<u64>,
    fds: &[BorrowedFd<'_>],
    steps: &mut impl StepMeter,
    watch: &mut impl Watch,
) -> Result<(), LoopError> {
    match (workload, endpoints) {
        (Workload::Throughput, [endpoint]) => endpoint.stream(iterations, &mut Unmetered, watch),
        (Workload::Throughput, endpoints) => stream_to_all(endpoints, iterations),
        (Workload::Session(session), [endpoint]) => {
            endpoint.send_sessions(iterations, session, fds, steps, watch)
        }
        (_, [endpoint]) => endpoint.ask(iterations, watch),
        (_, endpoints) => ask_all(endpoints, iterations, watch.log()),
    }
}

/// The same with `delay` in each iteration. Without one it is the same code as without this function.
fn run_injected<E: Endpoint>(
    endpoints: &mut [Box<BufferedEndpoint<E>>],
    workload: Workload,
    iterations: Range<u64>,
    fds: &[BorrowedFd<'_>],
    delay: Option<InjectedDelay>,
    watch: &mut impl Watch,
) -> Result<(), LoopError> {
    match delay {
        None => run(endpoints, workload, iterations, fds, &mut NoTrace, watch),
        Some(delay) => {
            run(endpoints, workload, iterations, fds, &mut NoTrace, &mut Injected { delay, watch })
        }
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
