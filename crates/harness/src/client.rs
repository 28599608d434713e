//! Client's side of a connected trial: it announces one part after the other, keeps the clock and makes the sample.

use crate::control::Channel;
use crate::endpoint::{
    LEAST_WARM_UP_ITERATIONS, Outcome, Session, Sizing, WARM_UP_SHARE, Yield, observed_iterations, text,
};
use crate::measure::{Clock, Stamp};
use crate::pacer::{Pacer, wall_ns};
use crate::part::{Iterations, Part, PartKind, ServerPart, call_counts};
use crate::together::Course;
use crate::workload::{
    Broken, CallLog, IterationLog, Station, StepLog, StepMeter, Unmetered, Unwatched, Watch, ask_all, sample,
    stream_to_all, usage_between,
};
use mechanisms::{Endpoint, Unnoted};
use model::observation::{Observation, Probe, ProbeRequest};
use model::record::{ClockSource, Each, Sample, Setting, StepSamples, TimedCalls, Usage};
use model::{Case, Histogram, Pace, Peers, Workload};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use serde::de::DeserializeOwned;
use std::ops::Range;
use sys::usage::of_this_thread;

/// The most iterations of a part, however short they are.
const MOST_ITERATIONS: u64 = 1 << 32;
/// The part of a trial's slice that goes to `total` iterations; the rest goes to iterations, calls or steps timed singly.
const TOTAL_SHARE: f64 = 0.6;

/// What the part of several peers takes at least: some slices of the scheduler's, or else peers that share a CPU would
/// have theirs one after the other.
const LEAST_COURSE_NS: f64 = 20e6;
/// How many iterations of its last parts a client remembers while it goes on for others that are served less well. Of short
/// parts that is many: word that all are done takes its time where CPUs are busy.
const MOST_REMEMBERED: usize = 1 << 18;

/// Client's side of a connected trial.
pub(crate) struct Client<'a, E> {
    pub(crate) session: &'a Session,
    /// To every server.
    pub(crate) links: &'a [Channel],
    pub(crate) clock: Clock,
    /// One for every server, in the same order.
    pub(crate) stations: Vec<Box<Station<E>>>,
    /// What goes with each message of a `session`.
    pub(crate) fds: Vec<OwnedFd>,
    /// How many iterations there were so far, of all parts.
    pub(crate) trial_iterations: u64,
}

/// What client measured around the iterations of one part.
struct ClientPart {
    elapsed_ns: f64,
    usage: Usage,
}

