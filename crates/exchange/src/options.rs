//! Options of a socket that is exchanged (setsockopt(2), getsockopt(2)): the TCP socket that it replaced takes and gives them, so that each
//! answer is the kernel's own; those that act on how calls wait are made on the Unix socket too.

use crate::answering::{Answering, Asked, Reply};
use crate::caller::CallersSocket;
use crate::sockets::Table;
use libc::c_int;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, getpeername, getsockname, ipproto, socket_with};
use std::net::SocketAddr;
use sys::Errno;
use sys::socket_option::{get_bytes, locked_buffers, set_bytes};

/// No option that a program asks for is longer; the kernel gives as much as it has, as with any longer room.
const LONGEST_BYTES: usize = 4096;

/// Options that act on a Unix socket as they do on one of TCP: how long calls wait, for how much, and how much there is room for.
const OF_BOTH: &[c_int] = &[
    libc::SO_RCVTIMEO,
    libc::SO_SNDTIMEO,
    SO_RCVTIMEO_NEW,
    SO_SNDTIMEO_NEW,
    libc::SO_RCVLOWAT,
    libc::SO_SNDBUF,
    libc::SO_SNDBUFFORCE,
    libc::SO_LINGER,
];

/// `SO_RCVTIMEO_NEW` and `SO_SNDTIMEO_NEW` of asm-generic/socket.h, by which 32-bit programs with 64-bit times ask.
const SO_RCVTIMEO_NEW: c_int = 66;
const SO_SNDTIMEO_NEW: c_int = 67;

/// Options that a listener gives to what it accepts (tcp(7), socket(7)), and a socket takes along when another replaces it.
#[rustfmt::skip]
const INHERITED: &[(c_int, c_int)] = &[
    (libc::SOL_SOCKET, libc::SO_REUSEADDR),
    (libc::SOL_SOCKET, libc::SO_REUSEPORT),
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::SOL_SOCKET, libc::SO_LINGER),
    (libc::SOL_SOCKET, libc::SO_OOBINLINE),
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO),
    (libc::SOL_SOCKET, libc::SO_RCVLOWAT),
    (libc::SOL_SOCKET, libc::SO_PRIORITY),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    (libc::IPPROTO_TCP, libc::TCP_SYNCNT),
    (libc::IPPROTO_TCP, libc::TCP_LINGER2),
    (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    (libc::IPPROTO_TCP, libc::TCP_CONGESTION),
    (libc::IPPROTO_IP, libc::IP_TOS),
    (libc::IPPROTO_IP, libc::IP_TTL),
    (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
];

/// States of `tcp_info.tcpi_state` (net/tcp_states.h).
const TCP_ESTABLISHED: u8 = 1;
const TCP_LISTEN: u8 = 10;

/// Gives `new` the options of `old` that a listener gives to what it accepts. What `new` does not know, it goes without.
pub(crate) fn inherit(old: impl AsFd, new: impl AsFd) {
    for (level, option) in INHERITED {
        copy(old.as_fd(), new.as_fd(), *level, *option);
    }
    copy_buffers(old.as_fd(), new.as_fd());
}

/// Gives the Unix socket `new` the options of the TCP socket that it replaces, as far as they act on it.
pub(crate) fn carry_over(tcp: impl AsFd, new: impl AsFd) {
    for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO, libc::SO_RCVLOWAT] {
        copy(tcp.as_fd(), new.as_fd(), libc::SOL_SOCKET, option);
    }
    copy_buffers(tcp.as_fd(), new.as_fd());
}

