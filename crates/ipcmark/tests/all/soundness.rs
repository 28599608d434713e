//! Whether the numbers are what they say: exact counts, an injected delay recovered, records as they were told.
//!
//! It tests the instrument against the kernel's own account and against what is known beforehand; no number
//! that this machine makes is tested for being good.

use crate::common::{
    AS_ROOT, IPCMARK, Place, Running, Said, asked, assert_none_failed, endpoints_at_once, has, read, run,
    skip,
};
use mechanisms::registry::{self, CARDS};
use model::card::{Card, CardKind, Support};
use model::record::{Outcome, Record, Results, Sample};
use model::summary::StepTime;
use model::{Params, Peers, Workload};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A size that no other write of an endpoint has: a report of so few iterations is a quarter as long, and a message of this
/// size still goes through the smallest pipe at once.
const SIZE: u64 = 4001;
const ITERATIONS: u64 = 23;

/// Runs `ipcmark run ARGUMENTS -o results.jsonl` to a good end.
fn measured(place: &Place, arguments: &[&str]) -> (Results, Said) {
    // Beside busy CPUs the kernel was seen to let MPTCP stand still for more than ten seconds.
    let line = ["--timeout", "4m", "-o", "results.jsonl"];
    let said = run(place.ipcmark(["run"]).args(arguments).args(line)).expect(0);
    (read(&place.path("results.jsonl")), said)
}

/// The only sample of the case of `name`.
fn only_sample<'a>(results: &'a Results, name: &str) -> &'a Sample {
    let record = asked(results).find(|record| record.case.spec.name == name).unwrap();
    let [sample] = record.samples.as_slice() else { panic!("{} samples", record.samples.len()) };
    sample
}

/// How many calls of each name each process made that moved exactly `SIZE` bytes through a pipe or a socket, from the files
/// of `strace -ff -y`. Files are left out: some of those in which the kernel speaks of the machine may be as long.
fn moves(place: &Place) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut of_all = BTreeMap::new();
    for entry in fs::read_dir(place.path("traces")).unwrap().flatten() {
        let mut of_one = BTreeMap::new();
        for line in fs::read_to_string(entry.path()).unwrap().lines() {
            if let Some((call, rest)) = line.split_once('(')
                && let Some((descriptor, _)) = rest.split_once(',')
                && ["<pipe:", "<socket:", "<UNIX"].iter().any(|kind| descriptor.contains(kind))
                && line.ends_with(&format!(" = {SIZE}"))
            {
                *of_one.entry(call.to_owned()).or_default() += 1;
            }
        }
        if !of_one.is_empty() {
            of_all.insert(entry.file_name().to_string_lossy().into_owned(), of_one);
        }
    }
    of_all
}

/// Slow: it measures every mechanism, or for some seconds.
#[test]
fn slices_of_endpoints_that_were_moved_are_counted_and_not_measured() {
    let otherwise = "what is said of endpoints that were moved";
    let own = sched_getaffinity(None).unwrap();
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| own.is_set(*cpu)).collect();
    let [first, second, ..] = cpus[..] else {
        return skip("there is one CPU; run it where there are two", otherwise);
    };
    let place = Place::new();
    let placement = format!("cpus={first},{first}");
    let arguments = ["run", "pipe", "-w", "latency", "-s", "1", "--time", "4s", "-o", "results.jsonl", "-p"];
    let mut running = Running::start(place.ipcmark(arguments).arg(&placement));
    let mut elsewhere = CpuSet::new();
    elsewhere.set(second);
    // Whichever endpoint there is, at any time, so that slices of some are under way or still to come.
    while running.lives() {
        for endpoint in endpoints_at_once(running.pid()) {
            // It may have ended.
            let _ = sched_setaffinity(rustix::process::Pid::from_raw(endpoint.pid), &elsewhere);
        }
    }
    let said = running.finish();
    let results = read(&place.path("results.jsonl"));
    let strayed: Vec<&Record> =
        results.records.iter().filter(|record| !record.elsewhere.is_nothing()).collect();
    assert!(!strayed.is_empty(), "nothing was noticed\n{said}");
    for record in strayed {
        assert!(record.elsewhere.cpus.contains(&(second as u32)), "{:?}\n{said}", record.elsewhere);
    }
    let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&format!("not on the CPUs of the placement, but on CPU {second}")), "{said}");
}

