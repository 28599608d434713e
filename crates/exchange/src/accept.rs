//! accept(2) and accept4(2) on a Unix socket that listens in the place of one of TCP: the address that comes back is the client's over TCP.

use crate::address::{as_of, write};
use crate::answering::{Answering, Asked, Reply, WaitingAccept};
use crate::caller::{Caller, CallersSocket, inode_of};
use crate::exchange::{ProgramExchange, Source};
use crate::listen::source_of_unix;
use crate::options::{accepted_from, carry_over};
use crate::sockets::{Addresses, ConnectionEnd, Table};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, accept_with, getpeername, sockopt};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::net::{Ipv4Addr, SocketAddr};
use sys::Errno;

/// accept4(2) with these `flags`.
pub(crate) fn accept(at: &Answering, asked: &Asked<'_>, socket: CallersSocket, flags: u64) -> Reply {
    let flags = SocketFlags::from_bits_retain(flags as u32);
    let known = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let mut table = at.sockets.table();
    let is_exchanged = table.listener(socket.inode).is_some();
    let of_unix = at.sockets.exchanges.for_source(&Source::UnixStream);
    let is_unix = !is_exchanged && of_unix.is_some() && source_of_unix(&socket) == Source::UnixStream;
    if !(is_exchanged || is_unix) {
        return Reply::Kernel;
    }
    if !known.contains(flags) {
        return Reply::Error(Errno::INVAL);
    }
    let timer = timer_of(&socket);
    let waiting = WaitingAccept { call: asked.call, socket, flags, timer };
    take(at, asked, waiting, &mut table)
}

/// Tries again.
pub(crate) fn retry(at: &Answering, waiting: WaitingAccept) -> Reply {
    let Ok(caller) = Caller::open(waiting.call.thread) else { return Reply::Answered };
    let asked = Asked { call: waiting.call, caller: &caller };
    let mut table = at.sockets.table();
    take(at, &asked, waiting, &mut table)
}

fn take(at: &Answering, asked: &Asked<'_>, waiting: WaitingAccept, table: &mut Table) -> Reply {
    let is_exchanged = table.listener(waiting.socket.inode).is_some();
    let taken = match next(table, &waiting) {
        Ok(Some(taken)) => taken,
        Ok(None) if waiting.socket.is_non_blocking() || is_over(&waiting) => {
            return Reply::Error(Errno::AGAIN);
        }
        Ok(None) => return Reply::Accept(waiting),
        Err(errno) => return Reply::Error(errno),
    };
    match is_exchanged {
        true => give_exchanged(at, asked, &waiting, taken, table),
        false => give_unix(at, asked, &waiting, &taken.0),
    }
}

/// The next connection, with its addresses if it would be one of TCP; `None` where there is none yet.
fn next(table: &mut Table, waiting: &WaitingAccept) -> Result<Option<(OwnedFd, Option<Addresses>)>, Errno> {
    let mut listener = table.listener(waiting.socket.inode);
    if let Some((connection, addresses)) =
        listener.as_mut().and_then(|listener| listener.returned.pop_front())
    {
        return Ok(Some((connection, Some(addresses))));
    }
    // The file may be one whose calls wait, and this process must not.
    if !is_readable(&waiting.socket.file) {
        return Ok(None);
    }
    let connection = accept_with(&waiting.socket.file, waiting.flags | SocketFlags::CLOEXEC)?;
    let addresses = listener.and_then(|listener| listener.waiting.pop_front());
    Ok(Some((connection, addresses)))
}

/// A timer that ends when the time is over for which calls on `socket` wait.
fn timer_of(socket: &CallersSocket) -> Option<OwnedFd> {
    let limit = sockopt::socket_timeout(&socket.file, sockopt::Timeout::Recv).ok()??;
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).ok()?;
    let it_value = Timespec::try_from(limit).ok()?;
    let once = Itimerspec { it_interval: Timespec::default(), it_value };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once).ok()?;
    Some(timer)
}

