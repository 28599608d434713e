//! A driver: a program in whatever language that speaks the core of the protocol, started by a command on this host. What it says of itself is
//! asked here; trials are led elsewhere.

use super::heartbeat::Heartbeat;
use super::own_child::{OwnChild, over_streams, unless_closed};
use super::reexecution::reexecution;
use super::remote::said_on;
use super::via::{ENDPOINT, Via};
use crate::protocol::channel::{Channel, First, wait_for_message};
use crate::protocol::hello::{CoordinatorHello, DriverHello, DriverMechanism, PROTOCOL, VERSION};
use crate::protocol::led::{FromLed, ToLed};
use command_fds::{CommandFdExt, FdMapping};
use model::{CpuPair, DriverName, EndpointRole, Invalid};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use sys::{Errno, Failure, OrFail};

/// The option of `ipcmark endpoint` behind which stands the CPU on which a command is to run, and then its words.
pub const RUN_ON: &str = "--run-on";
/// The word for any CPU.
pub const ANY_CPU: &str = "any";
/// The first of the descriptors that an endpoint has from its start.
const FIRST_DESCRIPTOR: i32 = 3;
/// How many mechanisms a driver may have.
const MOST_MECHANISMS: usize = 100;

/// A program that is an endpoint, and what it said of itself.
#[derive(Debug, Clone)]
pub struct Driver {
    /// Its name in results.
    pub name: DriverName,
    /// By which it is started.
    pub command: Via,
    /// Its hello.
    pub hello: DriverHello,
}

/// The drivers of a run.
#[derive(Debug, Default)]
pub struct DriverSet {
    all: BTreeMap<DriverName, Driver>,
    /// What says to endpoints that listen for it that the coordinator is there, once there are drivers.
    pub(super) heartbeat: Option<Heartbeat>,
}

impl DriverSet {
    /// Adds one. Two of one name are refused: in results they would be one.
    pub fn add(&mut self, driver: Driver) -> Result<(), Invalid> {
        if let Some(other) = self.all.get(&driver.name)
            && other.command != driver.command
        {
            return Err(Invalid::new(
                format!("'{}' and '{}' both call themselves {}", other.command, driver.command, driver.name),
                "have one of them say another program in its hello",
            ));
        }
        if self.heartbeat.is_none() {
            self.heartbeat =
                Some(Heartbeat::start().map_err(|failure| Invalid::new(failure.to_string(), failure.next))?);
        }
        self.all.insert(driver.name.clone(), driver);
        Ok(())
    }

    /// The one that `command` starts.
    pub fn started_by(&self, command: &Via) -> Option<&Driver> {
        self.all.values().find(|driver| driver.command == *command)
    }

    /// The one called `name`.
    pub fn get(&self, name: &DriverName) -> Option<&Driver> {
        self.all.get(name)
    }
}

impl Driver {
    /// Starts what `command` starts, and asks it what it is. It must say so within `limit`.
    pub fn meet(command: &Via, limit: Duration, interrupted: &AtomicBool) -> Result<Self, Invalid> {
        let hello = greeting(command, limit, interrupted).map_err(|why| {
            Invalid::new(
                format!("the endpoint '{command}' cannot be used: {why}"),
                format!("see what 'ipcmark endpoint check {command}' says"),
            )
        })?;
        let word = hello.program.split(' ').next().unwrap_or_default().to_lowercase();
        // Another build of ipcmark is no driver of this one's name.
        let word = if word == "ipcmark" { "ipcmark-endpoint".to_owned() } else { word };
        Ok(Self { name: DriverName::try_from(word)?, command: command.clone(), hello })
    }

    /// What it measures under the name `mechanism`, if it does.
    pub fn mechanism(&self, mechanism: &str) -> Option<&DriverMechanism> {
        self.hello.mechanisms.iter().find(|offered| offered.name == mechanism)
    }
}

/// What the endpoint that `command` starts says of itself.
fn greeting(command: &Via, limit: Duration, interrupted: &AtomicBool) -> Result<DriverHello, String> {
    let mut start = command.command(&[]);
    let started = over_streams(start.stderr(Stdio::piped()), command);
    let (control, mut child) = started.map_err(|failure| unstarted(command, failure))?;
    let complaint = child.take_stderr();
    // One that has ended by now has said why.
    let _ = control.send(&ToLed::Hello(CoordinatorHello::own()), &[]);
    let answer = first_message(&control, limit, interrupted).and_then(checked);
    if answer.is_err() {
        drop(control);
        child.kill();
        let said = complaint.map(said_on).unwrap_or_default();
        let added = if said.is_empty() { String::new() } else { format!("; it says: {said}") };
        return answer.map_err(|why| format!("{why}{added}"));
    }
    // It has said what is wanted: whether it hears this or not, it ends.
    let _ = control.send(&ToLed::Goodbye, &[]);
    drop(control);
    child.wait_to_end();
    answer
}

/// Why `command` could not be started, with what to do about it.
fn unstarted(command: &Via, failure: Failure) -> String {
    let program = &command.words()[0];
    let next = match failure.errno {
        Some(Errno::ACCESS) => format!("make it executable: chmod +x {program}"),
        Some(Errno::NOENT) if program.contains(' ') => {
            format!("give the words of the command apart, without quotes: {program}")
        }
        Some(Errno::NOEXEC) => format!("begin it with a line such as #!/usr/bin/env python3: {program}"),
        _ => failure.next.clone(),
    };
    Failure { next, ..failure }.to_string()
}

