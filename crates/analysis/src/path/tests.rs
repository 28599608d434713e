//! Paths of traces made by hand, and of nonsense.

use super::segment::SegmentKind as Kind;
use super::*;
use model::endpoint::EndpointRole::{Client, Server};
use model::observation::{CpuEvent, CpuEventKind, CpuTrace, EventSet};
use proptest::prelude::*;

const READ: u32 = 0;
const WRITE: u32 = 1;
const CLIENT: u32 = 10;
const SERVER: u32 = 20;

pub(super) fn event(at_ns: u64, cpu: u32, tid: u32, what: CpuEventKind) -> CpuEvent {
    CpuEvent { at_ns, cpu, tid, what }
}

pub(super) fn enter(at_ns: u64, cpu: u32, tid: u32, number: u32) -> CpuEvent {
    event(at_ns, cpu, tid, CpuEventKind::Enter { number, first: 3 })
}

pub(super) fn exit(at_ns: u64, cpu: u32, tid: u32, number: u32, value: i64) -> CpuEvent {
    event(at_ns, cpu, tid, CpuEventKind::Exit { number, value })
}

pub(super) fn wakes(at_ns: u64, cpu: u32, tid: u32, woken: u32) -> CpuEvent {
    event(at_ns, cpu, tid, CpuEventKind::Waking { woken, by_interrupt: false })
}

pub(super) fn switch(at_ns: u64, cpu: u32, from: u32, to: u32) -> CpuEvent {
    event(at_ns, cpu, from, CpuEventKind::Switch { from, to: Some(to), preempted: false })
}

fn preempted(at_ns: u64, cpu: u32, from: u32, to: u32) -> CpuEvent {
    event(at_ns, cpu, from, CpuEventKind::Switch { from, to: Some(to), preempted: true })
}

/// A trace of one iteration from 1000 to `until_ns`.
pub(super) fn trace(until_ns: u64, sets: &[EventSet], mut events: Vec<CpuEvent>) -> CpuTrace {
    events.sort_by_key(|event| event.at_ns);
    CpuTrace {
        sets: sets.to_vec(),
        client_tids: vec![CLIENT],
        server_tids: vec![SERVER],
        from_ns: 1000,
        iteration_ends_ns: vec![until_ns],
        events,
        ..CpuTrace::default()
    }
}

/// The path of the only iteration, as whose, what and how long.
fn path(trace: &CpuTrace) -> Vec<(model::endpoint::EndpointRole, Kind, u64)> {
    let paths = critical_paths(trace);
    adds_up(&paths[0]);
    paths[0].segments.iter().map(|segment| (segment.place.of, segment.place.kind, segment.ns())).collect()
}

/// The segments of `path` fill it, one after the other.
pub(super) fn adds_up(path: &CriticalPath) {
    let mut at_ns = path.from_ns;
    for segment in &path.segments {
        assert_eq!(segment.from_ns, at_ns, "{path:?}");
        assert!(segment.until_ns > at_ns, "{path:?}");
        at_ns = segment.until_ns;
    }
    assert_eq!(at_ns, path.until_ns, "{path:?}");
    assert_eq!(path.segments.iter().map(Segment::ns).sum::<u64>(), path.ns());
}

/// A round trip through a pipe on one CPU.
pub(super) fn on_one_cpu() -> Vec<CpuEvent> {
    vec![
        enter(1100, 0, CLIENT, WRITE),
        wakes(1300, 0, CLIENT, SERVER),
        exit(1500, 0, CLIENT, WRITE, 1),
        enter(1550, 0, CLIENT, READ),
        switch(1800, 0, CLIENT, SERVER),
        exit(2000, 0, SERVER, READ, 1),
        enter(2100, 0, SERVER, WRITE),
        wakes(2350, 0, SERVER, CLIENT),
        exit(2500, 0, SERVER, WRITE, 1),
        enter(2550, 0, SERVER, READ),
        switch(2800, 0, SERVER, CLIENT),
        exit(3000, 0, CLIENT, READ, 1),
    ]
}

