//! An iteration as the sum of the segments of its path, less what recording them cost, beside the same iterations without an
//! instrument.
//!
//! Everything is worked out round by round, for a round lies close together in time, and averaged over rounds: means add up.
//! The residual is measured, not defined: the corrected sum less the bare iteration.

use super::dose::{DoseCosts, DoseFit, RecordedSets, largest_dose, recorded_sets};
use super::segment::{CriticalPath, SegmentKind, SegmentPlace};
use super::shares::{EventShares, PlaceShare};
use super::tally::TrialPaths;
use crate::interval::{MeanEstimate, mean_over_trials};
use crate::stats::median;
use model::observation::{CpuTrace, EventSet};
use model::record::Setting;
use model::sample::{Sample, Usage};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A round in which a trial took so many times the median of its dose, or less than its inverse, was disturbed.
const DISTURBED: f64 = 1.5;
/// Segments of less than this share of the iteration are added up, unless they are disturbances.
const MINOR: f64 = 0.01;

/// The slices of some dose in one round.
#[derive(Debug, Clone)]
struct DosedTrial {
    dose: RecordedSets,
    /// The means of the slices.
    iteration_ns: f64,
    switches: Option<f64>,
    slices: u32,
    /// Of the largest dose: what its events say.
    paths: Option<TrialPaths>,
    records: u64,
    lost: u64,
}

impl DosedTrial {
    /// Whether so few records were lost that they change no segment by more than other things do. Where all sets are recorded, the
    /// kernel counts a few more events than it has recorded, though no buffer is full.
    fn is_whole(&self) -> bool {
        const ONE_OF: u64 = 100;
        self.lost * ONE_OF <= self.records
    }
}

/// What an iteration of a slice took in the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceMeans {
    /// Its time in nanoseconds, by the client's clock.
    pub iteration_ns: f64,
    /// The context switches of both endpoints, if they were counted.
    pub switches: Option<f64>,
}

impl From<&Sample> for SliceMeans {
    fn from(sample: &Sample) -> Self {
        let switches_of = |usage: &Usage| usage.voluntary_switches + usage.involuntary_switches;
        let switches = sample.server.as_ref().map(|server| switches_of(&sample.client) + switches_of(server));
        Self {
            iteration_ns: sample.iteration_ns(),
            switches: switches.map(|count| count as f64 / sample.iterations as f64),
        }
    }
}

/// The slices of one case, at every dose, round by round: a trial each.
#[derive(Debug, Clone, Default)]
pub struct DosedTrials {
    rounds: BTreeMap<u32, Vec<DosedTrial>>,
    unavailable: BTreeSet<String>,
    /// What the endpoints asked the kernel for, and got.
    pub settings: Vec<Setting>,
}

/// One line of the sum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SegmentSum {
    /// Where on the path; absent of all that is small, added up.
    pub place: Option<SegmentPlace>,
    /// As observed, in nanoseconds an iteration.
    pub observed_ns: MeanEstimate,
    /// Less what recording the events in it cost.
    pub corrected_ns: MeanEstimate,
    /// The corrected time as a share of the iteration without an instrument.
    pub share: f64,
    /// How many events an iteration were recorded in it.
    pub events: f64,
}

/// What recording a set of events costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventCost {
    /// The set.
    pub set: EventSet,
    /// What it adds to an iteration beside what all sets have in common, in nanoseconds.
    pub iteration_ns: MeanEstimate,
    /// How many events of it lie on the path of an iteration.
    pub events: f64,
    /// What one of them costs; absent where hardly any lies on the path, so that nothing was taken from it.
    pub event_ns: Option<MeanEstimate>,
}

/// The context switches of an iteration at one dose.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DoseSwitches {
    /// What was recorded.
    pub dose: RecordedSets,
    /// How many there were, of both endpoints.
    pub switches: MeanEstimate,
}

