//! The rules that the harness is handed, which knows no statistics: when a case, or a ratio, is settled; and the record of a
//! case that has ended.
//!
//! Nothing is measured here, and nothing is written.

use analysis::compare::round_log_ratios;
use analysis::host_speed::FullSpeed;
use analysis::host_view::HostViews;
use analysis::stats::median_interval;
use analysis::summary::{summarise, warnings};
use harness::coordinator::run::FinishedCase;
use model::record::{Outcome, Record, Sample};
use model::{Case, Percent};
use std::cell::RefCell;

/// The trials without which no case is called settled: fewer allow no honest 95% interval.
pub const LEAST_TRIALS: usize = 8;

/// The slices of a trial of which nothing is known yet.
const SLICES: u32 = 16;

/// The rules of one run, which know how fast its host has been so far.
#[derive(Debug)]
pub struct RunRules {
    full_speed: RefCell<FullSpeed>,
    precision: f64,
    rounds: Option<u32>,
}

impl RunRules {
    /// For a run of which `precision` is asked, and that may take `rounds`.
    pub fn new(precision: Percent, rounds: Option<u32>) -> Self {
        Self { full_speed: RefCell::default(), precision: precision.0, rounds }
    }

    /// Takes a sample of `case` for what it says of the host.
    pub fn take(&self, case: &Case, sample: &Sample) {
        self.full_speed.borrow_mut().add(case, sample);
    }

    /// Whether what is shown of `samples` of `case` is known well enough.
    pub fn is_settled(&self, case: &Case, samples: &[Sample]) -> bool {
        let views = HostViews::of(case, samples, &self.full_speed.borrow());
        views.and_then(|views| views.iteration_ns.half_width()).is_some_and(|half| half <= self.precision)
    }

    /// How many slices the next trial of a case has: so many that a run of few rounds still has as many trials as an interval
    /// needs.
    pub fn slices(&self, _: &Case, _: &[Sample]) -> u32 {
        self.rounds.map_or(SLICES, |rounds| rounds / LEAST_TRIALS as u32).clamp(1, SLICES)
    }

    /// The record of a case that has ended.
    pub fn record(&self, finished: FinishedCase) -> Record {
        let FinishedCase { case, floor, outcome, samples, settings } = finished;
        let summary = summarise(&case, &samples, &self.full_speed.borrow());
        let outcome = match summary.as_ref().and_then(|summary| summary.missed()) {
            Some(achieved) if outcome != Outcome::Interrupted => Outcome::Missed { achieved },
            _ => outcome,
        };
        let warnings = summary.as_ref().map(|s| warnings(&case, s, &settings, self.precision));
        Record { case, floor, outcome, samples, summary, settings, warnings: warnings.unwrap_or_default() }
    }
}

/// Whether the ratio of two cases is known to within the fraction `precision`, from the rounds in which both had trials.
pub fn is_ratio_settled(before: &[Sample], after: &[Sample], precision: f64) -> bool {
    let log_ratios = round_log_ratios(before, after);
    let interval = median_interval(&log_ratios).and_then(|estimate| estimate.interval);
    log_ratios.len() >= LEAST_TRIALS && interval.is_some_and(|(low, high)| (high - low) / 2.0 <= precision)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::floor;
    use model::record::{ScheduleSample, Setting, Usage};
    use model::warning::Warning;

    fn sample(round: u32, iteration_ns: f64, late_ns: Option<f64>) -> Sample {
        Sample {
            round,
            started_ns: 0,
            iterations: 10,
            trial_iterations: 10,
            elapsed_ns: 10.0 * iteration_ns,
            floor_ns: None,
            wake_floor_ns: None,
            each: None,
            client: Usage::default(),
            server: None,
            calls: None,
            steps: None,
            timer: None,
            schedule: late_ns.map(|late_ns| ScheduleSample { span_ns: 1e6, late_ns, backlog_slope: None }),
            shares: None,
            lost: None,
            trial: round,
            speed: None,
            stolen_ns: None,
        }
    }

    fn finished(outcome: Outcome, late_ns: Option<f64>) -> FinishedCase {
        let clamped = Setting {
            name: "SO_SNDBUF".to_owned(),
            asked: Some("8".to_owned()),
            got: "4".to_owned(),
            clamped: true,
        };
        FinishedCase {
            case: floor::operation("getpid", 0),
            floor: false,
            outcome,
            samples: (0..8).map(|round| sample(round, 100.0, late_ns)).collect(),
            settings: vec![clamped],
        }
    }

    #[test]
    fn a_case_is_settled_by_enough_trials_that_are_alike() {
        let settled = |iteration_ns: &[f64], precision| {
            let samples: Vec<Sample> =
                (0..).zip(iteration_ns).map(|(round, ns)| sample(round, *ns, None)).collect();
            RunRules::new(Percent(precision), None).is_settled(&floor::operation("getpid", 0), &samples)
        };
        assert!(settled(&[100.0; LEAST_TRIALS], 0.01));
        assert!(!settled(&[100.0; 5], 0.01));
        let spread: Vec<f64> = (0..20).map(|n| 100.0 + f64::from(n * 7 % 20)).collect();
        assert!(settled(&spread, 0.1) && !settled(&spread, 0.01));
        assert!(!settled(&[], 1.0));
    }

    #[test]
    fn a_ratio_is_settled_by_enough_rounds_that_have_both() {
        let of = |rounds: u32, ns: f64| (0..rounds).map(|round| sample(round, ns, None)).collect::<Vec<_>>();
        assert!(is_ratio_settled(&of(8, 100.0), &of(9, 150.0), 0.01));
        assert!(!is_ratio_settled(&of(7, 100.0), &of(9, 150.0), 0.01));
        // Both wander alike, so that the ratio stands still.
        let wandering = |times: f64| {
            (0..8).map(|round| sample(round, times * f64::from(100 + round), None)).collect::<Vec<_>>()
        };
        assert!(is_ratio_settled(&wandering(1.0), &wandering(2.0), 0.01));
        assert!(!is_ratio_settled(&of(8, 100.0), &wandering(2.0), 0.01));
    }

    #[test]
    fn a_record_has_the_summary_and_its_warnings() {
        let record = RunRules::new(Percent(0.01), None).record(finished(Outcome::Settled, None));
        assert_eq!((record.outcome, record.samples.len()), (Outcome::Settled, 8));
        assert!((record.summary.unwrap().iteration_ns.median - 100.0).abs() < 1e-9);
        assert!(record.warnings.iter().any(|warning| matches!(warning, Warning::Clamped { .. })));
        let failed = FinishedCase {
            samples: Vec::new(),
            ..finished(Outcome::Failed { error: "no".to_owned() }, None)
        };
        let record = RunRules::new(Percent(0.01), None).record(failed);
        assert!(record.summary.is_none() && record.warnings.is_empty(), "{record:?}");
    }

    #[test]
    fn a_rate_that_was_missed_is_the_outcome_unless_the_run_was_interrupted() {
        let outcome = |outcome, late_ns| {
            RunRules::new(Percent(0.01), None).record(finished(outcome, Some(late_ns))).outcome
        };
        assert_eq!(outcome(Outcome::Settled, 1e6), Outcome::Missed { achieved: 0.5 });
        assert_eq!(outcome(Outcome::Unsettled, 1e6), Outcome::Missed { achieved: 0.5 });
        assert_eq!(outcome(Outcome::Interrupted, 1e6), Outcome::Interrupted);
        assert_eq!(outcome(Outcome::Settled, 0.0), Outcome::Settled);
    }
}
