//! The prediction: the scenario simulated with the mechanisms that it has and with others, many times over with costs as they might be,
//! and the change with its interval.
//!
//! The change is what matters: where the scenario was measured, it is applied to what was measured.

use super::calibrate::calibrated;
use super::case_costs::{CostDraw, MeasuredCosts};
use super::flow_costs::{DrawnCosts, FlowCosts, switched};
use super::measured::Measured;
use super::placement::{of_mechanism, stays_off};
use super::simulation::{Rest, RestTime, Simulated, SimulationSetup, simulate};
use super::size_line::{SizeFit, quantiles};
use crate::alike::Alike;
use crate::missed_settings::MissedSetting;
use crate::stats::median;
use model::scenario::{Behaviour, Flow};
use model::{Scenario, Spec, Workload};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use schemars::JsonSchema;
use serde::Serialize;

/// What an interval misses on each side: it is one of 90%.
const TAIL: f64 = 0.05;
/// Half the width of that interval for an error of 1.
const NORMAL_90: f64 = 1.645;
/// What the simulation leaves out, which no cost tells, as a fraction of any time: of processes that are held to one CPU each, or of
/// which it is known how often they were on one; and of others, whose replays differ by where the kernel puts them.
const MODEL_ERROR: [f64; 2] = [0.007, 0.04];
/// The same as a fraction of a change.
const MODEL_ERROR_OF_CHANGE: f64 = 0.10;
/// How cold the caches of a program may be, from 0 as between messages back to back to 1 as cold as they are measured to be. A program
/// that went through code or memory between its messages was from half to all that apart from them, PostgreSQL near 1, and one that went
/// through both a third beyond.
const COLDNESS: (f64, f64) = (0.7, 1.3);
/// How long a program must work for each message to have them so cold, in nanoseconds: PostgreSQL does so, nginx for a quarter of it.
const COLD_WORK_NS: f64 = 15_000.0;
/// By how much of it what a program's messages take longer than back to back may differ from one mechanism to another. A program in C that went
/// through 512 KiB of code and as much memory between messages had those of a Unix socket take 3.4 times as long, and those of TCP 3.1 times.
const OTHER_FACTOR: f64 = 0.3;
/// For how long a thread keeps its CPU while another waits for it: from a slice of Linux with one CPU to that with many.
const QUANTUM_NS: (u64, u64) = (700_000, 2_800_000);
/// How many steps the calibration has, from nothing and from what is nearly right. Of several loops, the first half of them finds CPU times, and
/// what is left after that is waiting, or is not.
const FIRST_STEPS: usize = 40;
const NEXT_STEPS: usize = 3;

/// From here on a reader is told that the simulation does not come to what was measured, as a fraction of its rates.
const TOLD_MISFIT: f64 = 0.1;
/// From here on a reader is told that costs of slow spells were left out, as a share of all slices.
const TOLD_LEFT_OUT: f64 = 0.02;
/// From here on a reader is told that recording had slowed the program.
const TOLD_SLOWDOWN: f64 = 0.02;

/// How much is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredictOptions {
    /// The same seed gives the same prediction.
    pub seed: u64,
    /// How many times costs are drawn.
    pub draws: u32,
    /// How many events each simulation has.
    pub events: u64,
}

impl Default for PredictOptions {
    fn default() -> Self {
        Self { seed: 1, draws: 96, events: 30_000 }
    }
}

/// What exchanging mechanisms gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The name of the scenario.
    pub scenario: String,
    /// One for each of its flows, or for those that are alike.
    pub flows: Vec<FlowPrediction>,
    /// Requests and messages a second of all flows that are exchanged; absent of fewer than two, or where the simulation had none.
    pub together_per_s: Option<Change>,
    /// One for each of its processes, or for those that are alike.
    pub processes: Vec<ProcessPrediction>,
    /// Whether what was measured of the scenario went into it.
    pub is_calibrated: bool,
    /// The measured cases that it rests on.
    pub basis: Vec<Basis>,
    /// The settings of these that are not as asked, or not as usual.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<MissedSetting>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// What becomes of a flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowPrediction {
    /// Its name.
    pub name: String,
    /// Its mechanism.
    pub before: String,
    /// The one that it gets; the same where it keeps its own.
    pub after: String,
    /// Requests, or messages of a stream, a second; absent where the simulation had none.
    pub per_s: Option<Change>,
    /// The round trip, in nanoseconds; absent for streams.
    pub round_trip_ns: Option<Change>,
}

