//! What is left, and what is said, when processes of a run die or stall at random moments.
//!
//! It kills the coordinator, client, server and the janitor, interrupts runs by signals, and stops endpoints.
//! Speed is no part of it: the only deadlines are those beyond which something hangs or was left behind.

use crate::ALONE;
use crate::common::{
    self, Place, Process, Running, Said, asked, assert_no_kernel_objects_are_left, assert_none_failed,
    endpoints, error, janitor, kernel_objects, read, run, send, wait_until,
};
use mechanisms::registry;
use model::{Case, Line, Outcome, Record, Sample};
use rand::Rng;
use rand::seq::IndexedRandom;
use rustix::process::Signal;
use std::collections::HashMap;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

/// How many coordinators are killed, and how many endpoints of each role.
const COORDINATORS: u32 = 150;
const ENDPOINTS: u32 = 60;
/// Runs that are killed at one time: more than the cores, so that kills meet every order of events.
const AT_ONCE: u32 = 3;
/// Within what time a run ends of which the only long trials were ended.
const SOON: Duration = Duration::from_secs(2);
/// Of the endpoints that are killed, how many may have reported just before.
const MOST_TOO_LATE: u32 = ENDPOINTS / 2;

/// The mechanisms that faults are tried on: one of each kind of name, descriptor and way of waiting.
fn mechanisms() -> Vec<&'static str> {
    let all = [
        "pipe",
        "fifo",
        "unix-stream",
        "tcp",
        "udp",
        "sysv-msg",
        "posix-mq",
        "sysv-sem",
        "shm-ring",
        "shm-ring:memory=posix",
        "shm-ring:memory=sysv,wait=sysv-sem",
        "shm-ring:memory=file",
        "shm-queue",
        SPINNING,
    ];
    all.into_iter()
        .filter(|mechanism| registry::card(mechanism.split(':').next().unwrap_or(mechanism)).is_some())
        .collect()
}

/// Endpoints that spin get on by microseconds on two idle CPUs, and by ticks of the scheduler on busy ones.
const SPINNING: &str = "shm-ring:wait=spin";

/// The mechanisms of which a trial takes about as long on any machine.
fn sleeping_mechanisms() -> Vec<&'static str> {
    mechanisms().into_iter().filter(|mechanism| *mechanism != SPINNING).collect()
}

/// `ipcmark run` over `mechanisms`, in many short trials, that ends by itself within a second or so.
fn short_run(place: &Place, mechanisms: &[&str]) -> Command {
    let mut command = run_of(place, mechanisms);
    // Samples are appended from the first round on, and records after the last.
    command.args(["--iterations", "40", "--precision", "100%", "--rounds", "12"]);
    command
}

/// `ipcmark run` over `mechanisms`, that keeps its results.
fn run_of(place: &Place, mechanisms: &[&str]) -> Command {
    let mut command = place.ipcmark(["run", "-s", "64", "-p", "unpinned", "-o"]);
    command.arg(place.path("results.jsonl"));
    for mechanism in mechanisms {
        command.arg(mechanism);
    }
    command
}

