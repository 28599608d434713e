//! Tests of the scheduler, without its policies, which have tests of their own.

use super::fake_trials::{FakeTrials, SLICE_TIME, case, failure};
use super::schedule::{Scheduler, Stop, TrialProgress, Trials};
use super::trial_error::TrialError;
use crate::protocol::orders::{Singly, Sizing, SliceOrders};
use model::observation::{Probe, ProbeRequest};

const SIZE: Sizing = Sizing::Iterations(1);
const ORDERS: SliceOrders = SliceOrders { size: SIZE, singly: Singly::Last };

#[test]
fn a_slice_is_measured_fails_in_words_or_stops_the_scheduler() {
    let answer = |before, _: &str| match before {
        0 => Ok(5.0),
        1 => Err(failure("no")),
        _ => Err(TrialError::Interrupted),
    };
    let trials = FakeTrials::new(&answer);
    let mut scheduler = Scheduler::new(trials.budget(10 * SLICE_TIME));
    let mut trial = scheduler.start(&trials, &case("a"), None).unwrap().unwrap();
    let mut slice = || scheduler.slice(&trials, &mut *trial, ORDERS);
    assert_eq!(slice().unwrap().unwrap().sample.iteration_ns(), 5.0);
    assert_eq!(slice().unwrap().unwrap_err(), failure("no").to_string());
    assert_eq!(slice().unwrap_err(), Stop::Interrupted);
}

#[test]
fn time_that_is_up_is_found_out_by_who_asks_and_an_observation_needs_none() {
    let trials = FakeTrials::new(&|_, _| Ok(1.0));
    let mut scheduler = Scheduler::new(trials.budget(SLICE_TIME));
    assert_eq!(scheduler.check_time(), Ok(()));
    let request = ProbeRequest { probe: Some(Probe::Syscalls), ..ProbeRequest::default() };
    assert!(scheduler.observe(&trials, &case("a"), SIZE, &request).unwrap().is_ok());
    assert_eq!(scheduler.check_time(), Err(Stop::TimeIsUp));
    assert!(scheduler.observe(&trials, &case("a"), SIZE, &request).unwrap().is_ok());
    assert_eq!(trials.order(), "a+syscalls a+syscalls");
}

#[test]
fn nothing_begins_after_an_interruption() {
    let trials = FakeTrials::new(&|_, _| Ok(1.0)).interrupted_after(0);
    let mut scheduler = Scheduler::new(trials.budget(SLICE_TIME));
    assert!(matches!(scheduler.start(&trials, &case("a"), None), Err(Stop::Interrupted)));
    let mut trial = trials.start(&case("a"), 0, None).unwrap();
    assert_eq!(scheduler.slice(&trials, &mut *trial, ORDERS).unwrap_err(), Stop::Interrupted);
    assert_eq!(trials.count(), 0);
}

#[test]
fn progress_is_a_share_of_the_time() {
    let trials = FakeTrials::new(&|_, _| Ok(1.0));
    let mut scheduler = Scheduler::new(trials.budget(4 * SLICE_TIME));
    let mut trial = scheduler.start(&trials, &case("a"), None).unwrap().unwrap();
    assert!(scheduler.slice(&trials, &mut *trial, ORDERS).is_ok());
    let progress = scheduler.progress(Some(3), 1, 2);
    let expected = TrialProgress { round: Some(3), done: 1, of: 2, share: 0.25, left: 3 * SLICE_TIME };
    assert_eq!(progress, expected);
}

/// Trials that were given a number twice would panic.
#[test]
fn what_follows_on_a_run_has_numbers_of_its_own() {
    let trials = FakeTrials::new(&|_, _| Ok(1.0));
    for _ in 0..2 {
        let mut scheduler = Scheduler::new(trials.budget(SLICE_TIME));
        assert!(scheduler.start(&trials, &case("a"), None).unwrap().is_ok());
    }
}