/// An iteration as a sum.
#[derive(Debug, Clone, Serialize)]
pub struct PathSum {
    /// The rounds that it is averaged over.
    pub rounds: usize,
    /// The rounds that were left out, because a trial in them was disturbed.
    pub rounds_left_out: usize,
    /// The observed iterations; of several clients, those of all.
    pub iterations: u64,
    /// Those of which it is not known throughout whom the server of several clients served.
    pub unfollowed: u64,
    /// The segments, in the order of the path.
    pub segments: Vec<SegmentSum>,
    /// An iteration as observed: the sum of what was observed in the segments.
    pub observed_ns: MeanEstimate,
    /// The sum of the corrected segments.
    pub corrected_ns: MeanEstimate,
    /// An iteration without an instrument, in the same rounds.
    pub bare_ns: MeanEstimate,
    /// The corrected sum less the bare iteration.
    pub residual_ns: MeanEstimate,
    /// What an instrument that records nothing adds to an iteration. It is taken from the client's own code.
    pub base_ns: MeanEstimate,
    /// What recording adds once to an iteration, whichever sets are recorded; absent where no pairs of sets were.
    pub common_ns: Option<MeanEstimate>,
    /// What recording each set costs beside that.
    pub costs: Vec<EventCost>,
    /// The context switches of an iteration at each dose, where they were counted.
    pub switches: Vec<DoseSwitches>,
    /// The costs were found without the trials that they are taken from, so that the residual is a test.
    pub is_tested: bool,
    /// What cannot be told apart, because events of it were not recorded.
    pub merged: Vec<&'static str>,
    /// Which tasks had a CPU that an endpoint waited for, and the nanoseconds an iteration.
    pub tasks: Vec<(String, f64)>,
    /// The observed path of one iteration that took about the median.
    pub typical: Option<CriticalPath>,
    /// Each round's corrected time of each place, and its bare iteration, for differences.
    #[serde(skip)]
    pub(super) by_round: BTreeMap<u32, RoundSum>,
}

/// One round of a sum.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RoundSum {
    pub(super) bare_ns: f64,
    pub(super) corrected_ns: BTreeMap<SegmentPlace, f64>,
    observed_ns: BTreeMap<SegmentPlace, f64>,
    costs: DoseCosts,
    /// At each dose.
    switches: Vec<Option<f64>>,
}

impl RoundSum {
    pub(super) fn sum_ns(&self) -> f64 {
        self.corrected_ns.values().sum()
    }
}

impl PathSum {
    /// The segments that matter for a first answer: those of at least this share of the iteration, and the others added up.
    pub fn brief(&self) -> Vec<SegmentSum> {
        const LEAST: f64 = 0.04;
        let (large, others): (Vec<&SegmentSum>, Vec<&SegmentSum>) =
            self.segments.iter().partition(|segment| segment.place.is_some() && segment.share >= LEAST);
        let shown: BTreeSet<SegmentPlace> = large.iter().filter_map(|segment| segment.place).collect();
        let together = |of: fn(&RoundSum) -> &BTreeMap<SegmentPlace, f64>| {
            let rounds = self.by_round.values().map(|round| {
                of(round).iter().filter(|(place, _)| !shown.contains(place)).map(|(_, ns)| ns).sum::<f64>()
            });
            mean_over_trials(&rounds.collect::<Vec<f64>>())
        };
        let corrected_ns = together(|round| &round.corrected_ns);
        let rest =
            corrected_ns.zip(together(|round| &round.observed_ns)).map(|(corrected_ns, observed_ns)| {
                let share = corrected_ns.mean / self.bare_ns.mean;
                let events = others.iter().map(|segment| segment.events).sum();
                SegmentSum { place: None, observed_ns, corrected_ns, share, events }
            });
        let rest = rest.filter(|_| !others.is_empty());
        large.into_iter().cloned().chain(rest).collect()
    }

    /// The calls on the path, by number. `name` names them.
    pub fn call_names(&self, name: impl Fn(u32) -> String) -> BTreeMap<u32, String> {
        self.places().into_iter().filter_map(|place| place.call).map(|call| (call, name(call))).collect()
    }

    /// The context switches of an iteration without an instrument.
    pub fn bare_switches(&self) -> Option<MeanEstimate> {
        self.switches.iter().find(|of| of.dose.is_none()).map(|of| of.switches)
    }

