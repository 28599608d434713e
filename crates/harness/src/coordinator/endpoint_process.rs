//! A process that is an endpoint, or the command that reaches one: it is started with its hello and its orders, and it is gone
//! when this is dropped.

use super::address_layout::AddressLayout;
use super::own_child::{OwnChild, is_closed, over_streams, unless_closed};
use super::reexecution::{nowhere, reexecution};
use super::remote::RemoteHost;
use super::trial_error::TrialError;
use super::via::ENDPOINT;
use crate::clock::Timer;
use crate::protocol::channel::{Channel, channel};
use crate::protocol::hello::Hello;
use crate::protocol::message::CoordinatorMessage;
use crate::protocol::orders::{Orders, Role};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::Signal;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use sys::{Failure, OrFail};

/// The option of `ipcmark endpoint` that names the coordinator on the same host, whose socket is on standard input.
pub const CHILD_OF: &str = "--child-of";

/// An endpoint process. Whatever happens, it is dead and reaped when this is dropped.
#[derive(Debug)]
pub(super) struct EndpointProcess {
    /// Closed before the child is waited for: a command that may not be killed ends by that.
    pub(super) control: Channel,
    pub(super) child: OwnChild,
    pub(super) role: Role,
    /// Whether it has said hello.
    pub(super) has_greeted: bool,
    pub(super) is_done: bool,
}

impl EndpointProcess {
    /// Starts `program`, or this very program, as an endpoint on this host, and gives it its orders with `links`.
    pub(super) fn start(
        orders: &Orders,
        links: Vec<Channel>,
        program: Option<&Path>,
        layout: AddressLayout,
    ) -> Result<Self, Failure> {
        let process = Self::greeted(orders.role, program, |command| layout.start(command, orders.number))?;
        process.give_orders(orders, &links)?;
        Ok(process)
    }

    /// Starts this very program as a process of a scenario, without its orders.
    pub(super) fn start_in_scenario() -> Result<Self, Failure> {
        Self::greeted(Role::Both, None, Command::spawn)
    }

    /// Starts `program`, or this very program, as an endpoint on this host by `spawn`, and says hello.
    fn greeted(
        role: Role,
        program: Option<&Path>,
        spawn: impl FnOnce(&mut Command) -> io::Result<Child>,
    ) -> Result<Self, Failure> {
        let (ours, theirs) = channel()?;
        let child = spawn(endpoint_command(program).stdin(OwnedFd::from(theirs)).stdout(nowhere()?));
        let program_words =
            program.map_or_else(|| "/proc/self/exe".to_owned(), |path| path.display().to_string());
        let child = child.or_fail("start", format!("an endpoint ({program_words})"))?;
        let process = Self::over(ours, OwnChild::endpoint(child), role);
        unless_closed(process.control.send(&CoordinatorMessage::Hello(Hello::own()), &[]))?;
        Ok(process)
    }

    /// Starts an endpoint on `host`, and gives it its orders.
    pub(super) fn start_on(host: &RemoteHost, orders: &Orders) -> Result<Self, Failure> {
        let mut command = host.via.command(&[&host.program, ENDPOINT]);
        let (control, child) = over_streams(command.stderr(Stdio::inherit()), &host.via)?;
        let process = Self::over(control, child, orders.role);
        unless_closed(process.control.send(&CoordinatorMessage::Hello(Hello::own()), &[]))?;
        process.give_orders(orders, &[])?;
        Ok(process)
    }

    /// Whether the coordinator tells it when a slice begins: a client, both endpoints in one process, or an operation.
    pub(super) fn is_led(&self) -> bool {
        self.role != Role::Server
    }

    fn over(control: Channel, child: OwnChild, role: Role) -> Self {
        Self { control, child, role, has_greeted: false, is_done: false }
    }

    fn give_orders(&self, orders: &Orders, links: &[Channel]) -> Result<(), Failure> {
        let fds: Vec<BorrowedFd<'_>> = links.iter().map(AsFd::as_fd).collect();
        unless_closed(self.control.send(&CoordinatorMessage::Trial(Box::new(orders.clone())), &fds))
    }
}

/// The command that starts an endpoint of `program`, or of this very program, over a socket on its standard input.
pub(super) fn endpoint_command(program: Option<&Path>) -> Command {
    let mut command = reexecution(ENDPOINT, program);
    command.arg(CHILD_OF).arg(std::process::id().to_string());
    command
}

/// What became of a process whose control channel gave `failure` instead of a message: it has ended, or what it said cannot be
/// read, and then it is killed, for it may wait for ever for somebody who listens.
pub(super) fn lost(child: &mut OwnChild, failure: &Failure) -> TrialError {
    const GRACE: Duration = Duration::from_secs(1);
    let timer = Timer::start();
    while timer.elapsed() < GRACE {
        match child.ended() {
            Ok(Some(status)) if is_closed(failure) => {
                return TrialError::Died { status: words(status, child) };
            }
            Ok(None) if is_closed(failure) => std::thread::sleep(Duration::from_millis(1)),
            Ok(_) => break,
            Err(error) => return TrialError::Died { status: error.to_string() },
        }
    }
    child.kill();
    TrialError::Unreadable { failure: failure.clone() }
}

/// How a child ended; of an endpoint on this host, which has the filters of this process, also what a filter of its calls kills.
fn words(status: ExitStatus, child: &OwnChild) -> String {
    let is_filtered = status.signal() == Some(Signal::SYS.as_raw()) && !child.is_command;
    if is_filtered { format!("{status}: {}", sys::seccomp::cause()) } else { status.to_string() }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// A process that sleeps, and the channel that is its own in the coordinator's eyes. It has said hello.
    pub(crate) fn sleeper(is_led: bool) -> (EndpointProcess, Channel) {
        let (ours, theirs) = channel().unwrap();
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let child = OwnChild::endpoint(child);
        let role = if is_led { Role::Client } else { Role::Server };
        (EndpointProcess { control: ours, child, role, has_greeted: true, is_done: false }, theirs)
    }
}