impl<E: Endpoint> Client<'_, E> {
    pub(crate) fn measure(mut self) -> Outcome<Yield> {
        let server_settings: Vec<Vec<Setting>> = self.of_all()?;
        let Case { pace, peers, .. } = self.session.orders.case;
        let (sample, courses, observation) = match (&self.session.orders.look, peers, pace) {
            (Some(look), ..) => {
                let (sample, observation) = self.observed(look)?;
                (sample, Vec::new(), Some(observation))
            }
            (None, Peers::Pair, Pace::BackToBack) => (self.back_to_back()?, Vec::new(), None),
            (None, Peers::Pair, pace) => (self.paced(pace)?, Vec::new(), None),
            _ => {
                let (sample, courses) = self.among_peers()?;
                (sample, courses, None)
            }
        };
        self.to_all(&Part { kind: PartKind::End, iterations: 0, check: false })?;
        let sample = Sample { trial_iterations: self.trial_iterations, ..sample };
        let client_settings = self.stations.iter().flat_map(|station| station.end.settings());
        Ok(Yield {
            sample,
            settings: once_each(client_settings.chain(server_settings.into_iter().flatten())),
            courses,
            observation,
        })
    }

    /// The parts of iterations that follow at once on one another. Which comes first alternates from trial to trial.
    fn back_to_back(&mut self) -> Outcome<Sample> {
        let (total_iterations, single_iterations) = self.warm_up()?;
        let (mut total, mut each, mut calls, mut steps) = (None, None, None, None);
        let singly_first = self.session.orders.number % 2 == 1;
        let order = if singly_first { [false, true] } else { [true, false] };
        for is_total in order {
            match (is_total, self.session.workload()) {
                (true, _) => {
                    total = Some(self.part(PartKind::Total, total_iterations, false, &mut Unwatched)?);
                }
                (false, Workload::Throughput) => calls = Some(self.calls(single_iterations)?),
                (false, Workload::Session(_)) => {
                    each = Some(self.each(single_iterations.div_ceil(2))?);
                    steps = Some(self.steps(single_iterations.div_ceil(2))?);
                }
                (false, _) => each = Some(self.each(single_iterations)?),
            }
        }
        let (client, server) = total.ok_or("the total part is missing; report this bug")?;
        Ok(Sample {
            each,
            calls,
            steps,
            lost: server.lost,
            ..sample(total_iterations, client.elapsed_ns, client.usage, Some(server.usage))
        })
    }

    /// The one part of iterations that client waits before: each is timed, for the waits are no part of them.
    fn paced(&mut self, pace: Pace) -> Outcome<Sample> {
        let (iterations, _) = self.warm_up()?;
        let seed = self.session.orders.number;
        let mut pacer = Pacer::new(pace, self.clock, iterations, seed).ok_or("no pace; report this bug")?;
        let (client, server) = self.part(PartKind::Total, iterations, false, &mut pacer)?;
        let elapsed_ns = self.clock.ns(pacer.ticks.iter().sum());
        let each = Some(each(&self.clock, &pacer.ticks));
        Ok(Sample {
            each,
            schedule: pacer.schedule(),
            ..sample(iterations, elapsed_ns, client.usage, Some(server.usage))
        })
    }

    /// Several peers at once: each client goes on, part after part, until every client has had a whole part. It notes when its
    /// iterations were over, or server when its messages came, so that what all did at the same time can be told.
    fn among_peers(&mut self) -> Outcome<(Sample, Vec<Course>)> {
        let is_answered = self.session.workload().is_answered();
        let iterations = self.iterations_among_peers(is_answered)?;
        let (mut all, mut courses) = (sample(0, 0.0, Usage::default(), Some(Usage::default())), Vec::new());
        self.session.wait_for_the_others()?;
        // One more part when all have had one, so that every client was at work when the last of them was.
        let mut is_last = self.session.is_the_only_client();
        loop {
            let mut log = IterationLog::new(self.clock, if is_answered { iterations } else { 0 });
            // Where iterations are not answered server notes when messages came, which is when they are over.
            let (client, server) = if is_answered {
                self.part(PartKind::Course, iterations, false, &mut log)?
            } else {
                self.part(PartKind::Course, iterations, false, &mut Unwatched)?
            };
            courses.push(match server.course {
                None => Course { start: log.start, ticks: log.ticks, stride: 1 },
                Some(arrivals) => arrivals,
            });
            while courses.len() > 1
                && courses.iter().map(|course| course.ticks.len()).sum::<usize>() > MOST_REMEMBERED
            {
                courses.remove(0);
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
                self.session.tell_of_the_first_part()?;
            }
            is_last = self.session.others_are_done()?;
        }
        let ticks: Vec<u64> = courses.iter().flat_map(|course| course.ticks.iter().copied()).collect();
        Ok((Sample { each: is_answered.then(|| each(&self.clock, &ticks)), ..all }, courses))
    }

    /// How many iterations a part of several peers is to have.
    fn iterations_among_peers(&mut self, is_answered: bool) -> Outcome<u64> {
        let (iterations, _) = self.warm_up()?;
        let Sizing::Slice { slice_ns, .. } = self.session.orders.size else { return Ok(iterations) };
        let longer = (LEAST_COURSE_NS / (slice_ns as f64 * TOTAL_SHARE)).max(1.0);
        Ok(((iterations as f64 * longer) as u64).min(if is_answered {
            IterationLog::CAPACITY
        } else {
            MOST_ITERATIONS
        }))
    }

    /// Runs turns back to back, every byte of them checked, until there were enough of them and they took long
    /// enough; says how many iterations the parts in which iterations are timed together and singly are to have.
    fn warm_up(&mut self) -> Outcome<(u64, u64)> {
        let (slice_ns, hint_ns) = match self.session.orders.size {
            Sizing::Iterations(iterations) => {
                self.part(PartKind::Total, iterations, true, &mut Unwatched)?;
                return Ok((iterations, iterations.min(IterationLog::CAPACITY)));
            }
            Sizing::Slice { slice_ns, hint_ns } => (slice_ns as f64, hint_ns),
        };
        let enough_ns = slice_ns * WARM_UP_SHARE;
        let fitting = |ns: f64, iteration_ns: f64| ((ns / iteration_ns) as u64).max(1);
        let mut iterations = hint_ns
            .map_or(LEAST_WARM_UP_ITERATIONS, |hint| fitting(enough_ns, hint).max(LEAST_WARM_UP_ITERATIONS));
        let (mut turns_so_far, mut ns_so_far) = (0, 0.0);
        loop {
            // One slow iteration fills a slice: a warm-up of many would outlast what it warms.
            let (part, _) = self.part(PartKind::Total, iterations, true, &mut Unwatched)?;
            turns_so_far += iterations;
            ns_so_far += part.elapsed_ns;
            let iteration_ns = part.elapsed_ns.max(1.0) / iterations as f64;
            let warm = turns_so_far >= LEAST_WARM_UP_ITERATIONS && ns_so_far >= enough_ns;
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

    /// Announces a part to server, runs client's side of it, and takes server's account of it.
    fn part<W: Watch>(
        &mut self,
        kind: PartKind,
        iterations: u64,
        check: bool,
        watch: &mut W,
    ) -> Outcome<(ClientPart, ServerPart)> {
        self.announce(kind, iterations, check)?;
        let Iterations { lead_in, timed, lead_out } = Iterations::of(iterations);
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        let (workload, stations) = (self.session.workload(), &mut self.stations[..]);
        run(stations, workload, lead_in, &fds, &mut Unnoted, &mut Unwatched).map_err(text)?;
        watch.start();
        let before = of_this_thread();
        let start = self.clock.now();
        run(stations, workload, timed, &fds, &mut Unnoted, watch).map_err(text)?;
        let end = self.clock.now();
        let usage = usage_between(before, of_this_thread());
        run(stations, workload, lead_out, &fds, &mut Unnoted, &mut Unwatched).map_err(text)?;
        let server = self.of_server()?;
        Ok((ClientPart { elapsed_ns: self.clock.ns_between(start, end), usage }, server))
    }

    /// The part in which both ends are looked at. It is switched on after the lead-in and off before the lead-out, so that
    /// the timed iterations are seen and nothing else.
    fn observed(&mut self, look: &ProbeRequest) -> Outcome<(Sample, Observation)> {
        let iterations = observed_iterations(self.warm_up()?.0, self.session.orders.size, look);
        self.announce(PartKind::Observed, iterations, false)?;
        let [station] = self.stations.as_slice() else {
            return Err("several servers at once cannot be looked at; leave out --peers".to_owned());
        };
        let mut watching = self.session.attach(station)?;
        self.of_all::<()>()?;
        let Iterations { lead_in, timed, lead_out } = Iterations::of(iterations);
        // By the clock of all that is seen, so that iterations can be laid beside it.
        let mut log = IterationLog::new(Clock::new(ClockSource::MonotonicRaw), iterations);
        self.iterations(lead_in, &mut Unwatched)?;
        watching.begin().map_err(text)?;
        log.start();
        let start = self.clock.now();
        match look.probe {
            Some(Probe::Timeline) => self.iterations(timed, &mut log)?,
            _ => self.iterations(timed, &mut Unwatched)?,
        }
        let elapsed_ns = self.clock.ns_between(start, self.clock.now());
        watching.end().map_err(text)?;
        self.iterations(lead_out, &mut Unwatched)?;
        let observation = Observation {
            iterations,
            elapsed_ns,
            iteration_ends_ns: log.ends().map(Stamp::ticks).collect(),
            client: watching.seen().map_err(text)?,
            server: self.of_server()?.seen,
        };
        Ok((sample(iterations, elapsed_ns, Usage::default(), None), observation))
    }

    /// Client's side of `iterations`.
    fn iterations(&mut self, iterations: Range<u64>, watch: &mut impl Watch) -> Outcome<()> {
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        run(&mut self.stations, self.session.workload(), iterations, &fds, &mut Unnoted, watch).map_err(text)
    }

    /// The part in which every iteration is timed.
    fn each(&mut self, iterations: u64) -> Outcome<Each> {
        let mut log = IterationLog::new(self.clock, iterations);
        self.part(PartKind::Total, iterations, false, &mut log)?;
        Ok(each(&self.clock, &log.ticks))
    }

    /// The part in which every send and receive call is timed.
    fn calls(&mut self, messages: u64) -> Outcome<TimedCalls> {
        let mut log = CallLog::new(self.clock);
        self.announce(PartKind::Calls, messages, false)?;
        let Iterations { lead_in, timed, lead_out } = Iterations::of(messages);
        // One server only: of several peers calls are not timed.
        let [station] = self.stations.as_mut_slice() else {
            return Err("single calls are timed with one server; report this bug".to_owned());
        };
        station.stream(lead_in, &mut Unmetered, &mut Unwatched).map_err(text)?;
        station.stream(timed, &mut log, &mut Unwatched).map_err(text)?;
        station.stream(lead_out, &mut Unmetered, &mut Unwatched).map_err(text)?;
        let server = self.of_server()?;
        let receive = server.calls.ok_or("server did not note its calls; report this bug")?;
        Ok(TimedCalls { messages, send: call_counts(&log, &self.clock), receive })
    }

    /// The part in which every step of every message is timed.
    fn steps(&mut self, sessions: u64) -> Outcome<StepSamples> {
        let mut log = StepLog::new(self.clock);
        self.announce(PartKind::Steps, sessions, false)?;
        let Iterations { lead_in, timed, lead_out } = Iterations::of(sessions);
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        let (workload, stations) = (self.session.workload(), &mut self.stations[..]);
        run(stations, workload, lead_in, &fds, &mut Unnoted, &mut Unwatched).map_err(text)?;
        run(stations, workload, timed, &fds, &mut log, &mut Unwatched).map_err(text)?;
        run(stations, workload, lead_out, &fds, &mut Unnoted, &mut Unwatched).map_err(text)?;
        let server = self.of_server()?;
        Ok(StepSamples {
            client: log.by_name(),
            server: server.steps.ok_or("server did not note its steps; report this bug")?,
        })
    }

    fn announce(&mut self, kind: PartKind, iterations: u64, check: bool) -> Outcome<()> {
        self.trial_iterations += Iterations::in_all(iterations);
        let checks = self.session.check(check);
        self.stations.iter_mut().for_each(|station| station.check(checks));
        self.to_all(&Part { kind, iterations, check })
    }

    fn to_all(&self, part: &Part) -> Outcome<()> {
        self.links.iter().try_for_each(|link| link.send(part, &[])).map_err(text)
    }

    fn of_all<T: DeserializeOwned>(&self) -> Outcome<Vec<T>> {
        self.links
            .iter()
            .map(|link| link.receive().map(|(message, _)| message))
            .collect::<Result<_, _>>()
            .map_err(text)
    }

    /// What server says of the part that is over; of several servers, what they used and lost together.
    fn of_server(&self) -> Outcome<ServerPart> {
        let mut rest = self.of_all::<ServerPart>()?;
        let usage = rest.iter().map(|server| server.usage).sum();
        let first = rest.pop().ok_or("client has no server; report this bug")?;
        let lost = first.lost.map(|first| first + rest.iter().filter_map(|server| server.lost).sum::<u64>());
        Ok(ServerPart { usage, lost, ..first })
    }
}

/// Client's iterations of `workload`.
fn run<E: Endpoint>(
    stations: &mut [Box<Station<E>>],
    workload: Workload,
    iterations: Range<u64>,
    fds: &[BorrowedFd<'_>],
    steps: &mut impl StepMeter,
    watch: &mut impl Watch,
) -> Result<(), Broken> {
    match (workload, stations) {
        (Workload::Throughput, [station]) => station.stream(iterations, &mut Unmetered, watch),
        (Workload::Throughput, stations) => stream_to_all(stations, iterations),
        (Workload::Session(session), [station]) => station.set_up(iterations, session, fds, steps, watch),
        (_, [station]) => station.ask(iterations, watch),
        (_, stations) => ask_all(stations, iterations, watch.log()),
    }
}

/// Iterations of which each took so many ticks.
pub(crate) fn each(clock: &Clock, ticks: &[u64]) -> Each {
    let mut histogram = Histogram::new();
    ticks.iter().for_each(|ticks| histogram.record(clock.ns(*ticks) as u64));
    let mean_ns = clock.ns(ticks.iter().sum()) / ticks.len() as f64;
    Each { mean_ns, iterations: histogram.encode() }
}

/// Client's settings, and those of server that say something else.
fn once_each(settings: impl Iterator<Item = Setting>) -> Vec<Setting> {
    let mut different: Vec<Setting> = Vec::new();
    for setting in settings {
        if !different.contains(&setting) {
            different.push(setting);
        }
    }
    different
}