#[test]
fn on_one_cpu_the_path_is_all_that_the_cpu_does() {
    let trace = trace(3050, EventSet::ALL, on_one_cpu());
    assert_eq!(
        path(&trace),
        [
            (Client, Kind::User, 100),
            (Client, Kind::UntilWaking, 200),
            (Client, Kind::AfterWaking, 200),
            (Client, Kind::User, 50),
            (Client, Kind::UntilSleep, 250),
            (Server, Kind::AfterSleep, 200),
            (Server, Kind::User, 100),
            (Server, Kind::UntilWaking, 250),
            (Server, Kind::AfterWaking, 150),
            (Server, Kind::User, 50),
            (Server, Kind::UntilSleep, 250),
            (Client, Kind::AfterSleep, 200),
            (Client, Kind::User, 50),
        ]
    );
    // Each event costs where it begins something: all twelve lie on the path.
    let paths = critical_paths(&trace);
    let events: u64 = paths[0].segments.iter().flat_map(|segment| segment.events).sum();
    assert_eq!(events, 12);
    let calls = paths[0].segments.iter().filter_map(|segment| segment.place.call).collect::<Vec<_>>();
    assert_eq!(calls, [WRITE, WRITE, READ, READ, WRITE, WRITE, READ, READ]);
}

/// The same on two, of which each idles while the other works.
fn on_two_cpus() -> Vec<CpuEvent> {
    vec![
        enter(1100, 0, CLIENT, WRITE),
        wakes(1400, 0, CLIENT, SERVER),
        exit(1600, 0, CLIENT, WRITE, 1),
        enter(1650, 0, CLIENT, READ),
        switch(1900, 0, CLIENT, 0),
        event(2000, 0, 0, CpuEventKind::IdleIn),
        event(3400, 1, 0, CpuEventKind::IdleOut),
        switch(3900, 1, 0, SERVER),
        exit(4100, 1, SERVER, READ, 1),
        enter(4200, 1, SERVER, WRITE),
        wakes(4450, 1, SERVER, CLIENT),
        exit(4700, 1, SERVER, WRITE, 1),
        enter(4750, 1, SERVER, READ),
        switch(5000, 1, SERVER, 0),
        event(6500, 0, 0, CpuEventKind::IdleOut),
        switch(7000, 0, 0, CLIENT),
        exit(7200, 0, CLIENT, READ, 1),
    ]
}

#[test]
fn on_two_cpus_what_the_waker_does_after_it_woke_the_peer_is_off_the_path() {
    let trace = trace(7250, EventSet::ALL, on_two_cpus());
    assert_eq!(
        path(&trace),
        [
            (Client, Kind::User, 100),
            (Client, Kind::UntilWaking, 300),
            (Server, Kind::IdleExit, 2000),
            (Server, Kind::IdleToSwitch, 500),
            (Server, Kind::AfterSleep, 200),
            (Server, Kind::User, 100),
            (Server, Kind::UntilWaking, 250),
            (Client, Kind::IdleExit, 2050),
            (Client, Kind::IdleToSwitch, 500),
            (Client, Kind::AfterSleep, 200),
            (Client, Kind::User, 50),
        ]
    );
    // Recording the waking delays the woken.
    let paths = critical_paths(&trace);
    let wake_ups = EventSet::ALL.iter().position(|set| *set == EventSet::WakeUps).unwrap();
    let events_in =
        |kind| paths[0].segments.iter().find(|segment| segment.place.kind == kind).unwrap().events;
    assert_eq!(events_in(Kind::IdleExit)[wake_ups], 1);
}

