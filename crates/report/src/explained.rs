//! Explanations made by hand for the tests of this crate: every table, a path, and what lacks.

use crate::fixture::small_pipe;
use crate::observed;
use analysis::explain::{
    Advice, CheckedTerm, Copies, CopyKind, CounterRate, CrossCheck, Explanation, FaultRate, MovedBytes,
    ProbeUse, SubsystemShare,
};
use analysis::interval::MeanEstimate;
use analysis::path::{CallSplit, DosedTrials, RateTrials, SliceMeans, SubsystemPart};
use analysis::traces::schedule::Overlap;
use model::Placement;
use model::endpoint::EndpointRole;
use model::estimate::Estimate;
use model::observation::profile::CallProfile;
use model::observation::profile::ScheduleProfile;
use model::observation::subsystem::Subsystem;
use model::observation::{
    CpuEvent, CpuEventKind, CpuTrace, EventSet, Probe, SampledStack, SamplingRate, StackFrame,
};
use model::record::Fact;
use model::{Case, Endpoints, Histogram, Pace, Peers, Size, Spec, Workload};
use std::collections::BTreeMap;

/// A round trip of `size` bytes over the row `name`, which takes `iteration_ns`.
pub(crate) fn explanation(name: &str, size: u64, iteration_ns: f64) -> Explanation {
    let estimate = |ns: f64| Estimate { median: ns, interval: Some((0.97 * ns, 1.04 * ns)) };
    let mean = |ns: f64| MeanEstimate { mean: ns, interval: Some((0.97 * ns, 1.04 * ns)) };
    let trials = dosed_trials(iteration_ns);
    let call = |name: &str| CallProfile {
        name: name.to_owned(),
        count: 46,
        per_iteration: 1.0,
        time: histogram(&[1_200, 1_300, 4_000]),
        mean_ns: 1_450.0,
        errors: BTreeMap::from([(11, 2)]),
        restarts: 0,
        returned: vec![(i64::try_from(size).unwrap_or(i64::MAX), 44)],
        returned_sum: 44,
        asked_sum: 46,
    };
    let end = || ScheduleProfile {
        running_ns: 0.4 * iteration_ns,
        asleep_ns: 0.5 * iteration_ns,
        preempted_ns: 0.1 * iteration_ns,
        sleeps: 1.0,
        preemptions: 0.01,
        migrations: 0.0,
        sleeping_share: 1.0,
        woken_by_peer: Some(0.99),
        woken_by_interrupt: None,
        wake_up: Some(histogram(&[900, 1_100])),
    };
    let moved =
        |of_client, call: &str, kind| MovedBytes { of_client, call: call.to_owned(), kind, per_byte: 1.0 };
    let counter = |name: &str, count: Fact<f64>| CounterRate {
        name: name.to_owned(),
        client: count.clone(),
        server: count,
        running: 0.5,
    };
    let unseen = Fact::Unknown("this processor shows no counters; look at bare metal".to_owned());
    let probe = |probe, absent: Option<&str>, changes| ProbeUse {
        probe,
        absent: absent.map(str::to_owned),
        unavailable: Vec::new(),
        lost: 3,
        effect: absent.is_none().then(|| estimate(1.4)),
        effect_at_no_samples: (probe == Probe::Sampling).then(|| mean(1.1)),
        changes,
    };
    let frames = [StackFrame::User("main".to_owned()), StackFrame::Kernel("vfs_read".to_owned())];
    let stacks = vec![
        SampledStack { frames: frames[..1].to_vec(), samples: 12 },
        SampledStack { frames: frames.to_vec(), samples: 30 },
    ];
    Explanation {
        case: case(name, size),
        iteration_ns: estimate(iteration_ns),
        trials: 12,
        floor_multiple: Some(estimate(1.6)),
        settings: vec![small_pipe()],
        path: trials.sum(),
        unrecorded: vec!["faults: the kernel refuses; sudo sysctl kernel.perf_event_paranoid=1".to_owned()],
        call_names: BTreeMap::from([(0, "read".to_owned()), (1, "write".to_owned())]),
        splits: vec![CallSplit {
            of: EndpointRole::Client,
            call: "read".to_owned(),
            path_ns: mean(0.3 * iteration_ns),
            samples: 420,
            parts: vec![SubsystemPart {
                subsystem: Subsystem::Copy,
                share: mean(0.25),
                ns: 0.075 * iteration_ns,
            }],
        }],
        slow: trials.slow_iterations(),
        groups: trials.two_groups(),
        checks: vec![CrossCheck {
            term: CheckedTerm::Copies,
            by_path_ns: mean(0.05 * iteration_ns),
            by_difference_ns: estimate(0.3 * iteration_ns),
            difference: format!("this less {name}"),
            agrees: false,
        }],
        copies: Some(Copies {
            by_kernel: 2.0,
            calls: vec![moved(true, "write", CopyKind::In), moved(false, "read", CopyKind::Out)],
        }),
        advice: vec![Advice {
            rule: "wake-ups".to_owned(),
            says: "wake-ups are 45% of an iteration".to_owned(),
            r#try: "wait=spin".to_owned(),
            evidence: BTreeMap::new(),
        }],
        calls: Some((Probe::Syscalls, [vec![call("write"), call("read")], vec![call("read")]])),
        schedule: Some([end(), end()]),
        overlap: Some(Overlap { client_ns: 900.0, server_ns: 800.0, both_ns: 0.0, neither_ns: 1_100.0 }),
        faults: Some(vec![FaultRate {
            of_client: true,
            mapping: "[heap]".to_owned(),
            major: false,
            per_iteration: 0.1,
        }]),
        counters: vec![counter("task-clock", Fact::Known(1_500.0)), counter("cycles", unseen)],
        sampling_rates: SamplingRate::ALL.map(|rate| RateTrials { rate, trials: 4 }).to_vec(),
        subsystems: vec![SubsystemShare {
            subsystem: Subsystem::Scheduling,
            client: Some(mean(0.4)),
            server: None,
            samples: 42,
        }],
        probes: vec![
            probe(Probe::Syscalls, None, false),
            probe(Probe::Ptrace, None, true),
            probe(Probe::Sampling, None, false),
            probe(Probe::Faults, Some("the kernel refuses; sudo sysctl kernel.perf_event_paranoid=1"), false),
        ],
        stacks: [stacks.clone(), stacks],
        timeline: Some(observed::observation()),
    }
}

