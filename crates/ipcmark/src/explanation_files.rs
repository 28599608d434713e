//! The files that are made of explanations: a page, traces, timelines, flame graphs. What they show is for `report` to say.

use crate::cli::PageOption;
use crate::derived_file::{self, Existing};
use crate::exit::Error;
use crate::output::command;
use crate::request::ExplanationFiles;
use analysis::analysed::{AnalysedExplanation, AnalysedTimeline};
use analysis::explain::{Explanation, SizeCurve};
use analysis::path::ExplainedDifference;
use std::path::{Path, PathBuf};

/// The endpoints, in the order in which explanations have them.
const ENDPOINTS: [&str; 2] = ["client", "server"];

/// Makes those of `files` that are asked for. Returns a line for each that was made.
pub fn make(
    files: &ExplanationFiles,
    page: &PageOption,
    explanations: &[AnalysedExplanation<'_>],
    bends: &[SizeCurve],
) -> Result<String, Error> {
    let mut made = Made { existing: page.existing.into(), lines: String::new() };
    // Where there are no explanations, an earlier page stays.
    if let (Some(path), [_, ..]) = (&page.html, explanations) {
        let page = report::explanation_html(explanations, bends, &command());
        made.write(path, &page)?;
    }
    for AnalysedExplanation { explanation, timeline, .. } in explanations {
        if let (Some(directory), Some(timeline)) = (&files.traces, timeline) {
            made.write(&path(directory, explanation, "", "json"), &report::trace(timeline))?;
        }
        if let (Some(directory), Some(timeline)) = (&files.timelines, timeline) {
            made.timelines(directory, explanation, timeline)?;
        }
        if let Some(directory) = &files.flames {
            made.flame_graphs(directory, explanation)?;
        }
    }
    if let (Some(directory), [before, after]) = (&files.flames, explanations) {
        made.flame_graph_differences(directory, [before.explanation, after.explanation])?;
    }
    Ok(made.lines)
}

/// Makes the page of `differences`, if it is asked for. Returns a line that says so.
pub fn make_of_differences(page: &PageOption, differences: &[ExplainedDifference]) -> Result<String, Error> {
    let mut made = Made { existing: page.existing.into(), lines: String::new() };
    // Where there are none, an earlier page stays.
    if let (Some(path), [_, ..]) = (&page.html, differences) {
        let page = report::differences_html(differences, &command());
        made.write(path, &page)?;
    }
    Ok(made.lines)
}

/// What was made by now.
struct Made {
    existing: Existing,
    lines: String,
}

impl Made {
    fn write(&mut self, path: &Path, content: &str) -> Result<(), Error> {
        self.lines += &format!("wrote {}, {} bytes\n", path.display(), content.len());
        derived_file::write(path, content.as_bytes(), self.existing)
    }

    fn timelines(
        &mut self,
        directory: &Path,
        explanation: &Explanation,
        timeline: &AnalysedTimeline,
    ) -> Result<(), Error> {
        for (number, iteration) in (1..).zip(&timeline.iterations) {
            let svg = report::timeline(iteration, &explanation.case.key());
            let path = path(directory, explanation, &format!("-iteration-{number}"), "svg");
            self.write(&path, &svg)?;
        }
        Ok(())
    }

    fn flame_graphs(&mut self, directory: &Path, explanation: &Explanation) -> Result<(), Error> {
        for (endpoint, stacks) in ENDPOINTS.into_iter().zip(&explanation.stacks) {
            let title = format!("{endpoint}, {}", explanation.case.key());
            let Some(svg) = report::flame_graph(stacks, &title) else { continue };
            let path = |extension| path(directory, explanation, &format!("-{endpoint}"), extension);
            self.write(&path("svg"), &svg)?;
            self.write(&path("folded"), &report::folded(stacks))?;
        }
        Ok(())
    }

    fn flame_graph_differences(
        &mut self,
        directory: &Path,
        explanations: [&Explanation; 2],
    ) -> Result<(), Error> {
        let [before, after] = explanations;
        for (at, endpoint) in ENDPOINTS.into_iter().enumerate() {
            let titles = explanations.map(|explanation| format!("{endpoint}, {}", explanation.case));
            let (stacks, other_stacks) = (&before.stacks[at], &after.stacks[at]);
            let difference = report::flame_graph_difference(stacks, other_stacks, [&titles[0], &titles[1]]);
            if let Some(svg) = difference {
                self.write(&directory.join(format!("difference-{endpoint}.svg")), &svg)?;
            }
        }
        Ok(())
    }
}

/// The file of `explanation` in `directory` whose name ends in `suffix`, behind the case's.
fn path(directory: &Path, explanation: &Explanation, suffix: &str, extension: &str) -> PathBuf {
    let name = report::file_name(&explanation.case.key());
    directory.join(format!("{name}{suffix}.{extension}"))
}
