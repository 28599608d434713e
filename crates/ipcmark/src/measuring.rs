//! Cases measured for what is made of them, and not for a results file: for explanations, predictions and advice.
//!
//! What is measured for its own sake has a results file, and is `cmd::run`'s story.

use crate::collector::Records;
use crate::rules::RunRules;
use harness::clock::Timer;
use harness::coordinator::run::{self, RunBounds, TrialCost};
use harness::coordinator::schedule::{TimeBudget, Trials};
use harness::coordinator::slices::{estimate, slice_for};
use model::plan::Plan;
use model::record::Record;
use model::{Case, Precision, Sample};
use std::time::Duration;

/// Measures `plan` without probes.
pub fn measure(plan: &Plan, trials: &dyn Trials, time: Duration, precision: Precision) -> Vec<Record> {
    measure_until(plan, trials, time, precision, |rules, case, samples| rules.ends_early(case, samples))
}

/// The same, where `ends` says after each trial of a case whether it needs no further one.
pub fn measure_until(
    plan: &Plan,
    trials: &dyn Trials,
    time: Duration,
    precision: Precision,
    ends: impl Fn(&RunRules, &Case, &[Sample]) -> bool,
) -> Vec<Record> {
    let slice = slice_for(time, plan.cases.len() + plan.floors.len());
    let slice_ns = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    let round = estimate(plan.cases.len() + plan.floors.len(), slice);
    let slices = (time.as_secs_f64() / round.as_secs_f64()) as u32;
    let rules = RunRules::new(precision, slices, time);
    let settled = |case: &Case, samples: &[Sample]| rules.is_settled(case, samples);
    let ends_early = |case: &Case, samples: &[Sample]| ends(&rules, case, samples);
    let slices = |samples: &[Sample], cost: TrialCost| rules.slices(samples, cost);
    let bounds = RunBounds {
        settled: &settled,
        ends_early: &ends_early,
        slices: &slices,
        rounds: None,
        slice_ns,
        total: None,
        iterations: None,
    };
    let budget = TimeBudget { clock: &Timer::start(), time };
    let mut records = Records::new(&rules);
    run::measure(plan, trials, budget, bounds, |event| records.take(event));
    records.finish()
}
