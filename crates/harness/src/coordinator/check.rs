//! `ipcmark endpoint check`: plays the coordinator and the peer against any endpoint, and finds out whether it keeps the core of the protocol: hello,
//! orders, payload and its order, loss, refusal, deaths, garbage and silence; and then whether it works in trials as `run` makes them.

mod peer;

use super::address_layout::AddressLayout;
use super::driver::{self, Driver, DriverSet, checked, numbers};
use super::own_child::OwnChild;
use super::plain_times::PlainTimes;
use super::reexecution::nowhere;
use super::run_directory::RunDirectory;
use super::schedule::Trials;
use super::trials::EndpointTrials;
use super::via::Via;
use crate::clock::Timer;
use crate::protocol::channel::{Channel, wait_any};
use crate::protocol::frame::shortened;
use crate::protocol::hello::DriverMechanism;
use crate::protocol::led::{ALIVE, FromLed, LedOrders, LedPhase, Stretch, ToLed};
use crate::protocol::orders::{NetworkOrders, Singly, Sizing, SliceOrders};
use crate::protocol::silence::SILENCE;
use model::card::Card;
use model::record::ClockSource;
use model::{
    CODEC, Case, CaseDrivers, DriverName, EndpointRole, Endpoints, HostAddress, Pace, Params, Peers,
    Placement, Size, Spec, Workload,
};
use peer::{Mistake, RawPeer};
use rustix::fd::OwnedFd;
use std::cell::Cell;
use std::net::Ipv4Addr;
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
/// The mechanisms over which a peer can make mistakes.
const STREAMS: [&str; 3] = ["tcp", "unix-stream", "pipe"];

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// What was checked.
    pub name: String,
    /// What was wrong.
    pub result: Result<(), String>,
}

/// Whether it is as it should be, or what is wrong.
type Finding = Result<(), String>;

/// What makes a check of an endpoint.
type Find = fn(&Tested<'_>) -> Finding;

/// The checks that every endpoint passes, whatever it measures.
const CHECKS: &[(&str, Find)] = &[
    ("goodbye is answered by the end", goodbye),
    ("a mechanism that is unknown is refused", |tested| refused(tested, "carrier-pigeon", "")),
    ("a parameter that is unknown is refused", unknown_parameter),
    ("an endpoint ends when the coordinator is gone", death),
    ("an endpoint ends when it is sent garbage", |tested| garbage(tested, b"\x0a\0\0\0{\"hello\":??")),
    ("an endpoint ends when it is sent text", |tested| garbage(tested, b"GET / HTTP/1.1\r\n\r\n")),
];

/// Those of an endpoint that says to have the capability `alive`.
const OF_ALIVE: &[(&str, Find)] =
    &[("a ping is answered", ping), ("an endpoint ends when nothing comes for some seconds", silence)];

/// Those of an endpoint that has a stream, over which the peer makes mistakes.
const OF_STREAM: &[(&str, Find)] = &[
    ("a server takes nobody who does not show the token", |tested| {
        misled(tested, EndpointRole::Server, Mistake::Stranger)
    }),
    ("a server notices a damaged message", |tested| misled(tested, EndpointRole::Server, Mistake::Damage)),
    ("a server notices that messages are out of order", |tested| {
        misled(tested, EndpointRole::Server, Mistake::Order)
    }),
    ("a server notices that a message is lost", |tested| misled(tested, EndpointRole::Server, Mistake::Loss)),
    ("a server notices that its client is gone", |tested| {
        misled(tested, EndpointRole::Server, Mistake::Death)
    }),
    ("a client notices a damaged answer", |tested| misled(tested, EndpointRole::Client, Mistake::Damage)),
    ("a client notices an answer out of order", |tested| {
        misled(tested, EndpointRole::Client, Mistake::Order)
    }),
    ("a client notices that its server is gone", |tested| {
        misled(tested, EndpointRole::Client, Mistake::Death)
    }),
];

/// What is checked: endpoints that a command starts, until a signal ends it.
struct Tested<'a> {
    driver: Driver,
    /// The mechanism over which mistakes are made.
    stream: &'static str,
    interrupted: &'a AtomicBool,
}

