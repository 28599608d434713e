//! What is recorded on the CPUs of real endpoints, against what is known beforehand and what the kernel accounts to them.
//!
//! What the recorder itself sees of known threads is tested in `observe`; here it is that the endpoints of a trial are found, in
//! processes and in threads, and that their iterations are those that they report.

use crate::common::{IPCMARK, skip};
use harness::coordinator::address_layout::AddressLayout;
use harness::coordinator::plain_times::PlainTimes;
use harness::coordinator::run_directory::RunDirectory;
use harness::coordinator::schedule::Trials;
use harness::coordinator::trials::EndpointTrials;
use harness::protocol::orders::{Singly, Sizing, SliceOrders};
use model::observation::{CpuEventKind, CpuTrace, EventSet, RecordingWay};
use model::record::{ClockSource, Sample};
use model::{Case, CpuPair, Endpoints, Peers, Placement, Size, Workload, floor};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub(crate) const ITERATIONS: u64 = 23;
const SETS: [EventSet; 3] = [EventSet::Switches, EventSet::WakeUps, EventSet::Calls];
/// Of so many slices most must agree with the kernel's own accounting, which is read a little before the first iteration begins
/// and a little after the last ends: a switch may come between.
const SLICES: usize = 5;

/// A pipe whose endpoints share the first CPU that there is.
fn pipe(endpoints: Endpoints) -> Case {
    let cpu = harness::host::topology::allowed()[0];
    Case {
        workload: Workload::Latency,
        size_bytes: Some(Size(777)),
        placement: Placement::SameCore,
        cpus: Some(CpuPair { client: cpu, server: cpu }),
        endpoints,
        peers: Peers::Pair,
        ..floor::operation("pipe", 1)
    }
}

/// What `slices` slices of one trial of `case` measured and what was recorded of them, each after one that was not recorded.
pub(crate) fn traces(case: &Case, slices: usize, sets: &[EventSet]) -> Vec<(Sample, CpuTrace)> {
    let directory = RunDirectory::create().unwrap();
    let trials = EndpointTrials {
        clock: ClockSource::MonotonicRaw,
        directory: &directory,
        check: false,
        interrupted: &AtomicBool::new(false),
        timeout: Duration::from_secs(30),
        time: None,
        plain_times: PlainTimes::default(),
        program: Some(Path::new(IPCMARK)),
        remote: None,
        layout: AddressLayout::Random,
        drivers: None,
    };
    let size = Sizing::Iterations(ITERATIONS);
    let mut trial = trials.start(case, 0, None).unwrap();
    let traces = (0..slices).map(|_| {
        let bare = trial.slice(SliceOrders { size, singly: Singly::Omitted }).unwrap();
        // Of several clients it is what they did at the same time.
        assert!(bare.sample.iterations == ITERATIONS || case.peers != Peers::Pair);
        let (report, trace) = trial.traced_slice(size, sets, RecordingWay::default()).unwrap();
        (report.sample, trace)
    });
    let traces = traces.collect();
    trial.end().unwrap();
    traces
}

/// The calls that were entered in the timed iterations, by thread and number.
fn entered(trace: &CpuTrace) -> BTreeMap<(u32, u32), u64> {
    let mut calls = BTreeMap::new();
    for event in trace.timed() {
        if let CpuEventKind::Enter { number, .. } = event.what {
            *calls.entry((event.tid, number)).or_default() += 1;
        }
    }
    calls
}

/// The number of a system call on this architecture.
fn number(name: &str) -> u32 {
    (0..1024).find(|number| observe::call_name(*number) == name).unwrap()
}

/// Whether the client left its CPU as often as the kernel accounts to it, and was woken as often as it slept.
fn agrees(sample: &Sample, trace: &CpuTrace) -> bool {
    let client = trace.client_tids[0];
    let left = |is_preempted| {
        let is_meant = |what| matches!(what, CpuEventKind::Switch { from, preempted, .. } if from == client && preempted == is_preempted);
        trace.timed().filter(|event| is_meant(event.what)).count() as u64
    };
    let is_woken = |what| matches!(what, CpuEventKind::Waking { woken, .. } if woken == client);
    let woken = trace.timed().filter(|event| is_woken(event.what)).count() as u64;
    let accounted = (sample.client.voluntary_switches, sample.client.involuntary_switches);
    accounted == (left(false), left(true)) && woken == left(false)
}

#[test]
fn calls_switches_and_wake_ups_of_twenty_three_iterations_are_those_of_the_endpoints_alone() {
    for endpoints in [Endpoints::Processes, Endpoints::Threads] {
        let traces = traces(&pipe(endpoints), SLICES, &SETS);
        for (sample, trace) in &traces {
            if let Some(reason) = trace.unavailable.first() {
                assert!(reason.contains("sudo") || reason.contains("docker"), "{reason}");
                return skip(reason, "events of CPUs are not tested");
            }
            let (client, server) = (trace.client_tids[0], trace.server_tids[0]);
            assert_eq!((trace.client_tids.len(), trace.server_tids.len()), (1, 1), "{endpoints:?}");
            assert_eq!(trace.iteration_ends_ns.len() as u64, ITERATIONS);
            assert!(trace.from_ns <= trace.iteration_ends_ns[0] && trace.iteration_ends_ns.is_sorted());
            assert_eq!((sample.iterations, trace.lost), (ITERATIONS, 0));
            // On one CPU the server waits for its next message before the client goes on, and so also after the last iteration.
            let calls = entered(trace);
            let [read, write] = ["read", "write"].map(number);
            let expected = [(client, read), (client, write), (server, read), (server, write)]
                .map(|call| (call, ITERATIONS));
            let near = |of: &(u32, u32)| calls[of].abs_diff(ITERATIONS) <= u64::from(*of == (server, read));
            assert!(calls.len() == 4 && expected.iter().all(|(call, _)| near(call)), "{calls:?}");
        }
        let agreeing = traces.iter().filter(|(sample, trace)| agrees(sample, trace)).count();
        assert!(agreeing > SLICES / 2, "{agreeing} of {SLICES}");
    }
}

#[test]
fn an_operation_is_recorded_too_and_a_slice_without_sets_records_nothing() {
    let cpu = harness::host::topology::allowed()[0];
    let cpus = Some(CpuPair { client: cpu, server: cpu });
    let case = Case { cpus, ..floor::operation(floor::SYSCALL, 1) };
    let (sample, trace) = &traces(&case, 1, &[EventSet::Calls])[0];
    if let Some(reason) = trace.unavailable.first() {
        return skip(reason, "events of CPUs are not tested");
    }
    assert_eq!((sample.iterations, trace.server_tids.as_slice()), (ITERATIONS, &[][..]));
    assert_eq!(entered(trace).into_values().collect::<Vec<_>>(), [ITERATIONS]);
    let (_, trace) = &traces(&pipe(Endpoints::Processes), 1, &[])[0];
    assert_eq!((trace.events.as_slice(), trace.sets.as_slice()), (&[][..], &[][..]));
    assert_eq!(trace.iteration_ends_ns.len() as u64, ITERATIONS);
}
