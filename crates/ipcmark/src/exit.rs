//! How a command ends: the exit codes, and the errors that lead to them.

use crate::streams::complain;
use model::Invalid;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use sys::Failure;

/// The exit codes, as the manual lists them.
pub const CODES: &str = "\
Exit status:
  0    everything was done
  1    a case failed, or the kernel refused something; what was measured is kept
  2    bad input, such as an option, a name, a size or a file; nothing was measured
  3    compare: a case is slower than --fail-above allows
  4    compare: a case may be slower than --fail-above allows, which is undecided
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
    /// A case may be slower than the comparison allows.
    Undecided,
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
    /// A signal ended it before anything was measured.
    Interrupted,
    /// Bad input, of which the process that met it has said all.
    AlreadySaid,
}

impl Error {
    /// Of `error`, for which what stands at `path`, which a person has named, cannot be read: bad input, to be mended by `remedy`, where the
    /// name is to blame, and else the kernel's refusal.
    pub fn of_read(path: &Path, error: &io::Error, remedy: &str) -> Self {
        Self::of_file(path, ["read", "read"], error, remedy)
    }

    /// The same of a file that cannot be written.
    pub fn of_written(path: &Path, error: &io::Error) -> Self {
        let remedy = "name a file in a directory that exists and that you may write";
        Self::of_file(path, ["write", "written"], error, remedy)
    }

    fn of_file(path: &Path, [operation, done]: [&str; 2], error: &io::Error, remedy: &str) -> Self {
        let failure = Failure::from_io(operation, path.display(), error);
        if failure.is_of_name() {
            Error::Invalid(Invalid::new(format!("{} cannot be {done}: {error}", path.display()), remedy))
        } else {
            Error::Failure(failure)
        }
    }
}

#[cfg(test)]
impl Error {
    /// The bad input that it is.
    pub fn invalid(self) -> Invalid {
        match self {
            Error::Invalid(invalid) => invalid,
            other => panic!("{other:?}"),
        }
    }
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
        Ok(Exit::Undecided) => ExitCode::from(4),
        Ok(Exit::Interrupted) | Err(Error::Interrupted) => ExitCode::from(130),
        Err(Error::AlreadySaid) => ExitCode::from(2),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_to_blame_for_what_another_name_mends_and_the_kernel_for_the_rest() {
        let written = |errno: sys::Errno| Error::of_written(Path::new("a"), &errno.into());
        use sys::Errno;
        for errno in
            [Errno::NOENT, Errno::ACCESS, Errno::NOTDIR, Errno::LOOP, Errno::NAMETOOLONG, Errno::ROFS]
        {
            assert!(matches!(written(errno), Error::Invalid(_)), "{errno}");
        }
        for errno in
            [Errno::NOSPC, Errno::MFILE, Errno::NFILE, Errno::IO, Errno::DQUOT, Errno::FBIG, Errno::NOMEM]
        {
            assert!(matches!(written(errno), Error::Failure(_)), "{errno}");
        }
    }
}