/// The trials of a round trip on one CPU that takes `iteration_ns`: ten events lie on its path, and recording costs a tenth of it. One
/// iteration in a hundred is slow, because the server works longer.
pub(crate) fn dosed_trials(iteration_ns: f64) -> DosedTrials {
    let sets = [EventSet::Switches, EventSet::WakeUps, EventSet::Calls];
    let mut trials = DosedTrials::default();
    for round in 0..8 {
        let ns = iteration_ns * (1.0 + 0.01 * f64::from(round % 3));
        trials.add_bare(round, SliceMeans { iteration_ns: ns, switches: Some(2.0) });
        let doses = [&[][..], &sets[..1], &sets[1..2], &sets[2..], &sets[..]];
        for sets in doses {
            let cost = 0.03 * sets.len() as f64;
            let trace = trace(sets, ns * (1.0 + cost));
            trials.add(round, &trace, SliceMeans { iteration_ns: ns * (1.0 + cost), switches: Some(2.0) });
        }
    }
    trials
}

/// Two hundred iterations of `iteration_ns` each, of which `sets` were recorded.
fn trace(sets: &[EventSet], iteration_ns: f64) -> CpuTrace {
    use CpuEventKind::{Enter, Exit, Switch, Waking};
    const ITERATIONS: u64 = 200;
    let (client, server) = (10, 20);
    let switch = |from, to| Switch { from, to: Some(to), preempted: false };
    let wakes = |woken| Waking { woken, by_interrupt: false };
    let template = [
        (0.05, client, Enter { number: 1, first: 3 }),
        (0.15, client, wakes(server)),
        (0.20, client, Exit { number: 1, value: 64 }),
        (0.25, client, Enter { number: 0, first: 3 }),
        (0.40, client, switch(client, server)),
        (0.55, server, Exit { number: 0, value: 64 }),
        (0.60, server, Enter { number: 1, first: 3 }),
        (0.70, server, wakes(client)),
        (0.75, server, Exit { number: 1, value: 64 }),
        (0.80, server, Enter { number: 0, first: 3 }),
        (0.90, server, switch(server, client)),
        (0.98, client, Exit { number: 0, value: 64 }),
    ];
    let (mut at_ns, mut events, mut iteration_ends_ns) = (0.0, Vec::new(), Vec::new());
    for iteration in 0..ITERATIONS {
        let slow_ns = if iteration % 100 == 7 { iteration_ns } else { 0.0 };
        for (share, tid, what) in template.iter().filter(|(.., what)| sets.contains(&what.set())) {
            let late_ns = if *share > 0.55 { slow_ns } else { 0.0 };
            let at_ns = (at_ns + share * iteration_ns + late_ns) as u64;
            events.push(CpuEvent { at_ns, cpu: 0, tid: *tid, what: *what });
        }
        at_ns += iteration_ns + slow_ns;
        iteration_ends_ns.push(at_ns as u64);
    }
    CpuTrace {
        sets: sets.to_vec(),
        client_tids: vec![client],
        server_tids: vec![server],
        iteration_ends_ns,
        events,
        ..CpuTrace::default()
    }
}

