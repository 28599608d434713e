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
                    let sample = round.map(|round| Sample { round, ..trial.sample });
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
