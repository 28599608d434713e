//! Paths of requests of several clients to one server, of traces made by hand, of simulated ones, and of nonsense.

use super::segment::SegmentKind as Kind;
use super::tests::{adds_up, any_event, enter, event, exit, switch, wakes};
use super::*;
use model::endpoint::EndpointRole::{self, Client, Server};
use model::observation::{CpuEvent, CpuEventKind, CpuTrace, EventSet, ServedOn, TracedClient};
use proptest::prelude::*;

const READ: u32 = 0;
const WRITE: u32 = 1;
const WAIT: u32 = 232;
const SERVER: u32 = 20;
/// The first of three clients.
const FIRST: u32 = 10;
const EVENT_LOOP: u32 = 4;

/// The descriptor of the server on which the messages of `client` come.
fn input(client: u32) -> u32 {
    client
}

fn call(at_ns: u64, cpu: u32, tid: u32, number: u32, on: u32) -> CpuEvent {
    event(at_ns, cpu, tid, CpuEventKind::Enter { number, first: u64::from(on) })
}

/// A trace of clients whose iterations begin and end when `iterations` says.
fn trace(iterations: &[(u32, u64, u64)], mut events: Vec<CpuEvent>) -> CpuTrace {
    events.sort_by_key(|event| event.at_ns);
    let client = |(tid, from_ns, until_ns): &(u32, u64, u64)| TracedClient {
        tid: *tid,
        served_on: Some(ServedOn { input: input(*tid), event_loop: EVENT_LOOP }),
        from_ns: *from_ns,
        iteration_ends_ns: vec![*until_ns],
    };
    CpuTrace {
        sets: EventSet::ALL.to_vec(),
        client_tids: iterations.iter().map(|(tid, ..)| *tid).collect(),
        server_tids: vec![SERVER],
        clients: iterations.iter().map(client).collect(),
        from_ns: iterations.iter().map(|(_, from_ns, _)| *from_ns).min().unwrap(),
        iteration_ends_ns: vec![iterations.iter().map(|(.., until_ns)| *until_ns).max().unwrap()],
        events,
        ..CpuTrace::default()
    }
}

/// What the path consists of: whose, what and how long.
fn segments(path: &CriticalPath) -> Vec<(EndpointRole, Kind, u64)> {
    adds_up(path);
    path.segments.iter().map(|segment| (segment.place.of, segment.place.kind, segment.ns())).collect()
}

fn ns_of(path: &CriticalPath, kind: Kind) -> u64 {
    segments(path).iter().filter(|(_, of, _)| *of == kind).map(|(.., ns)| ns).sum()
}

/// Two clients on CPUs of their own, and the server on CPU 2, which serves the second while the first makes its request.
fn two_clients() -> Vec<CpuEvent> {
    let second = FIRST + 1;
    vec![
        // The second wakes the server.
        enter(1050, 1, second, WRITE),
        wakes(1100, 1, second, SERVER),
        exit(1150, 1, second, WRITE, 1),
        enter(1160, 1, second, READ),
        switch(1200, 1, second, 0),
        switch(1300, 2, 0, SERVER),
        exit(1400, 2, SERVER, WAIT, 1),
        call(1450, 2, SERVER, READ, input(second)),
        exit(1550, 2, SERVER, READ, 1),
        // The first finds it awake, and sleeps.
        enter(1500, 0, FIRST, WRITE),
        exit(1600, 0, FIRST, WRITE, 1),
        enter(1610, 0, FIRST, READ),
        switch(1700, 0, FIRST, 0),
        // Ten microseconds in the code of the server, for the second.
        call(11_550, 2, SERVER, WRITE, input(second)),
        wakes(11_650, 2, SERVER, second),
        exit(11_700, 2, SERVER, WRITE, 1),
        switch(11_750, 1, 0, second),
        exit(11_800, 1, second, READ, 1),
        call(11_720, 2, SERVER, WAIT, EVENT_LOOP),
        exit(11_820, 2, SERVER, WAIT, 1),
        call(11_840, 2, SERVER, READ, input(FIRST)),
        exit(11_940, 2, SERVER, READ, 1),
        call(11_960, 2, SERVER, WRITE, input(FIRST)),
        wakes(12_060, 2, SERVER, FIRST),
        exit(12_100, 2, SERVER, WRITE, 1),
        switch(12_160, 0, 0, FIRST),
        exit(12_260, 0, FIRST, READ, 1),
        call(12_110, 2, SERVER, WAIT, EVENT_LOOP),
        switch(12_210, 2, SERVER, 0),
    ]
}

