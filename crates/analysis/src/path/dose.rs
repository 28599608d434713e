//! What recording events costs an iteration, by dose: trials without an instrument, with one that records nothing, and with sets of
//! events, of the same iterations in the same rounds.
//!
//! An iteration is taken to be longer by a fixed time where an instrument is there, and by one time more for each set that it
//! records. These are found by least squares, from all doses but the largest, if they suffice: that these costs, taken from
//! the largest dose, lead back to the time without an instrument is then a test that can fail.

use model::observation::EventSet;

/// How much was recorded in a trial: nothing by no instrument, or these sets.
pub type RecordedSets = Option<Vec<EventSet>>;

/// How the costs follow from the times of a round, one time for each dose.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DoseFit {
    /// The sets of which a cost is known.
    pub(super) sets: Vec<EventSet>,
    /// The weights of the doses in the cost of an instrument that records nothing.
    base: Vec<f64>,
    /// The weights of the doses in the cost of each set.
    weights: Vec<Vec<f64>>,
    /// The place of the largest dose.
    pub(super) largest: usize,
    /// The place of the trials without an instrument.
    pub(super) bare: usize,
    /// The largest dose had no part in the costs.
    pub(super) is_tested: bool,
}

impl DoseFit {
    /// The fit for `doses`, each once; `None` where they do not tell the costs.
    pub(super) fn of(doses: &[RecordedSets]) -> Option<Self> {
        let bare = doses.iter().position(Option::is_none)?;
        let size = |dose: &RecordedSets| dose.as_ref().map_or(0, |sets| 1 + sets.len());
        let largest = (0..doses.len()).max_by_key(|at| (size(&doses[*at]), usize::MAX - at))?;
        let sets = doses[largest].as_ref()?;
        let sets: Vec<EventSet> = EventSet::ALL.into_iter().filter(|set| sets.contains(set)).collect();
        // An instrument that records nothing has a cost of its own only where such trials were made.
        let has_base = doses.iter().flatten().any(Vec::is_empty);
        let row = |dose: &RecordedSets| -> Vec<f64> {
            let records = |set: &EventSet| dose.as_ref().is_some_and(|sets| sets.contains(set));
            let base = has_base.then(|| f64::from(u8::from(dose.is_some())));
            let recorded = sets.iter().map(|set| f64::from(u8::from(records(set))));
            [1.0].into_iter().chain(base).chain(recorded).collect()
        };
        let of = |left_out: Option<usize>| {
            let kept: Vec<usize> = (0..doses.len()).filter(|at| Some(*at) != left_out).collect();
            let rows: Vec<Vec<f64>> = kept.iter().map(|at| row(&doses[*at])).collect();
            let solved = least_squares(&rows)?;
            let spread = |weights: &Vec<f64>| {
                let mut all = vec![0.0; doses.len()];
                kept.iter().zip(weights).for_each(|(at, weight)| all[*at] = *weight);
                all
            };
            let mut weights: Vec<Vec<f64>> = solved.iter().skip(1).map(spread).collect();
            let base = if has_base { weights.remove(0) } else { vec![0.0; doses.len()] };
            Some((base, weights))
        };
        let ((base, weights), is_tested) = match of(Some(largest)) {
            Some(solved) => (solved, true),
            None => (of(None)?, false),
        };
        Some(Self { sets, base, weights, largest, bare, is_tested })
    }

    /// What an instrument that records nothing adds to an iteration, by the times of one round.
    pub(super) fn base_ns(&self, times_ns: &[f64]) -> f64 {
        product(&self.base, times_ns)
    }

