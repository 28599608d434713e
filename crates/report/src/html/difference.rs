//! Why one case is slower than another, as one HTML file that opens by itself: the words and tables of the terminal, and both paths as
//! bars of one scale.
//!
//! Nothing on the page runs: it has no script, and its policy allows none.

use super::document::Document;
use super::explanation::{OWN_STYLE, table};
use crate::svg::sums::{Bars, sums};
use crate::text::against::{heading, names, sentence, tables};
use analysis::path::ExplainedDifference;
use maud::{PreEscaped, html};

/// The page of `all`, made by `command`.
pub fn differences_html(all: &[ExplainedDifference], command: &[String]) -> String {
    let bars = |one: &ExplainedDifference| {
        let bars = names(one).into_iter().zip(&one.sums).collect();
        sums(&[Bars { heading: String::new(), bars }])
    };
    let body = html! {
        @for one in all {
            section.case {
                h2.as-is { (heading(one)) }
                p.head { (sentence(one)) }
                figure.iterations { (PreEscaped(bars(one))) }
                div.tables {
                    @for grid in &tables(one) { div.card { (table(grid)) } }
                }
            }
        }
    };
    Document {
        title: "ipcmark: why one is slower than the other",
        heading: "Why one is slower than the other",
        style: OWN_STYLE,
        has_images: false,
        body,
        command,
    }
    .html()
}
