//! How two endpoints that may be on two hosts find each other: the server binds at its address and makes the ticket, and takes
//! the one client that shows the token of the trial. Not a mechanism itself.
//!
//! Whoever else connects, or sends a datagram, is closed or ignored, and counted. The token keeps out strangers who meet the port
//! by chance or scan for it; it is no protection from whoever reads the network.

use crate::contract::{Network, NetworkToken};
use model::record::Setting;
use model::{HostAddress, InterfaceName};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{read, retry_on_intr, write};
use rustix::net::netdevice::name_to_index;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketFlags, SocketType, accept_with, bind, connect,
    getsockname, recv, recvfrom, send, socket_with,
};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;
use sys::{Errno, Failure, OrFail, vsock};

/// How many connections may be about to show the token. Beyond that, the oldest is closed.
const MOST_STRANGERS: usize = 64;
/// How long the client waits for the server's answer to a datagram before it sends another.
const RESEND_AFTER: Duration = Duration::from_millis(50);
/// How long an endpoint waits for datagrams that may still be on their way.
const QUIET: Duration = Duration::from_millis(150);
/// How long the server waits for the client's word that it is ready, which may be lost: the runtime of a language can be slow to say it.
const READY_WITHIN: Duration = Duration::from_secs(2);
/// How many datagrams that are no word are dropped while one is waited for.
const MOST_NOISE: usize = 10_000;
/// How often the client tries: ten seconds.
const TRIES: u32 = 200;

/// The words that follow the token in a datagram.
const HELLO: u8 = b'h';
const WELCOME: u8 = b'w';
const READY: u8 = b'r';
const WORD_BYTES: usize = size_of::<NetworkToken>() + 1;

impl Network {
    /// Any free port of the server's address, or of all addresses where its host does not have that itself, as behind a
    /// translation of addresses.
    pub(crate) fn own_address(&self) -> SocketAddrAny {
        let own = match self.server {
            HostAddress::Ip(server) => SocketAddr::new(server, 0),
            // The interface is the client's.
            HostAddress::Link(..) => return SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0).into(),
            // A machine may have several context ids: one as a guest, another as the host of guests.
            HostAddress::Vsock(_) => return vsock::address(vsock::ANY, vsock::ANY_PORT),
        };
        let is_own = |socket: OwnedFd| bind(&socket, &own) != Err(Errno::ADDRNOTAVAIL);
        let family = SocketAddrAny::from(own).address_family();
        match socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None).map(is_own) {
            Ok(false) if own.is_ipv4() => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0).into(),
            Ok(false) => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0).into(),
            Ok(true) | Err(_) => own.into(),
        }
    }

    /// The bytes by which the client finds `socket`, which the server has bound: its port.
    pub(crate) fn ticket(&self, socket: &OwnedFd, name: &str) -> Result<Vec<u8>, Failure> {
        let bound = getsockname(socket).or_fail("getsockname", name)?;
        if let Some((_, port)) = vsock::cid_and_port(&bound) {
            return Ok(port.to_be_bytes().to_vec());
        }
        let port = SocketAddr::try_from(bound).or_fail("getsockname", name)?.port();
        Ok(port.to_be_bytes().to_vec())
    }

    /// The address at which the server of a ticket is reached.
    pub(crate) fn address_of(&self, ticket: &[u8], name: &str) -> Result<SocketAddrAny, Failure> {
        let address = match self.server {
            HostAddress::Ip(server) => {
                let port = ticket.try_into().map(u16::from_be_bytes);
                port.map(|port| SocketAddr::new(server, port).into())
            }
            HostAddress::Link(server, interface) => {
                let scope = scope_of(interface)?;
                let port = ticket.try_into().map(u16::from_be_bytes);
                port.map(|port| SocketAddrV6::new(server, port, 0, scope).into())
            }
            HostAddress::Vsock(cid) => {
                let port = ticket.try_into().map(u32::from_be_bytes);
                port.map(|port| vsock::address(cid, port))
            }
        };
        address.map_err(|_| Failure::from_errno("take the ticket of", name, Errno::INVAL))
    }

    fn word(&self, kind: u8) -> [u8; WORD_BYTES] {
        let mut word = [kind; WORD_BYTES];
        word[..self.token.len()].copy_from_slice(&self.token);
        word
    }
}

