//! Why a case costs what it does: from what was measured plainly and what probes saw to terms, copies and sentences.
//!
//! Pure, as `model` is: it reads no clock, starts nothing, and knows no probe but by what it saw. What is shown of it,
//! and how, is `report`'s.

mod control_cases;
mod copies;
mod decompose;
mod facts;
mod gathered;
mod knee;
mod rules;

pub use control_cases::{ControlDifference, control_cases};
pub use copies::{Copies, CopyKind, MovedBytes};
pub use decompose::{Decomposition, Term, TermKind, TermSource};
pub use gathered::{CaseObservations, CounterRate, FaultRate, ProbeUse, SubsystemShare};
pub use knee::{Knee, Landmark, SizeCurve, bends};
pub use rules::Advice;

use crate::traces::schedule::Overlap;
use model::estimate::Estimate;
use model::observation::profile::CallProfile;
use model::observation::profile::ScheduleProfile;
use model::observation::{Observation, SampledStack};
use model::record::Record;
use model::{Case, observation::Probe};
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
    /// Each end's system calls, client's first, and the probe that saw them.
    pub calls: Option<(Probe, [Vec<CallProfile>; 2])>,
    /// How each end was scheduled, client first.
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
    /// The stacks of each end, client's first, for flame graphs.
    #[serde(skip)]
    pub stacks: [Vec<SampledStack>; 2],
    /// A trial of which everything was seen, for pictures of iterations.
    #[serde(skip)]
    pub timeline: Option<Observation>,
}

/// Explains the case that `gathered` is of. `records` are of plain trials: the case's, those of its control cases and of
/// floors. `call` names a system call by its number.
pub fn explain(
    gathered: &CaseObservations,
    records: &[Record],
    call: impl Fn(u32) -> String,
) -> Option<Explanation> {
    let case = &gathered.case;
    let record = records.iter().find(|record| record.case == *case)?;
    let summary = record.summary.as_ref()?;
    let calls = gathered.calls(&call);
    let seen = facts::Seen { gathered, record, records, calls: calls.as_ref().map(|(_, calls)| calls) };
    let copies = copies::count(case, seen.calls);
    let decomposition = decompose::decompose(&seen);
    let facts = facts::facts(&seen, decomposition.as_ref());
    Some(Explanation {
        case: case.clone(),
        iteration_ns: summary.iteration_ns,
        trials: summary.trials,
        floor_multiple: summary.floor_multiple,
        advice: rules::advise(&facts),
        decomposition,
        copies,
        schedule: gathered.schedule(),
        overlap: gathered.overlap(),
        faults: gathered.faults(),
        counters: gathered.counters(),
        subsystems: gathered.subsystems(),
        probes: gathered.probes(),
        stacks: gathered.stacks(),
        timeline: gathered.timeline().cloned(),
        calls,
    })
}