    /// The doses at which an iteration has clearly more or fewer context switches than without an instrument.
    pub fn schedule_changes(&self) -> Vec<&DoseSwitches> {
        /// Fewer say nothing of the costs.
        const CHANGED: f64 = 0.05;
        let Some(bare) = self.bare_switches() else { return Vec::new() };
        let is_apart = |of: &&DoseSwitches| {
            let apart = (of.switches.mean - bare.mean).abs();
            let halves: f64 =
                [of.switches, bare].iter().map(|of| of.half_width().unwrap_or(f64::INFINITY)).sum();
            apart > CHANGED * bare.mean && apart > halves
        };
        self.switches.iter().filter(is_apart).collect()
    }

    /// Every place on the path.
    pub(super) fn places(&self) -> BTreeSet<SegmentPlace> {
        self.by_round.values().flat_map(|round| round.corrected_ns.keys().copied()).collect()
    }

    /// What the segments of the kinds that `is_in` takes cost together, corrected, in nanoseconds an iteration.
    pub fn of_kinds(&self, is_in: &dyn Fn(SegmentKind) -> bool) -> Option<MeanEstimate> {
        self.of_places(&|place| is_in(place.kind))
    }

    /// What the places that `is_in` takes cost together, in nanoseconds an iteration; `None` where there is none.
    pub(super) fn of_places(&self, is_in: &dyn Fn(SegmentPlace) -> bool) -> Option<MeanEstimate> {
        let of_round = |round: &RoundSum| {
            let inside = round.corrected_ns.iter().filter(|(place, _)| is_in(**place));
            inside.map(|(_, ns)| ns).sum::<f64>()
        };
        let rounds: Vec<f64> = self.by_round.values().map(of_round).collect();
        self.places().into_iter().any(is_in).then(|| mean_over_trials(&rounds)).flatten()
    }
}

impl DosedTrials {
    /// Adds a slice without an instrument.
    pub fn add_bare(&mut self, round: u32, means: SliceMeans) {
        let SliceMeans { iteration_ns, switches } = means;
        self.merge(
            round,
            DosedTrial { dose: None, iteration_ns, switches, slices: 1, paths: None, records: 0, lost: 0 },
        );
    }

    /// Adds a slice in which `trace` was recorded.
    pub fn add(&mut self, round: u32, trace: &CpuTrace, means: SliceMeans) {
        let SliceMeans { iteration_ns, switches } = means;
        self.unavailable.extend(trace.unavailable.iter().cloned());
        let no_programs = trace.no_programs.as_ref();
        self.unavailable.extend(
            no_programs.map(|reason| format!("programs in the kernel, which record at less cost: {reason}")),
        );
        let mut sets = trace.sets.clone();
        sets.sort_unstable();
        let doses = self.rounds.values().flatten().filter_map(|trial| trial.dose.as_ref());
        let is_largest = doses.map(Vec::len).max().is_none_or(|most| sets.len() >= most);
        let paths = is_largest.then(|| TrialPaths::from_trace(trace));
        let (records, lost) = (trace.events.len() as u64, trace.lost);
        self.merge(
            round,
            DosedTrial { dose: Some(sets), iteration_ns, switches, slices: 1, paths, records, lost },
        );
    }

    /// Slices of one dose in one round are of one trial.
    fn merge(&mut self, round: u32, slice: DosedTrial) {
        let trials = self.rounds.entry(round).or_default();
        let Some(trial) = trials.iter_mut().find(|trial| trial.dose == slice.dose) else {
            trials.push(slice);
            return;
        };
        let before = f64::from(trial.slices);
        let mean = |of: f64, one: f64| (of * before + one) / (before + 1.0);
        trial.iteration_ns = mean(trial.iteration_ns, slice.iteration_ns);
        trial.switches = trial.switches.zip(slice.switches).map(|(of, one)| mean(of, one));
        trial.slices += 1;
        trial.records += slice.records;
        trial.lost += slice.lost;
        match (&mut trial.paths, slice.paths) {
            (Some(paths), Some(others)) => paths.add(others),
            (None, others) => trial.paths = others,
            (Some(_), None) => {}
        }
    }

    /// Notes why a slice could not be measured.
    pub fn note_failure(&mut self, reason: String) {
        self.unavailable.insert(reason);
    }