#[test]
fn the_kernel_sees_as_many_messages_as_a_sample_says() {
    let arguments = |mechanism: &str| {
        let word = |text: &str| text.to_owned();
        [word(mechanism), word("-s"), SIZE.to_string(), word("-p"), word("same-core")]
            .into_iter()
            .chain([
                word("--iterations"),
                ITERATIONS.to_string(),
                word("--rounds"),
                word("1"),
                word("-o"),
                word("results.jsonl"),
            ])
            .collect::<Vec<_>>()
    };
    let traced = has("strace", "strace", "messages are counted by context switches instead");
    for (mechanism, out, back) in [("pipe", "write", "read"), ("unix-seqpacket", "write", "read")] {
        let place = Place::new();
        if !traced {
            run(place.ipcmark(["run"]).args(arguments(mechanism))).expect(0);
            let results = read(&place.path("results.jsonl"));
            counts_of_sample(&results, mechanism);
            switches_of_sample(&results, mechanism);
            continue;
        }
        fs::create_dir(place.path("traces")).unwrap();
        let mut strace = place.command("strace");
        strace.args([
            "-ff",
            "-qq",
            "-y",
            "-e",
            "trace=read,write,sendto,recvfrom,sendmsg,recvmsg",
            "-o",
            "traces/of",
        ]);
        let said = run(strace.args([IPCMARK, "run"]).args(arguments(mechanism)));
        if said.err.contains("PTRACE") || said.err.contains("ptrace") {
            skip(
                &format!("strace may not trace here: {}; {AS_ROOT}", said.err.trim()),
                "messages are not counted",
            );
            return;
        }
        let said = said.expect(0);
        let results = read(&place.path("results.jsonl"));
        let in_all = counts_of_sample(&results, mechanism);
        let moves = moves(&place);
        // Client and server of the one trial.
        assert_eq!(moves.len(), 2, "{mechanism}: {moves:?}\n{said}");
        for (process, calls) in &moves {
            let expected = BTreeMap::from([(out.to_owned(), in_all), (back.to_owned(), in_all)]);
            assert_eq!(
                *calls, expected,
                "{mechanism}: what {process} moved, and the sample's trial_iterations"
            );
        }
    }
}

/// Checks that the sample of `mechanism` has the iterations that were asked for; gives the iterations of its trial in all.
fn counts_of_sample(results: &Results, mechanism: &str) -> u64 {
    let sample = only_sample(results, mechanism);
    assert_eq!(sample.iterations, ITERATIONS, "{mechanism}");
    // The warm-up in two pieces, the iterations timed together and those timed one by one: each with 5 before and 2 after.
    assert_eq!(sample.trial_iterations, 3 * ITERATIONS + 4 * 7, "{mechanism}");
    let each = sample.each.as_ref().unwrap();
    assert_eq!(
        each.iterations.decode().count(),
        ITERATIONS,
        "{mechanism}: iterations that were timed one by one"
    );
    sample.trial_iterations
}

/// On one core each iteration switches to the peer and back: server fewer switches than iterations means iterations not made.
fn switches_of_sample(results: &Results, mechanism: &str) {
    let sample = only_sample(results, mechanism);
    let switches = sample.client.voluntary_switches + sample.client.involuntary_switches;
    assert!(switches >= ITERATIONS - 1, "{mechanism}: {switches} switches in {ITERATIONS} iterations");
}

