//! `ipcmark endpoint check`: plays the coordinator and the peer against any endpoint, and finds out whether it keeps the core of the protocol: hello,
//! orders, payload and its order, loss, refusal, deaths, garbage and silence; and then whether it works in trials as `run` makes them.

mod peer;
mod play;
mod subject;
mod tested;
mod window;

use super::address_layout::AddressLayout;
use super::driver::{Driver, DriverSet, descriptors};
use super::plain_times::PlainTimes;
use super::run_directory::RunDirectory;
use super::schedule::Trials;
use super::trials::EndpointTrials;
use super::via::Via;
use crate::protocol::hello::DriverMechanism;
use crate::protocol::led::{ALIVE, FromLed, LedOrders, ToLed};
use crate::protocol::orders::{Singly, Sizing, SliceOrders};
use model::card::Card;
use model::record::ClockSource;
use model::{
    CODEC, Case, CaseDrivers, DriverName, EndpointRole, Endpoints, Pace, Params, Peers, Placement, Size,
    Spec, Workload,
};
use peer::Mistake;
use play::{Play, orders};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use subject::{Heard, Subject};
use tested::{ANSWER_WITHIN, Finding, LARGE, SIZE, Tested, text};

/// So many messages are in a phase of a trial.
const ITERATIONS: u64 = 20;
/// The sizes at which messages are cut: within their number, and at its end.
const SIZES: [Size; 3] = [Size(1), Size(3), Size(8)];
/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// What was checked.
    pub name: String,
    /// What was wrong.
    pub result: Result<(), String>,
}

/// A check of an endpoint: what it is called, and what makes it.
type Check<'a> = (String, Box<dyn Fn(&Tested<'_>) -> Finding + 'a>);

/// What makes a check that every endpoint passes, whatever it measures.
type Find = fn(&Tested<'_>) -> Finding;

/// The checks that every endpoint passes, whatever it measures.
const CHECKS: &[(&str, Find)] = &[
    ("goodbye is answered by the end", goodbye),
    ("a mechanism that is unknown is refused", |tested| {
        refused(tested, |orders| "carrier-pigeon".clone_into(&mut orders.mechanism))
    }),
    ("a parameter that is unknown is refused", unknown_parameter),
    ("an endpoint ends when the coordinator is gone", death),
    ("an endpoint ends when it is sent garbage", |tested| garbage(tested, b"\x0a\0\0\0{\"hello\":??")),
    ("an endpoint ends when it is sent text", |tested| garbage(tested, b"GET / HTTP/1.1\r\n\r\n")),
];

/// Those of an endpoint that says to have the capability `alive`.
const OF_ALIVE: &[(&str, Find)] =
    &[("a ping is answered", ping), ("an endpoint ends when nothing comes for some seconds", silence)];

/// What an endpoint that has a stream notices of its peer.
const MISTAKES: &[(&str, EndpointRole, Mistake)] = &[
    ("a server notices a damaged message", EndpointRole::Server, Mistake::Damage),
    (
        "a server notices a damaged number where nothing else is checked",
        EndpointRole::Server,
        Mistake::Number,
    ),
    ("a server notices that messages are out of order", EndpointRole::Server, Mistake::Order),
    ("a server notices that a message is lost", EndpointRole::Server, Mistake::Loss),
    ("a server notices that its client is gone", EndpointRole::Server, Mistake::Death),
    ("a client notices a damaged answer", EndpointRole::Client, Mistake::Damage),
    (
        "a client notices a damaged number where nothing else is checked",
        EndpointRole::Client,
        Mistake::Number,
    ),
    ("a client notices an answer out of order", EndpointRole::Client, Mistake::Order),
    ("a client notices that its server is gone", EndpointRole::Client, Mistake::Death),
    ("a client waits for acknowledgements, and reads them", EndpointRole::Client, Mistake::Acknowledgement),
];

/// Makes every check on endpoints that `command` starts, until it is `interrupted`, and hands each finding to `report` when it is made. One that
/// is silent when something is due is checked no further, nor is one whose trials fail where nothing is wrong. Returns whether all were made.
pub fn check(command: &Via, interrupted: &AtomicBool, mut report: impl FnMut(Checked)) -> bool {
    let met = Driver::meet(command, ANSWER_WITHIN, interrupted);
    let result = met.as_ref().map(drop).map_err(|invalid| invalid.problem.clone());
    report(Checked { name: "hello is answered by hello".to_owned(), result });
    let Ok(driver) = met else { return false };
    let directory = match RunDirectory::create() {
        Ok(directory) => directory,
        Err(failure) => {
            let name = "a directory for its trials can be made".to_owned();
            report(Checked { name, result: Err(failure.to_string()) });
            return false;
        }
    };
    let tested = Tested { driver, directory, numbers: Cell::new(0), interrupted };
    let [simple, ordinary, others] = checks(&tested);
    let mut all = |checks: Vec<Check<'_>>, may_fail: bool| {
        let mut has_failed = false;
        for (name, find) in checks {
            let result = find(&tested);
            if interrupted.load(Ordering::Relaxed) {
                return false;
            }
            let is_silent = is_silent(&result);
            has_failed |= result.is_err();
            report(Checked { name, result });
            if is_silent {
                return false;
            }
        }
        may_fail || !has_failed
    };
    all(simple, true) && all(ordinary, false) && all(others, true)
}

