//! A run: rounds of trials until every case is known well enough, or time is up.
//!
//! In each round every floor has one trial, then every open case has one, in random order. The floors of the next round close
//! the bracket: a case is divided by the geometric mean of the floor before it and the floor after it. Whether a case is known
//! well enough is for a rule to say that the run is given: nothing here computes a statistic.

use super::schedule::{Scheduler, Stop, TimeBudget, TrialOutcome, TrialProgress, Trials};
use super::slices::iterations_of_total;
use crate::protocol::orders::Sizing;
use crate::protocol::report::TrialReport;
use model::floor::{Floor, floor_of};
use model::plan::Plan;
use model::record::{Outcome, Sample, Setting};
use model::{Case, Size};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::collections::HashMap;
use std::time::Duration;

/// What a run reports while it goes on.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// The floors were first measured; in nanoseconds per iteration, where they could be.
    Floors(Vec<(&'a Case, Option<f64>)>),
    /// A trial is over.
    Progress(TrialProgress),
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
pub struct RunFinish {
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// How many rounds were begun.
    pub rounds: u32,
    /// How long it took.
    pub elapsed: Duration,
}

/// Whether a case is known well enough, from the nanoseconds that an iteration took in each of its trials.
pub type SettledRule<'a> = &'a dyn Fn(&Case, &[Sample]) -> bool;

/// What bounds a run, beside its time.
#[derive(Clone, Copy)]
pub struct RunBounds<'a> {
    /// When a case is settled.
    pub settled: SettledRule<'a>,
    /// The rounds that it may take; absent when only time limits it.
    pub rounds: Option<u32>,
    /// What a trial measures, in nanoseconds.
    pub slice_ns: u64,
    /// How many bytes a trial of a stream sends; absent when as many as fill its slice.
    pub total: Option<Size>,
    /// The exact number of iterations of each phase, if asked for.
    pub iterations: Option<u64>,
}

/// Measures the cases and floors of `plan` until all are known, or time or rounds are up, or it is interrupted. Reports each
/// case when it ends: every case ends.
pub fn measure(
    plan: &Plan,
    trials: &dyn Trials,
    budget: TimeBudget<'_>,
    bounds: RunBounds<'_>,
    report: impl FnMut(RunEvent<'_>),
) -> RunFinish {
    let floor = |case| Track { awaited: plan.awaited.contains(case), ..Track::new(case, None) };
    let run = Run {
        scheduler: Scheduler::new(trials, budget),
        bounds,
        report,
        random: SmallRng::from_os_rng(),
        round: None,
        floors: plan.floors.iter().map(floor).collect(),
        cases: plan.cases.iter().map(|case| Track::new(case, floor_of(case))).collect(),
        floor_ns: Vec::new(),
    };
    run.finish()
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
    fn new(case: &Case, floor: Option<Floor>) -> Self {
        Self {
            case: case.clone(),
            floor,
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
        settled(&self.case, &self.samples)
    }

    /// Notes the outcome of the warm-up trial: the time of an iteration, or the failure.
    fn note_warm_up(&mut self, outcome: TrialOutcome<TrialReport>) {
        match outcome {
            Ok(report) => self.hint_ns = Some(report.sample.iteration_ns()),
            Err(error) => self.outcome = Some(Outcome::Failed { error }),
        }
    }

    /// Notes the outcome of a trial. Returns what an iteration took.
    fn note(&mut self, outcome: TrialOutcome<TrialReport>, round: u32, started: Duration) -> Option<f64> {
        match outcome {
            Ok(report) => {
                let started_ns = u64::try_from(started.as_nanos()).unwrap_or(u64::MAX);
                let sample = Sample { trial: round, round, started_ns, ..report.sample };
                let iteration_ns = sample.iteration_ns();
                self.hint_ns = Some(iteration_ns);
                self.settings = report.settings;
                self.samples.push(sample);
                Some(iteration_ns)
            }
            Err(error) => {
                self.outcome = Some(Outcome::Failed { error });
                None
            }
        }
    }
}

/// A run under way.
struct Run<'a, F> {
    scheduler: Scheduler<'a>,
    bounds: RunBounds<'a>,
    report: F,
    random: SmallRng,
    round: Option<u32>,
    floors: Vec<Track>,
    cases: Vec<Track>,
    /// The floors of each round, in nanoseconds per iteration.
    floor_ns: Vec<HashMap<Case, f64>>,
}

/// Which trial is meant: of a floor or of a case, by its place.
#[derive(Clone, Copy)]
enum Place {
    Floor(usize),
    Case(usize),
}

impl<F: FnMut(RunEvent<'_>)> Run<'_, F> {
    fn finish(mut self) -> RunFinish {
        // To stop early is no error: what was measured by then is the result.
        let _ = self.rounds();
        self.close_brackets();
        let interrupted = self.scheduler.is_interrupted();
        for at in 0..self.cases.len() {
            self.end(at, if interrupted { Outcome::Interrupted } else { Outcome::Unsettled });
        }
        for floor in std::mem::take(&mut self.floors) {
            // Whether a floor is settled is found out at the end: it has a trial in every round all the same.
            let is_settled = floor.is_settled(self.bounds.settled);
            let by_rule = if is_settled { Outcome::Settled } else { Outcome::Unsettled };
            let Track { case, samples, settings, outcome, .. } = floor;
            let outcome = outcome.unwrap_or(by_rule);
            let finished = FinishedCase { case, floor: true, outcome, samples, settings };
            (self.report)(RunEvent::Ended(Box::new(finished)));
        }
        let rounds = self.round.map_or(0, |round| round + 1);
        RunFinish { interrupted, rounds, elapsed: self.scheduler.elapsed() }
    }

    fn rounds(&mut self) -> Result<(), Stop> {
        self.warm_up()?;
        for round in 0..self.bounds.rounds.unwrap_or(u32::MAX) {
            self.round = Some(round);
            self.measure_floors()?;
            self.close_brackets();
            self.measure_cases()?;
            if self.cases.iter().all(|track| !track.is_open()) && !self.awaits_floors() {
                return Ok(());
            }
        }
        self.measure_floors()
    }

    /// Whether a floor that was asked for is not settled yet.
    fn awaits_floors(&self) -> bool {
        let unsettled = |track: &Track| track.is_open() && !track.is_settled(self.bounds.settled);
        self.floors.iter().any(|track| track.awaited && unsettled(track))
    }

    /// The first trial of everything: it calibrates and warms up, and its sample is dropped.
    fn warm_up(&mut self) -> Result<(), Stop> {
        for at in 0..self.floors.len() {
            let outcome = self.trial(Place::Floor(at))?;
            self.floors[at].note_warm_up(outcome);
        }
        let readings = self.floors.iter().map(|track| (&track.case, track.hint_ns)).collect();
        (self.report)(RunEvent::Floors(readings));
        for at in 0..self.cases.len() {
            let outcome = self.trial(Place::Case(at))?;
            self.cases[at].note_warm_up(outcome);
            self.end_if_failed(at);
        }
        Ok(())
    }

    fn measure_floors(&mut self) -> Result<(), Stop> {
        let round = self.floor_ns.len();
        self.floor_ns.push(HashMap::new());
        for at in in_random_order(&self.floors, &mut self.random) {
            let started = self.scheduler.elapsed();
            let outcome = self.trial(Place::Floor(at))?;
            let track = &mut self.floors[at];
            if let Some(iteration_ns) = track.note(outcome, round as u32, started) {
                self.floor_ns[round].insert(track.case.clone(), iteration_ns);
            }
        }
        Ok(())
    }

    fn measure_cases(&mut self) -> Result<(), Stop> {
        for at in in_random_order(&self.cases, &mut self.random) {
            let started = self.scheduler.elapsed();
            let outcome = self.trial(Place::Case(at))?;
            self.cases[at].note(outcome, self.round.unwrap_or(0), started);
            self.end_if_failed(at);
        }
        Ok(())
    }

    /// One trial, unless the run is to stop.
    fn trial(&mut self, place: Place) -> Result<TrialOutcome<TrialReport>, Stop> {
        let Track { case, hint_ns, .. } = match place {
            Place::Floor(at) => &self.floors[at],
            Place::Case(at) => &self.cases[at],
        };
        let RunBounds { slice_ns, total, iterations, .. } = self.bounds;
        let size = match iterations.or_else(|| iterations_of_total(case, total)) {
            Some(iterations) => Sizing::Iterations(iterations),
            None => Sizing::Slice { slice_ns, hint_ns: *hint_ns },
        };
        let outcome = self.scheduler.measure(case, size)?;
        let done = self.cases.iter().filter(|track| !track.is_open()).count();
        let progress = self.scheduler.progress(self.round, done, self.cases.len());
        (self.report)(RunEvent::Progress(progress));
        Ok(outcome)
    }

    /// Divides the samples by their floors as far as these are known, and ends the cases that are settled.
    fn close_brackets(&mut self) {
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
        let failed = |outcome: &mut Outcome| matches!(outcome, Outcome::Failed { .. });
        if let Some(outcome) = self.cases[at].outcome.take_if(failed) {
            self.end(at, outcome);
        }
    }

    /// Ends the case at `at`, if it has not ended, and reports what was measured of it.
    fn end(&mut self, at: usize, outcome: Outcome) {
        let track = &mut self.cases[at];
        if !track.is_open() {
            return;
        }
        track.outcome = Some(outcome.clone());
        // What was measured is reported once and not kept: a run of many cases stays small.
        let samples = std::mem::take(&mut track.samples);
        let settings = std::mem::take(&mut track.settings);
        let finished = FinishedCase { case: track.case.clone(), floor: false, outcome, samples, settings };
        (self.report)(RunEvent::Ended(Box::new(finished)));
    }
}

/// The places of the open ones of `tracks`.
fn in_random_order(tracks: &[Track], random: &mut SmallRng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tracks.len()).filter(|&at| tracks[at].is_open()).collect();
    order.shuffle(random);
    order
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

#[cfg(test)]
mod tests {
    use super::super::fake_trials::{FakeTrials, LONG, TRIAL_TIME, case, failure};
    use super::super::trial_error::TrialError;
    use super::*;
    use model::floor::CONTEXT_SWITCH;

    /// What a run came to.
    struct Ran {
        finish: RunFinish,
        ended: Vec<FinishedCase>,
        progress: Vec<TrialProgress>,
        first_floors: Vec<Option<f64>>,
    }

    impl Ran {
        fn case(&self, name: &str) -> &FinishedCase {
            self.ended.iter().find(|ended| ended.case.spec.name == name).unwrap()
        }

        /// How each case ended, in the order in which they did.
        fn outcomes(&self) -> Vec<(&str, &Outcome)> {
            self.ended.iter().map(|ended| (ended.case.spec.name.as_str(), &ended.outcome)).collect()
        }
    }

    /// The cases called `names`, and their floor.
    fn plan(names: &[&str]) -> Plan {
        let floors = floor_of(&case("a")).unwrap().cases().cloned().collect();
        Plan { cases: names.iter().map(|name| case(name)).collect(), floors, ..Plan::default() }
    }

    fn bounds<'a>(settled: SettledRule<'a>, rounds: Option<u32>) -> RunBounds<'a> {
        RunBounds { settled, rounds, slice_ns: 1000, total: None, iterations: None }
    }

    fn run(plan: &Plan, trials: &FakeTrials<'_>, time: Duration, bounds: RunBounds<'_>) -> Ran {
        let (mut ended, mut progress, mut first_floors) = (Vec::new(), Vec::new(), Vec::new());
        let finish = measure(plan, trials, trials.budget(time), bounds, |event| match event {
            RunEvent::Floors(floors) => first_floors = floors.into_iter().map(|(_, ns)| ns).collect(),
            RunEvent::Progress(reached) => progress.push(reached),
            RunEvent::Ended(finished) => ended.push(*finished),
        });
        Ran { finish, ended, progress, first_floors }
    }

    const NEVER: SettledRule<'static> = &|_, _| false;

    fn same(_: usize, _: &str) -> Result<f64, TrialError> {
        Ok(100.0)
    }

    #[test]
    fn each_round_has_floors_before_cases_and_the_last_floors_close_it() {
        let trials = FakeTrials::new(&same);
        let ran = run(&plan(&["a"]), &trials, LONG, bounds(NEVER, Some(2)));
        let floor = CONTEXT_SWITCH;
        // The warm-up, two rounds, and the floors that close the last bracket.
        assert_eq!(trials.order(), format!("{floor} a {floor} a {floor} a {floor}"));
        assert_eq!((ran.finish.rounds, ran.finish.interrupted), (2, false));
        assert_eq!(ran.first_floors, [Some(100.0)]);
        assert_eq!(ran.case("a").samples.len(), 2);
        assert!(ran.ended.last().unwrap().floor && ran.case(floor).samples.len() == 3);
    }

    #[test]
    fn every_open_case_has_one_trial_a_round_and_is_measured_in_random_order() {
        let names = ["a", "b", "c", "d", "e"];
        let trials = FakeTrials::new(&same);
        run(&plan(&names), &trials, LONG, bounds(NEVER, Some(30)));
        let order = trials.names.borrow();
        let rounds: Vec<&[String]> = order.chunks(names.len() + 1).skip(1).collect();
        for round in &rounds[..30] {
            let mut cases = round[1..].to_vec();
            cases.sort_unstable();
            assert_eq!(cases, names);
        }
        assert!(rounds[..30].iter().any(|round| round[1..] != rounds[0][1..]), "30 rounds in one order");
    }

    #[test]
    fn a_case_is_divided_by_the_geometric_mean_of_the_floors_around_it() {
        // The floor takes 10, 20, 40, 80 … ns from trial to trial.
        let doubling = |before: usize, name: &str| {
            Ok(if name == CONTEXT_SWITCH { 10.0 * 2_f64.powi(before as i32 / 2) } else { 500.0 })
        };
        let trials = FakeTrials::new(&doubling);
        let ran = run(&plan(&["a"]), &trials, LONG, bounds(NEVER, Some(2)));
        let floors: Vec<Option<f64>> = ran.case("a").samples.iter().map(|sample| sample.floor_ns).collect();
        let expected = [(20.0_f64 * 40.0).sqrt(), (40.0_f64 * 80.0).sqrt()];
        assert!(
            floors.iter().zip(expected).all(|(ns, expected)| (ns.unwrap() - expected).abs() < 1e-9),
            "{floors:?}"
        );
        let started: Vec<u64> = ran.case("a").samples.iter().map(|sample| sample.started_ns).collect();
        assert_eq!(started, [3_000_000_000, 5_000_000_000]);
    }

    #[test]
    fn a_bracket_that_is_not_closed_is_divided_by_the_floor_before() {
        // Time is up just before the floors that would close the only round.
        let trials = FakeTrials::new(&same);
        let ran = run(&plan(&["a"]), &trials, 4 * TRIAL_TIME, bounds(NEVER, None));
        assert_eq!(trials.count(), 4);
        assert_eq!(ran.case("a").samples[0].floor_ns, Some(100.0));
    }

    #[test]
    fn a_case_stops_when_the_rule_says_so_and_the_run_when_all_have() {
        let trials = FakeTrials::new(&|_, name| Ok(if name == "a" { 1.0 } else { 2.0 }));
        let rule = |_: &Case, samples: &[Sample]| {
            samples.len() >= if samples.iter().any(|s| s.iteration_ns() == 1.0) { 2 } else { 4 }
        };
        let ran = run(&plan(&["a", "b"]), &trials, LONG, bounds(&rule, None));
        assert_eq!(ran.outcomes()[..2], [("a", &Outcome::Settled), ("b", &Outcome::Settled)]);
        assert_eq!((ran.case("a").samples.len(), ran.case("b").samples.len()), (2, 4));
        // Whether a case is settled is checked when the floors of the next round are measured.
        assert_eq!(ran.finish.rounds, 5);
    }

    #[test]
    fn a_run_without_cases_goes_on_until_the_floors_that_were_asked_for_are_settled() {
        let plan = plan(&[]);
        let plan = Plan { awaited: plan.floors.clone(), ..plan };
        let trials = FakeTrials::new(&same);
        let ran = run(&plan, &trials, LONG, bounds(&|_, samples| samples.len() >= 3, None));
        assert_eq!(ran.outcomes(), [(CONTEXT_SWITCH, &Outcome::Settled)]);
        assert_eq!(ran.case(CONTEXT_SWITCH).samples.len(), 3);
    }

    #[test]
    fn rounds_and_time_leave_cases_unsettled() {
        let trials = FakeTrials::new(&same);
        let ran = run(&plan(&["a"]), &trials, LONG, bounds(NEVER, Some(3)));
        assert_eq!(ran.outcomes()[0], ("a", &Outcome::Unsettled));
        let trials = FakeTrials::new(&same);
        let ran = run(&plan(&["a"]), &trials, 9 * TRIAL_TIME, bounds(NEVER, None));
        assert_eq!(ran.outcomes()[0], ("a", &Outcome::Unsettled));
        assert_eq!((trials.count(), ran.finish.elapsed), (9, 9 * TRIAL_TIME));
        let last = ran.progress.last().unwrap();
        assert_eq!((last.share, last.left), (1.0, Duration::ZERO));
    }

    #[test]
    fn a_case_that_fails_ends_at_once_and_the_others_go_on() {
        let fails = |before, name: &str| {
            if name == "b" && before > 5 { Err(failure("it broke")) } else { Ok(100.0) }
        };
        let trials = FakeTrials::new(&fails);
        let ran = run(&plan(&["a", "b"]), &trials, LONG, bounds(NEVER, Some(4)));
        assert!(matches!(ran.outcomes()[0], ("b", Outcome::Failed { error }) if error.contains("it broke")));
        assert_eq!((ran.case("b").samples.len(), ran.case("a").samples.len()), (1, 4));
        assert_eq!(ran.progress.last().unwrap().done, 1);
    }

    #[test]
    fn a_case_that_fails_in_the_warm_up_has_no_samples() {
        let trials = FakeTrials::new(&|_, name| if name == "a" { Err(failure("no")) } else { Ok(1.0) });
        let ran = run(&plan(&["a"]), &trials, LONG, bounds(NEVER, None));
        assert!(matches!(&ran.case("a").outcome, Outcome::Failed { .. }));
        assert!(ran.case("a").samples.is_empty());
    }

    #[test]
    fn a_floor_that_fails_is_not_tried_again_and_cases_have_no_floor() {
        let trials = FakeTrials::new(&|_, name| if name == "a" { Ok(1.0) } else { Err(failure("no")) });
        let ran = run(&plan(&["a"]), &trials, LONG, bounds(NEVER, Some(3)));
        assert_eq!(trials.order(), format!("{CONTEXT_SWITCH} a a a a"));
        assert_eq!(ran.first_floors, [None]);
        assert!(ran.case("a").samples.iter().all(|sample| sample.floor_ns.is_none()));
        assert!(matches!(&ran.case(CONTEXT_SWITCH).outcome, Outcome::Failed { .. }));
    }

    #[test]
    fn an_interruption_at_any_point_keeps_what_was_measured_and_ends_every_case_once() {
        let plan = plan(&["a", "b"]);
        for interrupted_at in 0..=9 {
            // Between two trials, and in the middle of one.
            let between = FakeTrials::new(&same).interrupted_after(interrupted_at);
            let answer = move |before, _: &str| {
                if before == interrupted_at { Err(TrialError::Interrupted) } else { Ok(100.0) }
            };
            let within = FakeTrials::new(&answer).interrupted_after(interrupted_at + 1);
            for (trials, started) in [(between, interrupted_at), (within, interrupted_at + 1)] {
                let ran = run(&plan, &trials, LONG, bounds(NEVER, None));
                assert_eq!(trials.count(), started);
                assert!(ran.finish.interrupted);
                assert_eq!(ran.ended.len(), 3);
                let cases = ran.ended.iter().filter(|ended| !ended.floor);
                assert!(cases.clone().all(|ended| ended.outcome == Outcome::Interrupted));
                // All trials but the three of the warm-up.
                let samples: usize = ran.ended.iter().map(|ended| ended.samples.len()).sum();
                assert_eq!(samples, interrupted_at.saturating_sub(3));
            }
        }
    }

    #[test]
    fn a_trial_gets_the_time_of_the_one_before_it_or_a_number_of_iterations() {
        let trials = FakeTrials::new(&same);
        run(&plan(&["a"]), &trials, LONG, bounds(NEVER, Some(1)));
        let slice = |hint_ns| Sizing::Slice { slice_ns: 1000, hint_ns };
        assert_eq!(trials.sizes.borrow()[1], slice(None));
        assert_eq!(trials.sizes.borrow()[3], slice(Some(100.0)));
        let trials = FakeTrials::new(&same);
        let exact = RunBounds { iterations: Some(7), ..bounds(NEVER, Some(1)) };
        run(&plan(&["a"]), &trials, LONG, exact);
        assert!(trials.sizes.borrow().iter().all(|size| *size == Sizing::Iterations(7)));
    }
}
