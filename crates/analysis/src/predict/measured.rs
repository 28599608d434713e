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
    /// The share of the messages of each flow that were received on the CPU on which they were sent.
    pub on_one_cpu: Vec<Option<f64>>,
    /// By which share recording had slowed it, which is taken out of the rest; 0 where there was nothing to take out.
    pub slowdown: f64,
}

impl Measured {
    /// What `scenario` has recorded, without what recording it cost: that the program took so much longer for all that it did.
    pub fn recorded(scenario: &Scenario) -> Self {
        let slowdown = scenario.recorded.as_ref().and_then(|recorded| recorded.slowdown);
        let slowdown = slowdown.unwrap_or(0.0).max(0.0);
        let faster = 1.0 + slowdown;
        let flow = |flow: &model::scenario::Flow| {
            let recorded = flow.recorded.as_ref().filter(|recorded| recorded.per_s > 0.0)?;
            let round_trip_ns = recorded.round_trip.as_ref().map(|mix| mix.mean()).filter(|ns| *ns > 0.0);
            let round_trip_ns = round_trip_ns.map(|ns| ns / faster);
            Some(FlowBehaviour { per_s: recorded.per_s * faster, round_trip_ns })
        };
        let process = |process: &model::scenario::Process| {
            let recorded = process.recorded.as_ref()?;
            let switches_per_s = recorded.switches_per_s * faster;
            Some(ProcessBehaviour { cpu: recorded.cpu, switches_per_s })
        };
        Self {
            flows: scenario.flows.iter().map(flow).collect(),
            processes: scenario.processes.iter().map(process).collect(),
            on_one_cpu: scenario.flows.iter().map(|flow| flow.recorded.as_ref()?.on_one_cpu).collect(),
            slowdown,
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
            on_one_cpu: vec![None; first.flows.len()],
            slowdown: 0.0,
        })
    }

    /// Whether nothing is known of any flow.
    pub fn is_empty(&self) -> bool {
        self.flows.iter().all(Option::is_none)
    }
}