#[test]
fn what_the_server_does_for_another_before_a_request_is_a_segment_of_its_own() {
    let second = FIRST + 1;
    let paths = critical_paths(&trace(&[(FIRST, 1000, 12_300), (second, 1000, 11_850)], two_clients()));
    assert_eq!(
        segments(&paths[0]),
        [
            (Client, Kind::User, 500),
            (Client, Kind::WholeCall, 100),
            // From the return of its write on: the code for the other, and the answer to that.
            (Server, Kind::OtherRequests, 9950),
            (Server, Kind::OtherRequests, 100),
            (Server, Kind::OtherRequests, 50),
            (Server, Kind::User, 20),
            (Server, Kind::WholeCall, 100),
            (Server, Kind::User, 20),
            (Server, Kind::WholeCall, 100),
            (Server, Kind::User, 20),
            (Server, Kind::UntilWaking, 100),
            (Client, Kind::IdleExit, 100),
            (Client, Kind::AfterSleep, 100),
            (Client, Kind::User, 40),
        ]
    );
    // The other was served at once: the same ten microseconds are the server's own code.
    assert_eq!(ns_of(&paths[1], Kind::OtherRequests), 0);
    assert!(segments(&paths[1]).contains(&(Server, Kind::User, 10_000)), "{:?}", paths[1]);
    assert!(paths.iter().all(|path| path.is_followed));
}

#[test]
fn an_answer_of_which_it_is_not_known_for_whom_it_was_is_counted() {
    let second = FIRST + 1;
    let mut unknown = trace(&[(FIRST, 1000, 12_300), (second, 1000, 11_850)], two_clients());
    for client in &mut unknown.clients {
        client.served_on = None;
    }
    let paths = critical_paths(&unknown);
    paths.iter().for_each(adds_up);
    assert!(paths.iter().all(|path| !path.is_followed && ns_of(path, Kind::OtherRequests) == 0));
    // No other client's code or calls are taken for those of this one.
    assert_eq!(ns_of(&paths[0], Kind::UntilSleep), 0);
}

#[test]
fn who_did_not_sleep_was_kept_waiting_by_nobody() {
    let mut events = two_clients();
    // The first finds its answer when it asks for it.
    events.retain(|event| event.cpu != 0 && event.at_ns != 12_060);
    events.extend([
        enter(1500, 0, FIRST, WRITE),
        exit(1600, 0, FIRST, WRITE, 1),
        enter(12_150, 0, FIRST, READ),
        exit(12_250, 0, FIRST, READ, 1),
    ]);
    let paths = critical_paths(&trace(&[(FIRST, 1000, 12_300), (FIRST + 1, 1000, 11_850)], events));
    assert!(segments(&paths[0]).iter().all(|(of, ..)| *of == Client));
    assert!(paths[0].is_followed);
}

#[test]
fn a_client_that_polls_waits_for_its_own_answer_not_for_that_of_another() {
    let mut events = two_clients();
    events.retain(|event| event.cpu != 0 && event.at_ns != 12_060);
    events.extend([enter(1500, 0, FIRST, WRITE), exit(1600, 0, FIRST, WRITE, 1)]);
    for at_ns in (1700..12_100).step_by(100) {
        events.extend([enter(at_ns, 0, FIRST, READ), exit(at_ns + 50, 0, FIRST, READ, -11)]);
    }
    events.extend([enter(12_200, 0, FIRST, READ), exit(12_250, 0, FIRST, READ, 1)]);
    let paths = critical_paths(&trace(&[(FIRST, 1000, 12_300), (FIRST + 1, 1000, 11_850)], events));
    assert_eq!(ns_of(&paths[0], Kind::OtherRequests), 10_100);
    assert!(ns_of(&paths[0], Kind::Polling) <= 100, "{:?}", paths[0]);
    assert!(paths[0].is_followed);
}

