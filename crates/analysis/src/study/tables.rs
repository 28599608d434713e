//! The tables of a study, with numbers in their cells.

use super::estimate::{Number, measure, ratio};
use super::evaluated::{EvaluatedCell, EvaluatedRow, EvaluatedTable};
use super::host::host_fact;
use super::select::{At, Selector};
use super::words;
use crate::interval::CONFIDENCE;
use model::estimate::Estimate;
use model::invalid::printable;
use model::study::{Candidate, Measure, OtherCell, StudyCell, StudyRow, StudyTable};
use model::units::Unit;

/// `table` with its numbers.
pub(super) fn table(selector: &Selector<'_>, table: &StudyTable) -> EvaluatedTable {
    let notes = table.notes.iter().chain(&table.absent).cloned().collect();
    let rows = table.rows.iter().map(|of_study| row(selector, of_study)).collect();
    EvaluatedTable {
        name: table.name.clone(),
        title: table.title.clone(),
        columns: table.columns.clone(),
        rows,
        notes,
    }
}

fn row(selector: &Selector<'_>, row: &StudyRow) -> EvaluatedRow {
    let cells = row.cells.iter().map(|of_study| cell(selector, of_study)).collect();
    EvaluatedRow { name: row.name.clone(), published: row.published, cells }
}

fn cell(selector: &Selector<'_>, cell: &StudyCell) -> EvaluatedCell {
    let or_missing =
        |words: Result<String, String>| words.map_or_else(EvaluatedCell::Missing, EvaluatedCell::Words);
    match cell {
        StudyCell::Empty => EvaluatedCell::Empty,
        StudyCell::Measure(measure) => number_cell(selector, measure),
        StudyCell::Other(OtherCell::Words(text)) => EvaluatedCell::Words(text.clone()),
        StudyCell::Other(OtherCell::Missing(why)) => EvaluatedCell::Missing(why.clone()),
        // A suite that was read has candidates in its place.
        StudyCell::Other(OtherCell::Best(_)) => {
            EvaluatedCell::Missing("these results do not say which candidates meet the need".to_owned())
        }
        StudyCell::Other(OtherCell::Least(candidates)) => or_missing(choice(selector, candidates, false)),
        StudyCell::Other(OtherCell::Most(candidates)) => or_missing(choice(selector, candidates, true)),
        StudyCell::Other(OtherCell::Setting { name, of }) => or_missing(setting(selector, name, of)),
        StudyCell::Other(OtherCell::Host(fact)) => {
            or_missing(host_fact(*fact, &selector.results.header.host))
        }
    }
}

pub(super) fn number_cell(selector: &Selector<'_>, of: &Measure) -> EvaluatedCell {
    match (measure(selector, of, At::Nothing, CONFIDENCE), of.unit()) {
        (Ok(number), Ok(unit)) => EvaluatedCell::Value(number.estimate, unit),
        (Err(missing), _) => EvaluatedCell::Missing(missing.why),
        (_, Err(invalid)) => EvaluatedCell::Missing(invalid.problem),
    }
}

/// The name of the best of `candidates`, with its number, and those that cannot be distinguished from it.
fn choice(selector: &Selector<'_>, candidates: &[Candidate], most: bool) -> Result<String, String> {
    let mut measured: Vec<(&Candidate, Estimate)> = Vec::new();
    let mut missing: Vec<(&Candidate, String)> = Vec::new();
    for candidate in candidates {
        match measure(selector, &candidate.of, At::Nothing, CONFIDENCE) {
            Ok(Number { estimate, .. }) => measured.push((candidate, estimate)),
            Err(why) => missing.push((candidate, why.why)),
        }
    }
    let by = |a: &&(&Candidate, Estimate), b: &&(&Candidate, Estimate)| {
        let order = a.1.median.total_cmp(&b.1.median);
        if most { order.reverse() } else { order }
    };
    let Some((best, estimate)) = measured.iter().min_by(by) else {
        let first = missing.into_iter().next().map(|(_, why)| why);
        return Err(first.unwrap_or_else(|| "there is nothing to choose from".to_owned()));
    };
    let is_close = |other: &Candidate| {
        let at = At::Nothing;
        let over_best = ratio(selector, (&other.of.formula, at), (&best.of.formula, at), CONFIDENCE);
        over_best
            .is_ok_and(|number| number.estimate.interval.is_none_or(|(low, high)| low <= 1.0 && 1.0 <= high))
    };
    let others = measured.iter().filter(|(other, _)| !std::ptr::eq(*other, *best));
    let close: Vec<&str> =
        others.filter(|(other, _)| is_close(other)).map(|(other, _)| other.name.as_str()).collect();
    let unit = best.of.unit().unwrap_or(Unit::Number);
    let close = if close.is_empty() {
        String::new()
    } else {
        format!("; not distinguished from it: {}", close.join(", "))
    };
    let missing: Vec<&str> = missing.iter().map(|(candidate, _)| candidate.name.as_str()).collect();
    let missing =
        if missing.is_empty() { String::new() } else { format!("; not measured: {}", missing.join(", ")) };
    Ok(format!("{} ({}){close}{missing}", best.name, words::number(estimate.median, unit)))
}

/// What the kernel made of the setting `name` of the case called `case`.
fn setting(selector: &Selector<'_>, name: &str, case: &str) -> Result<String, String> {
    let record = selector.only_record(case)?;
    let setting = record.settings.iter().find(|setting| setting.name == name);
    setting
        .map(|setting| setting.got.clone())
        .ok_or_else(|| format!("{} has no setting {}", record.case, printable(name)))
}