/// All checks of an endpoint: the simplest; trials in which nothing is wrong; and others, which would find again what those find, in another guise.
fn checks<'a>(tested: &'a Tested<'_>) -> [Vec<Check<'a>>; 3] {
    let is_alive = tested.driver.hello.capabilities.iter().any(|name| name == ALIVE);
    let of_alive = if is_alive { OF_ALIVE } else { &[] };
    let named = |(name, find): &(&str, Find)| -> Check<'a> { ((*name).to_owned(), Box::new(*find)) };
    let played =
        |(name, play): (String, Play)| -> Check<'a> { (name, Box::new(move |tested| play.check(tested))) };
    let tried = |(spec, workload, size): (Spec, Workload, Size)| -> Check<'a> {
        let of_size = if size == SIZE { String::new() } else { format!(" with messages of {size}") };
        let name = format!("{spec} {workload}{of_size} works in trials, as client and as server");
        (name, Box::new(move |tested| in_trials(tested, &spec, workload, size)))
    };
    let mut simple: Vec<Check<'a>> = CHECKS.iter().chain(of_alive).map(named).collect();
    if tested.streams().next().is_none() {
        simple.push(("goodbye ends a trial".to_owned(), Box::new(play::ends_with_itself)));
    }
    let ordinary = tested.streams().flat_map(|stream| of_stream(tested, stream)).map(played);
    let trials = tested.driver.hello.mechanisms.iter().flat_map(trials_of).map(tried);
    [simple, ordinary.collect(), of_mistakes(tested).into_iter().map(played).chain(trials).collect()]
}

/// Trials over `stream` in which nothing is wrong: in each workload, and with messages of all lengths.
fn of_stream(tested: &Tested<'_>, stream: &'static str) -> Vec<(String, Play)> {
    let mut all = Vec::new();
    let mut add = |role: EndpointRole, workload: Workload, size: Option<Size>| {
        let play = Play::new(stream, role, workload);
        let play = Play {
            size_bytes: size.map_or(play.size_bytes, |size| size.0),
            is_timed: size.is_none(),
            ..play
        };
        let does = if role == EndpointRole::Client { "a client asks" } else { "a server answers" };
        let of_size = size.map(|size| format!(" with messages of {size}")).unwrap_or_default();
        all.push((format!("{does} in phases of {stream} {workload}{of_size}"), play));
    };
    let workloads = tested.workloads_of(stream);
    for &workload in workloads {
        EndpointRole::ALL.into_iter().for_each(|role| add(role, workload, None));
    }
    let is_first = tested.streams().next() == Some(stream);
    let sizes = SIZES.into_iter().filter(|_| is_first).chain([LARGE]);
    for size in sizes.filter(|_| workloads.contains(&Workload::Latency)) {
        EndpointRole::ALL.into_iter().for_each(|role| add(role, Workload::Latency, Some(size)));
    }
    all
}