/// Slow: beside other load it measures again, up to eight times.
#[test]
fn an_injected_delay_is_recovered() {
    const DELAY_NS: f64 = 10_000.0;
    const WITHIN: f64 = 0.02;
    const TRIES: u32 = 8;
    let least = |results: &Results, name: &str, delayed: bool| {
        let record = results
            .records
            .iter()
            .find(|record| record.case.spec.name == name && record.case.spec.params.is_empty() != delayed);
        record.unwrap().samples.iter().map(Sample::iteration_ns).fold(f64::INFINITY, f64::min)
    };
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let place = Place::new();
        // Slices of a fifth of a millisecond, of which some have no tick and no other task in them.
        let arguments = ["null:delay=10us", "-p", "same-core", "--iterations", "20", "--rounds", "60"];
        let (results, _) = measured(&place, &arguments);
        // Load only adds, so that the smallest trial is the one nearest to the truth.
        let (delayed, plain) = (least(&results, "null", true), least(&results, "null", false));
        // What burns the delay and what times the iteration are two clocks; an iteration cannot be shorter than its delay.
        assert!(delayed > DELAY_NS * 0.999, "{delayed} ns an iteration, of which {DELAY_NS} are burnt");
        let excess = delayed / (DELAY_NS + plain) - 1.0;
        if excess.abs() <= WITHIN {
            return;
        }
        seen.push(excess);
    }
    panic!("an injected delay of {DELAY_NS} ns was exceeded by {seen:?} in {TRIES} runs");
}

#[test]
fn a_delay_that_is_doubled_is_seen_by_a_comparison() {
    let arguments = ["compare", "null:delay=20us", "null:delay=40us", "-p", "same-core", "--format=json"];
    let said =
        run(Place::new().ipcmark(arguments).args(["--precision", "5%", "--fail-above", "50%"])).expect(3);
    let pairs: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(pairs[0]["verdict"], "slower", "{said}");
}

#[test]
fn of_two_builds_each_mechanism_is_compared_with_itself() {
    let place = Place::new();
    let mut command = place.ipcmark(["compare", "--against", IPCMARK, "--time", "1s", "--format=json"]);
    command.args(["pipe", "eventfd", "-w", "latency", "-s", "1", "-p", "same-core"]);
    let said = run(&mut command).expect(0);
    let pairs: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let names: Vec<&str> =
        pairs.as_array().unwrap().iter().filter_map(|pair| pair["name"].as_str()).collect();
    assert_eq!(names, ["pipe latency 1 same-core", "eventfd latency same-core"], "{said}");
}

/// The mechanisms that work here, floors included.
fn working() -> Vec<&'static Card> {
    let works = |card: &&Card| {
        card.kind != CardKind::Operation
            && matches!(registry::probe(card.name, &Params::default()), Some(Support::Yes { .. }))
    };
    CARDS.iter().filter(works).collect()
}

/// The workloads of two endpoints.
const BETWEEN_TWO: &str = "latency,throughput,transfer,connect,session";

/// `NAME` for every mechanism that works here.
fn every_mechanism() -> Vec<&'static str> {
    working().into_iter().map(|card| card.name).collect()
}

/// Slow: it measures every mechanism, or for some seconds.
#[test]
fn every_mechanism_has_a_good_record_in_every_workload_and_size() {
    const SIZES: [u64; 4] = [0, 1, 4096, 65_507];
    let place = Place::new();
    let mut arguments = every_mechanism();
    arguments.extend(["-w", BETWEEN_TWO, "-s", "0,1,4096,65507", "-p", "same-core"]);
    arguments.extend([
        "-p",
        "same-llc|cross-llc|cross-node|smt|unpinned",
        "--iterations",
        "30",
        "--rounds",
        "1",
        "--time",
        "30m",
    ]);
    let (results, said) = measured(&place, &arguments);
    assert_none_failed(&results);
    for card in working() {
        for &workload in card.workloads {
            for size in SIZES {
                let is_it = |case: &model::Case| {
                    case.spec.name == card.name
                        && case.workload == workload
                        && case.size_bytes.is_none_or(|bytes| bytes.0 == size)
                };
                let measured: Vec<_> = results.records.iter().filter(|record| is_it(&record.case)).collect();
                for record in &measured {
                    assert!(!record.samples.is_empty(), "{} was not measured\n{said}", record.case);
                    let sample = &record.samples[0];
                    let is_throughput = workload == Workload::Throughput;
                    assert_eq!(sample.calls.is_some(), is_throughput, "{}", record.case);
                    assert_eq!(sample.each.is_some(), !is_throughput, "{}", record.case);
                    assert!(sample.server.is_some(), "{}", record.case);
                }
                if size == 0 && card.sized && workload.is_sized() {
                    assert_eq!(!measured.is_empty(), card.empty, "{} {workload} 0\n{said}", card.name);
                }
                let start = format!("{} {workload}", card.name);
                let dropped =
                    results.header.plan.dropped.iter().find(|dropped| {
                        dropped.case == start || dropped.case.starts_with(&format!("{start} "))
                    });
                assert!(
                    !measured.is_empty() || dropped.is_some_and(|dropped| !dropped.reason.is_empty()),
                    "{start} {size} was neither measured nor dropped with a reason\n{said}"
                );
            }
        }
    }
}

