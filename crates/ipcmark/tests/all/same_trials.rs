//! What `explain` counts, against what strace and perf count of the very same trials, which they look at from outside.
//!
//! An observed endpoint switches its events on and off by ioctl(2) around its timed iterations, and reads there by pread(2) what the
//! kernel accounts to it. Other programs see these calls, so that what lies between can be counted exactly. `strace -c` and `perf stat` count from the start of a process to its
//! end, warm-up included; what both can count of a whole run is compared between them.

use crate::common::{AS_ROOT, IPCMARK, Place, Said, has, run, skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// A size that no other call of the run has.
const SIZE: u64 = 777;
const ITERATIONS: u64 = 23;
/// What `explain` observes before the trials that it reports: a process that tries the probe, and the two endpoints of the
/// first round, which warms up.
const UNTOLD: usize = 3;
/// So many bytes, in the kernel's digits, an endpoint asks for when it reads what is accounted to it, and no other call does.
const READING: &str = "2000";
/// The numbers of calls, here and on machines that have the kernel's common ones.
const READ_AND_WRITE: [u32; 2] = if cfg!(target_arch = "x86_64") { [0, 1] } else { [63, 64] };
const PREAD: u32 = if cfg!(target_arch = "x86_64") { 17 } else { 67 };
const GETRUSAGE: u32 = if cfg!(target_arch = "x86_64") { 98 } else { 165 };

type Counts = BTreeMap<String, u64>;

/// What another program tells of a thread.
#[derive(Clone)]
enum Told {
    /// A call that switches events on or off begins or ends.
    Switching { on: bool, begins: bool },
    /// Something that is counted.
    Did(String),
}

/// What each thread did while its events were on, in the order of time, without what `explain` does not tell of.
/// `switching` says whether what happened in the calls that switch counts. All that was `told` has its thread and its time.
fn while_on(told: &[(String, f64, Told)], switching: bool) -> Vec<Counts> {
    let mut on: BTreeMap<&str, (f64, Counts)> = BTreeMap::new();
    let mut all = Vec::new();
    for (thread, at, told) in told {
        match told {
            Told::Switching { on: true, begins } if *begins == switching => {
                on.insert(thread, (*at, Counts::new()));
            }
            Told::Switching { on: false, begins } if *begins != switching => all.extend(on.remove(&**thread)),
            Told::Switching { .. } => {}
            Told::Did(what) => {
                on.entry(thread).and_modify(|(_, counts)| *counts.entry(what.clone()).or_default() += 1);
            }
        }
    }
    all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let told: Vec<Counts> = all.into_iter().skip(UNTOLD).map(|(_, counts)| counts).collect();
    assert!(!told.is_empty() && told.len().is_multiple_of(2), "client and server of each trial: {told:?}");
    told
}

fn sum(all: &[Counts]) -> Counts {
    let mut sum = Counts::new();
    for (what, count) in all.iter().flatten() {
        *sum.entry(what.clone()).or_default() += count;
    }
    sum
}

/// Has a pipe explained by `probe` under another program, which `command` is about to start. Under it all takes many times as long: where there was no time, there is more.
fn explained(probe: &str, command: impl Fn(&Place) -> Command) -> (Place, Said) {
    let mut times = ["4s", "20s", "60s", "5m"].into_iter();
    loop {
        let (place, time) = (Place::new(), times.next().unwrap());
        let words = format!(
            "explain pipe -s {SIZE} -p same-core --iterations {ITERATIONS} --time {time} --probes {probe} --format=json"
        );
        let said = run(command(&place).arg(IPCMARK).args(words.split(' ')));
        let had_time = [&said.err, &said.out].iter().all(|text| !text.contains("there was no time"));
        if times.len() == 0 || had_time {
            return (place, said);
        }
    }
}

/// The only explanation that was printed; `None`, loudly, if its only probe does not work here.
fn told_by_explain(json: &str) -> Option<Value> {
    let all: Value = serde_json::from_str(json).unwrap();
    let explanation = all["explanations"][0].clone();
    if let Some(reason) = explanation["probes"][0]["absent"].as_str() {
        skip(reason, "what explain counts is not compared with what others count");
        return None;
    }
    Some(explanation)
}

/// What to put before `arguments` of perf so that it may use tracepoints: it mounts tracefs where that is missing, which is
/// undone with the namespace. `None`, loudly, if it may not.
fn perf() -> Option<Vec<&'static str>> {
    const OTHERWISE: &str = "what explain counts is not compared with what perf counts";
    if !has("perf", "linux-perf", OTHERWISE) {
        return None;
    }
    let ways = [vec!["unshare", "--mount", "perf"], vec!["perf"]];
    let works = |way: &Vec<&str>| {
        let mut command = Command::new(way[0]);
        command.args(&way[1..]).args(["stat", "-e", "raw_syscalls:sys_enter", "true"]);
        command.output().is_ok_and(|output| output.status.success())
    };
    let found = ways.into_iter().find(works);
    if found.is_none() {
        skip("perf may not use tracepoints here; run `sudo cargo xtask test`", OTHERWISE);
    }
    found
}

