//! The events of both CPUs, recorded at every dose: bare, with nothing recorded, with each set alone, with pairs of them, and with all. What follows
//! from them is worked out in `analysis::path`.

use crate::progress::{Doing, Progress};
use analysis::path::DosedTrials;
use harness::clock::Timer;
use harness::coordinator::dose::{
    self, DOSED_SLICE_NS, DosePlan, DosedSample, DosedSlice, alone_in_pairs_and_all,
};
use harness::coordinator::schedule::{TimeBudget, Trials};
use harness::protocol::orders::Sizing;
use model::Case;
use std::time::Duration;

/// Measures `cases`, each by its own of `trials`, all in the same rounds, for `time`. A slice has so many `iterations`, or as many as it has time for.
pub fn record(
    cases: &[Case],
    iterations: Option<u64>,
    trials: &[&dyn Trials],
    time: Duration,
) -> Vec<DosedTrials> {
    let mut dosed = vec![DosedTrials::default(); cases.len()];
    let a_slice = Sizing::Slice { slice_ns: DOSED_SLICE_NS, hint_ns: None };
    let doses = alone_in_pairs_and_all();
    let plan = DosePlan {
        cases,
        doses: &doses,
        size: iterations.map_or(a_slice, Sizing::Iterations),
        // Until time is up.
        rounds: u32::MAX,
    };
    let budget = TimeBudget { clock: &Timer::start(), time };
    let mut display = Progress::new();
    dose::measure(plan, trials, budget, |slice| {
        let DosedSlice { at, round, outcome, progress, .. } = slice;
        display.show(Doing::Events, progress);
        match outcome {
            Ok(DosedSample { sample, settings, trace }) => {
                match trace {
                    None => dosed[at].add_bare(round, (&sample).into()),
                    Some(trace) => dosed[at].add(round, &trace, (&sample).into()),
                }
                dosed[at].settings = settings;
            }
            Err(failure) => dosed[at].note_failure(failure),
        }
    });
    display.finish();
    dosed
}
