//! What a scenario cannot tell of the program that it was recorded of: the difference between what was measured and what the
//! simulation gives with the same mechanisms. It stays the same when mechanisms are exchanged.

use super::case_costs::FlowEnd;
use super::flow_costs::{DrawnCosts, Ends};
use super::measured::Measured;
use super::simulation::{Rest, Simulated};
use model::Scenario;
use model::scenario::Begin;

/// The share by which the CPU time that was seen, or is known from costs, may be off.
const OFF: f64 = 0.2;

/// The rests with which `simulated` gives what was `measured`, as near as it gets in so many `steps` from `begin`, or from nothing. `costs` are
/// those of each flow.
pub(super) fn calibrated(
    scenario: &Scenario,
    measured: &Measured,
    costs: &[DrawnCosts],
    begin: Option<&[Rest]>,
    steps: usize,
    mut simulated: impl FnMut(&[Rest]) -> Simulated,
) -> Vec<Rest> {
    let unknown = || measured.on_one_cpu.iter().map(|stay| Rest { stay: *stay, ..Rest::default() }).collect();
    let mut rests: Vec<Rest> = begin.map_or_else(unknown, <[Rest]>::to_vec);
    if measured.is_empty() {
        return rests;
    }
    // Flows that go on at the same time wait for one another: what one of them is too long by is then most of all too long work of
    // the others.
    let loop_count = loops(scenario).count().max(1);
    let share = 1.0 / loop_count as f64;
    for step in 0..steps {
        let found = simulated(&rests);
        if step == 0 && begin.is_none() {
            bound_cpu(scenario, measured, &found, &mut rests);
        }
        place_as_seen(measured, &found, &mut rests);
        let longer = longer_round_trips(scenario, measured, &found);
        for (at, rest) in rests.iter_mut().enumerate() {
            let causes = scenario.caused_by(at).filter_map(|cause| match scenario.flows[cause].begin {
                Begin::After { per_message, .. } => Some(per_message * longer[cause].unwrap_or(0.0)),
                Begin::Closed { .. } | Begin::Open(_) => None,
            });
            // What flows that are begun before the answer take is theirs.
            rest.answer.ns += share * longer[at].map_or(0.0, |longer| longer - causes.sum::<f64>());
        }
        for (at, longer) in longer_cycles(scenario, measured, &found, &longer) {
            // A stream is as fast as its slower end.
            let flow = &scenario.flows[at];
            let [from, to] = [flow.from, flow.to].map(|process| found.behaviour.processes[process].cpu);
            let end =
                if flow.is_stream() && to > from { &mut rests[at].answer } else { &mut rests[at].begin };
            end.ns += share * longer;
        }
        // What is not there cannot be left out.
        for ((rest, flow), costs) in rests.iter_mut().zip(&scenario.flows).zip(costs) {
            let least = |end, work_ns: f64| match loop_count {
                1 => -work_ns,
                _ => -most_surplus_ns(costs, end, flow.size.mean(), work_ns),
            };
            let begin_ns = least(FlowEnd::From, flow.client_work.mean()) - flow.begin.thought_ns();
            rest.begin.ns = rest.begin.ns.max(begin_ns);
            rest.answer.ns = rest.answer.ns.max(least(FlowEnd::To, flow.server_work.mean()));
        }
    }
    rests
}

/// The flows of each loop, begun one after the other.
fn loops(scenario: &Scenario) -> impl Iterator<Item = Vec<usize>> {
    (0..scenario.processes.len()).flat_map(|process| scenario.root_groups(process))
}

/// Corrects how often receivers are put on the sender's CPU by how often they were seen there: more messages pass where they are quick,
/// and with several processes, those that are not put there can be there all the same.
fn place_as_seen(measured: &Measured, found: &Simulated, rests: &mut [Rest]) {
    for ((rest, seen), found) in rests.iter_mut().zip(&measured.on_one_cpu).zip(&found.on_one_cpu) {
        if let (Some(stay), Some(seen), Some(found)) = (&mut rest.stay, seen, found) {
            *stay = (*stay + seen - found).clamp(0.0, 1.0);
        }
    }
}

/// By how much longer each round trip was than it is in the simulation.
fn longer_round_trips(scenario: &Scenario, measured: &Measured, found: &Simulated) -> Vec<Option<f64>> {
    let of = |at: usize| Some(measured.flows[at]?.round_trip_ns? - found.behaviour.flows[at].round_trip_ns?);
    (0..scenario.flows.len()).map(of).collect()
}

/// The flows that are begun so long after the last, with what their cycle was longer than in the simulation beside the round trip.
fn longer_cycles(
    scenario: &Scenario,
    measured: &Measured,
    found: &Simulated,
    longer: &[Option<f64>],
) -> Vec<(usize, f64)> {
    let cycle = |roots: Vec<usize>| {
        let first = *roots.first()?;
        // A loop that waits for a rate has the length of that.
        let is_open = |root: &usize| matches!(scenario.flows[*root].begin, Begin::Open(_));
        let flow = measured.flows[first].filter(|_| !roots.iter().any(is_open))?;
        let found = found.behaviour.flows[first].per_s;
        let explained: f64 = roots.iter().filter_map(|root| longer[*root]).sum();
        (found > 0.0).then(|| (first, 1e9 / flow.per_s - 1e9 / found - explained))
    };
    loops(scenario).filter_map(cycle).collect()
}

/// How much of the `work_ns` that was seen of an `end` may be too much, where loops wait for one another: what was seen, with what messages of
/// `bytes` cost, is nearly right. Of four clients of PostgreSQL, one of which was beside its client on a CPU, the simulation had that one too
/// seldom; without this bound all of its work was left out for that, so that messages were most of what remained.
fn most_surplus_ns(costs: &DrawnCosts, end: FlowEnd, bytes: f64, work_ns: f64) -> f64 {
    let messages_ns = 2.0 * costs.answered(end, bytes, Ends::Together, false).cpu_ns;
    (OFF * (work_ns + messages_ns)).min(work_ns)
}

/// How much of what is missing may be CPU time: as much as a process was seen to use for a message beyond what the simulation has it
/// use, which is not known exactly.
fn bound_cpu(scenario: &Scenario, measured: &Measured, found: &Simulated, rests: &mut [Rest]) {
    let most = |process: usize| {
        let (was, is) = (measured.processes[process]?, found.behaviour.processes[process]);
        // Rates differ as well: what counts is the time for each message.
        let (mut was_per_s, mut is_per_s) = (0.0, 0.0);
        for at in (0..scenario.flows.len()).filter(|at| {
            let flow = &scenario.flows[*at];
            flow.from == process || flow.to == process
        }) {
            was_per_s += measured.flows[at].map_or(0.0, |flow| flow.per_s);
            is_per_s += measured.flows[at].map_or(0.0, |_| found.behaviour.flows[at].per_s);
        }
        let most_ns = 1e9 * ((1.0 + OFF) * was.cpu / was_per_s - is.cpu / is_per_s);
        most_ns.is_finite().then(|| most_ns.max(0.0))
    };
    for (flow, rest) in scenario.flows.iter().zip(rests) {
        rest.begin.most_cpu_ns = most(flow.from).unwrap_or(0.0);
        rest.answer.most_cpu_ns = most(flow.to).unwrap_or(0.0);
    }
}
