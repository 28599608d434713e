//! What differs between iterations of one case: the slowest hundredth, and two groups into which iterations fall.

use super::segment::SegmentPlace;
use super::sum::DosedTrials;
use super::tally::{IterationPlaces, TrialPaths};
use crate::stats::{mean, two_modes};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Iterations above this quantile of their trial are slow.
const SLOW: f64 = 0.99;
/// Fewer slow iterations say nothing about what makes iterations slow.
const FEWEST_SLOW: usize = 10;
/// How many segments are named.
const MOST_NAMED: usize = 4;

/// What makes the slowest iterations slow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowIterations {
    /// How many there are: a hundredth of each trial.
    pub count: usize,
    /// What they take in the mean, in nanoseconds.
    pub mean_ns: f64,
    /// What the others take in the mean.
    pub others_ns: f64,
    /// The segments that grew most in one of them or more, the most frequent first.
    pub segments: Vec<SlowSegment>,
}

/// A segment that makes iterations slow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowSegment {
    /// Which.
    pub place: SegmentPlace,
    /// In how many of the slow iterations it grew more than any other.
    pub count: usize,
    /// By how much it is longer in those than in the iterations that are not slow, in the mean, in nanoseconds.
    pub grew_ns: f64,
}

/// Two groups of iterations, and what differs between them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TwoGroups {
    /// The mean of the fast group, in nanoseconds.
    pub fast_ns: f64,
    /// The mean of the slow one.
    pub slow_ns: f64,
    /// The share of iterations in the fast group.
    pub fast_share: f64,
    /// The trials that have iterations of both groups.
    pub mixed_trials: usize,
    /// All trials.
    pub trials: usize,
    /// The segments that differ most.
    pub segments: Vec<GroupDifference>,
}

/// A segment in two groups of iterations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupDifference {
    /// Which.
    pub place: SegmentPlace,
    /// What it takes in an iteration of the fast group, in nanoseconds.
    pub fast_ns: f64,
    /// In one of the slow group.
    pub slow_ns: f64,
    /// The share of iterations of the fast group that have it.
    pub fast_share: f64,
    /// The share of those of the slow group.
    pub slow_share: f64,
}

impl DosedTrials {
    /// What makes the slowest hundredth of the iterations slow; `None` where there are too few.
    pub fn slow_iterations(&self) -> Option<SlowIterations> {
        let trials = self.largest();
        let (mut slow, mut others) = (Vec::new(), Vec::new());
        for trial in trials {
            let mut by_time: Vec<&IterationPlaces> = trial.each.iter().collect();
            by_time.sort_by_key(|path| path.ns);
            let kept = (by_time.len() as f64 * SLOW).ceil() as usize;
            slow.extend(by_time.split_off(kept.min(by_time.len())));
            others.extend(by_time);
        }
        if slow.len() < FEWEST_SLOW {
            return None;
        }
        let typical = means(&others);
        let mut grown: BTreeMap<SegmentPlace, Vec<f64>> = BTreeMap::new();
        for path in &slow {
            let most = path
                .places
                .iter()
                .map(|(place, ns)| (*place, *ns as f64 - typical.get(place).copied().unwrap_or(0.0)))
                .max_by(|(_, a), (_, b)| a.total_cmp(b));
            if let Some((place, ns)) = most {
                grown.entry(place).or_default().push(ns);
            }
        }
        let mut segments: Vec<SlowSegment> = grown
            .into_iter()
            .map(|(place, grew)| SlowSegment { place, count: grew.len(), grew_ns: mean(&grew) })
            .collect();
        segments.sort_by(|a, b| b.count.cmp(&a.count).then(b.grew_ns.total_cmp(&a.grew_ns)));
        segments.truncate(MOST_NAMED);
        Some(SlowIterations {
            count: slow.len(),
            mean_ns: mean_ns(&slow),
            others_ns: mean_ns(&others),
            segments,
        })
    }

    /// The two groups into which iterations fall, if they do, and what differs between them.
    pub fn two_groups(&self) -> Option<TwoGroups> {
        let trials = self.largest();
        let times: Vec<f64> =
            trials.iter().flat_map(|trial| &trial.each).map(|path| path.ns as f64).collect();
        let modes = two_modes(&times, trials.len())?;
        let bound_ns = (modes.fast * modes.slow).sqrt();
        let is_fast = |path: &&IterationPlaces| (path.ns as f64) < bound_ns;
        let (fast, slow): (Vec<&IterationPlaces>, Vec<&IterationPlaces>) =
            trials.iter().flat_map(|trial| &trial.each).partition(is_fast);
        let is_mixed = |trial: &&&TrialPaths| {
            let count = trial.each.iter().filter(is_fast).count();
            count > 0 && count < trial.each.len()
        };
        Some(TwoGroups {
            fast_ns: mean_ns(&fast),
            slow_ns: mean_ns(&slow),
            fast_share: fast.len() as f64 / times.len() as f64,
            mixed_trials: trials.iter().filter(is_mixed).count(),
            trials: trials.len(),
            segments: differences(&fast, &slow),
        })
    }
}

/// The segments that differ most between two groups of iterations.
fn differences(fast: &[&IterationPlaces], slow: &[&IterationPlaces]) -> Vec<GroupDifference> {
    let (fast_means, slow_means) = (means(fast), means(slow));
    let all: BTreeSet<SegmentPlace> = fast_means.keys().chain(slow_means.keys()).copied().collect();
    let share = |of: &[&IterationPlaces], place| {
        let have = of.iter().filter(|path| path.places.iter().any(|(at, _)| *at == place));
        have.count() as f64 / of.len().max(1) as f64
    };
    let mean_at = |means: &BTreeMap<SegmentPlace, f64>, place| means.get(&place).copied().unwrap_or(0.0);
    let mut segments: Vec<GroupDifference> = all
        .into_iter()
        .map(|place| GroupDifference {
            place,
            fast_ns: mean_at(&fast_means, place),
            slow_ns: mean_at(&slow_means, place),
            fast_share: share(fast, place),
            slow_share: share(slow, place),
        })
        .collect();
    let apart = |group: &GroupDifference| (group.slow_ns - group.fast_ns).abs();
    segments.sort_by(|a, b| apart(b).total_cmp(&apart(a)));
    segments.truncate(MOST_NAMED);
    segments
}

fn mean_ns(paths: &[&IterationPlaces]) -> f64 {
    mean(&paths.iter().map(|path| path.ns as f64).collect::<Vec<_>>())
}

/// Nanoseconds an iteration at each place.
fn means(paths: &[&IterationPlaces]) -> BTreeMap<SegmentPlace, f64> {
    let mut sums: BTreeMap<SegmentPlace, f64> = BTreeMap::new();
    for (place, ns) in paths.iter().flat_map(|path| &path.places) {
        *sums.entry(*place).or_default() += *ns as f64;
    }
    sums.into_iter().map(|(place, ns)| (place, ns / paths.len().max(1) as f64)).collect()
}
