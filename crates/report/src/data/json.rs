//! The JSON document: one object for other programs, with what was computed from the samples.
//!
//! It leaves out the samples and profiles, by far the largest part of a results file. A program that needs them reads the
//! results file, which is JSON Lines and has a schema.

use crate::words::hidden;
use analysis::analysed::{AnalysedRecord, AnalysedResults};
use analysis::study::evaluated::EvaluatedStudy;
use model::Case;
use model::elsewhere::Elsewhere;
use model::record::{Header, Outcome, Record, Results, RunEnd, Setting};
use model::summary::Summary;
use model::warning::Warning;
use serde::Serialize;
use std::io;

#[derive(Serialize)]
struct Document<'a> {
    header: &'a Header,
    records: Vec<Summarised<'a>>,
    /// The study that the run repeats, with this run's numbers in it; `null` when it repeats none.
    study: Option<&'a EvaluatedStudy>,
    /// `null` when the run was cut off.
    end: Option<&'a RunEnd>,
    notes: &'a [String],
}

/// A record whose samples stand as their summary.
#[derive(Serialize)]
struct Summarised<'a> {
    case: &'a Case,
    floor: bool,
    outcome: &'a Outcome,
    /// `null` when there are no samples.
    summary: Option<&'a Summary>,
    settings: &'a [Setting],
    #[serde(skip_serializing_if = "Option::is_none")]
    elsewhere: Option<&'a Elsewhere>,
    warnings: &'a [Warning],
}

impl<'a> Summarised<'a> {
    fn from_record(analysed: &'a AnalysedRecord<'_>) -> Self {
        let Record { case, floor, outcome, samples: _, summary: _, settings, elsewhere, warnings } =
            analysed.record;
        let elsewhere = (!elsewhere.is_nothing()).then_some(elsewhere);
        Self {
            case,
            floor: *floor,
            outcome,
            summary: analysed.summary.as_ref(),
            settings,
            elsewhere,
            warnings,
        }
    }
}

/// Writes `results` as one indented JSON document. Keys that end in `_ns` are nanoseconds.
pub fn json(analysed: &AnalysedResults<'_>, mut out: impl io::Write) -> io::Result<()> {
    let Results { header, records: _, profiles: _, end, notes } = analysed.results;
    let records = analysed.records.iter().map(Summarised::from_record).collect();
    let document = Document { header, records, study: analysed.study.as_ref(), end: end.as_ref(), notes };
    writeln!(out, "{}", visible(&serde_json::to_string_pretty(&document)?))
}

/// `json` with what a terminal would obey or hide escaped, which is the same JSON: outside strings there is
/// no such character but the ends of lines, and inside strings JSON allows no bare end of a line.
fn visible(json: &str) -> String {
    let mut visible = String::with_capacity(json.len());
    for character in json.chars() {
        if character != '\n' && hidden(character) {
            let mut units = [0; 2];
            visible.extend(character.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            visible.push(character);
        }
    }
    visible
}
