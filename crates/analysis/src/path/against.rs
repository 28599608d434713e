//! Why one case is slower than another: the difference of their iterations as a sum over the segments of both paths.

use super::segment::SegmentPlace;
use super::sum::{PathSum, RoundSum};
use crate::interval::{MeanEstimate, mean_over_trials};
use crate::missed_settings::MissedSetting;
use model::Case;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Segments that differ by less than this share of the whole difference are added up.
const MINOR: f64 = 0.02;

/// One line of a difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SegmentDifference {
    /// Where on the path, whatever the calls are; absent of all that differs little, added up.
    pub place: Option<SegmentPlace>,
    /// The numbers of the calls there, of the first case and of the second.
    pub calls: [Vec<u32>; 2],
    /// What it takes in the first case, in nanoseconds an iteration.
    pub first_ns: MeanEstimate,
    /// In the second.
    pub second_ns: MeanEstimate,
    /// The first less the second.
    pub difference_ns: MeanEstimate,
}

/// The iteration of one case less that of another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathDifference {
    /// The rounds in which both were measured.
    pub rounds: usize,
    /// By iterations without an instrument: what is to be explained.
    pub bare_ns: MeanEstimate,
    /// The iterations of both without an instrument.
    pub bare_of_each_ns: [MeanEstimate; 2],
    /// The segments, the largest difference first.
    pub segments: Vec<SegmentDifference>,
    /// The sum of the differences of all segments.
    pub sum_ns: MeanEstimate,
    /// That sum less the difference without an instrument.
    pub residual_ns: MeanEstimate,
}

/// Why one case is slower than another.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedDifference {
    /// The first case, and the one that it is held against.
    pub cases: [Case; 2],
    /// The build whose endpoints the second has, where that is another.
    pub other_build: Option<PathBuf>,
    /// The settings of both that are not as asked, or not as usual.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<MissedSetting>,
    /// The difference of their iterations.
    pub difference: PathDifference,
    /// The path of each.
    pub sums: [PathSum; 2],
    /// The names of the calls on both paths.
    pub call_names: BTreeMap<u32, String>,
}

impl ExplainedDifference {
    /// Of `cases`, by the path of each; `None` where they have no round in common. `call` names a system call by its number.
    pub fn between(
        cases: [Case; 2],
        other_build: Option<&Path>,
        settings: Vec<MissedSetting>,
        sums: [PathSum; 2],
        call: impl Fn(u32) -> String,
    ) -> Option<Self> {
        let difference = differ(&sums[0], &sums[1])?;
        let call_names = sums.iter().flat_map(|sum| sum.call_names(&call)).collect();
        let other_build = other_build.map(Path::to_owned);
        Some(Self { cases, other_build, settings, difference, sums, call_names })
    }
}

impl PathDifference {
    /// The segments that surely differ, in the direction of the whole.
    pub fn carriers(&self) -> impl Iterator<Item = &SegmentDifference> {
        let sign = self.bare_ns.mean.signum();
        self.segments.iter().filter(move |line| {
            line.place.is_some() && line.difference_ns.is_sure() && line.difference_ns.mean * sign > 0.0
        })
    }
}

/// The iteration of `first` less that of `second`, from the rounds that both have; `None` where there is none.
pub fn differ(first: &PathSum, second: &PathSum) -> Option<PathDifference> {
    let pairs: Vec<[&RoundSum; 2]> = first
        .by_round
        .iter()
        .filter_map(|(round, of_first)| Some([of_first, second.by_round.get(round)?]))
        .collect();
    let mean =
        |of: &dyn Fn(&[&RoundSum; 2]) -> f64| mean_over_trials(&pairs.iter().map(of).collect::<Vec<f64>>());
    let places: BTreeSet<SegmentPlace> = pairs
        .iter()
        .flatten()
        .flat_map(|round| round.corrected_ns.keys())
        .map(|place| place.without_call())
        .collect();
    let calls = |place: SegmentPlace| {
        [first, second].map(|sum| -> Vec<u32> {
            let rounds = sum.by_round.values().flat_map(|round| round.corrected_ns.keys());
            let calls: BTreeSet<u32> =
                rounds.filter(|at| at.without_call() == place).filter_map(|at| at.call).collect();
            calls.into_iter().collect()
        })
    };
    let line = |place: Option<SegmentPlace>, places: &[SegmentPlace]| {
        let at = |round: &RoundSum| places.iter().map(|place| ns_at(round, *place)).sum::<f64>();
        Some(SegmentDifference {
            place,
            calls: place.map(calls).unwrap_or_default(),
            first_ns: mean(&|[first, _]| at(first))?,
            second_ns: mean(&|[_, second]| at(second))?,
            difference_ns: mean(&|[first, second]| at(first) - at(second))?,
        })
    };
    let bare_ns = mean(&|[first, second]| first.bare_ns - second.bare_ns)?;
    let lines: BTreeMap<SegmentPlace, SegmentDifference> =
        places.into_iter().filter_map(|place| Some((place, line(Some(place), &[place])?))).collect();
    let is_minor = |line: &SegmentDifference| line.difference_ns.mean.abs() < MINOR * bare_ns.mean.abs();
    let (minor, major): (Vec<_>, Vec<_>) = lines.into_iter().partition(|(_, line)| is_minor(line));
    let mut segments: Vec<SegmentDifference> = major.into_iter().map(|(_, line)| line).collect();
    segments.sort_by(|a, b| b.difference_ns.mean.abs().total_cmp(&a.difference_ns.mean.abs()));
    if !minor.is_empty() {
        let minor: Vec<SegmentPlace> = minor.into_iter().map(|(place, _)| place).collect();
        segments.extend(line(None, &minor));
    }
    Some(PathDifference {
        rounds: pairs.len(),
        bare_ns,
        bare_of_each_ns: [mean(&|[first, _]| first.bare_ns)?, mean(&|[_, second]| second.bare_ns)?],
        segments,
        sum_ns: mean(&|[first, second]| first.sum_ns() - second.sum_ns())?,
        residual_ns: mean(&|[first, second]| {
            first.sum_ns() - second.sum_ns() - (first.bare_ns - second.bare_ns)
        })?,
    })
}

/// What the calls at `place`, whichever they are, take in a round.
fn ns_at(round: &RoundSum, place: SegmentPlace) -> f64 {
    let at = round.corrected_ns.iter().filter(|(at, _)| at.without_call() == place);
    at.map(|(_, ns)| ns).sum()
}
