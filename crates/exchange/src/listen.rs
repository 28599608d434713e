//! bind(2) and listen(2): where a TCP socket begins to listen, a Unix socket takes its place.

use crate::address::as_of;
use crate::answering::{Answering, Asked, Reply};
use crate::caller::{CallersSocket, MPTCP, copy_file_flags, inode_of};
use crate::exchange::{ProgramExchange, Source};
use crate::options::{carry_over, inherit};
use crate::sockets::{ExchangedListener, Table};
use crate::target::Target;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::sockopt::{set_socket_reuseaddr, socket_acceptconn, socket_reuseaddr, socket_reuseport};
use rustix::net::{
    AddressFamily, Protocol, SocketAddrUnix, SocketFlags, SocketType, bind as bind_to, getpeername,
    getsockname, listen as listen_on, socket_with,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use sys::Errno;

/// How many connections may wait to be accepted, at the least. With Unix sockets a connection beyond that is refused, with TCP it is only late.
const BACKLOG: i32 = 4096;
/// The family of SMC (linux/socket.h); its protocol is 0, or 1 over IPv6 (net/smc.h).
const AF_SMC: u16 = 43;

/// bind(2).
pub(crate) fn bind(at: &Answering, asked: &Asked<'_>, socket: &CallersSocket) -> Reply {
    let mut table = at.sockets.table();
    if table.listener(socket.inode).is_some() || table.end(socket.inode).is_some() {
        return Reply::Error(Errno::INVAL);
    }
    let [_, address_at, length, ..] = asked.call.arguments;
    let bytes = asked.caller.read_address(address_at, length).unwrap_or_default();
    let Some(address) = crate::address::read(&bytes) else {
        if socket.family == AddressFamily::UNIX && socket.kind == SocketType::DGRAM {
            table.observed.unix_dgram += 1;
        }
        apply(at.sockets.exchanges.for_source(&source_of_unix(socket)), socket, &mut table);
        return Reply::Kernel;
    };
    if socket.is_udp() {
        table.observed.udp.insert(address.port());
        apply(at.sockets.exchanges.of_udp(address.port()), socket, &mut table);
    } else if socket.is_tcp() {
        // The port of a listener is held, but by a socket that does not listen, which would be shared more freely.
        let shares = socket_reuseport(&socket.file).unwrap_or(false);
        let reuses = socket_reuseaddr(&socket.file).unwrap_or(false);
        if table.is_in_use(address, shares) || !reuses && table.has_connections_of(address.port()) {
            return Reply::Error(Errno::ADDRINUSE);
        }
    }
    Reply::Kernel
}

/// Makes the settings of `exchange`, if there is one.
pub(crate) fn apply(exchange: Option<&ProgramExchange>, socket: &CallersSocket, table: &mut Table) {
    if let Some(exchange) = exchange {
        exchange.apply(&socket.file);
        table.observed.exchanged += 1;
    }
}

/// What a socket that is no TCP socket is, as exchanges name it.
pub(crate) fn source_of_unix(socket: &CallersSocket) -> Source {
    match (socket.family, socket.kind) {
        (AddressFamily::UNIX, SocketType::DGRAM) => Source::UnixDgram,
        (AddressFamily::UNIX, SocketType::STREAM) => Source::UnixStream,
        // There is no exchange of the others.
        _ => Source::Udp(Some(0)),
    }
}

/// listen(2).
pub(crate) fn listen(at: &Answering, asked: &Asked<'_>, socket: &CallersSocket) -> Reply {
    let backlog = (asked.call.arguments[1] as i32).max(BACKLOG);
    let mut table = at.sockets.table();
    if table.listener(socket.inode).is_some() {
        return listen_on(&socket.file, backlog).map_or_else(Reply::Error, |()| Reply::Value(0));
    }
    if table.end(socket.inode).is_some() {
        return Reply::Error(Errno::INVAL);
    }
    table.observed.listens_on_unix |= source_of_unix(socket) == Source::UnixStream;
    // The kernel says what is wrong with those that are connected.
    if !socket.is_tcp() || getpeername(&socket.file).is_ok() || socket_acceptconn(&socket.file) == Ok(true) {
        return Reply::Kernel;
    }
    let address = match socket.bound_address() {
        Ok(address) => address,
        Err(errno) => return Reply::Error(errno),
    };
    table.observed.port(address.port()).listens = true;
    let Some(exchange) = at.sockets.exchanges.of_tcp(address.port()) else { return Reply::Kernel };
    match exchange.target {
        Target::UnixStream => exchange_listener(at, asked, socket, &mut table, (exchange, address, backlog)),
        Target::Mptcp | Target::Smc => {
            // Where there is none, the socket listens as it is.
            let _ = alike(at, asked, socket, exchange, &mut table);
            Reply::Kernel
        }
        target => {
            exchange.apply(&socket.file);
            if target == Target::Sockmap
                && let Err(failure) = at.sockets.redirect(address.port())
            {
                table.observed.cannot_keep(&format!("there is no sockmap: {failure}"));
            }
            Reply::Kernel
        }
    }
}

fn exchange_listener(
    at: &Answering,
    asked: &Asked<'_>,
    socket: &CallersSocket,
    table: &mut Table,
    (exchange, address, backlog): (&ProgramExchange, SocketAddr, i32),
) -> Reply {
    let shares = socket_reuseport(&socket.file).unwrap_or(false);
    if table.is_in_use(address, shares) {
        return Reply::Error(Errno::ADDRINUSE);
    }
    let Ok((unix, name)) = unix_listener(socket, exchange, backlog) else { return Reply::Kernel };
    let (Ok(tcp), Ok(inode)) = (socket.file.try_clone().map_err(|_| Errno::MFILE), inode_of(&unix)) else {
        return Reply::Kernel;
    };
    table.add_listener(ExchangedListener {
        inode,
        address,
        family: socket.family,
        name,
        tcp,
        waiting: Default::default(),
        returned: Default::default(),
    });
    if at.replace(asked, socket, unix.as_fd(), table).is_err() {
        table.remove_listener(inode);
        return Reply::Answered;
    }
    Reply::Value(0)
}

/// A Unix socket that listens, under a name that the kernel chooses.
fn unix_listener(
    socket: &CallersSocket,
    exchange: &ProgramExchange,
    backlog: i32,
) -> Result<(OwnedFd, SocketAddrUnix), Errno> {
    let unix = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    exchange.apply(&unix);
    carry_over(&socket.file, &unix);
    bind_to(&unix, &SocketAddrUnix::new_unnamed())?;
    listen_on(&unix, backlog)?;
    copy_file_flags(socket.file.as_fd(), unix.as_fd())?;
    let name = SocketAddrUnix::try_from(getsockname(&unix)?).map_err(|_| Errno::AFNOSUPPORT)?;
    Ok((unix, name))
}

/// Puts a socket of MPTCP or SMC, which takes the same calls, in the place of the caller's `socket`, bound as that is. Where the kernel has
/// none, the socket stays.
pub(crate) fn alike(
    at: &Answering,
    asked: &Asked<'_>,
    socket: &CallersSocket,
    exchange: &ProgramExchange,
    table: &mut Table,
) -> Result<(), Errno> {
    let new = match new_alike(socket, exchange.target) {
        Ok(new) => new,
        Err(errno) => {
            table.observed.cannot_keep(&format!("there is no {}: {errno}", exchange.target));
            return Err(errno);
        }
    };
    exchange.apply(&new);
    at.replace(asked, socket, new.as_fd(), table)
}

fn new_alike(socket: &CallersSocket, target: Target) -> Result<OwnedFd, Errno> {
    let number = |number: u32| std::num::NonZeroU32::new(number).map(Protocol::from_raw);
    let is_v6 = socket.family == AddressFamily::INET6;
    let (family, protocol) = match target {
        Target::Smc => (AddressFamily::from_raw(AF_SMC), number(u32::from(is_v6))),
        _ => (socket.family, number(MPTCP)),
    };
    let new = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, protocol)?;
    inherit(&socket.file, &new);
    let bound = socket.own_address()?;
    if bound.port() != 0 {
        // Both have the address for a moment, which the kernel allows where neither listens yet and both say so.
        let reuses = socket_reuseaddr(&new)?;
        set_socket_reuseaddr(&socket.file, true)?;
        set_socket_reuseaddr(&new, true)?;
        bind_to(&new, &bound)?;
        set_socket_reuseaddr(&new, reuses)?;
    }
    copy_file_flags(socket.file.as_fd(), new.as_fd())?;
    Ok(new)
}

/// The address from which this host would connect to `to`.
pub(crate) fn source_of(to: SocketAddr, family: AddressFamily) -> SocketAddr {
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let probe = UdpSocket::bind((any, 0));
    let own = probe.and_then(|probe| probe.connect(to).and_then(|()| probe.local_addr()));
    let ip = own.map_or(Ipv4Addr::LOCALHOST.into(), |own| own.ip());
    as_of(family, SocketAddr::new(ip, 0))
}