/// What becomes of a process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessPrediction {
    /// Its name.
    pub name: String,
    /// CPU time over time; absent where the simulation had none.
    pub cpu: Option<Change>,
    /// Context switches a second.
    pub switches_per_s: Option<Change>,
}

/// A number before and after, with the 90% interval of the second and of the ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// As measured, or as simulated.
    pub before: f64,
    /// As predicted.
    pub after: f64,
    /// Its interval.
    pub interval: (f64, f64),
    /// The second over the first.
    pub ratio: f64,
    /// Its interval.
    pub ratio_interval: (f64, f64),
}

/// Measured cases that differ in the size alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Basis {
    /// The mechanism and what was done with it, where.
    pub case: String,
    /// The sizes, in bytes.
    pub sizes: Vec<u64>,
    /// What an iteration takes by size, in nanoseconds.
    pub fit: SizeFit,
}

/// Predicts what `after` does from what `before` was `measured` to do; they are the same scenario but for the mechanisms of flows.
/// `cpus` are the logical CPUs of the host.
pub fn predict(
    before: &Scenario,
    after: &Scenario,
    costs: &MeasuredCosts,
    measured: &Measured,
    cpus: &[u32],
    options: PredictOptions,
) -> Prediction {
    let fitted = [before, after].map(|scenario| {
        scenario.flows.iter().map(|flow| FlowCosts::of(flow, costs)).collect::<Vec<FlowCosts>>()
    });
    let setup = |costs: &[DrawnCosts], rests: &[Rest], quantum_ns, seed, scenario: &Scenario| {
        let setup = SimulationSetup { costs, rests, cpus, quantum_ns, seed, events: options.events };
        simulate(scenario, &setup)
    };
    let coldness = (COLDNESS.0 + COLDNESS.1) / 2.0;
    let flows = before.flows.iter().zip(&fitted[0]);
    let central: Vec<DrawnCosts> =
        flows.map(|(flow, costs)| costs.draw(None, 0.0, coldness * most_cold(before, flow))).collect();
    let begin = calibrated(before, measured, None, FIRST_STEPS, |rests| {
        setup(&central, rests, QUANTUM_NS.1, options.seed, before)
    });
    let draws: Vec<[Simulated; 2]> = (0..u64::from(options.draws.max(1)))
        .map(|nth| {
            let seed = options.seed.wrapping_mul(1_000_003).wrapping_add(nth);
            let mut random = SmallRng::seed_from_u64(seed);
            let quantum_ns = random.random_range(QUANTUM_NS.0..=QUANTUM_NS.1);
            let drawn = draw_of(&fitted, [before, after], measured, seed);
            let measured = measured.draw(&mut random);
            let rests = calibrated(before, &measured, Some(&begin), NEXT_STEPS, |rests| {
                setup(&drawn[0], rests, quantum_ns, seed, before)
            });
            [
                setup(&drawn[0], &rests, quantum_ns, seed, before),
                setup(&drawn[1], &rests_after(&rests, [before, after], seed), quantum_ns, seed, after),
            ]
        })
        .collect();
    let is_known =
        |(flow, seen): (&Flow, &Option<f64>)| seen.is_some() && !flow.mechanism.params.watches_for_room();
    let is_free = !is_held(before) && !before.flows.iter().zip(&measured.on_one_cpu).all(is_known);
    let alike = Alike::of(&[before, after]);
    let draws = draws.iter().map(|pair| pair.each_ref().map(|one| OfAlike::of(one, &alike))).collect();
    let draws = Draws { draws, model_error: MODEL_ERROR[usize::from(is_free)] };
    let [before, after] = [before, after].map(|scenario| alike.scenario(scenario));
    let (before, after, measured) = (&before, &after, &measured.of_alike(&alike));
    let mut notes = notes([before, after], costs, measured, cpus);
    notes.extend(misfit(measured, &draws));
    let processes = alike.process_counts().enumerate();
    let mechanisms: Vec<&Spec> = [before, after]
        .into_iter()
        .flat_map(|scenario| &scenario.flows)
        .map(|flow| &flow.mechanism)
        .collect();
    Prediction {
        scenario: before.name.clone(),
        flows: (0..before.flows.len()).map(|at| flow(at, before, after, measured, &draws)).collect(),
        together_per_s: together([before, after], measured, &draws),
        processes: processes.map(|(at, count)| process((at, count), before, measured, &draws)).collect(),
        is_calibrated: !measured.is_empty(),
        basis: basis([before, after], costs),
        settings: costs.missed(&mechanisms),
        notes,
    }
}

