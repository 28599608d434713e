//! `cargo xtask bench try [NAME [PASSES]]`: what an exchange by `ipcmark try` does to servers that people use, beside what the server's own
//! Unix socket does; and what the filter costs. All variants of a server run in turn, in every second pass in the opposite order.

mod filter;
pub(super) mod predicted;
mod ratio;
mod workload;

use super::setup::numbers;
use exchange::{ProgramExchange, ProgramExchanges};
use harness::programs::Programs;
use harness::programs::started::{StartedProgram, Variant, last_line};
use ratio::{POINTS, Rates, change, ratio_words, said};
use regex::Regex;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use workload::{Prepared, Workload};

/// The variants: as it is, exchanged, by its own Unix socket.
const AS_IT_IS: usize = 0;
const EXCHANGED: usize = 1;
const OWN: usize = 2;

/// Runs all workloads, or those whose name begins so; `filter` is what the filter costs.
pub(super) fn run(arguments: &[&str]) -> Result<(), String> {
    let (only, rest) = arguments.split_first().map_or(("", arguments), |(only, rest)| (*only, rest));
    let [passes] = numbers(rest, [16])?;
    if only == "filter" {
        return filter::run(passes);
    }
    println!(
        "Rates over those by TCP; 95% intervals. With one connection all is on one CPU: where the scheduler puts two that take turns"
    );
    println!("changes more than the mechanism does.\n");
    println!(
        "| program | connections | exchanged | its own Unix socket | exchanged over own | within {POINTS} or the interval |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let all = sched_getaffinity(None).map_err(|errno| errno.to_string())?;
    for workload in workload::read(only)? {
        let prepared = match workload.prepare() {
            Ok(prepared) => prepared,
            Err(why) => {
                println!("| {} | | {why} | | | |", workload.name);
                continue;
            }
        };
        for run in &workload.runs {
            let connections = run.get("CONNECTIONS").copied().unwrap_or(1);
            let cpus = if connections == 1 { first_of(&all) } else { all };
            sched_setaffinity(None, &cpus).map_err(|errno| errno.to_string())?;
            let said = match in_turn(&workload, &prepared, run, passes as u32, &[AS_IT_IS, EXCHANGED, OWN]) {
                Ok(starts) => verdict(&starts),
                Err(why) => format!("{why} | | |"),
            };
            println!("| {} | {connections} | {said} |", workload.name);
        }
        sched_setaffinity(None, &all).map_err(|errno| errno.to_string())?;
    }
    Ok(())
}

fn first_of(all: &CpuSet) -> CpuSet {
    let mut one = CpuSet::new();
    if let Some(cpu) = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)) {
        one.set(cpu);
    }
    one
}

/// Runs the `wanted` variants in turn.
fn in_turn(
    workload: &Workload,
    prepared: &Prepared<'_>,
    run: &BTreeMap<String, u32>,
    passes: u32,
    wanted: &[usize],
) -> Result<Vec<Rates>, String> {
    let [tcp, own] = prepared.programs(run)?;
    let rate = Regex::new(&workload.metric).map_err(|error| error.to_string())?;
    let exchange: ProgramExchange = workload.exchanges.parse().map_err(|error| format!("{error}"))?;
    let exchanged = Variant::Answered(ProgramExchanges(vec![exchange]));
    let unchanged = Variant::Answered(ProgramExchanges::default());
    let variants = [(&tcp, &unchanged), (&tcp, &exchanged), (&own, &unchanged)];
    let mut starts = Vec::new();
    for pass in 0..passes {
        let mut order = wanted.to_vec();
        if !pass.is_multiple_of(2) {
            order.reverse();
        }
        for variant in order {
            let (programs, calls) = variants[variant];
            let per_s = rates(programs, calls, &rate, variant == EXCHANGED)?;
            starts.push(Rates { variant, pass, per_s });
        }
    }
    Ok(starts)
}

/// The rates of two runs with one start of the servers, the first after it not counted.
fn rates(programs: &Programs, calls: &Variant, rate: &Regex, is_exchanged: bool) -> Result<Vec<f64>, String> {
    const RUNS: usize = 2;
    let nobody = AtomicBool::new(false);
    let started = StartedProgram::new(programs, calls, &nobody).map_err(said)?;
    let mut runs = Vec::new();
    for _ in 0..=RUNS {
        let run = started.run().map_err(said)?;
        let found = rate.captures(&run.output).and_then(|found| found[1].parse::<f64>().ok());
        match found.filter(|rate| *rate > 0.0) {
            Some(rate) => runs.push(rate),
            None => return Err(format!("no rate: {}", last_line(&run.output))),
        }
    }
    let observed = started.end().map_err(said)?.unwrap_or_default();
    if is_exchanged && observed.exchanged == 0 {
        return Err("nothing was exchanged".to_owned());
    }
    Ok(runs.split_off(1))
}

/// The columns of a table: both changes, one over the other, and whether they agree.
fn verdict(starts: &[Rates]) -> String {
    let [exchanged, own] = [EXCHANGED, OWN].map(|variant| change(starts, AS_IT_IS, variant));
    let over = change(starts, OWN, EXCHANGED);
    let agrees = over.is_some_and(|ratio| {
        (ratio.mean - 1.0).abs() <= POINTS
            || ratio.interval.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high)
    });
    let words = [exchanged, own, over].map(ratio_words).join(" | ");
    format!("{words} | {}", if agrees { "yes" } else { "**no**" })
}
