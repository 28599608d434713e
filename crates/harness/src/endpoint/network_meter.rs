//! What an endpoint whose peer may be on another host reads of its socket and its kernel: the way to the peer, and what went
//! wrong on it. Read before and after phases, never in the timed iterations.

use crate::host::route;
use crate::protocol::orders::Role;
use model::network::{NetworkReadings, NetworkSample};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketFlags, SocketType, connect, getpeername, socket_with, sockopt,
};
use std::net::{IpAddr, SocketAddr};
use sys::{link, socket_option};

/// A port for a socket that only asks for the way: nothing is sent there.
const ANY_PORT: u16 = 9;

/// The readings of one endpoint since it was connected.
pub(crate) struct NetworkMeter {
    /// A socket that asks for the way, where the endpoint has none of its own.
    asking: Option<OwnedFd>,
    way: NetworkReadings,
    first: NetworkReadings,
}

impl NetworkMeter {
    /// Of an endpoint of `role` over `socket`, if it has one that lasts; `server` is the server's address.
    pub(crate) fn new(socket: Option<BorrowedFd<'_>>, role: Role, server: IpAddr) -> Self {
        let peer = match socket {
            Some(socket) => peer_of(socket),
            // A server of connections that do not last has a client whose address it does not know.
            None => Some(server).filter(|_| role == Role::Client),
        };
        let asking = peer.filter(|_| socket.is_none()).and_then(asking_socket);
        let link = peer.and_then(route::link_to);
        let link_mbit_per_s = link.as_deref().and_then(|name| link::mbit_per_s(name).ok().flatten());
        let way = NetworkReadings { link, link_mbit_per_s, ..NetworkReadings::default() };
        let mut meter = Self { asking, way, first: NetworkReadings::default() };
        meter.first = meter.readings(socket);
        meter
    }

    /// What was counted since the meter was made, and the way as it is now.
    pub(crate) fn readings(&self, socket: Option<BorrowedFd<'_>>) -> NetworkReadings {
        let asked = socket.or(self.asking.as_ref().map(AsFd::as_fd));
        NetworkReadings {
            link: self.way.link.clone(),
            link_mbit_per_s: self.way.link_mbit_per_s,
            mtu_bytes: asked.and_then(mtu_bytes),
            retransmitted: socket.and_then(|socket| socket_option::tcp_retransmissions(socket).ok()),
            dropped: socket.and_then(|socket| socket_option::drops(socket).ok()),
            ..route::host_counters()
        }
        .since(&self.first)
    }
}

/// The client's meter, and what the readings of both sides were when the slice before ended.
pub(crate) struct SliceNetwork {
    meter: NetworkMeter,
    before: NetworkSample,
    server: NetworkReadings,
}

impl SliceNetwork {
    pub(crate) fn new(meter: NetworkMeter) -> Self {
        Self { meter, before: NetworkSample::default(), server: NetworkReadings::default() }
    }

    /// Notes what the server has read by the end of a phase.
    pub(crate) fn server_read(&mut self, readings: NetworkReadings) {
        self.server = readings;
    }

    /// What both counted since the slice before, or since they were connected.
    pub(crate) fn slice(&mut self, socket: Option<BorrowedFd<'_>>) -> NetworkSample {
        let now = NetworkSample { client: self.meter.readings(socket), server: self.server.clone() };
        let before = std::mem::replace(&mut self.before, now.clone());
        NetworkSample { client: now.client.since(&before.client), server: now.server.since(&before.server) }
    }
}

/// The address of the peer of `socket`.
fn peer_of(socket: BorrowedFd<'_>) -> Option<IpAddr> {
    let peer = getpeername(socket).ok().flatten()?;
    SocketAddr::try_from(peer).ok().map(|peer| peer.ip().to_canonical())
}

/// A datagram socket that is connected to `peer`, which sends nothing.
fn asking_socket(peer: IpAddr) -> Option<OwnedFd> {
    let address = SocketAddrAny::from(SocketAddr::new(peer, ANY_PORT));
    let socket = socket_with(address.address_family(), SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
    connect(&socket, &address).ok()?;
    Some(socket)
}

/// The largest packet that the route of `socket` takes.
fn mtu_bytes(socket: BorrowedFd<'_>) -> Option<u32> {
    match sockopt::socket_domain(socket).ok()? {
        AddressFamily::INET6 => sockopt::ipv6_mtu(socket).ok(),
        _ => sockopt::ip_mtu(socket).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn a_connection_over_loopback_has_a_link_and_an_mtu_and_loses_nothing() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = Some(stream.as_fd());
        let meter = NetworkMeter::new(socket, Role::Client, Ipv4Addr::LOCALHOST.into());
        let mut slices = SliceNetwork::new(meter);
        slices.server_read(NetworkReadings { dropped: Some(3), ..NetworkReadings::default() });
        let NetworkSample { client, server } = slices.slice(socket);
        assert_eq!(client.link.as_deref(), Some("lo"));
        assert!(client.mtu_bytes.is_some_and(|mtu| mtu >= 1280), "{client:?}");
        assert_eq!((client.retransmitted, client.dropped), (Some(0), Some(0)));
        assert_eq!(server.dropped, Some(3));
        assert_eq!(slices.slice(socket).server.dropped, Some(0));
    }

    #[test]
    fn a_client_without_a_socket_that_lasts_asks_for_the_way_and_a_server_cannot() {
        let readings_of = |role| NetworkMeter::new(None, role, Ipv4Addr::LOCALHOST.into()).readings(None);
        let (client, server) = (readings_of(Role::Client), readings_of(Role::Server));
        assert!(client.mtu_bytes.is_some() && client.retransmitted.is_none(), "{client:?}");
        assert!(client.host_retransmitted.is_some() && server.link.is_none());
    }
}
