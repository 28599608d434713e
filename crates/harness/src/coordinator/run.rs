//! A run: rounds of slices until every case is known well enough, or time is up.
//!
//! In each round every open case has one slice, in random order. Trials stay alive over several rounds, their endpoints asleep in
//! between, and are renewed over the whole run. Where there are more cases than trials may be alive, the trials of a group of
//! cases have several slices in a row and end.
//!
//! Cases that share floors are measured next to each other, in groups, and the floors before and after each group: a case is
//! divided by the geometric mean of both. Whether a case is known well enough, and how many slices a trial has, is for rules to
//! say that the run is given: nothing here computes a statistic.

use super::schedule::{Scheduler, Stop, TimeBudget, Trial, TrialOutcome, TrialProgress, Trials};
use super::slices::iterations_of_total;
use crate::protocol::orders::{Singly, Sizing, SliceOrders};
use crate::protocol::report::SliceReport;
use model::elsewhere::Elsewhere;
use model::floor::{Floor, floor_of};
use model::plan::Plan;
use model::record::{Outcome, Sample, Setting};
use model::{Case, Size, Workload};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// What a run reports while it goes on.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// The floors were first measured; in nanoseconds per iteration, where they could be.
    Floors(Vec<(&'a Case, Option<f64>)>),
    /// A slice was measured, and so were the floors after it, by which the sample is divided. Where the run ends before them, the
    /// floors before it alone. Each sample is reported once.
    Sample(&'a Case, &'a Sample),
    /// A slice is over, measured or not.
    Progress(TrialProgress),
    /// A case has ended.
    Ended(Box<FinishedCase>),
}

/// A case that has ended, with all that was measured of it.
#[derive(Debug, Clone)]
pub struct FinishedCase {
    /// What was measured.
    pub case: Case,
    /// Whether the case is a floor, which has slices in every round whether it is settled or not.
    pub floor: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// One sample a slice, in the order in which they were taken.
    pub samples: Vec<Sample>,
    /// What the endpoints set, and what the kernel made of it.
    pub settings: Vec<Setting>,
    /// The slices that did not run on the CPUs of the placement.
    pub elsewhere: Elsewhere,
}

/// How a run ended.
#[derive(Debug, Clone, Copy)]
pub struct RunFinish {
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// How many rounds were begun.
    pub rounds: u32,
    /// How long it took.
    pub elapsed: Duration,
    /// The part of it in which trials were started and ended.
    pub starting: Duration,
}

/// Whether a case is known well enough, from its samples.
pub type SettledRule<'a> = &'a dyn Fn(&Case, &[Sample]) -> bool;

/// What a trial of a case costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrialCost {
    /// To start and end it.
    pub start: Duration,
    /// One slice, with all that is beside its timed iterations.
    pub slice: Duration,
}

/// How many slices the next trial of a case is to have, from the samples of those before and what they cost.
pub type SlicesRule<'a> = &'a dyn Fn(&[Sample], TrialCost) -> u32;

/// What bounds a run, beside its time.
#[derive(Clone, Copy)]
pub struct RunBounds<'a> {
    /// When a case is settled, if the run is over.
    pub settled: SettledRule<'a>,
    /// When it is so well settled that it ends before the run.
    pub ends_early: SettledRule<'a>,
    /// How many slices a trial has.
    pub slices: SlicesRule<'a>,
    /// The rounds that it may take; absent when only time limits it.
    pub rounds: Option<u32>,
    /// What a slice measures, in nanoseconds.
    pub slice_ns: u64,
    /// How many bytes a slice of a stream sends; absent when as many as take its time.
    pub total: Option<Size>,
    /// The exact number of iterations of each phase, if asked for.
    pub iterations: Option<u64>,
}

/// The most cases between two measurements of their floors: with slices of up to 30 ms, a floor is at most a quarter of a second
/// away.
pub(super) const GROUP: usize = 8;
/// A floor that nobody asked for takes this part of a case's slice.
const FLOOR_PART: u64 = 4;
/// How many times as many slices as a case's a trial of such a floor has.
const FLOOR_TIMES: u32 = 2;
/// How many slices a trial has that must make room for others.
pub(super) const SLICES_IN_A_ROW: u32 = 4;