/// Two of `mechanisms`, so that rounds are short and samples come early.
fn two_of(mechanisms: &[&'static str]) -> Vec<&'static str> {
    mechanisms.choose_multiple(&mut rand::rng(), 2).copied().collect()
}

/// `ipcmark run` over `mechanism`, in trials that take many times as long as a floor's, and then over an
/// operation that needs no peer.
fn long_run(place: &Place, mechanism: &str) -> Command {
    let iterations = if mechanism == SPINNING { "300000" } else { "5000" };
    let mut command = run_of(place, &[mechanism, "tsc"]);
    command.args(["--iterations", iterations, "--rounds", "1"]);
    // On a loaded machine so many iterations may need long: only a death is to end a trial.
    command.args(["--timeout", "10m"]);
    command
}

/// `ipcmark run` over `mechanism` in trials of many seconds, which begin after a few hundred milliseconds of floors.
fn endless_run(place: &Place, mechanism: &str) -> Command {
    let mut command = run_of(place, &[mechanism]);
    command.args(["--iterations", "500000", "--timeout", "10m"]);
    command
}

fn random_ms(most: u64) -> Duration {
    Duration::from_micros(rand::rng().random_range(0..=most * 1000))
}

/// Calls `attempt` in some threads at once until it has said yes `times` times.
fn repeat(times: u32, attempt: impl Fn() -> bool + Sync) {
    let done = AtomicU32::new(0);
    scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(|| {
                while done.load(Ordering::Relaxed) < times {
                    if attempt() {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}

/// `command`, under way for some time.
fn started(mut command: Command, since: Duration) -> Running {
    let running = Running::start(&mut command);
    sleep(since);
    running
}

/// The lines of the results file that were completed. There may be no file.
fn completed(place: &Place) -> Vec<Line> {
    let text = fs::read_to_string(place.path("results.jsonl")).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// How many of `lines` are samples.
fn samples_of(lines: &[Line]) -> usize {
    lines.iter().filter(|line| matches!(line, Line::Sample(_))).count()
}

/// Fails unless every line of the results file that was completed is in what is read of it. There may be no file.
fn assert_completed_lines_are_kept(place: &Place) {
    let lines = completed(place);
    let Some(Line::Header(header)) = lines.first() else {
        assert!(lines.is_empty(), "{:?} is no header", lines[0]);
        return;
    };
    let results = read(&place.path("results.jsonl"));
    assert_eq!(results.header, **header);
    let mut kept: HashMap<&Case, Vec<&Sample>> = HashMap::new();
    for line in &lines {
        match line {
            Line::Sample(line) => {
                kept.entry(&header.plan.cases[line.case as usize]).or_default().push(&line.sample);
            }
            Line::Record(record) => {
                let same = |read: &&Record| read.case == record.case && read.outcome == record.outcome;
                assert!(results.records.iter().any(|read| same(&read)), "{} lost its record", record.case);
            }
            _ => {}
        }
    }
    let count = |of: &Record| of.samples.len();
    for (case, samples) in &kept {
        let read = results.records.iter().find(|record| record.case == **case);
        let read: Vec<&Sample> = read.iter().flat_map(|record| &record.samples).collect();
        assert_eq!(&read[..samples.len()], &samples[..], "{case} lost samples");
    }
    // A line that lacks nothing but its newline is whole all the same.
    let (whole, read) = (samples_of(&lines), results.records.iter().map(count).sum::<usize>());
    assert!(read == whole || read == whole + 1, "{read} samples were read of {whole} lines");
    assert!(results.notes.len() <= 1, "{:?}", results.notes);
}

/// Slow: it kills many runs, at moments that are sought.
#[test]
fn a_killed_coordinator_leaves_nothing_behind_and_keeps_what_was_finished() {
    let _alone = ALONE.lock();
    let objects_before = kernel_objects();
    let [with_header, with_samples, with_records] = [const { AtomicU32::new(0) }; 3];
    repeat(COORDINATORS, || {
        let place = Place::new();
        let running = match rand::rng().random_range(0..3) {
            // Before, while and after trials of some milliseconds.
            0 => started(short_run(&place, &two_of(&mechanisms())), random_ms(400)),
            // In the midst of one that would go on for long if its endpoints were not killed too.
            1 => started(
                endless_run(&place, two_of(&mechanisms())[0]),
                Duration::from_millis(300) + random_ms(600),
            ),
            _ => {
                let mut running = Running::start(&mut short_run(&place, &two_of(&sleeping_mechanisms())));
                wait_until(common::TIMEOUT, || lines(&place) > 1 || !running.lives());
                sleep(random_ms(30));
                running
            }
        };
        let in_time = running.kill();
        place.assert_nothing_is_left("after SIGKILL of the coordinator");
        assert_completed_lines_are_kept(&place);
        if in_time {
            let lines = completed(&place);
            let has_record = lines.iter().any(|line| matches!(line, Line::Record(_)));
            with_header.fetch_add(u32::from(!lines.is_empty()), Ordering::Relaxed);
            with_samples.fetch_add(u32::from(samples_of(&lines) > 0), Ordering::Relaxed);
            with_records.fetch_add(u32::from(has_record), Ordering::Relaxed);
        }
        in_time
    });
    assert_no_kernel_objects_are_left(&objects_before);
    let [headers, samples, records] =
        [with_header, with_samples, with_records].map(std::sync::atomic::AtomicU32::into_inner);
    eprintln!(
        "{COORDINATORS} coordinators killed, {headers} after the header, {samples} after a sample, {records} after a record"
    );
    assert!(headers > COORDINATORS / 4, "only {headers} runs had begun to measure when they were killed");
    // A run that was killed after its header had samples when it was, but for those that were killed between two lines.
    assert!(samples > COORDINATORS / 4, "only {samples} runs had a sample when they were killed");
}

/// Which of the two endpoints.
#[derive(Debug, Clone, Copy)]
enum Which {
    Client,
    Server,
}

/// An endpoint of `running`, at a random moment of its life; `None` when the run ended first.
fn catch(running: &mut Running, which: Which) -> Option<Process> {
    while running.lives() {
        // A moment before and a moment after both are there, so that it is met while it starts, too.
        sleep(random_ms(5));
        let found = endpoints(running.pid());
        sleep(random_ms(20));
        // The endpoints of a floor are gone by now, but for a few.
        if let [client, server] = endpoints(running.pid()).as_slice()
            && found.contains(client)
        {
            return Some(if matches!(which, Which::Client) { client.clone() } else { server.clone() });
        }
    }
    None
}

/// Fails unless one record failed, with an error that is `right`, and every other was measured.
fn assert_one_failed(place: &Place, said: &Said, right: impl Fn(&str) -> bool) {
    let results = read(&place.path("results.jsonl"));
    let failed: Vec<_> = results.records.iter().filter_map(error).collect();
    assert_eq!(failed.len(), 1, "one trial lost an endpoint\n{said}");
    assert!(right(failed[0]), "the error does not say what happened: {}\n{said}", failed[0]);
    assert!(said.out.contains("failed"), "{said}");
    for record in results.records.iter().filter(|record| error(record).is_none()) {
        assert!(!record.samples.is_empty(), "{} was not measured\n{said}", record.case);
    }
    assert!(results.end.is_some_and(|end| !end.interrupted), "{said}");
}

/// Kills one endpoint of a run over `mechanism` at a random moment; says whether that was in time to end its trial.
fn kill_endpoint(mechanism: &str, which: Which) -> bool {
    let place = Place::new();
    let mut running = Running::start(&mut long_run(&place, mechanism));
    if let Some(victim) = catch(&mut running, which) {
        send(victim.pid, Signal::KILL);
    }
    if mechanism == SPINNING && !wait_until(SOON, || !running.lives()) {
        // It was one of a floor: the long trials are still to come, and on a busy machine have no end.
        running.signal(Signal::TERM);
        running.finish().expect(130);
        place.assert_nothing_is_left("after SIGKILL of an endpoint and SIGTERM");
        return false;
    }
    let said = running.finish();
    place.assert_nothing_is_left("after SIGKILL of an endpoint");
    if said.code() == 0 {
        // It had already reported: nothing depended on it any more.
        assert_none_failed(&read(&place.path("results.jsonl")));
        return false;
    }
    // One that dies before it has its orders is missed by the coordinator when it sends them.
    let is_told = |error: &str| {
        (error.contains("an endpoint died") && error.contains("SIGKILL"))
            || error.contains("the peer is gone")
    };
    assert_one_failed(&place, &said.expect(1), is_told);
    true
}

/// Kills endpoints of one role until enough deaths mattered.
fn kill_endpoints(which: Which) {
    let _alone = ALONE.lock();
    let (mechanisms, next, too_late) = (mechanisms(), AtomicU32::new(0), AtomicU32::new(0));
    repeat(ENDPOINTS, || {
        let mechanism = mechanisms[next.fetch_add(1, Ordering::Relaxed) as usize % mechanisms.len()];
        let in_time = kill_endpoint(mechanism, which);
        let late = too_late.fetch_add(u32::from(!in_time), Ordering::Relaxed);
        assert!(late <= MOST_TOO_LATE, "most endpoints had reported before they were killed");
        in_time
    });
    eprintln!("{ENDPOINTS} endpoints killed ({which:?}), {} more too late to matter", too_late.into_inner());
}

/// Slow: it kills many runs, at moments that are sought.
#[test]
fn a_killed_client_fails_its_case_and_no_other() {
    kill_endpoints(Which::Client);
}

/// Slow: it kills many runs, at moments that are sought.
#[test]
fn a_killed_server_fails_its_case_and_no_other() {
    kill_endpoints(Which::Server);
}

#[test]
fn a_killed_comparison_leaves_nothing_behind() {
    let _alone = ALONE.lock();
    repeat(6, || {
        let place = Place::new();
        let mut command = place.ipcmark(["compare", "fifo", "unix-stream", "-p", "unpinned", "--time", "5s"]);
        let running = Running::start(command.args(["--precision", "0.001%"]));
        sleep(random_ms(300));
        let in_time = running.kill();
        place.assert_nothing_is_left("after SIGKILL of a comparison");
        in_time
    });
}

#[test]
fn a_killed_explanation_leaves_nothing_behind() {
    let _alone = ALONE.lock();
    repeat(6, || {
        let place = Place::new();
        let mut command = place.ipcmark(["explain", "fifo", "-p", "unpinned", "--time", "2s"]);
        let running = Running::start(command.args(["--probes", "ptrace,scheduler,faults,counters"]));
        // The first half measures without probes, the second with them.
        sleep(random_ms(1900));
        let in_time = running.kill();
        place.assert_nothing_is_left("after SIGKILL of an explanation");
        in_time
    });
}

/// Slow: it kills many runs, at moments that are sought.
#[test]
fn an_explanation_that_is_interrupted_says_what_it_has() {
    let _alone = ALONE.lock();
    let place = Place::new();
    let mut command = place.ipcmark(["explain", "pipe", "-p", "unpinned", "--time", "10m"]);
    let running = Running::start(&mut command);
    a_trial_ended(running.pid());
    running.signal(Signal::INT);
    let said = running.finish().expect(130);
    assert!(said.out.contains("pipe latency 1 unpinned"), "{said}");
    place.assert_nothing_is_left("after an interrupted explanation");
}

#[test]
fn a_signal_ends_a_run_in_order() {
    let _alone = ALONE.lock();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        for delay_ms in [0, 20, 100, 300] {
            interrupt(signal, |_| sleep(Duration::from_millis(delay_ms)));
        }
        let some_samples = |place: &Place| {
            wait_until(common::TIMEOUT, || lines(place) > 1);
        };
        let finished = (0..3).find_map(|_| interrupt(signal, some_samples));
        eprintln!("{finished:?} of 2 cases were finished when {signal:?} came");
    }
}

/// How many lines of its results file the run in `place` has completed.
fn lines(place: &Place) -> usize {
    fs::read_to_string(place.path("results.jsonl")).map_or(0, |text| text.matches('\n').count())
}

/// Interrupts a run that would go on for a minute, after `until`; says how many cases were finished by then.
/// `None` when all were, so that the run had ended by itself.
fn interrupt(signal: Signal, until: impl Fn(&Place)) -> Option<usize> {
    let place = Place::new();
    // Burning a known time is the steadiest that there is: it settles long before a wake-up does.
    let mechanisms =
        [sleeping_mechanisms().choose(&mut rand::rng()).copied().unwrap_or("pipe"), "null:delay=10us"];
    let mut command = run_of(&place, &mechanisms);
    let running = Running::start(command.args(["--iterations", "40", "--precision", "2%", "--time", "60s"]));
    begun(&place);
    until(&place);
    running.signal(signal);
    let said = running.finish();
    place.assert_nothing_is_left("after a signal");
    if said.code() == 0 {
        return None;
    }
    let said = said.expect(130);
    assert!(said.out.contains("interrupted"), "{signal:?}: {said}");
    let results = read(&place.path("results.jsonl"));
    assert!(results.end.as_ref().is_some_and(|end| end.interrupted), "{said}");
    assert_eq!(results.notes, Vec::<String>::new());
    assert_eq!(asked(&results).count(), mechanisms.len(), "every case has a record\n{said}");
    for record in asked(&results) {
        let ended = matches!(record.outcome, Outcome::Interrupted | Outcome::Settled);
        assert!(ended, "{signal:?}: {} ended as {:?}", record.case, record.outcome);
        // A long name may be wrapped between two parameters.
        let name = record.case.spec.to_string();
        let parts: Vec<&str> = name.split_inclusive(',').collect();
        assert!(parts.iter().all(|part| said.out.contains(part)), "{name} is not shown\n{said}");
    }
    Some(asked(&results).filter(|record| record.outcome == Outcome::Settled).count())
}

/// Waits until the run in `place` has a directory, from when on it also minds signals.
fn begun(place: &Place) {
    let has_directory = || place.leftovers().iter().any(|name| name.starts_with("ipcmark-run-"));
    assert!(wait_until(common::TIMEOUT, has_directory), "the run did not begin");
}

/// Waits until `coordinator` has had a pair of endpoints, and has another.
fn a_trial_ended(coordinator: i32) {
    let mut first = Vec::new();
    let is_another = || {
        let now = endpoints(coordinator);
        if first.len() < 2 {
            first = now;
            return false;
        }
        now.len() == 2 && now.iter().all(|process| !first.contains(process))
    };
    assert!(wait_until(common::TIMEOUT, is_another), "no trial ended");
}

/// Waits until `coordinator` has both endpoints of a trial that lasts, and gives them.
fn lasting_endpoints(coordinator: i32) -> [Process; 2] {
    let mut last = Vec::new();
    let lasting = || {
        let now = endpoints(coordinator);
        let same = now.len() == 2 && now == last;
        last = now;
        sleep(Duration::from_millis(100));
        same
    };
    assert!(wait_until(common::TIMEOUT, lasting), "no trial lasts");
    last.try_into().unwrap()
}

#[test]
fn a_comparison_that_is_interrupted_shows_what_it_has() {
    let _alone = ALONE.lock();
    let place = Place::new();
    let mut command = place.ipcmark(["compare", "fifo", "unix-stream", "-p", "unpinned"]);
    let running = Running::start(command.args(["--precision", "0.001%", "--time", "10m"]));
    a_trial_ended(running.pid());
    running.signal(Signal::INT);
    let said = running.finish().expect(130);
    assert!(said.out.contains("unix-stream against fifo"), "{said}");
    place.assert_nothing_is_left("after an interrupted comparison");
}

/// Slow: it kills many runs, at moments that are sought.
#[test]
fn a_stopped_endpoint_is_ended_by_the_deadline() {
    let _alone = ALONE.lock();
    for which in [Which::Client, Which::Server] {
        let ended = (0..10).any(|_| {
            let place = Place::new();
            let mut command = run_of(&place, &["pipe", "tsc"]);
            // Many times as long as such a trial takes, so that nothing but the stop meets the deadline.
            let effort = ["--iterations", "2000", "--rounds", "1", "--timeout", "4s"];
            let mut running = Running::start(command.args(effort));
            let victim = catch(&mut running, which);
            let stopped = victim.is_some_and(|victim| send(victim.pid, Signal::STOP));
            let said = running.finish();
            place.assert_nothing_is_left("after a deadline");
            // It may have reported just before; then nothing waits for it.
            let ended = stopped && said.code() != 0;
            if ended {
                assert_one_failed(&place, &said.expect(1), |error| {
                    let waited = error.strip_prefix("the endpoints made no report within ");
                    let waited = waited.and_then(|rest| rest.split_once(" s and were killed"));
                    // On a busy host an endpoint may have said that the next report will take longer.
                    waited.is_some_and(|(waited_s, rest)| {
                        waited_s.parse::<f64>().is_ok_and(|s| s >= 4.0) && rest.contains("--timeout")
                    })
                });
            }
            ended
        });
        assert!(ended, "no trial was ever stopped ({which:?})");
    }
}

/// Slow: it kills many runs, at moments that are sought.
#[test]
fn endpoints_that_are_stopped_at_any_moment_never_hang_a_run() {
    let _alone = ALONE.lock();
    repeat(24, || {
        let place = Place::new();
        let mut command = short_run(&place, &two_of(&mechanisms()));
        let mut running = Running::start(command.args(["--timeout", "200ms"]));
        let coordinator = running.pid();
        let victim = loop {
            sleep(random_ms(8));
            if let Some(found) = endpoints(coordinator).pop() {
                break Some(found);
            }
            if !running.lives() {
                break None;
            }
        };
        let stopped = victim.is_some_and(|victim| send(victim.pid, Signal::STOP));
        let said = running.finish();
        assert!([0, 1].contains(&said.code()), "{said}");
        place.assert_nothing_is_left("after an endpoint was stopped");
        let results = read(&place.path("results.jsonl"));
        for error in results.records.iter().filter_map(error) {
            assert!(error.starts_with("the endpoints made no report"), "{error}");
        }
        stopped
    });
}

#[test]
fn a_run_whose_janitor_is_killed_cleans_up_itself() {
    let _alone = ALONE.lock();
    let place = Place::new();
    let running = Running::start(&mut short_run(&place, &two_of(&sleeping_mechanisms())));
    begun(&place);
    assert!(janitor(running.pid()).is_some_and(|janitor| send(janitor.pid, Signal::KILL)));
    running.finish().expect(0);
    place.assert_nothing_is_left("after SIGKILL of the janitor");
}

#[test]
fn clean_removes_what_dead_runs_left_and_leaves_a_living_run_alone() {
    let _alone = ALONE.lock();
    let place = Place::new();
    let nothing = run(&mut place.ipcmark(["clean"])).expect(0);
    assert_eq!(nothing.out, "nothing to clean: no killed run left anything\n");

    let mut leftovers = Vec::new();
    for _ in 0..2 {
        let dying = Running::start(&mut endless_run(&place, "fifo"));
        let before = leftovers.clone();
        assert!(wait_until(common::TIMEOUT, || place.leftovers().len() > before.len()));
        lasting_endpoints(dying.pid());
        // Without a janitor, what the run leaves stays until somebody cleans.
        assert!(janitor(dying.pid()).is_some_and(|janitor| send(janitor.pid, Signal::KILL)));
        assert!(dying.kill());
        assert!(wait_until(common::GONE_WITHIN, || place.processes().is_empty()), "{:?}", place.processes());
        fs::remove_file(place.path("results.jsonl")).unwrap();
        leftovers = place.leftovers();
    }
    assert_eq!(leftovers.len(), 2, "{leftovers:?}");
    // Neither a file that only resembles a run's, nor anybody else's directory, is any of its business.
    fs::create_dir(place.tmp().join("ipcmark-runs")).unwrap();
    fs::write(place.tmp().join("notes"), "precious").unwrap();

    let living = Running::start(&mut endless_run(&place, "fifo"));
    lasting_endpoints(living.pid());
    let cleaned = run(&mut place.ipcmark(["clean"])).expect(0);
    let mut removed: Vec<&str> =
        cleaned.out.lines().filter_map(|line| line.strip_prefix("removed ")).collect();
    removed.sort_unstable();
    let mut expected: Vec<String> =
        leftovers.iter().map(|name| place.tmp().join(name).display().to_string()).collect();
    expected.sort_unstable();
    assert_eq!(removed, expected, "{cleaned}");

    let left = place.leftovers();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left.iter().any(|name| name.starts_with("ipcmark-run-")), "the living run's is gone: {left:?}");
    living.signal(Signal::TERM);
    living.finish().expect(130);
    let mut left = place.leftovers();
    left.sort();
    assert_eq!(left, ["ipcmark-runs", "notes"]);
}
