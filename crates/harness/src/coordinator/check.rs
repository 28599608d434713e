//! `ipcmark endpoint check`: plays the coordinator and the peer against any endpoint, and finds out whether it keeps the protocol:
//! hello, orders, payload and its order, loss, refusal, deaths, garbage and silence. It measures nothing.

mod peer;

use super::own_child::{OwnChild, over_streams};
use super::via::Via;
use crate::clock::Timer;
use crate::protocol::channel::{Channel, wait_any};
use crate::protocol::hello::{Hello, VERSION};
use crate::protocol::message::{CoordinatorMessage, EndpointMessage, PeerMessage};
use crate::protocol::orders::{NetworkOrders, Orders, Role, Singly, Sizing, SliceOrders};
use crate::protocol::phase::{Iterations, Phase, PhaseKind};
use crate::protocol::silence::SILENCE;
use model::record::ClockSource;
use model::{Case, HostAddress, Placement, Size, Spec, Workload, floor};
use peer::{Mistake, RawClient, RawServer};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// How long an endpoint may take for anything that it is asked.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to end: its own limit of silence, and some time.
const END_WITHIN: Duration = SILENCE.saturating_add(Duration::from_secs(3));
/// The messages of the trials: of this size, and so many in a phase.
const SIZE: Size = Size(100);
const ITERATIONS: u64 = 20;

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// What was checked.
    pub name: &'static str,
    /// What was wrong.
    pub result: Result<(), String>,
}

/// Whether it is as it should be, or what is wrong.
type Finding = Result<(), String>;

/// What makes a check of an endpoint.
type Find = fn(&Via) -> Finding;

/// The checks, in their order.
const CHECKS: &[(&str, Find)] = &[
    ("hello is answered by hello, and goodbye by the end", hello),
    ("a ping is answered", ping),
    ("a coordinator of another version is refused", other_version),
    ("a mechanism that is unknown is refused", unknown_mechanism),
    ("a server answers every message in order, with the right bytes", |via| server(via, Mistake::None)),
    ("a server takes nobody who does not show the token", |via| server(via, Mistake::Stranger)),
    ("a server notices a damaged message", |via| server(via, Mistake::Damage)),
    ("a server notices that messages are out of order", |via| server(via, Mistake::Order)),
    ("a server notices that a message is lost", |via| server(via, Mistake::Loss)),
    ("a server blames a client that closes in the middle", |via| server(via, Mistake::Death)),
    ("a client sends every message in order, with the right bytes, and reports its slice", |via| {
        client(via, Mistake::None)
    }),
    ("a client notices a damaged answer", |via| client(via, Mistake::Damage)),
    ("a client notices an answer out of order", |via| client(via, Mistake::Order)),
    ("a client blames a server that closes in the middle", |via| client(via, Mistake::Death)),
    ("an endpoint ends when the coordinator is gone", death),
    ("an endpoint ends when it is sent garbage", |via| garbage(via, b"\x0a\0\0\0{\"hello\":??")),
    ("an endpoint ends when it is sent text", |via| garbage(via, b"GET / HTTP/1.1\r\n\r\n")),
    ("an endpoint ends when a message is longer than any may be", |via| garbage(via, &[0xff; 4096])),
    ("an endpoint ends when nothing comes for some seconds", silence),
];

/// Makes every check on endpoints that `via` starts, and hands each finding to `report` when it is made.
pub fn check(via: &Via, mut report: impl FnMut(Checked)) {
    for (name, finding) in CHECKS {
        report(Checked { name, result: finding(via) });
    }
}

/// An endpoint that is checked.
struct Subject {
    control: Channel,
    child: OwnChild,
}

impl Subject {
    fn start(via: &Via) -> Result<Self, String> {
        let mut command = via.command(&[]);
        let (control, child) = over_streams(command.stderr(Stdio::null()), via).map_err(text)?;
        Ok(Self { control, child: OwnChild::command(child) })
    }

    /// One that has said hello.
    fn greeted(via: &Via) -> Result<Self, String> {
        let subject = Self::start(via)?;
        // What has ended by now may have said why.
        let _ = subject.say(&CoordinatorMessage::Hello(Hello::own()));
        match subject.next()? {
            EndpointMessage::Hello(hello) => hello.refusal().map_or(Ok(subject), Err),
            other => Err(format!("it says {other:?} instead of hello")),
        }
    }

    /// One that has orders for `role`, and shall find its peer by `token`.
    fn ordered(via: &Via, role: Role, token: [u8; 16]) -> Result<Self, String> {
        let subject = Self::greeted(via)?;
        subject.say(&CoordinatorMessage::Orders(Box::new(orders("tcp", role, token))))?;
        Ok(subject)
    }

