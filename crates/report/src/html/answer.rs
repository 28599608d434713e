//! What a page says without its script: the answer of each run, which stands first, and where no script runs the figures and tables
//! too.

use crate::svg::chart::svg;
use crate::svg::figures::drawings;
use crate::text::answer::{UNBROKEN, fastest, of_host};
use crate::text::layout::Style;
use crate::text::matrix::matrix;
use crate::words::clean;
use analysis::analysed::AnalysedResults;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, html};
use model::record::Fact;

/// The answers of `all`, and what a browser without scripts shows below them: tables, and figures of the column `metric`.
pub(super) fn answer(all: &[AnalysedResults<'_>], metric: Option<&str>) -> String {
    let plain = html! {
        noscript {
            @for results in all { (tables(results)) }
            @for drawing in drawings(all, metric).unwrap_or_default() {
                img alt=(drawing.file_name) src=(picture(&svg(&drawing)));
            }
        }
    };
    let answers = html! { @for results in all { (of_run(results, all.len() > 1)) } (plain) };
    answers.into_string()
}

/// What is fastest in a run, of `several`, and what its values are worth.
fn of_run(results: &AnalysedResults<'_>, several: bool) -> Markup {
    let fastest = fastest(results);
    let host = match &results.results.header.host.name {
        Fact::Known(name) if several => format!("The answer of {}", clean(name)),
        _ => "The answer".to_owned(),
    };
    html! {
        section.answer {
            h2 { (host) }
            @for (heading, places) in &fastest {
                h3 { (heading) }
                ul { @for (place, what) in places { li { strong { (place) } ": " (told(what)) } } }
            }
            @for text in of_host(results) { p { (told(&text)) } }
        }
    }
}

fn told(text: &str) -> String {
    text.replace(UNBROKEN, " ")
}

/// The tables of a run, as a terminal shows them.
fn tables(results: &AnalysedResults<'_>) -> Markup {
    html! { section { h2 { "What it costs" } pre { (matrix(results, &Style { width: 120, ..Style::default() })) } } }
}

fn picture(svg: &str) -> String {
    format!("data:image/svg+xml;base64,{}", STANDARD.encode(svg))
}
