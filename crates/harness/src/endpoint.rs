//! An endpoint: the process, or thread, that does near's or far's part of one launch.
//!
//! It is started by `launch` as a re-execution of the binary, takes its orders from the control
//! channel on its standard input, measures once, reports, and ends.

use crate::control::Channel;
use crate::measure::Clock;
use crate::workload::{
    Broken, CallLog, Check, Station, TurnLog, Unmetered, answer_bytes, repeat, usage_between,
};
use mechanisms::{Endpoint, Launch, Mechanism, Operation, Shape, Ticket, Visitor, table};
use model::card::Payload;
use model::record::{CallCounts, Calls, ClockSource, Each, Sample, Setting, Usage};
use model::{Case, Histogram, Size, Workload};
use rustix::fd::{AsFd, OwnedFd};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use sys::usage::of_this_thread;
use sys::{Failure, OrFail};

/// The hidden sub-command by which the binary becomes an endpoint; the coordinator's process id follows it.
pub const COMMAND: &str = "__endpoint";

/// Turns before the timed ones of each part, so that both ends are under way when the clock starts.
const LEAD_IN_TURNS: u64 = 8;
/// Turns after the timed ones, so that both ends still are when it stops.
const LEAD_OUT_TURNS: u64 = 8;
/// The least turns of a warm-up.
const LEAST_WARM_UP_TURNS: u64 = 16;
/// The most turns of a part, however short they are.
const MOST_TURNS: u64 = 1 << 32;
/// The part of a launch's slice that warm-up must fill.
const WARM_UP_SHARE: f64 = 0.1;
/// The part of a launch's slice that goes to `total` turns; the rest goes to `each` turns or single calls.
const TOTAL_SHARE: f64 = 0.6;

/// What the coordinator has an endpoint do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) case: Case,
    pub(crate) role: Role,
    pub(crate) clock: ClockSource,
    pub(crate) directory: PathBuf,
    /// The number of the launch in its run. Its parity gives the order of the parts, so that drift within a launch cancels.
    pub(crate) number: u64,
    pub(crate) size: Sizing,
    /// Every byte of the timed part is checked too.
    pub(crate) check: bool,
}

/// Which part of a launch a process takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    Near,
    Far,
    /// Both, each in a thread of its own.
    Both,
    /// An operation, which has no peer.
    Alone,
}

/// How many turns a launch has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Sizing {
    /// As many as fill a slice.
    Slice {
        /// What the timed turns of all parts should take together, in nanoseconds.
        slice_ns: u64,
        /// What a turn took in an earlier launch, to begin with.
        hint_ns: Option<f64>,
    },
    /// Exactly so many in each part.
    Turns(u64),
}

/// What a launch yields.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Yield {
    /// What was measured. `round`, `started_ns` and `floor_ns` are the coordinator's to fill in.
    pub sample: Sample,
    /// What both ends set, and what the kernel made of it.
    pub settings: Vec<Setting>,
}

/// What an endpoint reports at its end.
pub(crate) type Report = Result<Option<Yield>, String>;

/// From near to far: the part that comes next.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Part {
    kind: PartKind,
    turns: u64,
    check: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum PartKind {
    /// No clock but around all turns.
    Total,
    /// Far's calls are noted one by one.
    Calls,
    /// There is no further part.
    End,
}

/// From far to near: what the part before took.
#[derive(Debug, Default, Serialize, Deserialize)]
struct FarPart {
    usage: Usage,
    calls: Option<CallCounts>,
}

/// The failures of an endpoint, in words for the record.
type Outcome<T> = Result<T, String>;

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Runs an endpoint over the control channel on standard input. `coordinator` is the process id of its parent.
pub fn main(coordinator: &str) -> Result<(), Failure> {
    sys::process::die_with_parent()?;
    if rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string()).as_deref() != Some(coordinator)
    {
        // The coordinator ended before the kernel was told to end this process with it.
        return Ok(());
    }
    let control = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).or_fail("dup", "control channel")?;
    let control = Channel::from(control);
    let (orders, links): (Orders, Vec<OwnedFd>) = control.receive()?;
    let links = links.into_iter().map(Channel::from).collect();
    control.send(&obey(orders, links), &[])
}

