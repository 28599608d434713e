//! Runs with drivers that are ended while they start or measure: no driver outlives them.

use crate::common::{GONE_WITHIN, Place, Running, wait_until};
use crate::drivers::{TEMPLATE, has_python, ipcmark};
use rustix::process::Signal;

/// How many processes in `place` have been started on `script`.
fn started_on(place: &Place, script: &str) -> usize {
    let is_one = |command: &[String]| command.iter().any(|word| word == script);
    place.processes().iter().filter(|process| is_one(&process.command)).count()
}

#[test]
fn an_interrupt_before_a_driver_has_answered_ends_the_run_as_one_afterwards() {
    if !has_python() {
        return;
    }
    let place = Place::new();
    place.file("silent.py", "import time; time.sleep(600)");
    let line = ["run", "pipe", "--endpoint", "python3 silent.py", "-s", "1", "--timeout", "600s"];
    let running = Running::start(&mut ipcmark(&place, &line));
    assert!(wait_until(GONE_WITHIN, || started_on(&place, "silent.py") >= 1));
    running.signal(Signal::INT);
    running.finish().expect(130);
    place.assert_nothing_is_left("a run whose driver said nothing");
}

/// Slow: it waits until nothing is left.
#[test]
fn a_coordinator_that_is_killed_leaves_no_driver() {
    if !has_python() {
        return;
    }
    for signal in [Signal::KILL, Signal::INT] {
        let place = Place::new();
        place.file("right.py", TEMPLATE);
        let line = ["run", "pipe", "--endpoint", "python3 right.py", "-s", "1", "--time", "600s"];
        let running = Running::start(&mut ipcmark(&place, &line));
        assert!(wait_until(GONE_WITHIN, || started_on(&place, "right.py") >= 2));
        running.signal(signal);
        running.finish();
        place.assert_nothing_is_left("a run with drivers that was ended");
    }
}
