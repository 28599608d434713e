//! The plan: from what was asked, the cards and the topology to the list of cases. Pure.
//!
//! What cannot be had is dropped with a reason, never left out in silence.

use crate::card::{Card, CardKind, Framing, Support};
use crate::case::{Case, Endpoints, Placement, Placements, Spec, Workload};
use crate::floor;
use crate::pace::Pace;
use crate::peers::Peers;
use crate::record::Dropped;
use crate::suite::Block;
use crate::topology::{CpuPair, Topology};
use crate::units::Size;

/// A row of the table as this host has it, with the parameters asked for.
#[derive(Debug, Clone)]
pub struct PlanEntry {
    /// The row with its parameters.
    pub spec: Spec,
    /// What it declares.
    pub card: Card,
    /// Whether it works here.
    pub support: Support,
}

/// What will be measured, and what will not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The cases asked for, in order.
    pub cases: Vec<Case>,
    /// The floors that they are measured against, launched in every round.
    pub floors: Vec<Case>,
    /// The floors that were also asked for: the run is not done before they are settled.
    pub awaited: Vec<Case>,
    /// What was asked for and cannot be had.
    pub dropped: Vec<Dropped>,
}

/// Plans `blocks` on a host. `row_of` gives each spec's row; it is asked once for each spec.
pub fn plan(
    blocks: &[Block],
    endpoints: Endpoints,
    topology: &Topology,
    row_of: impl Fn(&Spec) -> PlanEntry,
) -> Plan {
    let mut plan = Plan::default();
    for block in blocks {
        for row in block.specs.iter().map(&row_of) {
            for &workload in &block.workloads {
                plan.add(&row, workload, block, endpoints, topology);
            }
        }
    }
    plan.floors = floors(&plan.cases);
    // A floor that was also asked for is measured once, as a floor.
    let (awaited, cases) = plan.cases.into_iter().partition(|case| plan.floors.contains(case));
    (plan.awaited, plan.cases) = (awaited, cases);
    plan
}

impl Plan {
    fn add(
        &mut self,
        row: &PlanEntry,
        workload: Workload,
        block: &Block,
        endpoints: Endpoints,
        topology: &Topology,
    ) {
        if !row.card.takes(workload) {
            let works = row.card.workloads.iter().map(|w| w.name()).collect::<Vec<_>>().join(", ");
            return self.drop(
                &row.spec,
                workload,
                "",
                format!("the workload has no meaning for it; it has {works}"),
            );
        }
        if let Support::No { reason, remedy } = &row.support {
            return self.drop(&row.spec, workload, "", format!("{reason}; {remedy}"));
        }
        let is_sized = row.card.sized && workload.is_sized();
        if is_sized && block.sizes.is_empty() {
            let reason =
                "it needs message sizes, and none are given; give them as 1,64,4K or 1..1M".to_owned();
            return self.drop(&row.spec, workload, "", reason);
        }
        for placements in places(row.card.kind, block) {
            let (placement, cpus) = match resolve(&placements, topology) {
                Ok(place) => place,
                Err(reason) => {
                    self.drop(&row.spec, workload, &placements.to_string(), reason);
                    continue;
                }
            };
            if let Some(reason) = unplaceable(row, cpus, topology) {
                self.drop(&row.spec, workload, &placement.to_string(), reason);
                continue;
            }
            for size_bytes in sizes(is_sized, block, &row.support) {
                for &pace in &block.paces {
                    if let Some(reason) = unpaceable(row.card.kind, workload, pace) {
                        self.drop(&row.spec, workload, &pace.to_string(), reason);
                        continue;
                    }
                    for &peers in &block.peers {
                        let case = Case {
                            workload,
                            size_bytes,
                            placement,
                            cpus,
                            endpoints: endpoints_of(row.card.kind, endpoints),
                            pace,
                            peers,
                            spec: row.spec.clone(),
                        };
                        match lonely(row, &case, topology) {
                            Some(reason) => self.drop(&row.spec, workload, &peers.to_string(), reason),
                            None => self.add_case(row, case),
                        }
                    }
                }
            }
        }
    }

