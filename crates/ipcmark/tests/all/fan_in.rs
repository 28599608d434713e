//! Whether the path of a request of one of several clients is found in what the kernel records of real endpoints: it adds up, and a delay
//! in the server lies in its own code for the request that it serves, and in the wait of those behind it.
//!
//! What follows from events that are known is tested in `analysis`; here it is that descriptors, threads and iterations are those of
//! the clients.

use crate::common::{Place, run, skip};
use crate::cpu_traces::{ITERATIONS, traces};
use analysis::path::{CriticalPath, Segment, SegmentKind, critical_paths};
use model::inject::InjectedAmount;
use model::observation::EventSet;
use model::{Case, CpuPair, EndpointRole, Endpoints, Inject, Peers, Placement, Size, Workload, floor};
use serde_json::Value;

const CLIENTS: u32 = 4;
const DELAY_NS: u64 = 10_000;
/// A delay may come out a little shorter than it is meant to be.
const LEAST_NS: u64 = DELAY_NS - 1000;

/// Several clients of one server, all on the first CPU that there is.
fn case(mechanism: &str, inject: Option<Inject>) -> Case {
    let cpu = harness::host::topology::allowed()[0];
    Case {
        workload: Workload::Latency,
        size_bytes: Some(Size(1)),
        placement: Placement::SameCore,
        cpus: Some(CpuPair { client: cpu, server: cpu }),
        endpoints: Endpoints::Processes,
        peers: Peers::FanIn(CLIENTS),
        inject,
        ..floor::operation(mechanism, 1)
    }
}

/// The path of every iteration of one slice of `case`, each of which adds up; `None` where this kernel does not let us record it,
/// which is said.
fn paths(case: &Case) -> Option<Vec<CriticalPath>> {
    let (_, trace) = traces(case, 1, EventSet::ALL).remove(0);
    if let Some(reason) = trace.unavailable.first() {
        skip(reason, "paths of requests are not tested");
        return None;
    }
    assert_eq!((trace.clients.len(), trace.lost), (CLIENTS as usize, 0));
    for client in &trace.clients {
        assert_eq!(client.iteration_ends_ns.len() as u64, ITERATIONS);
        assert!(client.served_on.is_some() && trace.client_tids.contains(&client.tid));
    }
    let paths = critical_paths(&trace);
    assert_eq!(paths.len() as u64, u64::from(CLIENTS) * ITERATIONS);
    for path in &paths {
        let mut at_ns = path.from_ns;
        for segment in &path.segments {
            assert!(segment.from_ns == at_ns && segment.until_ns > at_ns, "{path:?}");
            at_ns = segment.until_ns;
        }
        assert_eq!(at_ns, path.until_ns, "{path:?}");
    }
    Some(paths)
}

/// What the segments of `kind` of the server take in each iteration, the shortest first.
fn of_kind_ns(paths: &[CriticalPath], kind: SegmentKind) -> Vec<u64> {
    let of_path = |path: &CriticalPath| -> u64 {
        let is_meant = |one: &&Segment| one.place.of == EndpointRole::Server && one.place.kind == kind;
        path.segments.iter().filter(is_meant).map(Segment::ns).sum()
    };
    let mut all: Vec<u64> = paths.iter().map(of_path).collect();
    all.sort_unstable();
    all
}

/// The same in a middling iteration.
fn middling_ns(paths: &[CriticalPath], kind: SegmentKind) -> u64 {
    of_kind_ns(paths, kind)[paths.len() / 2]
}

#[test]
fn a_delay_in_the_server_is_in_its_own_code_and_in_the_wait_of_the_other_clients() {
    let amount = InjectedAmount::Ns(DELAY_NS);
    let delay = Inject { side: EndpointRole::Server, amount, is_asleep: false };
    for mechanism in ["unix-stream", "pipe"] {
        let Some(plain) = paths(&case(mechanism, None)) else { return };
        let Some(delayed) = paths(&case(mechanism, Some(delay))) else { return };
        for paths in [&plain, &delayed] {
            let followed = paths.iter().filter(|path| path.is_followed).count();
            assert!(followed * 10 >= paths.len() * 9, "{mechanism}: {followed} of {}", paths.len());
        }
        let user = [&plain, &delayed].map(|paths| middling_ns(paths, SegmentKind::User));
        assert!(user[0] < LEAST_NS && user[1] >= LEAST_NS, "{mechanism}: {user:?}");
        assert!(
            user[1] < 2 * DELAY_NS,
            "{mechanism}: what it does for others is no code of its own: {user:?}"
        );
        // Where others have the CPU, most requests find the server idle; of so many, some wait behind another.
        let others_ns = of_kind_ns(&delayed, SegmentKind::OtherRequests).pop();
        assert!(others_ns >= Some(LEAST_NS), "{mechanism}: {others_ns:?}");
    }
}

/// Slow: an explanation takes seconds, and more where the host is busy.
#[test]
fn requests_of_all_clients_are_explained_and_probes_are_absent_with_the_reason() {
    let place = Place::new();
    let (clients, iterations) = (3, ITERATIONS.to_string());
    let words = ["explain", "unix-stream", "-s", "1", "-p", "same-core", "--peers", "fan-in=3"];
    let words = words.into_iter().chain(["--iterations", &iterations, "--time", "8s", "--format=json"]);
    let said = run(&mut place.ipcmark(words.chain(["--probes", "scheduler,syscalls"]))).expect(0);
    let all: Value = serde_json::from_str(&said.out).unwrap();
    let explanation = &all["explanations"][0];
    for probe in explanation["probes"].as_array().unwrap() {
        assert!(probe["absent"].as_str().unwrap().contains("leave out --peers"), "{probe}");
    }
    let path = &explanation["path"];
    if path.is_null() {
        return skip(&explanation["unrecorded"].to_string(), "explanations of requests are not tested");
    }
    let observed = path["iterations"].as_u64().unwrap();
    assert!(observed > 0 && observed.is_multiple_of(clients * ITERATIONS), "{observed}");
    let typical = &path["typical"];
    let ns = |of: &Value| of["until_ns"].as_u64().unwrap() - of["from_ns"].as_u64().unwrap();
    let segments = typical["segments"].as_array().unwrap();
    assert_eq!(segments.iter().map(ns).sum::<u64>(), ns(typical), "{typical}");
    assert!(place.leftovers().is_empty());
}

#[test]
fn one_client_of_several_servers_has_a_path_too() {
    let fan_out = Case { peers: Peers::FanOut(3), ..case("unix-stream", None) };
    let (_, trace) = traces(&fan_out, 1, EventSet::ALL).remove(0);
    if let Some(reason) = trace.unavailable.first() {
        return skip(reason, "paths through several servers are not tested");
    }
    assert_eq!((trace.server_tids.len(), trace.clients.len()), (3, 0));
    let paths = critical_paths(&trace);
    assert_eq!(paths.len() as u64, ITERATIONS);
    for path in &paths {
        assert_eq!(path.segments.iter().map(Segment::ns).sum::<u64>(), path.ns());
        assert!(path.segments.iter().any(|segment| segment.place.of == EndpointRole::Server), "{path:?}");
    }
}
