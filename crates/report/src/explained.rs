//! Explanations made by hand for the tests of this crate: every table, every term, both sources, and what lacks.

use crate::observed;
use analysis::explain::{
    Advice, Copies, CopyKind, CounterRate, Decomposition, Explanation, FaultRate, MovedBytes, ProbeUse,
    SubsystemShare, Term, TermKind, TermSource,
};
use analysis::traces::schedule::Overlap;
use model::Placement;
use model::estimate::Estimate;
use model::observation::profile::CallProfile;
use model::observation::profile::ScheduleProfile;
use model::observation::subsystem::Subsystem;
use model::observation::{Probe, SampledStack, StackFrame};
use model::record::Fact;
use model::{Case, Endpoints, Histogram, Pace, Peers, Size, Spec, Workload};
use std::collections::BTreeMap;

/// A round trip of `size` bytes over the row `name`, which takes `iteration_ns`.
pub(crate) fn explanation(name: &str, size: u64, iteration_ns: f64) -> Explanation {
    let estimate = |ns: f64| Estimate { median: ns, interval: Some((0.97 * ns, 1.04 * ns)) };
    let term = |kind, part: f64, difference: Option<f64>| Term {
        kind,
        by_probes_ns: Some(part * iteration_ns),
        by_difference_ns: difference.map(|part| estimate(part * iteration_ns)),
        difference: difference.map(|_| format!("this less {name}")),
        contradicts: difference.is_some_and(|difference| (difference - part).abs() > 0.1),
    };
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
    let unseen = Fact::Unknown("cycles: this processor shows no counters; look at bare metal".to_owned());
    let probe = |probe, absent: Option<&str>, changes| ProbeUse {
        probe,
        absent: absent.map(str::to_owned),
        unavailable: Vec::new(),
        lost: 3,
        effect: absent.is_none().then(|| estimate(1.4)),
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
        decomposition: Some(Decomposition {
            iteration_ns,
            terms: vec![
                term(TermKind::Calls, 0.1, Some(0.12)),
                term(TermKind::Copies, 0.05, Some(0.3)),
                term(TermKind::WakeUps, 0.45, None),
                term(TermKind::Mechanism, 0.2, None),
                term(TermKind::User, 0.1, Some(0.09)),
            ],
            residual_by_probes_ns: Some(0.1 * iteration_ns),
            residual_by_difference_ns: 0.49 * iteration_ns,
            samples: 42,
            best: TermSource::Samples,
        }),
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
        subsystems: vec![SubsystemShare {
            subsystem: Subsystem::Scheduling,
            client: 0.4,
            server: 0.5,
            samples: 42,
        }],
        probes: vec![
            probe(Probe::Syscalls, None, false),
            probe(Probe::Ptrace, None, true),
            probe(Probe::Faults, Some("the kernel refuses; sudo sysctl kernel.perf_event_paranoid=1"), false),
        ],
        stacks: [stacks.clone(), stacks],
        timeline: Some(observed::observation()),
    }
}

/// The same without what most privileges grant, of a mechanism that spins: differences are the better source, and what they
/// cost lies over one another.
pub(crate) fn by_differences(name: &str, size: u64, iteration_ns: f64) -> Explanation {
    let mut explanation = explanation(name, size, iteration_ns);
    if let Some(sum) = &mut explanation.decomposition {
        for term in &mut sum.terms {
            term.by_probes_ns = None;
            term.contradicts = false;
            term.by_difference_ns = term.by_difference_ns.map(|ns| ns.map(|ns| 2.5 * ns));
        }
        (sum.best, sum.samples, sum.residual_by_probes_ns) = (TermSource::Differences, 0, None);
        sum.residual_by_difference_ns = -0.275 * iteration_ns;
    }
    Explanation {
        calls: None,
        schedule: None,
        overlap: None,
        faults: None,
        counters: Vec::new(),
        subsystems: Vec::new(),
        stacks: Default::default(),
        timeline: None,
        ..explanation
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
