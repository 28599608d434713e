//! The detailed table for the terminal: the whole sheet, case by case, with all columns.
//!
//! It puts the parts in order. Where words stand is decided in `layout`, what they say in `sheet`.

use super::layout::{DEEPER, INDENT, Style, blocks, finish, labelled, section, study};
use super::sheet::sheet_with_study;
use crate::words::wrap;
use analysis::analysed::AnalysedResults;

/// `results` as a table: a block for each workload, size and placement, its rows fastest first.
pub fn table(results: &AnalysedResults<'_>, style: &Style) -> String {
    let (sheet, style) = (sheet_with_study(results), &style.for_tables());
    let missing = sheet.missing.iter().flat_map(|cases| wrap(cases, style.width, INDENT, DEEPER));
    let parts = [
        wrap(&sheet.title, style.width, "", INDENT),
        labelled(&sheet.head, style),
        sheet.study.map(|of_study| study(&of_study, style)).unwrap_or_default(),
        blocks(&sheet.blocks, style),
        blocks(&sheet.host_effects, style),
        section("notes", labelled(&sheet.notes, style), style),
        section("not measured", missing.collect(), style),
    ];
    finish(&parts.concat())
}

/// The study that `results` repeat, in full; nothing where they repeat none.
pub fn study_table(results: &AnalysedResults<'_>, style: &Style) -> String {
    let (sheet, style) = (sheet_with_study(results), &style.for_tables());
    let words = sheet.study.map(|of_study| study(&of_study, style)).unwrap_or_default();
    // The first line is the empty one that parts a study from what stands before it.
    finish(&words.into_iter().skip(1).collect::<Vec<_>>())
}