#[test]
fn other_tasks_and_interrupts_have_names_of_their_own() {
    let mut events = on_two_cpus();
    // The client's CPU is given to another task when the server wakes the client.
    events.retain(|event| event.cpu != 0 || event.at_ns < 6000);
    events.extend([
        event(4000, 0, 0, CpuEventKind::IdleOut),
        switch(4300, 0, 0, 99),
        event(5500, 0, 99, CpuEventKind::InterruptIn),
        event(5600, 0, 99, CpuEventKind::InterruptOut),
        preempted(6600, 0, 99, CLIENT),
        event(6700, 0, CLIENT, CpuEventKind::InterruptIn),
        event(6750, 0, CLIENT, CpuEventKind::SoftirqIn { vector: 1 }),
        event(6850, 0, CLIENT, CpuEventKind::SoftirqOut),
        event(6900, 0, CLIENT, CpuEventKind::InterruptOut),
        event(6950, 0, CLIENT, CpuEventKind::PageFault { address: 1 }),
        exit(7200, 0, CLIENT, READ, 1),
    ]);
    let trace = trace(7250, EventSet::ALL, events);
    assert_eq!(
        path(&trace)[7..],
        [
            (Client, Kind::OtherTask, 5500 - 4450),
            (Client, Kind::Interrupt, 100),
            (Client, Kind::OtherTask, 1000),
            (Client, Kind::AfterSleep, 100),
            (Client, Kind::Interrupt, 50),
            (Client, Kind::Softirq { vector: 1 }, 100),
            (Client, Kind::Interrupt, 50),
            (Client, Kind::AfterSleep, 50),
            (Client, Kind::PageFault, 250),
            (Client, Kind::User, 50),
        ]
    );
    assert_eq!(critical_paths(&trace)[0].segments[7].task, Some(99));
}

#[test]
fn who_is_preempted_waits_for_who_has_its_cpu() {
    let mut events = on_one_cpu();
    events.retain(|event| event.at_ns != 2100);
    events.extend([
        preempted(2040, 0, SERVER, 99),
        switch(2080, 0, 99, SERVER),
        enter(2100, 0, SERVER, WRITE),
    ]);
    let path = path(&trace(3050, EventSet::ALL, events));
    assert_eq!(
        path[6..9],
        [(Server, Kind::User, 40), (Server, Kind::OtherTask, 40), (Server, Kind::User, 20)]
    );
}

#[test]
fn a_sleep_that_a_timer_ends_is_no_wake_up() {
    let timer = CpuEventKind::Waking { woken: CLIENT, by_interrupt: true };
    let events = vec![
        enter(1100, 0, CLIENT, 35),
        switch(1200, 0, CLIENT, 0),
        event(1900, 0, 0, CpuEventKind::InterruptIn),
        event(2000, 0, 0, timer),
        event(2050, 0, 0, CpuEventKind::InterruptOut),
        event(2100, 0, 0, CpuEventKind::IdleOut),
        switch(2150, 0, 0, CLIENT),
        exit(2250, 0, CLIENT, 35, 0),
    ];
    assert_eq!(
        path(&trace(2300, EventSet::ALL, events)),
        [
            (Client, Kind::User, 100),
            (Client, Kind::UntilSleep, 100),
            (Client, Kind::Asleep, 800),
            (Client, Kind::Interrupt, 50),
            (Client, Kind::IdleExit, 50),
            (Client, Kind::IdleToSwitch, 50),
            (Client, Kind::AfterSleep, 100),
            (Client, Kind::User, 50),
        ]
    );
}

#[test]
fn a_helper_that_an_endpoint_woke_stands_between_both() {
    const HELPER: u32 = 30;
    let mut events = on_one_cpu();
    events.retain(|event| event.at_ns != 1300 && event.at_ns != 1800);
    events.extend([
        wakes(1300, 0, CLIENT, HELPER),
        switch(1800, 0, CLIENT, HELPER),
        wakes(1850, 0, HELPER, SERVER),
        switch(1900, 0, HELPER, SERVER),
    ]);
    let path = path(&trace(3050, EventSet::ALL, events));
    assert_eq!(path[0], (Client, Kind::User, 100));
    assert!(path.contains(&(Server, Kind::OtherTask, 550)), "{path:?}");
}

#[test]
fn endpoints_that_poll_take_the_path_when_they_do_more() {
    let events = vec![
        enter(1100, 0, CLIENT, WRITE),
        exit(1300, 0, CLIENT, WRITE, 1),
        enter(1350, 0, CLIENT, READ),
        exit(1450, 0, CLIENT, READ, -11),
        enter(1650, 0, CLIENT, READ),
        exit(1750, 0, CLIENT, READ, -11),
        enter(2000, 0, CLIENT, READ),
        exit(2100, 0, CLIENT, READ, 1),
        enter(1150, 1, SERVER, READ),
        exit(1250, 1, SERVER, READ, -11),
        enter(1300, 1, SERVER, READ),
        exit(1400, 1, SERVER, READ, 1),
        enter(1500, 1, SERVER, WRITE),
        exit(1800, 1, SERVER, WRITE, 1),
        enter(1850, 1, SERVER, READ),
        exit(1950, 1, SERVER, READ, -11),
    ];
    assert_eq!(
        path(&trace(2150, EventSet::ALL, events)),
        [
            (Client, Kind::User, 100),
            (Client, Kind::WholeCall, 200),
            (Server, Kind::WholeCall, 100),
            (Server, Kind::User, 100),
            (Server, Kind::WholeCall, 300),
            (Client, Kind::Polling, 200),
            (Client, Kind::WholeCall, 100),
            (Client, Kind::User, 50),
        ]
    );
}

