//! `cargo xtask bench layers [NAME [PASSES]]`: known delays that are put into a layer of the driver in Python, and where sums of layers find them.

use super::languages::{ipcmark, said, with_interval};
use super::setup::numbers;
use crate::steps::{cargo, root, step, target};
use analysis::interval::mean_over_trials;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A delay that is put in.
struct Delay {
    /// What `delayed.py` calls it.
    name: &'static str,
    /// How long it is each time.
    each_ns: u64,
    /// How often a round trip has it; a collector has its own times.
    per_round_trip: Option<u64>,
    /// The mechanism whose sum has the layer.
    mechanism: &'static str,
    /// The layer in which it must be found.
    layer: &'static str,
}

const DELAYS: [Delay; 3] = [
    Delay {
        name: "codec",
        each_ns: 20_000,
        per_round_trip: Some(2),
        mechanism: "multiprocessing-pipe:codec=pickle",
        layer: "serialisation: pickle",
    },
    Delay {
        name: "broker",
        each_ns: 50_000,
        per_round_trip: Some(2),
        mechanism: "relayed",
        layer: "the broker",
    },
    Delay {
        name: "collector",
        each_ns: 10_000_000,
        per_round_trip: None,
        mechanism: "pipe",
        layer: "the runtime",
    },
];

const SIZE: &str = "64";
/// How long a pass measures.
const TIME: &str = "40s";

/// Prints what is found of each delay whose name begins so.
pub(super) fn run(arguments: &[&str]) -> Result<(), String> {
    let (only, rest) = arguments.split_first().map_or(("", arguments), |(only, rest)| (*only, rest));
    let [passes] = numbers(rest, [6])?;
    step("ipcmark", &mut cargo(&["build", "--quiet", "--release", "--package", "ipcmark"]))?;
    let place = target("delayed");
    said(ipcmark(&place).args(["driver", "build", "python"]))?;
    println!(
        "what a layer of a round trip of {SIZE} bytes on one CPU takes longer by a delay in one, in µs with its 95% interval over {passes} passes"
    );
    for delay in DELAYS.iter().filter(|delay| delay.name.starts_with(only)) {
        print_found(delay, &place, passes)?;
    }
    Ok(())
}

/// Measures the driver with `delay` and with one of 0 ns interleaved, and prints what each layer takes longer.
fn print_found(delay: &Delay, place: &Path, passes: u64) -> Result<(), String> {
    let [with, without] = [("delayed", delay.each_ns), ("undelayed", 0)];
    for (driver, each_ns) in [with, without] {
        write_driver(place, driver, delay.name, each_ns)?;
    }
    match delay.per_round_trip {
        Some(times) => println!(
            "{}: {} µs put into a round trip, in '{}'",
            delay.name,
            (times * delay.each_ns) as f64 / 1e3,
            delay.layer
        ),
        None => {
            println!("{}: {} µs each 100 ms, in '{}'", delay.name, delay.each_ns as f64 / 1e3, delay.layer);
        }
    }
    let mut found: BTreeMap<String, [Vec<f64>; 2]> = BTreeMap::new();
    for _ in 0..passes {
        let names = [with.0, without.0].map(|driver| format!("{driver}/{}", delay.mechanism));
        let line = ["explain", &names[0], &names[1], "-s", SIZE, "-p", "same-core", "--time", TIME];
        let text = said(ipcmark(place).args(line).args(["--format", "json"]))?;
        let results: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let [with, without] = [0, 1].map(|bar| layers(&results, bar));
        for (name, ns) in with {
            let others = without.get(&name).ok_or_else(|| format!("there is no layer '{name}'"))?;
            let longer = found.entry(name).or_default();
            for of in 0..2 {
                longer[of].push((ns[of] - others[of]) / 1e3);
            }
        }
    }
    for (name, [time, cpu]) in found {
        let [time, cpu] = [time, cpu].map(|longer_us| with_interval(mean_over_trials(&longer_us)));
        println!("  {name:<42} {time:<26} CPU time {cpu}");
    }
    Ok(())
}

/// What each layer of a bar adds, of time and of CPU time, in nanoseconds.
fn layers(results: &Value, bar: usize) -> BTreeMap<String, [f64; 2]> {
    let layers = results["study"]["tables"][bar]["rows"].as_array();
    let number = |cell: &Value| cell["value"]["median"].as_f64();
    let adds = |row: &Value| {
        let (time, cpu) = (number(&row["cells"][0])?, number(&row["cells"][1])?);
        Some((row["name"].as_str()?.to_owned(), [time, cpu]))
    };
    layers.into_iter().flatten().filter_map(adds).collect()
}

/// Makes a driver of the one in Python, which is built in `place`, with a delay in the layer `layer`.
fn write_driver(place: &Path, name: &str, layer: &str, each_ns: u64) -> Result<(), String> {
    let mut script = Command::new("sh");
    script.arg(root().join("drivers/handwritten/delayed.sh")).arg(place.join("ipcmark/drivers"));
    said(script.args([name, layer, &each_ns.to_string()])).map(drop)
}
