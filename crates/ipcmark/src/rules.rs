//! The rules that the harness is handed, which knows no statistics: when a case, or a ratio, is settled; and the record of a
//! case that has ended.
//!
//! Nothing is measured here, and nothing is written.

use analysis::allocation::slices_per_trial;
use analysis::run::{RunModel, RunSlices};
use analysis::stopping::{self, LEAST_TRIALS};
use analysis::summary::{summarise, warnings};
use harness::coordinator::run::{FinishedCase, TrialCost};
use model::estimate::Estimate;
use model::record::{Outcome, Record, Sample};
use model::results::MOST_SAMPLES;
use model::warning::Warning;
use model::{Case, Percent, Precision};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// The rules of one run, which know all that was measured so far: what a case takes is known by the others too.
#[derive(Debug)]
pub struct RunRules {
    slices: RefCell<RunSlices>,
    /// The model of `slices`, until there are more.
    model: RefCell<Option<Rc<RunModel>>>,
    precision: Precision,
    planned_slices: u32,
    time: Duration,
}

impl RunRules {
    /// For a run of at most `time` of which `precision` is asked, in which a case should have about `planned_slices` slices.
    pub fn new(precision: Precision, planned_slices: u32, time: Duration) -> Self {
        let (slices, model) = (RefCell::default(), RefCell::default());
        Self { slices, model, precision, planned_slices, time }
    }

    /// Takes a sample of `case`.
    pub fn take(&self, case: &Case, sample: &Sample) {
        self.slices.borrow_mut().add(case, sample);
        self.model.replace(None);
    }

    /// The model of what was taken.
    fn model(&self) -> Rc<RunModel> {
        let fit = || Rc::new(RunModel::from_slices(&self.slices.borrow()));
        self.model.borrow_mut().get_or_insert_with(fit).clone()
    }

    /// Whether what is shown of `samples` of `case` is known well enough when the run is over.
    pub fn is_settled(&self, case: &Case, samples: &[Sample]) -> bool {
        stopping::is_settled(samples, self.precision.for_case(case).0, || self.estimate(case))
    }

    /// Whether it is known so well that the case needs no further slice, or has as many as a results file may have of a case.
    pub fn ends_early(&self, case: &Case, samples: &[Sample]) -> bool {
        self.ends_early_at(self.precision.for_case(case), case, samples)
    }

    /// The same where `precision` is asked of the case.
    pub fn ends_early_at(&self, precision: Percent, case: &Case, samples: &[Sample]) -> bool {
        let estimate = || self.estimate(case);
        is_full(samples.len()) || stopping::ends_early(samples, precision.0, estimate)
    }

    /// What an iteration of `case` takes, by what was taken so far.
    pub fn estimate(&self, case: &Case) -> Option<Estimate> {
        self.model().time_ns(case)
    }

    /// How many slices the next trial of a case has: so many as its costs and variances ask for, and so few that the run still
    /// has the trials that its intervals need, and some to spare.
    pub fn slices(&self, samples: &[Sample], cost: TrialCost) -> u32 {
        let best = slices_per_trial(cost.start.as_nanos() as f64, cost.slice.as_nanos() as f64, samples);
        let least = LEAST_TRIALS as u32;
        let slices = self.expected_slices(samples);
        let trials = least + if slices > 4 * least { 4 } else { 0 };
        let trials_had = samples.chunk_by(|a, b| a.trial == b.trial).count() as u32;
        let slices_left = slices.saturating_sub(samples.len() as u32);
        match trials.checked_sub(trials_had).filter(|missing| *missing > 0) {
            Some(missing) => best.clamp(1, (slices_left / missing).max(1)),
            None => best,
        }
    }

    /// How many slices the case of `samples` will have: fewer than planned, if what it had by now took longer.
    fn expected_slices(&self, samples: &[Sample]) -> u32 {
        let Some(last) = samples.last() else { return self.planned_slices };
        // A slice is begun when those before it are over.
        let of_time = self.time.as_nanos() as f64 / last.started_ns.max(1) as f64;
        self.planned_slices.min((of_time * (samples.len() - 1) as f64).max(samples.len() as f64) as u32)
    }

    /// The record of a case that has ended.
    pub fn record(&self, finished: FinishedCase) -> Record {
        let FinishedCase { case, floor, outcome, samples, settings, elsewhere } = finished;
        let summary = summarise(&case, &samples, &self.model());
        let outcome = match summary.as_ref().and_then(|summary| summary.missed()) {
            Some(achieved) if outcome != Outcome::Interrupted => Outcome::Missed { achieved },
            _ => outcome,
        };
        let warnings =
            summary.as_ref().map(|s| warnings(&case, s, &settings, self.precision.for_case(&case).0));
        let mut warnings = warnings.unwrap_or_default();
        if !elsewhere.is_nothing() {
            warnings.push(Warning::Elsewhere(elsewhere.clone()));
        }
        Record { case, floor, outcome, samples, summary, settings, elsewhere, warnings }
    }
}

