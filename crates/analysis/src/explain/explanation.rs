//! The explanation of one case: everything that can be said of it, put together.

use super::case_observations::{CaseObservations, CounterRate, FaultRate, ProbeUse, SubsystemShare};
use super::copies::{Copies, count_copies};
use super::decompose::{Decomposition, decompose};
use super::evidence::Evidence;
use super::facts::facts;
use super::rules::{Advice, advise};
use crate::traces::schedule::Overlap;
use model::case::Case;
use model::estimate::Estimate;
use model::observation::profile::{CallProfile, ScheduleProfile};
use model::observation::{Observation, Probe, SampledStack};
use model::record::Record;
use serde::Serialize;

/// All that can be said of one case.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// What is explained.
    pub case: Case,
    /// The time of an iteration, measured plainly: nobody looked.
    pub iteration_ns: Estimate,
    /// How many trials that is of.
    pub trials: u32,
    /// The multiple of the floor, measured plainly.
    pub floor_multiple: Option<Estimate>,
    /// Where the time of an iteration goes; absent where an iteration is no sum, as of a stream.
    pub decomposition: Option<Decomposition>,
    /// How often each byte was copied; absent where there is no payload.
    pub copies: Option<Copies>,
    /// What to try, the most worthwhile first.
    pub advice: Vec<Advice>,
    /// Each end's system calls, the client's first, and the probe that saw them.
    pub calls: Option<(Probe, [Vec<CallProfile>; 2])>,
    /// How each end was scheduled, the client first.
    pub schedule: Option<[ScheduleProfile; 2]>,
    /// How the times of both ends lie over one another.
    pub overlap: Option<Overlap>,
    /// Page faults by where they were; absent where none could be seen.
    pub faults: Option<Vec<FaultRate>>,
    /// What was counted.
    pub counters: Vec<CounterRate>,
    /// In which part of the kernel, or the program, the processor was found.
    pub subsystems: Vec<SubsystemShare>,
    /// Every probe: whether it works here, and what it costs.
    pub probes: Vec<ProbeUse>,
    /// The stacks of each end, the client's first, for flame graphs.
    #[serde(skip)]
    pub stacks: [Vec<SampledStack>; 2],
    /// A trial of which everything was seen, for pictures of iterations.
    #[serde(skip)]
    pub timeline: Option<Observation>,
}

/// Explains the case that `observations` is of. `records` are of plain trials: the case's, those of its control cases and of
/// floors. `call` names a system call by its number.
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
    let decomposition = decompose(&evidence);
    let facts = facts(&evidence, decomposition.as_ref());
    Some(Explanation {
        case: case.clone(),
        iteration_ns: summary.iteration_ns,
        trials: summary.trials,
        floor_multiple: summary.floor_multiple,
        advice: advise(&facts),
        decomposition,
        copies,
        schedule: observations.schedule(),
        overlap: observations.overlap(),
        faults: observations.faults(),
        counters: observations.counters(),
        subsystems: observations.subsystems(),
        probes: observations.probes(),
        stacks: observations.stacks(),
        timeline: observations.timeline().cloned(),
        calls,
    })
}
