//! By how much the multiples of all cases move together within a run, beyond what chance makes of it: what floors do not share of how the host
//! moves. What moves within a run goes on after it.

use super::chosen_pair::{Multiples, TrialLog};
use crate::stats;
use std::collections::BTreeMap;

/// The time over which values are put together.
const WINDOW_NS: u64 = 5_000_000_000;
/// With fewer windows little is known of how they differ.
const FEWEST_WINDOWS: usize = 6;
/// What is not seen in few windows may be there all the same.
const LEAST_SHARE: f64 = 0.25;
/// The variance of a median over that of a mean, of normal values.
const OF_MEDIAN: f64 = 1.57;
/// With fewer trials in a window its middle varies by chance.
const FEWEST_IN_WINDOW: usize = 4;

/// The standard deviation, on logarithms, of what the multiples of cases of one placement move by together from one [window](by_window) to the
/// next, of the placement where they move most; `None` where no run is long enough.
pub(super) fn common_drift<'a>(cases: impl Iterator<Item = (String, &'a Multiples)>) -> Option<f64> {
    let mut placements: BTreeMap<String, Vec<&Multiples>> = BTreeMap::new();
    cases.for_each(|(placement, multiples)| placements.entry(placement).or_default().push(multiples));
    let drifts = placements.values().filter_map(|cases| of_placement(cases));
    drifts.max_by(f64::total_cmp)
}

/// The root of the mean square over the runs of both sides.
fn of_placement(cases: &[&Multiples]) -> Option<f64> {
    let mut runs: BTreeMap<(usize, usize), Vec<&Vec<TrialLog>>> = BTreeMap::new();
    for (side, of_side) in cases.iter().flat_map(|case| case.iter().enumerate()) {
        of_side.iter().for_each(|(run, trials)| runs.entry((side, *run)).or_default().push(trials));
    }
    let drifts = runs.into_values().filter_map(|cases| of_run(cases.into_iter()));
    let squares: Vec<f64> = drifts.map(|drift| drift.powi(2)).collect();
    (!squares.is_empty()).then(|| stats::mean(&squares).sqrt())
}

fn of_run<'a>(cases: impl Iterator<Item = &'a Vec<TrialLog>>) -> Option<f64> {
    let logs = cases.map(|trials| trials.iter().map(|trial| (trial.started_ns, trial.log)).collect());
    let windows = by_window(logs);
    let windows: Vec<Window> =
        windows.values().filter_map(|logs| Window::from_values(logs, FEWEST_IN_WINDOW)).collect();
    drift(&windows)
}

/// One part of a run.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// The median of its values.
    middle: f64,
    /// What they deviate by.
    deviation: f64,
    values: f64,
}

impl Window {
    /// Of `values`; `None` of fewer than `fewest`.
    fn from_values(values: &[f64], fewest: usize) -> Option<Self> {
        let known = (values.len() >= fewest).then(|| stats::median(values)).flatten();
        let deviation = stats::deviation_of_most(values)?;
        known.map(|middle| Self { middle, deviation, values: values.len() as f64 })
    }
}

/// The values of all `cases` of a run by the window in which they began, each less the median of its case. A value stands with the time in
/// the run at which it began, in nanoseconds.
fn by_window(cases: impl Iterator<Item = Vec<(u64, f64)>>) -> BTreeMap<u64, Vec<f64>> {
    let mut windows: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for case in cases {
        let values: Vec<f64> = case.iter().map(|(_, value)| *value).collect();
        let Some(middle) = stats::median(&values) else { continue };
        for (started_ns, value) in case {
            windows.entry(window_of(started_ns)).or_default().push(value - middle);
        }
    }
    windows
}

/// The number of the window in which something is that began so many nanoseconds after the run.
fn window_of(started_ns: u64) -> u64 {
    started_ns / WINDOW_NS
}

/// The standard deviation of what most `windows` say, less what it would be by chance; `None` of fewer than [`FEWEST_WINDOWS`].
fn drift(windows: &[Window]) -> Option<f64> {
    let middles: Vec<f64> = windows.iter().map(|window| window.middle).collect();
    let seen = stats::deviation_of_most(&middles).filter(|_| middles.len() >= FEWEST_WINDOWS)?.powi(2);
    let by_chance = windows.iter().map(|window| OF_MEDIAN * window.deviation.powi(2) / window.values);
    let by_chance = stats::median(&by_chance.collect::<Vec<_>>())?;
    Some((seen - by_chance).max(LEAST_SHARE * seen).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Random;

    /// A minute of `cases` that all move by `together`, and each alone by 1%, from trial to trial.
    fn minute(cases: usize, together: f64, random: &mut Random) -> Vec<Multiples> {
        let moves: Vec<f64> = (0..12).map(|_| together * random.normal()).collect();
        let mut case = |_| -> Multiples {
            [(); 2].map(|()| {
                let trial = |nth: u64| {
                    let started_ns = nth * 2_000_000_000;
                    let log = 1.0 + moves[window_of(started_ns) as usize] + 0.01 * random.normal();
                    TrialLog { started_ns, log }
                };
                vec![(0, (0..30).map(trial).collect())]
            })
        };
        (0..cases).map(&mut case).collect()
    }

    #[test]
    fn what_all_cases_move_by_together_is_told_from_what_each_does() {
        let mut random = Random(1);
        let mut middle = |together| {
            let mut one = |_| {
                let cases = minute(10, together, &mut random);
                common_drift(cases.iter().map(|case| ("same-core".to_owned(), case))).unwrap()
            };
            stats::median(&(0..40).map(&mut one).collect::<Vec<_>>()).unwrap()
        };
        assert!(middle(0.0) < 0.0025);
        let moved = middle(0.02);
        assert!((0.015..0.025).contains(&moved), "{moved}");
    }

    #[test]
    fn a_short_run_says_nothing() {
        let cases: Vec<Multiples> = minute(3, 0.0, &mut Random(2));
        let short: Multiples = cases[0].clone().map(|runs| vec![(0, runs[0].1[..10].to_vec())]);
        assert_eq!(common_drift([("same-core".to_owned(), &short)].into_iter()), None);
        assert_eq!(common_drift(std::iter::empty()), None);
    }
}
