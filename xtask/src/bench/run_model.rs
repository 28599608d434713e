//! `cargo xtask bench model FILE...`: how well runs of one host agree, by the model of each.
//!
//! Every case is taken at one state of the host, the middle of those of all runs. What two runs say of it then differs only by their
//! errors and by what no reading tells: the intervals are to cover that.

use analysis::run::{HostState, RunModel, RunSlices};
use analysis::stats::{deviation, mean, median};
use harness::clock::Timer;
use model::estimate::Estimate;
use model::floor::NULL;
use model::record::{Record, Results};
use model::results::parse;
use model::{Case, Workload};
use std::fs::File;
use std::io::{BufReader, Read};
use std::process::{Command, Stdio};

/// The groups of which the figures are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    OneCore,
    TwoCoresAsleep,
    TwoCoresOtherwise,
}

const KINDS: [(Kind, &str); 3] = [
    (Kind::OneCore, "one core"),
    (Kind::TwoCoresAsleep, "two cores, asleep"),
    (Kind::TwoCoresOtherwise, "two cores, otherwise"),
];

/// A run with its model.
struct Run {
    results: Results,
    slices: RunSlices,
}

/// Fits each of the results files `files`, which may be compressed by xz, and compares each with each.
pub fn run(files: &[&str]) -> Result<(), String> {
    if files.is_empty() {
        return Err("name results files of one host".to_owned());
    }
    let runs: Vec<Run> = files.iter().map(|file| read(file)).collect::<Result<_, _>>()?;
    let states: Vec<HostState> = runs.iter().map(|run| run.slices.calm_state()).collect();
    let state = HostState::middle(&states);
    let timer = Timer::start();
    let models: Vec<RunModel> = runs.iter().map(|run| RunModel::at(&run.slices, &state)).collect();
    let each = timer.elapsed() / u32::try_from(runs.len()).unwrap_or(u32::MAX);
    for (kind, name) in KINDS {
        let cases = cases_of(&runs, kind);
        if !cases.is_empty() {
            print(name, &cases, &runs, &models);
        }
    }
    println!("a model takes {:.1} ms", each.as_secs_f64() * 1e3);
    Ok(())
}

fn read(file: &str) -> Result<Run, String> {
    let fail = |error: std::io::Error| format!("{file}: {error}");
    let open = File::open(file).map_err(fail)?;
    let parsed = if file.ends_with(".xz") {
        let mut xz =
            Command::new("xz").args(["-dc"]).stdin(open).stdout(Stdio::piped()).spawn().map_err(fail)?;
        let mut text = Vec::new();
        xz.stdout.take().expect("piped").read_to_end(&mut text).map_err(fail)?;
        if !xz.wait().map_err(fail)?.success() {
            return Err(format!("{file}: 'xz -dc' cannot read it"));
        }
        parse(text.as_slice(), file)
    } else {
        parse(BufReader::new(open), file)
    };
    let results = parsed.map_err(|invalid| invalid.to_string())?;
    let slices = RunSlices::from_records(results.records.iter().map(|r| (&r.case, r.samples.as_slice())));
    Ok(Run { results, slices })
}

/// The cases of a kind that all runs have.
fn cases_of(runs: &[Run], kind: Kind) -> Vec<Case> {
    let is_of = |record: &&Record| kind_of(record) == Some(kind);
    let cases = runs[0].results.records.iter().filter(is_of).map(|record| record.case.clone());
    let has = |run: &Run, case: &Case| {
        run.results.records.iter().any(|record| record.case == *case && !record.samples.is_empty())
    };
    cases.filter(|case| runs.iter().all(|run| has(run, case))).collect()
}

fn kind_of(record: &Record) -> Option<Kind> {
    let case = &record.case;
    let is_shown = !record.floor
        && case.spec.name != NULL
        && matches!(case.workload, Workload::Latency | Workload::Throughput);
    let kind = match () {
        () if !case.uses_two_cpus() => Kind::OneCore,
        () if record.samples.iter().any(|sample| sample.wake_floor_ns.is_some()) => Kind::TwoCoresAsleep,
        () => Kind::TwoCoresOtherwise,
    };
    is_shown.then_some(kind)
}

