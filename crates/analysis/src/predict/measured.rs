//! How a scenario was seen to behave, as far as it was.

use super::size_line::standard_normal;
use crate::alike::Alike;
use crate::stats::median;
use model::Scenario;
use model::scenario::{Behaviour, FlowBehaviour, ProcessBehaviour};
use rand::rngs::SmallRng;

/// Half the width of a 95% interval for a standard deviation of 1.
const NORMAL_95: f64 = 1.96;

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
    /// How far all times may be off for what is not known of that: the standard deviation of their logarithm.
    pub off: f64,
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
            off: off(scenario),
        }
    }

    /// The same as it might have been, with what is not known of the slowdown.
    pub(super) fn draw(&self, random: &mut SmallRng) -> Self {
        let faster = (self.off * standard_normal(random)).exp();
        let flow = |flow: FlowBehaviour| FlowBehaviour {
            per_s: flow.per_s * faster,
            round_trip_ns: flow.round_trip_ns.map(|ns| ns / faster),
        };
        let process = |process: ProcessBehaviour| ProcessBehaviour {
            switches_per_s: process.switches_per_s * faster,
            ..process
        };
        Self {
            flows: self.flows.iter().map(|known| known.map(flow)).collect(),
            processes: self.processes.iter().map(|known| known.map(process)).collect(),
            ..self.clone()
        }
    }

    /// What is known of flows and processes that are alike, together.
    pub(super) fn of_alike(&self, alike: &Alike) -> Self {
        let (flows, processes) = alike.known(&self.flows, &self.processes);
        Self { flows, processes, ..self.clone() }
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
            off: 0.0,
        })
    }

    /// Whether nothing is known of any flow.
    pub fn is_empty(&self) -> bool {
        self.flows.iter().all(Option::is_none)
    }
}

/// How far the times of `scenario` are off for what is not known of its slowdown, from that one's 95% interval.
fn off(scenario: &Scenario) -> f64 {
    let interval = scenario.recorded.as_ref().and_then(|recorded| recorded.slowdown_interval);
    let [low, high] = interval.unwrap_or_default().map(|share| share.max(0.0).ln_1p());
    let off = (high - low) / 2.0 / NORMAL_95;
    if off.is_finite() { off } else { 0.0 }
}
