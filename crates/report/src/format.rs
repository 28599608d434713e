//! The forms that results can be printed in.

use crate::data::{csv::csv, json::json, study_csv::study_csv};
use crate::text::layout::Style;
use crate::text::{
    markdown::conclusions, markdown::markdown, matrix::matrix, table::study_table, table::table,
};
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
    /// For spreadsheets and data frames.
    Csv,
    /// For other programs.
    Json,
}

impl Format {
    /// Every format, the default first.
    pub const ALL: [Format; 4] = [Format::Table, Format::Markdown, Format::Csv, Format::Json];

    /// The name that the command line takes.
    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Markdown => "markdown",
            Format::Csv => "csv",
            Format::Json => "json",
        }
    }

    /// Writes the study that `results` repeat in this format. Only the table has a `style`.
    pub fn write_study(
        self,
        results: &AnalysedResults<'_>,
        style: &Style,
        mut out: impl io::Write,
    ) -> io::Result<()> {
        match self {
            Format::Table => out.write_all(study_table(results, style).as_bytes()),
            Format::Markdown => out.write_all(conclusions(results).as_bytes()),
            Format::Csv => study_csv(results, out),
            Format::Json => json(results, out),
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
