//! Recommendations as one HTML file that opens by itself: the words of the terminal, and a picture of each.
//!
//! Nothing on the page runs: it has no script, and its policy allows none.

use super::template::{STYLE, escape, filled, shell_words};
use crate::svg::front::advice_svg;
use crate::text::advice::{advice, sentence};
use crate::text::layout::Style;
use crate::words::clean;
use analysis::advise::Recommendation;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::html;

/// What the page may do: be styled, and hold pictures that are in it.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

const TEMPLATE: &str = include_str!("advice.html");

/// The page of `answers`, each with the flow that it is for, made by `command`.
pub fn advice_html(answers: &[(Option<String>, Recommendation)], command: &[String]) -> String {
    let picture = |answer: &Recommendation| {
        format!("data:image/svg+xml;base64,{}", STANDARD.encode(advice_svg(answer)))
    };
    let body = html! {
        @for (flow, answer) in answers {
            section.card {
                @if let Some(flow) = flow { h2 { (clean(flow)) } }
                p { strong { (sentence(answer)) } }
                @if !answer.ranked.is_empty() {
                    img alt="what is optimised against CPU time" src=(picture(answer));
                }
                pre { (advice(None, answer, &Style::default())) }
            }
        }
    };
    filled(TEMPLATE, |name| match name {
        "policy" => POLICY.to_owned(),
        "title" => "ipcmark: which mechanism to take".to_owned(),
        "style" => STYLE.to_owned(),
        "body" => body.0.clone(),
        "command" => escape(&shell_words(command)),
        _ => String::new(),
    })
}