/// Copies the sizes of the buffers that the program has set itself.
fn copy_buffers(old: BorrowedFd<'_>, new: BorrowedFd<'_>) {
    /// In what `SO_BUF_LOCK` gives.
    const BUFFERS: [(i32, c_int); 2] = [(1, libc::SO_SNDBUF), (2, libc::SO_RCVBUF)];
    let locked = locked_buffers(old).unwrap_or(0);
    for (_, option) in BUFFERS.into_iter().filter(|(bit, _)| locked & bit != 0) {
        let mut doubled = [0; 4];
        if get_bytes(old, libc::SOL_SOCKET, option, &mut doubled).is_ok() {
            let asked = c_int::from_ne_bytes(doubled) / 2;
            let _ = set_bytes(new, libc::SOL_SOCKET, option, &asked.to_ne_bytes());
        }
    }
}

fn copy(old: BorrowedFd<'_>, new: BorrowedFd<'_>, level: c_int, option: c_int) {
    let mut bytes = [0; 64];
    if let Ok(length) = get_bytes(old, level, option, &mut bytes) {
        if (level, option) == (libc::SOL_SOCKET, libc::SO_LINGER) {
            // The time is kept also where nobody lingers, and is set only while somebody does.
            let lingering = [&1_i32.to_ne_bytes(), &bytes[4..8]].concat();
            let _ = set_bytes(new, level, option, &lingering);
        }
        // What it does not know, it goes without.
        let _ = set_bytes(new, level, option, &bytes[..length]);
    }
}

/// A TCP socket, unconnected, as the listener `of` would have made it for a connection.
pub(crate) fn accepted_from(of: &OwnedFd, family: AddressFamily) -> Result<OwnedFd, Errno> {
    let new = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
    inherit(of, &new);
    Ok(new)
}

/// Whom an option is asked of: the TCP socket that is kept of an exchanged one, and whether it listens.
fn kept<'a>(table: &'a mut Table, inode: u64) -> Option<(BorrowedFd<'a>, bool)> {
    if table.listener(inode).is_some() {
        return table.listener(inode).map(|listener| (listener.tcp.as_fd(), true));
    }
    table.end(inode).map(|end| (end.tcp.as_fd(), false))
}

/// setsockopt(2); `None` where the kernel does it.
pub(crate) fn set(at: &Answering, asked: &Asked<'_>, socket: &CallersSocket) -> Option<Reply> {
    let [_, level, option, ..] = asked.call.arguments;
    let (level, option) = (level as c_int, option as c_int);
    let mut table = at.sockets.table();
    let Some((tcp, _)) = kept(&mut table, socket.inode) else {
        return set_of_tcp(at, asked, socket, &mut table);
    };
    let answer = set_both(asked, socket, tcp, level, option);
    note(&mut table, level, option);
    Some(answer.map_or_else(Reply::Error, |()| Reply::Value(0)))
}

/// Of a TCP socket that is as it was: an option that its exchange sets is set so again after the program has set it.
fn set_of_tcp(at: &Answering, asked: &Asked<'_>, socket: &CallersSocket, table: &mut Table) -> Option<Reply> {
    let [_, level, option, ..] = asked.call.arguments;
    let (level, option) = (level as c_int, option as c_int);
    if !socket.is_tcp() {
        return None;
    }
    let addresses = [getpeername(&socket.file).ok().flatten(), getsockname(&socket.file).ok()];
    let addresses = addresses.into_iter().flatten().filter_map(|address| SocketAddr::try_from(address).ok());
    let ports: Vec<u16> = addresses.map(|address| address.port()).collect();
    let ports = || ports.iter().copied();
    if (level, option) == (libc::IPPROTO_TCP, libc::TCP_NODELAY) {
        ports().for_each(|port| table.note_nodelay(port));
    }
    let exchange = ports()
        .filter_map(|port| at.sockets.exchanges.of_tcp(port))
        .find(|exchange| exchange.sets(level, option))?;
    let answer = program_bytes(asked).and_then(|bytes| set_bytes(&socket.file, level, option, &bytes));
    exchange.apply(&socket.file);
    Some(answer.map_or_else(Reply::Error, |()| Reply::Value(0)))
}

