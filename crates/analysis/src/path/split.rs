//! Samples split the calls of a path further: the share of each subsystem in the samples that found an endpoint in that call,
//! with an interval over trials, times what the call takes on the path.

use super::sum::PathSum;
use crate::interval::{FEWEST_TRIALS, MeanEstimate, TAIL};
use crate::stats::student_quantile;
use crate::traces::subsystem::subsystem_of;
use model::endpoint::EndpointRole;
use model::observation::subsystem::Subsystem;
use model::observation::{Observation, SampledStack, StackFrame};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What stands before the name of a call in the name of the function that does it.
const ENTRIES: [&str; 4] = ["__x64_sys_", "__arm64_sys_", "__riscv_sys_", "__s390x_sys_"];
/// A call with fewer samples is not split.
const FEWEST_SAMPLES: u64 = 50;

/// The samples of one trial, by endpoint, call and subsystem; the name of the call is empty outside of calls.
type TrialSamples = BTreeMap<(EndpointRole, String, Subsystem), u64>;

/// The samples of each trial, by call and subsystem.
#[derive(Debug, Clone, Default)]
pub struct SampleCounts {
    trials: Vec<TrialSamples>,
}

/// A call of an endpoint, split by subsystem.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallSplit {
    /// Whose call.
    pub of: EndpointRole,
    /// Its name.
    pub call: String,
    /// What its segments take on the path, in nanoseconds an iteration.
    pub path_ns: MeanEstimate,
    /// How many samples lie in it.
    pub samples: u64,
    /// Its parts, the largest first.
    pub parts: Vec<SubsystemPart>,
}

/// A subsystem in a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubsystemPart {
    /// Which.
    pub subsystem: Subsystem,
    /// Its share of the samples in the call.
    pub share: MeanEstimate,
    /// That share of what the call takes on the path.
    pub ns: f64,
}

impl SampleCounts {
    /// Adds the samples of one trial.
    pub fn add(&mut self, observation: &Observation) {
        let mut counts = TrialSamples::new();
        for (role, seen) in EndpointRole::ALL.into_iter().zip(observation.endpoints()) {
            for stack in &seen.stacks {
                let call = call_of(stack).unwrap_or_default().to_owned();
                *counts.entry((role, call, subsystem_of(stack))).or_default() += stack.samples;
            }
        }
        self.trials.push(counts);
    }

    /// The share of the samples of both endpoints that lie in one of `subsystems`.
    pub fn share_of(&self, subsystems: &[Subsystem]) -> Option<MeanEstimate> {
        self.share(&|_, _| true, subsystems)
    }

    /// The calls on the path of `sum`, split. `name` names a call by its number.
    pub fn split(&self, sum: &PathSum, name: impl Fn(u32) -> String) -> Vec<CallSplit> {
        let calls: BTreeSet<(EndpointRole, u32)> =
            sum.places().into_iter().filter_map(|place| Some((place.of, place.call?))).collect();
        let mut splits: Vec<CallSplit> = calls
            .into_iter()
            .filter_map(|(of, number)| {
                let path_ns = sum.of_places(&|place| place.of == of && place.call == Some(number))?;
                self.split_call(of, name(number), path_ns)
            })
            .collect();
        splits.sort_by(|a, b| b.path_ns.mean.total_cmp(&a.path_ns.mean));
        splits
    }

    fn split_call(&self, of: EndpointRole, call: String, path_ns: MeanEstimate) -> Option<CallSplit> {
        let is_here = |role: EndpointRole, name: &str| role == of && name == call;
        let here = self.trials.iter().flatten().filter(|((role, name, _), _)| is_here(*role, name));
        let mut by_subsystem: BTreeMap<Subsystem, u64> = BTreeMap::new();
        here.for_each(|((.., subsystem), samples)| *by_subsystem.entry(*subsystem).or_default() += samples);
        let samples: u64 = by_subsystem.values().sum();
        if samples < FEWEST_SAMPLES {
            return None;
        }
        let mut parts: Vec<SubsystemPart> = by_subsystem
            .into_keys()
            .filter_map(|subsystem| {
                let share = self.share(&is_here, &[subsystem])?;
                Some(SubsystemPart { subsystem, share, ns: share.mean * path_ns.mean })
            })
            .collect();
        parts.sort_by(|a, b| b.share.mean.total_cmp(&a.share.mean));
        Some(CallSplit { of, call, path_ns, samples, parts })
    }

    /// The share of the samples in calls that `is_here` takes that lie in `subsystems`: a ratio of sums, whose error is that
    /// between trials.
    fn share(
        &self,
        is_here: &dyn Fn(EndpointRole, &str) -> bool,
        subsystems: &[Subsystem],
    ) -> Option<MeanEstimate> {
        let of_trial = |trial: &TrialSamples| {
            let here = || trial.iter().filter(|((role, name, _), _)| is_here(*role, name));
            let of = here()
                .filter(|((.., of), _)| subsystems.contains(of))
                .map(|(_, samples)| *samples)
                .sum::<u64>();
            (of as f64, here().map(|(_, samples)| *samples).sum::<u64>() as f64)
        };
        let trials: Vec<(f64, f64)> =
            self.trials.iter().map(of_trial).filter(|(_, samples)| *samples > 0.0).collect();
        let (of, all) = trials.iter().fold((0.0, 0.0), |(of, all), trial| (of + trial.0, all + trial.1));
        let share = (all > 0.0).then(|| of / all)?;
        let count = trials.len() as f64;
        let squares: f64 = trials.iter().map(|(of, all)| (of - share * all).powi(2)).sum();
        let interval = (trials.len() >= FEWEST_TRIALS).then(|| {
            let error = (squares * count / (count - 1.0)).sqrt() / all;
            let half = student_quantile(TAIL, count - 1.0) * error;
            ((share - half).max(0.0), (share + half).min(1.0))
        });
        Some(MeanEstimate { mean: share, interval })
    }
}

/// The call that `stack` is in.
fn call_of(stack: &SampledStack) -> Option<&str> {
    stack.frames.iter().find_map(|frame| {
        let StackFrame::Kernel(name) = frame else { return None };
        ENTRIES.into_iter().find_map(|entry| name.strip_prefix(entry))
    })
}
