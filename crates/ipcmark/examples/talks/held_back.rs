//! A client that writes a message in two parts over TCP, with Nagle's algorithm or without.

use crate::exchange::PEER;
use crate::player;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const HEAD_BYTES: usize = 4;
const BODY_BYTES: usize = 100;
const ANSWER_BYTES: usize = 4;
/// The first acknowledgements of a connection are not delayed.
const EXCHANGES: usize = 60;

/// Asks a child whose requests have two parts, and are to be sent at once or not.
pub(crate) fn answer_parts(is_at_once: bool) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let role = if is_at_once { "asks-in-parts-at-once" } else { "asks-in-parts" };
    let address = listener.local_addr().unwrap().to_string();
    let mut child = player(role).env(PEER, address).spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = [0; HEAD_BYTES + BODY_BYTES];
    while stream.read_exact(&mut request).is_ok() {
        stream.write_all(&[1; ANSWER_BYTES]).unwrap();
    }
    assert!(child.wait().unwrap().success());
}

pub(crate) fn ask_in_parts(address: &str, is_at_once: bool) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(is_at_once).unwrap();
    for _ in 0..EXCHANGES {
        stream.write_all(&[1; HEAD_BYTES]).unwrap();
        stream.write_all(&[1; BODY_BYTES]).unwrap();
        stream.read_exact(&mut [0; ANSWER_BYTES]).unwrap();
    }
}
