//! The slices of a run, as its model takes them: what they are times of, which cases go together, and what was read beside them.

use super::fit::READINGS;
use crate::host_speed::{FullSpeed, ordered};
use crate::stats;
use model::floor::measures_the_host;
use model::placement::CpuPair;
use model::record::{Results, Sample};
use model::speed::SpeedReading;
use model::{Case, Placement};
use std::collections::{BTreeMap, HashMap};

/// The share of the readings of a place that are lower than that of the reference state: the calmest quarter of the run. A state that the
/// run was never in would have to be extrapolated to, and few slices were calm by all readings at once.
const CALM_SHARE: f64 = 0.25;

/// The least share of the slices of a case beside which something is read, so that it counts and those without are left out.
const LEAST_READ: f64 = 0.8;
/// Waking is read as the middle of what it took within some seconds: a single one varies by a fifth.
const WAKE_SPAN_NS: u64 = 2_000_000_000;

/// Readings that differ by less, as a fraction, are the same: the clock's grain.
const LEAST_CHANGE: f64 = 0.002;

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Place {
    Cpu(u32),
    /// The server's, of a case whose endpoints may be on two hosts.
    RemoteCpu(u32),
    Pair((u32, u32)),
    /// The time in which a sleeper on the other CPU is woken.
    Wake((u32, u32)),
}

const WAKE: usize = 3;

/// Which cases have slopes in common: they run on the same CPUs, and wait in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct GroupKey {
    /// Floors and operations follow the host in ways of their own.
    is_mechanism: bool,
    placement: Placement,
    cpus: Option<CpuPair>,
    /// Which readings all of their slices have.
    pub(super) places: [Option<Place>; READINGS],
}

/// The slices of one case.
#[derive(Debug, Clone)]
pub(super) struct CaseSlices {
    pub(super) case: Case,
    pub(super) slices: Vec<TimedSlice>,
}

/// One slice.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimedSlice {
    pub(super) trial: u32,
    pub(super) started_ns: u64,
    pub(super) log_time: f64,
    iterations: u64,
    /// The logarithms of what was read.
    logs: [Option<f64>; READINGS],
}

/// The slices of a run.
#[derive(Debug, Clone, Default)]
pub struct RunSlices {
    pub(super) cases: Vec<CaseSlices>,
    place_of: HashMap<Case, usize>,
    pub(super) full_speed: FullSpeed,
}

/// What was read of each place in the reference state.
#[derive(Debug, Clone, Default)]
pub struct HostState(BTreeMap<Place, Reference>);

/// What is read of one place.
#[derive(Debug, Clone, Copy)]
struct Reference {
    /// As a logarithm.
    log: f64,
    /// Whether it changes: what never does has no part in how times change.
    changes: bool,
}

/// What waking took over a run, by place and span of time, as logarithms.
#[derive(Debug, Default)]
pub(super) struct Wakes(HashMap<((u32, u32), u64), f64>);

impl Wakes {
    pub(super) fn from_slices(slices: &RunSlices) -> Self {
        let mut spans: BTreeMap<((u32, u32), u64), Vec<f64>> = BTreeMap::new();
        for case in &slices.cases {
            let Some(Place::Wake(pair)) = places(&case.case)[WAKE] else { continue };
            for slice in &case.slices {
                let span = slice.started_ns / WAKE_SPAN_NS;
                spans.entry((pair, span)).or_default().extend(slice.logs[WAKE]);
            }
        }
        let middles: BTreeMap<((u32, u32), u64), f64> =
            spans.iter().filter_map(|(at, logs)| Some((*at, stats::median(logs)?))).collect();
        let smooth = |(pair, span): &((u32, u32), u64)| {
            let near = middles.range((*pair, span.saturating_sub(1))..=(*pair, span + 1));
            stats::median(&near.map(|(_, log)| *log).collect::<Vec<_>>())
        };
        Self(middles.keys().filter_map(|at| Some((*at, smooth(at)?))).collect())
    }

    fn at(&self, pair: (u32, u32), started_ns: u64) -> Option<f64> {
        self.0.get(&(pair, started_ns / WAKE_SPAN_NS)).copied()
    }
}