fn print(name: &str, cases: &[Case], runs: &[Run], models: &[RunModel]) {
    let times: Vec<Vec<Estimate>> =
        models.iter().map(|model| cases.iter().filter_map(|case| model.time_ns(case)).collect()).collect();
    let all: Vec<&Case> = cases.iter().collect();
    let ratios: Vec<Vec<Estimate>> = models
        .iter()
        .map(|model| cases.iter().filter_map(|case| model.ratio(case, &all)).collect())
        .collect();
    let halves: Vec<f64> = times.iter().flatten().map(|time| half(*time)).collect();
    let within =
        |bound: f64| halves.iter().filter(|half| **half < bound).count() as f64 / halves.len() as f64;
    println!("{name}: {} cases", cases.len());
    for (at, model) in models.iter().enumerate() {
        println!("  run {}: median slopes: {}", at + 1, slopes(cases, model));
    }
    println!(
        "  half width of 95%: median {:.1}%; within 3% {:.0}%, within 5% {:.0}%; of relative times {:.1}%",
        100.0 * median(&halves).unwrap_or(f64::NAN),
        100.0 * within(0.03),
        100.0 * within(0.05),
        100.0 * median(&ratios.iter().flatten().map(|r| half(*r)).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    );
    let medians: Vec<Vec<f64>> = runs.iter().map(|run| medians(run, cases)).collect();
    for two in 0..runs.len() {
        for one in 0..two {
            let logs = |of: &[Vec<Estimate>]| -> Vec<f64> {
                of[one].iter().zip(&of[two]).map(|(a, b)| (b.median / a.median).ln()).collect()
            };
            let raw: Vec<f64> = medians[one].iter().zip(&medians[two]).map(|(a, b)| (b / a).ln()).collect();
            let moved = logs(&times);
            println!(
                "  runs {} and {}: cases differ by {:.1}% (medians of slices) and {:.1}% (model), all by {:+.1}%; intervals cover {:.0}%, of relative times {:.0}%",
                one + 1,
                two + 1,
                100.0 * deviation(&raw),
                100.0 * deviation(&moved),
                100.0 * mean(&moved),
                100.0 * covered(&times[one], &times[two]),
                100.0 * covered(&ratios[one], &ratios[two]),
            );
        }
    }
}

/// The median over cases of how times follow each reading.
fn slopes(cases: &[Case], model: &RunModel) -> String {
    let all: Vec<_> = cases.iter().filter_map(|case| model.slopes(case)).collect();
    let middle = |(at, name): (usize, &str)| {
        let of_cases: Vec<f64> = all.iter().filter_map(|slopes| Some(slopes[at]?.slope)).collect();
        median(&of_cases).map(|slope| format!("{name} {slope:.2}"))
    };
    let shown = ["client", "server", "pair", "wake"].into_iter().enumerate().filter_map(middle);
    shown.collect::<Vec<_>>().join(", ")
}

/// The median slice of each case.
fn medians(run: &Run, cases: &[Case]) -> Vec<f64> {
    let median_of = |case: &Case| {
        let record = run.results.records.iter().find(|record| record.case == *case)?;
        median(&record.samples.iter().map(|sample| sample.iteration_ns()).collect::<Vec<_>>())
    };
    cases.iter().filter_map(median_of).collect()
}

/// Half of the interval on logarithms.
fn half(estimate: Estimate) -> f64 {
    estimate.interval.map_or(f64::INFINITY, |(low, high)| (high / low).ln() / 2.0)
}

/// In how many cases the difference lies within what both intervals allow.
fn covered(one: &[Estimate], two: &[Estimate]) -> f64 {
    let covers = |(a, b): (&Estimate, &Estimate)| (b.median / a.median).ln().abs() < half(*a).hypot(half(*b));
    one.iter().zip(two).filter(|pair| covers(*pair)).count() as f64 / one.len() as f64
}