/// Trials over the first stream in which the peer makes a mistake.
fn of_mistakes(tested: &Tested<'_>) -> Vec<(String, Play)> {
    let with = |workload| tested.streams().find(|stream| tested.workloads_of(stream).contains(&workload));
    let mut all = Vec::new();
    for (name, role, mistake) in MISTAKES {
        let workload = match mistake {
            Mistake::Acknowledgement => Workload::Throughput,
            _ => Workload::Latency,
        };
        if let Some(stream) = with(workload) {
            let play = Play {
                size_bytes: SIZE.0,
                mistake: Some(*mistake),
                is_timed: false,
                ..Play::new(stream, *role, workload)
            };
            all.push(((*name).to_owned(), play));
        }
    }
    if with(Workload::Latency) == Some("tcp") {
        let play = Play {
            strangers: true,
            is_timed: false,
            ..Play::new("tcp", EndpointRole::Server, Workload::Latency)
        };
        all.push(("a server takes nobody who does not show the token".to_owned(), play));
    }
    all
}

/// What is tried in trials of a mechanism: each workload, each codec in one of them, and large messages where they are not tried by hand.
fn trials_of(offered: &DriverMechanism) -> Vec<(Spec, Workload, Size)> {
    let plain = Spec::plain(&offered.name);
    let with_codec = |codec: &String| {
        let params =
            Params::parse(&format!("{}={codec}", CODEC.name), &Card { params: &[CODEC], ..Card::OPERATION });
        Some((Spec { params: params.ok()?, ..plain.clone() }, *offered.workloads.first()?, SIZE))
    };
    let coded = offered.codecs.iter().filter_map(with_codec);
    let is_own = !is_known(&offered.name);
    let large = offered.workloads.first().filter(|_| is_own).map(|first| (plain.clone(), *first, LARGE));
    let all = offered.workloads.iter().map(|workload| (plain.clone(), *workload, SIZE));
    all.chain(coded).chain(large).collect()
}

/// Whether ipcmark itself has a mechanism.
fn is_known(name: &str) -> bool {
    mechanisms::registry::CARDS.iter().any(|card| card.name == name)
}

/// Whether the endpoint was waited for in vain: it would be again, and whoever wrote it knows what to mend.
fn is_silent(result: &Finding) -> bool {
    result.as_ref().is_err_and(|why| {
        [
            "says nothing for",
            "does not say",
            "did not say",
            "nothing more for",
            "lives on",
            "does not connect",
        ]
        .iter()
        .any(|words| why.contains(words))
    })
}

fn goodbye(tested: &Tested<'_>) -> Finding {
    let mut subject = Subject::greeted(tested, EndpointRole::Client, Vec::new())?;
    subject.say(&ToLed::Goodbye)?;
    subject.expect_end("goodbye")
}

fn ping(tested: &Tested<'_>) -> Finding {
    let subject = Subject::greeted(tested, EndpointRole::Client, Vec::new())?;
    subject.say(&ToLed::Ping)?;
    subject.expect("pong", |message| *message == FromLed::Pong).map(drop)
}