    /// The sets that could not be recorded, each with the reason and what would grant it; and why there is no sum, if slices were
    /// measured and there is none.
    pub fn unavailable(&self) -> Vec<String> {
        let lost: u64 = self.rounds.values().flatten().map(|trial| trial.lost).sum();
        let no_sum = (!self.rounds.is_empty() && self.sum().is_none()).then(|| {
            format!(
                "the path: of {} rounds none had every dose as a whole; {lost} records were lost; give it more with --time, or \
                 fewer --iterations",
                self.rounds.len()
            )
        });
        self.unavailable.iter().cloned().chain(no_sum).collect()
    }

    /// The paths of the trials of the largest dose, in the order of rounds.
    pub(super) fn largest(&self) -> Vec<&TrialPaths> {
        let trials = || self.rounds.values().flatten();
        let most = trials().filter_map(|trial| trial.dose.as_ref()).map(Vec::len).max();
        let is_largest = |trial: &&DosedTrial| trial.dose.as_ref().map(Vec::len) == most;
        trials().filter(is_largest).filter_map(|trial| trial.paths.as_ref()).collect()
    }

    /// An iteration as a sum; `None` where there are too few doses or rounds to tell.
    pub fn sum(&self) -> Option<PathSum> {
        let mut doses: Vec<RecordedSets> = Vec::new();
        for trial in self.rounds.values().flatten() {
            if !doses.contains(&trial.dose) {
                doses.push(trial.dose.clone());
            }
        }
        let at_largest = largest_dose(&doses)?;
        let sets = recorded_sets(&doses[at_largest]);
        let whole: BTreeMap<u32, Vec<&DosedTrial>> = self
            .rounds
            .iter()
            .filter_map(|(round, trials)| Some((*round, one_of_each(&doses, at_largest, trials)?)))
            .collect();
        let kept = undisturbed(&whole);
        let left_out = whole.len() - kept.len();
        let largest: Vec<&TrialPaths> =
            kept.values().filter_map(|trials| trials[at_largest].paths.as_ref()).collect();
        let shares = EventShares::from_trials(&largest, &sets);
        let fit = DoseFit::from_doses(&doses, &shares.frequent()).filter(|fit| !fit.sets.is_empty())?;
        let changes = ScheduleChanges::from_rounds(&fit, kept.values());
        let by_round: BTreeMap<u32, RoundSum> = kept
            .iter()
            .filter_map(|(round, trials)| Some((*round, round_sum(&fit, &shares, &changes, trials)?)))
            .collect();
        put_together(&fit, &doses, &shares, &largest, by_round, left_out)
    }
}

/// The trial of each dose, in the order of `doses`; `None` where one lacks. A slice that lost records costs what others do, but its path
/// is not whole: that of the largest dose, at `largest`, must have lost hardly any.
fn one_of_each<'a>(
    doses: &[RecordedSets],
    largest: usize,
    trials: &'a [DosedTrial],
) -> Option<Vec<&'a DosedTrial>> {
    let with_dose = |(at, dose): (usize, &RecordedSets)| {
        trials.iter().find(|trial| trial.dose == *dose && (at != largest || trial.is_whole()))
    };
    doses.iter().enumerate().map(with_dose).collect()
}

/// The rounds in which every trial took about as long as others of its dose; where these are fewer than half, the half that comes
/// closest. It asks nothing of what the doses do to each other.
fn undisturbed<'a>(rounds: &BTreeMap<u32, Vec<&'a DosedTrial>>) -> BTreeMap<u32, Vec<&'a DosedTrial>> {
    let doses = rounds.values().next().map_or(0, Vec::len);
    let medians: Vec<f64> = (0..doses)
        .filter_map(|dose| {
            let times: Vec<f64> = rounds.values().map(|trials| trials[dose].iteration_ns).collect();
            median(&times)
        })
        .collect();
    let worst = |trials: &[&DosedTrial]| {
        let apart =
            trials.iter().zip(&medians).map(|(trial, median)| (trial.iteration_ns / median).ln().abs());
        apart.fold(0.0, f64::max)
    };
    let mut by_worst: Vec<f64> = rounds.values().map(|trials| worst(trials)).collect();
    by_worst.sort_by(f64::total_cmp);
    let of_half = by_worst.get(by_worst.len().div_ceil(2).saturating_sub(1)).copied().unwrap_or(0.0);
    let bound = of_half.max(DISTURBED.ln());
    let kept = rounds.iter().filter(|(_, trials)| worst(trials) <= bound);
    kept.map(|(round, trials)| (*round, trials.clone())).collect()
}

