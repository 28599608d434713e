//! The bounds of operational analysis for a scenario whose messages cost something else (Denning and Buzen, The Operational Analysis of
//! Queueing Network Models, 1978; Lazowska and others, Quantitative System Performance, 1984).
//!
//! As if requests waited for nobody else, a cycle gets shorter by what its own messages do. As if the busiest process, or its CPUs, were
//! all that they wait for, the rate goes up as its CPU time for a request goes down. Nothing here is fitted to programs.

use super::costs::{EndPlace, MeasuredCosts, MessageCost};
use super::needed::workload;
use crate::alike::Alike;
use crate::missed_settings::MissedSetting;
use model::scenario::{Begin, Flow};
use model::{Scenario, Spec};
use schemars::JsonSchema;
use serde::Serialize;

/// Half the width of a 90% interval, in standard deviations.
const NORMAL_90: f64 = 1.645;
/// No exchange leaves less than this of what a request takes: costs that were measured alone do not go further.
const LEAST_LEFT: f64 = 0.05;
/// From here on a reader is told that recording had slowed the program.
const TOLD_SLOWDOWN: f64 = 0.02;

/// What exchanging mechanisms can give.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Prediction {
    /// The name of the scenario.
    pub scenario: String,
    /// One for each of its flows, or for those that are alike.
    pub flows: Vec<FlowPrediction>,
    /// The rate of requests over that of now, as if they waited for nobody else.
    pub alone: Limit,
    /// The same as if they waited for nothing but what is busiest.
    pub busiest: Limit,
    /// From the lower of both to the higher, with what the costs may be off.
    pub ratio_bounds: (f64, f64),
    /// One for each of its processes, or for those that are alike.
    pub processes: Vec<ProcessPrediction>,
    /// The settings of what was measured that are not as asked, or not as usual.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<MissedSetting>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// A bound of the rate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Limit {
    /// Whose it is.
    pub on: LimitOn,
    /// The rate over that of now.
    pub ratio: f64,
    /// Its 90% interval, from the costs.
    pub interval: (f64, f64),
}

/// What limits a rate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitOn {
    /// The way of a request through all that it needs.
    Path,
    /// A process, by its name.
    Process(String),
    /// The CPUs on which the processes may run.
    Cpus,
}

/// What becomes of the messages of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FlowPrediction {
    /// Its name.
    pub name: String,
    /// Its mechanism.
    pub before: String,
    /// The one that it gets; the same where it keeps its own.
    pub after: String,
    /// Requests, or messages of a stream, a second; absent where that was not recorded.
    pub per_s: Option<f64>,
    /// What one costs with either, where its messages were recorded to go; absent where it keeps its mechanism.
    pub costs: Option<[MessageCost; 2]>,
}

/// What becomes of a process, at the same rate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProcessPrediction {
    /// Its name.
    pub name: String,
    /// CPU time over time, as recorded.
    pub cpu: f64,
    /// The same after the exchange.
    pub cpu_after: f64,
}

/// What `after` can do if `before` did what was recorded of it: they are the same scenario but for the mechanisms of flows. `cpus` are the
/// logical CPUs of the host. `None` where nothing was recorded of a flow or process, or costs are missing.
pub fn predict(
    before: &Scenario,
    after: &Scenario,
    costs: &MeasuredCosts,
    cpus: &[u32],
) -> Option<Prediction> {
    let changes = changes([before, after], costs)?;
    let at = |z: f64| -> Option<[f64; 2]> {
        let changes: Vec<Change> = changes.iter().map(|change| change.at(z)).collect();
        limits(before, &changes, cpus)
    };
    // What costs more than it may be off gives less.
    let [middle, low, high] = [at(0.0)?, at(NORMAL_90)?, at(-NORMAL_90)?];
    let middle_changes: Vec<Change> = changes.iter().map(|change| change.at(0.0)).collect();
    let on = busiest(&resources(before, &middle_changes, cpus))?.on;
    let alone = Limit { on: LimitOn::Path, ratio: middle[0], interval: (low[0], high[0]) };
    let busiest = Limit { on, ratio: middle[1], interval: (low[1], high[1]) };
    let alike = Alike::from_scenarios(&[before, after]);
    let together = [before, after].map(|scenario| alike.scenario(scenario));
    let together = together.each_ref();
    let specs: Vec<&Spec> =
        together.into_iter().flat_map(|scenario| &scenario.flows).map(|flow| &flow.mechanism).collect();
    Some(Prediction {
        scenario: before.name.clone(),
        flows: flows(together, costs)?,
        ratio_bounds: (low[0].min(low[1]), high[0].max(high[1])),
        alone,
        busiest,
        processes: processes(together, costs)?,
        settings: costs.missed(&specs),
        notes: notes(before),
    })
}