/// Whether each process has one CPU on which it may run.
fn is_held(scenario: &Scenario) -> bool {
    scenario.processes.iter().all(|process| process.cpus.len() == 1)
}

/// Both scenarios simulated, with costs as they might be.
struct Draws {
    draws: Vec<[OfAlike; 2]>,
    /// What they leave out, as a fraction of any time.
    model_error: f64,
}

/// What a simulation came to, of flows and processes that are alike together.
struct OfAlike {
    behaviour: Behaviour,
    counts: Vec<u64>,
}

impl OfAlike {
    fn of(simulated: &Simulated, alike: &Alike) -> Self {
        Self { behaviour: alike.behaviour(&simulated.behaviour), counts: alike.counts(&simulated.counts) }
    }
}

/// What a reader must know where the simulation could not be brought to what was measured.
fn misfit(measured: &Measured, draws: &Draws) -> Option<String> {
    let known = measured.flows.iter().flatten().map(|flow| flow.per_s).sum::<f64>();
    let simulated = |[before, _]: &[OfAlike; 2]| -> f64 {
        let flows = before.behaviour.flows.iter().zip(&measured.flows);
        flows.filter(|(_, known)| known.is_some()).map(|(flow, _)| flow.per_s).sum()
    };
    let share = median(&draws.draws.iter().map(simulated).collect::<Vec<_>>())? / known;
    ((share - 1.0).abs() > TOLD_MISFIT).then(|| {
        format!(
            "the simulation before the exchange comes to {:.0}% of the requests and messages that were measured, so that its change is less \
             sure than the interval says",
            100.0 * share
        )
    })
}

/// The costs of the flows of both scenarios as they might be. A flow that keeps its mechanism has the same costs in both, and flows
/// of one mechanism are off alike.
fn draw_of(
    fitted: &[Vec<FlowCosts>; 2],
    scenarios: [&Scenario; 2],
    measured: &Measured,
    seed: u64,
) -> [Vec<DrawnCosts>; 2] {
    // What the program leaves in the caches is hardly known, but it is the same before and after.
    let coldness = SmallRng::seed_from_u64(!seed).random_range(COLDNESS.0..=COLDNESS.1);
    let stays_off = stays_off(scenarios, measured, seed);
    [0, 1].map(|which| {
        let of = |((flow, costs), off): ((&Flow, &FlowCosts), &f64)| {
            let coldness = coldness * most_cold(scenarios[which], flow);
            let random = SmallRng::seed_from_u64(of_mechanism(flow, seed));
            costs.draw(Some(CostDraw { random, moments: seed }), *off, coldness)
        };
        scenarios[which].flows.iter().zip(&fitted[which]).zip(&stays_off[which]).map(of).collect()
    })
}

