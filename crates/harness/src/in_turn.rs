//! Two cases measured in turn: each round trials A B B A, or B A A B, so that what drifts cancels.
//!
//! It yields samples. Whether their ratio is known well enough is for a rule to say that it is given: nothing here computes a
//! statistic.

use crate::endpoint::Sizing;
use crate::measure::Timer;
use crate::trial::{Ended, Launcher};
use model::Case;
use model::record::Sample;
use std::time::Duration;

/// Two cases to compare.
#[derive(Debug)]
pub struct Pair {
    /// What is compared against, and what is judged.
    pub cases: [Case; 2],
    /// What was measured of each.
    pub samples: [Vec<Sample>; 2],
    /// Why there is no more.
    pub failure: Option<String>,
    hints_ns: [Option<f64>; 2],
}

impl Pair {
    /// Two cases of which nothing was measured yet.
    pub fn new(a: Case, b: Case) -> Self {
        Self { cases: [a, b], samples: [Vec::new(), Vec::new()], failure: None, hints_ns: [None; 2] }
    }
}

/// Whether the ratio of two cases is known well enough, from the samples of both.
pub type RatioSettledRule<'a> = &'a dyn Fn(&[Sample], &[Sample]) -> bool;

/// How far measuring in turn is.
#[derive(Debug, Clone, Copy)]
pub struct Reached {
    /// The round, from 0; `None` in the warm-up.
    pub round: Option<u32>,
    /// The pairs that are settled.
    pub settled: usize,
    /// The part of the time that is used.
    pub share: f64,
    /// The time that is left at most.
    pub left: Duration,
}

/// Measures `pairs` in turn until `settled` says of each ratio that it is known, or `time` is up, or it is interrupted.
pub fn measure(
    pairs: &mut [Pair],
    launcher: &Launcher<'_>,
    slice: Duration,
    settled: RatioSettledRule<'_>,
    time: Duration,
    mut tell: impl FnMut(Reached),
) {
    let is_open = |pair: &Pair| pair.failure.is_none() && !settled(&pair.samples[0], &pair.samples[1]);
    let timer = Timer::start();
    let mut number = 0;
    let mut trial = |pair: &mut Pair, which: usize, round: Option<u32>| -> bool {
        let slice_ns = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
        let size = Sizing::Slice { slice_ns, hint_ns: pair.hints_ns[which] };
        number += 1;
        match launcher.trial(&pair.cases[which], size, number) {
            Ok(yielded) => {
                pair.hints_ns[which] = Some(yielded.sample.iteration_ns());
                // The first trial of each case is a warm-up and is dropped.
                if let Some(round) = round {
                    pair.samples[which].push(Sample { round, ..yielded.sample });
                }
                timer.elapsed() < time
            }
            Err(Ended::Failed(error)) => {
                pair.failure = Some(format!("{}: {error}", pair.cases[which]));
                true
            }
            Err(Ended::Interrupted) => false,
        }
    };
    for round in std::iter::once(None).chain((0..).map(Some)) {
        let order = match round {
            None => [0, 1].as_slice(),
            Some(even) if even % 2 == 0 => &[0, 1, 1, 0],
            Some(_) => &[1, 0, 0, 1],
        };
        for pair in pairs.iter_mut().filter(|pair| is_open(pair)) {
            for &which in order {
                if pair.failure.is_none() && !trial(pair, which, round) {
                    return;
                }
            }
        }
        let still_open = pairs.iter().filter(|pair| is_open(pair)).count();
        tell(Reached {
            round,
            settled: pairs.len() - still_open,
            share: timer.elapsed().as_secs_f64() / time.as_secs_f64(),
            left: timer.left_of(time),
        });
        if still_open == 0 {
            return;
        }
    }
}
