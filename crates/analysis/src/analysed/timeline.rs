//! An observation from moment to moment, with what both endpoints did and the iterations that are worth a picture.

use crate::traces::timeline::{Iteration, Tracks, chosen_iterations, tracks};
use model::observation::Observation;
use model::record::Results;

/// How many typical iterations are chosen_iterations, beside a slow one.
const TYPICAL: usize = 2;

/// An observation of one trial from moment to moment.
#[derive(Debug, Clone)]
pub struct AnalysedTimeline<'a> {
    /// The key of the case.
    pub case: String,
    /// What was observed.
    pub observation: &'a Observation,
    /// What both endpoints did.
    pub tracks: Tracks,
    /// Typical iterations and a slow one.
    pub iterations: Vec<Iteration>,
}

impl<'a> AnalysedTimeline<'a> {
    /// `observation` of the case with the key `case`. `call_name` names a system call by its number.
    pub fn from_observation(
        observation: &'a Observation,
        case: String,
        call_name: impl Fn(u32) -> String,
    ) -> Self {
        Self {
            case,
            tracks: tracks(observation, &call_name),
            iterations: chosen_iterations(observation, TYPICAL, call_name),
            observation,
        }
    }

    /// The timelines in `results`, of each case the last.
    pub fn all(results: &'a Results) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for record in &results.profiles {
            let Some(kept) = record.profile.known().and_then(|profile| profile.timeline.as_ref()) else {
                continue;
            };
            let key = record.case.key();
            all.retain(|other| other.case != key);
            all.push(Self::from_observation(&kept.observation, key, |number| kept.call_name(number)));
        }
        all
    }
}
