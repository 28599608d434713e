//! `cargo xtask bench doses [MECHANISM]`: what recording costs when the three sets that every round trip has events of are open alone,
//! in pairs, and together: whether costs add up, or sets share some. The fit of `analysis::path` rests on it.

use super::setup::Bench;
use analysis::interval::{MeanEstimate, mean_over_trials};
use harness::clock::Timer;
use harness::coordinator::dose::{self, DOSED_SLICE_NS, Dose, DosePlan, DosedSlice};
use harness::coordinator::schedule::TimeBudget;
use harness::protocol::orders::Sizing;
use model::observation::EventSet::{self, Calls, Switches, WakeUps};
use model::{Case, Placement, Workload};
use std::collections::BTreeMap;
use std::time::Duration;

const MECHANISMS: [(&str, u64); 5] =
    [("pipe", 1), ("unix-stream", 1), ("tcp", 1), ("tcp", 65_536), ("shm-ring", 4096)];
const TIME: Duration = Duration::from_secs(30);
const ROUNDS: u32 = 60;

/// Prints a line for each mechanism whose name begins with `only`.
pub fn run(bench: &Bench, only: &str) -> Result<(), String> {
    let doses: Vec<Vec<EventSet>> = vec![
        vec![],
        vec![Switches],
        vec![WakeUps],
        vec![Calls],
        vec![Switches, WakeUps],
        vec![Switches, Calls],
        vec![WakeUps, Calls],
        vec![Switches, WakeUps, Calls],
        EventSet::ALL.to_vec(),
    ];
    println!("each dose less the one that records nothing, as a share of the bare iteration");
    for (name, size) in MECHANISMS.into_iter().filter(|(name, _)| name.starts_with(only)) {
        let case = bench.case(name, Workload::Latency, size, Placement::SameCore)?;
        println!("{case}");
        let rounds = measured(bench, &case, &doses)?;
        let share = |of: &dyn Fn(&BTreeMap<usize, f64>) -> f64| -> String {
            let values: Vec<f64> =
                rounds.iter().map(|round| 100.0 * of(round) / round[&doses.len()]).collect();
            mean_over_trials(&values).map_or("none".to_owned(), shown)
        };
        for (at, sets) in doses.iter().enumerate().skip(1) {
            let names: Vec<&str> = sets.iter().map(|set| set.name()).collect();
            println!("  {:<60} {}", names.join(", "), share(&|round| round[&at] - round[&0]));
        }
        println!("  {:<60} {}", "nothing less bare", share(&|round| round[&0] - round[&doses.len()]));
        println!(
            "  {:<60} {}",
            "all three less each alone",
            share(&|round| round[&7] - round[&1] - round[&2] - round[&3] + 2.0 * round[&0])
        );
        println!(
            "  {:<60} {}",
            "all three less what pairs and single sets lead to",
            share(&|round| {
                round[&7] - round[&4] - round[&5] - round[&6] + round[&1] + round[&2] + round[&3] - round[&0]
            })
        );
        println!(
            "  {:<60} {}",
            "all three less what a cost in common leads to",
            share(&|round| {
                round[&7] - 2.0 / 3.0 * (round[&4] + round[&5] + round[&6])
                    + (round[&1] + round[&2] + round[&3]) / 3.0
            })
        );
    }
    Ok(())
}

fn shown(estimate: MeanEstimate) -> String {
    let interval = estimate.interval.map(|(low, high)| format!(" ({low:+.1} to {high:+.1})"));
    format!("{:+.1}%{}", estimate.mean, interval.unwrap_or_default())
}

/// The time of an iteration at each dose, by its place, in each round that has all; the bare one is the last.
fn measured(
    bench: &Bench,
    case: &Case,
    doses: &[Vec<EventSet>],
) -> Result<Vec<BTreeMap<usize, f64>>, String> {
    let mut rounds: BTreeMap<u32, BTreeMap<usize, f64>> = BTreeMap::new();
    let mut failure = None;
    let plan = DosePlan {
        cases: std::slice::from_ref(case),
        doses,
        size: Sizing::Slice { slice_ns: DOSED_SLICE_NS, hint_ns: None },
        rounds: ROUNDS,
    };
    let budget = TimeBudget { clock: &Timer::start(), time: TIME };
    dose::measure(
        plan,
        &[&bench.trials()],
        budget,
        |DosedSlice { round, dose, outcome, .. }| match outcome {
            Ok(slice) => {
                let at = match dose {
                    Dose::Bare => doses.len(),
                    Dose::Recorded(at) => at,
                };
                rounds.entry(round).or_default().insert(at, slice.sample.iteration_ns());
            }
            Err(error) => failure = Some(error),
        },
    );
    rounds.retain(|_, round| round.len() == doses.len() + 1);
    if rounds.is_empty() {
        Err(failure.unwrap_or_else(|| "no round is whole".to_owned()))
    } else {
        Ok(rounds.into_values().collect())
    }
}
