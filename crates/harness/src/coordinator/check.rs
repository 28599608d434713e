//! `ipcmark endpoint check`: plays the coordinator and the peer against any endpoint, and finds out whether it keeps the protocol:
//! hello, orders, payload and its order, loss, refusal, deaths, garbage and silence. It measures nothing.

mod peer;

use super::own_child::{OwnChild, over_streams};
use super::reexecution::nowhere;
use super::via::Via;
use crate::clock::Timer;
use crate::protocol::channel::{Channel, wait_any};
use crate::protocol::frame::shortened;
use crate::protocol::hello::{Hello, VERSION};
use crate::protocol::message::{CoordinatorMessage, EndpointMessage, PeerMessage};
use crate::protocol::orders::{NetworkOrders, Orders, Role, Singly, Sizing, SliceOrders};
use crate::protocol::phase::{Iterations, Phase, PhaseKind};
use crate::protocol::silence::SILENCE;
use model::record::ClockSource;
use model::{Case, HostAddress, Placement, Size, Spec, Workload, floor};
use peer::{Mistake, RawClient, RawServer};
use std::cell::Cell;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long an endpoint may take for anything that it is asked.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to end: its own limit of silence, and some time.
const END_WITHIN: Duration = SILENCE.saturating_add(Duration::from_secs(3));
/// How many things an endpoint says in a check at most.
const MOST_SAID: u32 = 1000;
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
type Find = fn(&Tested<'_>) -> Finding;

/// The checks, in their order.
const CHECKS: &[(&str, Find)] = &[
    ("hello is answered by hello, and goodbye by the end", hello),
    ("a ping is answered", ping),
    ("a coordinator of another version is refused", other_version),
    ("a mechanism that is unknown is refused", unknown_mechanism),
    ("a server answers every message in order, with the right bytes", |tested| server(tested, Mistake::None)),
    ("a server takes nobody who does not show the token", |tested| server(tested, Mistake::Stranger)),
    ("a server notices a damaged message", |tested| server(tested, Mistake::Damage)),
    ("a server notices that messages are out of order", |tested| server(tested, Mistake::Order)),
    ("a server notices that a message is lost", |tested| server(tested, Mistake::Loss)),
    ("a server blames a client that closes in the middle", |tested| server(tested, Mistake::Death)),
    ("a client sends every message in order, with the right bytes, and reports its slice", |tested| {
        client(tested, Mistake::None)
    }),
    ("a client notices a damaged answer", |tested| client(tested, Mistake::Damage)),
    ("a client notices an answer out of order", |tested| client(tested, Mistake::Order)),
    ("a client blames a server that closes in the middle", |tested| client(tested, Mistake::Death)),
    ("an endpoint ends when the coordinator is gone", death),
    ("an endpoint ends when it is sent garbage", |tested| garbage(tested, b"\x0a\0\0\0{\"hello\":??")),
    ("an endpoint ends when it is sent text", |tested| garbage(tested, b"GET / HTTP/1.1\r\n\r\n")),
    ("an endpoint ends when a message is longer than any may be", |tested| garbage(tested, &[0xff; 4096])),
    ("an endpoint ends when nothing comes for some seconds", silence),
];

/// What is checked: endpoints that a command starts, until a signal ends it.
struct Tested<'a> {
    via: &'a Via,
    interrupted: &'a AtomicBool,
}

/// Makes every check on endpoints that `via` starts, until it is `interrupted`, and hands each finding to `report` when it is made.
pub fn check(via: &Via, interrupted: &AtomicBool, mut report: impl FnMut(Checked)) {
    let tested = Tested { via, interrupted };
    for (name, finding) in CHECKS {
        let result = finding(&tested);
        if interrupted.load(Ordering::Relaxed) {
            return;
        }
        report(Checked { name, result });
    }
}

/// An endpoint that is checked.
struct Subject<'a> {
    /// Closed when the coordinator is to be gone.
    control: Option<Channel>,
    child: OwnChild,
    interrupted: &'a AtomicBool,
    /// How many things it has said.
    said: Cell<u32>,
}

impl<'a> Subject<'a> {
    fn start(tested: &Tested<'a>) -> Result<Self, String> {
        let mut command = tested.via.command(&[]);
        let (control, child) =
            over_streams(command.stderr(nowhere().map_err(text)?), tested.via).map_err(text)?;
        Ok(Self { control: Some(control), child, interrupted: tested.interrupted, said: Cell::new(0) })
    }

    /// One that has said hello.
    fn greeted(tested: &Tested<'a>) -> Result<Self, String> {
        let subject = Self::start(tested)?;
        // What has ended by now may have said why.
        let _ = subject.say(&CoordinatorMessage::Hello(Hello::own()));
        match subject.next()? {
            EndpointMessage::Hello(hello) => hello.refusal().map_or(Ok(subject), Err),
            other => Err(format!("it says {} instead of hello", shown(&other))),
        }
    }

