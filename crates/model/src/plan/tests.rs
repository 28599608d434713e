//! Plans of blocks on made-up hosts: what is planned once, what is dropped, and why.

use super::*;
use crate::inject::InjectedAmount;
use crate::param::{Domain, Param};
use crate::testing::cards;
use crate::topology::Cpu;

const WAIT: Param = Param {
    name: "wait",
    summary: "how a reader waits",
    domain: Domain::Choice(&["block", "spin"]),
    default: Some("block"),
};
const TWO_ENDED: &[Workload] = &[Workload::Latency, Workload::Throughput];

const fn card(name: &'static str, kind: CardKind, workloads: &'static [Workload], sized: bool) -> Card {
    Card { params: &[WAIT], limits: "fs.mqueue.msgsize_max", ..cards::card(name, kind, workloads, sized) }
}

const CARDS: &[Card] = &[
    card("pipe", CardKind::Mechanism, TWO_ENDED, true),
    card("mq", CardKind::Mechanism, TWO_ENDED, true),
    card("vmsplice", CardKind::Mechanism, TWO_ENDED, true),
    card("null", CardKind::Mechanism, TWO_ENDED, true),
    card("context-switch", CardKind::Floor, &[Workload::Latency], true),
    card("cache-line", CardKind::Floor, &[Workload::Latency], true),
    card("shared-copy", CardKind::Floor, TWO_ENDED, true),
    card("remote-wake", CardKind::Floor, &[Workload::Latency], false),
    card("memcpy", CardKind::Operation, &[Workload::Cost], true),
    card("syscall", CardKind::Operation, &[Workload::Cost], false),
    card("getpid", CardKind::Operation, &[Workload::Cost], false),
];

fn row(spec: &Spec) -> PlanEntry {
    let support = match spec.name.as_str() {
        "mq" => Support::Yes { largest_bytes: Some(8192) },
        "vmsplice" => {
            Support::No { reason: "no vmsplice".to_owned(), remedy: "take a newer kernel".to_owned() }
        }
        _ => Support::UNLIMITED,
    };
    let card = *CARDS.iter().find(|card| card.name == spec.name).unwrap();
    PlanEntry { spec: spec.clone(), card, support }
}

fn cores(count: u32) -> Topology {
    let cpus = (0..count).map(|id| Cpu { id, package: 0, core: id, llc: Some(0), node: 0 }).collect();
    Topology { cpus, unknown: None }
}

fn block(rows: &[&str], workloads: &[Workload], sizes: &[u64], placements: &[&str]) -> Block {
    Block {
        specs: rows.iter().map(|text| Spec::parse(text, CARDS).unwrap()).collect(),
        workloads: workloads.to_vec(),
        sizes: sizes.iter().copied().map(Size).collect(),
        placements: placements.iter().map(|text| text.parse().unwrap()).collect(),
        paces: vec![Pace::BackToBack],
        peers: vec![Peers::Pair],
    }
}

fn planned(block: Block, topology: &Topology) -> Plan {
    plan(&[block], Endpoints::Processes, topology, row)
}

fn keys(cases: &[Case]) -> Vec<String> {
    cases.iter().map(Case::key).collect()
}

fn only_reason(plan: &Plan) -> &str {
    assert_eq!(plan.dropped.len(), 1, "{:?}", plan.dropped);
    &plan.dropped[0].reason
}

#[test]
fn a_block_is_a_product_in_order() {
    let block = block(&["pipe", "mq"], &[Workload::Latency], &[1, 4096], &["same-core", "same-llc"]);
    let plan = planned(block, &cores(2));
    assert_eq!(
        keys(&plan.cases),
        [
            "pipe latency 1 same-core",
            "pipe latency 4K same-core",
            "pipe latency 1 same-llc",
            "pipe latency 4K same-llc",
            "mq latency 1 same-core",
            "mq latency 4K same-core",
            "mq latency 1 same-llc",
            "mq latency 4K same-llc",
        ]
    );
    assert!(plan.dropped.is_empty());
}

#[test]
fn floors_are_what_the_cases_need_each_once() {
    let workloads = [Workload::Latency, Workload::Throughput];
    let plan = planned(block(&["pipe", "mq"], &workloads, &[64], &["same-core", "same-llc"]), &cores(2));
    assert_eq!(
        keys(&plan.floors),
        [
            "null latency 1 same-core",
            "syscall cost same-core",
            "context-switch latency 1 same-core",
            "memcpy cost 64 same-core",
            "shared-copy latency 64 same-llc",
            "remote-wake latency same-llc",
            "cache-line latency 1 same-llc",
        ]
    );
    let cache_line = &plan.floors[6];
    assert_eq!(cache_line.cpus, Some(CpuPair { client: 1, server: 0 }));
}

