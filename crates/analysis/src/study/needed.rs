//! How many trials the conclusions of a study need, before anything is measured.
//!
//! One of k numbers refutes a conclusion by an interval at 1 - 0.05/k, and there is none of too few trials. A run that ended with
//! fewer could never call such a conclusion false.

use super::estimate::CONFIDENCE;
use crate::stats::fewest_values;
use model::study::formula::MeasureKind;
use model::study::{Study, StudyConclusion, StudyTest};
use model::units::Size;

/// The confidence of an interval that refutes, where a conclusion is tested by `count` numbers.
pub(super) fn refuting_confidence(count: usize) -> f64 {
    1.0 - (1.0 - CONFIDENCE) / count.max(1) as f64
}

/// How many trials each case needs so that every conclusion of `study` can be called false.
pub fn trials_needed(study: &Study) -> usize {
    let counts = study.conclusions.iter().map(|conclusion| numbers(study, conclusion));
    fewest_values(refuting_confidence(counts.max().unwrap_or(1)))
}

/// By how many numbers `conclusion` is tested.
fn numbers(study: &Study, conclusion: &StudyConclusion) -> usize {
    conclusion.tests.iter().map(|test| numbers_of_test(study, test)).sum()
}

/// One, or one at each size over which the formula goes.
fn numbers_of_test(study: &Study, test: &StudyTest) -> usize {
    let open = test.of.formula.metrics().into_iter().filter(|of_case| of_case.at.is_none());
    let selections = open.filter_map(|of_case| study.cases.get(&of_case.case));
    let over: Vec<&[Size]> =
        selections.map(|selection| &selection.sizes[..]).filter(|sizes| sizes.len() > 1).collect();
    match over.split_first() {
        Some((first, others)) if test.of.kind == MeasureKind::Value => {
            let is_in_all = |size: &&Size| others.iter().all(|sizes| sizes.contains(size));
            first.iter().filter(is_in_all).filter(|size| test.is_of(**size)).count()
        }
        _ => 1,
    }
}
