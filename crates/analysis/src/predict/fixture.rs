//! Costs and scenarios for the tests: mechanisms whose costs are known exactly.

use super::case_costs::{CaseSlice, CostCase, EndPlace, MeasuredCosts};
use super::flow_costs::switched;
use model::scenario::{Begin, Concurrency, Flow, Mix, Process};
use model::units::Nanoseconds;
use model::{Scenario, Size, Spec, Workload};

/// What a message costs its sender, and as much its receiver: a fixed part, and one by the byte.
pub(super) const FIXED_NS: f64 = 2000.0;
pub(super) const PER_BYTE_NS: f64 = 0.5;
/// How long waking takes on another CPU.
pub(super) const WAKE_NS: f64 = 3000.0;

pub(super) fn message_ns(bytes: f64) -> f64 {
    FIXED_NS + PER_BYTE_NS * bytes
}

/// Costs of `name`, `factor` times those above.
pub(super) fn add_costs(costs: &mut MeasuredCosts, name: &str, factor: f64) {
    add_costs_with(costs, name, factor, (1.0, 0.0));
}

/// The same with streams whose messages take `longer` than those of round trips, and so many switches of each end.
fn add_costs_with(costs: &mut MeasuredCosts, name: &str, factor: f64, (longer, stream_switches): (f64, f64)) {
    for bytes in [1_u64, 64, 1024, 4096, 16_384, 65_536] {
        let each = factor * message_ns(bytes as f64);
        let mut add = |workload, place, elapsed_ns: f64, end_ns: f64| {
            let switches = if workload == Workload::Latency { 1.0 } else { stream_switches };
            for slice in 0..8 {
                // Slices differ by a little, as they do.
                let off = 1.0 + 0.001 * f64::from(slice - 4);
                let cost = CaseSlice {
                    elapsed_ns: elapsed_ns * off,
                    client_ns: end_ns * off,
                    server_ns: end_ns * off,
                    client_switches: switches,
                    server_switches: switches,
                };
                costs.add(CostCase::plain(Spec::plain(name), workload, place), bytes, cost);
            }
        };
        add(Workload::Latency, EndPlace::OneCpu, 4.0 * each, 2.0 * each);
        add(Workload::Latency, EndPlace::TwoCpus, 4.0 * each + 2.0 * factor * WAKE_NS, 2.0 * each);
        add(Workload::Latency, EndPlace::Anywhere, 4.0 * each + 2.0 * factor * WAKE_NS, 2.0 * each);
        let streamed = longer * each;
        add(Workload::Throughput, EndPlace::OneCpu, 2.0 * streamed, streamed);
        add(Workload::Throughput, EndPlace::TwoCpus, streamed, streamed);
        add(Workload::Throughput, EndPlace::Anywhere, streamed, streamed);
    }
}

/// Round trips of `name` after 100 µs on two CPUs, `longer_ns` longer than back to back.
pub(super) fn add_think_time(costs: &mut MeasuredCosts, name: &str, has_cold_caches: bool, longer_ns: f64) {
    let case = CostCase::plain(Spec::plain(name), Workload::Latency, EndPlace::TwoCpus);
    let factor = if name == "slow" { 2.0 } else { 1.0 };
    let case = CostCase { think_time_ns: 100_000, has_cold_caches, ..case };
    add_slices(costs, &case, &round_trip(factor, longer_ns));
}

/// Round trips of `name` back to back and after 100 µs on two CPUs, which take `longer_ns` longer then, and another switch.
pub(super) fn add_woken_more(costs: &mut MeasuredCosts, name: &str, longer_ns: f64) {
    let case = CostCase::plain(Spec::plain(name), Workload::Latency, EndPlace::TwoCpus);
    add_round_trips(costs, &case);
    let longer = CaseSlice { client_switches: 2.0, ..round_trip(1.0, longer_ns) };
    add_slices(costs, &CostCase { think_time_ns: 100_000, ..case }, &longer);
}

/// A round trip of 64 bytes on two CPUs that takes `factor` times what is usual here, and `longer_ns` besides.
fn round_trip(factor: f64, longer_ns: f64) -> CaseSlice {
    let each = factor * message_ns(64.0);
    CaseSlice {
        elapsed_ns: 4.0 * each + 2.0 * factor * WAKE_NS + longer_ns,
        client_ns: 2.0 * each,
        server_ns: 2.0 * each,
        client_switches: 1.0,
        server_switches: 1.0,
    }
}