#[test]
fn a_floor_that_is_asked_for_is_measured_once() {
    let rows = ["pipe", "null", "syscall", "context-switch"];
    let workloads = [Workload::Latency, Workload::Cost];
    let plan = planned(block(&rows, &workloads, &[1], &["same-core"]), &cores(1));
    assert_eq!(keys(&plan.cases), ["pipe latency 1 same-core"]);
    assert_eq!(plan.floors.len(), 4, "{:?}", keys(&plan.floors));
    // A null of another size is a case like any other.
    let plan = planned(block(&["null"], &[Workload::Latency], &[1, 64], &["same-core"]), &cores(1));
    assert_eq!(keys(&plan.cases), ["null latency 64 same-core"]);
}

#[test]
fn what_cannot_be_asked_of_a_driver_is_dropped_before_anything_is_measured() {
    let led = |change: &dyn Fn(&mut Block), endpoints| {
        let mut block = block(&["pipe"], &[Workload::Latency], &[1], &["same-core"]);
        block.specs[0].drivers.client = Some("c".to_owned().try_into().unwrap());
        change(&mut block);
        plan(&[block], endpoints, &cores(1), row)
    };
    let processes = led(&|_| {}, Endpoints::Processes);
    assert_eq!(keys(&processes.cases), ["c+ipcmark/pipe latency 1 same-core"]);
    let injected = processes.injected(Inject::of_client(InjectedAmount::Ns(5)));
    let rate = |block: &mut Block| block.paces = vec!["rate=1000".parse().unwrap()];
    let peers = |block: &mut Block| block.peers = vec![Peers::Pairs(2)];
    for (plan, why) in [
        (led(&|_| {}, Endpoints::Threads), "--endpoints threads"),
        (led(&rate, Endpoints::Processes), "--rate"),
        (led(&peers, Endpoints::Processes), "--peers"),
        (injected, "--inject"),
    ] {
        assert!(plan.cases.is_empty() && only_reason(&plan).contains(why), "{:?}", plan.dropped);
    }
}

#[test]
fn what_is_asked_twice_is_planned_once() {
    let one =
        || block(&["pipe", "pipe:wait=block"], &[Workload::Latency], &[1], &["same-core", "smt|same-core"]);
    let plan = plan(&[one(), one()], Endpoints::Processes, &cores(1), row);
    assert_eq!(keys(&plan.cases), ["pipe latency 1 same-core"]);
}

#[test]
fn an_operation_has_one_place_whatever_is_asked() {
    let placements = ["same-core", "same-llc", "unpinned"];
    let block = block(&["getpid"], &[Workload::Cost], &[1, 64], &placements);
    let plan = plan(&[block], Endpoints::Threads, &cores(2), row);
    assert_eq!(keys(&plan.cases), ["getpid cost same-core"]);
    assert_eq!(plan.cases[0].endpoints, Endpoints::Processes);
}

#[test]
fn alternatives_take_the_first_that_the_host_has_or_say_all_reasons() {
    let at = |placements: &str, topology: &Topology| {
        planned(block(&["pipe"], &[Workload::Latency], &[1], &[placements]), topology)
    };
    assert_eq!(keys(&at("smt|same-llc|unpinned", &cores(2)).cases), ["pipe latency 1 same-llc"]);
    assert_eq!(keys(&at("smt|same-llc|unpinned", &cores(1)).cases), ["pipe latency 1 unpinned"]);
    let plan = at("smt|cross-node", &cores(2));
    assert_eq!(plan.dropped[0].case, "pipe latency smt|cross-node");
    let reason = only_reason(&plan);
    assert!(reason.contains("smt: ") && reason.contains("; cross-node: "), "{reason}");
    assert!(plan.cases.is_empty() && plan.floors.is_empty());
}

#[test]
fn iterations_that_are_answered_can_be_paced_and_the_others_are_dropped() {
    let workloads = [Workload::Latency, Workload::Throughput];
    let paces = vec![Pace::BackToBack, Pace::ThinkTime(10_000)];
    let paced = Block { paces, ..block(&["pipe"], &workloads, &[1], &["same-core"]) };
    let plan = planned(paced, &cores(1));
    assert_eq!(
        keys(&plan.cases),
        [
            "pipe latency 1 same-core",
            "pipe latency 1 same-core think-time=10us",
            "pipe throughput 1 same-core"
        ]
    );
    assert_eq!(plan.dropped[0].case, "pipe throughput think-time=10us");
    assert!(only_reason(&plan).contains("are not answered"));
    // The floor of a paced case is that of the iteration, which goes back to back.
    assert!(plan.floors.iter().all(|floor| floor.pace == Pace::BackToBack));
}