/// The number of `interface` on this host.
fn scope_of(interface: InterfaceName) -> Result<u32, Failure> {
    let name = interface.as_str();
    let socket = socket_with(AddressFamily::INET6, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let index = socket.and_then(|socket| name_to_index(socket, name));
    index.or_fail("ioctl(SIOCGIFINDEX)", format!("the interface {name} of the client's host"))
}

/// The host that `address` is of.
pub(crate) fn host_of(address: &SocketAddrAny) -> Option<HostAddress> {
    let of_vsock = vsock::cid_and_port(address).map(|(cid, _)| HostAddress::Vsock(cid));
    of_vsock.or_else(|| SocketAddr::try_from(address.clone()).ok().map(|at| HostAddress::Ip(at.ip())))
}

/// Who was turned away, as a setting of the record; nothing if nobody was.
pub(crate) fn strangers_setting(strangers: usize) -> Option<Setting> {
    (strangers > 0).then(|| Setting {
        name: "strangers turned away".to_owned(),
        asked: None,
        got: strangers.to_string(),
        clamped: true,
        usual: None,
    })
}

/// The client's side of a fresh connection: it connects `socket` to the server, and shows the token.
pub(crate) fn introduce(
    network: &Network,
    socket: &OwnedFd,
    server: &SocketAddrAny,
    name: &str,
) -> Result<(), Failure> {
    let shown = match SocketAddr::try_from(server.clone()) {
        Ok(at) => format!("{name} {at}"),
        Err(_) => format!("{name} to {}", network.server),
    };
    connect(socket, server).or_fail("connect", &shown).map_err(refused)?;
    // A fresh connection has room for more than that.
    let sent = retry_on_intr(|| write(socket, &network.token)).or_fail("write", &shown)?;
    if sent == network.token.len() { Ok(()) } else { Err(Failure::from_errno("write", &shown, Errno::AGAIN)) }
}

/// A refusal to connect to a server that was listening when it sent its ticket: the network's, or that of a server that is gone.
fn refused(failure: Failure) -> Failure {
    let by_network = [
        Errno::CONNREFUSED,
        Errno::HOSTUNREACH,
        Errno::NETUNREACH,
        Errno::ACCESS,
        Errno::PERM,
        Errno::TIMEDOUT,
    ];
    if !failure.errno.is_some_and(|errno| by_network.contains(&errno)) {
        return failure;
    }
    let next = "a firewall rejects it, no route leads there, or the server has ended: any free port must be open between the hosts, \
                or name another address with --server-address";
    Failure { next: next.to_owned(), ..failure }
}

/// A connection that has not shown the token yet.
struct Stranger {
    socket: OwnedFd,
    shown: Vec<u8>,
}

/// The server's side: the first connection to `listener` that shows the token, its address, and how many did not.
pub(crate) fn admit(network: &Network, listener: &OwnedFd, name: &str) -> Result<(OwnedFd, usize), Failure> {
    let (mut waiting, mut turned_away): (Vec<Stranger>, usize) = (Vec::new(), 0);
    loop {
        let fds = std::iter::once(listener).chain(waiting.iter().map(|stranger| &stranger.socket));
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(Failure::from_errno("poll", name, errno)),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        // From the last, so that the places of the others stay.
        for at in (0..waiting.len()).rev() {
            let stranger = &mut waiting[at];
            let is_known = if ready[at + 1] { shows(stranger, network.token) } else { None };
            match is_known {
                Some(true) => {
                    let client = waiting.swap_remove(at).socket;
                    return Ok((client, turned_away + waiting.len()));
                }
                None => {}
                Some(false) => {
                    waiting.swap_remove(at);
                    turned_away += 1;
                }
            }
        }
        if ready[0] {
            match accept_with(listener, SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    let room = network.token.len();
                    waiting.push(Stranger { socket, shown: Vec::with_capacity(room) });
                }
                Err(Errno::INTR | Errno::AGAIN | Errno::CONNABORTED) => {}
                Err(errno) => return Err(Failure::from_errno("accept4", name, errno)),
            }
        }
        if waiting.len() > MOST_STRANGERS {
            waiting.remove(0);
            turned_away += 1;
        }
    }
}

/// Reads what `stranger` shows. `None`: there is more to come.
fn shows(stranger: &mut Stranger, token: NetworkToken) -> Option<bool> {
    let mut room = [0; size_of::<NetworkToken>()];
    let left = token.len() - stranger.shown.len();
    match read(&stranger.socket, &mut room[..left]) {
        Ok(0) => Some(false),
        Ok(count) => {
            stranger.shown.extend_from_slice(&room[..count]);
            (stranger.shown.len() == token.len()).then(|| stranger.shown == token)
        }
        Err(Errno::INTR | Errno::AGAIN) => None,
        Err(_) => Some(false),
    }
}

