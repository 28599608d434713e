//! A study with the numbers of a run: all of its tables, figures and conclusions.

use super::evaluated::EvaluatedStudy;
use super::select::Selector;
use super::{figures, judge, tables};
use model::record::Results;
use model::study::Study;

/// What the study of `results`, if they have one, shows with their numbers.
pub fn evaluate_results(results: &Results) -> Option<EvaluatedStudy> {
    results.header.study.as_ref().map(|study| evaluate(study, results))
}

/// What `study` shows, with the numbers of `results`. A study that fails [`Study::check`] has reasons where numbers
/// should stand.
pub fn evaluate(study: &Study, results: &Results) -> EvaluatedStudy {
    let selector = Selector::new(study, results);
    let figures = study.figures.iter().map(|figure| figures::figure(&selector, figure)).collect();
    let (figures, undrawn) = figures::undrawn(&study.figures, figures);
    EvaluatedStudy {
        title: study.title.clone(),
        source: study.source.clone(),
        tables: study.tables.iter().map(|table| tables::table(&selector, table)).collect(),
        figures,
        undrawn,
        conclusions: study.conclusions.iter().map(|claim| judge::conclusion(&selector, claim)).collect(),
    }
}
