//! Near's side of a connected launch: it announces one part after the other, keeps the clock and makes the sample.

use crate::control::Channel;
use crate::endpoint::{LEAST_WARM_UP_TURNS, Outcome, Session, Sizing, WARM_UP_SHARE, Yield, text};
use crate::measure::Clock;
use crate::pacer::{Pacer, wall_ns};
use crate::part::{FarPart, Part, PartKind, Turns, call_counts};
use crate::workload::{
    Broken, CallLog, Station, StepLog, StepMeter, TurnLog, Unmetered, Unwatched, Watch, sample, usage_between,
};
use mechanisms::{Endpoint, Unnoted};
use model::record::{Calls, Each, Sample, Setting, Steps, Usage};
use model::{Histogram, Pace, Workload};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ops::Range;
use sys::usage::of_this_thread;

/// The most turns of a part, however short they are.
const MOST_TURNS: u64 = 1 << 32;
/// The part of a launch's slice that goes to `total` turns; the rest goes to turns, calls or steps timed singly.
const TOTAL_SHARE: f64 = 0.6;

/// Near's side of a connected launch.
pub(crate) struct Near<'a, E> {
    pub(crate) session: &'a Session,
    pub(crate) link: &'a Channel,
    pub(crate) clock: Clock,
    pub(crate) station: Box<Station<E>>,
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
        let (far_settings, _): (Vec<Setting>, _) = self.link.receive().map_err(text)?;
        let sample = match self.session.orders.case.pace {
            Pace::BackToBack => self.back_to_back()?,
            pace => self.paced(pace)?,
        };
        self.link.send(&Part { kind: PartKind::End, turns: 0, check: false }, &[]).map_err(text)?;
        let sample = Sample { turns_in_all: self.turns_in_all, ..sample };
        Ok(Yield { sample, settings: merged(self.station.end.settings(), far_settings) })
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
                    total = Some(self.part(total_turns, false, &mut Unwatched)?);
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
        Ok(Sample { each, calls, steps, ..sample(total_turns, near.elapsed_ns, near.usage, Some(far.usage)) })
    }

    /// The one part of turns that near waits before: each is timed, for the waits are no part of them.
    fn paced(&mut self, pace: Pace) -> Outcome<Sample> {
        let (turns, _) = self.warm_up()?;
        let seed = self.session.orders.number;
        let mut pacer = Pacer::new(pace, self.clock, turns, seed).ok_or("no pace; report this bug")?;
        let (near, far) = self.part(turns, false, &mut pacer)?;
        let elapsed_ns = self.clock.ns(pacer.ticks.iter().sum());
        let each = Some(self.histogram(&pacer.ticks));
        Ok(Sample {
            each,
            schedule: pacer.schedule(),
            ..sample(turns, elapsed_ns, near.usage, Some(far.usage))
        })
    }

    /// Runs turns back to back, every byte of them checked, until there were enough of them and they took long
    /// enough; says how many turns the parts in which turns are timed together and singly are to have.
    fn warm_up(&mut self) -> Outcome<(u64, u64)> {
        let (slice_ns, hint_ns) = match self.session.orders.size {
            Sizing::Turns(turns) => {
                self.part(turns, true, &mut Unwatched)?;
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
            let (part, _) = self.part(turns, true, &mut Unwatched)?;
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
    fn part<W: Watch>(&mut self, turns: u64, check: bool, watch: &mut W) -> Outcome<(NearPart, FarPart)> {
        self.announce(PartKind::Total, turns, check)?;
        let Turns { lead_in, timed, lead_out } = Turns::of(turns);
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        let (workload, station) = (self.session.workload(), &mut *self.station);
        run(station, workload, lead_in, &fds, &mut Unnoted, &mut Unwatched).map_err(text)?;
        watch.start();
        let before = of_this_thread();
        let start = self.clock.now();
        run(station, workload, timed, &fds, &mut Unnoted, watch).map_err(text)?;
        let end = self.clock.now();
        let usage = usage_between(before, of_this_thread());
        run(station, workload, lead_out, &fds, &mut Unnoted, &mut Unwatched).map_err(text)?;
        let (far, _) = self.link.receive().map_err(text)?;
        Ok((NearPart { elapsed_ns: self.clock.ns_between(start, end), usage }, far))
    }

    /// The part in which every turn is timed.
    fn each(&mut self, turns: u64) -> Outcome<Each> {
        let mut log = TurnLog::new(self.clock, turns);
        self.part(turns, false, &mut log)?;
        Ok(self.histogram(&log.ticks))
    }

    fn histogram(&self, ticks: &[u64]) -> Each {
        let mut histogram = Histogram::new();
        ticks.iter().for_each(|ticks| histogram.record(self.clock.ns(*ticks) as u64));
        let mean_ns = self.clock.ns(ticks.iter().sum()) / ticks.len() as f64;
        Each { mean_ns, turns: histogram.encode() }
    }

    /// The part in which every send and receive call is timed.
    fn calls(&mut self, messages: u64) -> Outcome<Calls> {
        let mut log = CallLog::new(self.clock);
        self.announce(PartKind::Calls, messages, false)?;
        let Turns { lead_in, timed, lead_out } = Turns::of(messages);
        self.station.stream(lead_in, &mut Unmetered).map_err(text)?;
        self.station.stream(timed, &mut log).map_err(text)?;
        self.station.stream(lead_out, &mut Unmetered).map_err(text)?;
        let (far, _): (FarPart, _) = self.link.receive().map_err(text)?;
        let receive = far.calls.ok_or("far did not note its calls; report this bug")?;
        Ok(Calls { messages, send: call_counts(&log, &self.clock), receive })
    }

    /// The part in which every step of every message is timed.
    fn steps(&mut self, sessions: u64) -> Outcome<Steps> {
        let mut log = StepLog::new(self.clock);
        self.announce(PartKind::Steps, sessions, false)?;
        let Turns { lead_in, timed, lead_out } = Turns::of(sessions);
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        let (workload, station) = (self.session.workload(), &mut *self.station);
        run(station, workload, lead_in, &fds, &mut Unnoted, &mut Unwatched).map_err(text)?;
        run(station, workload, timed, &fds, &mut log, &mut Unwatched).map_err(text)?;
        run(station, workload, lead_out, &fds, &mut Unnoted, &mut Unwatched).map_err(text)?;
        let (far, _): (FarPart, _) = self.link.receive().map_err(text)?;
        Ok(Steps {
            near: log.by_name(),
            far: far.steps.ok_or("far did not note its steps; report this bug")?,
        })
    }

    fn announce(&mut self, kind: PartKind, turns: u64, check: bool) -> Outcome<()> {
        self.turns_in_all += Turns::in_all(turns);
        self.station.check(self.session.check(check));
        self.link.send(&Part { kind, turns, check }, &[]).map_err(text)
    }
}

/// Near's turns of `workload`.
fn run<E: Endpoint>(
    station: &mut Station<E>,
    workload: Workload,
    turns: Range<u64>,
    fds: &[BorrowedFd<'_>],
    steps: &mut impl StepMeter,
    watch: &mut impl Watch,
) -> Result<(), Broken> {
    match workload {
        Workload::Throughput => station.stream(turns, &mut Unmetered),
        Workload::Session(session) => station.set_up(turns, session, fds, steps, watch),
        _ => station.ask(turns, watch),
    }
}

/// Near's settings, and those of far that say something else.
fn merged(near: Vec<Setting>, far: Vec<Setting>) -> Vec<Setting> {
    let further: Vec<Setting> = far.into_iter().filter(|setting| !near.contains(setting)).collect();
    near.into_iter().chain(further).collect()
}