/// Does what `orders` say. The first failure ends it: a thread whose peer failed may wait forever.
fn obey(orders: Orders, links: Vec<Channel>) -> Report {
    let mut links = links.into_iter();
    if orders.role != Role::Both {
        return take_part(orders.clone(), orders.role, links.next());
    }
    let (reports, outcomes) = std::sync::mpsc::channel();
    for role in [Role::Near, Role::Far] {
        let (orders, link, reports) = (orders.clone(), links.next(), reports.clone());
        std::thread::spawn(move || {
            // Nobody listens any more when the other endpoint has failed.
            let _ = reports.send(take_part(orders, role, link));
        });
    }
    drop(reports);
    let panicked = |_| "an endpoint panicked; report this bug".to_owned();
    let first = outcomes.recv().map_err(panicked)??;
    let second = outcomes.recv().map_err(panicked)??;
    Ok(first.or(second))
}

fn take_part(mut orders: Orders, role: Role, link: Option<Channel>) -> Report {
    let name = orders.case.spec.name.clone();
    let message = orders.case.size_bytes.unwrap_or(Size(1));
    orders.case.spec.params = orders.case.spec.params.matched(message);
    table::visit(&name, Session { orders, role, link })
        .unwrap_or_else(|| Err(format!("there is no row named {name}; run one version of ipcmark only")))
}

/// One endpoint's part in a launch, compiled once for each row of the table.
struct Session {
    orders: Orders,
    role: Role,
    /// To the peer.
    link: Option<Channel>,
}

impl Visitor for Session {
    type Output = Report;

    fn mechanism<M: Mechanism>(self) -> Report {
        let Some(link) = &self.link else {
            return Err("the endpoint was given no link to its peer; report this bug".to_owned());
        };
        let case = &self.orders.case;
        let cpu = case.cpus.map(|pair| if self.role == Role::Near { pair.near } else { pair.far });
        cpu.map_or(Ok(()), sys::process::pin_to).map_err(text)?;
        let carries = M::CARD.payload == Payload::Bytes;
        if self.role == Role::Near {
            let (bound, ticket) = M::bind(&self.launch()).map_err(text)?;
            let fds: Vec<_> = ticket.fds.iter().map(AsFd::as_fd).collect();
            link.send(&ticket.address, &fds).map_err(text)?;
            // Near must not keep far's descriptors open: far's death would go unseen.
            drop(ticket);
            let end = M::accept(bound).map_err(text)?;
            let station = Station::new(end, self.size_bytes(), self.answer_bytes());
            Near { session: &self, link, clock: Clock::new(self.orders.clock), station, carries }
                .measure()
                .map(Some)
        } else {
            let (address, fds): (Vec<u8>, _) = link.receive().map_err(text)?;
            let end = M::connect(&self.launch(), Ticket { address, fds }).map_err(text)?;
            link.send(&end.settings(), &[]).map_err(text)?;
            let station = Station::new(end, self.answer_bytes(), self.size_bytes());
            Far { session: &self, link, clock: Clock::new(self.orders.clock), station, carries }.serve()?;
            Ok(None)
        }
    }

    fn operation<O: Operation>(self) -> Report {
        self.orders.case.cpus.map_or(Ok(()), |pair| sys::process::pin_to(pair.near)).map_err(text)?;
        let operation = O::prepare(&self.launch()).map_err(text)?;
        let sample = cost(&self.orders, operation).map_err(text)?;
        Ok(Some(Yield { sample, settings: Vec::new() }))
    }
}

