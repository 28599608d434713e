//! Standard output: its width, its errors, and how results are printed on it.

use crate::exit::Error;
use crate::request::ShowRequest;
use crate::streams::say;
use analysis::analysed::AnalysedResults;
use model::record::Results;
use std::io::{ErrorKind, IsTerminal, Write};

/// Prints `text` on standard output as it is.
pub fn print(text: &str) -> Result<(), Error> {
    write(|out| out.write_all(text.as_bytes()))
}

/// The command line of this process.
pub fn command() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Has `writer` write text, and writes it to standard output without anything that commands a terminal, except colours on one.
pub fn write(writer: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Error> {
    let mut bytes = Vec::new();
    let written = writer(&mut bytes);
    match written.and_then(|()| say(std::io::stdout(), &String::from_utf8_lossy(&bytes))) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Error::ReaderGone),
        Err(error) => {
            Err(sys::Failure::new("write", "standard output", error.to_string(), "send it elsewhere").into())
        }
    }
}

/// Prints `results` as `request` says.
pub fn show(request: &ShowRequest, results: &Results) -> Result<(), Error> {
    let results = AnalysedResults::of(results);
    let style = report::Style { detail: request.detail, ..style() };
    let metric = request.metric.as_deref();
    let plot = if request.plot { report::plot(&results, metric, &style)? } else { String::new() };
    write(|out| {
        request.format.write(&results, &style, &mut *out)?;
        out.write_all(plot.as_bytes())
    })
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