/// By how much more the messages of a flow cost with another mechanism: the mean and a standard deviation of the time, and of the CPU time
/// of sender and receiver, in nanoseconds for each.
#[derive(Debug, Clone, Copy, Default)]
struct CostChange {
    elapsed: (f64, f64),
    client: (f64, f64),
    server: (f64, f64),
}

/// The same if they are off by so much.
#[derive(Debug, Clone, Copy)]
struct Change {
    elapsed_ns: f64,
    client_ns: f64,
    server_ns: f64,
}

impl CostChange {
    fn between([before, after]: [MessageCost; 2]) -> Self {
        let change = |of: fn(&MessageCost) -> f64| {
            let [old, new] = [of(&before), of(&after)];
            (new - old, (new * after.error()).hypot(old * before.error()))
        };
        Self {
            elapsed: change(|cost| cost.elapsed_ns),
            client: change(|cost| cost.client_ns),
            server: change(|cost| cost.server_ns),
        }
    }

    fn at(&self, z: f64) -> Change {
        let at = |(mean, error): (f64, f64)| mean + z * error;
        Change { elapsed_ns: at(self.elapsed), client_ns: at(self.client), server_ns: at(self.server) }
    }
}

/// The change of each flow; nothing for those that keep their mechanism.
fn changes([before, after]: [&Scenario; 2], costs: &MeasuredCosts) -> Option<Vec<CostChange>> {
    let pairs = before.flows.iter().zip(&after.flows);
    let change = |(old, new): (&Flow, &Flow)| {
        if old.mechanism == new.mechanism {
            return Some(CostChange::default());
        }
        old.recorded.as_ref()?;
        Some(CostChange::between([message_cost(before, old, costs)?, message_cost(before, new, costs)?]))
    };
    pairs.map(change).collect()
}

/// What a request of `flow` costs, or a message of a stream, where its messages were recorded to go. On a host with one CPU that is all
/// there is.
fn message_cost(scenario: &Scenario, flow: &Flow, costs: &MeasuredCosts) -> Option<MessageCost> {
    let at = |place: EndPlace| {
        let key = (flow.mechanism.clone(), workload(flow), place);
        let request = costs.at(&key, flow.size.mean())?;
        // Half of a round trip of each size.
        let reply = flow.reply.as_ref().map_or(Some(request), |reply| costs.at(&key, reply.mean()))?;
        Some(request.times(0.5).and(reply.times(0.5)))
    };
    let share = on_one_cpu(scenario, flow).clamp(0.0, 1.0);
    match [EndPlace::OneCpu, EndPlace::TwoCpus].map(at) {
        [Some(one), Some(two)] => Some(one.times(share).and(two.times(1.0 - share))),
        [one, two] => one.or(two),
    }
}

/// The share of the messages of `flow` that are received on the CPU on which they are sent: as recorded, as the processes may run, or half where
/// nobody knows.
fn on_one_cpu(scenario: &Scenario, flow: &Flow) -> f64 {
    let recorded = flow.recorded.as_ref().and_then(|recorded| recorded.on_one_cpu);
    let [from, to] = [flow.from, flow.to].map(|process| scenario.processes[process].cpus.as_slice());
    recorded.unwrap_or(match (from, to) {
        ([one], [other]) => f64::from(u8::from(one == other)),
        _ => 0.5,
    })
}

