//! Two cases compared: each round measures A B B A, or B A A B, so that what drifts over the round cancels.
//!
//! It makes samples. Whether their ratio is known well enough is for a rule to say that it is given: nothing here computes a
//! statistic.

use super::schedule::{Scheduler, Stop, TimeBudget, TrialProgress, Trials};
use crate::protocol::orders::Sizing;
use model::Case;
use model::record::Sample;
use std::time::Duration;

/// Two cases to compare.
#[derive(Debug)]
pub struct CasePair {
    /// What is compared against, and what is judged.
    pub cases: [Case; 2],
    /// What was measured of each.
    pub samples: [Vec<Sample>; 2],
    /// Why there is no more.
    pub failure: Option<String>,
    hints_ns: [Option<f64>; 2],
}

impl CasePair {
    /// Two cases of which nothing was measured yet.
    pub fn new(a: Case, b: Case) -> Self {
        Self { cases: [a, b], samples: [Vec::new(), Vec::new()], failure: None, hints_ns: [None; 2] }
    }
}

/// Whether the ratio of two cases is known well enough, from the samples of both.
pub type RatioSettledRule<'a> = &'a dyn Fn(&[Sample], &[Sample]) -> bool;

/// Measures `pairs`, interleaved, until `settled` says of each ratio that it is known, or time is up, or it is interrupted.
pub fn measure(
    pairs: &mut [CasePair],
    trials: &dyn Trials,
    budget: TimeBudget<'_>,
    slice: Duration,
    settled: RatioSettledRule<'_>,
    report: impl FnMut(TrialProgress),
) {
    let slice_ns = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    let mut comparison =
        Comparison { scheduler: Scheduler::new(trials, budget), pairs, slice_ns, settled, done: 0, report };
    // To stop early is no error: what was measured by then is the result.
    let _ = comparison.rounds();
}

/// A comparison under way.
struct Comparison<'a, F> {
    scheduler: Scheduler<'a>,
    pairs: &'a mut [CasePair],
    slice_ns: u64,
    settled: RatioSettledRule<'a>,
    /// How many pairs had ended when the round began.
    done: usize,
    report: F,
}