    /// What each of `sets` adds to an iteration, by the times of one round.
    pub(super) fn costs_ns(&self, times_ns: &[f64]) -> Vec<f64> {
        self.weights.iter().map(|weights| product(weights, times_ns)).collect()
    }
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The weights of the observations in each unknown of the least-squares solution, for the design `rows`; `None` where they
/// leave an unknown open.
fn least_squares(rows: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let unknowns = rows.first()?.len();
    // The normal equations, beside the transposed design: solved for all observations at once.
    let mut equations: Vec<Vec<f64>> = (0..unknowns)
        .map(|i| {
            let normal = (0..unknowns).map(|j| rows.iter().map(|row| row[i] * row[j]).sum());
            normal.chain(rows.iter().map(|row| row[i])).collect()
        })
        .collect();
    for column in 0..unknowns {
        let pivot = (column..unknowns)
            .max_by(|a, b| equations[*a][column].abs().total_cmp(&equations[*b][column].abs()))?;
        // Designs are of zeros and ones, so that what is not 0 is not small.
        if equations[pivot][column].abs() < 1e-6 {
            return None;
        }
        equations.swap(column, pivot);
        let by = equations[column][column];
        equations[column].iter_mut().for_each(|value| *value /= by);
        let solved = equations[column].clone();
        for (at, equation) in equations.iter_mut().enumerate() {
            let times = equation[column];
            if at != column {
                equation.iter_mut().zip(&solved).for_each(|(value, solved)| *value -= times * solved);
            }
        }
    }
    Some(equations.into_iter().map(|equation| equation[unknowns..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use EventSet::{Calls, Switches, WakeUps};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn single_sets_tell_the_costs_and_leave_the_largest_dose_as_a_test() {
        let doses: Vec<RecordedSets> = vec![
            None,
            Some(vec![]),
            Some(vec![Calls]),
            Some(vec![Switches]),
            Some(vec![WakeUps]),
            Some(vec![Calls, WakeUps, Switches]),
        ];
        let fit = DoseFit::of(&doses).unwrap();
        assert!(fit.is_tested);
        assert_eq!((fit.bare, fit.largest, fit.sets.as_slice()), (0, 5, &[Switches, WakeUps, Calls][..]));
        // The largest dose may be what it will: it says nothing of the costs.
        for largest_ns in [0.0, 9e9] {
            let times_ns = [1000.0, 1010.0, 1110.0, 1040.0, 1060.0, largest_ns];
            assert!(close(fit.base_ns(&times_ns), 10.0));
            let costs = fit.costs_ns(&times_ns);
            assert!(close(costs[0], 30.0) && close(costs[1], 50.0) && close(costs[2], 100.0), "{costs:?}");
        }
    }

    #[test]
    fn sets_one_on_the_other_tell_the_costs_and_test_nothing() {
        let doses: Vec<RecordedSets> =
            vec![None, Some(vec![]), Some(vec![Switches]), Some(vec![Switches, WakeUps])];
        let fit = DoseFit::of(&doses).unwrap();
        assert!(!fit.is_tested);
        let costs = fit.costs_ns(&[1000.0, 1010.0, 1040.0, 1100.0]);
        assert!(close(costs[0], 30.0) && close(costs[1], 60.0), "{costs:?}");
    }

    #[test]
    fn without_bare_trials_or_without_a_dose_for_a_set_there_is_no_fit() {
        assert_eq!(DoseFit::of(&[Some(vec![]), Some(vec![Calls])]), None);
        assert_eq!(DoseFit::of(&[None]), None);
        assert_eq!(DoseFit::of(&[None, Some(vec![]), Some(vec![Calls, WakeUps])]), None);
        assert_eq!(DoseFit::of(&[]), None);
    }

    #[test]
    fn more_doses_than_unknowns_are_averaged() {
        let doses: Vec<RecordedSets> = vec![
            None,
            Some(vec![]),
            Some(vec![Calls]),
            Some(vec![WakeUps]),
            Some(vec![Calls, WakeUps]),
            Some(vec![Switches]),
            Some(vec![Switches, Calls, WakeUps]),
        ];
        let fit = DoseFit::of(&doses).unwrap();
        // The two that stand alone say 10 each, together 20, and both at once 26: less 2 for what all have in common, 13 each.
        let times_ns = [0.0, 0.0, 10.0, 10.0, 26.0, 5.0, 99.0];
        let (base_ns, costs) = (fit.base_ns(&times_ns), fit.costs_ns(&times_ns));
        assert!(fit.is_tested && close(costs[1], 13.0) && close(costs[2], 13.0), "{costs:?}");
        assert!(close(base_ns + costs[0], 5.0) && close(base_ns, -1.5), "{base_ns} {costs:?}");
    }
}