/// Slow: it measures every mechanism, or for some seconds.
#[test]
fn several_peers_share_their_iterations_in_every_mechanism() {
    let place = Place::new();
    let mut arguments = every_mechanism();
    arguments.extend([
        "-w",
        "latency,throughput",
        "-s",
        "1",
        "-p",
        "unpinned",
        "--iterations",
        "40",
        "--rounds",
        "1",
    ]);
    arguments.extend(["--peers", "pairs=3,fan-in=3,fan-out=3", "--time", "30m"]);
    let (results, said) = measured(&place, &arguments);
    assert_none_failed(&results);
    let mut seen = BTreeSet::new();
    for record in asked(&results) {
        let (sample, peers) = (&record.samples[0], record.case.peers);
        let is_answered = record.case.workload == Workload::Latency;
        assert_eq!(sample.each.is_some(), is_answered, "{}", record.case);
        if let Some(each) = &sample.each {
            assert_eq!(each.iterations.decode().count(), sample.iterations, "{}", record.case);
        }
        match &sample.shares {
            Some(shares) => {
                assert_eq!(shares.len(), 3, "{}", record.case);
                assert_eq!(shares.iter().sum::<u64>(), sample.iterations, "{}", record.case);
                let fairness = record.summary.as_ref().unwrap().fairness.unwrap();
                assert!((1.0 / 3.0 - 1e-9..=1.0 + 1e-9).contains(&fairness.jain), "{fairness:?}");
            }
            None => assert_eq!((peers, sample.iterations), (Peers::FanOut(3), 40), "{}", record.case),
        }
        seen.insert((record.case.spec.name.clone(), peers, record.case.workload));
    }
    for card in working().into_iter().filter(|card| card.kind == CardKind::Mechanism && card.name != "null") {
        let workloads =
            card.workloads.iter().filter(|w| [Workload::Latency, Workload::Throughput].contains(w));
        for &workload in workloads {
            for peers in [Peers::Pairs(3), Peers::FanIn(3), Peers::FanOut(3)] {
                let wanted = match peers {
                    Peers::FanIn(_) => card.polled,
                    Peers::FanOut(_) => !card.one_endpoint,
                    _ => true,
                };
                let was = seen.contains(&(card.name.to_owned(), peers, workload));
                assert_eq!(was, wanted, "{} {workload} {peers}\n{said}", card.name);
            }
        }
    }
}

#[test]
fn one_client_sends_every_message_to_every_server() {
    let place = Place::new();
    let arguments = ["unix-seqpacket", "-w", "latency", "-p", "unpinned", "--peers", "fan-out=3"];
    let size = SIZE.to_string();
    let further = ["-s", &size, "--iterations", "23", "--rounds", "1", "-o", "results.jsonl"];
    if !has("strace", "strace", "the messages of several peers are not counted") {
        return;
    }
    fs::create_dir(place.path("traces")).unwrap();
    let mut strace = place.command("strace");
    strace.args(["-ff", "-qq", "-y", "-e", "trace=read,write", "-o", "traces/of", IPCMARK, "run"]);
    let said = run(strace.args(arguments).args(further));
    if said.err.contains("PTRACE") || said.err.contains("ptrace") {
        skip(
            &format!("strace may not trace here: {}; {AS_ROOT}", said.err.trim()),
            "messages are not counted",
        );
        return;
    }
    said.expect(0);
    let results = read(&place.path("results.jsonl"));
    let in_all = only_sample(&results, "unix-seqpacket").trial_iterations;
    let mut moves: Vec<_> = moves(&place).into_values().collect();
    moves.sort();
    let calls = |count: u64| BTreeMap::from([("read".to_owned(), count), ("write".to_owned(), count)]);
    // Three servers that have each message, and a client that sends it thrice.
    let (servers, clients) = (vec![calls(in_all); 3], vec![calls(3 * in_all)]);
    assert_eq!(moves, [servers, clients].concat());
}

