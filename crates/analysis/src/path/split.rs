//! Samples split the calls of a path further: the share of each subsystem in the samples that found an endpoint in that call,
//! extrapolated from trials at several rates to none, with an interval over trials, times what the call takes on the path.

use super::sum::PathSum;
use crate::interval::MeanEstimate;
use crate::rate_line::{TrialPoint, value_at};
use crate::traces::subsystem::subsystem_of;
use model::endpoint::EndpointRole;
use model::observation::subsystem::Subsystem;
use model::observation::{Observation, SampledStack, SamplingRate, StackFrame};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What stands before the name of a call in the name of the function that does it.
const ENTRIES: [&str; 4] = ["__x64_sys_", "__arm64_sys_", "__riscv_sys_", "__s390x_sys_"];
/// A call with fewer samples is not split.
const FEWEST_SAMPLES: u64 = 50;

/// The samples of one trial, by endpoint, call and subsystem; the name of the call is empty outside of calls.
type TrialSamples = BTreeMap<(EndpointRole, String, Subsystem), u64>;
/// No samples: what is seen there, the samples did not change.
const NONE: f64 = 0.0;

/// The samples of each trial, by call and subsystem.
#[derive(Debug, Clone, Default)]
pub struct SampleCounts {
    trials: Vec<(SamplingRate, TrialSamples)>,
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

/// How many trials took samples at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RateTrials {
    /// The rate.
    pub rate: SamplingRate,
    /// How many trials.
    pub trials: usize,
}

/// A subsystem in a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubsystemPart {
    /// Which.
    pub subsystem: Subsystem,
    /// Its share of the samples in the call, extrapolated to none; without an interval it is the share of all samples.
    pub share: MeanEstimate,
    /// That share of what the call takes on the path.
    pub ns: f64,
}

impl SampleCounts {
    /// Adds the samples of one trial, which were taken at `rate`.
    pub fn add(&mut self, rate: SamplingRate, observation: &Observation) {
        let mut counts = TrialSamples::new();
        for (role, seen) in EndpointRole::ALL.into_iter().zip(observation.endpoints()) {
            for stack in &seen.stacks {
                let call = call_of(stack).unwrap_or_default().to_owned();
                *counts.entry((role, call, subsystem_of(stack))).or_default() += stack.samples;
            }
        }
        self.trials.push((rate, counts));
    }

    /// How many trials there were at each rate, the lowest first.
    pub fn rates(&self) -> Vec<RateTrials> {
        let count = |rate| self.trials.iter().filter(|(of, _)| *of == rate).count();
        let rates = SamplingRate::ALL.map(|rate| RateTrials { rate, trials: count(rate) });
        rates.into_iter().filter(|of| of.trials > 0).collect()
    }

    /// The share of the samples of both endpoints that lie in one of `subsystems`.
    pub fn share_of(&self, subsystems: &[Subsystem]) -> Option<MeanEstimate> {
        self.share(&|_, _| true, subsystems)
    }

    /// The same of the samples of one endpoint.
    pub fn share_of_endpoint(&self, of: EndpointRole, subsystem: Subsystem) -> Option<MeanEstimate> {
        self.share(&|role, _| role == of, &[subsystem])
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
        let here = self
            .trials
            .iter()
            .flat_map(|(_, trial)| trial)
            .filter(|((role, name, _), _)| is_here(*role, name));
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

    /// The share of the samples in calls that `is_here` takes that lie in `subsystems`, extrapolated to no samples.
    fn share(
        &self,
        is_here: &dyn Fn(EndpointRole, &str) -> bool,
        subsystems: &[Subsystem],
    ) -> Option<MeanEstimate> {
        let of_trial = |(rate, trial): &(SamplingRate, TrialSamples)| {
            let here = || trial.iter().filter(|((role, name, _), _)| is_here(*role, name));
            let of: u64 =
                here().filter(|((.., of), _)| subsystems.contains(of)).map(|(_, samples)| samples).sum();
            let all = here().map(|(_, samples)| *samples).sum::<u64>() as f64;
            TrialPoint { rate: rate.share(), value: of as f64 / all.max(1.0), weight: all }
        };
        let trials: Vec<TrialPoint> = self.trials.iter().map(of_trial).collect();
        // A line may leave what a share can be.
        let share = value_at(NONE, &trials)?.map(|share| share.clamp(0.0, 1.0));
        Some(share)
    }
}

/// The call that `stack` is in.
fn call_of(stack: &SampledStack) -> Option<&str> {
    stack.frames.iter().find_map(|frame| {
        let StackFrame::Kernel(name) = frame else { return None };
        ENTRIES.into_iter().find_map(|entry| name.strip_prefix(entry))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::observation::EndpointObservation;

    /// Samples in a read of the client: of 100,000 at the highest rate, so many copies as the share says.
    fn trial(rate: SamplingRate, copies: f64) -> Observation {
        let stack = |name: &str, samples: f64| SampledStack {
            frames: vec![
                StackFrame::Kernel("__x64_sys_read".to_owned()),
                StackFrame::Kernel(name.to_owned()),
            ],
            samples: samples as u64,
        };
        let all = 100_000.0 * rate.share();
        let stacks = vec![
            stack("_copy_to_iter", (all * copies).round()),
            stack("tcp_ack", (all * (1.0 - copies)).round()),
        ];
        Observation {
            iterations: 10,
            elapsed_ns: 1000.0,
            iteration_ends_ns: Vec::new(),
            client: EndpointObservation { stacks, ..EndpointObservation::default() },
            server: None,
        }
    }

    #[test]
    fn shares_are_extrapolated_to_no_samples() {
        let mut counts = SampleCounts::default();
        for rate in SamplingRate::ALL.into_iter().cycle().take(9) {
            counts.add(rate, &trial(rate, 0.6 - 0.2 * rate.share()));
        }
        assert_eq!(counts.rates(), SamplingRate::ALL.map(|rate| RateTrials { rate, trials: 3 }));
        for share in [
            counts.share_of(&[Subsystem::Copy]),
            counts.share_of_endpoint(EndpointRole::Client, Subsystem::Copy),
            counts.share(&|_, call| call == "read", &[Subsystem::Copy]),
        ] {
            let MeanEstimate { mean, interval } = share.unwrap();
            let (low, high) = interval.unwrap();
            assert!((mean - 0.6).abs() < 1e-9 && high - low < 1e-9, "{mean} {low} {high}");
        }
        assert_eq!(counts.share_of_endpoint(EndpointRole::Server, Subsystem::Copy), None);
    }

    #[test]
    fn a_share_is_never_below_0_nor_above_1() {
        let mut counts = SampleCounts::default();
        for rate in SamplingRate::ALL.into_iter().cycle().take(9) {
            let jump = if rate == SamplingRate::Full { 0.6 } else { 0.0 };
            counts.add(rate, &trial(rate, jump));
        }
        for (subsystem, bound) in [(Subsystem::Copy, 0.0), (Subsystem::Network, 1.0)] {
            let share = counts.share_of(&[subsystem]).unwrap();
            assert_eq!(share.mean, bound);
            let (low, high) = share.interval.unwrap();
            assert!(0.0 <= low && low <= high && high <= 1.0);
        }
    }

    #[test]
    fn few_trials_are_pooled_and_no_evidence() {
        let mut counts = SampleCounts::default();
        for rate in [SamplingRate::Half, SamplingRate::Full] {
            counts.add(rate, &trial(rate, 0.5));
        }
        assert_eq!(counts.share_of(&[Subsystem::Copy]), Some(MeanEstimate { mean: 0.5, interval: None }));
    }
}
