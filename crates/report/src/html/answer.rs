//! What a page says without its script: the answer of each run, which stands first, and where no script runs the tables, the figures
//! and what a study concluded. It says nothing twice.

use super::study::conclusions;
use crate::svg::chart::svg;
use crate::svg::figures::drawings;
use crate::text::answer::{UNBROKEN, fastest, of_host};
use crate::text::head::labels;
use crate::text::layout::Style;
use crate::text::matrix::values_alone;
use crate::words::clean;
use analysis::analysed::AnalysedResults;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, html};

/// How many columns tables have: the style sheet has letters in which so many fit a phone.
const WIDTH: usize = 60;

/// The answers of `all`, and what a browser without scripts shows below them: tables, figures of the column `metric`, and what studies
/// concluded.
pub(super) fn answer(all: &[AnalysedResults<'_>], metric: Option<&str>) -> String {
    let style = &Style { width: WIDTH, ..Style::default() };
    let labels = labels(all);
    // One run alone needs no label.
    let labels = labels.iter().map(|label| (all.len() > 1).then_some(label.as_str()));
    let runs: Vec<(&AnalysedResults<'_>, Option<&str>)> = all.iter().zip(labels).collect();
    let answers = html! {
        @for (results, label) in &runs { (of_run(results, *label)) }
        noscript {
            section {
                h2 { "What it costs" }
                @for (results, label) in &runs {
                    @if let Some(label) = label { h3.as-is { (label) } }
                    pre.values { (values_alone(results, style)) }
                }
                @for drawing in drawings(all, metric).unwrap_or_default() {
                    img.picture alt=(drawing.file_name) src=(picture(&svg(&drawing)));
                }
            }
            @for (results, label) in &runs { (concluded(results, *label)) }
        }
    };
    answers.into_string()
}

/// What is fastest in a run, called by its `label` if there are several, and what its values are worth.
fn of_run(results: &AnalysedResults<'_>, label: Option<&str>) -> Markup {
    let fastest = fastest(results);
    html! {
        section.answer {
            h2 { "The answer" @if let Some(label) = label { " of " (label) } }
            @for (heading, places) in &fastest {
                h3 { (heading) }
                ul { @for (place, what) in places { li { strong { (place) } ": " (with_plain_blanks(what)) } } }
            }
            @for text in of_host(results) { p { (with_plain_blanks(&text)) } }
        }
    }
}

/// What the study of a run concluded, and whether that holds.
fn concluded(results: &AnalysedResults<'_>, label: Option<&str>) -> Markup {
    let study = results.study.as_ref().filter(|study| !study.conclusions.is_empty());
    html! {
        @if let Some(study) = study {
            section {
                h2 { (clean(&study.title)) @if let Some(label) = label { ", " (label) } }
                p.quiet { (clean(&study.source)) }
                ul.conclusions {
                    @for conclusion in conclusions(&study.conclusions) {
                        li class=(conclusion.verdict) {
                            (conclusion.claim) " " span.verdict { (conclusion.words) }
                            @for line in &conclusion.evidence { p.quiet { (line) } }
                        }
                    }
                }
            }
        }
    }
}

fn with_plain_blanks(text: &str) -> String {
    text.replace(UNBROKEN, " ")
}

fn picture(svg: &str) -> String {
    format!("data:image/svg+xml;base64,{}", STANDARD.encode(svg))
}
