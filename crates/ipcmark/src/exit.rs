//! How a command ends: the exit codes, and the errors that lead to them.

use model::Invalid;
use std::io::Write;
use std::process::ExitCode;
use sys::Failure;

/// The exit codes, as the manual lists them.
pub const CODES: &str = "\
Exit status:
  0    all that was asked for was done
  1    a case failed, or the kernel refused something; what was measured is kept
  2    bad input: an option, a name, a size, a file; nothing was measured
  3    compare: a case is slower by more than --fail-above allows
  130  interrupted by Ctrl-C; what was measured is kept and shown";

/// A good end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All was done.
    Success,
    /// Some case failed; the others are kept.
    CaseFailed,
    /// A comparison found more than it was to allow.
    Slower,
    /// A signal asked to stop.
    Interrupted,
}

/// A bad end.
#[derive(Debug)]
pub enum Error {
    /// Bad input.
    Invalid(Invalid),
    /// The kernel refused something that all depends on.
    Failure(Failure),
    /// Whoever read the output has gone, as `head` does: no reason to complain.
    ReaderGone,
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Error::Invalid(invalid)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Error::Failure(failure)
    }
}

/// The exit code of `end`; says an error on standard error.
pub fn code(end: impl Into<End>) -> ExitCode {
    let End(end) = end.into();
    match end {
        Ok(Exit::Success) | Err(Error::ReaderGone) => ExitCode::SUCCESS,
        Ok(Exit::CaseFailed) => ExitCode::from(1),
        Ok(Exit::Slower) => ExitCode::from(3),
        Ok(Exit::Interrupted) => ExitCode::from(130),
        Err(Error::Invalid(invalid)) => {
            complain(&invalid);
            ExitCode::from(2)
        }
        Err(Error::Failure(failure)) => {
            complain(&failure);
            ExitCode::from(1)
        }
    }
}

/// Says `error` on standard error. The exit code says it all the same where nobody reads that.
fn complain(error: &impl std::fmt::Display) {
    let _ = writeln!(anstream::stderr(), "ipcmark: {error}");
}

/// What [`code`] takes: the end of a command, or of an endpoint, which has no shades of success.
pub struct End(Result<Exit, Error>);

impl From<Result<Exit, Error>> for End {
    fn from(end: Result<Exit, Error>) -> Self {
        End(end)
    }
}

impl From<Result<(), Error>> for End {
    fn from(end: Result<(), Error>) -> Self {
        End(end.map(|()| Exit::Success))
    }
}
