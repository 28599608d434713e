//! Near's side of a connected launch: it announces one part after the other, keeps the clock and makes the sample.

use crate::control::Channel;
use crate::endpoint::{
    LEAST_WARM_UP_TURNS, Outcome, Session, Sizing, WARM_UP_SHARE, Yield, observed_turns, text,
};
use crate::measure::{Clock, Stamp};
use crate::pacer::{Pacer, wall_ns};
use crate::part::{FarPart, Part, PartKind, Turns, call_counts};
use crate::together::Course;
use crate::workload::{
    Broken, CallLog, Station, StepLog, StepMeter, TurnLog, Unmetered, Unwatched, Watch, ask_all, sample,
    stream_to_all, usage_between,
};
use mechanisms::{Endpoint, Unnoted};
use model::observation::{Look, Observation, Probe};
use model::record::{Calls, ClockSource, Each, Sample, Setting, Steps, Usage};
use model::{Case, Histogram, Pace, Peers, Workload};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use serde::de::DeserializeOwned;
use std::ops::Range;
use sys::usage::of_this_thread;

/// The most turns of a part, however short they are.
const MOST_TURNS: u64 = 1 << 32;
/// The part of a launch's slice that goes to `total` turns; the rest goes to turns, calls or steps timed singly.
const TOTAL_SHARE: f64 = 0.6;

/// What the part of several peers takes at least: some slices of the scheduler's, or else peers that share a CPU would
/// have theirs one after the other.
const LEAST_COURSE_NS: f64 = 20e6;
/// How many turns of its last parts a near remembers while it goes on for others that are served less well. Of short
/// parts that is many: word that all are done takes its time where CPUs are busy.
const MOST_REMEMBERED: usize = 1 << 18;

/// Near's side of a connected launch.
pub(crate) struct Near<'a, E> {
    pub(crate) session: &'a Session,
    /// To every far.
    pub(crate) links: &'a [Channel],
    pub(crate) clock: Clock,
    /// One for every far, in the same order.
    pub(crate) stations: Vec<Box<Station<E>>>,
    /// What goes with each message of a `session`.
    pub(crate) fds: Vec<OwnedFd>,
    /// How many turns there were so far, of all parts.
    pub(crate) turns_in_all: u64,
}

/// What near measured around the turns of one part.
struct NearPart {
    elapsed_ns: f64,
    usage: Usage,
}

