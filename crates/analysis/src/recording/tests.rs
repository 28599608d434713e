//! Recordings made by hand for the tests of this module, and what must hold of the scenario of any.

use super::scenario_of;
use model::Scenario;
use model::card::{Card, CardKind, Framing};
use model::communication::{
    Boundaries, CommunicatingProcess, CommunicatingThread, Communication, CommunicationCall,
    CommunicationKind, KernelObject,
};
use model::scenario::{Begin, Concurrency, Recording};
use model::testing::cards::card;
use model::units::Size;
use model::workload::Workload;
use proptest::prelude::*;

const BOTH: &[Workload] = &[Workload::Latency, Workload::Throughput];
const CARDS: &[Card] = &[
    card("pipe", CardKind::Mechanism, BOTH, true),
    card("tcp", CardKind::Mechanism, BOTH, true),
    card("eventfd", CardKind::Mechanism, &[Workload::Latency], false),
    Card { framing: Framing::Message, ..card("queue", CardKind::Mechanism, BOTH, true) },
];

/// A recording in the making. Each process has one thread unless another is named, and all share one clock.
pub(super) struct Script {
    pub(super) communication: Communication,
    now_ns: u64,
    /// The logical CPU of the calls that follow.
    cpu: Option<u32>,
    /// CPU time and sleep of each process.
    threads: Vec<(u64, u64)>,
    /// The thread of the calls that follow, if it is not the only one of its process.
    tid: Option<u32>,
}

impl Default for Script {
    /// Three processes, and three objects.
    fn default() -> Self {
        let process = |name: &str| CommunicatingProcess::new(name.to_owned());
        let object = |mechanism: &str| KernelObject {
            mechanism: Some(mechanism.to_owned()),
            name: format!("a {mechanism}"),
            boundaries: Boundaries::None,
            server_side: None,
            outside: [None; 2],
        };
        let communication = Communication {
            has_switches: true,
            processes: ["client", "proxy", "store", "store"].map(process).to_vec(),
            objects: ["pipe", "pipe", "tcp", "eventfd"].map(object).to_vec(),
            ..Communication::default()
        };
        Self { communication, now_ns: 0, cpu: None, threads: vec![(0, 0); 4], tid: None }
    }
}

impl Script {
    fn call(
        &mut self,
        process: u32,
        kind: CommunicationKind,
        object: Option<(u32, u8)>,
        bytes: Option<u64>,
        asleep_ns: u64,
    ) -> &mut Self {
        /// CPU time of every call.
        const CALL_NS: u64 = 100;
        let (cpu_ns, slept_ns) = self.threads[process as usize];
        let from_ns = self.now_ns;
        self.now_ns += CALL_NS + asleep_ns;
        self.communication.calls.push(CommunicationCall {
            process,
            tid: self.tid.unwrap_or(process),
            kind,
            object,
            from_ns,
            until_ns: self.now_ns,
            cpu: self.cpu,
            asleep_ns,
            cpu_from_ns: cpu_ns,
            cpu_until_ns: cpu_ns + CALL_NS,
            slept_from_ns: slept_ns,
            bytes,
            asked: bytes,
        });
        self.threads[process as usize] = (cpu_ns + CALL_NS, slept_ns + asleep_ns);
        self.communication.until_ns = self.now_ns;
        self
    }

    /// The calls that follow are on `cpu`.
    pub(super) fn on(&mut self, cpu: u32) -> &mut Self {
        self.cpu = Some(cpu);
        self
    }

    /// The calls that follow are of the thread `tid`.
    pub(super) fn by(&mut self, tid: u32) -> &mut Self {
        self.tid = Some(tid);
        self
    }

    /// `process` has a thread `tid` that uses so much CPU time.
    pub(super) fn thread(&mut self, process: u32, tid: u32, cpu_ns: u64) -> &mut Self {
        let thread = CommunicatingThread { cpu_ns, ..CommunicatingThread::default() };
        self.communication.processes[process as usize].threads.insert(tid, thread);
        self
    }

    pub(super) fn send(&mut self, process: u32, object: (u32, u8), bytes: u64) -> &mut Self {
        self.call(process, CommunicationKind::Send, Some(object), Some(bytes), 0)
    }

    pub(super) fn receive(
        &mut self,
        process: u32,
        object: (u32, u8),
        bytes: u64,
        asleep_ns: u64,
    ) -> &mut Self {
        self.call(process, CommunicationKind::Receive, Some(object), Some(bytes), asleep_ns)
    }

