//! The other side of a run whose endpoints may be on two hosts: how it is reached, what it said of itself, and whether it still
//! can be reached.

use super::heartbeat::Heartbeat;
use super::own_child::over_streams;
use super::run_directory::RunDirectory;
use super::via::{ENDPOINT, Via};
use crate::clock::Timer;
use crate::host::isolation::{Witness, shared};
use crate::protocol::channel::{Channel, First, wait_for_message};
use crate::protocol::hello::{EndpointFacts, Hello};
use crate::protocol::message::{CoordinatorMessage, EndpointMessage};
use model::plan::Shared;
use model::record::ClockSource;
use model::{CpuPair, HostAddress, Invalid, Reach};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::io::Read;
use std::process::{ChildStderr, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use sys::{Errno, Failure, OrFail};

/// How much of what a command says on standard error is shown.
const SHOWN_BYTES: usize = 4096;
/// The longest text that a host may say of itself: the command line of a kernel is as long.
const LONGEST_TEXT: usize = 4096;

/// A side that is reached by a command.
#[derive(Debug)]
pub struct RemoteHost {
    pub(crate) via: Via,
    /// The path of ipcmark there.
    pub(crate) program: String,
    /// What it says of itself.
    pub facts: EndpointFacts,
}

/// Where the client reaches the server, in each of the ways there are; or why it does not.
#[derive(Debug, Clone)]
pub struct ServerAddresses {
    /// Over a network.
    pub ip: Result<HostAddress, Invalid>,
    /// By virtual sockets.
    pub vsock: Result<HostAddress, Invalid>,
}

impl Default for ServerAddresses {
    fn default() -> Self {
        let untried = || Err(Invalid::new("no address was tried", "report this bug"));
        Self { ip: untried(), vsock: untried() }
    }
}

impl ServerAddresses {
    /// That of a mechanism which reaches so far.
    pub fn for_reach(&self, reach: Reach) -> &Result<HostAddress, Invalid> {
        if reach == Reach::Guest { &self.vsock } else { &self.ip }
    }

    /// The same, to be changed.
    pub fn of_mut(&mut self, reach: Reach) -> &mut Result<HostAddress, Invalid> {
        if reach == Reach::Guest { &mut self.vsock } else { &mut self.ip }
    }
}

/// The sides of a run that are reached by commands, at least one.
#[derive(Debug)]
pub struct Remote {
    /// Where the client is, unless it is here.
    pub client: Option<RemoteHost>,
    /// Where the server is, unless it is here.
    pub server: Option<RemoteHost>,
    /// Where the client reaches the server.
    pub server_addresses: ServerAddresses,
    pub(crate) heartbeat: Heartbeat,
    lost: OnceLock<String>,
}

impl Remote {
    /// Of sides that were reached, and of which no address is known yet.
    pub fn new(client: Option<RemoteHost>, server: Option<RemoteHost>) -> Result<Self, Failure> {
        let heartbeat = Heartbeat::start()?;
        let server_addresses = ServerAddresses::default();
        Ok(Self { client, server, server_addresses, heartbeat, lost: OnceLock::new() })
    }

    /// The CPU of each side, which that side has chosen; `here` where it is this host.
    pub fn cpus(&self, here: u32) -> CpuPair {
        let cpu_of =
            |side: &Option<RemoteHost>| side.as_ref().map_or(here, |host| host.facts.cpu.unwrap_or(0));
        CpuPair { client: cpu_of(&self.client), server: cpu_of(&self.server) }
    }

    /// What the sides share beside a network.
    pub fn shared(&self) -> Shared {
        let [client, server] =
            [&self.client, &self.server].map(|side| side.as_ref().map(|host| &host.facts.isolation));
        shared(client, server)
    }

    /// Why a side cannot be reached any more, if it cannot. Then a run goes on no further.
    pub fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Notes that a side cannot be reached any more.
    pub(crate) fn lose(&self, why: String) {
        // The first reason is the one that counts.
        let _ = self.lost.set(why);
    }
}

impl RemoteHost {
    /// Reaches an endpoint by `via`: of the first of `programs` that is there. It must speak this protocol, and say so within
    /// `limit`. It says whether it sees `directory`, if there is one.
    pub fn reach(
        via: &Via,
        programs: &[String],
        limit: Duration,
        directory: Option<&RunDirectory>,
        interrupted: &AtomicBool,
    ) -> Result<Self, Invalid> {
        let witness = directory.and_then(RunDirectory::witness);
        let mut refusals = Vec::new();
        for program in programs {
            match first_contact(via, program, limit, witness.clone(), interrupted) {
                Ok(facts) => return Ok(Self { via: via.clone(), program: program.clone(), facts }),
                Err(FirstContact::NotThere(why)) => refusals.push(format!("{program}: {why}")),
                Err(FirstContact::Refused(refusal)) => return Err(refusal),
            }
        }
        Err(Invalid::new(
            format!("'{via}' reaches no ipcmark: {}", refusals.join("; ")),
            "install the same version there, name its path with --via-program, or give --push",
        ))
    }

    /// The clock that its endpoints time by: its own.
    pub(crate) fn clock(&self) -> ClockSource {
        self.facts.clock.source
    }

    /// The command by which it is reached.
    pub fn via_text(&self) -> String {
        self.via.to_string()
    }

    /// The path of ipcmark there.
    pub fn program(&self) -> &str {
        &self.program
    }
}

/// Why a first contact came to nothing.
enum FirstContact {
    /// Nothing that speaks the protocol answers: another path may help.
    NotThere(String),
    /// No other path would help.
    Refused(Invalid),
}

impl From<Failure> for FirstContact {
    fn from(failure: Failure) -> Self {
        FirstContact::NotThere(failure.to_string())
    }
}

/// Starts an endpoint, asks for its facts, and says goodbye.
fn first_contact(
    via: &Via,
    program: &str,
    limit: Duration,
    witness: Option<Witness>,
    interrupted: &AtomicBool,
) -> Result<EndpointFacts, FirstContact> {
    let mut command = via.command(&[program, ENDPOINT]);
    let (control, mut child) = over_streams(command.stderr(Stdio::piped()), via)?;
    let complaint = child.take_stderr();
    // A command that has ended by now has said why, which is read below.
    let asks = Hello { wants_facts: true, witness, ..Hello::own() };
    let _ = control.send(&CoordinatorMessage::Hello(asks), &[]);
    let answer = match hello(&control, limit, interrupted) {
        Ok(answer) => answer,
        // No other path would be answered.
        Err(failure) if failure.errno == Some(Errno::TIMEDOUT) => {
            let problem = format!("'{via} {program} {ENDPOINT}' says nothing for {} s", limit.as_secs_f64());
            let remedy = "see that the command reaches a program without asking for anything, or give --timeout a longer time";
            return Err(FirstContact::Refused(Invalid::new(problem, remedy)));
        }
        Err(failure) => {
            // A command that may not be killed ends when nobody talks to it.
            drop(control);
            child.kill();
            let said = complaint.map(said_on).unwrap_or_default();
            return Err(FirstContact::NotThere(if said.is_empty() { failure.to_string() } else { said }));
        }
    };
    if let Some(refusal) = answer.refusal() {
        let remedy = "install the same version on both hosts, or give --push";
        return Err(FirstContact::Refused(Invalid::new(format!("'{via}': {refusal}"), remedy)));
    }
    // It has said what is wanted: whether it hears this or not, it ends.
    let _ = control.send(&CoordinatorMessage::Goodbye, &[]);
    drop(control);
    child.wait_to_end();
    let facts =
        answer.facts.ok_or_else(|| FirstContact::NotThere("it says nothing of its host".to_owned()))?;
    match longest_text(&serde_json::json!(facts)) {
        0..=LONGEST_TEXT => Ok(*facts),
        longest => {
            let problem = format!("'{via}' says a text of {longest} bytes of its host");
            Err(FirstContact::Refused(Invalid::new(problem, "run ipcmark there")))
        }
    }
}

/// How long the longest text in `value` is.
fn longest_text(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(longest_text).max().unwrap_or(0),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len().max(longest_text(value))).max().unwrap_or(0)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// What a command that has ended said on standard error, as one line. A process that it left behind may hold the stream open.
pub(super) fn said_on(mut complaint: ChildStderr) -> String {
    const AT_MOST: Duration = Duration::from_millis(300);
    let flags = fcntl_getfl(&complaint).map(|flags| flags | OFlags::NONBLOCK);
    if flags.and_then(|flags| fcntl_setfl(&complaint, flags)).is_err() {
        return String::new();
    }
    let (mut said, timer) = (Vec::new(), Timer::start());
    while said.len() < SHOWN_BYTES && timer.elapsed() < AT_MOST {
        let mut more = [0; SHOWN_BYTES];
        match complaint.read(&mut more) {
            Ok(0) => break,
            Ok(count) => said.extend_from_slice(&more[..count]),
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
    let text = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" / ").chars().filter(|c| !c.is_control()).collect()
}

/// The endpoint's hello.
fn hello(control: &Channel, limit: Duration, interrupted: &AtomicBool) -> Result<Hello, Failure> {
    match wait_for_message(control, limit, interrupted).or_fail("poll", "control channel")? {
        First::Message => {}
        First::Interruption => {
            return Err(Failure::new("reach", "an endpoint", "the run was interrupted", "start it again"));
        }
        First::Silence => {
            return Err(Failure::from_errno("receive", "the endpoint's hello", Errno::TIMEDOUT));
        }
    }
    match control.receive::<EndpointMessage>()?.0 {
        EndpointMessage::Hello(hello) => Ok(hello),
        _ => Err(Failure::new(
            "receive",
            "the endpoint's hello",
            "it said something else",
            "run ipcmark there",
        )),
    }
}
