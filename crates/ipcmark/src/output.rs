//! Standard output: its width, its errors, and how results are printed on it.

use crate::cli::{AnswerOptions, PageOption};
use crate::derived_file;
use crate::exit::Error;
use crate::request::ShowRequest;
use crate::streams::say;
use analysis::analysed::AnalysedResults;
use model::Invalid;
use model::record::Results;
use serde::Serialize;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use sys::Failure;

/// Prints `text` on standard output as it is.
pub fn print(text: &str) -> Result<(), Error> {
    write(|out| out.write_all(text.as_bytes()))
}

/// The command line of this process.
pub fn command() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Refuses a page whose place is taken. For use before work that takes long.
pub fn check_page(page: &PageOption) -> Result<(), Error> {
    page.html.iter().try_for_each(|path| derived_file::check(path, page.existing.into()))
}

/// Refuses files of an answer whose places are taken. For use before work that takes long.
pub fn check_files(answer: &AnswerOptions) -> Result<(), Error> {
    let existing = answer.page.existing.into();
    answer.output.iter().try_for_each(|path| derived_file::check(path, existing))?;
    check_page(&answer.page)
}

/// Writes the page that is asked for, if one is; `html` makes it from the command that was typed.
pub fn write_page(page: &PageOption, html: impl FnOnce(&[String]) -> String) -> Result<(), Error> {
    match &page.html {
        Some(path) => derived_file::write(path, html(&command()).as_bytes(), page.existing.into()),
        None => Ok(()),
    }
}

/// Has `writer` write text, and writes it to standard output without anything that commands a terminal, except colours on one.
pub fn write(writer: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Error> {
    let mut bytes = Vec::new();
    let written = writer(&mut bytes);
    match written.and_then(|()| say(std::io::stdout(), &String::from_utf8_lossy(&bytes))) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Error::ReaderGone),
        Err(error) => {
            Err(Failure::new("write", "standard output", error.to_string(), "send it elsewhere").into())
        }
    }
}

/// Prints the study that `results` repeat in `format`.
pub fn show_study(format: report::Format, results: &Results) -> Result<(), Error> {
    let results = AnalysedResults::from_results(results);
    if results.study.is_none() {
        return Err(Invalid::new(
            "these results repeat no study",
            "name results of a suite that does, such as 'ipcmark run mueller -o FILE' makes, or leave out --study",
        )
        .into());
    }
    write(|out| format.write_study(&results, &style(), &mut *out))
}

/// Prints `results` as `request` says.
pub fn show(request: &ShowRequest, results: &Results) -> Result<(), Error> {
    let results = AnalysedResults::from_results(results);
    if request.study && request.format == report::Format::Table {
        return write(|out| request.format.write_study(&results, &style(), out));
    }
    let style = report::Style { detail: request.detail, ..style() };
    let metric = request.metric.as_deref();
    let plot = if request.plot { report::plot(&results, metric, &style)? } else { String::new() };
    write(|out| {
        request.format.write(&results, &style, &mut *out)?;
        out.write_all(plot.as_bytes())
    })
}

/// Keeps an answer in the file that `options` name, if they name one, and prints it as they say; what it is, is said at
/// [`show_answer`].
pub fn give_answer(
    options: &AnswerOptions,
    text: &str,
    document: &impl Serialize,
    rows: &[&str],
) -> Result<(), Error> {
    // It is kept even if whoever reads the text closes it early, and the text is printed even if it cannot be kept.
    let kept = keep_answer(options, document);
    show_answer(options.printed.format, text, document, rows)?;
    kept
}

/// The same, with the page that `html` makes, if one is asked for.
pub fn give_answer_and_page(
    options: &AnswerOptions,
    html: impl FnOnce(&[String]) -> String,
    text: &str,
    document: &impl Serialize,
    rows: &[&str],
) -> Result<(), Error> {
    let made = write_page(&options.page, html);
    give_answer(options, text, document, rows)?;
    made
}

/// Keeps the document of an answer in the file that `options` name, if they name one.
pub fn keep_answer(options: &AnswerOptions, document: &impl Serialize) -> Result<(), Error> {
    match &options.output {
        Some(path) => derived_file::write(path, json(document)?.as_bytes(), options.page.existing.into()),
        None => Ok(()),
    }
}

/// Prints an answer in `format`: its `text`, or its `document`, of which the objects in the lists `rows` are the lines of CSV.
pub fn show_answer(
    format: report::Format,
    text: &str,
    document: &impl Serialize,
    rows: &[&str],
) -> Result<(), Error> {
    print(&match format {
        report::Format::Table => text.to_owned(),
        report::Format::Markdown => format!("```text\n{}\n```\n", text.trim_end()),
        report::Format::Json => json(document)?,
        report::Format::Csv => {
            let lines = report::rows(&value(document)?, rows).map_err(unwritable)?;
            String::from_utf8_lossy(&lines).into_owned()
        }
    })
}

fn json(document: &impl Serialize) -> Result<String, Failure> {
    Ok(format!("{:#}\n", value(document)?))
}

fn value(document: &impl Serialize) -> Result<serde_json::Value, Failure> {
    serde_json::to_value(document).map_err(unwritable)
}

fn unwritable(error: impl Display) -> Failure {
    Failure::new("write", "the answer", error.to_string(), "report this bug")
}

/// The style of tables: as wide as the terminal, and 80 columns where there is none.
pub fn style() -> report::Style {
    const NARROWEST: usize = 60;
    const WIDEST: usize = 120;
    let terminal = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    report::Style {
        width: terminal.unwrap_or(80).clamp(NARROWEST, WIDEST),
        color: std::io::stdout().is_terminal(),
        detail: false,
    }
}
