//! What was recorded as one HTML file that opens by itself: the picture, and what the terminal says.
//!
//! Nothing on the page runs: it has no script, and its policy allows none.

use super::document::Document;
use crate::svg::recording::recording_element;
use crate::text::grid::Grid;
use crate::text::recording::{UNSEEN_HEADING, grids, head, unseen};
use crate::words::clean;
use analysis::recording::AnalysedScenario;
use maud::{Markup, PreEscaped, html};

const OWN_STYLE: &str = include_str!("explanation.css");

/// The page of `analysed`, made by `command`.
pub fn recording_html(analysed: &AnalysedScenario, command: &[String]) -> String {
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
    Document {
        title: &format!("ipcmark: {name}, recorded"),
        heading: "Who talks to whom",
        style: OWN_STYLE,
        has_images: false,
        body,
        command,
    }
    .html()
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
