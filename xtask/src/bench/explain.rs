//! `cargo xtask bench explain [MECHANISM]`: whether the segments of critical paths, corrected, add up to the iteration without
//! an instrument, as a table in Markdown for docs/lab/explain.md.

use super::setup::Bench;
use analysis::interval::MeanEstimate;
use analysis::path::{DosedTrials, PathSum};
use harness::clock::Timer;
use harness::coordinator::dose::{
    self, DOSED_SLICE_NS, DosePlan, DosedSample, DosedSlice, alone_in_pairs_and_all,
};
use harness::coordinator::schedule::TimeBudget;
use harness::protocol::orders::Sizing;
use model::units::format_ns;
use model::{Case, Placement, Workload};
use std::time::Duration;

/// The mechanisms whose endpoints sleep, and those of them that carry no data.
const MECHANISMS: [&str; 7] = ["pipe", "unix-stream", "tcp", "eventfd", "futex", "posix-mq", "shm-ring"];
const WITHOUT_DATA: [&str; 2] = ["eventfd", "futex"];
const SIZES: [u64; 3] = [1, 4096, 65_536];
/// The time of a case on one CPU: on an idle host, enough for some 60 rounds.
const TIME_ON_ONE_CPU: Duration = Duration::from_secs(12);
/// The same on two, where trials differ by more: some 250 rounds.
const TIME_ON_TWO_CPUS: Duration = Duration::from_secs(60);

/// Prints the table, of mechanisms whose name begins with `only`.
pub fn run(bench: &Bench, only: &str) -> Result<(), String> {
    println!("| case | rounds | observed | corrected sum | without probes | residual |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for placement in [Placement::SameCore, Placement::SameLlc] {
        for name in MECHANISMS.into_iter().filter(|name| name.starts_with(only)) {
            let sizes = if WITHOUT_DATA.contains(&name) { &SIZES[..1] } else { &SIZES[..] };
            for size in sizes {
                let case = bench.case(name, Workload::Latency, *size, placement)?;
                println!("{}", row(bench, &case));
            }
        }
    }
    Ok(())
}

fn row(bench: &Bench, case: &Case) -> String {
    let dosed = measured(bench, case);
    let Some(sum) = dosed.sum() else {
        return format!("| `{case}` | | | | | not measured: {} |", dosed.unavailable().join("; "));
    };
    let schedule = if sum.schedule_changes().is_empty() { "" } else { "; recording changes the schedule" };
    let PathSum { rounds, observed_ns, corrected_ns, bare_ns, residual_ns, .. } = sum;
    let share = |ns: f64| format!("{:+.1}%", 100.0 * ns / bare_ns.mean);
    let interval = residual_ns.interval.map(|(low, high)| format!(" ({} to {})", share(low), share(high)));
    format!(
        "| `{case}` | {rounds} | {} | {} | {} | {}{}{schedule} |",
        time(observed_ns),
        time(corrected_ns),
        time(bare_ns),
        share(residual_ns.mean),
        interval.unwrap_or_default()
    )
}

fn time(ns: MeanEstimate) -> String {
    let half = ns.interval.map(|(low, high)| format!(" ±{}", format_ns((high - low) / 2.0)));
    format!("{}{}", format_ns(ns.mean), half.unwrap_or_default())
}

fn measured(bench: &Bench, case: &Case) -> DosedTrials {
    let (mut dosed, doses) = (DosedTrials::default(), alone_in_pairs_and_all());
    let plan = DosePlan {
        cases: std::slice::from_ref(case),
        doses: &doses,
        size: Sizing::Slice { slice_ns: DOSED_SLICE_NS, hint_ns: None },
        // Until time is up.
        rounds: u32::MAX,
    };
    let time = if case.placement == Placement::SameCore { TIME_ON_ONE_CPU } else { TIME_ON_TWO_CPUS };
    let budget = TimeBudget { clock: &Timer::start(), time };
    dose::measure(plan, &[&bench.trials()], budget, |DosedSlice { round, outcome, .. }| match outcome {
        Ok(DosedSample { sample, trace: None, .. }) => dosed.add_bare(round, (&sample).into()),
        Ok(DosedSample { sample, trace: Some(trace), .. }) => dosed.add(round, &trace, (&sample).into()),
        Err(failure) => dosed.note_failure(failure),
    });
    dosed
}