/// How recording changes the schedule: with some events recorded, the endpoints of a socket were seen to switch half as often again,
/// with others not at all. What further switches take is no cost of the events that are there.
struct ScheduleChanges {
    /// What a further switch takes, in nanoseconds.
    switch_ns: f64,
    /// The switches of an iteration without an instrument.
    bare: Option<f64>,
}

impl ScheduleChanges {
    /// By how times follow switches from round to round at the same dose. Where these hardly vary nothing follows from them.
    fn from_rounds<'a>(fit: &DoseFit, rounds: impl Iterator<Item = &'a Vec<&'a DosedTrial>> + Clone) -> Self {
        /// Switches that vary by less than this from round to round are as good as constant.
        const CONSTANT: f64 = 0.02;
        let doses = rounds.clone().next().map_or(0, Vec::len);
        let of_dose = |dose: usize| -> Vec<(f64, f64)> {
            rounds
                .clone()
                .filter_map(|trials| Some((trials[dose].switches?, trials[dose].iteration_ns)))
                .collect()
        };
        let (mut both, mut square) = (0.0, 0.0);
        for points in (0..doses).map(of_dose).filter(|points| !points.is_empty()) {
            let count = points.len() as f64;
            let switches = points.iter().map(|(switches, _)| switches).sum::<f64>() / count;
            let ns = points.iter().map(|(_, ns)| ns).sum::<f64>() / count;
            both += points.iter().map(|point| (point.0 - switches) * (point.1 - ns)).sum::<f64>();
            square += points.iter().map(|point| (point.0 - switches).powi(2) + CONSTANT.powi(2)).sum::<f64>();
        }
        let bare: Vec<f64> = of_dose(fit.bare).into_iter().map(|(switches, _)| switches).collect();
        Self {
            switch_ns: if square > 0.0 { (both / square).max(0.0) } else { 0.0 },
            bare: (!bare.is_empty()).then(|| bare.iter().sum::<f64>() / bare.len() as f64),
        }
    }

    /// What an iteration of `trial` would take with the switches of one without an instrument.
    fn with_bare_schedule_ns(&self, trial: &DosedTrial) -> f64 {
        let further = trial.switches.zip(self.bare).map_or(0.0, |(switches, bare)| switches - bare);
        trial.iteration_ns - self.switch_ns * further
    }
}

fn round_sum(
    fit: &DoseFit,
    shares: &EventShares,
    changes: &ScheduleChanges,
    trials: &[&DosedTrial],
) -> Option<RoundSum> {
    let mut times_ns: Vec<f64> = trials.iter().map(|trial| changes.with_bare_schedule_ns(trial)).collect();
    let paths = trials[fit.largest].paths.as_ref()?;
    // The path is from clock reading to clock reading, as the iterations of the other doses are.
    times_ns[fit.largest] = paths.iteration_ns();
    let costs = fit.costs(&times_ns);
    let observed_ns: BTreeMap<SegmentPlace, f64> =
        shares.places.iter().map(|at| (at.place, paths.ns_at(at.place))).collect();
    let corrected = |at: &PlaceShare| (at.place, observed_ns[&at.place] - at.cost_ns(&costs));
    Some(RoundSum {
        bare_ns: trials[fit.bare].iteration_ns,
        corrected_ns: shares.places.iter().map(corrected).collect(),
        observed_ns,
        costs,
        switches: trials.iter().map(|trial| trial.switches).collect(),
    })
}