#[test]
fn ones_own_switches_alone_give_a_path_of_fewer_segments() {
    let off =
        |at_ns, tid| event(at_ns, 0, tid, CpuEventKind::Switch { from: tid, to: None, preempted: false });
    let on = |at_ns, tid| event(at_ns, 0, tid, CpuEventKind::On);
    let events = vec![off(1800, CLIENT), on(1900, SERVER), off(2800, SERVER), on(2900, CLIENT)];
    assert_eq!(
        path(&trace(3050, &[EventSet::Switches], events)),
        [
            (Client, Kind::Running, 800),
            (Server, Kind::WakeUp, 100),
            (Server, Kind::Running, 900),
            (Client, Kind::WakeUp, 100),
            (Client, Kind::Running, 150),
        ]
    );
}

#[test]
fn an_operation_has_a_path_of_its_own() {
    let mut trace =
        trace(1500, EventSet::ALL, vec![enter(1100, 0, CLIENT, 39), exit(1300, 0, CLIENT, 39, 7)]);
    trace.server_tids.clear();
    assert_eq!(
        path(&trace),
        [(Client, Kind::User, 100), (Client, Kind::WholeCall, 200), (Client, Kind::User, 200)]
    );
    trace.events.clear();
    assert_eq!(path(&trace), [(Client, Kind::NotRecorded, 500)]);
}

/// Any event at all.
pub(super) fn any_event() -> impl Strategy<Value = CpuEvent> {
    let what = prop_oneof![
        (0..4u32, 0..6u64).prop_map(|(number, first)| CpuEventKind::Enter { number, first }),
        (0..4u32, prop_oneof![Just(-11i64), Just(1)])
            .prop_map(|(number, value)| CpuEventKind::Exit { number, value }),
        (0..6u32, proptest::option::of(0..6u32), any::<bool>())
            .prop_map(|(from, to, preempted)| CpuEventKind::Switch { from, to, preempted }),
        Just(CpuEventKind::On),
        (0..6u32, any::<bool>())
            .prop_map(|(woken, by_interrupt)| CpuEventKind::Waking { woken, by_interrupt }),
        Just(CpuEventKind::InterruptIn),
        Just(CpuEventKind::InterruptOut),
        (0..10u32).prop_map(|vector| CpuEventKind::SoftirqIn { vector }),
        Just(CpuEventKind::SoftirqOut),
        Just(CpuEventKind::IdleIn),
        Just(CpuEventKind::IdleOut),
        Just(CpuEventKind::PageFault { address: 1 }),
    ];
    (0..300u64, 0..3u32, 0..6u32, what).prop_map(|(at_ns, cpu, tid, what)| event(at_ns, cpu, tid, what))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn segments_add_up_to_the_iteration_whatever_was_recorded(
        mut events in proptest::collection::vec(any_event(), 0..80),
        ends in proptest::collection::vec(0..320u64, 0..8),
        from_ns in 0..200u64,
        sorted in any::<bool>(),
        sets in proptest::sample::subsequence(EventSet::ALL.to_vec(), 0..=6),
    ) {
        if sorted {
            events.sort_by_key(|event| event.at_ns);
        }
        let trace = CpuTrace {
            sets,
            client_tids: vec![1, 2],
            server_tids: vec![3],
            from_ns,
            iteration_ends_ns: ends.clone(),
            events,
            ..CpuTrace::default()
        };
        let paths = critical_paths(&trace);
        prop_assert_eq!(paths.len(), ends.len());
        paths.iter().for_each(adds_up);
    }
}
