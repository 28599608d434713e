//! One model of a run: what each case takes at a stated state of the host, and what that is worth. Nothing else makes times of
//! slices.
//!
//! All cases of a place that wait in the same way are fitted together (`fit.rs`), so that each knows how times follow what is read
//! beside slices. What moves them together within a run, and no reading tells, is taken to move them as much from one run
//! to the next.

mod drift;
mod fit;
mod slices;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wandering_tests;

use self::drift::window_of;
use self::fit::{GROUP_WORTH, GroupFit, READINGS, Slice, fit};
use self::slices::{CaseSlices, GroupKey, Wakes};
pub use self::slices::{HostState, RunSlices};
pub(crate) use self::slices::{fast_quarter_ns, stalled_ns};
use crate::host_speed::FullSpeed;
use crate::interval::{MeanError, TAIL};
use crate::stats::student_quantile;
use model::Case;
use model::estimate::Estimate;
use model::record::{Results, Sample};
use model::summary::SpeedSlope;
use std::collections::{BTreeMap, HashMap};

/// With fewer degrees of freedom there is no interval: what trials differ by is a matter of chance.
const LEAST_DEGREES: f64 = 5.0;

/// The model of a run.
#[derive(Debug, Clone)]
pub struct RunModel {
    groups: Vec<Group>,
    /// The group of each case, and its place there.
    place_of: HashMap<Case, (usize, usize)>,
    full_speed: FullSpeed,
}

/// Cases that were fitted together.
#[derive(Debug, Clone)]
struct Group {
    fit: GroupFit,
    /// Which readings its cases have.
    is_read: [bool; READINGS],
    /// The trials of all of them, less one for each case.
    spare_trials: f64,
}

impl RunModel {
    /// Of all samples of `results`.
    pub fn of_results(results: &Results) -> Self {
        Self::from_slices(&RunSlices::of_results(results))
    }

    /// Of the samples of each case.
    pub fn of_records<'a>(records: impl IntoIterator<Item = (&'a Case, &'a [Sample])>) -> Self {
        Self::from_slices(&RunSlices::from_records(records))
    }

    /// How fast the host was.
    pub fn full_speed(&self) -> &FullSpeed {
        &self.full_speed
    }

    /// Of `slices`, at the state of the host in the calmest quarter of them.
    pub fn from_slices(slices: &RunSlices) -> Self {
        let wakes = Wakes::from_slices(slices);
        Self::fitted(slices, &slices.calm_state_of(&wakes), &wakes)
    }

    /// Of `slices`, at `state`.
    pub fn at(slices: &RunSlices, state: &HostState) -> Self {
        Self::fitted(slices, state, &Wakes::from_slices(slices))
    }

    fn fitted(slices: &RunSlices, state: &HostState, wakes: &Wakes) -> Self {
        let mut keys: Vec<GroupKey> = Vec::new();
        let mut members: Vec<Vec<&CaseSlices>> = Vec::new();
        // In an order of their own, so that sums are the same however the slices came.
        let mut cases: Vec<&CaseSlices> = slices.cases.iter().collect();
        cases.sort_by_cached_key(|case| case.case.to_string());
        for case in cases {
            let key = case.key(state);
            let at = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                keys.push(key);
                members.push(Vec::new());
                keys.len() - 1
            });
            members[at].push(case);
        }
        let groups =
            keys.iter().zip(&members).map(|(key, cases)| Group::fitted(key, cases, state, wakes)).collect();
        let places = members.iter().enumerate().flat_map(|(group, cases)| {
            cases.iter().enumerate().map(move |(at, case)| (case.case.clone(), (group, at)))
        });
        Self { groups, place_of: places.collect(), full_speed: slices.full_speed.clone() }
    }

    /// What an iteration of `case` takes at the state of the host, in nanoseconds; `None` where it has no slice.
    pub fn time_ns(&self, case: &Case) -> Option<Estimate> {
        Some(estimate(self.log_sum(&[(case, 1.0)])?))
    }

    /// The time of `case` over the geometric mean of those of `others`; `None` where one has no slice. Of cases that were fitted together
    /// it is known better than their times, for the host cancels.
    pub fn ratio(&self, case: &Case, others: &[&Case]) -> Option<Estimate> {
        let share = -1.0 / others.len() as f64;
        let others = others.iter().map(|other| (*other, share));
        Some(estimate(self.log_sum(&std::iter::once((case, 1.0)).chain(others).collect::<Vec<_>>())?))
    }

    /// The sum of the logarithms of the times of cases, each times its share, with its error; `None` where one has no slice.
    pub(crate) fn log_sum(&self, shares: &[(&Case, f64)]) -> Option<MeanError> {
        let mut of_groups: BTreeMap<usize, BTreeMap<usize, f64>> = BTreeMap::new();
        for (case, share) in shares {
            let (group, at) = self.place_of.get(case)?;
            // A case may stand on both sides of a ratio.
            *of_groups.entry(*group).or_default().entry(*at).or_default() += share;
        }
        let sums = of_groups.iter().map(|(group, shares)| {
            self.groups[*group].log_sum(&shares.iter().map(|(at, share)| (*at, *share)).collect::<Vec<_>>())
        });
        Some(MeanError::of_sum(sums))
    }

    /// `error`, unless trials are so few that what they differ by is a matter of chance.
    pub(crate) fn known(error: MeanError) -> Option<MeanError> {
        (error.degrees >= LEAST_DEGREES).then_some(error)
    }

    /// How the times of `case` follow what was read beside them: of the client's CPU, the server's, their pair, and of waking.
    pub fn slopes(&self, case: &Case) -> Option<[Option<SpeedSlope>; READINGS]> {
        /// Half the width of a 95% interval, in standard deviations.
        const NORMAL: f64 = 1.96;
        let (group, at) = self.place_of.get(case)?;
        let group = &self.groups[*group];
        let slope = |of: usize| {
            let (slope, variance) = group.fit.effects[*at].slopes[of];
            let half = NORMAL * variance.sqrt();
            group.is_read[of].then_some(SpeedSlope { slope, interval: (slope - half, slope + half) })
        };
        Some(std::array::from_fn(slope))
    }
}

