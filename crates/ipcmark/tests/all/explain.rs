//! What `explain` sees, against what is known beforehand: exact counts of system calls, and what remains without privileges.
//!
//! What each probe needs is tried first: where the kernel does not allow it, the test says so and checks the reason that
//! is given instead.

use crate::common::{IPCMARK, Place, Said, run, skip};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;

/// A size that no other call of an endpoint has.
const SIZE: i64 = 777;
const ITERATIONS: u64 = 23;
/// Who owns nothing, on every Linux.
const NOBODY: u32 = 65_534;

/// The one explanation that `ipcmark explain --format json` gave.
fn only(said: &Said) -> Value {
    let all: Value = serde_json::from_str(&said.out).unwrap();
    let [one] = all["explanations"].as_array().unwrap().as_slice() else { panic!("{all}") };
    one.clone()
}

/// The arguments of an explanation of exactly so many iterations of a pipe, by `probes`, in `time`: on a busy host each probe takes seconds.
fn of_a_pipe(probes: &str, time: &str) -> Vec<String> {
    let iterations = ITERATIONS.to_string();
    let size = SIZE.to_string();
    let words = [
        "explain",
        "pipe",
        "-s",
        &size,
        "-p",
        "same-core",
        "--iterations",
        &iterations,
        "--time",
        time,
        "--format=json",
        "--probes",
        probes,
    ];
    words.map(str::to_owned).to_vec()
}

/// Why `probe` saw nothing; `None` if it saw something.
fn absence(explanation: &Value, probe: &str) -> Option<String> {
    let probes = explanation["probes"].as_array().unwrap();
    let row =
        probes.iter().find(|row| row["probe"] == probe).unwrap_or_else(|| panic!("{probe} is not told of"));
    row["absent"].as_str().map(str::to_owned)
}

/// Each end made exactly one read and one write an iteration, each of which returned the message's size.
fn assert_counts(explanation: &Value, probe: &str) {
    assert_eq!(explanation["calls"][0], probe);
    for end in explanation["calls"][1].as_array().unwrap() {
        let rows = end.as_array().unwrap();
        let count = rows[0]["count"].as_u64().unwrap();
        let expected = serde_json::json!([[SIZE, count]]);
        let mut names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["read", "write"]);
        for row in rows {
            // Whole trials of 23 iterations, each call of which moved one message, and no call beside them.
            assert_eq!(
                (row["count"].as_u64(), row["per_iteration"].as_f64()),
                (Some(count), Some(1.0)),
                "{row}"
            );
            assert_eq!((&row["returned"], row["restarts"].as_u64()), (&expected, Some(0)), "{row}");
        }
        assert_eq!(count % ITERATIONS, 0);
        assert!(count > 0);
    }
}

/// Slow: it explains for some seconds.
#[test]
fn twenty_three_iterations_of_a_pipe_are_forty_six_reads_and_writes_by_tracepoints() {
    let place = Place::new();
    let explanation = only(&run(&mut place.ipcmark(of_a_pipe("syscalls", "12s"))).expect(0));
    match absence(&explanation, "syscalls") {
        None => assert_counts(&explanation, "syscalls"),
        Some(reason) => {
            skip(&reason, "counts by tracepoints are not tested");
            assert!(reason.contains("sudo"), "{reason}");
        }
    }
    assert!(place.leftovers().is_empty());
}

