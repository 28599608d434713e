//! What the parts of the benchmark share: measuring costs, asking for a prediction, and setting it beside what was measured.

use crate::bench::ipcmark::Ipcmark;
use analysis::interval::{MeanEstimate, mean_over_trials};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The mechanisms that are exchanged.
pub(super) const MECHANISMS: [&str; 3] = ["pipe", "unix-stream", "tcp"];

/// What recording must leave of the rate of a program.
const LEAST_LEFT: f64 = 0.9;

/// Measures what round trips and messages of `mechanisms` cost, for `seconds`, into the files `costs` and `sleep`.
pub(super) fn measure_costs(
    ipcmark: &Ipcmark,
    mechanisms: &[&str],
    sizes: &str,
    seconds: u64,
) -> Result<(), String> {
    let two_cpus = "same-llc|cross-llc|smt|cross-node";
    let (most, rest) = (format!("{}s", seconds * 4 / 5), format!("{}s", (seconds / 5).max(1)));
    let places = ["-w", "latency,throughput", "-p", "same-core", "-p", two_cpus, "-p", "unpinned"];
    ipcmark.run(&[mechanisms, &places, &["-s", sizes, "--time", &most]].concat(), "costs")?;
    let asleep = ["-w", "latency", "-p", two_cpus, "--think-time", "100us,2ms", "-s", "64", "--time", &rest];
    ipcmark.run(&[mechanisms, &asleep].concat(), "sleep")
}

/// What `ipcmark predict` says of the scenario in `file`, with `exchanges`, as JSON.
pub(super) fn predicted(
    ipcmark: &Ipcmark,
    file: &Path,
    exchanges: &[String],
    more: &[&str],
) -> Result<Value, String> {
    let mut command = Command::new(&ipcmark.program);
    command.arg("predict").arg(file).arg("--format=json").args(more);
    command.args(exchanges.iter().flat_map(|exchange| ["--set", exchange.as_str()]));
    for costs in ["costs", "sleep"].map(|name| ipcmark.file(name)).iter().filter(|path| path.exists()) {
        command.arg("--costs").arg(costs);
    }
    let said = ipcmark.said_by(&mut command)?;
    serde_json::from_str(&said).map_err(|error| format!("{command:?}: {error}"))
}

/// A change in words, with its interval: `-23% (-27% to -19%)`.
pub(super) fn change(ratio: f64, interval: Option<(f64, f64)>) -> String {
    let percent = |ratio: f64| format!("{:+.1}%", (ratio - 1.0) * 100.0);
    let around = interval.map(|(low, high)| format!(" ({} to {})", percent(low), percent(high)));
    percent(ratio) + &around.unwrap_or_default()
}

/// The ratio and its interval that stand at `value`.
pub(super) fn ratio(value: &Value) -> Option<(f64, (f64, f64))> {
    let interval = &value["ratio_interval"];
    Some((value["ratio"].as_f64()?, (interval[0].as_f64()?, interval[1].as_f64()?)))
}

/// One line that sets a change beside the one that is predicted at `value`: the geometric mean of the `measured` ratios, with its 95%
/// interval.
pub(super) fn compared(what: &str, value: &Value, measured: &[f64]) -> String {
    let Some((predicted, interval)) = ratio(value) else { return format!("| {what} | not predicted | | |") };
    let Some(of_logs) = geometric_mean(measured) else { return format!("| {what} | | not measured | |") };
    let held = if (interval.0..=interval.1).contains(&of_logs.mean) { "held" } else { "did not hold" };
    format!(
        "| {what} | {} | {} | {held} |",
        change(predicted, Some(interval)),
        change(of_logs.mean, of_logs.interval)
    )
}

/// One line that says what is left of a rate while a program is recorded, and whether that is what recording may cost.
pub(super) fn slowed(what: &str, ratios: &[f64]) -> String {
    let Some(mean) = geometric_mean(ratios) else { return format!("| {what} | not measured | |") };
    let verdict = if mean.mean >= LEAST_LEFT { "at most 10%" } else { "more than 10%" };
    format!("| {what} | {} | {verdict} |", change(mean.mean, mean.interval))
}

/// The geometric mean of `ratios` with its 95% interval.
fn geometric_mean(ratios: &[f64]) -> Option<MeanEstimate> {
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    Some(mean_over_trials(&logs)?.map(f64::exp))
}
