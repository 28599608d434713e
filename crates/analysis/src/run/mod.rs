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

use self::drift::window_of;
use self::fit::{GROUP_WORTH, GroupFit, READINGS, Slice, fit};
use self::slices::{CaseSlices, GroupKey, Wakes};
pub use self::slices::{HostState, RunSlices};
pub(crate) use self::slices::{fast_quarter_ns, stalled_ns};
use crate::host_speed::FullSpeed;
use crate::interval::MeanError;
use crate::stats::student_quantile;
use model::Case;
use model::estimate::Estimate;
use model::record::{Results, Sample};
use model::summary::SpeedSlope;
use std::collections::HashMap;

/// What an interval misses on each side.
const TAIL: f64 = 0.025;
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
        Self::of(&RunSlices::of_results(results))
    }

    /// Of the samples of each case.
    pub fn of_records<'a>(records: impl IntoIterator<Item = (&'a Case, &'a [Sample])>) -> Self {
        Self::of(&RunSlices::of(records))
    }

    /// How fast the host was.
    pub fn full_speed(&self) -> &FullSpeed {
        &self.full_speed
    }

    /// Of `slices`, at the state of the host in the calmest tenth of them.
    pub fn of(slices: &RunSlices) -> Self {
        let wakes = Wakes::of(slices);
        Self::fitted(slices, &slices.calm_state_of(&wakes), &wakes)
    }

    /// Of `slices`, at `state`.
    pub fn at(slices: &RunSlices, state: &HostState) -> Self {
        Self::fitted(slices, state, &Wakes::of(slices))
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
            keys.iter().zip(&members).map(|(key, cases)| Group::of(key, cases, state, wakes)).collect();
        let places = members.iter().enumerate().flat_map(|(group, cases)| {
            cases.iter().enumerate().map(move |(at, case)| (case.case.clone(), (group, at)))
        });
        Self { groups, place_of: places.collect(), full_speed: slices.full_speed.clone() }
    }

    /// What an iteration of `case` takes at the state of the host, in nanoseconds; `None` where it has no slice.
    pub fn time_ns(&self, case: &Case) -> Option<Estimate> {
        let (group, at) = self.place_of.get(case)?;
        let group = &self.groups[*group];
        let (log, variance) = group.fit.contrast(&[(*at, 1.0)]);
        Some(group.estimate(log, variance + group.fit.drift, &[*at]))
    }

    /// The logarithm of the time of `case` with its error; `None` where it has no slice.
    pub(crate) fn log_time(&self, case: &Case) -> Option<MeanError> {
        let (group, at) = self.place_of.get(case)?;
        let group = &self.groups[*group];
        let (mean, variance) = group.fit.contrast(&[(*at, 1.0)]);
        Some(MeanError { mean, variance: variance + group.fit.drift, degrees: group.degrees(&[*at]) })
    }

    /// The time of `case` over the geometric mean of those of `others`; `None` where one has no slice, or they are of two groups, so that the
    /// host does not cancel.
    pub fn ratio(&self, case: &Case, others: &[&Case]) -> Option<Estimate> {
        let (of, at) = self.place_of.get(case)?;
        let share = -1.0 / others.len() as f64;
        let mut shares = vec![(*at, 1.0)];
        for other in others {
            let (_, at) = self.place_of.get(other).filter(|(group, _)| group == of)?;
            shares.push((*at, share));
        }
        let group = &self.groups[*of];
        let (log, variance) = group.fit.contrast(&shares);
        let cases: Vec<usize> = shares.iter().map(|(at, _)| *at).collect();
        Some(group.estimate(log, variance, &cases))
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
    fn of(key: &GroupKey, cases: &[&CaseSlices], state: &HostState, wakes: &Wakes) -> Self {
        let slices: Vec<Vec<Slice>> = cases.iter().map(|case| regressed(case, key, state, wakes)).collect();
        let fit = fit(&slices);
        let spare_trials = fit.effects.iter().map(|effect| effect.trials as f64 - 1.0).sum();
        let is_read = key.places.map(|place| place.is_some());
        Self { fit, is_read, spare_trials }
    }

    /// The degrees of freedom of what the cases at `cases` say: their trials were drawn to those of the others.
    fn degrees(&self, cases: &[usize]) -> f64 {
        let spare: f64 = cases.iter().map(|at| self.fit.effects[*at].trials as f64 - 1.0).sum();
        spare + GROUP_WORTH.min((self.spare_trials - spare).max(0.0))
    }

    /// Of a logarithm with a variance, of what the cases at `cases` say.
    fn estimate(&self, log: f64, variance: f64, cases: &[usize]) -> Estimate {
        let degrees = self.degrees(cases);
        let half = student_quantile(TAIL, degrees) * variance.sqrt();
        let interval = (degrees >= LEAST_DEGREES).then(|| ((log - half).exp(), (log + half).exp()));
        Estimate { median: log.exp(), interval }
    }
}

/// The slices of a case of the group `key`, with its trials numbered.
fn regressed(case: &CaseSlices, key: &GroupKey, state: &HostState, wakes: &Wakes) -> Vec<Slice> {
    let mut numbers: HashMap<u32, usize> = HashMap::new();
    let mut slices = Vec::with_capacity(case.slices.len());
    for slice in case.moving() {
        let Some(readings) = slice.over(&key.places, state, wakes) else { continue };
        let next = numbers.len();
        let trial = *numbers.entry(slice.trial).or_insert(next);
        let window = window_of(slice.started_ns);
        slices.push(Slice { trial, window, log_time: slice.log_time, readings });
    }
    slices
}