/// Requests of `flow` in a nanosecond, without what recording cost; 0 where that was not recorded.
fn per_ns(scenario: &Scenario, flow: &Flow) -> f64 {
    let slowdown = scenario.recorded.as_ref().and_then(|recorded| recorded.slowdown).unwrap_or(0.0).max(0.0);
    flow.recorded.as_ref().map_or(0.0, |recorded| recorded.per_s * (1.0 + slowdown) / 1e9)
}

/// The ratio of rates as if requests waited for nobody else, and as if they waited for the busiest alone; neither beyond what all permit.
fn limits(scenario: &Scenario, changes: &[Change], cpus: &[u32]) -> Option<[f64; 2]> {
    let resources = resources(scenario, changes, cpus);
    let most = resources.iter().map(Resource::most).fold(f64::INFINITY, f64::min);
    let busiest = busiest(&resources)?.ratio();
    Some([alone(scenario, changes), busiest].map(|ratio| ratio.min(most)))
}

/// The mean over all that begin cycles with an exchanged flow in them, by the rates of these flows.
fn alone(scenario: &Scenario, changes: &[Change]) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for group in (0..scenario.processes.len()).flat_map(|process| scenario.root_groups(process)) {
        let (mut share, mut rate) = (0.0, 0.0);
        for at in with_caused(scenario, &group).into_iter().filter(|at| changes[*at].elapsed_ns != 0.0) {
            let per_ns = per_ns(scenario, &scenario.flows[at]);
            share += per_ns * changes[at].elapsed_ns;
            rate += per_ns;
        }
        // What comes at times that are fixed comes no sooner.
        let is_open = group.iter().all(|at| matches!(scenario.flows[*at].begin, Begin::Open(_)));
        sum += rate * if is_open { 1.0 } else { 1.0 / (1.0 + share).max(LEAST_LEFT) };
        weight += rate;
    }
    if weight > 0.0 { sum / weight } else { 1.0 }
}

/// The flows of `group`, and all that they cause.
fn with_caused(scenario: &Scenario, group: &[usize]) -> Vec<usize> {
    let mut flows = group.to_vec();
    let mut next = 0;
    while let Some(flow) = flows.get(next) {
        let caused: Vec<usize> = scenario.caused_by(*flow).collect();
        flows.extend(caused);
        next += 1;
    }
    flows
}

/// A process, or all its CPUs, as something of which there is only so much.
#[derive(Debug, Clone)]
struct Resource {
    on: LimitOn,
    /// The share that was used.
    used: f64,
    /// By how much more is, for the same requests.
    more: f64,
}

impl Resource {
    /// The ratio of rates if it alone decides.
    fn ratio(&self) -> f64 {
        self.used / (self.used + self.more).max(LEAST_LEFT * self.used)
    }

    /// The highest ratio that it permits.
    fn most(&self) -> f64 {
        self.used.max(1.0) / (self.used + self.more).max(LEAST_LEFT * self.used)
    }
}

fn busiest(resources: &[Resource]) -> Option<Resource> {
    resources.iter().max_by(|a, b| a.used.total_cmp(&b.used)).cloned()
}

