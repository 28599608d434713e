//! Why a case costs what it does, in words, and these laid out for the terminal. What is so is decided in
//! `analysis::explain`; the page of `html` shows the same words.

use super::explanation_tables::tables;
use super::grid::Grid;
use super::layout::{DEEPER, INDENT, Style, finish, grid, labelled, section};
use super::marks::{MISSED_HEADING, missed};
use super::path;
use crate::quantity::{multiple, percent, time_estimate};
use crate::words::{clean, tight, wrap};
use analysis::analysed::AnalysedExplanation;
use analysis::explain::{Copies, CopyKind, Explanation, Knee, Landmark, SizeCurve};
use model::Size;
use model::record::Fact;
use std::collections::BTreeMap;

/// An explanation in words.
pub(crate) struct ExplanationWords {
    /// The case that it is of.
    pub(crate) case: String,
    /// What an iteration takes.
    pub(crate) head: String,
    /// With which settings that are not as asked or not as usual.
    pub(crate) settings: Vec<String>,
    /// Why.
    pub(crate) reasons: Vec<String>,
    /// What to do about it.
    pub(crate) tries: Vec<String>,
    /// Whether the rounds tell where the time goes: there are enough of them for intervals.
    pub(crate) is_told: bool,
    /// The largest parts of the path, where there is one.
    pub(crate) brief: Option<Grid>,
    /// The path, where there is one, and what probes observed.
    pub(crate) tables: Vec<Grid>,
    /// What could not be observed, and why.
    pub(crate) absences: Vec<(String, String)>,
}

/// What stands over the lists of [`ExplanationWords`].
pub(crate) const REASONS_HEADING: &str = "why";
pub(crate) const TRIES_HEADING: &str = "what to try first";
pub(crate) const ABSENCES_HEADING: &str = "what could not be observed";
/// What stands over [`bends`].
pub(crate) const BENDS_HEADING: &str = "where time over size changes its slope";

