//! Scenarios: what is read can be written, and is read again as the same.

#![no_main]

use fuzz::CARDS;
use libfuzzer_sys::fuzz_target;
use model::Scenario;

fuzz_target!(|text: &str| {
    let Ok(scenario) = Scenario::parse(text, CARDS) else { return };
    let written = scenario.to_toml();
    let again = Scenario::parse(&written, CARDS).expect("what was written can be read");
    assert_eq!(again.to_toml(), written);
    assert_eq!((again.processes.len(), again.flows.len()), (scenario.processes.len(), scenario.flows.len()));
});
