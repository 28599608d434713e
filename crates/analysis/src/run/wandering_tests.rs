//! The model on three default runs of a real host within ten minutes, two virtual CPUs whose neighbours come and go: nobody knows the truth,
//! but the runs are to agree, as far as their intervals say.
//!
//! `wandering.txt` has the cases of one core, each as results files have it, and after an empty line each slice: run, case, trial, milliseconds
//! after the run's beginning, iterations, nanoseconds an iteration, and what was read of the CPU's speed.

use super::{HostState, RunModel, RunSlices};
use crate::stats::{deviation, median};
use model::Case;
use model::record::{Sample, Usage};
use model::speed::{SpeedReading, SpeedReadings};

const RUNS: usize = 3;

fn cases() -> Vec<Case> {
    let lines = include_str!("wandering.txt").lines().take_while(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The slices of each case, by run.
fn runs(cases: &[Case]) -> [Vec<Vec<Sample>>; RUNS] {
    let mut runs = [const { Vec::new() }; RUNS];
    runs.fill(vec![Vec::new(); cases.len()]);
    for line in include_str!("wandering.txt").lines().skip(cases.len() + 1) {
        let numbers: Vec<f64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        let [run, case, trial, started_ms, iterations, iteration_ns, read_ns] = numbers[..] else {
            panic!("{line}")
        };
        let client = SpeedReading { before_ns: read_ns, after_ns: read_ns };
        runs[run as usize - 1][case as usize].push(Sample {
            trial: trial as u32,
            started_ns: started_ms as u64 * 1_000_000,
            speed: Some(SpeedReadings { client, server: None, pair: None }),
            ..Sample::new(iterations as u64, iterations * iteration_ns, Usage::default(), None)
        });
    }
    runs
}

fn median_log_ns(samples: &[Sample]) -> f64 {
    median(&samples.iter().map(|sample| sample.iteration_ns().ln()).collect::<Vec<_>>()).unwrap()
}

#[test]
fn runs_agree_better_than_their_medians_and_intervals_cover_what_they_differ_by() {
    let cases = cases();
    let runs = runs(&cases);
    let slices = runs
        .each_ref()
        .map(|run| RunSlices::from_records(cases.iter().zip(run.iter().map(|samples| samples.as_slice()))));
    let state = HostState::middle(&slices.each_ref().map(RunSlices::calm_state));
    let models = slices.each_ref().map(|slices| RunModel::at(slices, &state));
    let mut covered = 0;
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        let (mut of_models, mut of_medians) = (Vec::new(), Vec::new());
        for (at, case) in cases.iter().enumerate() {
            let [here, there] = [a, b].map(|run| models[run].time_ns(case).unwrap());
            let differ = (here.median / there.median).ln();
            let within = here.half_width().unwrap().hypot(there.half_width().unwrap());
            covered += usize::from(differ.abs() <= within);
            of_models.push(differ);
            of_medians.push(median_log_ns(&runs[a][at]) - median_log_ns(&runs[b][at]));
        }
        let [of_models, of_medians] = [of_models, of_medians].map(|differences| deviation(&differences));
        assert!(of_models < 0.03 && of_models < 0.75 * of_medians, "{of_models} {of_medians}");
    }
    let share = covered as f64 / (RUNS * cases.len()) as f64;
    assert!((0.9..1.0).contains(&share), "{share} of the differences are covered");
}
