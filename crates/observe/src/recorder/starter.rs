//! A process that waits until it is recorded, and then becomes the program: a re-execution of the binary.

use model::visible::{Commands, visible};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_parent_process_death_signal, waitpid,
};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use sys::{Failure, OrFail};

/// The hidden sub-command by which the binary becomes such a process; its parent, the program and its arguments follow it.
pub const COMMAND: &str = "__recorded";

/// How the process ends if the program cannot be started, as shells have it.
const NOT_STARTED: i32 = 127;

/// Starts a process that will be the program `command`, and that is stopped.
pub(super) fn start(command: &[OsString]) -> Result<(Child, Pid), Failure> {
    const WHAT: &str = "the command to be recorded";
    let child = Command::new("/proc/self/exe")
        .arg0("ipcmark")
        .arg(COMMAND)
        .arg(getpid().as_raw_nonzero().to_string())
        .args(command)
        .spawn()
        .or_fail("start", WHAT)?;
    let pid = Pid::from_child(&child);
    let status = waitpid(Some(pid), WaitOptions::UNTRACED).or_fail("waitpid", WHAT)?;
    if status.is_none_or(|(_, status)| !status.stopped()) {
        return Err(Failure::new("start", WHAT, "it ended at once", "report this bug"));
    }
    Ok((child, pid))
}

/// Lets the process go on.
pub(super) fn go_on(pid: Pid) -> Result<(), Failure> {
    kill_process(pid, Signal::CONT).or_fail("kill", "the command to be recorded")
}

/// Stops until somebody lets it go on, and becomes the program that `words` say. If it is not to be, for its parent has died, it
/// dies too.
pub fn main(mut words: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    const SELF: &str = "this process";
    let (Some(parent), Some(program)) = (words.next(), words.next()) else { return Ok(()) };
    set_parent_process_death_signal(Some(Signal::KILL)).or_fail("prctl", SELF)?;
    // It may have died before that: then nobody would ever let this process go on.
    if getppid().is_none_or(|pid| *parent != *pid.as_raw_nonzero().to_string()) {
        return Ok(());
    }
    kill_process(getpid(), Signal::STOP).or_fail("kill", SELF)?;
    set_parent_process_death_signal(None).or_fail("prctl", SELF)?;
    let error = Command::new(&program).args(words).exec();
    let text = format!("ipcmark: {} cannot be started: {error}", program.display());
    eprintln!("{}\n  name a program that exists, with its path if need be", visible(&text, Commands::None));
    std::process::exit(NOT_STARTED)
}