#[test]
fn on_one_cpu_another_client_may_have_it() {
    let second = FIRST + 1;
    let events = vec![
        enter(1100, 0, FIRST, WRITE),
        wakes(1200, 0, FIRST, SERVER),
        exit(1300, 0, FIRST, WRITE, 1),
        enter(1320, 0, FIRST, READ),
        switch(1400, 0, FIRST, second),
        enter(1900, 0, second, WRITE),
        exit(2000, 0, second, WRITE, 1),
        enter(2020, 0, second, READ),
        switch(2100, 0, second, SERVER),
        exit(2200, 0, SERVER, WAIT, 2),
        call(2220, 0, SERVER, READ, input(FIRST)),
        exit(2300, 0, SERVER, READ, 1),
        call(2320, 0, SERVER, WRITE, input(FIRST)),
        wakes(2400, 0, SERVER, FIRST),
        exit(2450, 0, SERVER, WRITE, 1),
        call(2470, 0, SERVER, READ, input(second)),
        exit(2550, 0, SERVER, READ, 1),
        call(2570, 0, SERVER, WRITE, input(second)),
        wakes(2650, 0, SERVER, second),
        exit(2700, 0, SERVER, WRITE, 1),
        call(2720, 0, SERVER, WAIT, EVENT_LOOP),
        switch(2800, 0, SERVER, FIRST),
        exit(2900, 0, FIRST, READ, 1),
        enter(2960, 0, FIRST, WRITE),
        exit(2980, 0, FIRST, WRITE, 1),
        enter(2990, 0, FIRST, READ),
        switch(3000, 0, FIRST, second),
        exit(3100, 0, second, READ, 1),
    ];
    let paths = critical_paths(&trace(&[(FIRST, 1000, 2950), (second, 1500, 3150)], events));
    // The other ran before the server could; after its answer the server served the other, before this one had the CPU.
    assert_eq!(ns_of(&paths[0], Kind::OtherClient), 700);
    assert_eq!(ns_of(&paths[0], Kind::OtherRequests), 2700 - 2450);
    // Of the second: the server was awake when it made its request, and served the first one.
    assert_eq!(ns_of(&paths[1], Kind::OtherRequests), 2450 - 2200);
    assert_eq!(ns_of(&paths[1], Kind::OtherClient), 3000 - 2800);
    assert!(paths.iter().all(|path| path.is_followed), "{paths:?}");
}

#[test]
fn a_client_that_seems_to_run_on_two_cpus_at_once_has_no_longer_iteration() {
    // The spans of the client end in another order than they begin.
    let mut trace = trace(&[(FIRST, 1002, 1242)], Vec::new());
    trace.sets = Vec::new();
    trace.events = vec![
        event(1241, 1, FIRST, CpuEventKind::Waking { woken: 0, by_interrupt: false }),
        event(1000, 2, FIRST, CpuEventKind::SoftirqOut),
        event(1242, 1, 0, CpuEventKind::InterruptIn),
        event(1001, 2, SERVER, CpuEventKind::On),
        event(1242, 0, 0, CpuEventKind::On),
        event(1000, 0, SERVER, CpuEventKind::On),
        exit(1000, 1, FIRST, READ, -11),
        enter(1000, 1, 0, READ),
    ];
    critical_paths(&trace).iter().for_each(adds_up);
}