/// The first thing that an endpoint says.
fn first_message(control: &Channel, limit: Duration, interrupted: &AtomicBool) -> Result<FromLed, String> {
    match wait_for_message(control, limit, interrupted).map_err(|errno| errno.to_string())? {
        First::Message => FromLed::heard(control).map_err(text),
        First::Interruption => Err("the run was interrupted".to_owned()),
        First::Silence => {
            Err(format!("it says nothing for {} s; is what it writes flushed?", limit.as_secs_f64()))
        }
    }
}

/// The hello that `message` is, if it is one that this coordinator can talk to.
pub(super) fn checked(message: FromLed) -> Result<DriverHello, String> {
    let hello = match message {
        FromLed::Hello(hello) => hello,
        other => return Err(format!("its first message is {}, and should be hello", other.as_said())),
    };
    if hello.protocol != PROTOCOL {
        return Err(format!("its hello is of the protocol '{}', and not of {PROTOCOL}", hello.protocol));
    }
    if hello.version != VERSION {
        return Err(format!(
            "it speaks version {} of the protocol, and this ipcmark {VERSION}",
            hello.version
        ));
    }
    if hello.mechanisms.len() > MOST_MECHANISMS {
        return Err(format!("it has more than {MOST_MECHANISMS} mechanisms"));
    }
    // They become part of names in results, as drivers' do.
    for mechanism in &hello.mechanisms {
        DriverName::try_from(mechanism.name.clone()).map_err(|_| {
            format!("'{}' is no name of a mechanism", model::invalid::printable(&mechanism.name))
        })?;
    }
    Ok(hello)
}

/// Starts the endpoint `role` of a trial: what `driver` is, or this very program, on its CPU of `cpus`, with descriptors from number 3 on.
///
/// What it says on standard error goes to `errors`. It has its CPU before it runs, so that whatever threads it starts have it too, and it is killed when the coordinator ends.
pub(super) fn start(
    driver: Option<&Driver>,
    role: EndpointRole,
    cpus: Option<CpuPair>,
    descriptors: Vec<OwnedFd>,
    errors: Stdio,
) -> Result<(Channel, OwnChild), Failure> {
    let cpu = cpus.map(|pair| if role == EndpointRole::Client { pair.client } else { pair.server });
    let mut command = reexecution(ENDPOINT, None);
    command.arg(RUN_ON).arg(cpu.map_or(ANY_CPU.to_owned(), |cpu| cpu.to_string()));
    match driver {
        Some(driver) => command.args(driver.command.words()),
        None => command.args(["/proc/self/exe", ENDPOINT]),
    };
    command.stderr(errors);
    let mappings = descriptors.into_iter().zip(FIRST_DESCRIPTOR..);
    let mappings = mappings.map(|(parent_fd, child_fd)| FdMapping { parent_fd, child_fd }).collect();
    let collide =
        |_| Failure::new("start", "an endpoint", "two descriptors have one number", "report this bug");
    command.fd_mappings(mappings).map_err(collide)?;
    let name = driver.map_or_else(|| "ipcmark endpoint".to_owned(), |driver| driver.command.to_string());
    let (control, child) = over_streams(&mut command, name)?;
    unless_closed(control.send(&ToLed::Hello(CoordinatorHello::own()), &[]))?;
    Ok((control, child))
}

/// Becomes the command of `words`, on `cpu` and to be killed with its parent: what `ipcmark endpoint --run-on` does.
pub(crate) fn become_on(cpu: &str, words: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    sys::process::die_with_parent()?;
    if cpu != ANY_CPU {
        let number =
            cpu.parse().map_err(|_| Failure::from_errno("take", format!("the CPU '{cpu}'"), Errno::INVAL))?;
        sys::process::pin_to(number)?;
    }
    let words: Vec<OsString> = words.collect();
    let Some((program, arguments)) = words.split_first() else {
        return Err(Failure::from_errno("start", "an endpoint", Errno::INVAL));
    };
    let error = Command::new(program).args(arguments).exec();
    Err(error).or_fail("execve", program.to_string_lossy())
}

/// The numbers of so many descriptors of an endpoint.
pub(super) fn numbers(count: usize) -> Vec<i32> {
    (FIRST_DESCRIPTOR..).take(count).collect()
}

/// The descriptors by which client and server of `mechanism` are connected, where they have such from their start: their receiving one
/// first. `None` where the server makes a ticket.
pub(super) fn descriptors(mechanism: &str) -> Result<Option<[Vec<OwnedFd>; 2]>, Failure> {
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::pipe::{PipeFlags, pipe_with};
    let pipe = || pipe_with(PipeFlags::CLOEXEC).or_fail("pipe", mechanism);
    let counter = || eventfd(0, EventfdFlags::CLOEXEC).or_fail("eventfd", mechanism);
    let again = |fd: &OwnedFd| fd.as_fd().try_clone_to_owned().or_fail("dup", mechanism);
    Ok(match mechanism {
        "pipe" => {
            let ((at_client, from_server), (at_server, from_client)) = (pipe()?, pipe()?);
            Some([vec![at_client, from_client], vec![at_server, from_server]])
        }
        "unix-stream" => {
            let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
            let (client, server) = pair.or_fail("socketpair", mechanism)?;
            Some([vec![client], vec![server]])
        }
        "eventfd" => {
            let (to_client, to_server) = (counter()?, counter()?);
            let server = vec![again(&to_server)?, again(&to_client)?];
            Some([vec![to_client, to_server], server])
        }
        _ => None,
    })
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
