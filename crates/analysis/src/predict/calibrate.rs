//! What a scenario cannot tell of the program that it was recorded of: the difference between what was measured and what the
//! simulation gives with the same mechanisms. It stays the same when mechanisms are exchanged.

use super::measured::Measured;
use super::simulation::{Rest, RestTime, Simulated, sleep_for};
use model::Scenario;
use model::scenario::Begin;

/// The share by which the CPU time of a process that was seen, or is known from costs, may be off.
const OFF: f64 = 0.2;
/// How many times as long as back to back messages may take a program.
const MESSAGE_FACTOR: (f64, f64) = (0.9, 5.0);
/// How much of what is missing of it each step adds: how often processes sleep changes with it.
const STEP: f64 = 0.5;
/// Of what share of a cycle it is not told whether it is waiting, or time in which others have the CPUs that loops keep busy.
const OTHERS: f64 = 0.25;

/// The rests with which `simulated` gives what was `measured`, as near as it gets in so many `steps` from `begin`, or from nothing.
pub(super) fn calibrated(
    scenario: &Scenario,
    measured: &Measured,
    begin: Option<&[Rest]>,
    steps: usize,
    mut simulated: impl FnMut(&[Rest]) -> Simulated,
) -> Vec<Rest> {
    let unknown = || measured.on_one_cpu.iter().map(|stay| Rest { stay: *stay, ..Rest::default() }).collect();
    let mut rests: Vec<Rest> = begin.map_or_else(unknown, <[Rest]>::to_vec);
    if measured.is_empty() {
        return rests;
    }
    let is_single = loops(scenario).count() <= 1;
    for step in 0..steps {
        let found = simulated(&rests);
        place_as_seen(measured, &found, &mut rests);
        if is_single {
            if step == 0 && begin.is_none() {
                bound_cpu(scenario, measured, &found, &mut rests);
            }
            add_missing_time(scenario, measured, &found, &mut rests);
        } else {
            if step == steps / 2 && begin.is_none() {
                mark_waiting(scenario, measured, &found, &mut rests);
            }
            add_missing_cpu(scenario, measured, &found, &mut rests);
            add_missing_waits(scenario, measured, &found, &mut rests);
        }
    }
    rests
}

/// Of the only loop, what its round trips and its cycles were longer than in the simulation: nobody else can have kept it waiting.
fn add_missing_time(scenario: &Scenario, measured: &Measured, found: &Simulated, rests: &mut [Rest]) {
    let longer = longer_round_trips(scenario, measured, found);
    let mut missing: Vec<[f64; 2]> = own(scenario, &longer).map(|longer_ns| [0.0, longer_ns]).collect();
    for (roots, longer_ns) in longer_cycles(scenario, measured, found) {
        let flow = &scenario.flows[roots[0]];
        // A stream is as fast as its slower end.
        let [from, to] = [flow.from, flow.to].map(|process| found.behaviour.processes[process].cpu);
        let explained_ns: f64 = roots.iter().filter_map(|root| longer[*root]).sum();
        missing[roots[0]][usize::from(flow.is_stream() && to > from)] += longer_ns - explained_ns;
    }
    for ((rest, flow), [begin_ns, answer_ns]) in rests.iter_mut().zip(&scenario.flows).zip(missing) {
        // What is not there cannot be left out.
        let with = |rest: RestTime, more_ns: f64, work_ns: f64, thought_ns: f64| {
            rest.of((rest.ns() + more_ns).max(-work_ns - thought_ns), thought_ns)
        };
        rest.begin = with(rest.begin, begin_ns, flow.client_work.mean(), flow.begin.thought_ns());
        rest.answer = with(rest.answer, answer_ns, flow.server_work.mean(), 0.0);
    }
}

/// Of loops that wait for one another, the CPU time of their processes: how long a round trip takes is most of all how long the others keep it
/// waiting, and follows from that. The work of a program was seen by itself; what is missing beside it are messages that take longer than
/// back to back.
fn add_missing_cpu(scenario: &Scenario, measured: &Measured, found: &Simulated, rests: &mut [Rest]) {
    for process in 0..scenario.processes.len() {
        let Some([was_ns, is_ns]) = cpu_of_message_ns(process, scenario, measured, found) else { continue };
        let cpu = found.behaviour.processes[process].cpu;
        let in_messages_ns = if cpu > 0.0 { is_ns * found.messages_cpu[process] / cpu } else { 0.0 };
        let add = |rest: &mut RestTime, work_ns: f64| {
            let before = rest.message_factor;
            let missing_ns = STEP * (was_ns - is_ns);
            if in_messages_ns > 0.0 {
                rest.message_factor =
                    (before * (1.0 + missing_ns / in_messages_ns)).clamp(MESSAGE_FACTOR.0, MESSAGE_FACTOR.1);
            }
            let more_ns = (rest.message_factor / before - 1.0) * in_messages_ns;
            // What was seen of work is nearly right.
            let least_ns = -(OFF * (work_ns + in_messages_ns)).min(work_ns);
            rest.work_ns = (rest.work_ns + missing_ns - more_ns).max(least_ns);
        };
        for (flow, rest) in scenario.flows.iter().zip(&mut *rests) {
            if flow.from == process {
                add(&mut rest.begin, flow.client_work.mean());
            }
            if flow.to == process {
                add(&mut rest.answer, flow.server_work.mean());
            }
        }
    }
}