/// The `rests` of the first of `scenarios` as they might be in the second: what nothing else explains stays the same, but for how much longer than
/// back to back the messages of another mechanism take.
fn rests_after(rests: &[Rest], scenarios: [&Scenario; 2], seed: u64) -> Vec<Rest> {
    let [before, after] = scenarios.map(|scenario| &scenario.flows);
    let of = |(rest, (before, after)): (&Rest, (&Flow, &Flow))| {
        if before.mechanism == after.mechanism {
            return *rest;
        }
        let mut random = SmallRng::seed_from_u64(of_mechanism(after, seed).rotate_left(16));
        let share = random.random_range(1.0 - OTHER_FACTOR..=1.0 + OTHER_FACTOR);
        let with =
            |end: RestTime| RestTime { message_factor: 1.0 + share * (end.message_factor - 1.0), ..end };
        Rest { begin: with(rest.begin), answer: with(rest.answer), ..*rest }
    };
    rests.iter().zip(before.iter().zip(after)).map(of).collect()
}

/// How cold caches may be at a message of `flow`, from 0 to 1: the colder the more the program does for each. The work of a scenario
/// that was not recorded is computation, as in a replay, which leaves caches as they are.
fn most_cold(scenario: &Scenario, flow: &Flow) -> f64 {
    let work_ns = flow.client_work.mean() + flow.server_work.mean();
    if scenario.recorded.is_some() { (work_ns / COLD_WORK_NS).min(1.0) } else { 0.0 }
}

fn flow(
    at: usize,
    before: &Scenario,
    after: &Scenario,
    measured: &Measured,
    draws: &Draws,
) -> FlowPrediction {
    let known = measured.flows[at];
    let of = |behaviour: &Behaviour| behaviour.flows[at];
    let per_s = |simulated: &OfAlike| (simulated.counts[at] > 0).then(|| of(&simulated.behaviour).per_s);
    FlowPrediction {
        name: before.flows[at].name.clone(),
        before: before.flows[at].mechanism.to_string(),
        after: after.flows[at].mechanism.to_string(),
        per_s: change(known.map(|flow| flow.per_s), draws, per_s),
        round_trip_ns: change(known.and_then(|flow| flow.round_trip_ns), draws, |simulated| {
            of(&simulated.behaviour).round_trip_ns
        }),
    }
}

/// The rate of all exchanged flows of both scenarios: what one of them gains, another may lose.
fn together([before, after]: [&Scenario; 2], measured: &Measured, draws: &Draws) -> Option<Change> {
    let differ = |at: &usize| before.flows[*at].mechanism != after.flows[*at].mechanism;
    let exchanged: Vec<usize> = (0..before.flows.len()).filter(differ).collect();
    let known = exchanged.iter().map(|at| measured.flows[*at].map(|flow| flow.per_s)).sum();
    let per_s = |simulated: &OfAlike| {
        let rates = exchanged.iter().map(|at| simulated.behaviour.flows[*at].per_s);
        Some(rates.sum()).filter(|per_s: &f64| *per_s > 0.0)
    };
    (exchanged.len() > 1).then(|| change(known, draws, per_s)).flatten()
}

/// The CPU time for a message changes by what it changes in the simulation, and the rate by the ratio that it changes by there.
/// The one at `at` is `count` processes that are alike.
fn process(
    (at, count): (usize, usize),
    scenario: &Scenario,
    measured: &Measured,
    draws: &Draws,
) -> ProcessPrediction {
    let flows: Vec<usize> = (0..scenario.flows.len())
        .filter(|flow| scenario.flows[*flow].from == at || scenario.flows[*flow].to == at)
        .collect();
    let rate = |behaviour: &Behaviour| flows.iter().map(|flow| behaviour.flows[*flow].per_s).sum::<f64>();
    let known_rate: Option<f64> = flows.iter().map(|flow| measured.flows[*flow].map(|flow| flow.per_s)).sum();
    let changed = |known: Option<f64>, of: &dyn Fn(&Behaviour) -> f64, most: Option<f64>| {
        let known = known.zip(known_rate.filter(|rate| *rate > 0.0));
        let pairs: Vec<(f64, f64)> = draws
            .draws
            .iter()
            .filter_map(|[old, new]| {
                let (old, new) = (&old.behaviour, &new.behaviour);
                let (old_rate, new_rate) = (rate(old), rate(new));
                if old_rate <= 0.0 || new_rate <= 0.0 {
                    return None;
                }
                let Some((known, known_rate)) = known else { return Some((of(old), of(new))) };
                let each = known / known_rate + of(new) / new_rate - of(old) / old_rate;
                Some((
                    known,
                    (each * known_rate * new_rate / old_rate).clamp(0.0, most.unwrap_or(f64::MAX).max(known)),
                ))
            })
            .collect();
        let before = known
            .map(|(known, _)| known)
            .or_else(|| median(&pairs.iter().map(|(old, _)| *old).collect::<Vec<_>>()))?;
        Change::of(before, &pairs, draws)
    };
    let known = measured.processes[at];
    ProcessPrediction {
        name: scenario.processes[at].name.clone(),
        cpu: changed(
            known.map(|process| process.cpu),
            &|behaviour| behaviour.processes[at].cpu,
            Some(count as f64),
        ),
        switches_per_s: changed(
            known.map(|process| process.switches_per_s),
            &|behaviour| behaviour.processes[at].switches_per_s,
            None,
        ),
    }
}

