//! `ipcmark advise`: from the request to the needs, the candidates, the trials and the answers.

use crate::advice::advise;
use crate::advice_request::AdviceRequest;
use crate::cli::AdviseArguments;
use crate::derived_file::{self, FileKind};
use crate::exit::{Error, Exit};
use crate::output::{command, print, style};
use crate::session::RunSession;
use analysis::advise::Recommendation;
use std::path::Path;

/// Answers each need that is asked for.
pub fn run(arguments: AdviseArguments) -> Result<Exit, Error> {
    let request = AdviceRequest::new(arguments)?;
    // Before the work is done: something else may be where the files are to go.
    request.html.iter().try_for_each(|path| derived_file::check(path, FileKind::PAGE))?;
    request.svg.iter().try_for_each(|path| derived_file::check(path, FileKind::SVG))?;
    let host = harness::host::facts::read(Path::new("/"));
    let session = RunSession::open()?;
    let mut answers: Vec<(Option<String>, Recommendation)> = Vec::new();
    for placed in &request.needs {
        if session.is_stopped() {
            break;
        }
        let answer = advise(placed, &request.among, request.time, request.timeout, &host.topology, &session)?;
        if !request.json {
            print(&report::advice(placed.flow.as_deref(), &answer, &style()))?;
        }
        answers.push((placed.flow.clone(), answer));
    }
    if request.json {
        let json = |(flow, answer): &(Option<String>, Recommendation)| serde_json::json!({ "flow": flow, "advice": answer });
        print(&format!("{:#}\n", answers.iter().map(json).collect::<serde_json::Value>()))?;
    }
    if let (Some(path), [(_, answer)]) = (&request.svg, answers.as_slice()) {
        derived_file::write(path, report::advice_svg(answer).as_bytes(), FileKind::SVG)?;
    }
    if let Some(path) = &request.html {
        derived_file::write(path, report::advice_html(&answers, &command()).as_bytes(), FileKind::PAGE)?;
    }
    Ok(match () {
        () if session.is_stopped() => Exit::Interrupted,
        () if answers.iter().any(|(_, answer)| answer.ranked.is_empty()) => Exit::CaseFailed,
        () => Exit::Success,
    })
}