    /// Adds `case` of `row`, once, unless it has no message of that size.
    fn add_case(&mut self, row: &PlanEntry, case: Case) {
        match unsendable(row, case.size_bytes) {
            Some(reason) => self.dropped.push(Dropped { case: case.key(), reason }),
            None if self.cases.contains(&case) => {}
            None => self.cases.push(case),
        }
    }

    fn drop(&mut self, spec: &Spec, workload: Workload, place: &str, reason: String) {
        let case = format!("{spec} {workload} {place}").trim_end().to_owned();
        let dropped = Dropped { case, reason };
        if !self.dropped.contains(&dropped) {
            self.dropped.push(dropped);
        }
    }
}

/// The placements of `block` that differ for a row of `kind`: an operation runs on one CPU.
pub(crate) fn places(kind: CardKind, block: &Block) -> Vec<Placements> {
    match kind {
        CardKind::Mechanism | CardKind::Floor => block.placements.clone(),
        CardKind::Operation => vec![Placements(vec![Placement::SameCore])],
    }
}

/// The sizes of `block` for a row that works as `support` says; none where a size means nothing.
fn sizes(is_sized: bool, block: &Block, support: &Support) -> Vec<Option<Size>> {
    /// Where doubling ends for a row without a limit.
    const ENOUGH: Size = Size(1 << 20);

    let largest = match support {
        Support::Yes { largest_bytes: Some(largest) } => Size(*largest).min(Size::LARGEST),
        _ => ENOUGH,
    };
    if !is_sized {
        return vec![None];
    }
    let mut sizes = Vec::new();
    for &size in &block.sizes {
        match sizes.last() {
            Some(&last) if size == Size::LIMIT => {
                let doubled = std::iter::successors(Some(last), |s: &Size| Some(Size(s.0 * 2)));
                sizes.extend(doubled.skip(1).take_while(|size| *size < largest));
                sizes.extend(Some(largest).filter(|largest| *largest > last));
            }
            _ => sizes.push(size),
        }
    }
    sizes.into_iter().map(Some).collect()
}

/// Why `row` has no message of `size_bytes`, if it has none.
fn unsendable(row: &PlanEntry, size_bytes: Option<Size>) -> Option<String> {
    let Card { framing, empty, limits, .. } = row.card;
    match (size_bytes?, &row.support) {
        (Size(0), _) if !empty => Some(match framing {
            Framing::Stream => "a stream has no empty messages".to_owned(),
            Framing::Message => "it has no empty messages that could be told from the peer's end".to_owned(),
            Framing::Token | Framing::None => "with 0 bytes there is nothing for it to do".to_owned(),
        }),
        (size, Support::Yes { largest_bytes: Some(largest) }) if size.0 > *largest => {
            Some(format!("its largest message here is {largest} bytes; {limits}"))
        }
        _ => None,
    }
}

/// Why the iterations of `workload` cannot be begun at `pace`, if they cannot.
fn unpaceable(kind: CardKind, workload: Workload, pace: Pace) -> Option<String> {
    let can = pace == Pace::BackToBack || (kind == CardKind::Mechanism && workload.is_answered());
    (!can).then(|| "nothing answers its iterations, so that nobody knows when one is over".to_owned())
}

/// Why the peers of `case`, which is of `row`, cannot communicate all at once, if they cannot.
fn lonely(row: &PlanEntry, case: &Case, topology: &Topology) -> Option<String> {
    let card = &row.card;
    let share_a_cpu = case.cpus.is_some() || topology.cpus.len() < case.peers.endpoints();
    let fits = matches!(case.workload, Workload::Latency | Workload::Transfer | Workload::Throughput);
    let reason = match case.peers {
        Peers::Pair => return None,
        _ if card.kind != CardKind::Mechanism => "only mechanisms have peers",
        _ if card.name == floor::NULL => "it hands nothing over, so that its peers have nothing to share",
        _ if !fits => "several peers are measured in latency, throughput and transfer",
        _ if case.endpoints == Endpoints::Threads => "several peers are processes, not threads",
        _ if case.pace != Pace::BackToBack => "several peers keep no pace but back to back",
        _ if row.spec.params.spins() && share_a_cpu => {
            "endpoints that spin and share a CPU only move at the scheduler's tick"
        }
        Peers::FanOut(_) if card.one_endpoint => "a process has one end of it; pairs=N can be had",
        Peers::FanIn(_) if !card.polled => {
            "its ends cannot be waited for together (poll(2)); pairs=N and fan-out=N can be had"
        }
        Peers::Pairs(_) | Peers::FanIn(_) | Peers::FanOut(_) => return None,
    };
    Some(reason.to_owned())
}

