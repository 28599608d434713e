//! By ptrace, it is looked up what a process with one thread has while it is stopped.

use super::{REQUESTS, may, only_flow, recorded};
use crate::common::has;
use std::process::Command;

const BUFFER_BYTES: usize = 50_000;

/// A server, and a client that sets its buffer after the first answer.
const SCRIPT: &str = "
import os, socket, sys
count, buffer = int(sys.argv[1]), int(sys.argv[2])
listener = socket.create_server(('127.0.0.1', 0))
if os.fork():
    stream, _ = listener.accept()
    for _ in range(count):
        stream.recv(64)
        stream.send(b'y' * 128)
    os.wait()
else:
    stream = socket.create_connection(listener.getsockname())
    for done in range(count):
        stream.send(b'x' * 64)
        stream.recv(128)
        if done == 0:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
";

/// Slow: it records a program by each way.
#[test]
fn what_a_traced_process_with_one_thread_has_is_known() {
    if !may("ptrace") || !has("python3", "python3", "recording a program with one thread by ptrace") {
        return;
    }
    let mut program = Command::new("python3");
    program.args(["-c", SCRIPT, &REQUESTS.to_string(), &BUFFER_BYTES.to_string()]);
    let (_place, scenario) = recorded("ptrace", &program, "none");
    let flow = only_flow(&scenario, "tcp").unwrap_or_else(|| panic!("{scenario:#?}"));
    let spec = flow.mechanism.to_string();
    assert!(spec.contains("nodelay=off") && spec.contains(&format!("sndbuf={BUFFER_BYTES}")), "{spec}");
    assert_eq!(flow.recorded.as_ref().unwrap().messages, REQUESTS, "{flow:#?}");
}
