//! Doses: what it costs to record events is found by recording more of them and fewer.
//!
//! One case, or two that are to be told apart, have a trial alive at the same time. A round measures slices of the same number of
//! iterations: bare, and recorded with the sets of each dose open, none among them, each once and in a random
//! order. Each round has fresh trials.
//!
//! What an event costs is worked out in `analysis`: nothing here computes a statistic.

use super::schedule::{Scheduler, Stop, TimeBudget, Trial, TrialOutcome, TrialProgress, Trials};
use crate::protocol::orders::{MOST_RECORDED_ITERATIONS, Singly, Sizing, SliceOrders};
use model::Case;
use model::observation::{CpuTrace, EventSet, RecordingWay};
use model::record::{Sample, Setting};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// What a bare slice is to take, where the number of iterations is not given: so long that the endpoints are in their stride, so
/// short that the records of many events find room.
pub const DOSED_SLICE_NS: u64 = 2_000_000;

/// The doses that tell what recording costs without the slices that record all: nothing, each set alone, pairs of those that have
/// events in every round trip, and all. Pairs tell what is paid once from what each set costs; these are also the quickest to close.
///
/// Interrupts are recorded beside wake-ups instead of alone: programs in the kernel count interrupts for either set, and once for both.
pub fn alone_in_pairs_and_all() -> Vec<Vec<EventSet>> {
    use EventSet::{Calls, Interrupts, Switches, WakeUps};
    let alone =
        EventSet::ALL.iter().map(|&set| if set == Interrupts { vec![WakeUps, set] } else { vec![set] });
    let pairs = [[Switches, WakeUps], [Switches, Calls], [WakeUps, Calls]].map(Vec::from);
    [vec![]].into_iter().chain(alone).chain(pairs).chain([EventSet::ALL.to_vec()]).collect()
}

/// What is to be measured at each dose.
#[derive(Debug, Clone, Copy)]
pub struct DosePlan<'a> {
    /// One case, or the two that are to be told apart.
    pub cases: &'a [Case],
    /// The sets that each dose has open, beside the bare slices.
    pub doses: &'a [Vec<EventSet>],
    /// How many iterations each slice is to have, or how long a bare one is to take.
    pub size: Sizing,
    /// The rounds after which to stop.
    pub rounds: u32,
}

/// How much is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dose {
    /// Nothing is attached: the slice is that of a run.
    Bare,
    /// The slice is recorded, with the sets of the dose at this place of the plan open; even with none, the rings are there, and
    /// the client reads the clock after each iteration.
    Recorded(usize),
}

/// What one slice measured.
#[derive(Debug)]
pub struct DosedSample {
    /// The slice. Its `round` is set, and its `trial` with it: each round has a trial of its own.
    pub sample: Sample,
    /// What the endpoints asked the kernel for, and got.
    pub settings: Vec<Setting>,
    /// What was recorded, unless it was bare. How many events of each set there were is [`CpuTrace::counts`]; which sets could not
    /// be opened it says itself.
    pub trace: Option<CpuTrace>,
}

/// One slice of one case.
#[derive(Debug)]
pub struct DosedSlice<'a> {
    /// The case, by its place in the list.
    pub at: usize,
    /// The case itself.
    pub case: &'a Case,
    /// The round, from 0.
    pub round: u32,
    /// How much was recorded.
    pub dose: Dose,
    /// What was measured, or why nothing was.
    pub outcome: Result<DosedSample, String>,
    /// How far the rounds are.
    pub progress: TrialProgress,
}

/// Measures round after round, until there were enough, or time is up, or it is interrupted. A case that fails has no further
/// slices. A round that has begun is finished, and there is one even if time is up. Each case has trials of its own: of another build,
/// for instance.
pub fn measure<'a>(
    plan: DosePlan<'a>,
    trials: &'a [&'a dyn Trials],
    budget: TimeBudget<'a>,
    report: impl FnMut(DosedSlice<'_>),
) {
    let random = SmallRng::from_os_rng();
    let failed = vec![false; plan.cases.len()];
    let mut dosing = Dosing { scheduler: Scheduler::new(budget), trials, plan, failed, random, report };
    // To stop early is no error: what was measured by then is the result.
    let _ = dosing.rounds();
}

/// Rounds under way.
struct Dosing<'a, F> {
    scheduler: Scheduler<'a>,
    /// Of each case.
    trials: &'a [&'a dyn Trials],
    plan: DosePlan<'a>,
    /// Which cases have failed.
    failed: Vec<bool>,
    random: SmallRng,
    report: F,
}

/// A trial that is alive, of the case at a place, and the size of its slices.
struct LiveTrial<'a> {
    trial: Box<dyn Trial + 'a>,
    size: Sizing,
}