/// The files that `strace -ff -ttt` wrote, as pairs of a process and the lines of its calls.
fn traces(place: &Place) -> Vec<(String, String)> {
    let files = fs::read_dir(place.path("traces")).unwrap().flatten();
    files
        .map(|file| {
            (file.file_name().to_string_lossy().into_owned(), fs::read_to_string(file.path()).unwrap())
        })
        .collect()
}

/// The calls in lines such as `12.5 read(3, "abc"..., 777) = 777`: when, which, with what, and what it returned.
fn calls(lines: &str) -> impl Iterator<Item = (f64, &str, &str, &str)> {
    lines.lines().filter_map(|line| {
        let (at, call) = line.split_once(' ')?;
        let (name, rest) = call.split_once('(')?;
        let (arguments, returned) = rest.rsplit_once(" = ")?;
        Some((at.parse().ok()?, name, arguments, returned))
    })
}

/// Slow: it measures under strace.
#[test]
fn strace_sees_every_call_that_is_counted_and_perf_stat_as_many_as_strace() {
    if !has("strace", "strace", "the calls that explain counts are not compared with strace's") {
        return;
    }
    let perf = perf();
    let (place, said) = explained("syscalls", |place| {
        fs::create_dir(place.path("traces")).unwrap();
        let mut words: Vec<String> = Vec::new();
        if let Some(perf) = &perf {
            words.extend(perf.iter().chain(&["stat", "-x,", "-o", "stat"]).map(|word| (*word).to_owned()));
            for number in READ_AND_WRITE {
                let only = format!("id == {number} && ret == {SIZE}");
                words.extend(["-e", "raw_syscalls:sys_exit", "--filter", &only].map(str::to_owned));
            }
        }
        words.extend(["strace", "-ff", "-qq", "-ttt", "-o", "traces/of"].map(str::to_owned));
        let mut command = place.command(&words[0]);
        command.args(&words[1..]);
        command
    });
    if said.err.contains("PTRACE") || said.err.contains("ptrace") {
        skip(
            &format!("strace may not trace here: {}; {AS_ROOT}", said.err.trim()),
            "calls are not compared with it",
        );
        return;
    }
    let said = said.expect(0);
    let Some(explanation) = told_by_explain(&said.out) else { return };

    let (mut told, mut in_all) = (Vec::new(), [0, 0]);
    for (process, lines) in traces(&place) {
        for (at, name, arguments, returned) in calls(&lines) {
            let switches = |request: &str| name == "ioctl" && arguments.contains(request);
            let mut tell = |what| told.push((process.clone(), at, what));
            if switches("PERF_EVENT_IOC_ENABLE") || switches("PERF_EVENT_IOC_DISABLE") {
                let on = switches("ENABLE");
                tell(Told::Switching { on, begins: true });
                tell(Told::Switching { on, begins: false });
            } else {
                tell(Told::Did(format!("{name} = {returned}")));
            }
            if returned == SIZE.to_string() {
                in_all[0] += u64::from(name == "read");
                in_all[1] += u64::from(name == "write");
            }
        }
    }
    // Each end of each trial: every call between the two ioctls, and none beside the messages.
    let seen = while_on(&told, false);
    let each: Counts = ["read", "write"].map(|name| (format!("{name} = {SIZE}"), ITERATIONS)).into();
    assert!(seen.iter().all(|counts| *counts == each), "{seen:?}");

    let mut counted = Counts::new();
    for row in explanation["calls"][1].as_array().unwrap().iter().flat_map(|rows| rows.as_array().unwrap()) {
        for pair in row["returned"].as_array().unwrap() {
            let what = format!("{} = {}", row["name"].as_str().unwrap(), pair[0]);
            *counted.entry(what).or_default() += pair[1].as_u64().unwrap();
        }
    }
    assert_eq!(counted, sum(&seen), "what explain counted, and what strace saw of the same trials");

    if perf.is_some() {
        let stat = fs::read_to_string(place.path("stat")).unwrap();
        let counts = stat.lines().filter(|line| line.contains("raw_syscalls:sys_exit"));
        let counts: Vec<u64> = counts.map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
        assert_eq!(counts, in_all, "reads and writes of the whole run: by perf stat, and by strace\n{stat}");
    }
}

/// What `perf script` says of a record: its thread, its time, its event, and what follows.
fn records(script: &str) -> impl Iterator<Item = (&str, f64, &str, &str)> {
    script.lines().filter_map(|line| {
        let (head, rest) = line.trim().split_once(": ")?;
        let (thread, at) = head.split_once(' ')?;
        let (event, rest) = rest.trim().split_once(':').unwrap_or((rest, ""));
        Some((thread, at.trim().parse().ok()?, event, rest))
    })
}

/// A call of a thread, from when to when.
struct Call {
    is_reading: bool,
    begins: f64,
    ends: f64,
}