#[test]
fn what_a_session_is_made_of_is_counted() {
    let place = Place::new();
    let arguments = ["unix-dgram", "file-pass", "-w", "session:3x2", "-s", "4096"];
    let further = ["-p", "unpinned", "--iterations", "7", "--rounds", "1", "--check"];
    let (results, said) = measured(&place, &[&arguments[..], &further].concat());
    assert_none_failed(&results);
    let steps = |name: &str| {
        let record = results.records.iter().find(|record| record.case.spec.name == name).unwrap();
        record.summary.as_ref().unwrap().steps.clone().unwrap()
    };
    let counts = |steps: &[StepTime]| steps.iter().map(|s| (s.name.clone(), s.count)).collect::<Vec<_>>();
    let each = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 12)).collect::<Vec<_>>();
    // Half of the 7 iterations, rounded up, are the part in which steps are timed: 4 sessions of 3 messages.
    let dgram = steps("unix-dgram");
    assert_eq!(counts(&dgram.client), each(&["sendmsg"]), "{said}");
    assert_eq!(counts(&dgram.server), each(&["recvmsg", "close, all passed"]));
    let file = steps("file-pass");
    assert_eq!(counts(&file.client), each(&["open", "unlink", "write", "sendmsg", "close"]));
    assert_eq!(counts(&file.server), each(&["recvmsg", "lseek", "read", "close", "close, all passed"]));
}

#[test]
fn an_idle_think_time_is_no_part_of_an_iteration() {
    for (mechanism, think_time, cpus) in [("null", "20ms", "same-core"), ("pipe", "20ms", "same-llc|smt")] {
        let place = Place::new();
        let which = [mechanism, "-w", "latency", "-p", cpus, "--think-time", think_time];
        let (results, said) =
            measured(&place, &[&which[..], &["--iterations", "3", "--rounds", "1"]].concat());
        let paced = asked(&results).next().unwrap();
        assert_eq!(paced.case.pace.to_string(), format!("think-time={think_time}"));
        let sample = &paced.samples[0];
        assert_eq!(sample.iterations, 3);
        assert!(sample.iteration_ns() < 10e6, "{said}");
    }
}

#[test]
fn a_rate_is_kept_or_said_to_be_missed() {
    let place = Place::new();
    let common = ["-w", "latency", "-p", "same-core", "--rounds", "1", "--rate"];
    let seldom = ["50", "--iterations", "50", "-o", "kept.jsonl"];
    let said = run(&mut place.ipcmark([&["run", "null"][..], &common, &seldom].concat()));
    let results = read(&place.path("kept.jsonl"));
    let kept = asked(&results).next().unwrap();
    let schedule = kept.samples[0].schedule.unwrap();
    let span_ns = schedule.span_ns;
    assert!((span_ns - 1e9).abs() < 1e6, "50 iterations at 50 a second are due within {span_ns} ns\n{said}");
    // A host that is busy enough keeps no rate.
    let is_missed = schedule.achieved() < 0.99;
    assert_eq!(matches!(kept.outcome, Outcome::Missed { .. }), is_missed, "{said}");
    assert_eq!(said.status.success(), !is_missed, "{said}");

    // An iteration of 2 ms cannot be had 1000 times a second: half of the rate is achieved, and the last iterations are late.
    let often = ["1k", "--iterations", "200", "-o", "missed.jsonl"];
    let arguments = [&["run", "null:delay=2ms"][..], &common, &often].concat();
    let said = run(&mut place.ipcmark(arguments)).expect(1);
    let results = read(&place.path("missed.jsonl"));
    let missed = asked(&results).next().unwrap();
    let Outcome::Missed { achieved } = missed.outcome else { panic!("{:?}\n{said}", missed.outcome) };
    assert!(achieved > 0.0 && achieved <= 0.52, "{achieved}");
    assert!(
        missed.summary.as_ref().unwrap().iteration_ns.median > 50e6,
        "waiting for the iterations before is not counted"
    );
    assert!(said.out.contains("missed its rate"), "{said}");
}

