//! The forms that results can be printed in.

use crate::data::{csv::csv, json::json, study_csv::study_csv};
use crate::text::layout::Style;
use crate::text::{
    markdown::conclusions, markdown::markdown, matrix::matrix, table::study_table, table::table,
};
use analysis::analysed::AnalysedResults;
use model::invalid::{Invalid, variant_named};
use std::io;
use std::str::FromStr;
use strum::{Display, VariantArray};

/// What results can be turned into.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Display, VariantArray)]
#[strum(serialize_all = "kebab-case")]
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
    pub const ALL: &[Format] = Format::VARIANTS;

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

impl FromStr for Format {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        variant_named("format", text)
    }
}