impl Group {
    fn fitted(key: &GroupKey, cases: &[&CaseSlices], state: &HostState, wakes: &Wakes) -> Self {
        let slices: Vec<Vec<Slice>> = cases.iter().map(|case| regressed(case, key, state, wakes)).collect();
        let fit = fit(&slices);
        let spare_trials = fit.effects.iter().map(|effect| effect.trials as f64 - 1.0).sum();
        let is_read = key.places.map(|place| place.is_some());
        Self { fit, is_read, spare_trials }
    }

    /// The sum of the logarithms of the times of its cases, each times its share. Trials were drawn to those of the others, which counts as
    /// so many more.
    fn log_sum(&self, shares: &[(usize, f64)]) -> MeanError {
        let (mean, variance) = self.fit.contrast(shares);
        let moved: f64 = shares.iter().map(|(_, share)| share).sum();
        let own = shares.iter().map(|(at, share)| {
            let effect = &self.fit.effects[*at];
            let spare = effect.trials as f64 - 1.0;
            let degrees = spare + GROUP_WORTH.min((self.spare_trials - spare).max(0.0));
            MeanError { mean: 0.0, variance: share * share * effect.own, degrees }
        });
        let degrees = MeanError::of_sum(own).degrees;
        // Less would be no interval at all, where the trials know one.
        let of_windows = self.fit.drift.spare_windows.max(LEAST_DEGREES);
        let moves =
            MeanError { mean: 0.0, variance: moved * moved * self.fit.drift.variance, degrees: of_windows };
        MeanError::of_sum([MeanError { mean, variance, degrees }, moves])
    }
}

/// Of a logarithm.
fn estimate(log: MeanError) -> Estimate {
    let interval = RunModel::known(log).map(|MeanError { mean, variance, degrees }| {
        let half = student_quantile(TAIL, degrees) * variance.sqrt();
        ((mean - half).exp(), (mean + half).exp())
    });
    Estimate { median: log.mean.exp(), interval }
}

/// The slices of a case of the group `key`, with its trials numbered.
fn regressed(case: &CaseSlices, key: &GroupKey, state: &HostState, wakes: &Wakes) -> Vec<Slice> {
    let mut numbers: HashMap<u32, usize> = HashMap::new();
    let mut slices = Vec::with_capacity(case.slices.len());
    for slice in case.moving() {
        let Some(readings) = slice.over(&key.places, state, wakes) else { continue };
        let next = numbers.len();
        let trial = *numbers.entry(slice.trial).or_insert(next);
        slices.push(Slice::new(trial, window_of(slice.started_ns), slice.log_time, &readings));
    }
    slices
}
