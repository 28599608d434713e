//! What is said, and what is left, when client or server dies at a given system call of an iteration.
//!
//! `at_random.rs` kills whole processes at random moments. Here, for every mechanism, an endpoint is stopped at each
//! system call that it makes (ptrace(2)); the calls of one iteration are found by their coming again and again; and it is killed
//! at one of them, either before the call is made or when it is over and nothing has followed it. That is done for every
//! call of an iteration of `latency` (of `throughput` where a mechanism has no other) and of `connect`, to client and to server. Some calls
//! are made only where an endpoint has to wait, and some only where its peer does: once the peer is slowed down, and once
//! the endpoint that dies is.
//!
//! Not covered: mechanisms in other variants than those of [`mechanisms`]; set-up, which is met at random in `at_random.rs`; and what
//! happens between two system calls, but for the moments around each. Ends that wait awake make no system call: their
//! deaths are those of `at_random.rs`, too.

use crate::ALONE;
use crate::common::{
    GONE_WITHIN, Place, Process, Running, asked, assert_no_kernel_objects_are_left, assert_none_failed,
    endpoints_at_once, error, kernel_objects, read, send, skip, wait_until,
};
use mechanisms::registry::{CARDS, probe};
use model::card::{Card, CardKind, Support};
use model::{Params, Workload};
use rustix::process::Signal;
use std::fmt::Write as _;
use std::thread::{scope, sleep};
use std::time::Duration;
use sys::tracee::{Tracee, TraceeStop};

/// So many iterations a part that no trial is over before its endpoint is caught.
const ITERATIONS: &str = "100000";
/// When a trial hangs: long after any death must have been noticed.
const TIMEOUT: &str = "10m";
/// How long an endpoint takes to come to its iterations, on an idle machine.
const SET_UP: Duration = Duration::from_millis(15);
/// How long who is slowed down is held at each of its calls.
const PAUSE: Duration = Duration::from_micros(100);
/// How many iterations in a row, and how many calls at least, must be alike before they are taken for iterations: more than those at
/// the start of a part, in which the endpoints also note what they use.
const ALIKE_ITERATIONS: usize = 12;
const ALIKE_CALLS: usize = 36;
/// No iteration has more calls; what has not repeated itself by so many is not waited for any longer.
const LONGEST_ITERATION: usize = 20;
const MOST_CALLS: usize = 2000;

/// The variants of mechanisms that wait by other calls than the mechanisms themselves.
const VARIANTS: &[&str] = &[
    "shm-ring:wait=eventfd",
    "shm-ring:wait=sysv-sem",
    "shm-ring:wait=posix-sem",
    "shm-ring:wait=mutex",
    "shm-queue:lock=mutex",
    "shm-queue:lock=sysv-sem",
    "unix-stream:wait=epoll",
];

/// A mechanism that works here, and a workload of it.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    spec: String,
    workload: Workload,
}

/// Every mechanism that has two endpoints and calls the kernel in its iterations, and [`VARIANTS`].
fn mechanisms() -> Vec<Row> {
    let chosen = |card: &&Card| card.kind == CardKind::Mechanism && card.name != "null";
    let mut mechanisms: Vec<Row> =
        CARDS.iter().filter(chosen).flat_map(|card| rows_of(card, card.name)).collect();
    for spec in VARIANTS {
        let name = spec.split(':').next().unwrap();
        mechanisms.extend(CARDS.iter().filter(|card| card.name == name).flat_map(|card| rows_of(card, spec)));
    }
    mechanisms
}

fn rows_of(card: &Card, spec: &str) -> Vec<Row> {
    let params = spec.split_once(':').map_or("", |(_, params)| params);
    let params = if params.is_empty() { Params::default() } else { Params::parse(params, card).unwrap() };
    if let Some(Support::No { reason, remedy }) = probe(card.name, &params) {
        skip(&format!("{spec}: {reason}; {remedy}"), "no endpoint of it is killed");
        return Vec::new();
    }
    let iterations = [Workload::Latency, Workload::Throughput].into_iter().find(|of| card.takes(*of));
    // Others over TCP connect as `tcp` does.
    let connects = Some(Workload::Connect).filter(|of| card.takes(*of) && !card.name.starts_with("tcp-"));
    iterations.into_iter().chain(connects).map(|workload| Row { spec: spec.to_owned(), workload }).collect()
}

