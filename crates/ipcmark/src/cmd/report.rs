//! `ipcmark report`: shows results files, or makes pages and figures of them.

use crate::cli::{FileOptions, ReportArguments};
use crate::derived_file::{self, Existing};
use crate::exit::{Error, Exit};
use crate::output::{command, print, show, show_study};
use crate::results_file;
use analysis::analysed::{AnalysedResults, AnalysedTimeline};
use model::Invalid;
use model::record::Results;
use std::collections::BTreeMap;
use std::path::Path;

/// Reads every file before it shows any, so that a bad one is refused first.
pub fn run(arguments: ReportArguments) -> Result<Exit, Error> {
    let all = arguments.files.iter().map(|path| results_file::read(path)).collect::<Result<Vec<_>, _>>()?;
    if arguments.make.are_wanted() {
        make(&arguments.make, &all, arguments.show.metric.as_deref(), arguments.existing.into())?;
        return Ok(Exit::Success);
    }
    if arguments.study {
        return all
            .iter()
            .try_for_each(|results| show_study(arguments.show.format, results))
            .map(|()| Exit::Success);
    }
    let request = arguments.show.into();
    for results in &all {
        show(&request, results)?;
    }
    Ok(Exit::Success)
}

/// Makes the files that are asked for and prints which.
fn make(files: &FileOptions, all: &[Results], metric: Option<&str>, existing: Existing) -> Result<(), Error> {
    let analysed: Vec<AnalysedResults<'_>> = all.iter().map(AnalysedResults::from_results).collect();
    // Everything is made before anything is written, so that a bad metric leaves nothing half done.
    let page = match &files.html {
        Some(path) => Some((path, report::html(&analysed, metric, &command())?)),
        None => None,
    };
    let wanted = files.svg.is_some() || files.png.is_some();
    let drawings = if wanted { report::drawings(&analysed, metric)? } else { Vec::new() };
    let traces = if files.traces.is_some() { traces(all)? } else { Vec::new() };
    if let Some((path, page)) = page {
        write(path, page.as_bytes(), existing)?;
    }
    for (name, trace) in &traces {
        if let Some(directory) = &files.traces {
            write(&directory.join(format!("{name}.json")), trace.as_bytes(), existing)?;
        }
    }
    if let Some(directory) = &files.svg {
        for (name, picture) in report::study_pictures(&analysed) {
            write(&directory.join(format!("{name}.svg")), picture.as_bytes(), existing)?;
        }
    }
    for drawing in &drawings {
        let path = |directory: &Path, ending: &str| directory.join(format!("{}.{ending}", drawing.file_name));
        if let Some(directory) = &files.svg {
            write(&path(directory, "svg"), report::svg(drawing).as_bytes(), existing)?;
        }
        if let Some(directory) = &files.png {
            let picture = report::png(drawing).ok_or_else(|| no_picture(&drawing.file_name))?;
            write(&path(directory, "png"), &picture, existing)?;
        }
    }
    Ok(())
}

/// The recorded iterations of each case, of several the last, as traces, each with the name of its file.
fn traces(all: &[Results]) -> Result<Vec<(String, String)>, Invalid> {
    let timelines = all.iter().flat_map(AnalysedTimeline::all);
    let traces = timelines.map(|timeline| (report::file_name(&timeline.case), report::trace(&timeline)));
    let traces: BTreeMap<String, String> = traces.collect();
    if traces.is_empty() {
        return Err(Invalid::new(
            "there are no traces: these results have no recorded iterations",
            "run a suite whose study draws a timeline, such as l41, or use 'ipcmark explain --traces'",
        ));
    }
    Ok(traces.into_iter().collect())
}

fn no_picture(name: &str) -> Invalid {
    Invalid::new(format!("the figure {name} cannot be drawn as PNG"), "use --svg, and report this bug")
}

fn write(path: &Path, content: &[u8], existing: Existing) -> Result<(), Error> {
    derived_file::write(path, content, existing)?;
    print(&format!("wrote {}, {} bytes\n", path.display(), content.len()))
}