impl Session {
    fn launch(&self) -> Launch<'_> {
        let Orders { case, directory, number, .. } = &self.orders;
        Launch {
            params: &case.spec.params,
            shape: Shape { size_bytes: self.size_bytes(), workload: case.workload },
            directory,
            number: *number,
        }
    }

    fn size_bytes(&self) -> usize {
        self.orders.case.size_bytes.map_or(1, Size::as_usize)
    }

    fn answer_bytes(&self) -> usize {
        answer_bytes(self.orders.case.workload, self.size_bytes())
    }

    /// How the payload is checked in a part that asks for everything, or not.
    fn check(&self, carries: bool, everything: bool) -> Check {
        match (carries, everything || self.orders.check) {
            (false, _) => Check::Nothing,
            (true, false) => Check::Sequence,
            (true, true) => Check::Everything,
        }
    }
}

/// The turns of one part, numbered on from the first.
struct Turns {
    lead_in: Range<u64>,
    timed: Range<u64>,
    lead_out: Range<u64>,
}

impl Turns {
    fn of(timed: u64) -> Self {
        let (start, end) = (LEAD_IN_TURNS, LEAD_IN_TURNS + timed);
        Self { lead_in: 0..start, timed: start..end, lead_out: end..end + LEAD_OUT_TURNS }
    }

    /// How many turns a part has in all of which `timed` are timed.
    fn in_all(timed: u64) -> u64 {
        Self::of(timed).lead_out.end
    }
}

/// Near's side of a connected launch.
struct Near<'a, E> {
    session: &'a Session,
    link: &'a Channel,
    clock: Clock,
    station: Box<Station<E>>,
    carries: bool,
}

/// What near measured around the turns of one part.
struct NearPart {
    elapsed_ns: f64,
    usage: Usage,
}