fn is_over(waiting: &WaitingAccept) -> bool {
    waiting.timer.as_ref().is_some_and(is_readable)
}

fn is_readable(file: &OwnedFd) -> bool {
    let now = Timespec::default();
    poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

fn give_exchanged(
    at: &Answering,
    asked: &Asked<'_>,
    waiting: &WaitingAccept,
    (connection, addresses): (OwnedFd, Option<Addresses>),
    table: &mut Table,
) -> Reply {
    let Some(listener) = table.listener(waiting.socket.inode) else { return Reply::Error(Errno::INVAL) };
    let nowhere = || SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let addresses = addresses.unwrap_or_else(|| Addresses { client: nowhere(), server: listener.address });
    let (family, port) = (listener.family, listener.address.port());
    let bytes = write(as_of(family, addresses.client));
    let tcp = match accepted_from(&listener.tcp, family) {
        Ok(tcp) => tcp,
        Err(errno) => return Reply::Error(errno),
    };
    if let Err(errno) = tell(asked, &bytes) {
        return Reply::Error(errno);
    }
    carry_over(&tcp, &connection);
    apply(at.sockets.exchanges.of_tcp(port), &connection);
    let inode = match inode_of(&connection) {
        Ok(inode) => inode,
        Err(errno) => return Reply::Error(errno),
    };
    let end = ConnectionEnd {
        local: addresses.server,
        peer: addresses.client,
        family,
        tcp,
        is_under_way: false,
        is_accepted: true,
    };
    let closes = waiting.flags.contains(SocketFlags::CLOEXEC);
    match at.listener.give_and_answer(asked.call.id, connection.as_fd(), closes) {
        Ok(_) => table.add_end(inode, end),
        // A signal came between: whoever accepts next gets it.
        Err(_) => {
            if let Some(listener) = table.listener(waiting.socket.inode) {
                listener.returned.push_back((connection, addresses));
            }
        }
    }
    Reply::Answered
}

/// Gives a connection of a Unix socket that the program made itself, with its settings.
fn give_unix(at: &Answering, asked: &Asked<'_>, waiting: &WaitingAccept, connection: &OwnedFd) -> Reply {
    let name = getpeername(connection).ok().flatten().and_then(|name| SocketAddrUnix::try_from(name).ok());
    if let Err(errno) = tell(asked, &unix_bytes(name.as_ref())) {
        return Reply::Error(errno);
    }
    apply(at.sockets.exchanges.for_source(&Source::UnixStream), connection);
    let closes = waiting.flags.contains(SocketFlags::CLOEXEC);
    // Where a signal came between, the connection is closed, as where who accepted it ends at once.
    let _ = at.listener.give_and_answer(asked.call.id, connection.as_fd(), closes);
    Reply::Answered
}

fn apply(exchange: Option<&ProgramExchange>, connection: &OwnedFd) {
    if let Some(exchange) = exchange {
        exchange.apply(connection);
    }
}

/// Tells the caller who has connected, if it wants to know.
fn tell(asked: &Asked<'_>, bytes: &[u8]) -> Result<(), Errno> {
    let [_, at, length_at, ..] = asked.call.arguments;
    if at == 0 { Ok(()) } else { asked.caller.write_address(at, length_at, bytes) }
}

/// The bytes of a `sockaddr_un` (unix(7)): its family alone where it has no name.
fn unix_bytes(name: Option<&SocketAddrUnix>) -> Vec<u8> {
    let mut bytes = AddressFamily::UNIX.as_raw().to_ne_bytes().to_vec();
    if let Some(path) = name.and_then(SocketAddrUnix::path) {
        bytes.extend(path.to_bytes_with_nul());
    } else if let Some(name) = name.and_then(SocketAddrUnix::abstract_name).filter(|name| !name.is_empty()) {
        bytes.push(0);
        bytes.extend(name);
    }
    bytes
}