/// Which of the two endpoints dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Client,
    Server,
}

/// Who is held at each call, so that the other one has to wait, or never has to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slow {
    Peer,
    Itself,
}

/// An endpoint that was killed.
#[derive(Debug)]
struct Killed {
    /// The calls of one of its iterations.
    iteration: Vec<u64>,
    /// Whether these were found to come again and again.
    is_sure: bool,
}

/// Where an endpoint is killed: at the entry to call n of its iteration, which is stop 2n, or at the end of it, stop 2n + 1.
type At = usize;

/// How many stops there are in `iteration`.
fn stops(iteration: &[u64]) -> usize {
    2 * iteration.len()
}

/// A call as it is told from others: its number and its first argument, which is a descriptor where there is one.
type Call = (u64, u64);

/// How many calls one iteration has, if the last of `calls` are iterations.
fn calls_of_an_iteration(calls: &[Call]) -> Option<usize> {
    (1..=LONGEST_ITERATION).find(|&length| {
        let surely = ALIKE_CALLS.max(ALIKE_ITERATIONS * length);
        let last = calls.len().checked_sub(surely).map(|from| &calls[from..]);
        last.is_some_and(|last| last[length..].iter().zip(last).all(|(call, before)| call == before))
    })
}

/// The first of all ways to begin with another call of `iteration`, so that call n is the same in every trial.
fn first_call(iteration: &[Call]) -> usize {
    let numbers = |from: usize| iteration[from..].iter().chain(&iteration[..from]).map(|(number, _)| *number);
    (0..iteration.len()).min_by(|&a, &b| numbers(a).cmp(numbers(b))).unwrap_or(0)
}

/// Has `tracee` stop at the next call that it makes or is in.
fn stop(process: &Process) -> Option<Tracee> {
    let tracee = Tracee::seize(process.pid.cast_unsigned()).ok()?;
    // A signal that is ignored stops who is traced all the same, and has no other effect.
    send(process.pid, Signal::URG);
    Some(tracee)
}

/// Lets `tracee`, which has stopped, go on to its next stop.
fn go_on(tracee: &Tracee, stopped: TraceeStop) {
    let urgent = Signal::URG.as_raw();
    let signal =
        if let TraceeStop::Signal(signal) = stopped { Some(signal).filter(|s| *s != urgent) } else { None };
    // Who is killed meanwhile says so at the next stop.
    let _ = tracee.resume_to_exit(signal);
}

/// Follows `process` to its end and holds it for a while at each of its calls.
fn slow_down(process: &Process) {
    let Some(tracee) = stop(process) else { return };
    while let Ok(stopped) = tracee.next() {
        match stopped {
            TraceeStop::Ended => return,
            TraceeStop::Entry { .. } | TraceeStop::Exit { .. } => sleep(PAUSE),
            TraceeStop::Signal(_) | TraceeStop::Other => {}
        }
        go_on(&tracee, stopped);
    }
}