/// The change of what `of` takes out of a simulation, applied to what is `known` before.
fn change(known: Option<f64>, draws: &Draws, of: impl Fn(&OfAlike) -> Option<f64>) -> Option<Change> {
    let pairs: Vec<(f64, f64)> =
        draws.draws.iter().filter_map(|[before, after]| Some((of(before)?, of(after)?))).collect();
    let before = known.or_else(|| median(&pairs.iter().map(|(before, _)| *before).collect::<Vec<_>>()))?;
    Change::of(before, &pairs, draws)
}

impl Change {
    /// Of `before`, and of pairs of values before and after whose ratios might be that of the change; `None` without one.
    fn of(before: f64, pairs: &[(f64, f64)], draws: &Draws) -> Option<Self> {
        let usable = pairs.iter().filter(|(old, new)| *old > 0.0 && *new > 0.0);
        let logs: Vec<f64> = usable.map(|(old, new)| (new / old).ln()).collect();
        let middle = median(&logs)?;
        let (low, high) = quantiles(logs, TAIL);
        // What no draw shows adds to what they show.
        let left_out = NORMAL_90 * draws.model_error.hypot(MODEL_ERROR_OF_CHANGE * middle);
        let interval = (middle - (middle - low).hypot(left_out), middle + (high - middle).hypot(left_out));
        let (ratio, ratio_interval) = (middle.exp(), (interval.0.exp(), interval.1.exp()));
        Some(Self {
            before,
            after: before * ratio,
            interval: (before * ratio_interval.0, before * ratio_interval.1),
            ratio,
            ratio_interval,
        })
    }
}

/// The cases behind the mechanisms of both scenarios, and behind sleep.
fn basis(scenarios: [&Scenario; 2], costs: &MeasuredCosts) -> Vec<Basis> {
    let of_flow = |flow: &Flow| -> Vec<(Spec, Workload)> {
        let workloads: &[Workload] =
            if flow.is_stream() { &[Workload::Throughput, Workload::Latency] } else { &[Workload::Latency] };
        workloads.iter().map(|workload| (flow.mechanism.clone(), *workload)).collect()
    };
    let mut priced: Vec<(Spec, Workload)> = Vec::new();
    for spec in scenarios.into_iter().flat_map(|scenario| &scenario.flows).flat_map(of_flow) {
        if !priced.contains(&spec) {
            priced.push(spec);
        }
    }
    let sleep = switched();
    priced.push((sleep.spec, sleep.workload));
    let in_words = |(spec, workload): &(Spec, Workload)| -> Vec<Basis> {
        let basis = costs.basis(spec, *workload);
        basis.map(|(case, sizes, fit)| Basis { case: case.to_string(), sizes, fit }).collect()
    };
    priced.iter().flat_map(in_words).collect()
}

