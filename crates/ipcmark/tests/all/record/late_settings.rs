//! What a program sets after it has made a pipe or a socket is recorded as what is there from the beginning.

use super::{REQUESTS, WAYS, flow_of, may, player, recorded};
use model::units::Size;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::pipe::fcntl_setpipe_size;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

const CAPACITY_BYTES: usize = 8192;
const BUFFER_BYTES: usize = 50_000;

/// Sends `receiver` messages through a pipe, of which the capacity is set after the first.
pub(super) fn set_capacity(mut receiver: Child) {
    let mut pipe = receiver.stdin.take().unwrap();
    for sent in 0..REQUESTS {
        pipe.write_all(b"x").unwrap();
        if sent == 0 {
            fcntl_setpipe_size(&pipe, CAPACITY_BYTES).unwrap();
        }
    }
    drop(pipe);
    assert!(receiver.wait().unwrap().success());
}

/// A child that takes all that comes.
pub(super) fn receiver() -> Child {
    player("takes-all").stdin(Stdio::piped()).spawn().unwrap()
}

pub(super) fn take_all() {
    std::io::stdin().lock().read_to_end(&mut Vec::new()).unwrap();
}

/// Asks through a stream of which the buffer is set after the first answer.
pub(super) fn set_buffer(mut stream: UnixStream, ask: fn(&mut UnixStream)) {
    ask(&mut stream);
    set_socket_send_buffer_size(&stream, BUFFER_BYTES).unwrap();
    (1..REQUESTS).for_each(|_| ask(&mut stream));
}

#[test]
fn a_capacity_that_is_set_late_is_recorded_by_every_way() {
    for way in WAYS.into_iter().filter(|way| may(way)) {
        let (_place, scenario) = recorded(way, &player("sets-capacity"), "none");
        let expected = format!("pipe:capacity={}", Size(CAPACITY_BYTES as u64));
        // What the players write themselves may be a flow too.
        let mut specs = scenario.flows.iter().map(|flow| flow.mechanism.to_string());
        assert!(specs.any(|spec| spec == expected), "{way}: {scenario:#?}");
    }
}

#[test]
fn a_buffer_that_is_set_late_is_recorded_where_it_can_be() {
    for way in WAYS.into_iter().filter(|way| may(way)) {
        let flow = flow_of(way, &player("sets-buffer"), "unix-stream");
        let expected = match way {
            "bpf" => format!("unix-stream:sndbuf={BUFFER_BYTES}"),
            // How much is set lies in the program's memory; by ptrace it is asked for of a process with one thread.
            _ => "unix-stream".to_owned(),
        };
        assert_eq!(flow.mechanism.to_string(), expected, "{way}");
    }
}
