//! Recommendations as one HTML file that opens by itself: the words of the terminal, and a picture of each.
//!
//! Nothing on the page runs: it has no script, and its policy allows none.

use super::document::Document;
use crate::svg::front::advice_svg;
use crate::text::advice::{advice_tables, need, own_wait, sentence};
use crate::text::layout::Style;
use crate::words::clean;
use analysis::advise::Recommendation;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::html;

/// The page of `answers`, each with the flow that it is for, made by `command`.
pub fn advice_html(answers: &[(Option<String>, Recommendation)], command: &[String]) -> String {
    let picture = |answer: &Recommendation| {
        format!("data:image/svg+xml;base64,{}", STANDARD.encode(advice_svg(answer)))
    };
    let body = html! {
        @for (flow, answer) in answers {
            section.card {
                @if let Some(flow) = flow { h2 { (clean(flow)) } }
                p { (need(answer)) }
                @if let Some(wait) = own_wait(answer) { p { (wait) } }
                p { strong { (sentence(answer)) } }
                @if !answer.ranked.is_empty() {
                    img.picture alt="what is optimised against CPU time" src=(picture(answer));
                }
                pre { (advice_tables(answer, &Style::default()).trim_matches('\n')) }
            }
        }
    };
    Document {
        title: "ipcmark: which mechanism to take",
        heading: "Which mechanism to take",
        style: "",
        has_images: true,
        body,
        command,
    }
    .html()
}
