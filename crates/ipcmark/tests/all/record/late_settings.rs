//! What a program sets after it has made a pipe or a socket is recorded as what is there from the beginning.

use super::exchange::{BUFFER_BYTES, CAPACITY_BYTES};
use super::{WAYS, flow_of, may, player, recorded};
use model::units::Size;

#[test]
fn a_capacity_that_is_set_late_is_recorded_by_every_way() {
    for way in WAYS.into_iter().filter(|way| may(way)) {
        let (_place, scenario) = recorded(way, &player("sets-capacity"), "none");
        let expected = format!("pipe:capacity={}", Size(CAPACITY_BYTES as u64));
        // What the players write themselves may be a flow too; by ptrace the poll(2) that every program of Rust begins with is taken for a wait.
        let mut specs = scenario.flows.iter().map(|flow| flow.mechanism.to_string());
        assert!(specs.any(|spec| spec.trim_end_matches(",wait=epoll") == expected), "{way}: {scenario:#?}");
    }
}

#[test]
fn a_buffer_that_is_set_late_is_recorded_where_it_can_be() {
    for way in WAYS.into_iter().filter(|way| may(way)) {
        let flow = flow_of(way, &player("sets-buffer"), "unix-stream");
        let expected = match way {
            // How much is set lies in the program's memory.
            "tracepoints" => "unix-stream".to_owned(),
            _ => format!("unix-stream:sndbuf={BUFFER_BYTES}"),
        };
        assert_eq!(flow.mechanism.to_string(), expected, "{way}");
    }
}
