//! Processes that the coordinator starts and ends: endpoints on this host, and commands that reach one. What they are told is not
//! known here.

use crate::clock::Timer;
use crate::protocol::channel::Channel;
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::{Child, Command, ExitStatus, Stdio};
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
}

impl OwnChild {
    /// An endpoint on this host.
    pub(super) fn endpoint(child: Child) -> Self {
        Self { child, is_command: false }
    }

    /// A command that reaches an endpoint.
    pub(super) fn command(child: Child) -> Self {
        Self { child, is_command: true }
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
        // It may have ended already.
        let _ = self.child.kill();
        if self.is_command {
            let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
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
        } else {
            let _ = self.child.wait();
        }
    }
}

/// Starts `command`, and makes a channel of its standard streams.
pub(super) fn over_streams(
    command: &mut Command,
    what: impl std::fmt::Display,
) -> Result<(Channel, Child), Failure> {
    let (input, output, child) = streams(command, what)?;
    Ok((Channel::over_streams(input, output), child))
}

/// Starts `command`. Returns what it says, what it is told, which is never waited for, and itself.
pub(super) fn streams(
    command: &mut Command,
    what: impl std::fmt::Display,
) -> Result<(OwnedFd, OwnedFd, Child), Failure> {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.or_fail("start", format!("the command '{what}'"))?;
    let missing = || Failure::of("pipe", "the command's standard streams", Errno::BADF);
    let input = child.stdout.take().map(OwnedFd::from).ok_or_else(missing)?;
    let output = child.stdin.take().map(OwnedFd::from).ok_or_else(missing)?;
    // A command that reads nothing must not stop the coordinator.
    let flags = fcntl_getfl(&output).or_fail("fcntl(F_GETFL)", "control channel")?;
    fcntl_setfl(&output, flags | OFlags::NONBLOCK).or_fail("fcntl(F_SETFL)", "control channel")?;
    Ok((input, output, child))
}

/// Whether `failure` is that the other side has closed.
pub(super) fn is_closed(failure: &Failure) -> bool {
    matches!(failure.errno, Some(Errno::PIPE | Errno::CONNRESET))
}