/// An operation has one endpoint: how two would be made is no part of it.
fn endpoints_of(kind: CardKind, asked: Endpoints) -> Endpoints {
    if kind == CardKind::Operation { Endpoints::Processes } else { asked }
}

/// The first of `placements` that `topology` has, or why it has none.
fn resolve(placements: &Placements, topology: &Topology) -> Result<(Placement, Option<CpuPair>), String> {
    let mut reasons = Vec::new();
    for &placement in &placements.0 {
        match topology.place(placement) {
            Ok(cpus) => return Ok((placement, cpus)),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(reasons.join("; "))
}

/// Why `row` cannot run on `cpus`, or unpinned on `topology`, if it cannot.
fn unplaceable(row: &PlanEntry, cpus: Option<CpuPair>, topology: &Topology) -> Option<String> {
    let one_cpu = cpus.map_or(topology.cpus.len() == 1, |pair| pair.client == pair.server);
    let name = row.card.name;
    if one_cpu && row.spec.params.spins() {
        return Some("two endpoints that spin on one CPU only move at the scheduler's tick".to_owned());
    }
    match (name, cpus) {
        (floor::CACHE_LINE, _) if one_cpu => Some("one CPU hands no cache line over".to_owned()),
        (floor::CONTEXT_SWITCH, Some(_)) if !one_cpu => Some("two CPUs need no context switch".to_owned()),
        _ => None,
    }
}

/// The floors of `cases`: null and a bare system call always, then what each case is measured against.
fn floors(cases: &[Case]) -> Vec<Case> {
    let Some(first) = cases.first() else { return Vec::new() };
    let client = cases.iter().find_map(|case| case.cpus).map(|pair| pair.client);
    let alone = |name| match client {
        Some(cpu) => floor::operation(name, cpu),
        None => Case { placement: Placement::Unpinned, cpus: None, ..floor::operation(name, 0) },
    };
    let null = Case {
        workload: Workload::Latency,
        size_bytes: Some(Size(1)),
        endpoints: first.endpoints,
        ..alone(floor::NULL)
    };
    let mut floors = vec![null, alone(floor::SYSCALL)];
    for case in cases.iter().filter_map(floor::floor_of).flat_map(|f| f.cases().cloned().collect::<Vec<_>>())
    {
        if !floors.contains(&case) {
            floors.push(case);
        }
    }
    floors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Domain, Param};
    use crate::testing;
    use crate::topology::Cpu;

    const WAIT: Param = Param {
        name: "wait",
        summary: "how a reader waits",
        domain: Domain::Choice(&["block", "spin"]),
        default: Some("block"),
    };
    const TWO_ENDED: &[Workload] = &[Workload::Latency, Workload::Throughput];

    const fn card(name: &'static str, kind: CardKind, workloads: &'static [Workload], sized: bool) -> Card {
        Card {
            params: &[WAIT],
            limits: "fs.mqueue.msgsize_max",
            ..testing::card(name, kind, workloads, sized)
        }
    }

    const CARDS: &[Card] = &[
        card("pipe", CardKind::Mechanism, TWO_ENDED, true),
        card("mq", CardKind::Mechanism, TWO_ENDED, true),
        card("vmsplice", CardKind::Mechanism, TWO_ENDED, true),
        card("null", CardKind::Mechanism, TWO_ENDED, true),
        card("context-switch", CardKind::Floor, &[Workload::Latency], true),
        card("cache-line", CardKind::Floor, &[Workload::Latency], true),
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
                "cache-line latency 1 same-llc",
            ]
        );
        let cache_line = plan.floors.last().unwrap();
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
    fn what_is_asked_twice_is_planned_once() {
        let one = || {
            block(&["pipe", "pipe:wait=block"], &[Workload::Latency], &[1], &["same-core", "smt|same-core"])
        };
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
        assert!(only_reason(&plan).contains("nothing answers"));
        // The floor of a paced case is that of the iteration, which goes back to back.
        assert!(plan.floors.iter().all(|floor| floor.pace == Pace::BackToBack));
    }

    #[test]
    fn peers_are_planned_where_they_can_be_and_dropped_with_a_reason_elsewhere() {
        let peers = vec![Peers::Pair, Peers::Pairs(2), Peers::FanIn(2)];
        let of = |row: &str, workload, place: &str| {
            let block = Block { peers: peers.clone(), ..block(&[row], &[workload], &[1], &[place]) };
            planned(block, &cores(2))
        };
        let plan = of("pipe", Workload::Latency, "same-core");
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
        let spinning = of("pipe:wait=spin", Workload::Latency, "same-llc");
        assert_eq!((spinning.cases.len(), spinning.dropped.len()), (1, 2));
        assert!(spinning.dropped[0].reason.contains("share a CPU"), "{:?}", spinning.dropped);
        let alone = of("getpid", Workload::Cost, "same-core");
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
        let of = |name: &str| -> Vec<u64> {
            let cases = plan.cases.iter().filter(|case| case.spec.name == name);
            cases.map(|case| case.size_bytes.unwrap().0).collect()
        };
        assert_eq!(of("mq"), [1024, 2048, 4096, 8192]);
        assert_eq!((of("pipe").len(), of("pipe").last()), (11, Some(&(1 << 20))));
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
        let of = |rows: &[&str], workload, sizes: &[u64], place: &str| {
            planned(block(rows, &[workload], sizes, &[place]), &two)
        };
        let latency = Workload::Latency;
        assert!(
            only_reason(&of(&["pipe:wait=spin"], latency, &[1], "same-core")).contains("spin on one CPU")
        );
        assert_eq!(
            only_reason(&of(&["mq"], latency, &[1 << 20], "same-core")),
            "its largest message here is 8192 bytes; fs.mqueue.msgsize_max"
        );
        assert_eq!(
            only_reason(&of(&["pipe"], Workload::Cost, &[1], "same-core")),
            "the workload has no meaning for it; it has latency, throughput"
        );
        assert_eq!(
            only_reason(&of(&["vmsplice"], latency, &[1, 2, 3], "same-core")),
            "no vmsplice; take a newer kernel"
        );
        assert!(only_reason(&of(&["cache-line"], latency, &[1], "same-core")).contains("no cache line"));
        assert!(
            only_reason(&of(&["context-switch"], latency, &[1], "same-llc")).contains("no context switch")
        );
        assert!(only_reason(&of(&["pipe"], latency, &[], "same-core")).contains("needs message sizes"));
        let limited = of(&["mq"], latency, &[1, 8192, 8193], "same-core");
        assert_eq!((limited.cases.len(), limited.dropped.len()), (2, 1));
        assert_eq!(limited.dropped[0].case, "mq latency 8193 same-core");
    }

    #[test]
    fn only_rows_with_empty_messages_have_cases_of_0_bytes() {
        let of = |framing, empty| {
            let row = |spec: &Spec| {
                let row = row(spec);
                PlanEntry { card: Card { framing, empty, ..row.card }, ..row }
            };
            let block = block(&["mq"], TWO_ENDED, &[0, 1], &["same-core"]);
            plan(&[block], Endpoints::Processes, &cores(1), row)
        };
        let plan = of(Framing::Message, true);
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
            (Framing::Message, "peer's end"),
            (Framing::Token, "nothing"),
        ] {
            let plan = of(framing, false);
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
    fn unpinned_cases_alone_have_unpinned_floors() {
        let plan = planned(block(&["pipe"], &[Workload::Latency], &[1], &["unpinned"]), &cores(2));
        assert_eq!(keys(&plan.floors), ["null latency 1 unpinned", "syscall cost unpinned"]);
        assert!(plan.floors.iter().all(|floor| floor.cpus.is_none()));
    }

    #[test]
    fn copies_on_different_cpus_have_different_keys() {
        let placements = ["same-core", "cpus=0,2"];
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
        let of = |name: &str| plan.floors.iter().find(|floor| floor.spec.name == name).unwrap().endpoints;
        assert_eq!((of("context-switch"), of("memcpy")), (Endpoints::Threads, Endpoints::Processes));
    }
}