    /// The last call asked for so many bytes, and got fewer.
    pub(super) fn having_asked(&mut self, bytes: u64) -> &mut Self {
        if let Some(call) = self.communication.calls.last_mut() {
            call.asked = Some(bytes);
        }
        self
    }

    pub(super) fn wait(&mut self, process: u32, asleep_ns: u64) -> &mut Self {
        self.call(process, CommunicationKind::Wait, None, None, asleep_ns)
    }

    pub(super) fn work(&mut self, process: u32, ns: u64) -> &mut Self {
        self.threads[process as usize].0 += ns;
        self.now_ns += ns;
        self
    }

    pub(super) fn sleep(&mut self, process: u32, ns: u64) -> &mut Self {
        self.threads[process as usize].1 += ns;
        self.now_ns += ns;
        self
    }

    /// A request through object 0, and its answer.
    pub(super) fn exchange(&mut self, client: u32, server: u32, request: u64, reply: u64) {
        self.exchange_on(0, client, server, request, reply);
    }

    /// The same through `object`, of which the process with the lower number has side 0.
    pub(super) fn exchange_on(&mut self, object: u32, client: u32, server: u32, request: u64, reply: u64) {
        let [of_client, of_server] = if client < server { [0, 1] } else { [1, 0] };
        self.send(client, (object, of_client), request).receive(server, (object, of_server), request, 50);
        self.send(server, (object, of_server), reply).receive(client, (object, of_client), reply, 70);
    }

    /// A message through object 0 that comes while its receiver sleeps in a read for it.
    pub(super) fn send_while_asleep(&mut self, from: u32, to: u32, bytes: u64) {
        self.now_ns += 1_000;
        let reads_ns = self.now_ns - 500;
        self.send(from, (0, 0), bytes).receive(to, (0, 1), bytes, 400);
        if let Some(call) = self.communication.calls.last_mut() {
            call.from_ns = reads_ns;
        }
    }

    pub(super) fn scenario(&self) -> Result<Scenario, model::Invalid> {
        let recorded = Recording {
            command: "a test".to_owned(),
            seconds: self.communication.seconds(),
            by: "tracepoints".to_owned(),
            host: "none".to_owned(),
            slowdown: None,
            slowdown_interval: None,
            unseen: Vec::new(),
        };
        scenario_of(self.communication.clone(), "test", recorded, CARDS)
    }
}

