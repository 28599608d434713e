//! One study with the numbers of several runs: the lines of all in one figure, and what each says of the conclusions.

use super::evaluated::{
    EvaluatedCell, EvaluatedFigure, EvaluatedRow, EvaluatedSeries, EvaluatedStudy, EvaluatedTable,
};

/// Each study that several of `runs` repeat, with the lines of all of them. A run comes with what it is called.
pub fn overlaid(runs: &[(&str, &EvaluatedStudy)]) -> Vec<EvaluatedStudy> {
    let mut titles: Vec<&str> = Vec::new();
    for (_, study) in runs {
        if !titles.contains(&study.title.as_str()) {
            titles.push(&study.title);
        }
    }
    let alike = |title: &&str| -> Vec<(&str, &EvaluatedStudy)> {
        runs.iter().copied().filter(|(_, study)| study.title == **title).collect()
    };
    titles.iter().map(alike).filter(|alike| alike.len() > 1).map(|alike| one_of(&alike)).collect()
}

/// The study of `runs`, which all repeat it.
fn one_of(runs: &[(&str, &EvaluatedStudy)]) -> EvaluatedStudy {
    let labels: Vec<&str> = runs.iter().map(|(label, _)| *label).collect();
    let mut figures: Vec<EvaluatedFigure> = Vec::new();
    for (label, study) in runs {
        for figure in study.figures.iter().filter(|figure| !figure.series.is_empty()) {
            match figures.iter_mut().find(|known| known.name == figure.name) {
                Some(known) => add(known, label, figure),
                None => {
                    let (series, missing) = (Vec::new(), Vec::new());
                    let mut first = EvaluatedFigure { series, missing, timeline: None, ..figure.clone() };
                    add(&mut first, label, figure);
                    figures.push(first);
                }
            }
        }
    }
    EvaluatedStudy {
        title: format!("{}: all runs", runs[0].1.title),
        source: labels.join(", "),
        tables: vec![verdicts(&labels, runs)],
        figures,
        stacks: Vec::new(),
        conclusions: Vec::new(),
        undrawn: Vec::new(),
    }
}

/// Adds the lines of `figure`, which are of the run called `label`; what the study published is in it once.
fn add(to: &mut EvaluatedFigure, label: &str, figure: &EvaluatedFigure) {
    let of_run = |text: &str| format!("{text}, {label}");
    for series in &figure.series {
        if !series.published {
            to.series.push(EvaluatedSeries { name: of_run(&series.name), ..series.clone() });
        } else if !to.series.contains(series) {
            to.series.push(series.clone());
        }
    }
    to.missing.extend(figure.missing.iter().map(|why| format!("{label}: {why}")));
}

/// What each of `runs` says of each conclusion.
fn verdicts(labels: &[&str], runs: &[(&str, &EvaluatedStudy)]) -> EvaluatedTable {
    let mut claims: Vec<&str> = Vec::new();
    for conclusion in runs.iter().flat_map(|(_, study)| &study.conclusions) {
        if !claims.contains(&conclusion.claim.as_str()) {
            claims.push(&conclusion.claim);
        }
    }
    let cell = |claim: &str, study: &EvaluatedStudy| {
        let found = study.conclusions.iter().find(|conclusion| conclusion.claim == claim);
        found.map_or(EvaluatedCell::Empty, |found| EvaluatedCell::Words(found.verdict.name().to_owned()))
    };
    let row = |claim: &&str| EvaluatedRow {
        name: (*claim).to_owned(),
        published: false,
        cells: runs.iter().map(|(_, study)| cell(claim, study)).collect(),
    };
    EvaluatedTable {
        name: "Conclusions".to_owned(),
        title: "what each run says of them".to_owned(),
        columns: labels.iter().map(|label| (*label).to_owned()).collect(),
        rows: claims.iter().map(row).collect(),
        notes: Vec::new(),
    }
}
