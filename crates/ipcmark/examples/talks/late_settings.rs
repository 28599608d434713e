//! A program that sets something of a pipe or a socket after it has used it.

use crate::exchange::{BUFFER_BYTES, CAPACITY_BYTES, REQUESTS};
use crate::player;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::pipe::fcntl_setpipe_size;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

/// Sends `receiver` messages through a pipe, of which the capacity is set after the first.
pub(crate) fn set_capacity(mut receiver: Child) {
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
pub(crate) fn receiver() -> Child {
    player("takes-all").stdin(Stdio::piped()).spawn().unwrap()
}

pub(crate) fn take_all() {
    std::io::stdin().lock().read_to_end(&mut Vec::new()).unwrap();
}

/// Asks through a stream of which the buffer is set after the first answer.
pub(crate) fn set_buffer(mut stream: UnixStream, ask: fn(&mut UnixStream)) {
    ask(&mut stream);
    set_socket_send_buffer_size(&stream, BUFFER_BYTES).unwrap();
    (1..REQUESTS).for_each(|_| ask(&mut stream));
}
