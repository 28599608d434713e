//! Whether `explain` finds a cause that was put in, in the segment of the path where it was put in.
//!
//! It is sought in a typical iteration, because other tests run on the same CPUs, so that means are of what these do, too. How
//! well the times agree, `cargo xtask bench explain` says on an idle host.

use crate::common::{Place, run, skip};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use std::fs;
use std::process::{Child, Stdio};

/// The segments of `path` whose place has these values: who, and what it is spent on.
fn of_kind<'a>(path: &'a Value, of: &str, kind: &str) -> Vec<&'a Value> {
    let segments = path["typical"]["segments"].as_array().unwrap();
    segments.iter().filter(|one| one["place"]["of"] == of && one["place"]["kind"] == kind).collect()
}

fn ns(segment: &Value) -> u64 {
    segment["until_ns"].as_u64().unwrap() - segment["from_ns"].as_u64().unwrap()
}

/// The longest of `segments`, in nanoseconds; 0 if there is none.
fn longest_ns(segments: &[&Value]) -> u64 {
    segments.iter().map(|segment| ns(segment)).max().unwrap_or(0)
}

/// The path of the case that `words` name, the first in which `is_found`; `None` where this kernel does not let us record it,
/// which is said. What else runs may take all the time of a try, or have the CPUs in all of it: the next has more.
fn path(place: &Place, words: &[&str], is_found: impl Fn(&Value) -> bool) -> Option<Value> {
    const TIMES: [&str; 6] = ["5s", "5s", "10s", "20s", "40s", "80s"];
    let mut tries = Vec::new();
    for time in TIMES {
        let words = ["explain"].into_iter().chain(words.iter().copied());
        let words = words.chain(["--time", time, "--probes", "scheduler", "--format=json"]);
        let said = run(&mut place.ipcmark(words));
        assert!(place.leftovers().is_empty());
        let all: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said}"));
        let explanation = &all["explanations"][0];
        let path = &explanation["path"];
        if let Some(costs) = path["costs"].as_array() {
            if !costs.iter().any(|cost| cost["set"] == "calls") {
                skip(
                    "system calls cannot be recorded here; run `sudo cargo xtask test`",
                    "injected causes are not sought in segments",
                );
                return None;
            }
            if is_found(path) {
                return Some(path.clone());
            }
        } else if explanation["unrecorded"].as_array().is_some_and(|sets| sets.iter().any(is_refusal)) {
            skip(&explanation["unrecorded"].to_string(), "injected causes are not sought");
            return None;
        }
        tries.push(format!("{}{path:#}", said.err));
    }
    panic!("not found in {} tries: {}", tries.len(), tries.join("\n"));
}

/// Whether a set of events could not be opened: each is named before the reason. Else there was too little time.
fn is_refusal(reason: &Value) -> bool {
    let names = ["switches:", "wake-ups:", "calls:"];
    reason.as_str().is_some_and(|reason| names.iter().any(|name| reason.starts_with(name)))
}

/// A delay of 50 µs, which is calibrated to 2%, lies in the user code of `side`, and not in that of `other`.
fn is_found_in_user_code(side: &str, other: &str, inject: &str) {
    path(&Place::new(), &["pipe", "--inject", inject, "-s", "1", "-p", "same-core"], |path| {
        longest_ns(&of_kind(path, side, "user")) >= 49_000
            && longest_ns(&of_kind(path, other, "user")) < 49_000
    });
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn a_delay_in_the_client_is_found_in_its_own_code() {
    is_found_in_user_code("client", "server", "50us");
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn a_delay_in_the_server_is_found_in_its_own_code() {
    is_found_in_user_code("server", "client", "server:50us");
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn a_sleep_is_found_as_sleep_of_who_sleeps() {
    let place = Place::new();
    let words = ["pipe", "--inject", "server:sleep:200us", "-s", "1", "-p", "same-core"];
    // The kernel may not record the timer's interrupt of an idle CPU: then the sleep lasts until the switch.
    path(&place, &words, |path| {
        longest_ns(&of_kind(path, "server", "asleep")) >= 190_000
            && of_kind(path, "client", "asleep").is_empty()
    });
}

/// A process that does not outlive this.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn a_task_on_the_same_cpu_is_named() {
    /// The name of the task: what the kernel keeps of a program's name.
    const NAME: &str = "competitor";
    let place = Place::new();
    let shell = place.path(NAME);
    fs::copy("/bin/sh", &shell).unwrap();
    let allowed = sched_getaffinity(None).unwrap();
    let cpu = (0..CpuSet::MAX_CPU).find(|at| allowed.is_set(*at)).unwrap();
    let mut one = CpuSet::new();
    one.set(cpu);
    let mut busy = place.command(&shell);
    let busy = Killed(busy.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap());
    sched_setaffinity(Some(Pid::from_child(&busy.0)), &one).unwrap();
    let placement = format!("cpus={cpu},{cpu}");
    // For so long that the task runs meanwhile.
    let words = ["pipe", "-s", "1", "-p", &placement, "--iterations", "2000", "--inject", "10us"];
    path(&place, &words, |path| path["tasks"].as_array().unwrap().iter().any(|task| task[0] == NAME));
    drop(busy);
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn a_buffer_that_is_too_small_is_found_in_writes_that_sleep() {
    let place = Place::new();
    let writes_that_sleep = |mechanism| {
        let path = path(&place, &[mechanism, "-s", "64K", "-p", "same-core"], |_| true)?;
        let sleeps = ["client", "server"].map(|of| of_kind(&path, of, "until-sleep"));
        // In x86-64, aarch64 and riscv64, read(2) and write(2) differ in their numbers: whose is which, the first call says.
        let of_first =
            |call: &Value| sleeps.iter().flatten().filter(|one| one["place"]["call"] == *call).count();
        let first =
            path["typical"]["segments"].as_array().unwrap().iter().find(|one| one["place"]["call"].is_u64());
        Some(of_first(&first.unwrap()["place"]["call"]))
    };
    let Some(enough) = writes_that_sleep("unix-stream") else { return };
    let Some(little) = writes_that_sleep("unix-stream:sndbuf=4K") else { return };
    assert!(little > enough, "{little} writes slept with a small buffer, {enough} with the usual one");
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn memory_that_is_touched_first_is_found_in_page_faults() {
    let place = Place::new();
    let faults = |path: &Value| {
        let segments = path["segments"].as_array().unwrap();
        let of_faults = segments.iter().filter(|line| line["place"]["kind"] == "page-fault");
        of_faults.map(|line| line["events"].as_f64().unwrap()).sum::<f64>()
    };
    let words = |mechanism| [mechanism, "-s", "256K", "-p", "same-core", "--iterations", "2"];
    let Some(warm) = path(&place, &words("pipe"), |_| true) else { return };
    // 64 pages of each endpoint, touched first in one of two iterations. Faults are recorded in trials of their own, of which a busy host has none
    // in a short time.
    path(&place, &words("pipe:memory=cold"), |cold| faults(cold) > faults(&warm) + 32.0);
}