/// `explanation` in words.
pub(crate) fn in_words(analysed: &AnalysedExplanation<'_>) -> ExplanationWords {
    let explanation = analysed.explanation;
    let tries = explanation.advice.iter();
    let tries =
        tries.map(|advice| format!("{}. Try {}.", sentence(&clean(&advice.says)), clean(&advice.r#try)));
    ExplanationWords {
        case: clean(&explanation.case.key()),
        head: head(explanation),
        settings: missed(&explanation.settings),
        reasons: reasons(explanation),
        tries: tries.collect(),
        is_told: explanation.path.as_ref().is_none_or(|path| path.bare_ns.interval.is_some()),
        brief: explanation.path.as_ref().map(|path| path::brief(path, explanation)),
        tables: tables(analysed),
        absences: absences(explanation),
    }
}

/// Where each curve bends, behind its name.
pub(crate) fn bends(curves: &[SizeCurve]) -> Vec<(String, String)> {
    curves.iter().map(|curve| (clean(&curve.case.key()), bent(curve))).collect()
}

/// Where a curve bends, and what changes there.
fn bent(curve: &SizeCurve) -> String {
    let Some(knees) = &curve.knees else {
        return "too few sizes: give at least six, such as -s 64..64K".to_owned();
    };
    let one = |knee: &Knee| {
        let names =
            |of: &[Landmark]| of.iter().map(|landmark| clean(&landmark.name)).collect::<Vec<_>>().join(", ");
        let there = match (knee.within.as_slice(), knee.beside.as_slice()) {
            ([], []) => String::new(),
            ([], beside) => format!("; near it: {}", names(beside)),
            (within, _) => format!("; there: {}", names(within)),
        };
        let [at, from, until] = [knee.at_bytes, knee.from_bytes, knee.until_bytes].map(Size);
        format!(
            "at {at} ({from} to {until}) the slope changes from {:.2} to {:.2}{there}",
            knee.before, knee.after
        )
    };
    match knees.is_empty() {
        true => "nowhere: the curve is a straight line on logarithmic axes".to_owned(),
        false => format!("{}.", knees.iter().map(one).collect::<Vec<_>>().join(". ")),
    }
}

/// Explanations for the terminal, one after the other, and where the curves over their sizes bend.
pub fn explanations(all: &[AnalysedExplanation<'_>], curves: &[SizeCurve], style: &Style) -> String {
    let style = &style.for_tables();
    let explained = all.iter().flat_map(|explanation| lay_out(&in_words(explanation), style));
    let bends = section(BENDS_HEADING, labelled(&bends(curves), style), style);
    finish(&explained.chain(bends).skip(1).collect::<Vec<_>>())
}

fn lay_out(words: &ExplanationWords, style: &Style) -> Vec<String> {
    let wrapped = |texts: &[String]| -> Vec<String> {
        texts.iter().flat_map(|text| wrap(text, style.width, INDENT, DEEPER)).collect()
    };
    // Where too few rounds tell nothing, tables would say it at length.
    let tables = match (style.detail, words.is_told) {
        (true, _) => words.tables.as_slice(),
        (false, true) => words.brief.as_slice(),
        (false, false) => &[],
    };
    let more = (!style.detail && !words.tables.is_empty()).then(|| wrapped(&[MORE.to_owned()]));
    let parts = [
        section(&words.case, wrapped(std::slice::from_ref(&words.head)), style),
        section(MISSED_HEADING, wrapped(&words.settings), style),
        section(REASONS_HEADING, wrapped(&words.reasons), style),
        section(TRIES_HEADING, wrapped(&words.tries), style),
        tables.iter().flat_map(|table| grid(table, style)).collect(),
        section(ABSENCES_HEADING, labelled(&words.absences, style), style),
        more.unwrap_or_default(),
    ];
    parts.concat()
}

/// What is left out.
pub(crate) const MORE: &str =
    "--detail shows the whole path, system calls, scheduling, faults, counters, and what the probes cost.";

/// `text` with a capital.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// What an iteration takes in trials without probes.
fn head(explanation: &Explanation) -> String {
    let iteration = tight(&time_estimate(explanation.iteration_ns).unwrap_or_default());
    let floor = explanation.floor_multiple.and_then(|floor| multiple(floor.median));
    let floor = floor.map(|floor| format!(", {floor} the floor")).unwrap_or_default();
    format!("{iteration} per iteration{floor}: median of {} trials without probes", explanation.trials)
}

/// The largest segments of the path, in words, and how often bytes were copied.
fn reasons(explanation: &Explanation) -> Vec<String> {
    let Some(path) = &explanation.path else { return Vec::new() };
    if path.bare_ns.interval.is_none() {
        return vec!["Too few rounds to tell where the time goes: give it more with --time.".to_owned()];
    }
    let mut reasons = path::reasons(path, &explanation.call_names);
    if let Some(copies) = &explanation.copies {
        reasons.push(copied(copies));
    }
    reasons
}

/// How often each byte was copied, and the proof.
fn copied(copies: &Copies) -> String {
    let mut by_call: BTreeMap<(&str, CopyKind), f64> = BTreeMap::new();
    for moved in &copies.calls {
        *by_call.entry((&moved.call, moved.kind)).or_default() += moved.per_byte;
    }
    let moved = by_call.into_iter().map(|((call, how), per_byte)| {
        let (did, how) = match how {
            CopyKind::In => ("copied", "into the kernel"),
            CopyKind::Out => ("copied", "out of the kernel"),
            CopyKind::Across => ("copied", "from one process to the other"),
            CopyKind::Moves => ("moved", "without copying them"),
        };
        format!("{} {did} {} of the bytes {how}", clean(call), percent(per_byte))
    });
    let moved: Vec<String> = moved.collect();
    match moved.is_empty() {
        true => "No system call moved the payload: the kernel copied none of it.".to_owned(),
        false => format!("The kernel copied each byte {:.2} times: {}.", copies.by_kernel, moved.join(", ")),
    }
}

/// What could not be observed, and what would grant it; what is missing for one reason, together.
fn absences(explanation: &Explanation) -> Vec<(String, String)> {
    let of_probes = explanation.probes.iter().flat_map(|probe| {
        let absent = probe.absent.iter().map(|reason| (probe.probe.name().to_owned(), clean(reason)));
        absent.chain(probe.unavailable.iter().map(|what| (probe.probe.name().to_owned(), clean(what))))
    });
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for counter in &explanation.counters {
        if let Fact::Unknown(reason) = &counter.client {
            let names = by_reason.entry(clean(reason)).or_default();
            let name = counter.name.split(':').next().unwrap_or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let of_counters = by_reason
        .into_iter()
        .map(|(reason, names)| ("counters".to_owned(), format!("{}: {reason}", clean(&names.join(", ")))));
    let of_path = explanation.unrecorded.iter().map(|what| ("events of CPUs".to_owned(), clean(what)));
    let mut all: Vec<(String, String)> = Vec::new();
    for (what, reason) in of_probes.chain(of_counters).chain(of_path) {
        match all.iter_mut().find(|(_, known)| *known == reason) {
            Some((names, _)) if !names.split(", ").any(|name| name == what) => *names += &format!(", {what}"),
            Some(_) => {}
            None => all.push((what, reason)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_is_laid_out_so() {
        let one = crate::explained::explanation("pipe", 64, 2_800.0);
        let analysed = AnalysedExplanation::from_explanation(&one, crate::observed::call_name);
        let text = explanations(&[analysed], &[], &Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }
}