/// Marks the loops that wait for something that nobody saw: with the CPU time that they were seen to use they would be much faster.
fn mark_waiting(scenario: &Scenario, measured: &Measured, found: &Simulated, rests: &mut [Rest]) {
    for (roots, longer_ns) in longer_cycles(scenario, measured, found) {
        let first = roots[0];
        rests[first].waits = measured.flows[first].is_some_and(|flow| longer_ns > OTHERS * 1e9 / flow.per_s);
    }
}

/// Of the loops that are marked, the waiting that makes their cycles as long as they were: before answers as far as round trips were longer,
/// too.
fn add_missing_waits(scenario: &Scenario, measured: &Measured, found: &Simulated, rests: &mut [Rest]) {
    let longer: Vec<f64> = own(scenario, &longer_round_trips(scenario, measured, found)).collect();
    for (roots, longer_ns) in longer_cycles(scenario, measured, found) {
        if !rests[roots[0]].waits {
            continue;
        }
        let mut left_ns = longer_ns;
        for root in &roots {
            let answer = &mut rests[*root].answer;
            let more_ns = if left_ns > 0.0 { longer[*root].clamp(0.0, left_ns) } else { left_ns };
            let wait_ns = sleep_for(answer.wait_ns + more_ns);
            left_ns -= wait_ns - answer.wait_ns;
            answer.wait_ns = wait_ns;
        }
        let thought_ns = scenario.flows[roots[0]].begin.thought_ns();
        let begin = &mut rests[roots[0]].begin;
        begin.wait_ns = if begin.wait_ns + left_ns < 0.0 {
            (begin.wait_ns + left_ns).max(-thought_ns)
        } else {
            sleep_for(begin.wait_ns + left_ns)
        };
    }
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

/// What of that is each round trip's own: what flows that are begun before the answer take is theirs.
fn own<'a>(scenario: &'a Scenario, longer: &'a [Option<f64>]) -> impl Iterator<Item = f64> + 'a {
    longer.iter().enumerate().map(move |(at, longer_ns)| {
        let causes = scenario.caused_by(at).filter_map(|cause| match scenario.flows[cause].begin {
            Begin::After { per_message, .. } => Some(per_message * longer[cause].unwrap_or(0.0)),
            Begin::Closed { .. } | Begin::Open(_) => None,
        });
        longer_ns.map_or(0.0, |longer_ns| longer_ns - causes.sum::<f64>())
    })
}

/// The flows that are begun in turn, with what their cycle was longer than in the simulation.
fn longer_cycles(scenario: &Scenario, measured: &Measured, found: &Simulated) -> Vec<(Vec<usize>, f64)> {
    let cycle = |roots: Vec<usize>| {
        let first = *roots.first()?;
        // A loop that waits for a rate has the length of that.
        let is_open = |root: &usize| matches!(scenario.flows[*root].begin, Begin::Open(_));
        let flow = measured.flows[first].filter(|_| !roots.iter().any(is_open))?;
        let found = found.behaviour.flows[first].per_s;
        (found > 0.0).then(|| (roots, 1e9 / flow.per_s - 1e9 / found))
    };
    loops(scenario).filter_map(cycle).collect()
}

/// The CPU time of `process` for a message, as measured and in the simulation: rates differ as well.
fn cpu_of_message_ns(
    process: usize,
    scenario: &Scenario,
    measured: &Measured,
    found: &Simulated,
) -> Option<[f64; 2]> {
    let (was, is) = (measured.processes[process]?, found.behaviour.processes[process]);
    let is_own = |at: &usize| [scenario.flows[*at].from, scenario.flows[*at].to].contains(&process);
    let known = (0..scenario.flows.len()).filter(is_own).filter_map(|at| Some((at, measured.flows[at]?)));
    let (was_per_s, is_per_s) = known
        .fold((0.0, 0.0), |(was, is), (at, flow)| (was + flow.per_s, is + found.behaviour.flows[at].per_s));
    let each = [1e9 * was.cpu / was_per_s, 1e9 * is.cpu / is_per_s];
    each.iter().all(|ns| ns.is_finite()).then_some(each)
}

/// How much of what is missing may be CPU time: as much as a process was seen to use for a message beyond what the simulation has it
/// use, which is not known exactly.
fn bound_cpu(scenario: &Scenario, measured: &Measured, found: &Simulated, rests: &mut [Rest]) {
    let most = |process: usize| {
        let known = cpu_of_message_ns(process, scenario, measured, found);
        known.map_or(0.0, |[was_ns, is_ns]| ((1.0 + OFF) * was_ns - is_ns).max(0.0))
    };
    for (flow, rest) in scenario.flows.iter().zip(rests) {
        rest.begin.most_cpu_ns = most(flow.from);
        rest.answer.most_cpu_ns = most(flow.to);
    }
}
