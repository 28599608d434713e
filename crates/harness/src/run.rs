//! A run: rounds of trials until every case is known well enough, or time is up.
//!
//! In each round every floor has one trial, then every open case has one, in random order. The
//! floors of the next round close the bracket: a case is divided by the geometric mean of the floor
//! before it and the floor after it. Whether a case is known well enough is for a rule to say that the run is given: nothing
//! here computes a statistic.

use crate::endpoint::Sizing;
use crate::measure::Timer;
use crate::trial::{Ended, Launcher};
use model::floor::{Floor, floor_of};
use model::plan::Plan;
use model::record::{Outcome, Sample, Setting, Settings};
use model::{Case, Size, Workload};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::collections::HashMap;
use std::time::Duration;

/// The rounds for which a slice is chosen: many short trials beat few long ones.
const ROUNDS_AIMED_AT: u32 = 40;
/// What starting and ending the endpoints of one trial costs, for planning only.
const TRIAL_COST: Duration = Duration::from_micros(2500);
const SHORTEST_SLICE: Duration = Duration::from_micros(1000);
const LONGEST_SLICE: Duration = Duration::from_millis(10);

/// The slice of a run of `trials_a_round` that may take `time`.
pub fn slice_for(time: Duration, trials_a_round: usize) -> Duration {
    let trials = u32::try_from(trials_a_round.max(1)).unwrap_or(u32::MAX);
    (time / ROUNDS_AIMED_AT / trials).saturating_sub(TRIAL_COST).clamp(SHORTEST_SLICE, LONGEST_SLICE)
}

/// What so many trials of `slice` take, roughly: by what a trial costs beside its iterations.
pub fn estimate(trials: usize, slice: Duration) -> Duration {
    (TRIAL_COST + slice) * u32::try_from(trials).unwrap_or(u32::MAX)
}

/// How many messages of `case` make the `total` that a trial of a stream is to send, if one was asked for.
pub fn iterations_of_total(case: &Case, total: Option<Size>) -> Option<u64> {
    let total = total.filter(|_| case.workload == Workload::Throughput)?;
    // Of empty messages none make any total: as many as fill the slice are sent.
    Some(total.0.checked_div(case.size_bytes?.0)?.max(1))
}

/// What a run tells of itself while it goes on.
#[derive(Debug)]
pub enum Event<'a> {
    /// The floors were first measured; in nanoseconds per iteration, where they could be.
    Floors(Vec<(&'a Case, Option<f64>)>),
    /// A trial is over.
    Progress {
        /// The round, from 0; `None` in the warm-up.
        round: Option<u32>,
        /// Cases that have ended.
        done: usize,
        /// Of how many.
        cases: usize,
        /// The part of the time that is used.
        share: f64,
        /// The time that is left at most.
        left: Duration,
    },
    /// A case has ended.
    Ended(Box<FinishedCase>),
}

/// A case that has ended, with all that was measured of it.
#[derive(Debug, Clone)]
pub struct FinishedCase {
    /// What was measured.
    pub case: Case,
    /// Whether the case is a floor, which has a trial in every round whether it is settled or not.
    pub floor: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// One sample a trial, in the order in which they were taken.
    pub samples: Vec<Sample>,
    /// What the endpoints set, and what the kernel made of it.
    pub settings: Vec<Setting>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy)]
pub struct Finish {
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// How many rounds were begun.
    pub rounds: u32,
    /// How long it took.
    pub elapsed: Duration,
}

/// Whether a case is known well enough, from the nanoseconds that an iteration took in each of its trials.
pub type SettledRule<'a> = &'a dyn Fn(&[f64]) -> bool;

/// What bounds a run.
pub struct Bounds<'a> {
    /// As the header records them.
    pub settings: Settings,
    /// When a case is settled.
    pub settled: SettledRule<'a>,
    /// The exact number of iterations of each part, if asked for.
    pub iterations: Option<u64>,
}

/// One case on its way.
struct Track {
    case: Case,
    floor: Option<Floor>,
    samples: Vec<Sample>,
    settings: Vec<Setting>,
    hint_ns: Option<f64>,
    outcome: Option<Outcome>,
    /// Of a floor: whether it was asked for, so that the run goes on until it is settled.
    awaited: bool,
}

impl Track {
    fn new(case: &Case, is_floor: bool) -> Self {
        Self {
            case: case.clone(),
            floor: if is_floor { None } else { floor_of(case) },
            samples: Vec::new(),
            settings: Vec::new(),
            hint_ns: None,
            outcome: None,
            awaited: false,
        }
    }

    fn is_open(&self) -> bool {
        self.outcome.is_none()
    }

    fn is_settled(&self, settled: SettledRule<'_>) -> bool {
        let iteration_ns: Vec<f64> = self.samples.iter().map(Sample::iteration_ns).collect();
        settled(&iteration_ns)
    }
}