    fn say(&self, message: &CoordinatorMessage) -> Finding {
        self.control.send(message, &[]).map_err(text)
    }

    fn say_peer(&self, message: PeerMessage) -> Finding {
        self.say(&CoordinatorMessage::Peer(Box::new(message)))
    }

    fn next(&self) -> Result<EndpointMessage, String> {
        match wait_any(&[&self.control], ANSWER_WITHIN) {
            Ok(Some(_)) => Ok(self.control.receive().map_err(text)?.0),
            Ok(None) => Err(format!("it says nothing for {} s", ANSWER_WITHIN.as_secs())),
            Err(errno) => Err(errno.to_string()),
        }
    }

    /// What it says next, which must be for its peer.
    fn next_for_peer(&self, what: &str) -> Result<PeerMessage, String> {
        match self.next()? {
            EndpointMessage::Peer(message) => Ok(*message),
            other => Err(format!("it says {other:?} instead of {what}")),
        }
    }

    /// Whether it says that it is done, well or not, and then ends.
    fn expect_done(mut self, well: bool) -> Finding {
        loop {
            match self.next()? {
                EndpointMessage::Done { error: None } if well => break,
                EndpointMessage::Done { error: Some(_) } if !well => break,
                EndpointMessage::Done { error: None } => return Err("it says that all is well".to_owned()),
                EndpointMessage::Done { error: Some(error) } => return Err(error.to_string()),
                // What it had begun to say before.
                EndpointMessage::Peer(_) | EndpointMessage::Slice(_) | EndpointMessage::Expect { .. } => {}
                other => return Err(format!("it says {other:?} instead of done")),
            }
        }
        self.expect_end()
    }