/// Each process of which it is known what it used, and the CPUs of all of them.
fn resources(scenario: &Scenario, changes: &[Change], cpus: &[u32]) -> Vec<Resource> {
    let named = scenario.processes.iter().enumerate();
    let of_process = |(at, process): (usize, &model::scenario::Process)| {
        let ends = scenario.flows.iter().zip(changes).map(|(flow, change)| {
            let client_ns = if flow.from == at { change.client_ns } else { 0.0 };
            let server_ns = if flow.to == at { change.server_ns } else { 0.0 };
            per_ns(scenario, flow) * (client_ns + server_ns)
        });
        let used = process.recorded.as_ref()?.cpu;
        Some(Resource { on: LimitOn::Process(process.name.clone()), used, more: ends.sum() })
    };
    let processes: Vec<Resource> = named.filter_map(of_process).collect();
    let cpus = cpus_of(scenario, cpus);
    let sum = |of: fn(&Resource) -> f64| processes.iter().map(of).sum::<f64>() / cpus;
    let together = Resource { on: LimitOn::Cpus, used: sum(|one| one.used), more: sum(|one| one.more) };
    processes.into_iter().chain([together]).filter(|one| one.used > 0.0).collect()
}

/// On how many CPUs the processes may run.
fn cpus_of(scenario: &Scenario, cpus: &[u32]) -> f64 {
    let mut allowed: Vec<u32> = scenario.processes.iter().flat_map(|process| process.cpus.clone()).collect();
    allowed.sort_unstable();
    allowed.dedup();
    let is_free = scenario.processes.iter().any(|process| process.cpus.is_empty());
    let count = if is_free { cpus.len() } else { allowed.len().min(cpus.len()) };
    count.max(1) as f64
}

fn flows([before, after]: [&Scenario; 2], costs: &MeasuredCosts) -> Option<Vec<FlowPrediction>> {
    let flow = |(old, new): (&Flow, &Flow)| {
        let is_exchanged = old.mechanism != new.mechanism;
        let costs = [old, new].map(|flow| message_cost(before, flow, costs));
        let costs = match (is_exchanged, costs) {
            (false, _) => None,
            (true, [Some(old), Some(new)]) => Some([old, new]),
            (true, _) => return None,
        };
        Some(FlowPrediction {
            name: old.name.clone(),
            before: old.mechanism.to_string(),
            after: new.mechanism.to_string(),
            per_s: old.recorded.as_ref().map(|_| per_ns(before, old) * 1e9),
            costs,
        })
    };
    before.flows.iter().zip(&after.flows).map(flow).collect()
}

fn processes(scenarios: [&Scenario; 2], costs: &MeasuredCosts) -> Option<Vec<ProcessPrediction>> {
    let changes: Vec<Change> = changes(scenarios, costs)?.iter().map(|change| change.at(0.0)).collect();
    let resources = resources(scenarios[0], &changes, &[]);
    let process = |resource: Resource| match resource.on {
        LimitOn::Process(name) => Some(ProcessPrediction {
            name,
            cpu: resource.used,
            cpu_after: (resource.used + resource.more).max(0.0),
        }),
        LimitOn::Path | LimitOn::Cpus => None,
    };
    Some(resources.into_iter().filter_map(process).collect())
}

/// What a reader must know.
fn notes(scenario: &Scenario) -> Vec<String> {
    let mut notes = Vec::new();
    let slowdown = scenario.recorded.as_ref().and_then(|recorded| recorded.slowdown).unwrap_or(0.0);
    if slowdown > TOLD_SLOWDOWN {
        let percent = 100.0 * slowdown;
        notes.push(format!(
            "the program took {percent:.0}% longer while it was recorded; its rates are without that"
        ));
    }
    for flow in scenario.flows.iter().filter(|flow| flow.fds > 0) {
        notes.push(format!("'{}' passes descriptors, whose cost is taken to stay the same", flow.name));
    }
    let is_unplaced = |flow: &&Flow| {
        let recorded = flow.recorded.as_ref();
        recorded.is_some_and(|recorded| recorded.on_one_cpu.is_none())
            && [flow.from, flow.to].iter().any(|process| scenario.processes[*process].cpus.len() != 1)
    };
    let unplaced = scenario.flows.iter().filter(is_unplaced).count();
    if unplaced > 0 {
        notes.push(format!(
            "of {unplaced} flows it was not recorded how often sender and receiver had one CPU: half of their messages are taken to"
        ));
    }
    notes
}