/// Kills `process` at stop `at` of an iteration of its; `None` when it ended by itself.
fn kill_at(process: &Process, slow: Slow, at: At) -> Option<Killed> {
    let tracee = stop(process)?;
    let mut calls: Vec<Call> = Vec::new();
    // The calls of an iteration, by number, and the step at which it is now.
    let mut iteration: Option<(Vec<u64>, bool)> = None;
    let mut step = 0;
    loop {
        let Ok(stopped) = tracee.next() else {
            // It was killed by its parent while it was asked where it stopped. Its parent learns of that when its tracer has.
            while tracee.next().is_ok_and(|stopped| stopped != TraceeStop::Ended) {}
            return None;
        };
        let is_entry = match stopped {
            TraceeStop::Ended => return None,
            TraceeStop::Entry { number, arguments } => {
                calls.push((number, arguments[0]));
                step += 1;
                if iteration.is_none() {
                    let found = calls_of_an_iteration(&calls);
                    if found.is_some() || calls.len() >= MOST_CALLS {
                        let last = &calls[calls.len() - found.unwrap_or(LONGEST_ITERATION)..];
                        let first = first_call(last);
                        let numbers = last[first..].iter().chain(&last[..first]).map(|(number, _)| *number);
                        step = last.len() - 1 - first;
                        iteration = Some((numbers.collect(), found.is_some()));
                    }
                }
                Some(true)
            }
            TraceeStop::Exit { .. } => Some(false),
            TraceeStop::Signal(_) | TraceeStop::Other => None,
        };
        if let (Some((numbers, is_sure)), Some(is_entry)) = (&iteration, is_entry) {
            let here = 2 * (step % numbers.len()) + usize::from(!is_entry);
            if here == at % stops(numbers) {
                send(process.pid, Signal::KILL);
                // Its parent learns of the end of one that is traced when its tracer has.
                while tracee.next().is_ok_and(|stopped| stopped != TraceeStop::Ended) {}
                return Some(Killed { iteration: numbers.clone(), is_sure: *is_sure });
            }
        }
        if slow == Slow::Itself && is_entry == Some(false) {
            sleep(PAUSE);
        }
        go_on(&tracee, stopped);
    }
}

/// Runs `mechanisms`, kills endpoint `which` of each at stop `at`, and says what was found to be an iteration of it. Fails unless every
/// mechanism has failed by that, soon, with an error that says so, and nothing is left.
fn deaths(mechanisms: &[Row], which: Which, slow: Slow, at: At) -> Vec<Killed> {
    let place = Place::new();
    let mut command = place.ipcmark(["run", "-s", "1", "-p", "unpinned", "--rounds", "1", "-o"]);
    command.arg(place.path("results.jsonl"));
    command.args(["--iterations", ITERATIONS, "--timeout", TIMEOUT, "--time", "10m"]);
    command.args(["-w", &mechanisms[0].workload.to_string()]);
    for mechanism in mechanisms {
        command.args([&mechanism.spec]);
    }
    // Cargo's has so many directories that the loader's search of them looks like iterations.
    command.env_remove("LD_LIBRARY_PATH");
    let mut running = Running::start(&mut command);
    let (mut all, mut met): (Vec<Killed>, Vec<Process>) = (Vec::new(), Vec::new());
    while running.lives() {
        sleep(Duration::from_millis(1));
        let found = endpoints_at_once(running.pid());
        let [client, server] = &found[..] else { continue };
        if found.iter().any(|process| met.contains(process)) {
            continue;
        }
        met.clone_from(&found);
        // Being loaded and set up is many calls: it is over sooner without a tracer.
        sleep(SET_UP);
        let (victim, peer) = if which == Which::Client { (client, server) } else { (server, client) };
        let killed = scope(|threads| {
            if slow == Slow::Peer {
                threads.spawn(|| slow_down(peer));
            }
            kill_at(victim, slow, at)
        });
        let Some(killed) = killed else { continue };
        let gone = || endpoints_at_once(running.pid()).iter().all(|process| !found.contains(process));
        assert!(
            wait_until(GONE_WITHIN, gone),
            "{which:?} died at stop {at}; its peer hangs: {:?}",
            mechanisms.get(all.len())
        );
        all.push(killed);
    }
    let said = running.finish();
    place.assert_nothing_is_left("after the death of endpoints");
    let results = read(&place.path("results.jsonl"));
    let mut wrong = String::new();
    for record in asked(&results) {
        let error = error(record).unwrap_or("it did not fail");
        if !(error.contains("an endpoint died") && error.contains("SIGKILL")) {
            let _ = writeln!(wrong, "{}: {which:?} was killed at stop {at}: {error}", record.case);
        }
    }
    assert!(wrong.is_empty(), "{wrong}{said}");
    assert_eq!((all.len(), asked(&results).count()), (mechanisms.len(), mechanisms.len()), "{all:?}{said}");
    let mut floors = results;
    floors.records.retain(|record| record.floor);
    assert_none_failed(&floors);
    said.expect(1);
    all
}

