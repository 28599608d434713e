//! What recording events costs an iteration, by dose: trials without an instrument, with one that records nothing, and with sets of
//! events, of the same iterations in the same rounds.
//!
//! An iteration is taken to be longer by a fixed time where an instrument is there, by one time more if it records anything, and by
//! one for each set that it records. What is paid once is the kernel's code and buffers that the first event of an iteration brings
//! into the caches for all others: seen as a tenth of an iteration, by which the sum of sets that were each recorded alone is too large
//! for every further set (`cargo xtask bench doses`).
//!
//! These times are found by least squares, from all doses but the largest, if they suffice: that these costs, taken from
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
    /// The weights of the doses in what is paid once, whichever sets are recorded.
    common: Vec<f64>,
    /// The weights of the doses in the cost of each set.
    weights: Vec<Vec<f64>>,
    /// The place of the largest dose.
    pub(super) largest: usize,
    /// The place of the trials without an instrument.
    pub(super) bare: usize,
    /// What is paid once is told from what each set costs.
    pub(super) has_common: bool,
    /// The largest dose had no part in the costs.
    pub(super) is_tested: bool,
}

/// What recording adds to an iteration, in nanoseconds, by the times of one round.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct DoseCosts {
    /// An instrument that records nothing.
    pub(super) base_ns: f64,
    /// Recording anything.
    pub(super) common_ns: f64,
    /// Recording each set, beside that.
    pub(super) sets_ns: Vec<f64>,
}

/// Which unknowns a fit has beside the time without an instrument and the costs of the sets.
#[derive(Clone, Copy)]
struct Unknowns {
    base: bool,
    common: bool,
}

/// The place of the dose with most sets; `None` where nothing was recorded.
pub(super) fn largest_dose(doses: &[RecordedSets]) -> Option<usize> {
    let recorded = (0..doses.len()).filter_map(|at| Some((doses[at].as_ref()?.len(), usize::MAX - at, at)));
    recorded.max().map(|(.., at)| at)
}

/// The sets of a dose, in the order of [`EventSet::ALL`].
pub(super) fn recorded_sets(dose: &RecordedSets) -> Vec<EventSet> {
    EventSet::ALL.iter().copied().filter(|set| dose.as_ref().is_some_and(|sets| sets.contains(set))).collect()
}

impl DoseFit {
    /// The fit for `doses`, each once; `None` where they do not tell the costs. What is paid once is paid where some of `frequent` is
    /// recorded: other sets have no event in most iterations.
    pub(super) fn from_doses(doses: &[RecordedSets], frequent: &[EventSet]) -> Option<Self> {
        let bare = doses.iter().position(Option::is_none)?;
        let largest = largest_dose(doses)?;
        let sets = recorded_sets(&doses[largest]);
        let row = |dose: &RecordedSets, unknowns: Unknowns| -> Vec<f64> {
            let one_if = |is: bool| f64::from(u8::from(is));
            let records = |set: &EventSet| dose.as_ref().is_some_and(|sets| sets.contains(set));
            let base = unknowns.base.then(|| one_if(dose.is_some()));
            let common = unknowns.common.then(|| one_if(frequent.iter().any(records)));
            let recorded = sets.iter().map(|set| one_if(records(set)));
            [1.0].into_iter().chain(base).chain(common).chain(recorded).collect()
        };
        let solved = |left_out: Option<usize>, unknowns: Unknowns| {
            let kept: Vec<usize> = (0..doses.len()).filter(|at| Some(*at) != left_out).collect();
            let rows: Vec<Vec<f64>> = kept.iter().map(|at| row(&doses[*at], unknowns)).collect();
            let spread = |weights: &Vec<f64>| {
                let mut all = vec![0.0; doses.len()];
                kept.iter().zip(weights).for_each(|(at, weight)| all[*at] = *weight);
                all
            };
            let mut weights =
                least_squares(&rows)?.iter().skip(1).map(spread).collect::<Vec<_>>().into_iter();
            let mut next_if = |is: bool| if is { weights.next() } else { Some(vec![0.0; doses.len()]) };
            let (base, common) = (next_if(unknowns.base)?, next_if(unknowns.common)?);
            Some((base, common, weights.collect()))
        };
        // An instrument that records nothing has a cost of its own only where such trials were made.
        let base = doses.iter().flatten().any(Vec::is_empty);
        let fits = [(Some(largest), true), (Some(largest), false), (None, false)];
        fits.into_iter().find_map(|(left_out, common)| {
            let (base, common_weights, weights) = solved(left_out, Unknowns { base, common })?;
            Some(Self {
                sets: sets.clone(),
                base,
                common: common_weights,
                weights,
                largest,
                bare,
                has_common: common,
                is_tested: left_out.is_some(),
            })
        })
    }