impl<F: FnMut(TrialProgress)> Comparison<'_, F> {
    fn rounds(&mut self) -> Result<(), Stop> {
        for round in std::iter::once(None).chain((0..).map(Some)) {
            let open: Vec<usize> = (0..self.pairs.len()).filter(|&at| self.is_open(at)).collect();
            if open.is_empty() {
                return Ok(());
            }
            self.done = self.pairs.len() - open.len();
            for at in open {
                self.round_of_pair(at, round)?;
            }
        }
        Ok(())
    }

    fn is_open(&self, at: usize) -> bool {
        let CasePair { samples: [a, b], failure, .. } = &self.pairs[at];
        failure.is_none() && !(self.settled)(a, b)
    }

    /// One round of one pair. The first is a warm-up, whose samples are dropped.
    fn round_of_pair(&mut self, at: usize, round: Option<u32>) -> Result<(), Stop> {
        let order: &[usize] = match round {
            None => &[0, 1],
            Some(even) if even % 2 == 0 => &[0, 1, 1, 0],
            Some(_) => &[1, 0, 0, 1],
        };
        for &which in order {
            let pair = &mut self.pairs[at];
            let size = Sizing::Slice { slice_ns: self.slice_ns, hint_ns: pair.hints_ns[which] };
            let outcome = self.scheduler.measure(&pair.cases[which], size)?;
            (self.report)(self.scheduler.progress(round, self.done, self.pairs.len()));
            let pair = &mut self.pairs[at];
            match (outcome, round) {
                (Ok(trial), round) => {
                    pair.hints_ns[which] = Some(trial.sample.iteration_ns());
                    let sample = round.map(|round| Sample { trial: round, round, ..trial.sample });
                    pair.samples[which].extend(sample);
                }
                (Err(error), _) => {
                    pair.failure = Some(format!("{}: {error}", pair.cases[which]));
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake_trials::{FakeTrials, LONG, TRIAL_TIME, case, failure};
    use super::super::trial_error::TrialError;
    use super::*;

    fn same(_: usize, _: &str) -> Result<f64, TrialError> {
        Ok(100.0)
    }

    fn run(
        pairs: &mut [CasePair],
        trials: &FakeTrials<'_>,
        time: Duration,
        settled: RatioSettledRule<'_>,
    ) -> Vec<TrialProgress> {
        let mut progress = Vec::new();
        let slice = Duration::from_millis(1);
        measure(pairs, trials, trials.budget(time), slice, settled, |reached| progress.push(reached));
        progress
    }

    fn pair(a: &str, b: &str) -> CasePair {
        CasePair::new(case(a), case(b))
    }

    fn rounds(samples: &[Sample]) -> Vec<u32> {
        samples.iter().map(|sample| sample.round).collect()
    }

    #[test]
    fn rounds_go_a_b_b_a_and_b_a_a_b_after_a_warm_up_of_each() {
        let trials = FakeTrials::new(&same);
        let mut pairs = [pair("a", "b")];
        run(&mut pairs, &trials, LONG, &|a, _| a.len() >= 4);
        assert_eq!(trials.order(), "a b a b b a b a a b");
        assert_eq!(rounds(&pairs[0].samples[0]), [0, 0, 1, 1]);
        assert_eq!(rounds(&pairs[0].samples[1]), [0, 0, 1, 1]);
    }

    #[test]
    fn a_pair_whose_ratio_is_known_leaves_and_the_others_go_on() {
        let trials = FakeTrials::new(&|_, name| Ok(if name == "a" { 1.0 } else { 2.0 }));
        let mut pairs = [pair("a", "b"), pair("c", "d")];
        let rule = |a: &[Sample], _: &[Sample]| {
            a.len() >= if a.first().is_some_and(|sample| sample.iteration_ns() == 1.0) { 2 } else { 6 }
        };
        let progress = run(&mut pairs, &trials, LONG, &rule);
        assert_eq!((pairs[0].samples[0].len(), pairs[1].samples[0].len()), (2, 6));
        let last = progress.last().unwrap();
        assert_eq!((last.round, last.done, last.of), (Some(2), 1, 2));
    }

    #[test]
    fn pairs_of_which_all_is_known_need_no_trial() {
        let trials = FakeTrials::new(&same);
        run(&mut [pair("a", "b")], &trials, LONG, &|_, _| true);
        run(&mut [], &trials, LONG, &|_, _| false);
        assert_eq!(trials.count(), 0);
    }

    #[test]
    fn a_failure_ends_its_pair_alone_and_names_the_case() {
        let fails = |before, name: &str| {
            if name == "b" && before > 4 { Err(failure("it broke")) } else { Ok(1.0) }
        };
        let trials = FakeTrials::new(&fails);
        let mut pairs = [pair("a", "b"), pair("c", "d")];
        run(&mut pairs, &trials, LONG, &|a, _| a.len() >= 2);
        let why = pairs[0].failure.as_deref().unwrap();
        assert!(why.starts_with("b ") && why.contains("it broke"), "{why}");
        assert_eq!((pairs[0].samples[0].len(), pairs[0].samples[1].len()), (1, 0));
        assert_eq!((pairs[1].failure.as_deref(), pairs[1].samples[1].len()), (None, 2));
    }

    #[test]
    fn time_that_runs_out_leaves_what_was_measured() {
        for trials_that_fit in 0..8 {
            let trials = FakeTrials::new(&same);
            let mut pairs = [pair("a", "b")];
            run(&mut pairs, &trials, TRIAL_TIME * trials_that_fit, &|_, _| false);
            assert_eq!(trials.count(), trials_that_fit as usize);
            let samples = pairs[0].samples.iter().map(Vec::len).sum::<usize>();
            assert_eq!(samples, trials_that_fit.saturating_sub(2) as usize);
            assert!(pairs[0].failure.is_none());
        }
    }

    #[test]
    fn an_interruption_at_any_point_leaves_what_was_measured() {
        for interrupted_at in 0..8 {
            let answer = move |before, _: &str| {
                if before == interrupted_at { Err(TrialError::Interrupted) } else { Ok(1.0) }
            };
            let between = FakeTrials::new(&same).interrupted_after(interrupted_at);
            for trials in [between, FakeTrials::new(&answer)] {
                let mut pairs = [pair("a", "b")];
                run(&mut pairs, &trials, LONG, &|_, _| false);
                let samples = pairs[0].samples.iter().map(Vec::len).sum::<usize>();
                assert_eq!((samples, &pairs[0].failure), (interrupted_at.saturating_sub(2), &None));
            }
        }
    }
}