/// Slow: it measures every mechanism, or for some seconds.
#[test]
fn two_threads_measure_every_mechanism_too() {
    let place = Place::new();
    let mut arguments = every_mechanism();
    arguments.extend(["-w", BETWEEN_TWO, "-s", "512", "-p", "unpinned"]);
    arguments.extend(["--endpoints", "threads", "--iterations", "30", "--rounds", "1", "--time", "5m"]);
    let (results, said) = measured(&place, &arguments);
    assert_none_failed(&results);
    for card in working() {
        let mut of_card = results.records.iter().filter(|record| record.case.spec.name == card.name);
        assert!(of_card.all(|record| record.case.endpoints == model::Endpoints::Threads), "{said}");
        let dropped = |name: &str| results.header.plan.dropped.iter().any(|d| d.case.starts_with(name));
        let recorded = results.records.iter().any(|record| record.case.spec.name == card.name);
        assert!(recorded || dropped(card.name), "{} has no record\n{said}", card.name);
    }
}

/// Slow: it measures every mechanism, or for some seconds.
#[test]
fn every_byte_can_be_checked_in_the_timed_phases() {
    let place = Place::new();
    let mut arguments = every_mechanism();
    arguments.extend(["-w", BETWEEN_TWO, "-s", "4096", "-p", "unpinned", "--check"]);
    arguments.extend(["--iterations", "30", "--rounds", "1", "--time", "5m"]);
    let (results, _) = measured(&place, &arguments);
    assert!(results.header.settings.check);
    assert_none_failed(&results);
}

/// Slow: it measures every mechanism, or for some seconds.
#[test]
fn what_was_shown_is_what_is_kept() {
    let place = Place::new();
    let arguments = [
        "pipe",
        "unix-dgram",
        "syscall",
        "-w",
        "latency,throughput,transfer,cost",
        "-s",
        "64,4096",
        "-p",
        "same-core",
        "-p",
        "unpinned",
        "--iterations",
        "20",
        "--rounds",
        "9",
    ];
    let (mut results, said) = measured(&place, &arguments);
    assert_none_failed(&results);
    let shown = run(&mut place.ipcmark(["report", "results.jsonl"])).expect(0);
    // Where the file lies is known to the run that wrote it alone.
    let kept: Vec<&str> = said.out.lines().filter(|line| *line != "Note: kept in results.jsonl").collect();
    assert_eq!(shown.out.lines().collect::<Vec<_>>(), kept);

    let told = results.records.clone();
    analysis::summary::recompute(&mut results);
    for (told, again) in told.iter().zip(&results.records) {
        assert_eq!(told.summary, again.summary, "{}: what the samples say changed on its way", told.case);
        assert!(told.summary.is_some());
    }
    let end = results.end.unwrap();
    // All may have settled one round before the last.
    assert!(!end.interrupted && (8..=9).contains(&end.rounds), "{end:?}");
}

#[test]
fn records_hold_together() {
    let place = Place::new();
    let arguments = [
        "pipe",
        "-w",
        "latency,throughput",
        "-s",
        "1024",
        "-p",
        "same-core",
        "--iterations",
        "500",
        "--rounds",
        "3",
    ];
    let (results, _) = measured(&place, &arguments);
    for record in asked(&results) {
        assert_eq!(record.samples.iter().map(|sample| sample.round).collect::<Vec<_>>(), [0, 1, 2]);
        for sample in &record.samples {
            let server = sample.server.unwrap();
            // On one core two endpoints cannot use more processor time than passes, but for what each reads
            // of its account just outside of the iterations.
            let cpu_ns = (sample.client.cpu_ns + server.cpu_ns) as f64;
            assert!(
                cpu_ns < 1.1 * sample.elapsed_ns + 100_000.0,
                "{}: {cpu_ns} ns of CPU: {sample:?}",
                record.case
            );
            assert!(sample.trial_iterations > sample.iterations, "{sample:?}");
            if let Some(calls) = &sample.calls {
                let bytes = |counts: &model::record::CallCounts| -> u64 {
                    counts.returned_bytes.iter().map(|(bytes, calls)| bytes * calls).sum()
                };
                assert_eq!(bytes(&calls.send), 1024 * calls.messages, "{}", record.case);
                assert_eq!(bytes(&calls.receive), 1024 * calls.messages, "{}", record.case);
            }
        }
    }
}