impl<E: Endpoint> Near<'_, E> {
    fn measure(mut self) -> Outcome<Yield> {
        let (far_settings, _): (Vec<Setting>, _) = self.link.receive().map_err(text)?;
        let workload = self.session.orders.case.workload;
        let mut turns_in_all = 0;
        let (total_turns, each_turns) = self.warm_up(&mut turns_in_all)?;

        let mut total = None;
        let mut each = None;
        let mut calls = None;
        let each_first = self.session.orders.number % 2 == 1;
        let parts = if each_first { [false, true] } else { [true, false] };
        for is_total in parts {
            match (is_total, workload) {
                (true, _) => total = Some(self.part(PartKind::Total, total_turns, false)?),
                (false, Workload::Throughput) => calls = Some(self.calls(each_turns)?),
                (false, _) => each = Some(self.each(each_turns)?),
            }
            turns_in_all += Turns::in_all(if is_total { total_turns } else { each_turns });
        }
        self.link.send(&Part { kind: PartKind::End, turns: 0, check: false }, &[]).map_err(text)?;

        let (near, far) = total.ok_or("the total part is missing; report this bug")?;
        let sample = Sample {
            round: 0,
            started_ns: 0,
            turns: total_turns,
            turns_in_all,
            elapsed_ns: near.elapsed_ns,
            floor_ns: None,
            each,
            near: near.usage,
            far: Some(far.usage),
            calls,
        };
        Ok(Yield { sample, settings: merged(self.station.end.settings(), far_settings) })
    }

    /// Runs turns, every byte of them checked, until there were enough of them and they took long
    /// enough; says how many turns the `total` and the `each` part are to have.
    fn warm_up(&mut self, turns_in_all: &mut u64) -> Outcome<(u64, u64)> {
        let (slice_ns, hint_ns) = match self.session.orders.size {
            Sizing::Turns(turns) => {
                *turns_in_all += Turns::in_all(turns);
                self.part(PartKind::Total, turns, true)?;
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
            let (part, _) = self.part(PartKind::Total, turns, true)?;
            *turns_in_all += Turns::in_all(turns);
            turns_so_far += turns;
            ns_so_far += part.elapsed_ns;
            let turn_ns = part.elapsed_ns.max(1.0) / turns as f64;
            let warm = turns_so_far >= LEAST_WARM_UP_TURNS && ns_so_far >= enough_ns;
            if warm || ns_so_far >= slice_ns || turns == MOST_TURNS {
                let each_ns = slice_ns * (1.0 - TOTAL_SHARE);
                let each_turns = fitting(each_ns, turn_ns).min(TurnLog::CAPACITY);
                return Ok((fitting(slice_ns * TOTAL_SHARE, turn_ns).min(MOST_TURNS), each_turns));
            }
            turns = fitting(enough_ns, turn_ns).clamp(turns, turns.saturating_mul(16)).min(MOST_TURNS);
        }
    }

    /// Announces a part to far, runs near's side of it, and takes far's account of it.
    fn part(&mut self, kind: PartKind, turns: u64, check: bool) -> Outcome<(NearPart, FarPart)> {
        self.announce(kind, turns, check)?;
        let Turns { lead_in, timed, lead_out } = Turns::of(turns);
        let station = &mut *self.station;
        let mut run = |turns: Range<u64>| match self.session.orders.case.workload {
            Workload::Throughput => station.stream(turns, &mut Unmetered),
            _ => station.ask(turns, || {}),
        };
        run(lead_in).map_err(text)?;
        let before = of_this_thread();
        let start = self.clock.now();
        run(timed).map_err(text)?;
        let end = self.clock.now();
        let usage = usage_between(before, of_this_thread());
        run(lead_out).map_err(text)?;
        let (far, _) = self.link.receive().map_err(text)?;
        Ok((NearPart { elapsed_ns: self.clock.ns_between(start, end), usage }, far))
    }

    /// The part in which every turn is timed.
    fn each(&mut self, turns: u64) -> Outcome<Each> {
        let mut log = TurnLog::new(&self.clock, turns);
        self.announce(PartKind::Total, turns, false)?;
        let Turns { lead_in, timed, lead_out } = Turns::of(turns);
        self.station.ask(lead_in, || {}).map_err(text)?;
        let clock = self.clock;
        log.start(&clock);
        self.station.ask(timed, || log.turn(&clock)).map_err(text)?;
        self.station.ask(lead_out, || {}).map_err(text)?;
        let _: (FarPart, _) = self.link.receive().map_err(text)?;

        let mut histogram = Histogram::new();
        log.ticks.iter().for_each(|ticks| histogram.record(self.clock.ns(*ticks) as u64));
        let mean_ns = self.clock.ns(log.ticks.iter().sum()) / turns as f64;
        Ok(Each { mean_ns, turns: histogram.encode() })
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

    fn announce(&mut self, kind: PartKind, turns: u64, check: bool) -> Outcome<()> {
        self.station.check(self.session.check(self.carries, check));
        self.link.send(&Part { kind, turns, check }, &[]).map_err(text)
    }
}

/// Far's side of a connected launch.
struct Far<'a, E> {
    session: &'a Session,
    link: &'a Channel,
    clock: Clock,
    station: Box<Station<E>>,
    carries: bool,
}