    /// What recording adds to an iteration, by the times of one round.
    pub(super) fn costs(&self, times_ns: &[f64]) -> DoseCosts {
        DoseCosts {
            base_ns: product(&self.base, times_ns),
            common_ns: product(&self.common, times_ns),
            sets_ns: self.weights.iter().map(|weights| product(weights, times_ns)).collect(),
        }
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
    use EventSet::{Calls, Idle, Switches, WakeUps};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    fn are_close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(*a, *b))
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
        let fit = DoseFit::from_doses(&doses, EventSet::ALL).unwrap();
        assert!(fit.is_tested);
        assert_eq!((fit.bare, fit.largest, fit.sets.as_slice()), (0, 5, &[Switches, WakeUps, Calls][..]));
        // The largest dose may be what it will: it says nothing of the costs.
        for largest_ns in [0.0, 9e9] {
            let times_ns = [1000.0, 1010.0, 1110.0, 1040.0, 1060.0, largest_ns];
            let costs = fit.costs(&times_ns);
            assert!(!fit.has_common && close(costs.base_ns, 10.0) && costs.common_ns == 0.0, "{costs:?}");
            assert!(are_close(&costs.sets_ns, &[30.0, 50.0, 100.0]), "{costs:?}");
        }
    }

    #[test]
    fn sets_one_on_the_other_tell_the_costs_and_test_nothing() {
        let doses: Vec<RecordedSets> =
            vec![None, Some(vec![]), Some(vec![Switches]), Some(vec![Switches, WakeUps])];
        let fit = DoseFit::from_doses(&doses, EventSet::ALL).unwrap();
        assert!(!fit.is_tested);
        let costs = fit.costs(&[1000.0, 1010.0, 1040.0, 1100.0]);
        assert!(are_close(&costs.sets_ns, &[30.0, 60.0]), "{costs:?}");
    }

    #[test]
    fn without_bare_trials_or_without_a_dose_for_a_set_there_is_no_fit() {
        assert_eq!(DoseFit::from_doses(&[Some(vec![]), Some(vec![Calls])], EventSet::ALL), None);
        assert_eq!(DoseFit::from_doses(&[None], EventSet::ALL), None);
        assert_eq!(
            DoseFit::from_doses(&[None, Some(vec![]), Some(vec![Calls, WakeUps])], EventSet::ALL),
            None
        );
        assert_eq!(DoseFit::from_doses(&[], EventSet::ALL), None);
    }

    /// Bare, nothing, each of three sets alone, in pairs, and all with a fourth.
    fn with_pairs() -> Vec<RecordedSets> {
        vec![
            None,
            Some(vec![]),
            Some(vec![Switches]),
            Some(vec![WakeUps]),
            Some(vec![Calls]),
            Some(vec![Idle]),
            Some(vec![Switches, WakeUps]),
            Some(vec![Switches, Calls]),
            Some(vec![WakeUps, Calls]),
            Some(vec![Switches, WakeUps, Calls, Idle]),
        ]
    }

    #[test]
    fn pairs_tell_what_is_paid_once_from_what_each_set_costs() {
        let time = |dose: &RecordedSets, with_idle: bool| {
            let Some(sets) = dose else { return 1000.0 };
            let cost = |set: &EventSet| match set {
                Switches => 30.0,
                WakeUps => 50.0,
                Calls => 100.0,
                _ if with_idle => 20.0,
                _ => 0.0,
            };
            let pays = sets.iter().any(|set| *set != Idle || with_idle);
            1010.0 + if pays { 70.0 } else { 0.0 } + sets.iter().map(cost).sum::<f64>()
        };
        for with_idle in [true, false] {
            let frequent =
                if with_idle { vec![Switches, WakeUps, Calls, Idle] } else { vec![Switches, WakeUps, Calls] };
            let fit = DoseFit::from_doses(&with_pairs(), &frequent).unwrap();
            assert!(fit.is_tested && fit.has_common);
            let times_ns: Vec<f64> = with_pairs().iter().map(|dose| time(dose, with_idle)).collect();
            let costs = fit.costs(&times_ns);
            assert!(close(costs.base_ns, 10.0) && close(costs.common_ns, 70.0), "{costs:?}");
            let idle = if with_idle { 20.0 } else { 0.0 };
            assert!(are_close(&costs.sets_ns, &[30.0, 50.0, 100.0, idle]), "{costs:?}");
        }
    }

    #[test]
    fn more_doses_than_unknowns_are_averaged() {
        let fit = DoseFit::from_doses(&with_pairs(), &[Switches, WakeUps, Calls, Idle]).unwrap();
        // By single sets each costs 10; by pairs those with calls cost 2 more than that.
        let times_ns = [0.0, 0.0, 10.0, 10.0, 10.0, 10.0, 20.0, 22.0, 22.0, 99.0];
        let costs = fit.costs(&times_ns);
        let sum_of_three = costs.common_ns + costs.sets_ns[0] + costs.sets_ns[1] + costs.sets_ns[2];
        // The means of singles and of pairs, 10 and 21.3, led on.
        assert!(close(sum_of_three, 2.0 * 64.0 / 3.0 - 10.0), "{costs:?}");
        assert!(
            costs.sets_ns[2] > costs.sets_ns[0] && close(costs.sets_ns[0], costs.sets_ns[1]),
            "{costs:?}"
        );
    }
}