/// The client's side of a pair of datagram sockets: it connects `socket` to the server and says hello until it is welcome.
///
/// It goes on only when no further answer can be on its way, so that none is taken for data.
pub(crate) fn greet(
    network: &Network,
    socket: &OwnedFd,
    server: &SocketAddrAny,
    name: &str,
) -> Result<(), Failure> {
    connect(socket, server).or_fail("connect", name).map_err(refused)?;
    for tries in 0..TRIES {
        // It was bound when it sent its ticket: what is refused now a firewall rejects, or the server is gone.
        retry_on_intr(|| send(socket, &network.word(HELLO), SendFlags::empty()))
            .or_fail("send", name)
            .map_err(refused)?;
        if await_word(network, socket, WELCOME, RESEND_AFTER, name).map_err(refused)?.is_some() {
            retry_on_intr(|| send(socket, &network.word(READY), SendFlags::empty())).or_fail("send", name)?;
            if tries > 0 {
                while await_word(network, socket, WELCOME, QUIET, name)?.is_some() {}
            }
            return Ok(());
        }
    }
    Err(Failure::from_errno("receive", format!("the server's welcome by {name}"), Errno::TIMEDOUT))
}

/// The server's side: waits for the client's hello, connects `socket` to it, and answers until the client is ready. Returns how
/// many datagrams of others came.
pub(crate) fn welcome(network: &Network, socket: &OwnedFd, name: &str) -> Result<usize, Failure> {
    let (mut strangers, hello) = (0, network.word(HELLO));
    let client = loop {
        let mut word = [0; WORD_BYTES + 1];
        match recvfrom(socket, &mut word, RecvFlags::empty()) {
            Ok((count, _, Some(client))) if word[..count] == hello => break client,
            Ok(_) => strangers += 1,
            Err(Errno::INTR | Errno::CONNREFUSED) => {}
            Err(errno) => return Err(Failure::from_errno("recvfrom", name, errno)),
        }
    };
    connect(socket, &client).or_fail("connect", name)?;
    loop {
        retry_on_intr(|| send(socket, &network.word(WELCOME), SendFlags::empty())).or_fail("send", name)?;
        // Its word that it is ready may be lost: then it says nothing more.
        match await_word(network, socket, HELLO, READY_WITHIN, name)? {
            Some(HELLO) => {}
            _ => return Ok(strangers),
        }
    }
}

/// The next word of the peer: `wanted`, or that it is ready. What is no word is dropped. `None` when `limit` has passed.
fn await_word(
    network: &Network,
    socket: &OwnedFd,
    wanted: u8,
    limit: Duration,
    name: &str,
) -> Result<Option<u8>, Failure> {
    for _ in 0..MOST_NOISE {
        if !is_readable(socket.as_fd(), limit).or_fail("poll", name)? {
            break;
        }
        let mut word = [0; WORD_BYTES + 1];
        match recv(socket, &mut word, RecvFlags::DONTWAIT) {
            Ok((count, _)) => {
                let found = [wanted, READY].into_iter().find(|kind| word[..count] == network.word(*kind));
                if found.is_some() {
                    return Ok(found);
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(Failure::from_errno("recv", name, errno)),
        }
    }
    Ok(None)
}

/// Whether `fd` can be read within `limit`.
pub(crate) fn is_readable(fd: BorrowedFd<'_>, limit: Duration) -> Result<bool, Errno> {
    match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&timespec(limit))) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(true),
        Err(errno) => Err(errno),
    }
}

fn timespec(limit: Duration) -> Timespec {
    Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_of_a_ticket_is_reached_at_its_port_by_either_kind_of_address() {
        let network = |server: &str| Network { server: server.parse().unwrap(), token: [7; 16] };
        let ip = network("10.0.0.2");
        let at = ip.address_of(&[0x12, 0x34], "it").unwrap();
        assert_eq!(SocketAddr::try_from(at.clone()), Ok("10.0.0.2:4660".parse().unwrap()));
        assert_eq!(host_of(&at), Some(ip.server));
        let guest = network("vsock:3");
        let at = guest.address_of(&[0, 1, 0x12, 0x34], "it").unwrap();
        assert_eq!((vsock::cid_and_port(&at), host_of(&at)), (Some((3, 0x1_1234)), Some(guest.server)));
        let own = guest.own_address();
        assert_eq!(vsock::cid_and_port(&own), Some((vsock::ANY, vsock::ANY_PORT)));
        assert!(ip.address_of(&[0; 4], "it").is_err() && guest.address_of(&[0; 2], "it").is_err());
    }
}
