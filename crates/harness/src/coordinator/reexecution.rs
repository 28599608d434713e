//! How this very program is started again as one of its hidden sub-commands. It starts nothing itself.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// A command that runs this very program as its hidden sub-command `name`, in a process group of its own, so that Ctrl-C
/// reaches the coordinator alone.
pub(crate) fn reexecution(name: &str) -> Command {
    // The link in /proc stays right when the file was replaced while the run goes on.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("ipcmark").arg(name).arg(std::process::id().to_string()).process_group(0);
    command
}
