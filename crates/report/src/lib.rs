//! Records to bytes: the terminal table, Markdown, CSV, JSON and pages, and comparisons for the terminal.
//!
//! Everything here is a function from results to text. Nothing here measures, reads a clock, opens a
//! file or decides what a number means: statistics and warnings are `model`'s.
#![forbid(unsafe_code)]

mod block;
mod columns;
mod comparison;
mod csv;
mod drawing;
mod explanation;
mod explanation_page;
mod figure;
mod flame;
mod head;
mod json;
mod layout;
mod line_style;
mod markdown;
mod marks;
mod page;
mod plot;
mod quantity;
mod sheet;
mod study;
mod study_csv;
mod study_words;
mod sum;
mod table;
mod text;
mod timeline;
mod trace;

#[cfg(test)]
mod explained;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod observed;
#[cfg(test)]
mod tests;

pub use self::comparison::{comparison, paired};
pub use self::csv::csv;
pub use self::drawing::{png, svg};
pub use self::explanation::explanations;
pub use self::explanation_page::explanation_html;
pub use self::figure::{Chart, Drawing, SideBySide, drawings, file_name, iterations, parse_metric};
pub use self::flame::{flame_graph, flame_graph_difference, folded};
pub use self::json::json;
pub use self::layout::Style;
pub use self::markdown::markdown;
pub use self::page::{Input, html};
pub use self::plot::plot;
pub use self::study_csv::study_csv;
pub use self::table::table;
pub use self::timeline::timeline;
pub use self::trace::trace;

use analysis::summary::summarise;
use model::Invalid;
use model::record::{Outcome, Record, Results};
use model::summary::Summary;
use std::fmt;
use std::io;
use std::str::FromStr;

/// What results can be turned into.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// For a terminal.
    #[default]
    Table,
    /// For issues and read-mes.
    Markdown,
    /// For spreadsheets and data frames: the cases.
    Csv,
    /// The same: the study that the run repeats.
    StudyCsv,
    /// For other programs.
    Json,
}

impl Format {
    /// Every format, the default first.
    pub const ALL: [Format; 5] =
        [Format::Table, Format::Markdown, Format::Csv, Format::StudyCsv, Format::Json];

    /// The name that the command line takes.
    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Markdown => "markdown",
            Format::Csv => "csv",
            Format::StudyCsv => "study-csv",
            Format::Json => "json",
        }
    }

    /// Writes `results` in this format. Only the table has a `style`.
    pub fn write(self, results: &Results, style: &Style, mut out: impl io::Write) -> io::Result<()> {
        match self {
            Format::Table => out.write_all(table(results, style).as_bytes()),
            Format::Markdown => out.write_all(markdown(results).as_bytes()),
            Format::Csv => csv(results, out),
            Format::StudyCsv => study_csv(results, out),
            Format::Json => json(results, out),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let found = Format::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| Invalid::unknown("format", text, Format::ALL.map(Format::name)))
    }
}

/// `text` as a paragraph under a heading, for a terminal.
pub fn wrapped(text: &str, style: &Style) -> String {
    layout::finish(&self::text::wrap(&self::text::clean(text), style.width(), layout::INDENT, layout::DEEPER))
}

/// The summary of `record`; worked out from the samples where the file has none.
fn summary_of(record: &Record) -> Option<Summary> {
    record.summary.clone().or_else(|| summarise(&record.case, &record.samples))
}

/// How a case ended, in one word.
fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Settled => "settled",
        Outcome::Unsettled => "unsettled",
        Outcome::Interrupted => "interrupted",
        Outcome::Missed { .. } => "missed",
        Outcome::Failed { .. } => "failed",
    }
}
