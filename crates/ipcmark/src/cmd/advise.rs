//! `ipcmark advise`: from the request to the needs, the candidates, the trials and the answers.

use crate::advice::advise;
use crate::advice_request::AdviceRequest;
use crate::cli::AdviseArguments;
use crate::derived_file;
use crate::exit::{Error, Exit};
use crate::output::{check_files, keep_answer, print, show_answer, style, write_page};
use crate::session::RunSession;
use analysis::advise::Recommendation;
use report::Format;
use std::path::Path;

/// Answers each need that is asked for.
pub fn run(arguments: AdviseArguments) -> Result<Exit, Error> {
    let request = AdviceRequest::new(arguments)?;
    // Before the work is done: something else may be where the files are to go.
    check_files(&request.answer)?;
    let existing = request.answer.page.existing.into();
    request.svg.iter().try_for_each(|path| derived_file::check(path, existing))?;
    let host = harness::host::facts::read(Path::new("/"));
    let session = RunSession::open()?;
    // Each answer is printed as soon as it is there; what a program reads has all in it.
    let is_table = request.answer.printed.format == Format::Table;
    let mut answers: Vec<(Option<String>, Recommendation)> = Vec::new();
    for placed in &request.needs {
        if session.is_stopped() {
            break;
        }
        let answer = advise(placed, &request.among, request.time, request.timeout, &host.topology, &session)?;
        if is_table {
            print(&report::advice(placed.flow.as_deref(), &answer, &style()))?;
        }
        answers.push((placed.flow.clone(), answer));
    }
    let json = |(flow, answer): &(Option<String>, Recommendation)| serde_json::json!({ "flow": flow, "advice": answer });
    let document = answers.iter().map(json).collect::<serde_json::Value>();
    // Files are made even if whoever reads the text closes it early, and the text is printed even if they cannot be made.
    let kept = keep_answer(&request.answer, &document);
    let made = write_page(&request.answer.page, |command| report::advice_html(&answers, command));
    if !is_table {
        let texts = answers.iter().map(|(flow, answer)| report::advice(flow.as_deref(), answer, &style()));
        let rows = ["advice", "ranked"];
        show_answer(request.answer.printed.format, &texts.collect::<String>(), &document, &rows)?;
    }
    if let (Some(path), [(_, answer)]) = (&request.svg, answers.as_slice()) {
        derived_file::write(path, report::advice_svg(answer).as_bytes(), existing)?;
    }
    kept.and(made)?;
    Ok(match () {
        () if session.is_stopped() => Exit::Interrupted,
        () if answers.iter().any(|(_, answer)| answer.ranked.is_empty()) => Exit::CaseFailed,
        () => Exit::Success,
    })
}