/// Whether a results file with one more sample of a case could not be read.
fn is_full(samples: usize) -> bool {
    samples >= MOST_SAMPLES
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::elsewhere::Elsewhere;
    use model::floor;
    use model::record::{ScheduleSample, Setting, Usage};

    const MINUTE: Duration = Duration::from_secs(60);

    fn sample(round: u32, iteration_ns: f64, late_ns: Option<f64>) -> Sample {
        Sample {
            round,
            trial: round,
            started_ns: u64::from(round) * 5_000_000_000,
            schedule: late_ns.map(|late_ns| ScheduleSample { span_ns: 1e6, late_ns, backlog_slope: None }),
            ..Sample::new(10, 10.0 * iteration_ns, Usage::default(), None)
        }
    }

    fn finished(outcome: Outcome, late_ns: Option<f64>) -> FinishedCase {
        let clamped = Setting {
            name: "SO_SNDBUF".to_owned(),
            asked: Some("8".to_owned()),
            got: "4".to_owned(),
            clamped: true,
            usual: None,
        };
        FinishedCase {
            case: floor::operation("getpid", 0),
            floor: false,
            outcome,
            samples: (0..8).map(|round| sample(round, 100.0, late_ns)).collect(),
            settings: vec![clamped],
            elsewhere: Elsewhere::default(),
        }
    }

    /// Rules of a run in which `samples` of `case` were taken.
    fn rules(case: &Case, samples: &[Sample], slices: u32) -> RunRules {
        let rules = RunRules::new(Percent(0.01).into(), slices, MINUTE);
        samples.iter().for_each(|sample| rules.take(case, sample));
        rules
    }

    /// What `finished` becomes.
    fn recorded(finished: FinishedCase) -> Record {
        rules(&finished.case, &finished.samples, 100).record(finished)
    }

    #[test]
    fn a_case_is_settled_by_enough_trials_that_are_alike() {
        let settled = |iteration_ns: &[f64], precision| {
            let samples: Vec<Sample> =
                (0..).zip(iteration_ns).map(|(round, ns)| sample(round, *ns, None)).collect();
            let case = floor::operation("getpid", 0);
            let rules = RunRules::new(Percent(precision).into(), 100, MINUTE);
            samples.iter().for_each(|sample| rules.take(&case, sample));
            rules.is_settled(&case, &samples)
        };
        assert!(settled(&[100.0; LEAST_TRIALS], 0.01));
        assert!(!settled(&[100.0; 5], 0.01));
        let spread: Vec<f64> = (0..20).map(|n| 100.0 + f64::from(n * 7 % 20)).collect();
        assert!(settled(&spread, 0.1) && !settled(&spread, 0.01));
        assert!(!settled(&[], 1.0));
    }

    /// Samples of `trials` trials over a minute, all alike.
    fn alike(trials: u32) -> Vec<Sample> {
        let samples = (0..trials).map(|trial| Sample {
            started_ns: u64::from(trial) * 60_000_000_000 / u64::from(trials),
            ..sample(trial, 100.0, None)
        });
        samples.collect()
    }

    #[test]
    fn a_quiet_case_goes_on_until_it_has_the_trials_that_an_interval_needs() {
        let case = floor::operation("getpid", 0);
        let needed = LEAST_TRIALS as u32;
        let ends = |trials| rules(&case, &alike(trials), 100).ends_early(&case, &alike(trials));
        assert!(ends(needed) && !ends(needed - 1));
        // A run of few slices has that many trials all the same.
        let cost = TrialCost { start: Duration::from_secs(1), slice: Duration::from_micros(1) };
        for slices in [needed, 40, 1000] {
            let of_a_trial = RunRules::new(Percent(0.01).into(), slices, MINUTE).slices(&[], cost);
            assert!(slices / of_a_trial >= needed, "{slices} slices, {of_a_trial} of a trial");
        }
    }

    #[test]
    fn a_run_whose_slices_take_longer_than_planned_has_the_trials_that_are_needed_all_the_same() {
        let needed = LEAST_TRIALS as u32;
        // Two hundred slices were planned, and sixty find room.
        let rules = RunRules::new(Percent(0.01).into(), 200, MINUTE);
        let cost = TrialCost { start: Duration::from_millis(10), slice: Duration::from_secs(1) };
        let (mut samples, mut trial) = (Vec::<Sample>::new(), 0);
        while samples.len() < 60 {
            // The first may have all that it is given.
            for _ in 0..rules.slices(&samples, cost) {
                let started_ns = samples.len() as u64 * 1_000_000_000;
                samples.push(Sample { trial, started_ns, ..sample(trial, 100.0, None) });
            }
            trial += 1;
        }
        assert!(trial > needed, "{trial} trials, {needed} needed");
    }

    #[test]
    fn a_case_ends_with_the_last_sample_that_a_file_can_have() {
        assert!(is_full(MOST_SAMPLES) && !is_full(MOST_SAMPLES - 1));
    }

    #[test]
    fn a_record_has_the_summary_and_its_warnings() {
        let record = recorded(finished(Outcome::Settled, None));
        assert_eq!((record.outcome, record.samples.len()), (Outcome::Settled, 8));
        assert!((record.summary.unwrap().iteration_ns.median - 100.0).abs() < 1e-9);
        assert!(record.warnings.iter().any(|warning| matches!(warning, Warning::Clamped { .. })));
        let failed = FinishedCase {
            samples: Vec::new(),
            ..finished(Outcome::Failed { error: "no".to_owned() }, None)
        };
        let record = recorded(failed);
        assert!(record.summary.is_none() && record.warnings.is_empty(), "{record:?}");
    }

    #[test]
    fn a_rate_that_was_missed_is_the_outcome_unless_the_run_was_interrupted() {
        let outcome = |outcome, late_ns| recorded(finished(outcome, Some(late_ns))).outcome;
        assert_eq!(outcome(Outcome::Settled, 1e6), Outcome::Missed { achieved: 0.5 });
        assert_eq!(outcome(Outcome::Unsettled, 1e6), Outcome::Missed { achieved: 0.5 });
        assert_eq!(outcome(Outcome::Interrupted, 1e6), Outcome::Interrupted);
        assert_eq!(outcome(Outcome::Settled, 0.0), Outcome::Settled);
    }
}
