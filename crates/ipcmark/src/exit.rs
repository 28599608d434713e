//! How a command ends: the exit codes, and the errors that lead to them.

use crate::streams::complain;
use model::Invalid;
use std::process::ExitCode;
use sys::Failure;

/// The exit codes, as the manual lists them.
pub const CODES: &str = "\
Exit status:
  0    everything was done
  1    a case failed, or the kernel refused something; what was measured is kept
  2    bad input, such as an option, a name, a size or a file; nothing was measured
  3    compare: a case is slower than --fail-above allows
  130  interrupted by Ctrl-C; what was measured is kept and shown";

/// How a command ended that could do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything was done.
    Success,
    /// A case failed; the others are kept.
    CaseFailed,
    /// A case is slower than the comparison allows.
    Slower,
    /// A signal ended it.
    Interrupted,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Error {
    /// Bad input.
    Invalid(Invalid),
    /// The kernel refused something that everything depends on.
    Failure(Failure),
    /// Whoever read the output has closed it, as `head` does: no reason to complain.
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

/// The exit code of `end`. An error is written to standard error.
pub fn code(end: impl Into<Ending>) -> ExitCode {
    let Ending(end) = end.into();
    match end {
        Ok(Exit::Success) | Err(Error::ReaderGone) => ExitCode::SUCCESS,
        Ok(Exit::CaseFailed) => ExitCode::from(1),
        Ok(Exit::Slower) => ExitCode::from(3),
        Ok(Exit::Interrupted) => ExitCode::from(130),
        Err(Error::Invalid(invalid)) => {
            complain(&format!("ipcmark: {invalid}\n"));
            ExitCode::from(2)
        }
        Err(Error::Failure(failure)) => {
            complain(&format!("ipcmark: {failure}\n"));
            ExitCode::from(1)
        }
    }
}

/// What [`code`] takes: how a command ended, or a hidden sub-command, whose success has no kinds.
pub struct Ending(Result<Exit, Error>);

impl From<Result<Exit, Error>> for Ending {
    fn from(end: Result<Exit, Error>) -> Self {
        Ending(end)
    }
}

impl From<Result<(), Error>> for Ending {
    fn from(end: Result<(), Error>) -> Self {
        Ending(end.map(|()| Exit::Success))
    }
}