/// Orders that it could follow, but for what was `changed` in them.
fn refused(tested: &Tested<'_>, change: impl Fn(&mut LedOrders)) -> Finding {
    let name = tested.first().ok_or("its hello has no mechanisms")?;
    // Its peer's descriptors stay open until it has answered.
    let [_client, fds] = descriptors(name).map_err(text)?.unwrap_or_default();
    let mut orders = orders(tested, name, EndpointRole::Server, fds.len(), rand::random());
    change(&mut orders);
    let mut subject = Subject::greeted(tested, EndpointRole::Server, fds)?;
    subject.say(&ToLed::Orders(Box::new(orders)))?;
    match subject.hear(ANSWER_WITHIN)? {
        Heard::Said(FromLed::Failed(_)) => subject.expect_end("it said that it failed"),
        Heard::Said(other) => Err(format!("it says {}, and should say that it failed", other.as_said())),
        Heard::Gone(how) => Err(format!("{how} without saying that it failed, and why")),
        Heard::Silent => {
            Err(format!("it does not say that it failed within {} s of its orders", ANSWER_WITHIN.as_secs()))
        }
    }
}

fn unknown_parameter(tested: &Tested<'_>) -> Finding {
    let parameters: Params = serde_json::from_str(r#"{"wingspan":"3"}"#).map_err(text)?;
    refused(tested, |orders| orders.parameters = parameters.clone())
}

fn death(tested: &Tested<'_>) -> Finding {
    let mut subject = Subject::greeted(tested, EndpointRole::Server, Vec::new())?;
    subject.leave();
    subject.expect_end("its standard input ended")
}

fn garbage(tested: &Tested<'_>, bytes: &[u8]) -> Finding {
    let mut subject = Subject::greeted(tested, EndpointRole::Server, Vec::new())?;
    subject.send_garbage(bytes)?;
    subject.expect_end("it was sent what is no message, and its standard input ended")
}

fn silence(tested: &Tested<'_>) -> Finding {
    let mut subject = Subject::greeted(tested, EndpointRole::Server, Vec::new())?;
    subject.expect_end("the last message")
}

/// Trials of the endpoint with ipcmark's own on either side, or with itself where ipcmark has no such mechanism, as `run` makes them: of an exact
/// number of iterations and of a time, with times of single iterations where it has them.
fn in_trials(tested: &Tested<'_>, spec: &Spec, workload: Workload, size: Size) -> Finding {
    let own = || Some(tested.driver.name.clone());
    let drivers: &[[Option<DriverName>; 2]] = if is_known(&spec.name) && spec.params.is_empty() {
        &[[own(), None], [None, own()]]
    } else {
        &[[own(), own()]]
    };
    for [client, server] in drivers {
        let drivers = CaseDrivers { client: client.clone(), server: server.clone() };
        trial(tested, Spec { drivers, ..spec.clone() }, workload, size).map_err(|why| {
            match (client, server) {
                (Some(_), None) => format!("as a client: {why}"),
                (None, Some(_)) => format!("as a server: {why}"),
                _ => why,
            }
        })?;
    }
    Ok(())
}

fn trial(tested: &Tested<'_>, spec: Spec, workload: Workload, size: Size) -> Finding {
    const SLICE_NS: u64 = 2_000_000;
    // Of large messages a few are enough: whether they come whole does not change.
    let is_large = size == LARGE;
    let sizings: &[Sizing] = match is_large {
        true => &[Sizing::Iterations(2)],
        false => &[Sizing::Iterations(ITERATIONS), Sizing::Slice { slice_ns: SLICE_NS, hint_ns: None }],
    };
    let mut set = DriverSet::default();
    set.add(tested.driver.clone()).map_err(|invalid| invalid.problem)?;
    let trials = EndpointTrials {
        clock: ClockSource::MonotonicRaw,
        directory: &tested.directory,
        check: !is_large,
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
        size_bytes: Some(size),
        placement: Placement::Unpinned,
        cpus: None,
        endpoints: Endpoints::Processes,
        pace: Pace::BackToBack,
        peers: Peers::Pair,
        inject: None,
        spec,
    };
    let mut trial = match trials.start(&case, tested.next_number(), None).map_err(text) {
        // A mechanism of its own may have no messages of that size.
        Err(why) if is_large && !is_silent(&Err(why.clone())) => return Ok(()),
        started => started?,
    };
    for &size in sizings {
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