impl RunSlices {
    /// Of all samples of `results`.
    pub fn of_results(results: &Results) -> Self {
        Self::from_records(results.records.iter().map(|record| (&record.case, record.samples.as_slice())))
    }

    /// Of the samples of each case.
    pub fn from_records<'a>(records: impl IntoIterator<Item = (&'a Case, &'a [Sample])>) -> Self {
        let mut slices = Self::default();
        for (case, samples) in records {
            samples.iter().for_each(|sample| slices.add(case, sample));
        }
        slices
    }

    /// Takes one more slice. One that took no time says nothing.
    pub fn add(&mut self, case: &Case, sample: &Sample) {
        self.full_speed.add(case, sample);
        let log_time = sample.iteration_ns().ln();
        if !log_time.is_finite() {
            return;
        }
        let at = self.place(case);
        let logs = readings(sample).map(|reading| reading.filter(|log| log.is_finite()));
        let Sample { trial, started_ns, iterations, .. } = *sample;
        self.cases[at].slices.push(TimedSlice { trial, started_ns, log_time, iterations, logs });
    }

    /// Where `case` is among the cases that have slices.
    pub(super) fn find(&self, case: &Case) -> Option<usize> {
        self.place_of.get(case).copied()
    }

    fn place(&mut self, case: &Case) -> usize {
        if let Some(at) = self.find(case) {
            return at;
        }
        self.place_of.insert(case.clone(), self.cases.len());
        self.cases.push(CaseSlices { case: case.clone(), slices: Vec::new() });
        self.cases.len() - 1
    }

    /// The state of the host in the calmest quarter of the run.
    pub fn calm_state(&self) -> HostState {
        self.calm_state_of(&Wakes::from_slices(self))
    }

    /// The same, of which waking is known.
    pub(super) fn calm_state_of(&self, wakes: &Wakes) -> HostState {
        let mut logs: BTreeMap<Place, Vec<f64>> = BTreeMap::new();
        for case in &self.cases {
            for (at, place) in places(&case.case).into_iter().enumerate() {
                let Some(place) = place else { continue };
                let read = case.slices.iter().filter_map(|slice| slice.read(at, place, wakes));
                logs.entry(place).or_default().extend(read);
            }
        }
        logs.retain(|_, logs| !logs.is_empty());
        let calm = |(place, mut logs): (Place, Vec<f64>)| {
            let at = (logs.len() as f64 * CALM_SHARE) as usize;
            let (_, log, _) = logs.select_nth_unstable_by(at, f64::total_cmp);
            let log = *log;
            let changes = logs.iter().any(|other| (other - log).abs() > LEAST_CHANGE);
            (place, Reference { log, changes })
        };
        HostState(logs.into_iter().map(calm).collect())
    }
}

impl HostState {
    /// The middle of `states`, of what was read in all of them.
    pub fn middle(states: &[Self]) -> Self {
        let Some(first) = states.first() else { return Self::default() };
        let middle = |place: &Place| {
            let all: Option<Vec<Reference>> =
                states.iter().map(|state| state.0.get(place).copied()).collect();
            let all = all?;
            let log = stats::mean(&all.iter().map(|reference| reference.log).collect::<Vec<_>>());
            let changes = all.iter().any(|one| one.changes || (one.log - log).abs() > LEAST_CHANGE);
            Some((*place, Reference { log, changes }))
        };
        Self(first.0.keys().filter_map(middle).collect())
    }

    /// Of a CPU.
    #[cfg(test)]
    pub(crate) fn cpu(&self, cpu: u32) -> Option<f64> {
        self.log_at(Place::Cpu(cpu))
    }

    /// The logarithm of what is read of `place`; `None` where nothing is, or always the same.
    pub(super) fn log_at(&self, place: Place) -> Option<f64> {
        self.0.get(&place).filter(|reference| reference.changes).map(|reference| reference.log)
    }
}