    /// One that has orders for `role`, and shall find its peer by `token`.
    fn ordered(tested: &Tested<'a>, role: Role, token: [u8; 16]) -> Result<Self, String> {
        let subject = Self::greeted(tested)?;
        subject.say(&CoordinatorMessage::Orders(Box::new(orders("tcp", role, token))))?;
        Ok(subject)
    }

    fn say(&self, message: &CoordinatorMessage) -> Finding {
        self.control()?.send(message, &[]).map_err(text)
    }

    fn say_peer(&self, message: PeerMessage) -> Finding {
        self.say(&CoordinatorMessage::Peer(Box::new(message)))
    }

    fn control(&self) -> Result<&Channel, String> {
        self.control.as_ref().ok_or_else(|| "its channel is closed".to_owned())
    }

    fn next(&self) -> Result<EndpointMessage, String> {
        self.said.set(self.said.get() + 1);
        if self.said.get() > MOST_SAID {
            return Err(format!("it says more than {MOST_SAID} things"));
        }
        let control = self.control()?;
        // A signal ends the wait.
        match wait_any(&[control], ANSWER_WITHIN) {
            Ok(Some(_)) => Ok(control.receive().map_err(text)?.0),
            Ok(None) => Err(format!("it says nothing for {} s", ANSWER_WITHIN.as_secs())),
            Err(errno) => Err(errno.to_string()),
        }
    }

