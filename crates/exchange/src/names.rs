//! getsockname(2), getpeername(2) and shutdown(2) of a socket that is exchanged: the addresses that it would have over TCP, and what its
//! peer is told that it would not be.

use crate::address::write;
use crate::answering::{Answering, Asked, Reply};
use crate::caller::CallersSocket;
use std::net::SocketAddr;
use sys::Errno;

/// getsockname(2); `None` where the socket is not exchanged.
pub(crate) fn own(at: &Answering, asked: &Asked<'_>, socket: &CallersSocket) -> Option<Reply> {
    let mut table = at.sockets.table();
    if let Some(listener) = table.listener(socket.inode) {
        return Some(tell(asked, listener.address));
    }
    table.end(socket.inode).map(|end| tell(asked, end.seen(end.local)))
}

/// getpeername(2); `None` where the socket is not exchanged.
pub(crate) fn peer(at: &Answering, asked: &Asked<'_>, socket: &CallersSocket) -> Option<Reply> {
    let mut table = at.sockets.table();
    if table.listener(socket.inode).is_some() {
        return Some(Reply::Error(Errno::NOTCONN));
    }
    table.end(socket.inode).map(|end| tell(asked, end.seen(end.peer)))
}

/// shutdown(2), which the kernel does.
pub(crate) fn shutdown(at: &Answering, asked: &Asked<'_>, socket: &CallersSocket) -> Option<Reply> {
    let mut table = at.sockets.table();
    if asked.call.arguments[1] as i32 == libc::SHUT_RD && table.end(socket.inode).is_some() {
        table.observed.cannot_keep("the peer of shutdown(SHUT_RD) cannot send any more");
    }
    None
}

fn tell(asked: &Asked<'_>, address: SocketAddr) -> Reply {
    let [_, at, length_at, ..] = asked.call.arguments;
    let written = asked.caller.write_address(at, length_at, &write(address));
    written.map_or_else(Reply::Error, |()| Reply::Value(0))
}
