//! connect(2): a connection to a port of this host whose listener was exchanged goes to the Unix socket in its place.

use crate::address::{self, destination, plain};
use crate::answering::{Answering, Asked, Reply, WaitingConnect};
use crate::caller::{CallersSocket, copy_file_flags, inode_of};
use crate::exchange::ProgramExchange;
use crate::listen::{alike, apply, source_of, source_of_unix};
use crate::options::carry_over;
use crate::sockets::{Addresses, ConnectionEnd, Table};
use crate::target::Target;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::{ipv6_v6only, socket_acceptconn};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect as connect_to, getpeername, socket_with};
use std::net::{SocketAddr, UdpSocket};
use sys::Errno;

/// connect(2).
pub(crate) fn connect(at: &Answering, asked: &Asked<'_>, socket: CallersSocket) -> Reply {
    let mut table = at.sockets.table();
    if let Some(end) = table.end(socket.inode) {
        // The first time it is asked again, it is there; from then on it was there already.
        return match std::mem::take(&mut end.is_under_way) {
            true => Reply::Value(0),
            false => Reply::Error(Errno::ISCONN),
        };
    }
    if table.listener(socket.inode).is_some() {
        return Reply::Error(Errno::ISCONN);
    }
    let [_, address_at, length, ..] = asked.call.arguments;
    let bytes = asked.caller.read_address(address_at, length).unwrap_or_default();
    let Some(to) = address::read(&bytes) else {
        note_unix(&mut table, &socket);
        apply(at.sockets.exchanges.for_source(&source_of_unix(&socket)), &socket, &mut table);
        return Reply::Kernel;
    };
    if socket.is_udp() {
        apply(at.sockets.exchanges.of_udp(to.port()), &socket, &mut table);
        return Reply::Kernel;
    }
    if !is_free(&socket, to) || !is_of_this_host(destination(to)) {
        return Reply::Kernel;
    }
    let to = destination(to);
    table.observed.port(to.port()).connections += 1;
    let Some(exchange) = at.sockets.exchanges.of_tcp(to.port()) else { return Reply::Kernel };
    match exchange.target {
        Target::UnixStream => exchange_connection(at, asked, socket, to, &mut table),
        Target::Mptcp | Target::Smc => {
            if alike(at, asked, &socket, exchange, &mut table).is_ok() {
                table.observed.exchanged += 1;
            }
            Reply::Kernel
        }
        _ => {
            exchange.apply(&socket.file);
            table.observed.exchanged += 1;
            Reply::Kernel
        }
    }
}

/// Tries again.
pub(crate) fn retry(at: &Answering, waiting: WaitingConnect) -> Reply {
    let Ok(caller) = crate::caller::Caller::open(waiting.call.thread) else { return Reply::Answered };
    let asked = Asked { call: waiting.call, caller: &caller };
    let mut table = at.sockets.table();
    exchange_connection(at, &asked, waiting.socket, waiting.to, &mut table)
}

fn note_unix(table: &mut Table, socket: &CallersSocket) {
    match (socket.family, socket.kind) {
        // Others are to services of the host, such as its log.
        (AddressFamily::UNIX, SocketType::STREAM) if table.observed.listens_on_unix => {
            table.observed.unix_stream += 1;
        }
        (AddressFamily::UNIX, SocketType::DGRAM) => table.observed.unix_dgram += 1,
        _ => {}
    }
}

/// Whether the socket is one of TCP that could be connected to `to`. What is wrong with others, the kernel says.
fn is_free(socket: &CallersSocket, to: SocketAddr) -> bool {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let is_mapped = to.is_ipv6() && plain(to).is_ipv4();
    socket.is_tcp()
        && socket.family == family
        && to.port() != 0
        && getpeername(&socket.file).is_err()
        && socket_acceptconn(&socket.file) != Ok(true)
        && !(is_mapped && ipv6_v6only(&socket.file) != Ok(false))
}

/// Whether `address` is one of this host's: only to those a socket can be bound.
fn is_of_this_host(address: SocketAddr) -> bool {
    address.ip().is_loopback() || UdpSocket::bind((address.ip(), 0)).is_ok()
}

fn exchange_connection(
    at: &Answering,
    asked: &Asked<'_>,
    socket: CallersSocket,
    to: SocketAddr,
    table: &mut Table,
) -> Reply {
    let Some(exchange) = at.sockets.exchanges.of_tcp(to.port()) else { return Reply::Kernel };
    let (unix, listening) = loop {
        // Nobody of the program listens there any more: the kernel says who does.
        let Some(listening) = table.listener_for(to).map(|listener| listener.inode) else {
            return Reply::Kernel;
        };
        match connected(table, listening, &socket, exchange) {
            Ok(unix) => break (unix, listening),
            Err(Errno::CONNREFUSED) => table.remove_listener(listening),
            Err(Errno::AGAIN) if !socket.is_non_blocking() => {
                return Reply::Connect(WaitingConnect { call: asked.call, socket, to });
            }
            Err(errno) => return Reply::Error(errno),
        }
    };
    let local = match local_address(&socket, to) {
        Ok(local) => local,
        Err(errno) => return Reply::Error(errno),
    };
    let (Ok(inode), Ok(tcp)) = (inode_of(&unix), socket.file.try_clone()) else { return Reply::Kernel };
    let waits = !socket.is_non_blocking();
    if asked.caller.shares(socket.inode) {
        table.observed.cannot_keep(
            "a socket that processes shared before it was connected is exchanged in one of them",
        );
    }
    if let Some(listener) = table.listener(listening) {
        listener.waiting.push_back(Addresses { client: local, server: to });
    }
    table.add_end(
        inode,
        ConnectionEnd {
            local,
            peer: to,
            family: socket.family,
            tcp,
            is_under_way: !waits,
            is_accepted: false,
        },
    );
    table.observed.exchanged += 1;
    match at.replace(asked, &socket, unix.as_fd(), table) {
        Err(_) => Reply::Answered,
        Ok(()) if waits => Reply::Value(0),
        Ok(()) => Reply::Error(Errno::INPROGRESS),
    }
}

/// A Unix socket that is connected to the listener with this `inode`.
fn connected(
    table: &mut Table,
    inode: u64,
    socket: &CallersSocket,
    exchange: &ProgramExchange,
) -> Result<OwnedFd, Errno> {
    let unix = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    carry_over(&socket.file, &unix);
    exchange.apply(&unix);
    ioctl_fionbio(&unix, true)?;
    let name = table.listener(inode).map(|listener| listener.name.clone()).ok_or(Errno::CONNREFUSED)?;
    connect_to(&unix, &name)?;
    ioctl_fionbio(&unix, false)?;
    copy_file_flags(socket.file.as_fd(), unix.as_fd())?;
    Ok(unix)
}

/// The address that the client has: the one that it has bound, or one with a port that is free.
fn local_address(socket: &CallersSocket, to: SocketAddr) -> Result<SocketAddr, Errno> {
    let mut local = plain(socket.bound_address()?);
    if local.ip().is_unspecified() {
        local.set_ip(plain(source_of(to, socket.family)).ip());
    }
    Ok(local)
}
