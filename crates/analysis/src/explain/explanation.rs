//! The explanation of one case: everything that can be said of it, put together.

use super::case_observations::{CaseObservations, CounterRate, FaultRate, ProbeUse, SubsystemShare};
use super::copies::{Copies, count_copies};
use super::cross_check::{CrossCheck, cross_checks};
use super::evidence::Evidence;
use super::facts::facts;
use super::rules::{Advice, advise};
use crate::missed_settings::{MissedSetting, missed_in_records};
use crate::path::{CallSplit, PathSum, RateTrials, SlowIterations, TwoGroups};
use crate::traces::schedule::Overlap;
use model::case::Case;
use model::estimate::Estimate;
use model::observation::profile::{CallProfile, ScheduleProfile};
use model::observation::{Observation, Probe, SampledStack};
use model::record::Record;
use serde::Serialize;
use std::collections::BTreeMap;

/// All that can be said of one case.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// What is explained.
    pub case: Case,
    /// The time of an iteration, from trials without probes.
    pub iteration_ns: Estimate,
    /// The number of those trials.
    pub trials: u32,
    /// The multiple of the floor, from trials without probes.
    pub floor_multiple: Option<Estimate>,
    /// The settings of the case and of its control cases that are not as asked, or not as usual.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<MissedSetting>,
    /// Where the time of an iteration goes: the segments of its path; absent where events of both CPUs were not recorded.
    pub path: Option<PathSum>,
    /// The sets of events that could not be recorded, each with the reason and what would grant it.
    pub unrecorded: Vec<String>,
    /// The names of the calls on the path.
    pub call_names: BTreeMap<u32, String>,
    /// The calls on the path, split by samples.
    pub splits: Vec<CallSplit>,
    /// What makes the slowest iterations slow.
    pub slow: Option<SlowIterations>,
    /// The two groups into which iterations fall, if they do.
    pub groups: Option<TwoGroups>,
    /// Differences between control cases, beside the path.
    pub checks: Vec<CrossCheck>,
    /// How often each byte was copied; absent where there is no payload.
    pub copies: Option<Copies>,
    /// What to try, the most worthwhile first.
    pub advice: Vec<Advice>,
    /// The system calls of each endpoint, the client's first, and the probe that observed them.
    pub calls: Option<(Probe, [Vec<CallProfile>; 2])>,
    /// How each endpoint was scheduled, the client first.
    pub schedule: Option<[ScheduleProfile; 2]>,
    /// How much both endpoints ran at the same time.
    pub overlap: Option<Overlap>,
    /// Page faults by mapping; absent where no probe observed them.
    pub faults: Option<Vec<FaultRate>>,
    /// What was counted.
    pub counters: Vec<CounterRate>,
    /// At which rates samples were taken, and in how many trials: shares are extrapolated from these to none.
    pub sampling_rates: Vec<RateTrials>,
    /// In which subsystems samples found the processor.
    pub subsystems: Vec<SubsystemShare>,
    /// Every probe: whether it works here, and what it costs.
    pub probes: Vec<ProbeUse>,
    /// The stacks of each endpoint, the client's first, for flame graphs.
    #[serde(skip)]
    pub stacks: [Vec<SampledStack>; 2],
    /// A trial with all events, for pictures of iterations.
    #[serde(skip)]
    pub timeline: Option<Observation>,
}

/// Explains the case of `observations`. `records` are of trials without probes: the case, its control cases and floors. `call` names a system call by its number.
pub fn explain(
    observations: &CaseObservations,
    records: &[Record],
    call: impl Fn(u32) -> String,
) -> Option<Explanation> {
    let case = &observations.case;
    let record = records.iter().find(|record| record.case == *case)?;
    let summary = record.summary.as_ref()?;
    let calls = observations.calls(&call);
    let evidence = Evidence { observations, record, records, calls: calls.as_ref().map(|(_, calls)| calls) };
    let copies = count_copies(case, evidence.calls);
    let path = observations.doses.sum();
    let samples = observations.samples().filter(|_| observations.names_kernel_functions());
    let facts = facts(&evidence, path.as_ref());
    let control_cases = observations.control_cases();
    let beside = records.iter().filter(|record| control_cases.iter().any(|(_, case)| record.case == *case));
    Some(Explanation {
        case: case.clone(),
        iteration_ns: summary.iteration_ns,
        trials: summary.trials,
        floor_multiple: summary.floor_multiple,
        settings: missed_in_records(std::iter::once(record).chain(beside)),
        advice: advise(&facts),
        call_names: path.as_ref().map(|path| path.call_names(&call)).unwrap_or_default(),
        splits: path
            .as_ref()
            .zip(samples)
            .map(|(path, samples)| samples.split(path, &call))
            .unwrap_or_default(),
        unrecorded: observations.doses.unavailable(),
        slow: observations.doses.slow_iterations(),
        groups: observations.doses.two_groups(),
        checks: path.as_ref().map(|path| cross_checks(&evidence, path)).unwrap_or_default(),
        path,
        copies,
        schedule: observations.schedule(),
        overlap: observations.overlap(),
        faults: observations.faults(),
        counters: observations.counters(),
        sampling_rates: observations.sampling_rates(),
        subsystems: observations.subsystems(),
        probes: observations.probes(),
        stacks: observations.stacks(),
        timeline: observations.timeline().cloned(),
        calls,
    })
}
