//! Processes that the coordinator starts and ends: endpoints on this host, and commands that reach one. What they are told is not
//! known here.

use crate::clock::Timer;
use crate::protocol::channel::Channel;
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::{self, DirEntry};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;
use sys::{Errno, Failure, OrFail};

/// How long a command may take to end when its endpoint has, or when it was killed.
const END_WITHIN: Duration = Duration::from_secs(2);

/// A child that is killed and reaped when this is dropped.
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
    pub(super) fn wait_to_end(&mut self) {
        self.wait_within(END_WITHIN);
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    pub(super) fn kill(&mut self) {
        self.is_killed |= matches!(self.child.try_wait(), Ok(None));
        // It may have ended already.
        let _ = self.child.kill();
        if self.is_command {
            let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        }
    }

    /// Who else has a pipe of the command: a process that has left its group may have taken one along. A child of this process has
    /// all its descriptors until it has executed its program, and until then it is of this very file.
    pub(super) fn holders(&self) -> Vec<Pid> {
        let wanted: Vec<String> = self.pipes.iter().map(|inode| format!("pipe:[{inode}]")).collect();
        let is_pipe = |fd: DirEntry| {
            let link = fs::read_link(fd.path()).ok();
            link.is_some_and(|to| to.to_str().is_some_and(|to| wanted.iter().any(|pipe| pipe == to)))
        };
        let holds = |pid: &i32| {
            let fds = fs::read_dir(format!("/proc/{pid}/fd"));
            fds.is_ok_and(|fds| fds.flatten().any(is_pipe))
        };
        let file_of = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).ok();
        let own = file_of("self");
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|pid| file_of(&pid.to_string()) != own && holds(pid)).filter_map(Pid::from_raw).collect()
    }

    /// Kills whoever else has a pipe of the command.
    pub(super) fn kill_holders(&self) {
        for pid in self.holders() {
            // It may have ended, or be another user's.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Waits until it has ended, no longer than `limit`; says whether it has.
    pub(super) fn wait_within(&mut self, limit: Duration) -> bool {
        let timer = Timer::start();
        loop {
            match self.child.try_wait() {
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
    let missing = || Failure::of("pipe", "the command's standard streams", Errno::BADF);
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
