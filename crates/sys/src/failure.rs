//! The error of a request to the kernel: the operation, the object, the kernel's answer, and what to do next.
//!
//! It is built off the measured path only. Calls inside iterations return a bare [`Errno`].

use rustix::io::Errno;
use std::fmt::Display;

/// A request that failed. Displays as `operation object: answer (next step)`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{operation} {object}: {answer} ({next})")]
pub struct Failure {
    /// The name of the call.
    pub operation: String,
    /// What the call was made on.
    pub object: String,
    /// What the kernel answered.
    pub answer: String,
    /// What the user can do next.
    pub next: String,
    /// The kernel's answer as a number, where it was one.
    pub errno: Option<Errno>,
}

impl Failure {
    /// A failure that is not an errno, such as a peer that closed.
    pub fn new(
        operation: impl Into<String>,
        object: impl Display,
        answer: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            operation: operation.into(),
            object: object.to_string(),
            answer: answer.into(),
            next: next.into(),
            errno: None,
        }
    }

    /// The failure of `operation` on `object` with `errno`.
    pub fn from_errno(operation: &str, object: impl Display, errno: Errno) -> Self {
        let failure = Self::new(operation, object, errno.to_string(), "");
        Self { errno: Some(errno), next: next_step(errno, &failure.object).to_owned(), ..failure }
    }

    /// The failure of `operation` on `object` with `error`.
    pub fn from_io(operation: &str, object: impl Display, error: &std::io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(errno) => Self::from_errno(operation, object, errno),
            // It was not the kernel that answered.
            None => {
                Self::new(operation, object, error.to_string(), "try again; if it stays so, report this bug")
            }
        }
    }

    /// Whether what was named is to blame, which a person can name otherwise; else it is the kernel that is short of something, or
    /// that does not let it be done.
    pub fn is_of_name(&self) -> bool {
        let of_name = |errno: Errno| {
            matches!(
                errno,
                Errno::NOENT
                    | Errno::ACCESS
                    | Errno::PERM
                    | Errno::NOTDIR
                    | Errno::ISDIR
                    | Errno::EXIST
                    | Errno::NAMETOOLONG
                    | Errno::LOOP
                    | Errno::INVAL
                    | Errno::ILSEQ
                    | Errno::NXIO
                    | Errno::NODEV
                    | Errno::ROFS
                    | Errno::TXTBSY
                    | Errno::NOEXEC
            )
        };
        self.errno.is_none_or(of_name)
    }
}

/// What usually helps against `errno` of a call on `object`.
fn next_step(errno: Errno, object: &str) -> &'static str {
    match errno {
        Errno::MFILE => "too many open descriptors: raise 'ulimit -n'",
        Errno::NFILE => "the host is out of descriptors: raise fs.file-max",
        Errno::MSGSIZE => {
            "the message is above the limit: use smaller messages or raise the socket buffer limits"
        }
        Errno::NOMEM | Errno::NOBUFS => "out of memory: free some, or use smaller messages",
        Errno::FBIG => "a file would be longer than the limit allows: raise 'ulimit -f'",
        Errno::NOSPC => "the file system or the kernel's table is full: free some",
        Errno::TOOMANYREFS => "too many descriptors are on their way to others: raise 'ulimit -n'",
        Errno::ACCESS | Errno::PERM => {
            "not permitted: 'ipcmark list NAME' says what it needs, 'ipcmark doctor' whether calls are filtered"
        }
        Errno::ROFS => "the file system is read-only: set TMPDIR to a writable one",
        Errno::NOSYS | Errno::OPNOTSUPP | Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT => {
            "this kernel does not have it, or a filter of calls hides it, which 'ipcmark doctor' tells"
        }
        Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED => "the peer is gone: see its own error",
        Errno::AGAIN => {
            "the kernel is short of something: try again; how many processes may be started 'ipcmark doctor' tells"
        }
        Errno::EXIST => {
            "somebody else has it, and it is left alone; what killed runs left 'ipcmark clean' removes"
        }
        Errno::NOENT | Errno::NODEV | Errno::NXIO if object.starts_with("/dev/") => {
            "it is not there; what is missing in /dev 'ipcmark doctor' tells"
        }
        Errno::NOENT | Errno::NODEV | Errno::NXIO => "it is not there: see whether the name is right",
        Errno::ADDRNOTAVAIL | Errno::NETDOWN | Errno::NETUNREACH | Errno::HOSTUNREACH => {
            "no network leads there; whether loopback is up 'ipcmark doctor' tells"
        }
        _ => UNUSUAL,
    }
}

/// What helps against an answer that is not to be expected.
pub(crate) const UNUSUAL: &str = "the manual page of the call says under ERRORS when the kernel answers so";

/// Makes a [`Failure`] of an errno.
pub trait OrFail<T> {
    /// The value, or the failure of `operation` on `object`.
    fn or_fail(self, operation: &str, object: impl Display) -> Result<T, Failure>;
}

impl<T> OrFail<T> for Result<T, Errno> {
    fn or_fail(self, operation: &str, object: impl Display) -> Result<T, Failure> {
        self.map_err(|errno| Failure::from_errno(operation, object, errno))
    }
}

impl<T> OrFail<T> for std::io::Result<T> {
    fn or_fail(self, operation: &str, object: impl Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::from_io(operation, object, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_step_is_of_the_kernels_answer() {
        let next = |errno| Failure::from_errno("sendmsg", "a socket", errno).next;
        // Of a file of anybody's the doctor knows nothing.
        assert!(!next(Errno::NOENT).contains("doctor"));
        assert!(Failure::from_errno("open", "/dev/ptmx", Errno::NOENT).next.contains("'ipcmark doctor'"));
        assert!(next(Errno::TOOMANYREFS).contains("ulimit -n"));
        // Who types 'ipcmark list' is told what is refused here: it must not tell them to type it.
        for errno in [Errno::OPNOTSUPP, Errno::NOSYS, Errno::PERM, Errno::ACCESS] {
            let next = next(errno);
            assert!(next.contains("'ipcmark doctor'") && !next.contains("'ipcmark list'"), "{next}");
        }
    }
}
