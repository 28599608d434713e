//! How this very program, or another build of it, is started as one of its sub-commands. It starts nothing itself.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// A command that runs `program`, or else this very program, as its sub-command `name`, in a process group of its own, so
/// that Ctrl-C reaches the coordinator alone.
pub(crate) fn reexecution(name: &str, program: Option<&Path>) -> Command {
    // The link in /proc stays right when the file was replaced while the run goes on.
    let mut command = Command::new(program.unwrap_or(Path::new("/proc/self/exe")));
    command.arg0("ipcmark").arg(name).process_group(0);
    command
}