/// A run under way.
pub struct Run<'a, F> {
    launcher: &'a Launcher<'a>,
    bounds: &'a Bounds<'a>,
    tell: F,
    timer: Timer,
    random: SmallRng,
    trials: u64,
    round: Option<u32>,
    floors: Vec<Track>,
    cases: Vec<Track>,
    /// The floors of each round, in nanoseconds per iteration.
    floor_ns: Vec<HashMap<Case, f64>>,
}

/// The run is to stop, for want of time or by a signal.
struct Stop;

impl<'a, F: FnMut(Event<'_>)> Run<'a, F> {
    /// A run of `plan` that tells `tell` what happens. Time runs from `timer`'s start.
    pub fn new(
        plan: &Plan,
        launcher: &'a Launcher<'a>,
        bounds: &'a Bounds<'a>,
        timer: Timer,
        tell: F,
    ) -> Self {
        Self {
            launcher,
            bounds,
            tell,
            timer,
            random: SmallRng::from_os_rng(),
            trials: 0,
            round: None,
            floors: plan
                .floors
                .iter()
                .map(|case| Track { awaited: plan.awaited.contains(case), ..Track::new(case, true) })
                .collect(),
            cases: plan.cases.iter().map(|case| Track::new(case, false)).collect(),
            floor_ns: Vec::new(),
        }
    }

    /// Runs until all is known, or time or rounds are up, or it is interrupted. Each case is told when it ends.
    pub fn finish(mut self) -> Finish {
        // Stopping early is no error: what was measured by then is the result.
        let _ = self.rounds();
        self.settle_all();
        let interrupted = self.is_interrupted();
        for at in 0..self.cases.len() {
            self.end(at, if interrupted { Outcome::Interrupted } else { Outcome::Unsettled });
        }
        for floor in std::mem::take(&mut self.floors) {
            // Whether a floor is settled is read off at the end: it has a trial in every round all the same.
            let is_settled = floor.is_settled(self.bounds.settled);
            let by_rule = if is_settled { Outcome::Settled } else { Outcome::Unsettled };
            let Track { case, samples, settings, outcome, .. } = floor;
            let outcome = outcome.unwrap_or(by_rule);
            let finished = FinishedCase { case, floor: true, outcome, samples, settings };
            (self.tell)(Event::Ended(Box::new(finished)));
        }
        Finish { interrupted, rounds: self.round.map_or(0, |round| round + 1), elapsed: self.timer.elapsed() }
    }

    fn rounds(&mut self) -> Result<(), Stop> {
        self.warm_up()?;
        for round in 0..self.bounds.settings.rounds.unwrap_or(u32::MAX) {
            self.round = Some(round);
            self.trial_floors()?;
            self.settle_all();
            self.trial_cases()?;
            if self.cases.iter().all(|track| !track.is_open()) && !self.awaits_floors() {
                return Ok(());
            }
        }
        self.trial_floors()
    }

    /// Whether a floor that was asked for is not settled yet.
    fn awaits_floors(&self) -> bool {
        let unsettled = |track: &Track| track.is_open() && !track.is_settled(self.bounds.settled);
        self.floors.iter().any(|track| track.awaited && unsettled(track))
    }

    /// The first trial of everything: it calibrates and warms up, and is dropped.
    fn warm_up(&mut self) -> Result<(), Stop> {
        for at in 0..self.floors.len() {
            let yielded = self.trial(|run| &run.floors[at])?;
            note_hint(&mut self.floors[at], yielded);
        }
        let readings = self.floors.iter().map(|track| (&track.case, track.hint_ns)).collect();
        (self.tell)(Event::Floors(readings));
        for at in 0..self.cases.len() {
            let yielded = self.trial(|run| &run.cases[at])?;
            note_hint(&mut self.cases[at], yielded);
            self.end_if_failed(at);
        }
        Ok(())
    }

    fn trial_floors(&mut self) -> Result<(), Stop> {
        let mut order: Vec<usize> = (0..self.floors.len()).filter(|&at| self.floors[at].is_open()).collect();
        order.shuffle(&mut self.random);
        self.floor_ns.push(HashMap::new());
        for at in order {
            let started = self.timer.elapsed();
            let yielded = self.trial(|run| &run.floors[at])?;
            let round = self.floor_ns.len() as u32 - 1;
            let track = &mut self.floors[at];
            if let Some(iteration_ns) = note_sample(track, yielded, round, started)
                && let Some(floors) = self.floor_ns.last_mut()
            {
                floors.insert(track.case.clone(), iteration_ns);
            }
        }
        Ok(())
    }

    fn trial_cases(&mut self) -> Result<(), Stop> {
        let mut order: Vec<usize> = (0..self.cases.len()).filter(|&at| self.cases[at].is_open()).collect();
        order.shuffle(&mut self.random);
        for at in order {
            let started = self.timer.elapsed();
            let yielded = self.trial(|run| &run.cases[at])?;
            let round = self.round.unwrap_or(0);
            note_sample(&mut self.cases[at], yielded, round, started);
            self.end_if_failed(at);
        }
        Ok(())
    }

    /// One trial of the track that `of` picks, unless the run is to stop.
    fn trial(
        &mut self,
        of: impl Fn(&Self) -> &Track,
    ) -> Result<Result<crate::endpoint::Yield, String>, Stop> {
        let time = Duration::from_nanos(self.bounds.settings.time_ns);
        if self.is_interrupted() || self.timer.elapsed() >= time {
            return Err(Stop);
        }
        let track = of(self);
        let total = self.bounds.settings.total_bytes;
        let size = match self.bounds.iterations.or_else(|| iterations_of_total(&track.case, total)) {
            Some(iterations) => Sizing::Iterations(iterations),
            None => Sizing::Slice { slice_ns: self.bounds.settings.slice_ns, hint_ns: track.hint_ns },
        };
        let yielded = self.launcher.trial(&track.case, size, self.trials);
        self.trials += 1;
        (self.tell)(Event::Progress {
            round: self.round,
            done: self.cases.iter().filter(|track| !track.is_open()).count(),
            cases: self.cases.len(),
            share: self.timer.elapsed().as_secs_f64() / time.as_secs_f64(),
            left: self.timer.left_of(time),
        });
        match yielded {
            Ok(yielded) => Ok(Ok(yielded)),
            Err(Ended::Failed(error)) => Ok(Err(error)),
            Err(Ended::Interrupted) => Err(Stop),
        }
    }

    fn is_interrupted(&self) -> bool {
        self.launcher.interrupted.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Divides the samples of the round that is closed by its floors, and ends the cases that are settled.
    fn settle_all(&mut self) {
        for at in 0..self.cases.len() {
            let track = &mut self.cases[at];
            if let Some(floor) = &track.floor {
                for sample in track.samples.iter_mut().filter(|sample| sample.floor_ns.is_none()) {
                    sample.floor_ns = bracketed(&self.floor_ns, sample.round as usize, floor);
                }
            }
            if track.is_open() && track.is_settled(self.bounds.settled) {
                self.end(at, Outcome::Settled);
            }
        }
    }

    fn end_if_failed(&mut self, at: usize) {
        if let Some(outcome) =
            self.cases[at].outcome.take_if(|outcome| matches!(outcome, Outcome::Failed { .. }))
        {
            self.end(at, outcome);
        }
    }

    /// Ends the case at `at`, if it has not ended, and tells what was measured of it.
    fn end(&mut self, at: usize, outcome: Outcome) {
        let track = &mut self.cases[at];
        if !track.is_open() {
            return;
        }
        track.outcome = Some(outcome.clone());
        // What was measured is told once and not kept: a run of many cases stays small.
        let samples = std::mem::take(&mut track.samples);
        let settings = std::mem::take(&mut track.settings);
        let finished = FinishedCase { case: track.case.clone(), floor: false, outcome, samples, settings };
        (self.tell)(Event::Ended(Box::new(finished)));
    }
}