    /// What it says next, which must be for its peer.
    fn next_for_peer(&self, what: &str) -> Result<PeerMessage, String> {
        match self.next()? {
            EndpointMessage::Peer(message) => Ok(*message),
            other => Err(format!("it says {} instead of {what}", shown(&other))),
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
                other => return Err(format!("it says {} instead of done", shown(&other))),
            }
        }
        self.expect_end()
    }

    /// Whether it ends in time, with all that have its streams.
    fn expect_end(&mut self) -> Finding {
        let (timer, mut others) = (Timer::start(), None);
        while timer.elapsed() < END_WITHIN && !self.interrupted.load(Ordering::Relaxed) {
            if self.child.ended().map_err(text)?.is_some() {
                others = Some(self.child.holders());
                if others.as_ref().is_some_and(Vec::is_empty) {
                    return Ok(());
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let limit_s = END_WITHIN.as_secs();
        Err(match others.as_deref() {
            Some([other, ..]) => {
                format!("it ends, but process {} has its streams for {limit_s} s", other.as_raw_nonzero())
            }
            _ => format!("it lives on for {limit_s} s"),
        })
    }
}

impl Drop for Subject<'_> {
    fn drop(&mut self) {
        self.child.kill();
        self.child.kill_holders();
    }
}

/// As much of `message` as is shown.
fn shown(message: &impl std::fmt::Debug) -> String {
    shortened(&format!("{message:?}"))
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

fn hello(tested: &Tested<'_>) -> Finding {
    let mut subject = Subject::greeted(tested)?;
    subject.say(&CoordinatorMessage::Goodbye)?;
    subject.expect_end()
}

fn ping(tested: &Tested<'_>) -> Finding {
    let subject = Subject::greeted(tested)?;
    subject.say(&CoordinatorMessage::Ping)?;
    match subject.next()? {
        EndpointMessage::Pong => Ok(()),
        other => Err(format!("it says {} instead of pong", shown(&other))),
    }
}

fn other_version(tested: &Tested<'_>) -> Finding {
    let subject = Subject::start(tested)?;
    subject.say(&CoordinatorMessage::Hello(Hello { version: VERSION + 1, ..Hello::own() }))?;
    match subject.next()? {
        // The coordinator must learn the version of the endpoint, too.
        EndpointMessage::Hello(_) => subject.expect_done(false),
        other => Err(format!("it says {} instead of hello", shown(&other))),
    }
}

fn unknown_mechanism(tested: &Tested<'_>) -> Finding {
    let subject = Subject::greeted(tested)?;
    let orders = orders("carrier-pigeon", Role::Server, rand::random());
    subject.say(&CoordinatorMessage::Orders(Box::new(orders)))?;
    subject.expect_done(false)
}

/// A trial of a server, whose client makes `mistake`.
fn server(tested: &Tested<'_>, mistake: Mistake) -> Finding {
    let token = rand::random();
    let subject = Subject::ordered(tested, Role::Server, token)?;
    let PeerMessage::Ticket(port) = subject.next_for_peer("a ticket")? else {
        return Err("it makes no ticket".to_owned());
    };
    let mut client = RawClient::connect(&port, token, mistake)?;
    match subject.next_for_peer("its settings")? {
        PeerMessage::Settings(_) => {}
        other => return Err(format!("it says {} instead of its settings", shown(&other))),
    }
    let phase = Phase { kind: PhaseKind::Total, iterations: ITERATIONS, check: true, reads_speed: false };
    subject.say_peer(PeerMessage::Phase(phase))?;
    match subject.next_for_peer("that it is ready")? {
        PeerMessage::Ready => {}
        other => return Err(format!("it says {} instead of that it is ready", shown(&other))),
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
        other => return Err(format!("it says {} instead of its account of the phase", shown(&other))),
    }
    let end = Phase { kind: PhaseKind::End, iterations: 0, check: false, reads_speed: false };
    subject.say_peer(PeerMessage::Phase(end))?;
    subject.expect_done(true)
}

/// A trial of a client of one slice, whose server makes `mistake`.
fn client(tested: &Tested<'_>, mistake: Mistake) -> Finding {
    let token = rand::random();
    let subject = Subject::ordered(tested, Role::Client, token)?;
    let (listener, port) = RawServer::listen()?;
    subject.say_peer(PeerMessage::Ticket(port))?;
    let mut server = listener.accept(token)?;
    subject.say_peer(PeerMessage::Settings(Vec::new()))?;
    match subject.next()? {
        EndpointMessage::Connected => {}
        other => return Err(format!("it says {} instead of connected", shown(&other))),
    }
    let orders = SliceOrders { size: Sizing::Iterations(ITERATIONS), singly: Singly::Omitted };
    subject.say(&CoordinatorMessage::Slice(orders))?;
    loop {
        match subject.next()? {
            EndpointMessage::Peer(message) => {
                let PeerMessage::Phase(phase) = *message else {
                    return Err(format!("it says {} instead of a phase", shown(&message)));
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
            other => return Err(format!("it says {} in the middle of a slice", shown(&other))),
        }
    }
    subject.say(&CoordinatorMessage::Goodbye)?;
    subject.expect_done(true)
}

fn death(tested: &Tested<'_>) -> Finding {
    let mut subject = Subject::ordered(tested, Role::Server, rand::random())?;
    subject.control = None;
    subject.expect_end()
}

fn garbage(tested: &Tested<'_>, bytes: &[u8]) -> Finding {
    let mut subject = Subject::start(tested)?;
    if let Some(output) = subject.control()?.stream_output() {
        output.try_send(bytes);
    }
    subject.expect_end()
}

fn silence(tested: &Tested<'_>) -> Finding {
    let mut subject = Subject::ordered(tested, Role::Server, rand::random())?;
    subject.expect_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::frame;

    static NEVER: AtomicBool = AtomicBool::new(false);

    /// What is found of a command that is no endpoint.
    fn findings(command: &str) -> Vec<Checked> {
        let mut findings = Vec::new();
        check(&Via::parse(command).unwrap(), &NEVER, |checked| findings.push(checked));
        findings
    }

    /// What is found first of one that greets, does as the words of a shell say, and ends when it is told to.
    fn hello_of(words: &str) -> Finding {
        let greeting = frame(&EndpointMessage::Hello(Hello::own())).unwrap();
        let told = [CoordinatorMessage::Hello(Hello::own()), CoordinatorMessage::Goodbye];
        let told: usize = told.iter().map(|message| frame(message).unwrap().len()).sum();
        let octal: String = greeting.iter().map(|byte| format!("\\{byte:03o}")).collect();
        let via = Via::of(
            ["sh", "-c", &format!("printf '{octal}'; {words} head -c {told} >&2")]
                .map(str::to_owned)
                .to_vec(),
        );
        hello(&Tested { via: &via.unwrap(), interrupted: &NEVER })
    }

    #[test]
    fn what_ends_at_once_fails_every_check_that_wants_an_answer() {
        let failed = findings("true").into_iter().filter(|checked| checked.result.is_err()).count();
        // To end is right where garbage or silence comes.
        assert_eq!(failed, CHECKS.len() - 3, "{:?}", findings("true"));
    }

    #[test]
    fn what_speaks_text_is_shown() {
        let via = Via::parse("echo hello there, stranger").unwrap();
        let found = Subject::greeted(&Tested { via: &via, interrupted: &NEVER }).err().unwrap();
        assert!(found.contains("hello there, stranger"), "{found}");
    }

    /// A process in a session of its own, which the end of the command's group does not reach.
    /// Slow: it measures again and again, or waits for what is silent.
    #[test]
    fn who_leaves_its_streams_to_another_process_is_found_and_both_are_ended() {
        let own = tempfile::tempdir().unwrap();
        let pid = own.path().join("pid");
        let words = format!("setsid sleep 600 & echo $! > {};", pid.display());
        let found = hello_of(&words).unwrap_err();
        let pid: u32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        assert!(found.contains(&format!("process {pid} has its streams")), "{found}");
        let timer = Timer::start();
        let lives = || std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
        while lives() && timer.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        assert!(!lives(), "it lives on");
    }

    #[test]
    fn who_says_a_text_without_end_is_quoted_in_part() {
        assert_eq!(hello_of(""), Ok(()));
        assert!(shown(&"x".repeat(1 << 20)).len() < 1000);
    }
}