    /// Whether it ends in time.
    fn expect_end(&mut self) -> Finding {
        let timer = Timer::start();
        while timer.elapsed() < END_WITHIN {
            match self.child.try_wait() {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(format!("it lives on for {} s", END_WITHIN.as_secs()))
    }
}

fn orders(mechanism: &str, role: Role, token: [u8; 16]) -> Orders {
    let case = Case {
        spec: Spec::plain(mechanism),
        workload: Workload::Latency,
        size_bytes: Some(SIZE),
        placement: Placement::Remote,
        cpus: None,
        ..floor::operation(mechanism, 0)
    };
    Orders {
        case,
        role,
        clock: ClockSource::MonotonicRaw,
        directory: PathBuf::new(),
        number: 0,
        pair: 0,
        inject_ns: None,
        check: true,
        probe: None,
        network: Some(NetworkOrders { server: HostAddress::Ip(Ipv4Addr::LOCALHOST.into()), token }),
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn hello(via: &Via) -> Finding {
    let mut subject = Subject::greeted(via)?;
    subject.say(&CoordinatorMessage::Goodbye)?;
    subject.expect_end()
}

fn ping(via: &Via) -> Finding {
    let subject = Subject::greeted(via)?;
    subject.say(&CoordinatorMessage::Ping)?;
    match subject.next()? {
        EndpointMessage::Pong => Ok(()),
        other => Err(format!("it says {other:?} instead of pong")),
    }
}

fn other_version(via: &Via) -> Finding {
    let subject = Subject::start(via)?;
    subject.say(&CoordinatorMessage::Hello(Hello { version: VERSION + 1, ..Hello::own() }))?;
    match subject.next()? {
        // The coordinator must learn the version of the endpoint, too.
        EndpointMessage::Hello(_) => subject.expect_done(false),
        other => Err(format!("it says {other:?} instead of hello")),
    }
}

fn unknown_mechanism(via: &Via) -> Finding {
    let subject = Subject::greeted(via)?;
    let orders = orders("carrier-pigeon", Role::Server, rand::random());
    subject.say(&CoordinatorMessage::Orders(Box::new(orders)))?;
    subject.expect_done(false)
}

/// A trial of a server, whose client makes `mistake`.
fn server(via: &Via, mistake: Mistake) -> Finding {
    let token = rand::random();
    let subject = Subject::ordered(via, Role::Server, token)?;
    let PeerMessage::Ticket(port) = subject.next_for_peer("a ticket")? else {
        return Err("it makes no ticket".to_owned());
    };
    let mut client = RawClient::connect(&port, token, mistake)?;
    match subject.next_for_peer("its settings")? {
        PeerMessage::Settings(_) => {}
        other => return Err(format!("it says {other:?} instead of its settings")),
    }
    let phase = Phase { kind: PhaseKind::Total, iterations: ITERATIONS, check: true, reads_speed: false };
    subject.say_peer(PeerMessage::Phase(phase))?;
    match subject.next_for_peer("that it is ready")? {
        PeerMessage::Ready => {}
        other => return Err(format!("it says {other:?} instead of that it is ready")),
    }
    let count = Iterations::of(&phase).count();
    if mistake.is_noticed() {
        // It may close at any point, and then there is nothing to send to.
        let _ = client.ask(count, SIZE.as_usize(), mistake);
        drop(client);
        return subject.expect_done(false);
    }
    client.ask(count, SIZE.as_usize(), mistake)?;
    match subject.next_for_peer("its account of the phase")? {
        PeerMessage::Done(_) => {}
        other => return Err(format!("it says {other:?} instead of its account of the phase")),
    }
    let end = Phase { kind: PhaseKind::End, iterations: 0, check: false, reads_speed: false };
    subject.say_peer(PeerMessage::Phase(end))?;
    subject.expect_done(true)
}

/// A trial of a client of one slice, whose server makes `mistake`.
fn client(via: &Via, mistake: Mistake) -> Finding {
    let token = rand::random();
    let subject = Subject::ordered(via, Role::Client, token)?;
    let (listener, port) = RawServer::listen()?;
    subject.say_peer(PeerMessage::Ticket(port))?;
    let mut server = listener.accept(token)?;
    subject.say_peer(PeerMessage::Settings(Vec::new()))?;
    match subject.next()? {
        EndpointMessage::Connected => {}
        other => return Err(format!("it says {other:?} instead of connected")),
    }
    let orders = SliceOrders { size: Sizing::Iterations(ITERATIONS), singly: Singly::Omitted };
    subject.say(&CoordinatorMessage::Slice(orders))?;
    loop {
        match subject.next()? {
            EndpointMessage::Peer(message) => {
                let PeerMessage::Phase(phase) = *message else {
                    return Err(format!("it says {message:?} instead of a phase"));
                };
                subject.say_peer(PeerMessage::Ready)?;
                let answered = server.answer(Iterations::of(&phase).count(), SIZE.as_usize(), mistake);
                if mistake.is_noticed() {
                    drop(server);
                    return subject.expect_done(false);
                }
                answered?;
                subject.say_peer(PeerMessage::Done(Box::default()))?;
            }
            EndpointMessage::Slice(report) => {
                let sample = &report.sample;
                if sample.iterations != ITERATIONS
                    || !sample.elapsed_ns.is_finite()
                    || sample.elapsed_ns <= 0.0
                {
                    return Err(format!(
                        "it reports {} iterations in {} ns",
                        sample.iterations, sample.elapsed_ns
                    ));
                }
                break;
            }
            EndpointMessage::Expect { .. } => {}
            other => return Err(format!("it says {other:?} in the middle of a slice")),
        }
    }
    subject.say(&CoordinatorMessage::Goodbye)?;
    subject.expect_done(true)
}

fn death(via: &Via) -> Finding {
    let Subject { control, mut child } = Subject::ordered(via, Role::Server, rand::random())?;
    drop(control);
    let timer = Timer::start();
    while timer.elapsed() < END_WITHIN {
        if child.try_wait().map_err(text)?.is_some() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(format!("it lives on for {} s", END_WITHIN.as_secs()))
}

fn garbage(via: &Via, bytes: &[u8]) -> Finding {
    let mut subject = Subject::start(via)?;
    if let Some(output) = subject.control.stream_output() {
        output.try_send(bytes);
    }
    subject.expect_end()
}

fn silence(via: &Via) -> Finding {
    let mut subject = Subject::ordered(via, Role::Server, rand::random())?;
    subject.expect_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found of a command that is no endpoint.
    fn findings(command: &str) -> Vec<Checked> {
        let mut findings = Vec::new();
        check(&Via::parse(command).unwrap(), |checked| findings.push(checked));
        findings
    }

    #[test]
    fn what_ends_at_once_fails_every_check_that_wants_an_answer() {
        let failed = findings("true").into_iter().filter(|checked| checked.result.is_err()).count();
        // To end is right where garbage or silence comes.
        assert_eq!(failed, CHECKS.len() - 3, "{:?}", findings("true"));
    }

    #[test]
    fn what_speaks_text_is_shown() {
        let found = Subject::greeted(&Via::parse("echo hello there, stranger").unwrap()).err().unwrap();
        assert!(found.contains("hello there, stranger"), "{found}");
    }
}