impl CaseSlices {
    /// Which cases it belongs to, of a host whose reference state is `state`.
    pub(super) fn key(&self, state: &HostState) -> GroupKey {
        let places = places(&self.case);
        let is_read = |at: usize| {
            let place = places[at].filter(|place| state.log_at(*place).is_some());
            let read = self.slices.iter().filter(|slice| slice.logs[at].is_some()).count();
            place.filter(|_| read as f64 >= LEAST_READ * self.slices.len() as f64)
        };
        let places = std::array::from_fn(is_read);
        let is_mechanism = !measures_the_host(&self.case);
        GroupKey { is_mechanism, placement: self.case.placement, cpus: self.case.cpus, places }
    }
}

/// A quarter of the slices take this or less; `None` of none.
pub(crate) fn fast_quarter_ns(mut iteration_ns: Vec<f64>) -> Option<f64> {
    let quarter = iteration_ns.len() / 4;
    if iteration_ns.is_empty() {
        return None;
    }
    Some(*iteration_ns.select_nth_unstable_by(quarter, f64::total_cmp).1)
}

/// How much longer a slice of so many iterations took than one of the fast quarter, where that was hardly a neighbour on the CPU.
pub(crate) fn stalled_ns(iteration_ns: f64, iterations: u64, fast_ns: f64) -> Option<f64> {
    /// Delayed acknowledgements take 40 ms, retransmissions 200; a scheduler lets nobody wait so long who has one or two neighbours.
    const LEAST_NS: f64 = 30e6;
    const LEAST_TIMES: f64 = 3.0;
    let longer_ns = (iteration_ns - fast_ns) * iterations as f64;
    (iteration_ns >= LEAST_TIMES * fast_ns && longer_ns >= LEAST_NS).then_some(longer_ns)
}

impl CaseSlices {
    /// The slices that did not stall: those that did are told of for themselves. All of them, where most did.
    pub(super) fn moving(&self) -> Vec<&TimedSlice> {
        let times_ns: Vec<f64> = self.slices.iter().map(|slice| slice.log_time.exp()).collect();
        let fast_ns = fast_quarter_ns(times_ns).unwrap_or_default();
        let moves =
            |slice: &&TimedSlice| stalled_ns(slice.log_time.exp(), slice.iterations, fast_ns).is_none();
        let moving: Vec<&TimedSlice> = self.slices.iter().filter(moves).collect();
        if 2 * moving.len() > self.slices.len() { moving } else { self.slices.iter().collect() }
    }
}

impl TimedSlice {
    /// What was read at `places` over what it is in `state`; `None` where one of them was not read.
    pub(super) fn over(
        &self,
        places: &[Option<Place>; READINGS],
        state: &HostState,
        wakes: &Wakes,
    ) -> Option<[f64; READINGS]> {
        let mut over = [0.0; READINGS];
        for (at, place) in places.iter().enumerate() {
            if let Some(place) = place {
                over[at] = self.read(at, *place, wakes)? - state.log_at(*place)?;
            }
        }
        Some(over)
    }

    /// The logarithm of the reading at `at`, of `place`.
    fn read(&self, at: usize, place: Place, wakes: &Wakes) -> Option<f64> {
        match place {
            Place::Wake(pair) => self.logs[at].and_then(|_| wakes.at(pair, self.started_ns)),
            _ => self.logs[at],
        }
    }
}

/// Where what is read beside a slice of `case` is read.
fn places(case: &Case) -> [Option<Place>; READINGS] {
    let Some(cpus) = case.cpus else { return [None; READINGS] };
    let of_server = if case.placement == Placement::Remote { Place::RemoteCpu } else { Place::Cpu };
    let pair = ordered(cpus);
    [Place::Cpu(cpus.client), of_server(cpus.server), Place::Pair(pair), Place::Wake(pair)].map(Some)
}

/// The logarithms of what was read beside `sample`.
fn readings(sample: &Sample) -> [Option<f64>; READINGS] {
    let log = |reading: &SpeedReading| reading.mean_ns().ln();
    let speed = sample.speed.as_ref();
    [
        speed.map(|speed| log(&speed.client)),
        speed.and_then(|speed| speed.server.as_ref()).map(log),
        speed.and_then(|speed| speed.pair.as_ref()).map(log),
        sample.wake_floor_ns.map(f64::ln),
    ]
}
