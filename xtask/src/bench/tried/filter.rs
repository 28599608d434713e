//! `cargo xtask bench try filter`: a loop of round trips of one byte over pipes under the filter of `ipcmark try`, over the same without it; and
//! how many of its calls were answered by the supervisor.

use super::ratio::{Rates, change, ratio_words, said};
use crate::steps::root;
use exchange::ProgramExchanges;
use harness::programs::Programs;
use harness::programs::ready::Ready;
use harness::programs::started::{StartedProgram, Variant};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::ffi::OsString;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const ROUND_TRIPS: u32 = 100_000;

/// Runs the loop with and without the filter in turn.
pub(super) fn run(passes: u64) -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let program = directory.path().join("round_trips");
    let source = root().join("xtask/src/bench/tried/programs/round_trips.c");
    let compiled = Command::new("cc").arg("-O2").arg("-o").arg(&program).arg(source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return Err("compile round_trips.c: no C compiler could; apt-get install gcc libc6-dev".to_owned());
    }
    let programs = Programs {
        servers: Vec::new(),
        ready: Ready::Listening,
        command: vec![program.into_os_string(), OsString::from(ROUND_TRIPS.to_string())],
        timeout: Duration::from_secs(60),
    };
    let mut one = CpuSet::new();
    one.set(0);
    sched_setaffinity(None, &one).map_err(|errno| errno.to_string())?;
    let variants = [Variant::Free, Variant::Answered(ProgramExchanges::default())];
    let mut starts = Vec::new();
    let mut calls = 0;
    for pass in 0..passes as u32 {
        let mut order = [0, 1];
        if !pass.is_multiple_of(2) {
            order.reverse();
        }
        for variant in order {
            let (rate, answered) = one_start(&programs, &variants[variant])?;
            calls = calls.max(answered);
            starts.push(Rates { variant, pass, per_s: vec![rate] });
        }
    }
    let rate = change(&starts, 0, 1);
    println!(
        "round trips of 1 byte over pipes on one CPU, under the filter over without it: {}",
        ratio_words(rate)
    );
    println!(
        "of the {} calls that carry data the supervisor saw none: it answered {calls} calls",
        4 * ROUND_TRIPS
    );
    Ok(())
}

/// The rate of one run, and how many calls the supervisor answered.
fn one_start(programs: &Programs, variant: &Variant) -> Result<(f64, u64), String> {
    let nobody = AtomicBool::new(false);
    let started = StartedProgram::new(programs, variant, &nobody).map_err(said)?;
    let output = started.run().map_err(said)?.output;
    let rate = output.trim().parse().map_err(|_| format!("round_trips printed '{output}'"))?;
    let observed = started.end().map_err(said)?.unwrap_or_default();
    Ok((rate, observed.calls))
}
