//! Scenarios at random: each is replayed with its mechanisms and with others, and the change was predicted before, from costs
//! that were measured once.

use super::costs::{MECHANISMS, change, measure_costs, predicted};
use crate::bench::ipcmark::Ipcmark;
use analysis::stats::median;
use model::testing::scenarios::random_scenario;
use model::{Scenario, Spec};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

/// The sizes of which scenarios are made, and others between.
const SIZES: &str = "16,256,1K,4K,16K";

/// Prints a line for each change of each scenario, then how many predictions held and how far they were off.
pub(super) fn run(ipcmark: &Ipcmark, scenarios: u64, seconds: u64, first: u64) -> Result<(), String> {
    println!("{scenarios} scenarios at random, from seed {first}: costs are measured for {seconds} s");
    measure_costs(ipcmark, &MECHANISMS, SIZES, seconds)?;
    println!("| seed | scenario | flow | exchange | predicted | replayed | |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let (mut held, mut errors, mut failed) = (0_usize, Vec::new(), 0);
    for seed in first..first + scenarios {
        let (scenario, exchanges) = scenario(seed);
        let file = ipcmark.file(&format!("scenario-{seed}")).with_extension("toml");
        std::fs::write(&file, scenario.to_toml()).map_err(|error| format!("{}: {error}", file.display()))?;
        let found = match predicted(ipcmark, &file, &exchanges, &["--check"]) {
            Ok(found) => found,
            Err(error) => {
                failed += 1;
                println!("| {seed} | {} | | | failed: {error} | | |", scenario.summary);
                continue;
            }
        };
        for flow in found["held"]["flows"].as_array().into_iter().flatten() {
            for (what, value) in [("rate", &flow["per_s"]), ("round trip", &flow["round_trip_ns"])] {
                let Some(error) = value["error"].as_f64() else { continue };
                errors.push(error.abs());
                held += usize::from(value["held"] == true);
                println!("{}", line(seed, &scenario, &exchanges, flow, what, value));
            }
        }
    }
    let share = 100.0 * held as f64 / errors.len().max(1) as f64;
    println!(
        "\n{held} of {} changes ({share:.0}%) lie in their 90% intervals; the median error is {:.1}%; {failed} scenarios failed",
        errors.len(),
        100.0 * median(&errors).unwrap_or(f64::NAN)
    );
    Ok(())
}

/// The scenario that `seed` makes, and the exchange of about half of its mechanisms, of one at least.
fn scenario(seed: u64) -> (Scenario, Vec<String>) {
    let mut random = SmallRng::seed_from_u64(seed);
    let specs: Vec<Spec> = MECHANISMS.iter().map(|name| Spec::plain(name)).collect();
    let scenario = random_scenario(&specs, &mut |below| random.random_range(0..below));
    let mut exchanges = Vec::new();
    for (at, flow) in scenario.flows.iter().enumerate() {
        let others: Vec<&str> =
            MECHANISMS.into_iter().filter(|name| *name != flow.mechanism.name.as_str()).collect();
        if at == 0 || random.random_bool(0.5) {
            exchanges.push(format!("{}={}", flow.name, others[random.random_range(0..others.len())]));
        }
    }
    (scenario, exchanges)
}

fn line(
    seed: u64,
    scenario: &Scenario,
    exchanges: &[String],
    flow: &Value,
    what: &str,
    value: &Value,
) -> String {
    let name = flow["name"].as_str().unwrap_or_default();
    let own = exchanges.iter().find(|exchange| exchange.split('=').next() == Some(name));
    let pair = |value: &Value| Some((value[0].as_f64()?, value[1].as_f64()?));
    format!(
        "| {seed} | {} of {} | {name} {what} | {} | {} | {} | {} |",
        scenario.summary,
        scenario.processes.len(),
        own.map_or("-", |own| own.as_str()),
        change(value["predicted"].as_f64().unwrap_or(f64::NAN), pair(&value["interval"])),
        change(value["replayed"].as_f64().unwrap_or(f64::NAN), pair(&value["replayed_interval"])),
        if value["held"] == true { "held" } else { "did not hold" }
    )
}
