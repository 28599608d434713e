//! By how much the multiples of all cases move together within a run: what floors do not share of how the host moves.

use super::chosen_pair::{Multiples, TrialLog};
use crate::stats;
use crate::wander::{Window, by_window, wander};
use std::collections::BTreeMap;

/// With fewer trials in a window its middle varies by chance.
const FEWEST_IN_WINDOW: usize = 4;

/// The standard deviation, on logarithms, of what the multiples of cases of one placement move by together from one [window](by_window) to the
/// next, of the placement where they move most; `None` where no run is long enough.
pub(super) fn common_wander<'a>(cases: impl Iterator<Item = (String, &'a Multiples)>) -> Option<f64> {
    let mut placements: BTreeMap<String, Vec<&Multiples>> = BTreeMap::new();
    cases.for_each(|(placement, multiples)| placements.entry(placement).or_default().push(multiples));
    let wanders = placements.values().filter_map(|cases| of_placement(cases));
    wanders.max_by(f64::total_cmp)
}

/// The root of the mean square over the runs of both sides.
fn of_placement(cases: &[&Multiples]) -> Option<f64> {
    let mut runs: BTreeMap<(usize, usize), Vec<&Vec<TrialLog>>> = BTreeMap::new();
    for (side, of_side) in cases.iter().flat_map(|case| case.iter().enumerate()) {
        of_side.iter().for_each(|(run, trials)| runs.entry((side, *run)).or_default().push(trials));
    }
    let wanders = runs.into_values().filter_map(|cases| of_run(cases.into_iter()));
    let squares: Vec<f64> = wanders.map(|wander| wander.powi(2)).collect();
    (!squares.is_empty()).then(|| stats::mean(&squares).sqrt())
}

fn of_run<'a>(cases: impl Iterator<Item = &'a Vec<TrialLog>>) -> Option<f64> {
    let logs = cases.map(|trials| trials.iter().map(|trial| (trial.started_ns, trial.log)).collect());
    let windows = by_window(logs);
    let windows: Vec<Window> =
        windows.values().filter_map(|logs| Window::of(logs, FEWEST_IN_WINDOW)).collect();
    wander(&windows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Random;
    use crate::wander::window_of;

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
                common_wander(cases.iter().map(|case| ("same-core".to_owned(), case))).unwrap()
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
        assert_eq!(common_wander([("same-core".to_owned(), &short)].into_iter()), None);
        assert_eq!(common_wander(std::iter::empty()), None);
    }
}