impl<E: Endpoint> Far<'_, E> {
    /// Serves one part after the other until near says that there are no more.
    fn serve(mut self) -> Outcome<()> {
        loop {
            let (part, _): (Part, _) = self.link.receive().map_err(text)?;
            self.station.check(self.session.check(self.carries, part.check));
            let done = match part.kind {
                PartKind::End => return Ok(()),
                PartKind::Total => self.total(part.turns).map_err(text)?,
                PartKind::Calls => self.calls(part.turns).map_err(text)?,
            };
            self.link.send(&done, &[]).map_err(text)?;
        }
    }

    /// Far's usage is taken when the last message of the lead-in and the first of the lead-out have come:
    /// it is that of the timed turns, and noting it delays none of them.
    fn total(&mut self, turns: u64) -> Result<FarPart, Broken> {
        let Turns { lead_in, timed, lead_out } = Turns::of(turns);
        let (mut before, mut after) = (of_this_thread(), None);
        let mut note_start = || before = of_this_thread();
        let mut note_end = || {
            after.get_or_insert_with(of_this_thread);
        };
        let station = &mut *self.station;
        match self.session.orders.case.workload {
            Workload::Throughput => {
                station.drain(lead_in, &mut Unmetered, &mut note_start)?;
                station.drain(timed, &mut Unmetered, || {})?;
                station.drain(lead_out, &mut Unmetered, &mut note_end)?;
            }
            _ => {
                station.answer(lead_in, &mut note_start)?;
                station.answer(timed, || {})?;
                station.answer(lead_out, &mut note_end)?;
            }
        }
        Ok(FarPart { usage: usage_between(before, after.unwrap_or(before)), calls: None })
    }

    fn calls(&mut self, turns: u64) -> Result<FarPart, Broken> {
        let Turns { lead_in, timed, lead_out } = Turns::of(turns);
        let mut log = CallLog::new(self.clock);
        self.station.drain(lead_in, &mut Unmetered, || {})?;
        self.station.drain(timed, &mut log, || {})?;
        self.station.drain(lead_out, &mut Unmetered, || {})?;
        Ok(FarPart { usage: Usage::default(), calls: Some(call_counts(&log, &self.clock)) })
    }
}

/// A launch of one operation.
fn cost(orders: &Orders, mut operation: impl Operation) -> Result<Sample, Broken> {
    let clock = Clock::new(orders.clock);
    let mut turns_in_all = 0;
    let mut timed = |turns: u64| -> Result<(f64, Usage), Broken> {
        turns_in_all += turns;
        let before = of_this_thread();
        let start = clock.now();
        repeat(&mut operation, 0..turns)?;
        let end = clock.now();
        Ok((clock.ns_between(start, end), usage_between(before, of_this_thread())))
    };
    let turns = match orders.size {
        Sizing::Turns(turns) => {
            timed(turns)?;
            turns
        }
        Sizing::Slice { slice_ns, .. } => {
            let enough_ns = slice_ns as f64 * WARM_UP_SHARE;
            let mut turns = LEAST_WARM_UP_TURNS;
            loop {
                let (elapsed_ns, _) = timed(turns)?;
                if elapsed_ns >= enough_ns {
                    break ((turns as f64 * slice_ns as f64 / elapsed_ns) as u64).max(1);
                }
                turns *= 2;
            }
        }
    };
    let (elapsed_ns, near) = timed(turns)?;
    Ok(Sample {
        round: 0,
        started_ns: 0,
        turns,
        turns_in_all,
        elapsed_ns,
        floor_ns: None,
        each: None,
        near,
        far: None,
        calls: None,
    })
}

/// How many different byte counts a record keeps apart.
const MOST_BYTE_COUNTS: usize = 64;

fn call_counts(log: &CallLog, clock: &Clock) -> CallCounts {
    let mut time = Histogram::new();
    let mut by_bytes: BTreeMap<u64, u64> = BTreeMap::new();
    for (ticks, bytes) in &log.calls {
        time.record(clock.ns(*ticks) as u64);
        *by_bytes.entry(*bytes as u64).or_default() += 1;
    }
    let (kept, further): (Vec<_>, Vec<_>) =
        by_bytes.into_iter().enumerate().partition(|(rank, _)| *rank < MOST_BYTE_COUNTS);
    let mut returned_bytes: Vec<(u64, u64)> = kept.into_iter().map(|(_, entry)| entry).collect();
    if let Some((_, calls)) = returned_bytes.last_mut() {
        *calls += further.into_iter().map(|(_, (_, calls))| calls).sum::<u64>();
    }
    CallCounts { count: log.count, time: time.encode(), returned_bytes }
}

/// Near's settings, and those of far that say something else.
fn merged(near: Vec<Setting>, far: Vec<Setting>) -> Vec<Setting> {
    let further: Vec<Setting> = far.into_iter().filter(|setting| !near.contains(setting)).collect();
    near.into_iter().chain(further).collect()
}