#[test]
fn peers_are_planned_where_they_can_be_and_dropped_with_a_reason_elsewhere() {
    let peers = vec![Peers::Pair, Peers::Pairs(2), Peers::FanIn(2)];
    let planned_at = |row: &str, workload, place: &str| {
        let block = Block { peers: peers.clone(), ..block(&[row], &[workload], &[1], &[place]) };
        planned(block, &cores(2))
    };
    let plan = planned_at("pipe", Workload::Latency, "same-core");
    assert_eq!(
        keys(&plan.cases),
        ["pipe latency 1 same-core", "pipe latency 1 same-core pairs=2"],
        "{:?}",
        plan.dropped
    );
    assert_eq!(plan.dropped[0].case, "pipe latency fan-in=2");
    assert!(only_reason(&plan).contains("waited for together"));
    // Several peers have no floor: the hand-over is that of the one pair.
    assert_eq!(plan.floors.iter().filter(|floor| floor.peers != Peers::Pair).count(), 0);
    let spinning = planned_at("pipe:wait=spin", Workload::Latency, "same-llc");
    assert_eq!((spinning.cases.len(), spinning.dropped.len()), (1, 2));
    assert!(spinning.dropped[0].reason.contains("share a CPU"), "{:?}", spinning.dropped);
    let alone = planned_at("getpid", Workload::Cost, "same-core");
    assert_eq!((alone.cases.len(), alone.dropped.len()), (1, 2));
    let think_time = Block {
        paces: vec![Pace::ThinkTime(1)],
        peers: vec![Peers::Pairs(2)],
        ..block(&["pipe"], &[Workload::Latency], &[1], &["same-core"])
    };
    assert!(only_reason(&planned(think_time, &cores(2))).contains("no pace"));
    let threads = Block {
        peers: vec![Peers::Pairs(2)],
        ..block(&["pipe"], &[Workload::Latency], &[1], &["same-core"])
    };
    let plan = super::plan(&[threads], Endpoints::Threads, &cores(2), row);
    assert!(only_reason(&plan).contains("not threads"));
}

#[test]
fn sizes_go_up_to_the_limit_of_each_row() {
    let block = Block {
        sizes: crate::units::parse_sizes("1024..max").unwrap(),
        ..block(&["mq", "pipe"], &[Workload::Latency], &[], &["same-core"])
    };
    let plan = planned(block, &cores(1));
    let sizes_of = |name: &str| -> Vec<u64> {
        let cases = plan.cases.iter().filter(|case| case.spec.name == name);
        cases.map(|case| case.size_bytes.unwrap().0).collect()
    };
    assert_eq!(sizes_of("mq"), [1024, 2048, 4096, 8192]);
    assert_eq!((sizes_of("pipe").len(), sizes_of("pipe").last()), (11, Some(&(1 << 20))));
    assert!(plan.dropped.is_empty(), "{:?}", plan.dropped);
}

#[test]
fn a_connection_has_no_size() {
    const CONNECTS: Card = card("tcp", CardKind::Mechanism, &[Workload::Connect], true);
    let row = |spec: &Spec| PlanEntry { card: CONNECTS, ..row(spec) };
    let block = block(&["pipe"], &[Workload::Connect], &[1, 2, 3], &["same-core"]);
    let plan = plan(&[block], Endpoints::Processes, &cores(1), row);
    assert_eq!(keys(&plan.cases), ["pipe connect same-core"]);
}

#[test]
fn what_cannot_be_had_is_dropped_with_its_reason() {
    let two = cores(2);
    let planned_at = |rows: &[&str], workload, sizes: &[u64], place: &str| {
        planned(block(rows, &[workload], sizes, &[place]), &two)
    };
    let latency = Workload::Latency;
    assert!(
        only_reason(&planned_at(&["pipe:wait=spin"], latency, &[1], "same-core")).contains("spin on one CPU")
    );
    assert_eq!(
        only_reason(&planned_at(&["mq"], latency, &[1 << 20], "same-core")),
        "its largest message here is 8192 bytes; fs.mqueue.msgsize_max"
    );
    assert_eq!(
        only_reason(&planned_at(&["pipe"], Workload::Cost, &[1], "same-core")),
        "it does not have this workload; it has latency, throughput"
    );
    assert_eq!(
        only_reason(&planned_at(&["vmsplice"], latency, &[1, 2, 3], "same-core")),
        "no vmsplice; take a newer kernel"
    );
    assert!(only_reason(&planned_at(&["cache-line"], latency, &[1], "same-core")).contains("no cache line"));
    assert!(only_reason(&planned_at(&["shared-copy"], latency, &[1], "same-core")).contains("no cache line"));
    assert!(only_reason(&planned_at(&["remote-wake"], latency, &[], "same-core")).contains("no other CPU"));
    assert!(
        only_reason(&planned_at(&["context-switch"], latency, &[1], "same-llc"))
            .contains("no context switch")
    );
    assert!(only_reason(&planned_at(&["pipe"], latency, &[], "same-core")).contains("needs message sizes"));
    let limited = planned_at(&["mq"], latency, &[1, 8192, 8193], "same-core");
    assert_eq!((limited.cases.len(), limited.dropped.len()), (2, 1));
    assert_eq!(limited.dropped[0].case, "mq latency 8193 same-core");
}

