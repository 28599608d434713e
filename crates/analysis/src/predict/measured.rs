//! How a scenario was seen to behave, as far as it was.

use crate::stats::median;
use model::Scenario;
use model::scenario::{Behaviour, FlowBehaviour, ProcessBehaviour};

/// How flows and processes were seen to do, in the order of the scenario; `None` of those of which it is not known.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// As many as the scenario has flows.
    pub flows: Vec<Option<FlowBehaviour>>,
    /// As many as it has processes.
    pub processes: Vec<Option<ProcessBehaviour>>,
}

impl Measured {
    /// What `scenario` has recorded.
    pub fn recorded(scenario: &Scenario) -> Self {
        let flow = |flow: &model::scenario::Flow| {
            let recorded = flow.recorded.as_ref().filter(|recorded| recorded.per_s > 0.0)?;
            let round_trip_ns = recorded.round_trip.as_ref().map(|mix| mix.mean()).filter(|ns| *ns > 0.0);
            Some(FlowBehaviour { per_s: recorded.per_s, round_trip_ns })
        };
        let process = |process: &model::scenario::Process| {
            let recorded = process.recorded.as_ref()?;
            Some(ProcessBehaviour { cpu: recorded.cpu, switches_per_s: recorded.switches_per_s })
        };
        Self {
            flows: scenario.flows.iter().map(flow).collect(),
            processes: scenario.processes.iter().map(process).collect(),
        }
    }

    /// What the slices of a replay did: the medians of each number; `None` without a slice.
    pub fn replayed(slices: &[Behaviour]) -> Option<Self> {
        let first = slices.first()?;
        let flow = |at: usize| {
            let flows = || slices.iter().filter_map(|slice| slice.flows.get(at));
            let per_s =
                median(&flows().map(|flow| flow.per_s).collect::<Vec<_>>()).filter(|per_s| *per_s > 0.0)?;
            let round_trip_ns = median(&flows().filter_map(|flow| flow.round_trip_ns).collect::<Vec<_>>());
            Some(FlowBehaviour { per_s, round_trip_ns })
        };
        let process = |at: usize| {
            let processes = || slices.iter().filter_map(|slice| slice.processes.get(at));
            Some(ProcessBehaviour {
                cpu: median(&processes().map(|process| process.cpu).collect::<Vec<_>>())?,
                switches_per_s: median(
                    &processes().map(|process| process.switches_per_s).collect::<Vec<_>>(),
                )?,
            })
        };
        Some(Self {
            flows: (0..first.flows.len()).map(flow).collect(),
            processes: (0..first.processes.len()).map(process).collect(),
        })
    }

    /// Whether nothing is known of any flow.
    pub fn is_empty(&self) -> bool {
        self.flows.iter().all(Option::is_none)
    }
}