/// `scenario` as its own text is read.
fn read(scenario: &Scenario) -> Scenario {
    let text = scenario.to_toml();
    Scenario::parse(&text, CARDS).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn a_client_a_proxy_and_a_store_are_what_they_say() {
    let mut script = Script::default();
    for at in 0..20 {
        script.work(0, 3_000).send(0, (0, 0), 64).work(1, 500).receive(1, (0, 1), 64, 10);
        if at % 2 == 0 {
            script.work(1, 700).exchange_on(2, 1, 2, 32, 8_192);
        }
        script.work(1, 1_500).send(1, (0, 1), 128).receive(0, (0, 0), 128, 4_000);
    }
    let scenario = read(&script.scenario().unwrap());
    let [query, fetch] = &scenario.flows[..] else { panic!("{scenario:?}") };
    assert_eq!((query.name.as_str(), fetch.name.as_str()), ("client-proxy", "proxy-store"));
    assert_eq!(
        (query.size.to_string(), query.reply.as_ref().unwrap().to_string()),
        ("64".into(), "128".into())
    );
    assert_eq!(fetch.begin, Begin::After { flow: 0, per_message: 0.5 });
    let recorded = query.recorded.as_ref().unwrap();
    assert_eq!(recorded.messages, 20);
    assert!(recorded.client_waited > recorded.server_waited);
    assert!((query.client_work.mean() - 3_000.0).abs() < 200.0, "{}", query.client_work);
    // 500 ns before it receives, and 1,500 ns before it answers; what it does before it asks the store is that flow's.
    assert!((query.server_work.mean() - 2_000.0).abs() < 50.0, "{}", query.server_work);
    assert!((fetch.client_work.mean() - 700.0).abs() < 50.0, "{}", fetch.client_work);
    assert!(recorded.round_trip.is_some());
}

#[test]
fn a_pipeline_is_a_stream_after_a_stream() {
    let mut script = Script::default();
    for _ in 0..30 {
        for _ in 0..3 {
            script.work(0, 100).send(0, (0, 0), 10_240).receive(1, (0, 1), 10_240, 100);
        }
        script.work(1, 9_000).send(1, (1, 0), 4_096).receive(2, (1, 1), 4_096, 100);
    }
    let scenario = read(&script.scenario().unwrap());
    let [first, second] = &scenario.flows[..] else { panic!("{scenario:?}") };
    assert!(first.is_stream() && second.is_stream());
    assert_eq!(first.read, Some(Size(10_240)));
    let Begin::After { flow: 0, per_message } = second.begin else { panic!("{second:?}") };
    assert!((per_message - 1.0 / 3.0).abs() < 1e-9, "{per_message}");
}

#[test]
fn connections_of_a_proxy_that_serve_any_client_come_after_one_each() {
    let mut script = Script::default();
    let another = script.communication.objects[2].clone();
    script.communication.objects.push(another);
    for at in 0..40 {
        // Each of two connections to clients has each of two to the store as often.
        let (client, store) = (at % 2, if at / 2 % 2 == 0 { 2 } else { 4 });
        script.work(0, 3_000).send(0, (client, 0), 64).receive(1, (client, 1), 64, 10);
        script.work(1, 700).exchange_on(store, 1, 2, 32, 8_192);
        script.work(1, 1_500).send(1, (client, 1), 128).receive(0, (client, 0), 128, 4_000);
    }
    let scenario = read(&script.scenario().unwrap());
    let mut causes: Vec<usize> = scenario
        .flows
        .iter()
        .filter(|flow| flow.from == 1)
        .map(|flow| {
            let Begin::After { flow: cause, per_message } = flow.begin else { panic!("{flow:?}") };
            assert!((per_message - 1.0).abs() < 1e-9 && scenario.flows[cause].from == 0, "{flow:?}");
            cause
        })
        .collect();
    causes.sort_unstable();
    causes.dedup();
    assert_eq!(causes.len(), 2, "{scenario:?}");
}

#[test]
fn who_asks_several_at_once_begins_them_together() {
    let mut script = Script::default();
    for _ in 0..10 {
        script.send(0, (0, 0), 5).send(0, (2, 0), 5);
        script.receive(1, (0, 1), 5, 0).receive(3, (2, 1), 5, 0);
        script.send(1, (0, 1), 6).send(3, (2, 1), 6);
        script.receive(0, (0, 0), 6, 0).receive(0, (2, 0), 6, 0);
    }
    let scenario = read(&script.scenario().unwrap());
    assert_eq!(scenario.processes[0].roots, Concurrency::Together);
    assert_eq!(scenario.flows.len(), 2, "{scenario:?}");
}

#[test]
fn who_receives_requests_before_it_has_answered_others_serves_them_together() {
    for together in [true, false] {
        let mut script = Script::default();
        for _ in 0..20 {
            script.send(0, (0, 0), 64).send(0, (1, 0), 64);
            script.receive(1, (0, 1), 64, 10);
            if together {
                script.receive(1, (1, 1), 64, 0).work(1, 100).send(1, (0, 1), 128);
            } else {
                script.send(1, (0, 1), 128).receive(1, (1, 1), 64, 0);
            }
            script.send(1, (1, 1), 128);
            script.receive(0, (0, 0), 128, 10).receive(0, (1, 0), 128, 0);
        }
        let scenario = read(&script.scenario().unwrap());
        let expected = if together { Concurrency::Together } else { Concurrency::InTurn };
        assert_eq!((scenario.flows.len(), scenario.processes[1].serves), (2, expected), "{scenario:?}");
    }
}

#[test]
fn what_comes_back_to_who_waits_is_said() {
    let mut script = Script::default();
    for _ in 0..10 {
        script.sleep(0, 10_000).send(0, (0, 0), 5).receive(1, (0, 1), 5, 10_000);
        // While it deals with the request, it asks the one that waits for its answer.
        script.exchange_on(2, 1, 0, 7, 8);
        script.send(1, (0, 1), 6).receive(0, (0, 0), 6, 0);
    }
    let scenario = read(&script.scenario().unwrap());
    assert!(scenario.flows.iter().all(|flow| flow.after().is_none()), "{scenario:?}");
    // It keeps the pace that the requests gave it, though it slept for nothing but them.
    let asks = scenario.flows.iter().find(|flow| scenario.processes[flow.from].name == "proxy").unwrap();
    let Begin::Closed { think_time } = &asks.begin else { panic!("{asks:?}") };
    assert!((18_000.0..24_000.0).contains(&think_time.mean()), "{asks:?}");
    let unseen = &scenario.recorded.unwrap().unseen;
    assert!(unseen.iter().any(|text| text.contains("would come back")), "{unseen:?}");
}

#[test]
fn what_a_scenario_cannot_have_is_said() {
    let mut script = Script::default();
    script.exchange(0, 1, 5, 6);
    script.send(2, (1, 0), 9).receive(2, (1, 1), 9, 0);
    script.send(0, (3, 0), 8).receive(2, (3, 1), 8, 0);
    script.send(0, (2, 0), 77);
    let scenario = read(&script.scenario().unwrap());
    assert_eq!(scenario.flows.len(), 1);
    let unseen = scenario.recorded.unwrap().unseen;
    for says in ["1 × messages of store to itself", "no mechanism like eventfd", "1 × messages through a tcp"]
    {
        assert!(unseen.iter().any(|text| text.contains(says)), "{says}: {unseen:?}");
    }
}

/// A stream carries answers that follow each other as one; a queue has messages, of which one is an answer.
#[test]
fn an_answer_is_one_message_where_messages_are_kept() {
    for (mechanism, reply) in [("pipe", "12"), ("queue", "9")] {
        let mut script = Script::default();
        script.communication.objects[0].mechanism = Some(mechanism.to_owned());
        for _ in 0..20 {
            script.exchange(0, 1, 4, 9);
            script.send(1, (0, 1), 3).receive(0, (0, 0), 3, 10);
        }
        let scenario = read(&script.scenario().unwrap());
        assert_eq!(scenario.flows[0].reply.as_ref().unwrap().to_string(), reply, "{scenario:?}");
        let unseen = scenario.recorded.unwrap().unseen;
        let is_said = unseen.iter().any(|text| text.starts_with("20 × further answers"));
        assert_eq!(is_said, mechanism == "queue", "{unseen:?}");
    }
}

#[test]
fn processes_that_say_nothing_make_no_scenario() {
    let mut script = Script::default();
    script.communication.unseen.push("3 × signals from a to b are in no flow".to_owned());
    let invalid = script.scenario().unwrap_err();
    assert!(invalid.problem.contains("said nothing") && invalid.problem.contains("3 × signals"), "{invalid}");
}

#[test]
fn more_than_a_scenario_can_have_is_cut_to_the_busiest() {
    let mut script = Script::default();
    let (process, object) =
        (script.communication.processes[0].clone(), script.communication.objects[2].clone());
    for client in 4..304 {
        script.communication.processes.push(process.clone());
        script.communication.objects.push(object.clone());
        script.threads.push((0, 0));
        script.exchange_on(client, 0, client, 5, 6);
    }
    let scenario = read(&script.scenario().unwrap());
    assert_eq!((scenario.processes.len(), scenario.flows.len()), (256, 255));
    assert!(scenario.recorded.unwrap().unseen.iter().any(|text| text.starts_with("45 × flows")));
}

/// A scenario repeats what it has; what happened once beside thousands of messages would be repeated as fast as it goes.
#[test]
fn what_happened_once_beside_thousands_is_left_out_and_said() {
    let of_some = |exchanges: usize| {
        let mut script = Script::default();
        script.exchange_on(2, 1, 2, 32, 64);
        (0..exchanges).for_each(|_| script.exchange(0, 1, 64, 128));
        read(&script.scenario().unwrap())
    };
    let all = of_some(100);
    assert_eq!((all.flows.len(), all.processes.len()), (2, 3));
    let cut = of_some(2000);
    assert_eq!((cut.flows.len(), cut.processes.len()), (1, 2));
    let unseen = cut.recorded.unwrap().unseen;
    assert!(unseen.iter().any(|text| text.starts_with("1 × flows with 1 messages in all")), "{unseen:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever was recorded, the scenario can be read.
    #[test]
    fn every_scenario_is_valid(
        calls in proptest::collection::vec((0..4u32, 0..3u8, 0..4u32, 0..2u8, 0..3000u64, 0..2000u64, 0..500u64), 1..300),
        outside in proptest::collection::vec(proptest::option::of(0..4u32), 8),
        boundaries in proptest::collection::vec(0..3u8, 4),
        servers in proptest::collection::vec(proptest::option::of(0..2u8), 4),
    ) {
        let mut script = Script::default();
        for (at, object) in script.communication.objects.iter_mut().enumerate() {
            object.outside = [outside[2 * at], outside[2 * at + 1]];
            object.server_side = servers[at];
            object.boundaries =
                [Boundaries::None, Boundaries::Kept, Boundaries::Counted][usize::from(boundaries[at])];
        }
        for (process, kind, object, side, bytes, asleep, work) in calls {
            script.work(process, work);
            match kind {
                0 => script.send(process, (object, side), bytes),
                1 => script.receive(process, (object, side), bytes, asleep),
                _ => script.wait(process, asleep),
            };
        }
        if let Ok(scenario) = script.scenario() {
            read(&scenario);
        }
    }
}
