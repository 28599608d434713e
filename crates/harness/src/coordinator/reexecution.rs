//! How this very program, or another build of it, is started as one of its sub-commands. It starts nothing itself.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use sys::{Errno, Failure, OrFail};

/// A command that runs `program`, or else this very program, as its sub-command `name`, in a process group of its own, so
/// that Ctrl-C reaches the coordinator alone.
pub(crate) fn reexecution(name: &str, program: Option<&Path>) -> Command {
    // The link in /proc stays right when the file was replaced while the run goes on.
    let mut command = Command::new(program.unwrap_or(Path::new("/proc/self/exe")));
    command.arg0("ipcmark").arg(name).process_group(0);
    command
}

/// A stream of a child that nobody writes or reads. It is opened here, so that an error names it, and not the program.
pub(crate) fn nowhere() -> Result<Stdio, Failure> {
    const NULL: &str = "/dev/null";
    let opened = OpenOptions::new().read(true).write(true).open(NULL).or_fail("open", NULL);
    let next = "endpoints have it as a standard stream: make it, as 'mknod -m 666 /dev/null c 1 3' does";
    opened.map(Stdio::from).map_err(|failure| match failure.errno {
        Some(Errno::NOENT) => Failure { next: next.to_owned(), ..failure },
        _ => failure,
    })
}