/// The same without what most privileges grant.
pub(crate) fn without_privileges(name: &str, size: u64, iteration_ns: f64) -> Explanation {
    Explanation {
        path: None,
        slow: None,
        splits: Vec::new(),
        checks: Vec::new(),
        calls: None,
        schedule: None,
        overlap: None,
        faults: None,
        counters: Vec::new(),
        sampling_rates: Vec::new(),
        subsystems: Vec::new(),
        stacks: Default::default(),
        timeline: None,
        ..explanation(name, size, iteration_ns)
    }
}

/// An explanation with `text` wherever a machine, its kernel or who asks can put text.
pub(crate) fn hostile(text: &str) -> Explanation {
    let mut explanation = explanation(text, 64, 2_800.0);
    for advice in &mut explanation.advice {
        (advice.says, advice.r#try) = (text.to_owned(), text.to_owned());
    }
    for call in explanation.calls.iter_mut().flat_map(|(_, ends)| ends).flatten() {
        call.name = text.to_owned();
    }
    explanation.call_names.values_mut().for_each(|name| text.clone_into(name));
    explanation.unrecorded = vec![text.to_owned()];
    for split in &mut explanation.splits {
        split.call = text.to_owned();
    }
    for check in &mut explanation.checks {
        check.difference = text.to_owned();
    }
    for moved in explanation.copies.iter_mut().flat_map(|copies| &mut copies.calls) {
        moved.call = text.to_owned();
    }
    for fault in explanation.faults.iter_mut().flatten() {
        fault.mapping = text.to_owned();
    }
    for counter in &mut explanation.counters {
        counter.name = text.to_owned();
        if let Fact::Unknown(reason) = &mut counter.client {
            *reason = text.to_owned();
        }
    }
    for probe in &mut explanation.probes {
        probe.unavailable = vec![text.to_owned()];
        probe.absent = probe.absent.as_ref().map(|_| text.to_owned());
    }
    for stack in explanation.stacks.iter_mut().flatten() {
        stack.frames = vec![StackFrame::User(text.to_owned()), StackFrame::Kernel(text.to_owned())];
    }
    for seen in explanation
        .timeline
        .iter_mut()
        .flat_map(|seen| [Some(&mut seen.client), seen.server.as_mut()])
        .flatten()
    {
        seen.mappings = vec![text.to_owned()];
    }
    explanation
}

fn case(name: &str, size: u64) -> Case {
    Case {
        workload: Workload::Latency,
        size_bytes: Some(Size(size)),
        placement: Placement::SameCore,
        cpus: None,
        endpoints: Endpoints::default(),
        pace: Pace::default(),
        inject: None,
        peers: Peers::default(),
        spec: Spec::plain(name),
    }
}

fn histogram(times_ns: &[u64]) -> model::histogram::EncodedHistogram {
    let mut histogram = Histogram::new();
    times_ns.iter().for_each(|ns| histogram.record(*ns));
    histogram.encode()
}