impl<'a, F: FnMut(DosedSlice<'_>)> Dosing<'a, F> {
    fn rounds(&mut self) -> Result<(), Stop> {
        for round in 0..self.plan.rounds {
            if round > 0 {
                self.scheduler.check_time()?;
            }
            self.round(round)?;
        }
        Ok(())
    }

    fn round(&mut self, round: u32) -> Result<(), Stop> {
        let mut live = Vec::new();
        for at in 0..self.plan.cases.len() {
            let started = if self.failed[at] { None } else { self.begin(at, round)? };
            live.push(started);
        }
        for dose in self.order() {
            // Of two cases now the one comes first and now the other.
            for at in dose.1 {
                let Some(LiveTrial { trial, size }) = &mut live[at] else { continue };
                let outcome = self.slice(at, &mut **trial, *size, dose.0, round)?;
                let is_over = outcome.is_err();
                self.say(at, round, dose.0, outcome);
                if is_over {
                    live[at] = None;
                }
            }
        }
        for (at, trial) in live.into_iter().enumerate() {
            let Some(LiveTrial { trial, .. }) = trial else { continue };
            if let Err(error) = self.scheduler.end(trial)? {
                self.say(at, round, Dose::Bare, Err(error));
            }
        }
        Ok(())
    }

    /// The doses in a random order, each with the places of the cases in theirs. To close the events of a dose takes much longer than
    /// its slice, so that a round has each dose once.
    fn order(&mut self) -> Vec<(Dose, Vec<usize>)> {
        let mut doses: Vec<Dose> = (0..self.plan.doses.len()).map(Dose::Recorded).collect();
        doses.push(Dose::Bare);
        doses.shuffle(&mut self.random);
        let cases: Vec<usize> = (0..self.plan.cases.len()).collect();
        let back: Vec<usize> = cases.iter().rev().copied().collect();
        let mut forwards: bool = self.random.random();
        let in_order = |dose| {
            forwards = !forwards;
            (dose, if forwards { cases.clone() } else { back.clone() })
        };
        doses.into_iter().map(in_order).collect()
    }

    /// A fresh trial of the case at `at`, warm, and as many iterations for each slice as there are to be. A failure is reported.
    fn begin(&mut self, at: usize, round: u32) -> Result<Option<LiveTrial<'a>>, Stop> {
        let begun = self.warm_trial(at)?;
        Ok(begun.map_err(|error| self.say(at, round, Dose::Bare, Err(error))).ok())
    }

    fn warm_trial(&mut self, at: usize) -> Result<TrialOutcome<LiveTrial<'a>>, Stop> {
        let DosePlan { cases, size, .. } = self.plan;
        let mut trial = match self.scheduler.start(self.trials[at], &cases[at], None)? {
            Ok(trial) => trial,
            Err(error) => return Ok(Err(error)),
        };
        let orders = SliceOrders { size, singly: Singly::Omitted };
        let report = match self.scheduler.slice(self.trials[at], &mut *trial, orders)? {
            Ok(report) => report,
            Err(error) => return Ok(Err(error)),
        };
        let iterations = match size {
            Sizing::Iterations(iterations) => iterations,
            Sizing::Slice { slice_ns, .. } => (slice_ns as f64 / report.sample.iteration_ns()) as u64,
        };
        let size = Sizing::Iterations(iterations.clamp(1, MOST_RECORDED_ITERATIONS));
        Ok(Ok(LiveTrial { trial, size }))
    }

    /// One slice of the case at `at`, at `dose`.
    fn slice(
        &mut self,
        at: usize,
        trial: &mut dyn Trial,
        size: Sizing,
        dose: Dose,
        round: u32,
    ) -> Result<TrialOutcome<DosedSample>, Stop> {
        let started_ns = u64::try_from(self.scheduler.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let measured = match dose {
            Dose::Bare => {
                let orders = SliceOrders { size, singly: Singly::Omitted };
                self.scheduler.slice(self.trials[at], trial, orders)?.map(|report| (report, None))
            }
            Dose::Recorded(dose) => {
                let sets = &self.plan.doses[dose];
                let way = RecordingWay::default();
                let traced = self.scheduler.traced_slice(self.trials[at], trial, size, sets, way)?;
                traced.map(|(report, trace)| (report, Some(trace)))
            }
        };
        Ok(measured.map(|(report, trace)| {
            let sample = Sample { trial: round, round, started_ns, ..report.sample };
            DosedSample { sample, settings: report.settings, trace }
        }))
    }

    /// Reports an outcome. A failure is the last of its case.
    fn say(&mut self, at: usize, round: u32, dose: Dose, outcome: TrialOutcome<DosedSample>) {
        self.failed[at] |= outcome.is_err();
        let done = self.failed.iter().filter(|failed| **failed).count();
        let progress = self.scheduler.progress(Some(round), done, self.plan.cases.len());
        (self.report)(DosedSlice { at, case: &self.plan.cases[at], round, dose, outcome, progress });
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake_trials::{FakeTrials, LONG, SLICE_TIME, case, failure};
    use super::super::trial_error::TrialError;
    use super::*;
    use std::time::Duration;

    /// Nothing, one set, and two: the place of a dose is the number of its sets.
    fn doses() -> Vec<Vec<EventSet>> {
        vec![vec![], vec![EventSet::Calls], vec![EventSet::Switches, EventSet::Calls]]
    }

    const SIZE: Sizing = Sizing::Slice { slice_ns: 100_000, hint_ns: None };
    /// Of each case: the warm-up, and each of four doses.
    const SLICES_A_ROUND: u32 = 5;

    /// A slice as it was reported: its case, its round, its dose, and whether it failed.
    type Reported = (String, u32, Dose, bool);

    fn run(cases: &[Case], rounds: u32, trials: &FakeTrials<'_>, time: Duration) -> Vec<Reported> {
        let mut reported = Vec::new();
        let doses = doses();
        let plan = DosePlan { cases, doses: &doses, size: SIZE, rounds };
        measure(plan, &vec![trials as &dyn Trials; cases.len()], trials.budget(time), |slice| {
            assert_eq!(cases[slice.at], *slice.case);
            if let Ok(DosedSample { sample, trace, .. }) = &slice.outcome {
                assert_eq!((sample.round, sample.trial), (slice.round, slice.round));
                let open = trace.as_ref().map(|trace| trace.sets.len());
                assert_eq!(slice.dose, open.map_or(Dose::Bare, Dose::Recorded));
            }
            let name = slice.case.spec.name.clone();
            reported.push((name, slice.round, slice.dose, slice.outcome.is_err()));
        });
        reported
    }

    fn same(_: usize, _: &str) -> Result<f64, TrialError> {
        Ok(100.0)
    }

    #[test]
    fn a_round_has_each_dose_of_each_case_once_with_both_alive() {
        let trials = FakeTrials::new(&same);
        run(&[case("a"), case("b")], 1, &trials, LONG);
        let names = trials.names.borrow().clone();
        assert_eq!(names[..2], ["a", "b"], "each is warm before anything is recorded");
        let mut round: Vec<&str> = names[2..].iter().map(String::as_str).collect();
        round.sort_unstable();
        assert_eq!(round, ["a", "a+0", "a+1", "a+2", "b", "b+0", "b+1", "b+2"]);
        assert_eq!(trials.most_were_alive.get(), 2);
    }

    #[test]
    fn the_order_differs_from_round_to_round_and_trials_are_fresh() {
        let trials = FakeTrials::new(&same);
        run(&[case("a")], 20, &trials, LONG);
        let names = trials.names.borrow();
        let orders: std::collections::BTreeSet<&[String]> = names.chunks(SLICES_A_ROUND as usize).collect();
        assert!(orders.len() > 5, "{orders:?}");
        assert_eq!(trials.started.borrow().len(), 20);
    }

    #[test]
    fn slices_of_all_doses_have_the_same_number_of_iterations() {
        for (iteration_ns, expected) in [(100.0, 1000), (1.0, MOST_RECORDED_ITERATIONS), (1e9, 1)] {
            let answer = |_, _: &str| Ok(iteration_ns);
            let trials = FakeTrials::new(&answer);
            run(&[case("a")], 1, &trials, LONG);
            let orders = trials.orders.borrow();
            assert_eq!(orders[0].size, SIZE);
            assert!(orders[1..].iter().all(|orders| orders.size == Sizing::Iterations(expected)));
        }
    }

    #[test]
    fn a_case_that_fails_is_reported_once_and_the_other_goes_on() {
        for name in ["a", "a+1"] {
            let fails = |_, of: &str| if of == name { Err(failure("no")) } else { Ok(1.0) };
            let trials = FakeTrials::new(&fails);
            let reported = run(&[case("a"), case("b")], 3, &trials, LONG);
            assert_eq!(reported.iter().filter(|(.., failed)| *failed).count(), 1);
            assert_eq!(reported.iter().filter(|(of, ..)| of == "b").count() as u32, 3 * (SLICES_A_ROUND - 1));
            assert_eq!(trials.started.borrow().iter().filter(|of| *of == "a").count(), 1);
        }
    }

    #[test]
    fn the_first_round_is_whole_and_later_ones_keep_to_the_time() {
        for (time, rounds) in [(0, 1), (SLICES_A_ROUND - 1, 1), (SLICES_A_ROUND + 1, 2)] {
            let trials = FakeTrials::new(&same);
            let reported = run(&[case("a")], 5, &trials, SLICE_TIME * time);
            assert_eq!(reported.len() as u32, rounds * (SLICES_A_ROUND - 1));
        }
    }

    #[test]
    fn an_interruption_at_any_point_leaves_what_was_measured() {
        for interrupted_at in 0..2 * SLICES_A_ROUND as usize {
            let answer = move |before, _: &str| {
                if before == interrupted_at { Err(TrialError::Interrupted) } else { Ok(1.0) }
            };
            let between = FakeTrials::new(&same).interrupted_after(interrupted_at);
            for trials in [between, FakeTrials::new(&answer)] {
                let reported = run(&[case("a")], 5, &trials, LONG);
                let warm_ups = interrupted_at.div_ceil(SLICES_A_ROUND as usize);
                assert_eq!(reported.len(), interrupted_at - warm_ups);
            }
        }
    }
}
