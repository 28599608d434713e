//! Analysed results to bytes: text for terminals, Markdown, CSV, JSON, pages, pictures and traces.
//!
//! Every form takes the value that `analysis::analysed` made, so that all of them say the same numbers. Nothing here measures,
//! reads a clock, opens a file, computes a statistic or decides what a number means.
#![forbid(unsafe_code)]

mod data;
mod format;
mod html;
mod quantity;
mod scale;
mod svg;
mod text;
mod words;

#[cfg(test)]
mod explained;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod observed;
#[cfg(test)]
mod tests;

pub use self::data::csv::csv;
pub use self::data::json::json;
pub use self::data::rows::rows;
pub use self::data::study_csv::study_csv;
pub use self::data::trace::trace;
pub use self::format::Format;
pub use self::html::advice::advice_html;
pub use self::html::difference::differences_html;
pub use self::html::explanation::explanation_html;
pub use self::html::page::html;
pub use self::html::ratios::{comparison_html, paired_html, replay_both_html, replay_html, tried_html};
pub use self::html::recording::recording_html;
pub use self::svg::chart::{png, svg};
pub use self::svg::figures::{Chart, Drawing, SideBySide, drawings, file_name, study_pictures};
pub use self::svg::flame::{flame_graph, flame_graph_difference, folded};
pub use self::svg::front::advice_svg;
pub use self::svg::recording::recording_svg;
pub use self::svg::timeline::timeline;
pub use self::text::advice::advice;
pub use self::text::against::differences;
pub use self::text::columns::parse_metric;
pub use self::text::comparison::{comparison, paired, planned};
pub use self::text::explanation::explanations;
pub use self::text::layout::{Style, wrapped, wrapped_after};
pub use self::text::markdown::markdown;
pub use self::text::matrix::matrix;
pub use self::text::plot::plot;
pub use self::text::prediction::prediction;
pub use self::text::recording::recording;
pub use self::text::replay::{replay, replay_both};
pub use self::text::table::table;
pub use self::text::tried::tried;
