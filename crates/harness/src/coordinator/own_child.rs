//! Processes that the coordinator starts and ends: endpoints on this host, and commands that reach one. What they are told is not
//! known here.

use crate::clock::Timer;
use crate::protocol::channel::Channel;
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, pidfd_open,
    pidfd_send_signal, waitid,
};
use std::fs::{self, DirEntry};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;
use sys::{Errno, Failure, OrFail};

/// How long a command may take to end when its endpoint has, or when it was killed.
const END_WITHIN: Duration = Duration::from_secs(2);

/// A child that is killed and reaped when this is dropped, and not before: an id that is waited for may be another's at once, and a group
/// of that number, which `kill` would end, a stranger's.
#[derive(Debug)]
pub(super) struct OwnChild {
    child: Child,
    /// Whether it is a command that reaches an endpoint, which may be its own parent's or another user's.
    pub(super) is_command: bool,
    /// The pipes of a command, by their inodes. Who holds one of them belongs to it.
    pipes: Vec<u64>,
    /// Whether it had not ended when it was killed.
    is_killed: bool,
}

impl OwnChild {
    /// An endpoint on this host.
    pub(super) fn endpoint(child: Child) -> Self {
        Self { child, is_command: false, pipes: Vec::new(), is_killed: false }
    }

    /// What it says on standard error, once.
    pub(super) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Waits a while for it to end by itself.
    pub(super) fn wait_to_end(&self) {
        self.wait_within(END_WITHIN);
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has (waitid(2), `WNOWAIT`).
    pub(super) fn ended(&self) -> Result<Option<ExitStatus>, Errno> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid()), options)?;
        // As wait(2) has it: an exit code in the second byte, a signal in the first.
        let code = |status: WaitIdStatus| match status.terminating_signal() {
            Some(signal) if status.dumped() => signal | 0x80,
            Some(signal) => signal,
            None => status.exit_status().unwrap_or_default() << 8,
        };
        Ok(status.map(|status| ExitStatus::from_raw(code(status))))
    }

    pub(super) fn kill(&mut self) {
        self.is_killed |= self.ended() == Ok(None);
        // It may have ended already.
        let _ = self.child.kill();
        if self.is_command {
            let _ = kill_process_group(self.pid(), Signal::KILL);
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Who else has a pipe of the command: a process that has left its group may have taken one along. A child of this process has
    /// all its descriptors until it has executed its program, and until then it is of this very file.
    pub(super) fn holders(&self) -> Vec<Pid> {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
        pids.filter_map(Pid::from_raw).filter(|pid| self.is_held_by(*pid)).collect()
    }

    fn is_held_by(&self, pid: Pid) -> bool {
        let is_pipe = |fd: DirEntry| {
            let link = fs::read_link(fd.path()).ok();
            let link = link.as_ref().and_then(|to| to.to_str());
            link.is_some_and(|to| self.pipes.iter().any(|inode| to == format!("pipe:[{inode}]")))
        };
        let file_of = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).ok();
        let pid = pid.as_raw_nonzero().to_string();
        let fds = fs::read_dir(format!("/proc/{pid}/fd"));
        file_of(&pid) != file_of("self") && fds.is_ok_and(|fds| fds.flatten().any(is_pipe))
    }

    /// Kills whoever else has a pipe of the command.
    pub(super) fn kill_holders(&self) {
        for pid in self.holders() {
            // It may have ended, and its id be another's: the descriptor is of one process, which is asked once more.
            let process = pidfd_open(pid, PidfdFlags::empty());
            if let Ok(process) = process
                && self.is_held_by(pid)
            {
                // It may be another user's.
                let _ = pidfd_send_signal(process, Signal::KILL);
            }
        }
    }

    /// Waits until it has ended, no longer than `limit`; says whether it has.
    pub(super) fn wait_within(&self, limit: Duration) -> bool {
        let timer = Timer::start();
        loop {
            match self.ended() {
                Ok(None) if timer.elapsed() < limit => std::thread::sleep(Duration::from_millis(1)),
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }
}

impl Drop for OwnChild {
    fn drop(&mut self) {
        self.kill();
        if self.is_command {
            // One that may not be killed, as sudo by an ordinary user, ends when its endpoint does, which hears nothing more.
            self.wait_within(END_WITHIN);
            // One that ended by itself may have left a connection for the next, as ssh does with ControlPersist.
            if self.is_killed {
                self.kill_holders();
            }
            let _ = self.child.try_wait();
        } else {
            let _ = self.child.wait();
        }
    }
}

/// Starts `command`, and makes a channel of its standard streams.
pub(super) fn over_streams(
    command: &mut Command,
    what: impl std::fmt::Display,
) -> Result<(Channel, OwnChild), Failure> {
    let (input, output, child) = streams(command, what)?;
    Ok((Channel::over_streams(input, output), child))
}

/// Starts `command`. Returns what it says, what it is told, which is never waited for, and itself.
pub(super) fn streams(
    command: &mut Command,
    what: impl std::fmt::Display,
) -> Result<(OwnedFd, OwnedFd, OwnChild), Failure> {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.or_fail("start", format!("the command '{what}'"))?;
    let missing = || Failure::from_errno("pipe", "the command's standard streams", Errno::BADF);
    let input = child.stdout.take().map(OwnedFd::from).ok_or_else(missing)?;
    let output = child.stdin.take().map(OwnedFd::from).ok_or_else(missing)?;
    // A command that reads nothing must not stop the coordinator.
    let flags = fcntl_getfl(&output).or_fail("fcntl(F_GETFL)", "control channel")?;
    fcntl_setfl(&output, flags | OFlags::NONBLOCK).or_fail("fcntl(F_SETFL)", "control channel")?;
    let pipes = [&input, &output].into_iter().filter_map(|pipe| Some(fstat(pipe).ok()?.st_ino)).collect();
    Ok((input, output, OwnChild { child, is_command: true, pipes, is_killed: false }))
}

/// Whether `failure` is that the other side has closed.
pub(super) fn is_closed(failure: &Failure) -> bool {
    matches!(failure.errno, Some(Errno::PIPE | Errno::CONNRESET))
}

/// What came of telling a process something. One that has ended by now has said why, which is read later.
pub(super) fn unless_closed(sent: Result<(), Failure>) -> Result<(), Failure> {
    sent.or_else(|failure| if is_closed(&failure) { Ok(()) } else { Err(failure) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_child_that_has_ended_is_its_own_until_it_is_dropped() {
        let (_input, _output, child) = streams(Command::new("sh").args(["-c", "exit 3"]), "sh").unwrap();
        assert!(child.wait_within(Duration::from_secs(180)));
        assert_eq!(child.ended().unwrap().and_then(|status| status.code()), Some(3));
        let at = format!("/proc/{}", child.id());
        assert!(fs::exists(&at).unwrap(), "it was reaped");
        drop(child);
        assert!(!fs::exists(&at).unwrap());
    }

    #[test]
    fn a_child_that_was_killed_says_by_what() {
        let (_input, _output, mut child) = streams(&mut Command::new("cat"), "cat").unwrap();
        assert_eq!(child.ended(), Ok(None));
        child.kill();
        assert!(child.wait_within(Duration::from_secs(180)));
        let ended = child.ended().unwrap().unwrap();
        assert_eq!(ended, ExitStatus::from_raw(Signal::KILL.as_raw()));
    }
}