fn put_together(
    fit: &DoseFit,
    doses: &[RecordedSets],
    shares: &EventShares,
    largest: &[&TrialPaths],
    by_round: BTreeMap<u32, RoundSum>,
    rounds_left_out: usize,
) -> Option<PathSum> {
    let mean =
        |of: &dyn Fn(&RoundSum) -> f64| mean_over_trials(&by_round.values().map(of).collect::<Vec<f64>>());
    let (corrected_ns, bare_ns) = (mean(&RoundSum::sum_ns)?, mean(&|round| round.bare_ns)?);
    let (minor, major): (Vec<_>, Vec<_>) = shares.places.iter().map(|at| at.place).partition(|place| {
        let of_place = mean(&|round| round.observed_ns[place]).map_or(0.0, |mean| mean.mean);
        of_place < MINOR * bare_ns.mean && !place.kind.is_disturbance()
    });
    let line = |place: Option<SegmentPlace>, places: &[SegmentPlace]| {
        let corrected = mean(&|round| places.iter().map(|place| round.corrected_ns[place]).sum())?;
        Some(SegmentSum {
            place,
            observed_ns: mean(&|round| places.iter().map(|place| round.observed_ns[place]).sum())?,
            corrected_ns: corrected,
            share: corrected.mean / bare_ns.mean,
            events: shares.places.iter().filter(|at| places.contains(&at.place)).map(|at| at.events).sum(),
        })
    };
    let mut segments: Vec<SegmentSum> =
        major.iter().filter_map(|place| line(Some(*place), &[*place])).collect();
    if !minor.is_empty() {
        segments.extend(line(None, &minor));
    }
    let frequent = shares.frequent();
    let cost = |(at, set): (usize, &EventSet)| {
        let events = shares.events[at];
        Some(EventCost {
            set: *set,
            iteration_ns: mean(&|round| round.costs.sets_ns[at])?,
            events,
            event_ns: frequent
                .contains(set)
                .then(|| mean(&|round| round.costs.sets_ns[at] / events))
                .flatten(),
        })
    };
    let switches = |(at, dose): (usize, &RecordedSets)| {
        let rounds: Option<Vec<f64>> = by_round.values().map(|round| round.switches[at]).collect();
        Some(DoseSwitches { dose: dose.clone(), switches: mean_over_trials(&rounds?)? })
    };
    Some(PathSum {
        rounds: by_round.len(),
        rounds_left_out,
        iterations: shares.iterations,
        unfollowed: largest.iter().map(|trial| trial.unfollowed).sum(),
        segments,
        observed_ns: mean(&|round| round.observed_ns.values().sum())?,
        corrected_ns,
        bare_ns,
        residual_ns: mean(&|round| round.sum_ns() - round.bare_ns)?,
        base_ns: mean(&|round| round.costs.base_ns)?,
        common_ns: fit.has_common.then(|| mean(&|round| round.costs.common_ns)).flatten(),
        costs: fit.sets.iter().enumerate().filter_map(cost).collect(),
        switches: doses.iter().enumerate().filter_map(switches).collect(),
        is_tested: fit.is_tested,
        merged: merged(&fit.sets),
        tasks: tasks(largest, shares.iterations),
        typical: largest.first().and_then(|trial| trial.typical.clone()),
        by_round,
    })
}

/// Who had a CPU that an endpoint waited for, the longest first.
fn tasks(trials: &[&TrialPaths], iterations: u64) -> Vec<(String, f64)> {
    let mut tasks: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, ns) in trials.iter().flat_map(|trial| &trial.tasks_ns) {
        *tasks.entry(name).or_default() += ns;
    }
    let mut tasks: Vec<(String, f64)> =
        tasks.into_iter().map(|(name, ns)| (name.to_owned(), ns as f64 / iterations.max(1) as f64)).collect();
    tasks.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    tasks
}

/// What cannot be told apart where only `sets` are recorded.
fn merged(sets: &[EventSet]) -> Vec<&'static str> {
    let lacks = |set: EventSet| !sets.contains(&set);
    let all = [
        (
            EventSet::Switches,
            "a call and the time that its thread sleeps in it, with all that the peer does meanwhile",
        ),
        (
            EventSet::WakeUps,
            "a wake-up and what the waking endpoint does up to then or, on one CPU, until it sleeps",
        ),
        (EventSet::Calls, "user code and system calls"),
        (EventSet::Idle, "coming out of idle and the rest of a wake-up"),
        (EventSet::Interrupts, "interrupts and softirqs, and the code that they interrupt"),
        (EventSet::Faults, "page faults and the code that takes them"),
    ];
    all.into_iter().filter(|(set, _)| lacks(*set)).map(|(_, what)| what).collect()
}
