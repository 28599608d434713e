//! The last function that text passes before it is on standard output or standard error: all that this program says, its panics and
//! what the parser of the command line says too. What becomes of errors of writing is for `output` and `exit`.

use anstream::AutoStream;
use anstream::stream::{AsLockedWrite, RawStream};
use model::visible::{Commands, visible};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{IsTerminal, Result, Write};

/// Writes `text` to `stream` without anything that commands a terminal, except colours on one.
pub fn say(stream: impl RawStream + AsLockedWrite, text: &str) -> Result<()> {
    let allowed = if stream.is_terminal() { Commands::Colours } else { Commands::None };
    let mut out = AutoStream::auto(stream);
    out.write_all(visible(text, allowed).as_bytes())?;
    out.flush()
}

/// Writes `text` to standard error, without colours too. Where nobody reads that, the exit code still says what matters.
pub fn complain(text: &str) {
    let _ = say(std::io::stderr(), &visible(text, Commands::None));
}

/// What the parser of the command line says, an error or help, with colours where it goes to a terminal. An error quotes what was
/// typed: where that has colours of its own, there are none.
pub fn words_of_parser(said: &clap::Error) -> String {
    let is_terminal =
        if said.use_stderr() { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
    let text = said.render();
    let is_plain = std::env::args_os().all(|word| !word.as_encoded_bytes().contains(&ESCAPE));
    if is_terminal && is_plain {
        text.ansi().to_string()
    } else {
        visible(&text.to_string(), Commands::None).into_owned()
    }
}

/// The character with which commands to a terminal begin.
const ESCAPE: u8 = 0x1b;

/// Has panics say what they say as all else is said: their messages may quote text from anywhere.
pub fn show_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = Backtrace::capture();
        let captured = (backtrace.status() == BacktraceStatus::Captured).then(|| format!("{backtrace}\n"));
        let next = "report this bug, with these lines";
        complain(&format!("ipcmark: {panic}\n  {next}\n{}", captured.unwrap_or_default()));
    }));
}