/// What a reader must know.
fn notes(scenarios: [&Scenario; 2], costs: &MeasuredCosts, measured: &Measured, cpus: &[u32]) -> Vec<String> {
    let mut notes = Vec::new();
    let before = scenarios[0];
    if measured.is_empty() {
        notes.push(
            "nothing was measured of the scenario itself: what is before is computed as well, and less sure than the change".to_owned(),
        );
    }
    if measured.slowdown > TOLD_SLOWDOWN {
        let percent = 100.0 * measured.slowdown;
        notes.push(format!("the program took {percent:.0}% longer while it was recorded, which is taken out of what is before"));
    }
    if costs.left_out() > TOLD_LEFT_OUT {
        let percent = 100.0 * costs.left_out();
        notes.push(format!(
            "{percent:.0}% of the costs were measured while the host took half as long again or longer to wake a CPU; they are left out: the \
             prediction is of the host when it is calm"
        ));
    }
    let unplaced = before
        .processes
        .iter()
        .filter(|process| !process.cpus.is_empty() && process.cpus.iter().all(|cpu| !cpus.contains(cpu)));
    for process in unplaced {
        notes
            .push(format!("'{}' names CPUs that this host has not: it is taken to run on any", process.name));
    }
    let is_free = !is_held(before) && cpus.len() > 1;
    let is_woken_twice = |(old, new): &(&Flow, &Flow)| {
        is_free && old.mechanism != new.mechanism && new.mechanism.params.watches_for_room()
    };
    let woken_twice = before.flows.iter().zip(&scenarios[1].flows).filter(is_woken_twice);
    let woken_twice: Vec<String> = woken_twice.map(|(flow, _)| format!("'{}'", flow.name)).collect();
    if !woken_twice.is_empty() {
        notes.push(format!(
            "clients of {} may be woken twice for an answer, and then the kernel moves processes to other CPUs than before, nobody knows \
             which: to know more, hold the processes to CPUs (taskset -c), and record them so",
            woken_twice.join(" and ")
        ));
    }
    for flow in before.flows.iter().filter(|flow| flow.fds > 0) {
        notes.push(format!("'{}' passes descriptors, whose cost is taken to stay the same", flow.name));
    }
    let mut without_sleep: Vec<String> = Vec::new();
    for flow in scenarios.into_iter().flat_map(|scenario| &scenario.flows).filter(|flow| !flow.is_stream()) {
        let slept = costs
            .basis(&flow.mechanism, Workload::Latency)
            .any(|(case, ..)| case.think_time_ns > 0 && !case.has_cold_caches);
        let name = flow.mechanism.to_string();
        if !slept && !without_sleep.contains(&name) {
            without_sleep.push(name);
        }
    }
    if !without_sleep.is_empty() && cpus.len() > 1 {
        notes.push(format!(
            "no case of {} begins after a think time: waking after a long sleep is taken to cost what it does back to back",
            without_sleep.join(" and ")
        ));
    }
    let lacks_late_answers = |flow: &&Flow| {
        let is_measured =
            costs.basis(&flow.mechanism, Workload::Latency).any(|(case, ..)| case.server_work_ns > 0);
        !is_measured && !flow.is_stream() && flow.mechanism.params.watches_for_room()
    };
    if cpus.len() > 1
        && scenarios.into_iter().flat_map(|scenario| &scenario.flows).any(|flow| lacks_late_answers(&flow))
    {
        notes.push(
            "answers are taken to come at once: there are no costs of servers that work first (--inject server:6us), by which a client waits longer or shorter that is also woken when its message is taken".to_owned(),
        );
    }
    let lacks_cold = |flow: &&Flow| {
        let is_measured =
            costs.basis(&flow.mechanism, Workload::Latency).any(|(case, ..)| case.has_cold_caches);
        !is_measured && !flow.is_stream() && most_cold(before, flow) > 0.0
    };
    if cpus.len() > 1
        && scenarios.into_iter().flat_map(|scenario| &scenario.flows).any(|flow| lacks_cold(&flow))
    {
        notes.push(
            "messages are taken to cost what they do back to back: there are no costs with cold caches (--think-time 100us-cold), as programs leave them".to_owned(),
        );
    }
    notes
}