impl<E: Endpoint> Near<'_, E> {
    pub(crate) fn measure(mut self) -> Outcome<Yield> {
        let far_settings: Vec<Vec<Setting>> = self.of_all()?;
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
        self.to_all(&Part { kind: PartKind::End, turns: 0, check: false })?;
        let sample = Sample { turns_in_all: self.turns_in_all, ..sample };
        let near_settings = self.stations.iter().flat_map(|station| station.end.settings());
        Ok(Yield {
            sample,
            settings: once_each(near_settings.chain(far_settings.into_iter().flatten())),
            courses,
            observation,
        })
    }

    /// The parts of turns that follow at once on one another. Which comes first alternates from launch to launch.
    fn back_to_back(&mut self) -> Outcome<Sample> {
        let (total_turns, single_turns) = self.warm_up()?;
        let (mut total, mut each, mut calls, mut steps) = (None, None, None, None);
        let singly_first = self.session.orders.number % 2 == 1;
        let order = if singly_first { [false, true] } else { [true, false] };
        for is_total in order {
            match (is_total, self.session.workload()) {
                (true, _) => {
                    total = Some(self.part(PartKind::Total, total_turns, false, &mut Unwatched)?);
                }
                (false, Workload::Throughput) => calls = Some(self.calls(single_turns)?),
                (false, Workload::Session(_)) => {
                    each = Some(self.each(single_turns.div_ceil(2))?);
                    steps = Some(self.steps(single_turns.div_ceil(2))?);
                }
                (false, _) => each = Some(self.each(single_turns)?),
            }
        }
        let (near, far) = total.ok_or("the total part is missing; report this bug")?;
        Ok(Sample {
            each,
            calls,
            steps,
            lost: far.lost,
            ..sample(total_turns, near.elapsed_ns, near.usage, Some(far.usage))
        })
    }

    /// The one part of turns that near waits before: each is timed, for the waits are no part of them.
    fn paced(&mut self, pace: Pace) -> Outcome<Sample> {
        let (turns, _) = self.warm_up()?;
        let seed = self.session.orders.number;
        let mut pacer = Pacer::new(pace, self.clock, turns, seed).ok_or("no pace; report this bug")?;
        let (near, far) = self.part(PartKind::Total, turns, false, &mut pacer)?;
        let elapsed_ns = self.clock.ns(pacer.ticks.iter().sum());
        let each = Some(each(&self.clock, &pacer.ticks));
        Ok(Sample {
            each,
            schedule: pacer.schedule(),
            ..sample(turns, elapsed_ns, near.usage, Some(far.usage))
        })
    }

    /// Several peers at once: each near goes on, part after part, until every near has had a whole part. It notes when its
    /// turns were over, or far when its messages came, so that what all did at the same time can be told.
    fn among_peers(&mut self) -> Outcome<(Sample, Vec<Course>)> {
        let is_answered = self.session.workload().is_answered();
        let turns = self.turns_among_peers(is_answered)?;
        let (mut all, mut courses) = (sample(0, 0.0, Usage::default(), Some(Usage::default())), Vec::new());
        self.session.wait_for_the_others()?;
        // One more part when all have had one, so that every near was at work when the last of them was.
        let mut is_last = self.session.is_the_only_near();
        loop {
            let mut log = TurnLog::new(self.clock, if is_answered { turns } else { 0 });
            // Where turns are not answered far notes when messages came, which is when they are over.
            let (near, far) = if is_answered {
                self.part(PartKind::Course, turns, false, &mut log)?
            } else {
                self.part(PartKind::Course, turns, false, &mut Unwatched)?
            };
            courses.push(match far.course {
                None => Course { start: log.start, ticks: log.ticks, stride: 1 },
                Some(arrivals) => arrivals,
            });
            while courses.len() > 1
                && courses.iter().map(|course| course.ticks.len()).sum::<usize>() > MOST_REMEMBERED
            {
                courses.remove(0);
            }
            all = Sample {
                turns: all.turns + turns,
                elapsed_ns: all.elapsed_ns + near.elapsed_ns,
                near: all.near + near.usage,
                far: all.far.map(|so_far| so_far + far.usage),
                lost: far.lost.map(|lost| all.lost.unwrap_or(0) + lost),
                ..all
            };
            if is_last {
                break;
            }
            if all.turns == turns {
                self.session.tell_of_the_first_part()?;
            }
            is_last = self.session.others_are_done()?;
        }
        let ticks: Vec<u64> = courses.iter().flat_map(|course| course.ticks.iter().copied()).collect();
        Ok((Sample { each: is_answered.then(|| each(&self.clock, &ticks)), ..all }, courses))
    }

    /// How many turns a part of several peers is to have.
    fn turns_among_peers(&mut self, is_answered: bool) -> Outcome<u64> {
        let (turns, _) = self.warm_up()?;
        let Sizing::Slice { slice_ns, .. } = self.session.orders.size else { return Ok(turns) };
        let longer = (LEAST_COURSE_NS / (slice_ns as f64 * TOTAL_SHARE)).max(1.0);
        Ok(((turns as f64 * longer) as u64).min(if is_answered { TurnLog::CAPACITY } else { MOST_TURNS }))
    }

    /// Runs turns back to back, every byte of them checked, until there were enough of them and they took long
    /// enough; says how many turns the parts in which turns are timed together and singly are to have.
    fn warm_up(&mut self) -> Outcome<(u64, u64)> {
        let (slice_ns, hint_ns) = match self.session.orders.size {
            Sizing::Turns(turns) => {
                self.part(PartKind::Total, turns, true, &mut Unwatched)?;
                return Ok((turns, turns.min(TurnLog::CAPACITY)));
            }
            Sizing::Slice { slice_ns, hint_ns } => (slice_ns as f64, hint_ns),
        };
        let enough_ns = slice_ns * WARM_UP_SHARE;
        let fitting = |ns: f64, turn_ns: f64| ((ns / turn_ns) as u64).max(1);
        let mut turns =
            hint_ns.map_or(LEAST_WARM_UP_TURNS, |hint| fitting(enough_ns, hint).max(LEAST_WARM_UP_TURNS));
        let (mut turns_so_far, mut ns_so_far) = (0, 0.0);
        loop {
            // One slow turn fills a slice: a warm-up of many would outlast what it warms.
            let (part, _) = self.part(PartKind::Total, turns, true, &mut Unwatched)?;
            turns_so_far += turns;
            ns_so_far += part.elapsed_ns;
            let turn_ns = part.elapsed_ns.max(1.0) / turns as f64;
            let warm = turns_so_far >= LEAST_WARM_UP_TURNS && ns_so_far >= enough_ns;
            if warm || ns_so_far >= slice_ns || turns == MOST_TURNS {
                let wall_ns = wall_ns(self.session.orders.case.pace, turn_ns);
                let single_turns = fitting(slice_ns * (1.0 - TOTAL_SHARE), wall_ns).min(TurnLog::CAPACITY);
                return Ok((fitting(slice_ns * TOTAL_SHARE, wall_ns).min(MOST_TURNS), single_turns));
            }
            turns = fitting(enough_ns, turn_ns).clamp(turns, turns.saturating_mul(16)).min(MOST_TURNS);
        }
    }

    /// Announces a part to far, runs near's side of it, and takes far's account of it.
    fn part<W: Watch>(
        &mut self,
        kind: PartKind,
        turns: u64,
        check: bool,
        watch: &mut W,
    ) -> Outcome<(NearPart, FarPart)> {
        self.announce(kind, turns, check)?;
        let Turns { lead_in, timed, lead_out } = Turns::of(turns);
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
        let far = self.of_far()?;
        Ok((NearPart { elapsed_ns: self.clock.ns_between(start, end), usage }, far))
    }

    /// The part in which both ends are looked at. It is switched on after the lead-in and off before the lead-out, so that
    /// the timed turns are seen and nothing else.
    fn observed(&mut self, look: &Look) -> Outcome<(Sample, Observation)> {
        let turns = observed_turns(self.warm_up()?.0, self.session.orders.size, look);
        self.announce(PartKind::Observed, turns, false)?;
        let [station] = self.stations.as_slice() else {
            return Err("several fars at once cannot be looked at; leave out --peers".to_owned());
        };
        let mut watching = self.session.attach(station)?;
        self.of_all::<()>()?;
        let Turns { lead_in, timed, lead_out } = Turns::of(turns);
        // By the clock of all that is seen, so that turns can be laid beside it.
        let mut log = TurnLog::new(Clock::new(ClockSource::MonotonicRaw), turns);
        self.turns(lead_in, &mut Unwatched)?;
        watching.begin().map_err(text)?;
        log.start();
        let start = self.clock.now();
        match look.probe {
            Some(Probe::Timeline) => self.turns(timed, &mut log)?,
            _ => self.turns(timed, &mut Unwatched)?,
        }
        let elapsed_ns = self.clock.ns_between(start, self.clock.now());
        watching.end().map_err(text)?;
        self.turns(lead_out, &mut Unwatched)?;
        let observation = Observation {
            turns,
            elapsed_ns,
            turn_ends_ns: log.ends().map(Stamp::ticks).collect(),
            near: watching.seen().map_err(text)?,
            far: self.of_far()?.seen,
        };
        Ok((sample(turns, elapsed_ns, Usage::default(), None), observation))
    }

    /// Near's side of `turns`.
    fn turns(&mut self, turns: Range<u64>, watch: &mut impl Watch) -> Outcome<()> {
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        run(&mut self.stations, self.session.workload(), turns, &fds, &mut Unnoted, watch).map_err(text)
    }

    /// The part in which every turn is timed.
    fn each(&mut self, turns: u64) -> Outcome<Each> {
        let mut log = TurnLog::new(self.clock, turns);
        self.part(PartKind::Total, turns, false, &mut log)?;
        Ok(each(&self.clock, &log.ticks))
    }

    /// The part in which every send and receive call is timed.
    fn calls(&mut self, messages: u64) -> Outcome<Calls> {
        let mut log = CallLog::new(self.clock);
        self.announce(PartKind::Calls, messages, false)?;
        let Turns { lead_in, timed, lead_out } = Turns::of(messages);
        // One far only: of several peers calls are not timed.
        let [station] = self.stations.as_mut_slice() else {
            return Err("single calls are timed with one far; report this bug".to_owned());
        };
        station.stream(lead_in, &mut Unmetered, &mut Unwatched).map_err(text)?;
        station.stream(timed, &mut log, &mut Unwatched).map_err(text)?;
        station.stream(lead_out, &mut Unmetered, &mut Unwatched).map_err(text)?;
        let far = self.of_far()?;
        let receive = far.calls.ok_or("far did not note its calls; report this bug")?;
        Ok(Calls { messages, send: call_counts(&log, &self.clock), receive })
    }

    /// The part in which every step of every message is timed.
    fn steps(&mut self, sessions: u64) -> Outcome<Steps> {
        let mut log = StepLog::new(self.clock);
        self.announce(PartKind::Steps, sessions, false)?;
        let Turns { lead_in, timed, lead_out } = Turns::of(sessions);
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        let (workload, stations) = (self.session.workload(), &mut self.stations[..]);
        run(stations, workload, lead_in, &fds, &mut Unnoted, &mut Unwatched).map_err(text)?;
        run(stations, workload, timed, &fds, &mut log, &mut Unwatched).map_err(text)?;
        run(stations, workload, lead_out, &fds, &mut Unnoted, &mut Unwatched).map_err(text)?;
        let far = self.of_far()?;
        Ok(Steps {
            near: log.by_name(),
            far: far.steps.ok_or("far did not note its steps; report this bug")?,
        })
    }

    fn announce(&mut self, kind: PartKind, turns: u64, check: bool) -> Outcome<()> {
        self.turns_in_all += Turns::in_all(turns);
        let checks = self.session.check(check);
        self.stations.iter_mut().for_each(|station| station.check(checks));
        self.to_all(&Part { kind, turns, check })
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

    /// What far says of the part that is over; of several fars, what they used and lost together.
    fn of_far(&self) -> Outcome<FarPart> {
        let mut rest = self.of_all::<FarPart>()?;
        let usage = rest.iter().map(|far| far.usage).sum();
        let first = rest.pop().ok_or("near has no far; report this bug")?;
        let lost = first.lost.map(|first| first + rest.iter().filter_map(|far| far.lost).sum::<u64>());
        Ok(FarPart { usage, lost, ..first })
    }
}