/// Whether this process may trace another, its child.
fn may_trace() -> bool {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let seized = Tracee::seize(child.id());
    child.kill().unwrap();
    if let Ok(tracee) = &seized {
        while tracee.next().is_ok_and(|stopped| stopped != TraceeStop::Ended) {}
    }
    // The tracer has taken its end by now, if there is one.
    let _ = child.wait();
    seized.map_err(|failure| skip(&failure.to_string(), "no endpoint is killed at a given call")).is_ok()
}

/// Kills endpoint `which` of `mechanisms`, which have one workload, at every stop of an iteration: one run for each stop, of the mechanisms
/// whose iterations have that many. Mechanisms of which the iterations are those that are `known`, by now, are left out after the first.
/// Says what was found to be an iteration of each.
fn kill_at_every_stop(mechanisms: &[Row], which: Which, slow: Slow, known: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let mut iterations: Vec<Vec<u64>> = Vec::new();
    let (mut left, mut kills) = (mechanisms.to_vec(), 0);
    for at in 0.. {
        let killed = deaths(&left, which, slow, at);
        kills += killed.len();
        for (mechanism, _) in left.iter().zip(&killed).filter(|(_, killed)| !killed.is_sure) {
            eprintln!("{which:?} of {mechanism:?} was killed at any call: no iterations were found");
        }
        if at == 0 {
            iterations = killed.iter().map(|killed| killed.iteration.clone()).collect();
        }
        // An iteration that sends and receives by one call may be half of one: the other half is another one's wait.
        let is_known = |nth: usize| known.get(nth) == iterations.get(nth) && iterations[nth].len() > 1;
        let has_more = |nth: usize| stops(&iterations[nth]) > at + 1 && !is_known(nth);
        left = mechanisms
            .iter()
            .enumerate()
            .filter(|(nth, _)| has_more(*nth))
            .map(|(_, mechanism)| mechanism.clone())
            .collect();
        if left.is_empty() {
            break;
        }
    }
    let lengths = mechanisms
        .iter()
        .zip(&iterations)
        .map(|(mechanism, iteration)| format!("{} {}", mechanism.spec, iteration.len()));
    eprintln!(
        "{which:?} was killed {kills} times in {}, {slow:?} slowed down; calls of an iteration: {}",
        mechanisms[0].workload,
        lengths.collect::<Vec<_>>().join(", ")
    );
    iterations
}

/// Every call of an iteration, whoever has to wait for whom.
fn kill_at_every_call(mechanisms: &[Row], which: Which) {
    for workload in [Workload::Latency, Workload::Throughput, Workload::Connect] {
        let mechanisms: Vec<Row> =
            mechanisms.iter().filter(|mechanism| mechanism.workload == workload).cloned().collect();
        if !mechanisms.is_empty() {
            let known = kill_at_every_stop(&mechanisms, which, Slow::Peer, &[]);
            kill_at_every_stop(&mechanisms, which, Slow::Itself, &known);
        }
    }
}

/// Slow: it kills a client and a server of every mechanism at each call of an iteration.
#[test]
fn a_death_at_any_call_of_an_iteration_ends_the_trial_and_leaves_nothing() {
    let _alone = ALONE.lock();
    if !may_trace() {
        return;
    }
    let (mechanisms, before) = (mechanisms(), kernel_objects());
    scope(|threads| {
        threads.spawn(|| kill_at_every_call(&mechanisms, Which::Client));
        threads.spawn(|| kill_at_every_call(&mechanisms, Which::Server));
    });
    assert_no_kernel_objects_are_left(&before);
}