/// Notes what the warm-up trial of `track` showed: the time of an iteration, or the failure.
fn note_hint(track: &mut Track, yielded: Result<crate::endpoint::Yield, String>) {
    match yielded {
        Ok(yielded) => track.hint_ns = Some(yielded.sample.iteration_ns()),
        Err(error) => track.outcome = Some(Outcome::Failed { error }),
    }
}

/// Notes one trial of `track`; says what an iteration took.
fn note_sample(
    track: &mut Track,
    yielded: Result<crate::endpoint::Yield, String>,
    round: u32,
    started: Duration,
) -> Option<f64> {
    match yielded {
        Ok(yielded) => {
            let started_ns = u64::try_from(started.as_nanos()).unwrap_or(u64::MAX);
            let sample = Sample { round, started_ns, ..yielded.sample };
            let iteration_ns = sample.iteration_ns();
            track.hint_ns = Some(iteration_ns);
            track.settings = yielded.settings;
            track.samples.push(sample);
            Some(iteration_ns)
        }
        Err(error) => {
            track.outcome = Some(Outcome::Failed { error });
            None
        }
    }
}

/// The floor of a sample of `round`: the geometric mean of the floors before and after it, as far as both are known.
fn bracketed(floors: &[HashMap<Case, f64>], round: usize, floor: &Floor) -> Option<f64> {
    let of_round =
        |round: usize| floors.get(round).and_then(|ns| floor.iteration_ns(|case| ns.get(case).copied()));
    match (of_round(round), of_round(round + 1)) {
        (Some(before), Some(after)) => Some((before * after).sqrt()),
        (before, after) => before.or(after),
    }
}