/// The value that the program sets an option to.
fn program_bytes(asked: &Asked<'_>) -> Result<Vec<u8>, Errno> {
    let [_, _, _, value_at, length, _] = asked.call.arguments;
    let length = usize::try_from(length as i32).map_err(|_| Errno::INVAL)?.min(LONGEST_BYTES);
    let mut bytes = vec![0; length];
    asked.caller.read(value_at, &mut bytes)?;
    Ok(bytes)
}

fn set_both(
    asked: &Asked<'_>,
    socket: &CallersSocket,
    tcp: BorrowedFd<'_>,
    level: c_int,
    option: c_int,
) -> Result<(), Errno> {
    let bytes = program_bytes(asked)?;
    // Completions of what is sent without a copy would be waited for in vain.
    if (level, option) == (libc::SOL_SOCKET, libc::SO_ZEROCOPY) {
        return Err(Errno::OPNOTSUPP);
    }
    set_bytes(tcp, level, option, &bytes)?;
    if level == libc::SOL_SOCKET && OF_BOTH.contains(&option) {
        set_bytes(&socket.file, level, option, &bytes)?;
    }
    Ok(())
}

/// getsockopt(2); `None` where the kernel does it.
pub(crate) fn get(at: &Answering, asked: &Asked<'_>, socket: &CallersSocket) -> Option<Reply> {
    let [_, level, option, ..] = asked.call.arguments;
    let (level, option) = (level as c_int, option as c_int);
    let mut table = at.sockets.table();
    let (tcp, listens) = kept(&mut table, socket.inode)?;
    let answer = get_from(asked, tcp, level, option, listens);
    note(&mut table, level, option);
    Some(answer.map_or_else(Reply::Error, |()| Reply::Value(0)))
}

fn get_from(
    asked: &Asked<'_>,
    tcp: BorrowedFd<'_>,
    level: c_int,
    option: c_int,
    listens: bool,
) -> Result<(), Errno> {
    let [_, _, _, value_at, length_at, _] = asked.call.arguments;
    let room = asked.caller.read_length(length_at)?;
    let room = usize::try_from(room as i32).map_err(|_| Errno::INVAL)?.min(LONGEST_BYTES);
    let mut bytes = vec![0; room];
    let length = get_bytes(tcp, level, option, &mut bytes)?;
    as_connected(level, option, listens, &mut bytes[..length]);
    asked.caller.write(value_at, &bytes[..length])?;
    asked.caller.write(length_at, &(length as u32).to_ne_bytes())
}

/// What the TCP socket that is kept says of itself, as if it were connected or listened.
fn as_connected(level: c_int, option: c_int, listens: bool, bytes: &mut [u8]) {
    match (level, option) {
        (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => {
            if let Some(first) = bytes.first_mut() {
                *first = u8::from(listens);
            }
        }
        (libc::IPPROTO_TCP, libc::TCP_INFO) => {
            if let Some(state) = bytes.first_mut() {
                *state = if listens { TCP_LISTEN } else { TCP_ESTABLISHED };
            }
        }
        _ => {}
    }
}

/// Notes options that a Unix socket cannot have, or cannot tell of.
fn note(table: &mut Table, level: c_int, option: c_int) {
    let what = match (level, option) {
        (libc::IPPROTO_TCP, libc::TCP_INFO) => "TCP_INFO says nothing of the connection",
        (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT) => "TCP_DEFER_ACCEPT does nothing",
        (libc::IPPROTO_TCP, libc::TCP_ULP) => "TCP_ULP (TLS in the kernel) is refused",
        (libc::SOL_SOCKET, libc::SO_ZEROCOPY) => "SO_ZEROCOPY is refused",
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPING | libc::SO_TIMESTAMP | libc::SO_TIMESTAMPNS) => {
            "time stamps of packets do not come"
        }
        (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER | libc::SO_ATTACH_BPF) => "filters of packets do nothing",
        _ => return,
    };
    table.observed.cannot_keep(what);
}
