//! Tests of the scheduler, without its policies, which have tests of their own.

use super::fake_trials::{FakeTrials, TRIAL_TIME, case, failure};
use super::schedule::{Scheduler, Stop, TrialProgress};
use super::trial_error::TrialError;
use crate::protocol::orders::Sizing;
use model::observation::ProbeRequest;

const SIZE: Sizing = Sizing::Iterations(1);

#[test]
fn a_trial_is_measured_fails_in_words_or_stops_the_scheduler() {
    let answer = |before, _: &str| match before {
        0 => Ok(5.0),
        1 => Err(failure("no")),
        _ => Err(TrialError::Interrupted),
    };
    let trials = FakeTrials::new(&answer);
    let mut scheduler = Scheduler::new(&trials, trials.budget(10 * TRIAL_TIME));
    let mut trial = || scheduler.measure(&case("a"), SIZE);
    assert_eq!(trial().unwrap().unwrap().sample.iteration_ns(), 5.0);
    assert_eq!(trial().unwrap().unwrap_err(), failure("no").to_string());
    assert_eq!(trial().unwrap_err(), Stop::Interrupted);
}

#[test]
fn no_trial_begins_when_time_is_up_but_one_that_needs_none() {
    let trials = FakeTrials::new(&|_, _| Ok(1.0));
    let mut scheduler = Scheduler::new(&trials, trials.budget(TRIAL_TIME));
    assert!(scheduler.measure(&case("a"), SIZE).is_ok());
    assert_eq!(scheduler.measure(&case("a"), SIZE).unwrap_err(), Stop::TimeIsUp);
    let request = ProbeRequest { probe: None, counters: Vec::new() };
    assert!(scheduler.observe(&case("a"), SIZE, &request).is_ok());
    assert_eq!(trials.count(), 2);
}

#[test]
fn no_trial_begins_after_an_interruption() {
    let trials = FakeTrials::new(&|_, _| Ok(1.0)).interrupted_after(0);
    let mut scheduler = Scheduler::new(&trials, trials.budget(TRIAL_TIME));
    assert_eq!(scheduler.measure(&case("a"), SIZE).unwrap_err(), Stop::Interrupted);
    assert_eq!(trials.count(), 0);
}

#[test]
fn progress_is_a_share_of_the_time() {
    let trials = FakeTrials::new(&|_, _| Ok(1.0));
    let mut scheduler = Scheduler::new(&trials, trials.budget(4 * TRIAL_TIME));
    assert!(scheduler.measure(&case("a"), SIZE).is_ok());
    let progress = scheduler.progress(Some(3), 1, 2);
    let expected = TrialProgress { round: Some(3), done: 1, of: 2, share: 0.25, left: 3 * TRIAL_TIME };
    assert_eq!(progress, expected);
}
