//! The forms that results can be printed in.

use crate::data::{csv::csv, json::json, study_csv::study_csv};
use crate::text::layout::Style;
use crate::text::{markdown::conclusions, markdown::markdown, matrix::matrix, table::table};
use analysis::analysed::AnalysedResults;
use model::Invalid;
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
    /// For documents: what the study concluded, and whether that holds.
    Conclusions,
    /// For other programs.
    Json,
}

impl Format {
    /// Every format, the default first.
    pub const ALL: [Format; 6] =
        [Format::Table, Format::Markdown, Format::Csv, Format::StudyCsv, Format::Conclusions, Format::Json];

    /// The name that the command line takes.
    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Markdown => "markdown",
            Format::Csv => "csv",
            Format::StudyCsv => "study-csv",
            Format::Conclusions => "conclusions",
            Format::Json => "json",
        }
    }

    /// Writes `results` in this format. Only the table has a `style`.
    pub fn write(
        self,
        results: &AnalysedResults<'_>,
        style: &Style,
        mut out: impl io::Write,
    ) -> io::Result<()> {
        match self {
            Format::Table if style.detail => out.write_all(table(results, style).as_bytes()),
            Format::Table => out.write_all(matrix(results, style).as_bytes()),
            Format::Markdown => out.write_all(markdown(results).as_bytes()),
            Format::Csv => csv(results, out),
            Format::StudyCsv => study_csv(results, out),
            Format::Conclusions => out.write_all(conclusions(results).as_bytes()),
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
