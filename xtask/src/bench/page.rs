//! `cargo xtask bench page`: the time to make a report of ten thousand cases and to open it. It judges nothing.

#[path = "../../../crates/report/tests/pages/browser.rs"]
#[expect(clippy::unwrap_used, reason = "a browser that does not answer ends the benchmark")]
mod browser;

use crate::steps::{cargo, root, step};
use browser::Browser;
use model::record::{Line, Record, Results};
use model::{Size, results};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How many cases the report has.
const CASES: usize = 10_000;
/// Trials of each case, enough for an interval.
const TRIALS: usize = 8;
/// How many runs each step has; the fastest is printed, for the others waited for something else.
const RUNS: usize = 5;

/// Measures one case, makes a file of thousands from it, and times its report.
pub fn bench() -> Result<(), String> {
    step("ipcmark", &mut cargo(&["build", "--quiet", "--release", "--package", "ipcmark"]))?;
    let binary = root().join("target/release/ipcmark");
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let [seed, file, page] =
        ["seed.jsonl", "many.jsonl", "many.html"].map(|name| directory.path().join(name));
    let mut measure = Command::new(&binary);
    measure.args(["run", "pipe", "-p", "same-core", "-s", "64", "--precision", "0.001%"]);
    measure.args(["--rounds", &TRIALS.to_string(), "--time", "20s", "-o"]).arg(&seed);
    step("a case to begin with", &mut measure)?;
    let many = many(&read(&seed)?);
    fs::write(&file, text(&many)).map_err(|error| error.to_string())?;

    let make = fastest(|| {
        let made = Command::new(&binary).arg("report").arg(&file).arg("--html").arg(&page).output();
        made.map(drop).map_err(|error| error.to_string())
    })?;
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    println!("{CASES} cases of {TRIALS} trials: {} bytes", bytes(&file));
    println!("ipcmark report --html: {make:?}, {} bytes", bytes(&page));
    let Some(name) = browser::name() else {
        println!("NOT MEASURED: Chromium cannot be run here, so that the page is not opened");
        return Ok(());
    };
    let mut browser = Browser::start(name);
    browser.show_as(1280, 900, false, "light");
    println!(
        "opened, with its words and tables: {:?}",
        fastest(|| {
            browser.open(&page);
            Ok(())
        })?
    );
    println!(
        "opened and scrolled to the first chart, drawn: {:?}",
        fastest(|| {
            browser.open(&page);
            browser.evaluate("figures[0].element.scrollIntoView()");
            browser.wait_for("Boolean(figures[0].plot.data) && figures[0].plot.ariaBusy === 'false'");
            Ok(())
        })?
    );
    println!(
        "opened, with every chart drawn: {:?}",
        fastest(|| {
            browser.open(&page);
            browser.evaluate("Promise.all(figures.map(draw))");
            Ok(())
        })?
    );
    let change = "(() => { const s = byId('metric'); s.selectedIndex = (s.selectedIndex + 1) % s.length; refresh(); })()";
    println!(
        "another metric chosen, every chart drawn anew: {:?}",
        fastest(|| {
            browser.evaluate(change);
            browser.evaluate("Promise.all(figures.map(draw))");
            Ok(())
        })?
    );
    Ok(())
}

fn fastest(mut run: impl FnMut() -> Result<(), String>) -> Result<Duration, String> {
    let times = (0..RUNS).map(|_| {
        let start = Instant::now();
        run().map(|()| start.elapsed())
    });
    let times = times.collect::<Result<Vec<_>, _>>()?;
    Ok(times.into_iter().min().unwrap_or_default())
}

pub(super) fn read(path: &Path) -> Result<Results, String> {
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    results::parse(std::io::BufReader::new(file), "seed").map_err(|invalid| invalid.to_string())
}

/// The first case of `seed` under fifty names, at every size from 1 to 512K, in ten placements.
fn many(seed: &Results) -> Results {
    const NAMES: usize = 50;
    const SIZES: usize = 20;
    let Some(first) = seed.records.iter().find(|record| !record.floor) else { return seed.clone() };
    let record = |at: usize| {
        let (name, size, place) = (at % NAMES, at / NAMES % SIZES, at / NAMES / SIZES);
        let mut record = Record { ..first.clone() };
        record.case.spec.name = format!("mechanism-{name}");
        record.case.size_bytes = Some(Size(1 << size));
        let cpu = place as u32;
        record.case.placement = model::Placement::Cpus(model::topology::CpuPair { client: cpu, server: cpu });
        for sample in &mut record.samples {
            sample.elapsed_ns *= 1.0 + 0.05 * name as f64 + 0.1 * size as f64 + 0.3 * place as f64;
        }
        record.summary = analysis::summary::summarise_alone(&record.case, &record.samples);
        record
    };
    let mut many = seed.clone();
    many.records = (0..CASES).map(record).collect();
    many.header.plan.cases = many.records.iter().map(|record| record.case.clone()).collect();
    many
}

fn text(of: &Results) -> String {
    let header = Line::Header(Box::new(of.header.clone()));
    let records = of.records.iter().map(|record| Line::Record(Box::new(record.clone())));
    let lines = std::iter::once(header).chain(records).chain(of.end.clone().map(Line::End));
    lines.map(|line| results::to_line(&line)).collect()
}