/// Near's turns of `workload`.
fn run<E: Endpoint>(
    stations: &mut [Box<Station<E>>],
    workload: Workload,
    turns: Range<u64>,
    fds: &[BorrowedFd<'_>],
    steps: &mut impl StepMeter,
    watch: &mut impl Watch,
) -> Result<(), Broken> {
    match (workload, stations) {
        (Workload::Throughput, [station]) => station.stream(turns, &mut Unmetered, watch),
        (Workload::Throughput, stations) => stream_to_all(stations, turns),
        (Workload::Session(session), [station]) => station.set_up(turns, session, fds, steps, watch),
        (_, [station]) => station.ask(turns, watch),
        (_, stations) => ask_all(stations, turns, watch.log()),
    }
}

/// Turns of which each took so many ticks.
pub(crate) fn each(clock: &Clock, ticks: &[u64]) -> Each {
    let mut histogram = Histogram::new();
    ticks.iter().for_each(|ticks| histogram.record(clock.ns(*ticks) as u64));
    let mean_ns = clock.ns(ticks.iter().sum()) / ticks.len() as f64;
    Each { mean_ns, turns: histogram.encode() }
}

/// Near's settings, and those of far that say something else.
fn once_each(settings: impl Iterator<Item = Setting>) -> Vec<Setting> {
    let mut different: Vec<Setting> = Vec::new();
    for setting in settings {
        if !different.contains(&setting) {
            different.push(setting);
        }
    }
    different
}