/// Slow: it explains for some seconds.
#[test]
fn twenty_three_iterations_of_a_pipe_are_forty_six_reads_and_writes_by_stopping_at_each() {
    let place = Place::new();
    let explanation = only(&run(&mut place.ipcmark(of_a_pipe("ptrace", "12s"))).expect(0));
    match absence(&explanation, "ptrace") {
        None => assert_counts(&explanation, "ptrace"),
        Some(reason) => {
            skip(&reason, "counts by ptrace are not tested");
            assert!(reason.contains(';'), "{reason}");
        }
    }
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn what_the_scheduler_tells_fills_the_iterations() {
    let place = Place::new();
    let mut arguments = of_a_pipe("scheduler", "12s");
    arguments.extend(["--endpoints".to_owned(), "threads".to_owned()]);
    let explanation = only(&run(&mut place.ipcmark(arguments)).expect(0));
    if let Some(reason) = absence(&explanation, "scheduler") {
        return skip(&reason, "what the scheduler tells is not tested");
    }
    let overlap = |name: &str| explanation["overlap"][name].as_f64().unwrap();
    // On one CPU at most one endpoint runs at a time, up to what lies between a switch and its record.
    assert!(overlap("both_ns") < 0.2 * (overlap("client_ns") + overlap("server_ns")), "{explanation}");
    for end in explanation["schedule"].as_array().unwrap() {
        let number = |name: &str| end[name].as_f64().unwrap();
        let all = number("running_ns") + number("asleep_ns") + number("preempted_ns");
        assert!(number("running_ns") > 0.0 && all > number("running_ns"), "{end}");
        // Each end gives the CPU away once an iteration, by going to sleep or by waking the other.
        let given_away = number("sleeps") + number("preemptions");
        assert!((0.5..3.0).contains(&given_away), "{end}");
    }
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn samples_are_taken_at_several_rates_and_shares_extrapolated_to_none() {
    let place = Place::new();
    let mut arguments = of_a_pipe("sampling", "20s");
    let at = arguments.iter().position(|word| word == "--iterations").unwrap();
    // Trials as long as they are without a number of iterations have samples enough.
    arguments.drain(at..at + 2);
    let explanation = only(&run(&mut place.ipcmark(arguments)).expect(0));
    if let Some(reason) = absence(&explanation, "sampling") {
        return skip(&reason, "rates of samples are not tested");
    }
    let rates = explanation["sampling_rates"].as_array().unwrap();
    let names: Vec<&str> = rates.iter().map(|of| of["rate"].as_str().unwrap()).collect();
    assert_eq!(names, ["quarter", "half", "full"], "{rates:?}");
    let trials: u64 = rates.iter().map(|of| of["trials"].as_u64().unwrap()).sum();
    let row =
        explanation["probes"].as_array().unwrap().iter().find(|row| row["probe"] == "sampling").unwrap();
    let most_frequent = &explanation["subsystems"][0];
    let share = &most_frequent["client"];
    if rates.iter().any(|of| of["trials"].as_u64() < Some(2)) || trials < 6 {
        return assert!(
            share["interval"].is_null() && row["effect_at_no_samples"].is_null(),
            "{explanation}"
        );
    }
    let bound = |of: &Value, which: usize| of["interval"][which].as_f64().unwrap();
    let mean = share["mean"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&mean) && bound(share, 0) <= mean && mean <= bound(share, 1), "{share}");
    // Open events cost what they cost: an effect that is above 0, and less than that of every probe that stops an endpoint.
    let Some(open) = row["effect_at_no_samples"]["mean"].as_f64() else {
        // On a busy host the interval may reach as far as an iteration of which nothing is left, and then it is not told. That with all samples is.
        return assert!(row["effect"]["median"].as_f64() > Some(0.1), "{row}");
    };
    assert!(open > 0.1 && open < 10.0, "{row}");
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn a_pipe_copies_each_byte_twice_and_shared_memory_not_at_all() {
    let place = Place::new();
    let explanation = only(&run(&mut place.ipcmark(of_a_pipe("syscalls,ptrace", "12s"))).expect(0));
    let copies = &explanation["copies"];
    if copies.is_null() {
        return skip(
            "system calls cannot be seen here; run `sudo cargo xtask test`",
            "copies are not tested",
        );
    }
    assert_eq!(copies["by_kernel"], 2.0);
    let of_ring = of_a_pipe("syscalls,ptrace", "12s").into_iter().map(|word| match word.as_str() {
        "pipe" => "shm-ring".to_owned(),
        _ => word,
    });
    let explanation = only(&run(&mut place.ipcmark(of_ring)).expect(0));
    assert_eq!(explanation["copies"]["by_kernel"], 0.0);
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn an_ordinary_user_gets_what_remains_and_is_told_what_grants_the_rest() {
    let place = Place::new();
    let all = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(place.path("."), all(0o777)).unwrap();
    assert!(place.command("cp").arg(IPCMARK).arg(place.path("ipcmark")).status().unwrap().success());
    fs::set_permissions(place.path("ipcmark"), all(0o755)).unwrap();
    let mut command = place.command(place.path("ipcmark"));
    let arguments = of_a_pipe("counters,syscalls,ptrace,scheduler,faults,sampling,timeline", "12s");
    command.args(arguments);
    if rustix::process::geteuid().is_root() {
        chown(place.tmp(), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let explanation = only(&run(&mut command).expect(0));
    assert!(explanation["iteration_ns"]["median"].as_f64().unwrap() > 0.0);
    for probe in ["counters", "syscalls", "ptrace", "scheduler", "faults", "sampling", "timeline"] {
        if let Some(reason) = absence(&explanation, probe) {
            assert!(reason.contains("; "), "{probe} has no next step: {reason}");
        }
    }
    if absence(&explanation, "ptrace").is_none() {
        let probe = if absence(&explanation, "syscalls").is_none() { "syscalls" } else { "ptrace" };
        assert_counts(&explanation, probe);
    }
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn a_page_of_it_replaces_another_if_it_is_asked_to() {
    let place = Place::new();
    let mut arguments = of_a_pipe("counters", "4s");
    let page = place.path("why.html");
    arguments.extend(["--html".to_owned(), page.display().to_string()]);
    for overwrite in [&[][..], &["--overwrite"]] {
        // The text is as it is without a page.
        only(&run(place.ipcmark(&arguments).args(overwrite)).expect(0));
        let written = fs::read_to_string(&page).unwrap();
        for text in ["pipe latency 777 same-core", "explain pipe -s 777", "cost of the probes"] {
            assert!(written.contains(text), "{text}: {written}");
        }
    }
    fs::write(&page, "mine").unwrap();
    let said = run(&mut place.ipcmark(&arguments)).expect(2);
    assert!(said.err.contains("why.html exists"), "{}", said.err);
    assert_eq!((said.out.as_str(), fs::read_to_string(&page).unwrap().as_str()), ("", "mine"));
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn one_mechanism_is_explained_against_another() {
    let place = Place::new();
    let page = place.path("page.html");
    let words =
        ["explain", "eventfd", "--against", "pipe", "-s", "8", "-p", "same-core", "--time", "4s", "--html"];
    let said = run(place.ipcmark(words).arg(&page));
    if !said.out.contains("eventfd") {
        return skip(said.err.trim(), "no mechanism is explained against another");
    }
    assert!(said.out.contains("eventfd") && said.out.contains("pipe"), "{}", said.out);
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{}", said.out);
    let html = fs::read_to_string(&page).unwrap();
    for text in [
        "eventfd latency same-core",
        "pipe latency 8 same-core",
        "the difference, segment by segment",
        "<svg",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
    fs::write(&page, "mine").unwrap();
    let said = run(place.ipcmark(words).arg(&page)).expect(2);
    assert!(said.err.contains("page.html exists"), "{said}");
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn a_case_is_explained_against_that_of_another_build() {
    let place = Place::new();
    let other = place.path("other");
    fs::copy(IPCMARK, &other).unwrap();
    let words = ["explain", "pipe", "-s", "8", "-p", "same-core", "--time", "12s", "--against"];
    let said = run(place.ipcmark(words).arg(&other));
    if !said.out.contains("pipe") {
        return skip(said.err.trim(), "no build is explained against another");
    }
    let heading = format!("pipe latency 8 same-core against that of {}", other.display());
    assert!(said.out.starts_with(&heading[..40]), "{heading}: {}", said.out);
    assert!(said.out.contains("pipe 8 of this build"), "{}", said.out);
    // What is no ipcmark is refused before anything is measured.
    let said = run(place.ipcmark(words).arg("/bin/true")).expect(2);
    assert!(said.err.contains("/bin/true is no ipcmark whose endpoints"), "{said}");
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn segments_add_up_to_the_observed_iteration_and_its_typical_path_to_itself() {
    let place = Place::new();
    let explanation = only(&run(&mut place.ipcmark(of_a_pipe("scheduler", "12s"))).expect(0));
    let path = &explanation["path"];
    if path.is_null() {
        return skip(&explanation["unrecorded"].to_string(), "the path is not tested");
    }
    let mean = |of: &Value| of["mean"].as_f64().unwrap();
    let lines = path["segments"].as_array().unwrap();
    for kind in ["observed_ns", "corrected_ns"] {
        let sum: f64 = lines.iter().map(|line| mean(&line[kind])).sum();
        assert!((sum - mean(&path[kind])).abs() < 0.01, "{path:#}");
    }
    let residual = mean(&path["corrected_ns"]) - mean(&path["bare_ns"]);
    assert!((residual - mean(&path["residual_ns"])).abs() < 0.01);
    let typical = &path["typical"];
    let ns = |of: &Value, name: &str| of[name].as_u64().unwrap();
    let mut at_ns = ns(typical, "from_ns");
    for segment in typical["segments"].as_array().unwrap() {
        assert_eq!(ns(segment, "from_ns"), at_ns);
        at_ns = ns(segment, "until_ns");
    }
    assert_eq!(at_ns, ns(typical, "until_ns"));
}