/// Measures the cases and floors of `plan` until all are known, or time or rounds are up, or it is interrupted. Reports each
/// case when it ends: every case ends.
pub fn measure(
    plan: &Plan,
    trials: &dyn Trials,
    budget: TimeBudget<'_>,
    bounds: RunBounds<'_>,
    report: impl FnMut(RunEvent<'_>),
) -> RunFinish {
    let case = |case| Track { floor: floor_of(case), ..Track::new(case) };
    let floor = |case| Track { is_floor: true, is_awaited: plan.awaited.contains(case), ..Track::new(case) };
    let run = Run {
        scheduler: Scheduler::new(budget),
        trials,
        bounds,
        report,
        random: SmallRng::from_os_rng(),
        round: None,
        tracks: plan.cases.iter().map(case).chain(plan.floors.iter().map(floor)).collect(),
        brackets: Vec::new(),
    };
    run.finish()
}

/// One case or floor on its way.
struct Track<'a> {
    case: Case,
    is_floor: bool,
    /// Of a floor: whether it was asked for, so that the run goes on until it is settled.
    is_awaited: bool,
    floor: Option<Floor>,
    samples: Vec<Sample>,
    /// Of each sample that is not reported yet, the last ones: which measurement of the floors came before it.
    unreported: Vec<usize>,
    settings: Vec<Setting>,
    elsewhere: Elsewhere,
    hint_ns: Option<f64>,
    outcome: Option<Outcome>,
    /// Whether its end was reported.
    is_reported: bool,
    live: Option<LiveTrial<'a>>,
    trials: u32,
    slices: u32,
    /// What starting its trials took, and their slices.
    starting: Duration,
    measuring: Duration,
}

/// A trial that is alive.
struct LiveTrial<'a> {
    trial: Box<dyn Trial + 'a>,
    slices: u32,
    slices_left: u32,
}

impl Track<'_> {
    fn new(case: &Case) -> Self {
        Self {
            case: case.clone(),
            is_floor: false,
            is_awaited: false,
            floor: None,
            samples: Vec::new(),
            unreported: Vec::new(),
            settings: Vec::new(),
            elsewhere: Elsewhere::default(),
            hint_ns: None,
            outcome: None,
            is_reported: false,
            live: None,
            trials: 0,
            slices: 0,
            starting: Duration::ZERO,
            measuring: Duration::ZERO,
        }
    }

    fn is_open(&self) -> bool {
        self.outcome.is_none()
    }

    fn is_settled(&self, settled: SettledRule<'_>) -> bool {
        settled(&self.case, &self.samples)
    }

    /// What its trials have cost so far, on the average.
    fn cost(&self) -> TrialCost {
        TrialCost { start: self.starting / self.trials.max(1), slice: self.measuring / self.slices.max(1) }
    }

    /// What the next slice of its trial is to be, which has had so many.
    fn orders(&self, slices: u32, bounds: &RunBounds<'_>) -> SliceOrders {
        /// Of so many slices of a stream one has its calls timed one by one, at its end: they say how it goes, and are no part of its time.
        /// With them in every slice, before the stream as often as after it, streams of 4 KiB took up to 25% longer than long ones.
        const CALLS_EVERY: u32 = 4;
        let RunBounds { slice_ns, total, iterations, .. } = *bounds;
        let is_beside = self.is_floor && !self.is_awaited;
        let slice_ns = if is_beside { slice_ns / FLOOR_PART } else { slice_ns };
        let size = match iterations.or_else(|| iterations_of_total(&self.case, total)) {
            Some(iterations) => Sizing::Iterations(iterations),
            None => Sizing::Slice { slice_ns, hint_ns: self.hint_ns },
        };
        let singly = match self.slices % 2 {
            _ if is_beside => Singly::Omitted,
            _ if self.case.workload == Workload::Throughput => match slices % CALLS_EVERY {
                0 => Singly::Last,
                _ => Singly::Omitted,
            },
            0 => Singly::Last,
            _ => Singly::First,
        };
        SliceOrders { size, singly }
    }

    /// Notes the outcome of a slice. One that ran elsewhere is counted, and is no sample.
    fn note(&mut self, outcome: TrialOutcome<SliceReport>, round: u32, started: Duration, bracket: usize) {
        self.slices += 1;
        match outcome {
            Ok(SliceReport { elsewhere: Some(cpu), .. }) => self.elsewhere.note(cpu),
            Ok(report) => {
                let started_ns = u64::try_from(started.as_nanos()).unwrap_or(u64::MAX);
                let trial = self.trials.saturating_sub(1);
                let sample = Sample { trial, round, started_ns, ..report.sample };
                self.hint_ns = Some(sample.iteration_ns());
                self.settings = report.settings;
                self.samples.push(sample);
                self.unreported.push(bracket);
            }
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: String) {
        self.live = None;
        self.outcome = Some(Outcome::Failed { error });
    }
}