/// The two calls between which `explain` counts what is `accounted` so, of all `calls` by which a thread asks for its accounting.
/// The thread reads what the scheduler says when it opens the probe, when it begins and when it ends; its faults it asks for by
/// another call, as soon as it has begun and before it ends.
fn ends_of_counting(calls: &[Call], accounted: Accounted) -> Option<[&Call; 2]> {
    let mut readings = calls.iter().enumerate().filter(|(_, call)| call.is_reading).skip(1);
    let ((begin, first), (end, last)) = (readings.next()?, readings.next()?);
    match accounted {
        Accounted::ByTheScheduler => Some([first, last]),
        Accounted::ByItsMemory => {
            let asked = &calls[begin + 1..end];
            Some([asked.first()?, asked.last()?])
        }
    }
}

#[derive(Clone, Copy)]
enum Accounted {
    ByTheScheduler,
    ByItsMemory,
}

/// Slow: it measures under strace and perf.
#[test]
fn perf_sees_as_many_switches_migrations_and_faults_as_are_counted() {
    use Accounted::{ByItsMemory, ByTheScheduler};
    const COUNTED: [(&str, Accounted); 4] = [
        ("context-switches", ByTheScheduler),
        ("cpu-migrations", ByTheScheduler),
        ("minor-faults", ByItsMemory),
        ("major-faults", ByItsMemory),
    ];
    let Some(perf) = perf() else { return };
    let (place, said) = explained("counters", |place| {
        let mut record = place.command(perf[0]);
        record.args(&perf[1..]).args(["record", "-q", "-m", "8M", "-o", "data", "-c", "1"]);
        record.args(["-e", &COUNTED.map(|(name, _)| name).join(",")]);
        let accounting = format!("id == {PREAD} || id == {GETRUSAGE}");
        for tracepoint in ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"] {
            record.args(["-e", tracepoint, "--filter", &accounting]);
        }
        record
    });
    let said = said.expect(0);
    let Some(explanation) = told_by_explain(&said.out) else { return };
    let mut script = place.command(perf[0]);
    script.args(&perf[1..]).args([
        "script",
        "-i",
        "data",
        "--show-lost-events",
        "-F",
        "tid,time,event,trace",
    ]);
    let script = run(&mut script).expect(0).out;
    if script.contains("PERF_RECORD_LOST") {
        skip("perf lost records; run it again", "what it counts is not compared with what explain counts");
        return;
    }

    let mut calls: BTreeMap<&str, Vec<Call>> = BTreeMap::new();
    let mut told = Vec::new();
    for (thread, at, event, rest) in records(&script) {
        let calls = calls.entry(thread).or_default();
        match (event, calls.last_mut()) {
            ("raw_syscalls", _) if rest.starts_with("sys_enter") => {
                let is_pread = rest.starts_with(&format!("sys_enter: NR {PREAD} "));
                let is_reading = is_pread && rest.split(", ").nth(2) == Some(READING);
                if is_reading || !is_pread {
                    calls.push(Call { is_reading, begins: at, ends: f64::INFINITY });
                }
            }
            ("raw_syscalls", Some(call)) => call.ends = call.ends.min(at),
            ("raw_syscalls", None) => {}
            _ => told.push((thread.to_owned(), at, Told::Did(event.to_owned()))),
        }
    }
    // It is counted from somewhere within one call to somewhere within the other.
    let seen = |accounted| {
        let mut told = told.clone();
        for (thread, calls) in &calls {
            for (call, on) in ends_of_counting(calls, accounted).into_iter().flatten().zip([true, false]) {
                let mut tell = |at, begins| {
                    told.push(((*thread).to_owned(), at, Told::Switching { on, begins }));
                };
                tell(call.begins, true);
                tell(call.ends, false);
            }
        }
        told.sort_by(|(_, a, _), (_, b, _)| a.total_cmp(b));
        let [least, most] = [false, true].map(|switching| while_on(&told, switching));
        assert_eq!(least.len(), most.len());
        [least, most]
    };
    let [of_scheduler, of_memory] = [ByTheScheduler, ByItsMemory].map(seen);
    let iterations = (of_scheduler[0].len() as u64 / 2 * ITERATIONS) as f64;
    let [of_scheduler, of_memory] = [of_scheduler, of_memory].map(|bounds| bounds.map(|seen| sum(&seen)));
    for (name, accounted) in COUNTED {
        let rows = explanation["counters"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        let known = |end: &str| row[end]["known"].as_f64().unwrap() * iterations;
        for end in ["client", "server"] {
            assert!(
                (known(end) - known(end).round()).abs() < 1e-6,
                "{iterations} iterations are those of {row}"
            );
        }
        let counted = (known("client") + known("server")).round() as u64;
        let bounds = match accounted {
            ByTheScheduler => &of_scheduler,
            ByItsMemory => &of_memory,
        };
        let [least, most] = bounds.each_ref().map(|seen| seen.get(name).copied().unwrap_or_default());
        assert!((least..=most).contains(&counted), "{name}: {counted}, and by perf {least} to {most}");
    }
    assert!(of_scheduler[0]["context-switches"] > 0);
}