/// Eight slices of `case`, which all come to `cost`.
fn add_slices(costs: &mut MeasuredCosts, case: &CostCase, cost: &CaseSlice) {
    (0..8).for_each(|_| costs.add(case.clone(), 64, *cost));
}

/// Eight slices of round trips of `case`, which take as long as is usual here.
pub(super) fn add_round_trips(costs: &mut MeasuredCosts, case: &CostCase) {
    add_slices(costs, case, &round_trip(1.0, 0.0));
}

/// Round trips of `name` on two CPUs whose server works for `work_ns`: they take `longer_ns` besides, and the client 500 ns of CPU time and
/// so many `switches` in all.
pub(super) fn add_late_answers(
    costs: &mut MeasuredCosts,
    name: &str,
    work_ns: u64,
    longer_ns: f64,
    switches: f64,
) {
    let plain = CostCase::plain(Spec::plain(name), Workload::Latency, EndPlace::TwoCpus);
    let usual = round_trip(1.0, work_ns as f64 + longer_ns);
    let cost = CaseSlice {
        client_ns: usual.client_ns + 500.0,
        server_ns: usual.server_ns + work_ns as f64,
        client_switches: switches,
        ..usual
    };
    add_slices(costs, &CostCase { server_work_ns: work_ns, ..plain }, &cost);
}

/// Round trips of `name` that cost each end on two CPUs so many times as much as on one.
pub(super) fn add_interrupts(costs: &mut MeasuredCosts, name: &str, times: f64) {
    for (place, factor) in [(EndPlace::OneCpu, 1.0), (EndPlace::TwoCpus, times)] {
        let case = CostCase::plain(Spec::plain(name), Workload::Latency, place);
        add_slices(costs, &case, &round_trip(factor, 0.0));
    }
}

/// The same of a mechanism each end of whose streams sleeps for each message and wakes the other, which takes two thirds of its time.
pub(super) fn add_sleepy_stream(costs: &mut MeasuredCosts, name: &str) {
    add_costs_with(costs, name, 1.0, (3.0, 1.0));
}

/// What falling asleep and going on again costs.
pub(super) fn add_sleep(costs: &mut MeasuredCosts, sleep_ns: f64) {
    let usual = round_trip(1.0, 0.0);
    let cost = CaseSlice { elapsed_ns: 2.0 * sleep_ns, client_ns: sleep_ns, server_ns: sleep_ns, ..usual };
    add_slices(costs, &switched(), &cost);
}

/// Messages of 64 bytes of a stream of `name` on two CPUs, for each of which each end sleeps once and is charged `end_ns`.
pub(super) fn add_stream_that_slept(costs: &mut MeasuredCosts, name: &str, end_ns: f64) {
    let case = CostCase::plain(Spec::plain(name), Workload::Throughput, EndPlace::TwoCpus);
    let cost = CaseSlice { client_ns: end_ns, server_ns: end_ns, ..round_trip(1.0, 0.0) };
    add_slices(costs, &case, &cost);
}

/// Costs of two mechanisms, `fast` and `slow`, of which the second takes twice as long. Sleep costs nothing.
pub(super) fn costs() -> MeasuredCosts {
    let mut costs = MeasuredCosts::default();
    add_sleep(&mut costs, 0.0);
    add_costs(&mut costs, "fast", 1.0);
    add_costs(&mut costs, "slow", 2.0);
    costs
}

/// So many processes, each on its own CPU of `cpus`, or on any.
pub(super) fn scenario(cpus: &[&[u32]], flows: Vec<Flow>) -> Scenario {
    let process = |(at, cpus): (usize, &&[u32])| Process {
        name: format!("p{at}"),
        cpus: cpus.to_vec(),
        roots: Concurrency::InTurn,
        serves: Concurrency::InTurn,
        recorded: None,
    };
    Scenario {
        name: "test".to_owned(),
        summary: String::new(),
        recorded: None,
        processes: cpus.iter().enumerate().map(process).collect(),
        flows,
    }
}

/// A flow of requests of 64 bytes, answered by as many, back to back, over `fast`.
pub(super) fn flow(from: usize, to: usize) -> Flow {
    Flow {
        name: format!("f{from}-{to}"),
        from,
        to,
        mechanism: Spec::plain("fast"),
        size: Mix::only(Size(64)),
        reply: Some(Mix::only(Size(64))),
        messages: 1,
        fds: 0,
        read: None,
        begin: Begin::Closed { think_time: us(0) },
        client_work: us(0),
        server_work: us(0),
        recorded: None,
    }
}

pub(super) fn us(us: u64) -> Mix<Nanoseconds> {
    Mix::only(Nanoseconds(us * 1000))
}