/// What one server on a CPU of its own records that serves `clients` in their order, again and again, each of which has a CPU too, and what
/// each request waits for the others: as long as these take.
fn one_after_the_other(clients: u32, rounds: u64, service_ns: &[u64]) -> (CpuTrace, Vec<Vec<u64>>) {
    let (mut events, mut ends, mut waits) = (Vec::new(), Vec::new(), Vec::new());
    let tids: Vec<u32> = (FIRST..FIRST + clients).collect();
    ends.resize(tids.len(), Vec::new());
    waits.resize(tids.len(), Vec::new());
    let mut now_ns = 1000;
    for _ in 0..rounds {
        // All make their requests at the same time; the first wakes the server.
        for (at, tid) in tids.iter().enumerate() {
            let cpu = 1 + at as u32;
            events.extend([enter(now_ns + 10, cpu, *tid, WRITE), exit(now_ns + 30, cpu, *tid, WRITE, 1)]);
            events.extend([enter(now_ns + 35, cpu, *tid, READ), switch(now_ns + 45, cpu, *tid, 0)]);
        }
        events.push(wakes(now_ns + 20, 1, FIRST, SERVER));
        events.extend([switch(now_ns + 50, 0, 0, SERVER), exit(now_ns + 60, 0, SERVER, WAIT, 1)]);
        let mut at_ns = now_ns + 60;
        for (at, tid) in tids.iter().enumerate() {
            waits[at].push(at_ns - (now_ns + 60));
            let answered_ns = at_ns + service_ns[at];
            events.push(call(at_ns + 1, 0, SERVER, READ, input(*tid)));
            events.push(exit(at_ns + 2, 0, SERVER, READ, 1));
            events.push(call(answered_ns - 2, 0, SERVER, WRITE, input(*tid)));
            events.push(wakes(answered_ns - 1, 0, SERVER, *tid));
            events.push(exit(answered_ns, 0, SERVER, WRITE, 1));
            let cpu = 1 + at as u32;
            events.extend([switch(answered_ns + 3, cpu, 0, *tid), exit(answered_ns + 4, cpu, *tid, READ, 1)]);
            ends[at].push(answered_ns + 5);
            at_ns = answered_ns;
        }
        events.extend([call(at_ns + 1, 0, SERVER, WAIT, EVENT_LOOP), switch(at_ns + 2, 0, SERVER, 0)]);
        now_ns = at_ns + 10;
    }
    let iterations: Vec<_> =
        tids.iter().zip(&ends).map(|(tid, ends)| (*tid, 1000, ends[ends.len() - 1])).collect();
    let mut trace = trace(&iterations, events);
    for (client, ends) in trace.clients.iter_mut().zip(ends) {
        client.iteration_ends_ns = ends;
    }
    (trace, waits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn requests_wait_for_those_before_them_as_long_as_these_take(
        service_ns in proptest::collection::vec(10..20_000u64, 2..6),
        rounds in 1..6u64,
    ) {
        let clients = service_ns.len() as u32;
        let (trace, waits) = one_after_the_other(clients, rounds, &service_ns);
        let paths = critical_paths(&trace);
        prop_assert_eq!(paths.len(), service_ns.len() * rounds as usize);
        let waits: Vec<u64> = waits.concat();
        for (path, wait_ns) in paths.iter().zip(waits) {
            adds_up(path);
            prop_assert!(path.is_followed);
            prop_assert_eq!(ns_of(path, Kind::OtherRequests), wait_ns, "{:?}", path);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn segments_of_each_client_add_up_to_the_iteration_whatever_was_recorded(
        mut events in proptest::collection::vec(any_event(), 0..80),
        ends in proptest::collection::vec(proptest::collection::vec(0..320u64, 0..6), 2),
        from_ns in 0..200u64,
        sorted in any::<bool>(),
        inputs in proptest::collection::vec(proptest::option::of(0..6u32), 2),
        event_loop in 0..6u32,
        sets in proptest::sample::subsequence(EventSet::ALL.to_vec(), 0..=6),
    ) {
        if sorted {
            events.sort_by_key(|event| event.at_ns);
        }
        let client = |((tid, ends), input): ((u32, &Vec<u64>), &Option<u32>)| TracedClient {
            tid,
            served_on: input.map(|input| ServedOn { input, event_loop }),
            from_ns,
            iteration_ends_ns: ends.clone(),
        };
        let trace = CpuTrace {
            sets,
            client_tids: vec![1, 2],
            server_tids: vec![3],
            clients: (1..).zip(&ends).zip(&inputs).map(client).collect(),
            from_ns,
            iteration_ends_ns: ends.concat(),
            events,
            ..CpuTrace::default()
        };
        let paths = critical_paths(&trace);
        prop_assert_eq!(paths.len(), ends.concat().len());
        paths.iter().for_each(adds_up);
    }
}
