//! A program that writes a message in two parts over TCP and does not switch Nagle's algorithm off.

use super::{Place, may, player, read};
use crate::common::run;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const HEAD_BYTES: usize = 4;
const BODY_BYTES: usize = 100;
const ANSWER_BYTES: usize = 4;
/// The first acknowledgements of a connection are not delayed.
const EXCHANGES: usize = 60;

/// Asks a child whose requests have two parts, and are to be sent at once or not.
pub(super) fn answer_parts(is_at_once: bool) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let role = if is_at_once { "asks-in-parts-at-once" } else { "asks-in-parts" };
    let address = listener.local_addr().unwrap().to_string();
    let mut child = player(role).env(super::PEER, address).spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = [0; HEAD_BYTES + BODY_BYTES];
    while stream.read_exact(&mut request).is_ok() {
        stream.write_all(&[1; ANSWER_BYTES]).unwrap();
    }
    assert!(child.wait().unwrap().success());
}

pub(super) fn ask_in_parts(address: &str, is_at_once: bool) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(is_at_once).unwrap();
    for _ in 0..EXCHANGES {
        stream.write_all(&[1; HEAD_BYTES]).unwrap();
        stream.write_all(&[1; BODY_BYTES]).unwrap();
        stream.read_exact(&mut [0; ANSWER_BYTES]).unwrap();
    }
}

#[test]
fn what_waits_for_an_acknowledgement_is_said_and_not_predicted_through() {
    // By the other ways it is not known what a connection is that a process with several threads has.
    if !may("bpf") {
        return;
    }
    for (role, waits) in [("parts", true), ("parts-at-once", false)] {
        let place = Place::new();
        let player = player(role);
        let mut command =
            place.ipcmark(["record", "--time", "60s", "--by", "bpf", "-o", "scenario.toml", "--"]);
        command.arg(player.get_program()).args(player.get_args());
        command.envs(player.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let said = run(&mut command).expect(0);
        assert_eq!(said.out.contains("TCP_NODELAY"), waits, "{said}");
        if waits {
            let scenario = read(&place);
            let held = scenario.flows.iter().find(|flow| flow.recorded.as_ref().unwrap().held_back.is_some());
            let flow = held.unwrap_or_else(|| panic!("{scenario:#?}")).name.as_str();
            let set = format!("{flow}=unix-stream");
            let refused = run(&mut place.ipcmark(["predict", "scenario.toml", "--set", &set])).expect(2);
            for word in [flow, "Nagle", "TCP_NODELAY"] {
                assert!(refused.err.contains(word), "{word}: {refused}");
            }
        }
    }
}
