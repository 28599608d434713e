//! A results file with everything that is computed from it.

use super::host::{CpuSpeed, cpu_speeds, slices};
use super::leaders::{Leader, leaders};
use super::record::{AnalysedFloor, AnalysedRecord};
use super::worth::RunWorth;
use crate::run::RunModel;
use crate::stats;
use crate::study::evaluate;
use crate::study::evaluated::EvaluatedStudy;
use crate::summary::summarise;
use model::Case;
use model::floor::floor_of;
use model::histogram::quantiles_ns;
use model::record::{Outcome, Record, Results};
use model::summary::Summary;
use std::collections::HashMap;

/// The percentiles of iterations, as fractions. Each is known where at least ten iterations lie beyond it.
pub const PERCENTILES: [f64; 12] =
    [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999];
/// With fewer iterations beyond it, a percentile is a matter of chance.
const LEAST_BEYOND: f64 = 10.0;

/// A results file with everything that is computed from it.
#[derive(Debug, Clone)]
pub struct AnalysedResults<'a> {
    /// What the file says.
    pub results: &'a Results,
    /// Its records, in file order.
    pub records: Vec<AnalysedRecord<'a>>,
    /// The fastest of each workload and place, at each size.
    pub leaders: Vec<Leader>,
    /// What its values are worth.
    pub worth: RunWorth,
    /// The median over cases of what a clock reading per iteration changes, as a factor.
    pub instrument_effect: Option<f64>,
    /// The speed of each CPU over the run; none where no speed readings were taken.
    pub cpu_speeds: Vec<CpuSpeed>,
    /// The study that the run repeats, with this run's numbers in it.
    pub study: Option<EvaluatedStudy>,
}

impl<'a> AnalysedResults<'a> {
    /// Computes everything that reports show of `results`.
    pub fn from_results(results: &'a Results) -> Self {
        let model = RunModel::of_results(results);
        let full_speed = model.full_speed();
        let summary_of = |record: &Record| {
            record.summary.clone().or_else(|| summarise(&record.case, &record.samples, &model))
        };
        let summaries: Vec<Option<Summary>> = results.records.iter().map(summary_of).collect();
        let with_summaries = || results.records.iter().zip(&summaries);
        let floor_ns: HashMap<&Case, f64> = with_summaries()
            .filter(|(record, _)| record.floor && !has_failed(record))
            .filter_map(|(record, summary)| Some((&record.case, summary.as_ref()?.iteration_ns.median)))
            .collect();
        let effects: Vec<f64> = with_summaries()
            .filter(|(record, _)| !record.floor)
            .filter_map(|(_, summary)| Some(summary.as_ref()?.each_over_total?.median))
            .collect();
        let records: Vec<AnalysedRecord<'a>> = results
            .records
            .iter()
            .zip(summaries)
            .map(|(record, summary)| AnalysedRecord {
                record,
                summary,
                floor: floor_of(&record.case).map(|floor| AnalysedFloor {
                    iteration_ns: floor.iteration_ns(|case| floor_ns.get(case).copied()),
                    wake_iteration_ns: floor.wake_iteration_ns(|case| floor_ns.get(case).copied()),
                    floor,
                }),
                percentiles_ns: percentiles_ns(record),
                slices: slices(record, results.records.len(), full_speed),
            })
            .collect();
        Self {
            results,
            leaders: leaders(&records, &model),
            worth: RunWorth::from_results(results, &records),
            records,
            instrument_effect: stats::median(&effects),
            cpu_speeds: cpu_speeds(results, full_speed),
            study: results.header.study.as_ref().map(|study| evaluate(study, results, &model)),
        }
    }
}

impl AnalysedRecord<'_> {
    /// How the case ended, in one word.
    pub fn outcome_name(&self) -> &'static str {
        match self.record.outcome {
            Outcome::Settled => "settled",
            Outcome::Unsettled => "unsettled",
            Outcome::Interrupted => "interrupted",
            Outcome::Missed { .. } => "missed",
            Outcome::Failed { .. } => "failed",
        }
    }

    /// The summary, unless the case failed: what was measured before a failure is not to be trusted.
    pub fn trusted(&self) -> Option<&Summary> {
        self.summary.as_ref().filter(|_| !has_failed(self.record))
    }

    /// Half of the width of the interval of its time over that; `None` where it has none.
    pub fn half_width(&self) -> Option<f64> {
        self.trusted()?.iteration_ns.half_width()
    }

    /// How much longer the median slice took than the time that is shown, as a fraction; `None` where no speed was read.
    pub(super) fn slower_as_found(&self) -> Option<f64> {
        let summary = self.trusted()?;
        Some(summary.speed?.as_found_ns? / summary.iteration_ns.median - 1.0)
    }

    /// What an iteration took before the case failed, if anything was measured by then.
    pub fn before_failure_ns(&self) -> Option<f64> {
        let summary = self.summary.as_ref().filter(|_| has_failed(self.record));
        summary.map(|summary| summary.iteration_ns.median)
    }
}

/// The percentiles of all iterations of `record`, as far as enough iterations lie beyond them.
fn percentiles_ns(record: &Record) -> Vec<u64> {
    let histograms = record.samples.iter().filter_map(|sample| Some(&sample.each.as_ref()?.iterations));
    let Some((iterations, mut all)) = quantiles_ns(histograms, &PERCENTILES) else { return Vec::new() };
    let known = PERCENTILES.iter().filter(|at| iterations as f64 * (1.0 - **at) >= LEAST_BEYOND);
    all.truncate(known.count());
    all
}

fn has_failed(record: &Record) -> bool {
    matches!(record.outcome, Outcome::Failed { .. })
}
