//! `cargo xtask bench coverage`: how often the interval that a run prints covers what all runs together say.
//!
//! The runs are spread over many minutes, so that the host has time to change. Each is a process of its own, as people start
//! it. The pooled value of a case is the median of all runs' medians. It is not the truth, but it varies far less than one run.

use super::ipcmark::Ipcmark;
use super::setup::numbers;
use analysis::run::RunModel;
use analysis::stats::median;
use harness::clock::Timer;
use model::estimate::Estimate;
use model::record::Record;
use model::results::parse;
use model::units::format_ns;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::time::Duration;

/// What is measured: a round trip of a byte, on one core and on two.
const MECHANISMS: [&str; 5] = ["pipe", "unix-stream", "tcp", "eventfd", "posix-mq"];
const PLACEMENTS: [&str; 2] = ["same-core", "same-llc"];

/// Evaluates what was measured before.
const AGAIN: &str = "again";

/// What one run says of one case.
struct RunEstimate {
    iteration_ns: Estimate,
    trials: u32,
}

/// Measures ten cases again and again. Arguments: how many runs (12), the seconds of each (60), and the minutes over which they
/// are spread (20); with [`AGAIN`] after them the samples of the last time are evaluated by this build.
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let (arguments, is_again) = match arguments {
        [first @ .., AGAIN] => (first, true),
        all => (all, false),
    };
    let [runs, seconds, minutes] = numbers(arguments, [12, 60, 20])?;
    let build = if is_again { Ipcmark::build_again } else { Ipcmark::build };
    let ipcmark = build("bench-coverage")?;
    let time = format!("{seconds}s");
    let mut arguments = vec!["-w", "latency", "-s", "1", "--time", &time];
    arguments.extend(MECHANISMS);
    PLACEMENTS.iter().for_each(|placement| arguments.extend(["-p", placement]));
    let begun = Timer::start();
    let between = Duration::from_secs(60 * minutes) / u32::try_from(runs.max(2) - 1).unwrap_or(u32::MAX);
    let mut cases: BTreeMap<String, Vec<RunEstimate>> = BTreeMap::new();
    for number in 0..u32::try_from(runs).unwrap_or(u32::MAX) {
        let name = number.to_string();
        if !is_again {
            std::thread::sleep((between * number).saturating_sub(begun.elapsed()));
            ipcmark.run(&arguments, &name)?;
        }
        for (case, estimate) in estimates_of(&ipcmark, &name)? {
            cases.entry(case).or_default().push(estimate);
        }
    }
    print(&cases);
    Ok(())
}

/// What the run `name` says of each of its cases.
fn estimates_of(ipcmark: &Ipcmark, name: &str) -> Result<Vec<(String, RunEstimate)>, String> {
    let file = ipcmark.file(name);
    let open = File::open(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let results =
        parse(BufReader::new(open), &file.to_string_lossy()).map_err(|invalid| invalid.to_string())?;
    let model = RunModel::of_results(&results);
    let estimate = |record: &Record| {
        let trials = record.summary.as_ref().map_or(0, |summary| summary.trials);
        let estimate = RunEstimate { iteration_ns: model.time_ns(&record.case)?, trials };
        (!record.floor).then(|| (record.case.to_string(), estimate))
    };
    Ok(results.records.iter().filter_map(estimate).collect())
}

fn print(cases: &BTreeMap<String, Vec<RunEstimate>>) {
    let mut all = Vec::new();
    for (case, estimates) in cases {
        let medians: Vec<f64> = estimates.iter().map(|one| one.iteration_ns.median).collect();
        let pooled = median(&medians).unwrap_or(f64::NAN);
        let covers: Vec<bool> = estimates.iter().map(|one| covers(&one.iteration_ns, pooled)).collect();
        println!(
            "{case}: pooled {}, {} cover it; each run, in percent of it:",
            format_ns(pooled),
            share(&covers)
        );
        for (one, covers) in estimates.iter().zip(&covers) {
            let percent = |ns: f64| format!("{:+.1}", 100.0 * (ns / pooled - 1.0));
            let interval = one.iteration_ns.interval;
            let interval = interval.map_or("no interval".to_owned(), |(low, high)| {
                format!("from {:>6} to {:>6}", percent(low), percent(high))
            });
            let (shift, trials) = (percent(one.iteration_ns.median), one.trials);
            let verdict = if *covers { "" } else { "  does not cover it" };
            println!("  {shift:>6}, {interval}, {trials:>3} trials{verdict}");
        }
        all.extend(covers);
    }
    println!("of all intervals, {} cover the pooled value of their case", share(&all));
}

/// An estimate without an interval claims nothing, and so covers nothing.
fn covers(estimate: &Estimate, value: f64) -> bool {
    estimate.interval.is_some_and(|(low, high)| (low..=high).contains(&value))
}

fn share(of: &[bool]) -> String {
    let count = of.iter().filter(|covers| **covers).count();
    format!("{count} of {} ({:.0}%)", of.len(), 100.0 * count as f64 / of.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_covers_what_lies_in_it_and_no_interval_covers_nothing() {
        let interval = |interval| Estimate { median: 2.0, interval };
        assert!(covers(&interval(Some((1.0, 3.0))), 3.0));
        assert!(!covers(&interval(Some((1.0, 3.0))), 3.1));
        assert!(!covers(&interval(None), 2.0));
        assert_eq!(share(&[true, false, true, true]), "3 of 4 (75%)");
    }
}
