//! What was recorded as one HTML file that opens by itself: the picture, and what the terminal says.
//!
//! Nothing on the page runs: it has no script, and its policy allows none.

use super::template::{STYLE, escape, filled, shell_words};
use crate::svg::recording::recording_element;
use crate::text::grid::Grid;
use crate::text::recording::{UNSEEN_HEADING, grids, head, unseen};
use crate::words::clean;
use analysis::recording::AnalysedScenario;
use maud::{Markup, PreEscaped, html};

/// What the page may do: be styled.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const TEMPLATE: &str = include_str!("recording.html");
const OWN_STYLE: &str = include_str!("explanation.css");

/// The page of `analysed`, made by `command`.
pub fn recording_html(analysed: &AnalysedScenario<'_>, command: &[String]) -> String {
    let name = clean(&analysed.scenario.name);
    let unseen = unseen(analysed);
    let body = html! {
        section.case {
            h2.as-is { (name) }
            p.head { (head(analysed)) }
            div.pictures { figure { div.picture { (PreEscaped(recording_element(analysed))) } } }
            @for grid in &grids(analysed) { div.card { (table(grid)) } }
            @if !unseen.is_empty() {
                h3 { (UNSEEN_HEADING) }
                ul.said { @for text in &unseen { li { (text) } } }
            }
        }
    };
    filled(TEMPLATE, |part| match part {
        "policy" => POLICY.to_owned(),
        "title" => escape(&format!("ipcmark: {name}, recorded")),
        "style" => format!("{STYLE}{OWN_STYLE}"),
        "body" => body.0.clone(),
        "command" => escape(&shell_words(command)),
        _ => String::new(),
    })
}

/// A grid as a table, with what is to be said under it.
fn table(grid: &Grid) -> Markup {
    html! {
        h3 { (grid.heading) }
        div.scroll {
            table {
                thead { tr { td {} @for column in &grid.columns { th scope="col" { (column) } } } }
                tbody {
                    @for (name, cells) in &grid.rows {
                        tr { th scope="row" { (name) } @for cell in cells { td { (cell) } } }
                    }
                }
            }
        }
        @for text in &grid.below { p.below { (text) } }
    }
}