/// Makes every check on endpoints that `command` starts, until it is `interrupted`, and hands each finding to `report` when it is made. One that
/// is silent when something is due is checked no further.
pub fn check(command: &Via, interrupted: &AtomicBool, mut report: impl FnMut(Checked)) {
    let met = Driver::meet(command, ANSWER_WITHIN, interrupted);
    let result = met.as_ref().map(drop).map_err(|invalid| invalid.problem.clone());
    report(Checked { name: "hello is answered by hello".to_owned(), result });
    let Ok(driver) = met else { return };
    let has = |name: &str| {
        driver.mechanism(name).is_some_and(|offered| offered.workloads.contains(&Workload::Latency))
    };
    let stream = STREAMS.into_iter().find(|name| has(name));
    let is_alive = driver.hello.capabilities.iter().any(|name| name == ALIVE);
    let tested = Tested { driver, stream: stream.unwrap_or_default(), interrupted };
    let of_alive = if is_alive { OF_ALIVE } else { &[] };
    let of_stream = if stream.is_some() { OF_STREAM } else { &[] };
    for (name, finding) in CHECKS.iter().chain(of_alive).chain(of_stream) {
        let result = finding(&tested);
        if interrupted.load(Ordering::Relaxed) {
            return;
        }
        let is_silent = is_silent(&result);
        report(Checked { name: (*name).to_owned(), result });
        if is_silent {
            return;
        }
    }
    for (spec, workload) in tested.driver.hello.mechanisms.iter().flat_map(trials_of) {
        let result = in_trials(&tested, &spec, workload);
        if interrupted.load(Ordering::Relaxed) {
            return;
        }
        let is_silent = is_silent(&result);
        report(Checked {
            name: format!("{spec} {workload} works in trials, as client and as server"),
            result,
        });
        if is_silent {
            return;
        }
    }
}

/// What is tried in trials of a mechanism: each workload, and each codec in one of them.
fn trials_of(offered: &DriverMechanism) -> Vec<(Spec, Workload)> {
    let plain = Spec::plain(&offered.name);
    let with_codec = |codec: &String| {
        let params =
            Params::parse(&format!("{}={codec}", CODEC.name), &Card { params: &[CODEC], ..Card::OPERATION });
        Some((Spec { params: params.ok()?, ..plain.clone() }, *offered.workloads.first()?))
    };
    let coded = offered.codecs.iter().filter_map(with_codec);
    offered.workloads.iter().map(|workload| (plain.clone(), *workload)).chain(coded).collect()
}

