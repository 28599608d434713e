//! An observation made by hand for the tests of this crate: a timeline of a few iterations.

use model::observation::{EndpointEvent, EndpointObservation, EventKind, Observation};

/// Five round trips over a pipe, the last of which is slow, for the server loses its CPU and takes a page fault.
pub(crate) fn observation() -> Observation {
    const READ: u32 = 0;
    const WRITE: u32 = 1;
    let enter = |number| EventKind::Enter { number, first: 3, third: 64 };
    let exit = |number| EventKind::Exit { number, value: 64 };
    let wakes = |tid| EventKind::Wakes { tid, by_interrupt: false };
    let (sleeps, loses) = (EventKind::Off { preempted: false }, EventKind::Off { preempted: true });
    let (mut client, mut server) = (Vec::new(), Vec::new());
    let mut iteration_ends_ns = vec![1_000];
    server.extend([(200, enter(READ)), (400, sleeps)]);
    for iteration in 0..5 {
        let from_ns = iteration_ends_ns.last().copied().unwrap_or_default();
        let slow_ns = if iteration == 4 { 30_000 } else { 20 * iteration };
        let mut client_did = |at_ns, what| client.push((from_ns + at_ns, what));
        client_did(150, enter(WRITE));
        client_did(1_400, wakes(202));
        client_did(3_050, exit(WRITE));
        client_did(3_200, enter(READ));
        client_did(4_500, sleeps);
        client_did(12_100 + slow_ns, EventKind::On { cpu: 0 });
        client_did(13_900 + slow_ns, exit(READ));
        let mut server_did = |at_ns, what| server.push((from_ns + at_ns, what));
        server_did(4_000, EventKind::On { cpu: 1 });
        server_did(5_600, exit(READ));
        if slow_ns > 20_000 {
            server_did(5_900, EventKind::PageFault { address: 0x7f00_0000_1000, major: false, mapping: 0 });
            server_did(7_000, loses);
            server_did(34_000, EventKind::On { cpu: 1 });
        }
        server_did(6_400 + slow_ns, enter(WRITE));
        server_did(8_000 + slow_ns, wakes(201));
        server_did(9_300 + slow_ns, exit(WRITE));
        server_did(9_450 + slow_ns, enter(READ));
        server_did(10_700 + slow_ns, sleeps);
        iteration_ends_ns.push(from_ns + 14_200 + slow_ns);
    }
    let until_ns = iteration_ends_ns.last().copied().unwrap_or_default() + 100;
    let seen = |tid, events: Vec<(u64, EventKind)>| EndpointObservation {
        tid,
        from_ns: 0,
        until_ns,
        events: events.into_iter().map(|(at_ns, what)| EndpointEvent { at_ns, what }).collect(),
        mappings: vec!["[heap]".to_owned()],
        ..EndpointObservation::default()
    };
    let elapsed_ns = (until_ns - 1_100) as f64;
    Observation {
        iterations: 5,
        elapsed_ns,
        iteration_ends_ns,
        client: seen(201, client),
        server: Some(seen(202, server)),
    }
}

/// The name of a call in [`observation`].
pub(crate) fn call_name(number: u32) -> String {
    ["read", "write"].get(number as usize).map_or_else(|| number.to_string(), |name| (*name).to_owned())
}