#[test]
fn only_rows_with_empty_messages_have_cases_of_0_bytes() {
    let planned_for = |framing, empty| {
        let row = |spec: &Spec| {
            let row = row(spec);
            PlanEntry { card: Card { framing, empty, ..row.card }, ..row }
        };
        let block = block(&["mq"], TWO_ENDED, &[0, 1], &["same-core"]);
        plan(&[block], Endpoints::Processes, &cores(1), row)
    };
    let plan = planned_for(Framing::Message, true);
    assert!(plan.dropped.is_empty(), "{:?}", plan.dropped);
    assert_eq!(
        keys(&plan.cases),
        [
            "mq latency 0 same-core",
            "mq latency 1 same-core",
            "mq throughput 0 same-core",
            "mq throughput 1 same-core",
        ]
    );
    // Nothing is copied of an empty message.
    assert!(!keys(&plan.floors).contains(&"memcpy cost 0 same-core".to_owned()), "{:?}", plan.floors);
    for (framing, reason) in [
        (Framing::Stream, "a stream has no"),
        (Framing::Message, "end of the stream"),
        (Framing::Token, "nothing"),
    ] {
        let plan = planned_for(framing, false);
        assert_eq!(keys(&plan.cases), ["mq latency 1 same-core", "mq throughput 1 same-core"]);
        assert_eq!(plan.dropped[0].case, "mq latency 0 same-core");
        assert!(plan.dropped[0].reason.contains(reason), "{:?}", plan.dropped);
    }
}

#[test]
fn one_cpu_is_one_cpu_when_nothing_is_pinned_too() {
    let spin = |topology: &Topology| {
        planned(block(&["pipe:wait=spin"], &[Workload::Latency], &[1], &["unpinned"]), topology)
    };
    assert!(only_reason(&spin(&cores(1))).contains("spin on one CPU"));
    assert_eq!(spin(&cores(2)).cases.len(), 1);
}

#[test]
fn a_delay_is_injected_in_what_was_asked_for_and_in_no_floor() {
    let inject = Inject::of_client(InjectedAmount::Ns(200));
    let injected = |rows: &[&str]| {
        let block = block(rows, &[Workload::Latency, Workload::Accuracy], &[64], &["same-core"]);
        planned(block, &cores(2)).injected(inject)
    };
    let plan = injected(&["pipe", "context-switch"]);
    let names =
        ["pipe latency 64 same-core inject=200ns", "context-switch latency 64 same-core inject=200ns"];
    assert_eq!(keys(&plan.cases), names);
    assert!(plan.floors.iter().all(|floor| floor.inject.is_none()) && plan.awaited.is_empty());
    // A case with a delay is divided by the same floor.
    let plain = Case { inject: None, ..plan.cases[0].clone() };
    assert_eq!(floor::floor_of(&plan.cases[0]), floor::floor_of(&plain));
    let several = Block {
        peers: vec![Peers::Pairs(2)],
        ..block(&["pipe"], &[Workload::Latency], &[64], &["same-core"])
    };
    let plan = planned(several, &cores(2)).injected(inject);
    assert!(plan.cases.is_empty() && plan.dropped[0].reason.contains("one client"), "{plan:?}");
}

#[test]
fn unpinned_cases_alone_have_unpinned_floors() {
    let plan = planned(block(&["pipe"], &[Workload::Latency], &[1], &["unpinned"]), &cores(2));
    assert_eq!(keys(&plan.floors), ["null latency 1 unpinned", "syscall cost unpinned"]);
    assert!(plan.floors.iter().all(|floor| floor.cpus.is_none()));
}

#[test]
fn copies_on_different_cpus_have_different_keys() {
    let placements = ["same-core", "cpus=0,0"];
    let plan = planned(block(&["pipe"], &[Workload::Latency], &[64], &placements), &cores(3));
    let mut keys = keys(&plan.floors);
    assert!(keys.contains(&"memcpy cost 64 cpus=0,0".to_owned()), "{keys:?}");
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), plan.floors.len());
}

#[test]
fn threads_hand_over_between_threads() {
    let block = block(&["pipe"], &[Workload::Latency], &[64], &["same-core"]);
    let plan = plan(&[block], Endpoints::Threads, &cores(1), row);
    let endpoints_of =
        |name: &str| plan.floors.iter().find(|floor| floor.spec.name == name).unwrap().endpoints;
    assert_eq!(
        (endpoints_of("context-switch"), endpoints_of("memcpy")),
        (Endpoints::Threads, Endpoints::Processes)
    );
}
