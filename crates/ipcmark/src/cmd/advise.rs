//! `ipcmark advise`: from the request to the needs, the candidates, the trials and the answers.

use crate::advice::advise;
use crate::advice_request::AdviceRequest;
use crate::cli::AdviseArguments;
use crate::derived_file;
use crate::exit::{Error, Exit};
use crate::output::{command, print, show_answer, style};
use crate::session::RunSession;
use analysis::advise::Recommendation;
use report::Format;
use std::path::Path;

/// Answers each need that is asked for.
pub fn run(arguments: AdviseArguments) -> Result<Exit, Error> {
    let request = AdviceRequest::new(arguments)?;
    // Before the work is done: something else may be where the files are to go.
    let files = request.html.iter().chain(&request.svg);
    files.clone().try_for_each(|path| derived_file::check(path, request.existing))?;
    let host = harness::host::facts::read(Path::new("/"));
    let session = RunSession::open()?;
    let mut answers: Vec<(Option<String>, Recommendation)> = Vec::new();
    for placed in &request.needs {
        if session.is_stopped() {
            break;
        }
        let answer = advise(placed, &request.among, request.time, request.timeout, &host.topology, &session)?;
        if request.format == Format::Table {
            print(&report::advice(placed.flow.as_deref(), &answer, &style()))?;
        }
        answers.push((placed.flow.clone(), answer));
    }
    if request.format != Format::Table {
        let json = |(flow, answer): &(Option<String>, Recommendation)| serde_json::json!({ "flow": flow, "advice": answer });
        let document = answers.iter().map(json).collect::<serde_json::Value>();
        let texts = answers.iter().map(|(flow, answer)| report::advice(flow.as_deref(), answer, &style()));
        show_answer(request.format, &texts.collect::<String>(), &document, &["advice", "ranked"])?;
    }
    if let (Some(path), [(_, answer)]) = (&request.svg, answers.as_slice()) {
        derived_file::write(path, report::advice_svg(answer).as_bytes(), request.existing)?;
    }
    if let Some(path) = &request.html {
        derived_file::write(path, report::advice_html(&answers, &command()).as_bytes(), request.existing)?;
    }
    Ok(match () {
        () if session.is_stopped() => Exit::Interrupted,
        () if answers.iter().any(|(_, answer)| answer.ranked.is_empty()) => Exit::CaseFailed,
        () => Exit::Success,
    })
}