/// Whether the endpoint was waited for in vain: it would be again, and whoever wrote it knows what to mend.
fn is_silent(result: &Finding) -> bool {
    result.as_ref().is_err_and(|why| {
        ["says nothing for", "did not say", "lives on"].iter().any(|words| why.contains(words))
    })
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
    /// One that has said hello, with descriptors.
    fn greeted(tested: &Tested<'a>, role: EndpointRole, fds: Vec<OwnedFd>) -> Result<Self, String> {
        let (control, child) =
            driver::start(Some(&tested.driver), role, None, fds, nowhere().map_err(text)?).map_err(text)?;
        let subject =
            Self { control: Some(control), child, interrupted: tested.interrupted, said: Cell::new(0) };
        checked(subject.next()?)?;
        Ok(subject)
    }

    fn say(&self, message: &ToLed) -> Finding {
        self.control()?.send(message, &[]).map_err(text)
    }

    fn control(&self) -> Result<&Channel, String> {
        self.control.as_ref().ok_or_else(|| "its channel is closed".to_owned())
    }

    fn next(&self) -> Result<FromLed, String> {
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

    /// Whether it says next what `is_due`, which is called `what`.
    fn expect(&self, what: &str, is_due: impl Fn(&FromLed) -> bool) -> Result<FromLed, String> {
        match self.next()? {
            message if is_due(&message) => Ok(message),
            FromLed::Failed(why) => Err(format!("it says that it failed instead of {what}: {why}")),
            other => Err(format!("it says {} instead of {what}", shortened(&format!("{other:?}")))),
        }
    }

    /// Whether it says that it failed, or just ends, within the time for an answer; not that all is done.
    fn expect_failure(mut self) -> Finding {
        loop {
            match self.next() {
                Ok(FromLed::Failed(_)) => return self.expect_end(),
                Ok(FromLed::Done(_)) => return Err("it says that the phase is done".to_owned()),
                // What it had begun to say before.
                Ok(_) => {}
                Err(why) if self.child.ended().ok().flatten().is_none() && !why.contains("closed") => {
                    return Err(why);
                }
                Err(_) => return self.expect_end(),
            }
        }
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

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Orders for a trial of `mechanism`, in which nothing but the mechanism's own ways is left open.
fn orders(mechanism: &str, role: EndpointRole, descriptors: usize, token: [u8; 16]) -> LedOrders {
    let server = HostAddress::Ip(Ipv4Addr::LOCALHOST.into());
    LedOrders {
        role,
        mechanism: mechanism.to_owned(),
        parameters: Params::default(),
        workload: Workload::Latency,
        size_bytes: SIZE.0,
        descriptors: numbers(descriptors),
        directory: std::env::temp_dir(),
        number: 0,
        network: (mechanism == "tcp").then_some(NetworkOrders { server, token }),
    }
}

fn goodbye(tested: &Tested<'_>) -> Finding {
    let mut subject = Subject::greeted(tested, EndpointRole::Client, Vec::new())?;
    subject.say(&ToLed::Goodbye)?;
    subject.expect_end()
}

fn ping(tested: &Tested<'_>) -> Finding {
    let subject = Subject::greeted(tested, EndpointRole::Client, Vec::new())?;
    subject.say(&ToLed::Ping)?;
    subject.expect("pong", |message| *message == FromLed::Pong).map(drop)
}

/// Orders for `mechanism` that it cannot follow.
fn refused(tested: &Tested<'_>, mechanism: &str, parameters: &str) -> Finding {
    let parameters =
        serde_json::from_str(if parameters.is_empty() { "{}" } else { parameters }).map_err(text)?;
    let subject = Subject::greeted(tested, EndpointRole::Server, Vec::new())?;
    let orders = LedOrders { parameters, ..orders(mechanism, EndpointRole::Server, 0, rand::random()) };
    subject.say(&ToLed::Orders(Box::new(orders)))?;
    match subject.next()? {
        FromLed::Failed(_) => Ok(()),
        other => Err(format!("it says {} instead of that it failed", shortened(&format!("{other:?}")))),
    }
}

fn unknown_parameter(tested: &Tested<'_>) -> Finding {
    let Some(first) = tested.driver.hello.mechanisms.first() else {
        return Err("its hello has no mechanisms".to_owned());
    };
    refused(tested, &first.name, r#"{"wingspan":"3"}"#)
}

/// A trial over a stream with a peer that makes `mistake`, which the endpoint in `role` notices.
fn misled(tested: &Tested<'_>, role: EndpointRole, mistake: Mistake) -> Finding {
    if mistake == Mistake::Stranger && tested.stream != "tcp" {
        return Ok(());
    }
    let token = rand::random();
    let (mut peer, fds) = RawPeer::new(tested.stream).map_err(text)?;
    let orders = orders(tested.stream, role, fds.len(), token);
    let subject = Subject::greeted(tested, role, fds)?;
    subject.say(&ToLed::Orders(Box::new(orders)))?;
    if tested.stream == "tcp" {
        match role {
            EndpointRole::Server => {
                let FromLed::Ticket(port) =
                    subject.expect("its ticket", |m| matches!(m, FromLed::Ticket(_)))?
                else {
                    return Err("it has no ticket".to_owned());
                };
                peer.connect(&port, token, mistake)?;
            }
            EndpointRole::Client => {
                subject.say(&ToLed::Ticket(peer.listen()?))?;
                peer.accept(token)?;
            }
        }
    }
    subject.expect("that it is connected", |message| *message == FromLed::Connected)?;
    let stretch = Stretch { messages: ITERATIONS, timed: true, acknowledged: false };
    subject.say(&ToLed::Phase(LedPhase { check: true, each: false, stretches: vec![stretch] }))?;
    let exchanged = match role {
        EndpointRole::Server => {
            subject.expect("that it is ready", |message| *message == FromLed::Ready)?;
            peer.ask(ITERATIONS, SIZE.as_usize(), mistake)
        }
        EndpointRole::Client => peer.answer(ITERATIONS, SIZE.as_usize(), mistake),
    };
    if mistake.is_noticed() {
        // It may close at any point, and then there is nothing to send to.
        drop((exchanged, peer));
        return subject.expect_failure();
    }
    exchanged?;
    subject.expect("that the phase is done", |message| matches!(message, FromLed::Done(_)))?;
    subject.say(&ToLed::Goodbye)
}

fn death(tested: &Tested<'_>) -> Finding {
    let mut subject = Subject::greeted(tested, EndpointRole::Server, Vec::new())?;
    subject.control = None;
    subject.expect_end()
}

fn garbage(tested: &Tested<'_>, bytes: &[u8]) -> Finding {
    let mut subject = Subject::greeted(tested, EndpointRole::Server, Vec::new())?;
    if let Some(output) = subject.control()?.stream_output() {
        output.try_send(bytes);
    }
    // No more comes of what may look like the begin of a long message.
    subject.control = None;
    subject.expect_end()
}

fn silence(tested: &Tested<'_>) -> Finding {
    let mut subject = Subject::greeted(tested, EndpointRole::Server, Vec::new())?;
    subject.expect_end()
}

/// Trials of the endpoint with ipcmark's own on either side, or with itself where ipcmark has no such mechanism, as `run` makes them: of an exact
/// number of iterations and of a time, with times of single iterations where it has them.
fn in_trials(tested: &Tested<'_>, spec: &Spec, workload: Workload) -> Finding {
    let own = || Some(tested.driver.name.clone());
    let is_known = mechanisms::registry::CARDS.iter().any(|card| card.name == spec.name);
    let drivers: &[[Option<DriverName>; 2]] =
        if is_known && spec.params.is_empty() { &[[own(), None], [None, own()]] } else { &[[own(), own()]] };
    for [client, server] in drivers {
        let drivers = CaseDrivers { client: client.clone(), server: server.clone() };
        trial(tested, Spec { drivers, ..spec.clone() }, workload).map_err(|why| match (client, server) {
            (Some(_), None) => format!("as a client: {why}"),
            (None, Some(_)) => format!("as a server: {why}"),
            _ => why,
        })?;
    }
    Ok(())
}

fn trial(tested: &Tested<'_>, spec: Spec, workload: Workload) -> Finding {
    const SLICE_NS: u64 = 2_000_000;
    let directory = RunDirectory::create().map_err(text)?;
    let mut set = DriverSet::default();
    set.add(tested.driver.clone()).map_err(|invalid| invalid.problem)?;
    let trials = EndpointTrials {
        clock: ClockSource::MonotonicRaw,
        directory: &directory,
        check: true,
        interrupted: tested.interrupted,
        timeout: ANSWER_WITHIN,
        time: None,
        plain_times: PlainTimes::default(),
        program: None,
        remote: None,
        layout: AddressLayout::Random,
        drivers: Some(&set),
    };
    let case = Case {
        workload,
        size_bytes: Some(SIZE),
        placement: Placement::Unpinned,
        cpus: None,
        endpoints: Endpoints::Processes,
        pace: Pace::BackToBack,
        peers: Peers::Pair,
        inject: None,
        spec,
    };
    let mut trial = trials.start(&case, 0, None).map_err(text)?;
    for size in [Sizing::Iterations(ITERATIONS), Sizing::Slice { slice_ns: SLICE_NS, hint_ns: None }] {
        trial.slice(SliceOrders { size, singly: Singly::Last }).map_err(text)?;
    }
    trial.end().map_err(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    #[test]
    fn what_says_nothing_or_ends_at_once_is_checked_no_further() {
        for (command, why) in [("true", "closed"), ("echo hello there, stranger", "hello there, stranger")] {
            let mut findings = Vec::new();
            check(&Via::parse(command).unwrap(), &NEVER, |checked| findings.push(checked));
            assert_eq!(findings.len(), 1, "{findings:?}");
            let found = findings[0].result.clone().unwrap_err();
            assert!(found.contains(why), "{found}");
        }
    }
}