/// A run under way.
struct Run<'a, F> {
    scheduler: Scheduler<'a>,
    trials: &'a dyn Trials,
    bounds: RunBounds<'a>,
    report: F,
    random: SmallRng,
    round: Option<u32>,
    /// The cases, and behind them the floors.
    tracks: Vec<Track<'a>>,
    /// The floors as they were measured one time after the other, in nanoseconds per iteration.
    brackets: Vec<HashMap<Case, f64>>,
}

impl<F: FnMut(RunEvent<'_>)> Run<'_, F> {
    fn finish(mut self) -> RunFinish {
        // To stop early is no error: what was measured by then is the result.
        let _ = self.rounds();
        self.report_samples();
        let interrupted = self.trials.is_interrupted();
        for at in 0..self.tracks.len() {
            let outcome = match self.tracks[at].is_settled(self.bounds.settled) {
                true => Outcome::Settled,
                false if interrupted && !self.tracks[at].is_floor => Outcome::Interrupted,
                false => Outcome::Unsettled,
            };
            self.end(at, outcome);
        }
        let rounds = self.round.map_or(0, |round| round + 1);
        let (elapsed, starting) = (self.scheduler.elapsed(), self.scheduler.starting());
        RunFinish { interrupted, rounds, elapsed, starting }
    }

    fn rounds(&mut self) -> Result<(), Stop> {
        for round in 0..self.bounds.rounds.unwrap_or(u32::MAX) {
            self.round = Some(round);
            let stay_alive = self.may_stay_alive();
            // At first a group's trials are started when it is its turn: a short run measures some cases rather than none.
            if stay_alive && round > 0 {
                let open = (0..self.tracks.len()).filter(|&at| self.tracks[at].is_open()).collect();
                self.start_trials(open)?;
            }
            for group in self.groups() {
                self.measure_group(&group, stay_alive)?;
            }
            self.measure_other_floors(stay_alive)?;
            if round == 0 {
                self.report_first_floors();
            }
            self.end_trials(|live| live.slices_left == 0)?;
            (0..self.tracks.len()).for_each(|at| self.end_if_known(at));
            if self.open_cases() == 0 && !self.awaits_floors() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The open cases in random order: those with the same floors together, in groups of at most [`GROUP`], and of no more than may
    /// be alive.
    fn groups(&mut self) -> Vec<Vec<usize>> {
        let mut by_floors: BTreeMap<Vec<&Case>, Vec<usize>> = BTreeMap::new();
        let is_meant = |track: &Track<'_>| !track.is_floor && track.is_open();
        for (at, track) in self.tracks.iter().enumerate().filter(|(_, track)| is_meant(track)) {
            let floors = track.floor.iter().flat_map(Floor::cases).collect();
            by_floors.entry(floors).or_default().push(at);
        }
        let mut alike: Vec<Vec<usize>> = by_floors.into_values().collect();
        alike.iter_mut().for_each(|cases| cases.shuffle(&mut self.random));
        alike.shuffle(&mut self.random);
        let most = self.trials.most_alive().clamp(1, GROUP);
        alike.iter().flat_map(|cases| cases.chunks(most)).map(<[usize]>::to_vec).collect()
    }

    /// The slices of a round of the cases of `group`, between two measurements of the floors that they share.
    fn measure_group(&mut self, group: &[usize], stay_alive: bool) -> Result<(), Stop> {
        let floor = group.first().and_then(|&at| self.tracks[at].floor.as_ref());
        let floors: Vec<Case> = floor.iter().flat_map(|floor| floor.cases().cloned()).collect();
        let slices = if stay_alive || self.bounds.rounds.is_some() { 1 } else { SLICES_IN_A_ROW };
        if !self.is_one_by_one() {
            self.start_trials(self.open_floors(&floors).chain(group.iter().copied()).collect())?;
        }
        self.measure_floors(&floors)?;
        for _ in 0..slices {
            let bracket = self.brackets.len() - 1;
            for &at in group {
                if self.tracks[at].is_open() {
                    self.slice(at, bracket)?;
                }
            }
            self.measure_floors(&floors)?;
            self.report_samples();
        }
        if stay_alive { Ok(()) } else { self.end_trials(|_| true) }
    }

    /// Whether each trial is alone: of a single round, none would have another slice.
    fn is_one_by_one(&self) -> bool {
        self.bounds.rounds == Some(1)
    }

    /// Whether the trials of all open cases and floors may be alive at once.
    fn may_stay_alive(&self) -> bool {
        self.tracks.iter().filter(|track| track.is_open()).count() <= self.trials.most_alive()
    }

    /// Which tracks are open ones of `floors`.
    fn open_floors<'s>(&'s self, floors: &'s [Case]) -> impl Iterator<Item = usize> + 's {
        let is_meant = |track: &Track<'_>| track.is_floor && track.is_open() && floors.contains(&track.case);
        (0..self.tracks.len()).filter(move |&at| is_meant(&self.tracks[at]))
    }

    /// Ends the trials that are alive and of which `is_meant` says so.
    fn end_trials(&mut self, is_meant: impl Fn(&LiveTrial<'_>) -> bool) -> Result<(), Stop> {
        (0..self.tracks.len()).try_for_each(|at| match self.tracks[at].live.take_if(|live| is_meant(live)) {
            Some(live) => self.end_trial(at, live),
            None => Ok(()),
        })
    }

    /// Measures the open ones of `floors`.
    fn measure_floors(&mut self, floors: &[Case]) -> Result<(), Stop> {
        let mut meant: Vec<usize> = self.open_floors(floors).collect();
        meant.shuffle(&mut self.random);
        // Made first: what is measured of it counts even if the run stops in the middle.
        let bracket = self.brackets.len();
        self.brackets.push(HashMap::new());
        for at in meant {
            let before = self.tracks[at].samples.len();
            self.slice(at, bracket)?;
            let track = &self.tracks[at];
            // A slice that failed, or ran elsewhere, is none.
            if let Some(sample) = track.samples.get(before) {
                self.brackets[bracket].insert(track.case.clone(), sample.iteration_ns());
            }
        }
        Ok(())
    }

    /// Measures the floors that no case had measured in this round: they are shown by themselves.
    fn measure_other_floors(&mut self, stay_alive: bool) -> Result<(), Stop> {
        let is_left = |track: &Track<'_>| {
            let has_been = track.samples.last().is_some_and(|sample| Some(sample.round) == self.round);
            track.is_floor && track.is_open() && !has_been
        };
        let left = self.tracks.iter().filter(|track| is_left(track)).map(|track| track.case.clone());
        let left: Vec<Case> = left.collect();
        if !left.is_empty() {
            self.measure_floors(&left)?;
            self.report_samples();
        }
        if stay_alive { Ok(()) } else { self.end_trials(|_| true) }
    }

    fn open_cases(&self) -> usize {
        self.tracks.iter().filter(|track| !track.is_floor && track.is_open()).count()
    }

    /// Whether a floor that was asked for is not settled yet.
    fn awaits_floors(&self) -> bool {
        let unsettled = |track: &Track<'_>| track.is_open() && !track.is_settled(self.bounds.ends_early);
        self.tracks.iter().any(|track| track.is_awaited && unsettled(track))
    }

    fn report_first_floors(&mut self) {
        let first_ns = |track: &Track<'_>| track.samples.first().map(Sample::iteration_ns);
        let floors = self.tracks.iter().filter(|track| track.is_floor);
        (self.report)(RunEvent::Floors(floors.map(|track| (&track.case, first_ns(track))).collect()));
    }

    /// One slice of the case or floor at `at`, of which a trial is started if none is alive, unless the run is to stop. `bracket` is the
    /// last measurement of its floors.
    fn slice(&mut self, at: usize, bracket: usize) -> Result<(), Stop> {
        self.start_trials(vec![at])?;
        self.scheduler.check_time()?;
        let Some(mut live) = self.tracks[at].live.take() else { return Ok(()) };
        let started = self.scheduler.elapsed();
        let orders = self.tracks[at].orders(live.slices, &self.bounds);
        let outcome = self.scheduler.slice_anywhere(self.trials, &mut *live.trial, orders)?;
        let has_strayed = outcome.as_ref().is_ok_and(|report| report.elsewhere.is_some());
        live.slices += 1;
        live.slices_left = live.slices_left.saturating_sub(1);
        let track = &mut self.tracks[at];
        track.measuring += self.scheduler.elapsed().saturating_sub(started);
        track.live = Some(live);
        track.note(outcome, self.round.unwrap_or(0), started, bracket);
        if self.is_one_by_one() {
            self.end_trials(|_| true)?;
        }
        // Its endpoints would stay where they are: fresh ones are put where they should be.
        if has_strayed && let Some(live) = self.tracks[at].live.take() {
            self.end_trial(at, live)?;
        }
        let cases = self.tracks.iter().filter(|track| !track.is_floor).count();
        let progress = self.scheduler.progress(self.round, cases - self.open_cases(), cases);
        (self.report)(RunEvent::Progress(progress));
        Ok(())
    }
}

impl<'a, F: FnMut(RunEvent<'_>)> Run<'a, F> {
    /// Starts a trial of each of `tracks` of which none is alive, and waits until it no longer matters that they have started.
    fn start_trials(&mut self, mut tracks: Vec<usize>) -> Result<(), Stop> {
        tracks.retain(|&at| self.tracks[at].live.is_none());
        tracks.shuffle(&mut self.random);
        for &at in &tracks {
            self.scheduler.check_time()?;
            self.start_trial(at)?;
        }
        let waited = self.scheduler.wait_out_disturbance(self.trials);
        let share = waited / u32::try_from(tracks.len()).unwrap_or(u32::MAX).max(1);
        tracks.into_iter().for_each(|at| self.tracks[at].starting += share);
        Ok(())
    }

    fn start_trial(&mut self, at: usize) -> Result<(), Stop> {
        let track = &mut self.tracks[at];
        let slices = (self.bounds.slices)(&track.samples, track.cost()).max(1);
        // Of a floor there are many slices, and to start a trial costs as much as several of them. Where every slice is to have a
        // trial of its own, so has a floor's in each round.
        let is_beside = track.is_floor && !track.is_awaited;
        let slices_left = if is_beside && slices > 1 { slices * FLOOR_TIMES } else { slices };
        track.trials += 1;
        let before = self.scheduler.elapsed();
        let started = self.scheduler.start(self.trials, &track.case, None)?;
        track.starting += self.scheduler.elapsed().saturating_sub(before);
        match started {
            Ok(trial) => track.live = Some(LiveTrial { trial, slices: 0, slices_left }),
            Err(error) => track.fail(error),
        }
        Ok(())
    }

    /// Ends the trial of the case at `at`.
    fn end_trial(&mut self, at: usize, live: LiveTrial<'a>) -> Result<(), Stop> {
        if let Err(error) = self.scheduler.end(live.trial)? {
            self.tracks[at].fail(error);
        }
        Ok(())
    }

    /// Divides the samples that are not reported yet by the floors before and after them, and reports them.
    fn report_samples(&mut self) {
        for Track { case, floor, samples, unreported, .. } in &mut self.tracks {
            let first = samples.len() - unreported.len();
            for (sample, bracket) in samples[first..].iter_mut().zip(unreported.drain(..)) {
                if let Some(floor) = floor {
                    sample.floor_ns = between(&self.brackets, bracket, |ns_of| floor.iteration_ns(ns_of));
                    sample.wake_floor_ns =
                        between(&self.brackets, bracket, |ns_of| floor.wake_iteration_ns(ns_of));
                }
                (self.report)(RunEvent::Sample(case, sample));
            }
        }
    }

    /// Ends the case at `at` if it has failed, or is settled when its trial is over.
    fn end_if_known(&mut self, at: usize) {
        let track = &self.tracks[at];
        if track.is_floor {
            return;
        }
        if let Some(failed) = track.outcome.clone() {
            self.end(at, failed);
        } else if track.live.is_none() && track.is_settled(self.bounds.ends_early) {
            self.end(at, Outcome::Settled);
        }
    }

    /// Ends the case or floor at `at`, unless that was reported before, and reports what was measured of it. Its samples have been
    /// reported by then. One that has failed keeps that outcome.
    fn end(&mut self, at: usize, outcome: Outcome) {
        if std::mem::replace(&mut self.tracks[at].is_reported, true) {
            return;
        }
        let track = &mut self.tracks[at];
        track.live = None;
        let outcome = track.outcome.get_or_insert(outcome).clone();
        // What was measured is reported once and not kept: a run of many cases stays small.
        let finished = FinishedCase {
            case: track.case.clone(),
            floor: track.is_floor,
            outcome,
            samples: std::mem::take(&mut track.samples),
            settings: std::mem::take(&mut track.settings),
            elsewhere: std::mem::take(&mut track.elsewhere),
        };
        (self.report)(RunEvent::Ended(Box::new(finished)));
    }
}

/// The floor of a slice that came after the measurement `bracket` of its parts: the geometric mean of that and the next, as far
/// as both are known.
fn between(
    brackets: &[HashMap<Case, f64>],
    bracket: usize,
    sum: impl Fn(&dyn Fn(&Case) -> Option<f64>) -> Option<f64>,
) -> Option<f64> {
    let at = |bracket: usize| brackets.get(bracket).and_then(|ns| sum(&|case| ns.get(case).copied()));
    match (at(bracket), at(bracket + 1)) {
        (Some(before), Some(after)) => Some((before * after).sqrt()),
        (before, after) => before.or(after),
    }
}
