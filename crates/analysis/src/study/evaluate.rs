//! A study with the numbers of a run: all of its tables, figures and conclusions.

use super::evaluated::EvaluatedStudy;
use super::select::Selector;
use super::{figures, judge, stacks, tables};
use crate::run::RunModel;
use model::record::Results;
use model::study::Study;

/// What `study` shows, with the numbers of `results`, of which `model` is the model. A study that fails [`Study::check`] has reasons where numbers
/// should stand.
pub fn evaluate(study: &Study, results: &Results, model: &RunModel) -> EvaluatedStudy {
    let selector = Selector::new(study, results, model);
    let figures = study.figures.iter().map(|figure| figures::figure(&selector, figure)).collect();
    let (figures, undrawn) = figures::undrawn(&study.figures, figures);
    let of_study = study.tables.iter().map(|table| tables::table(&selector, table));
    EvaluatedStudy {
        title: study.title.clone(),
        source: study.source.clone(),
        tables: of_study
            .chain(study.stacks.iter().flat_map(|stack| stacks::tables(&selector, stack)))
            .collect(),
        stacks: study.stacks.iter().map(|stack| stacks::stack(&selector, stack)).collect(),
        figures,
        undrawn,
        conclusions: study.conclusions.iter().map(|claim| judge::conclusion(&selector, claim)).collect(),
    }
}
