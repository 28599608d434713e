//! Two connected UDP sockets over the loopback interface, with a window, so that nothing is lost.
//!
//! The kernel drops a datagram that finds no room in the receive buffer, and reports it to nobody. In a stream of
//! messages at most `window` of them are therefore unacknowledged: the server acknowledges every half window with a
//! datagram of one byte. The other workloads answer each message and need no window.

use crate::contract::{Endpoint, Mechanism, Network, Shape, Ticket, TrialContext};
use crate::support::cards::MESSAGE;
use crate::support::cards::OF_NETWORK;
use crate::support::descriptor::{DescriptorEndpoint, Fds};
use crate::support::inet_stream::{bind_to_loopback, inet_socket};
use crate::support::network::{greet, strangers_setting, welcome};
use crate::support::socket::{BUSY_POLL, RCVBUF, SNDBUF, largest_message, set_buffers, set_busy_polling};
use crate::support::wait::WAIT;
use model::card::{Card, Reach, Support};
use model::record::Setting;
use model::semantics::{Atomic, Loss, Order, Semantics, WhenFull};
use model::{Domain, Param, Params, Workload};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::net::{SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use std::net::{Ipv4Addr, SocketAddrV4};
use sys::{Errno, Failure, OrFail};

/// udp(7) on 127.0.0.1.
#[derive(Debug)]
pub(crate) struct Udp;

/// The parameter that says how many messages may be unacknowledged.
pub(crate) const WINDOW: Param = Param {
    name: "window",
    summary: "messages that may be unacknowledged in the workload throughput; by default what certainly fits in the receive buffer",
    domain: Domain::Count,
    default: None,
};

impl Mechanism for Udp {
    const CARD: Card = Card {
        name: "udp",
        summary: "UDP over loopback, in a window so that nothing is lost",
        reach: Reach::Network,
        polled: true,
        params: &[WINDOW, SNDBUF, RCVBUF, WAIT, BUSY_POLL],
        limits: "65507 bytes a datagram (IPv4), and SO_SNDBUF less the kernel's overhead",
        semantics: Semantics {
            connected: false,
            order: Order::NotKept,
            loss: Loss::Overflow,
            when_full: WhenFull::Drops,
            atomic: Atomic::Message,
            most_bytes: Some(65_507),
            ..OF_NETWORK
        },
        man: &["udp(7)", "ip(7)"],
        ..MESSAGE
    };
    type Bound = UdpBound<UdpEndpoint>;
    type End = UdpEndpoint;

    fn probe(params: &Params) -> Support {
        largest_message(|| connected_pair(params, &Self::CARD))
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        bind_udp(trial, &Self::CARD, usize::MAX, endpoint)
    }

    fn accept(bound: Self::Bound) -> Result<UdpEndpoint, Failure> {
        accept_udp(bound, &Self::CARD, endpoint)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<UdpEndpoint, Failure> {
        connect_udp(trial, ticket, &Self::CARD, endpoint)
    }
}

fn endpoint(
    socket: OwnedFd,
    params: &Params,
    shape: Shape,
    role: WindowRole,
) -> Result<UdpEndpoint, Failure> {
    UdpEndpoint::new(socket, params, shape, role, &Udp::CARD, usize::MAX)
}

/// Makes an endpoint of a connected socket.
type MakeEndpoint<E> = fn(OwnedFd, &Params, Shape, WindowRole) -> Result<E, Failure>;

/// What an endpoint is in the window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowRole {
    role: Role,
    /// How many messages fit in the server's buffer, where that may be larger or smaller than the client's.
    fitting: Option<u32>,
    /// How many datagrams of others came before the client's.
    strangers: usize,
}

impl WindowRole {
    /// On one host, both buffers are alike.
    const fn alike(role: Role) -> Self {
        Self { role, fitting: None, strangers: 0 }
    }
}

/// What is held between `bind` and `accept`.
#[derive(Debug)]
pub(crate) enum UdpBound<E> {
    /// The client's endpoint, which is complete.
    End(E),
    /// The server's socket, which waits for a client that may be on another host.
    Waiting { socket: OwnedFd, network: Network, params: Params, shape: Shape, fitting: u32 },
}

/// The client makes both sockets, so that each is connected to the other before the first datagram. Where the endpoints may be on
/// two hosts, the server makes its own.
pub(crate) fn bind_udp<E>(
    trial: &TrialContext<'_>,
    card: &Card,
    segment_bytes: usize,
    endpoint: MakeEndpoint<E>,
) -> Result<(UdpBound<E>, Ticket), Failure> {
    let TrialContext { params, shape, network, .. } = *trial;
    let Some(network) = network else {
        let (client, server) = connected_pair(params, card)?;
        let client = endpoint(client, params, shape, WindowRole::alike(Role::Client))?;
        return Ok((UdpBound::End(client), Ticket { address: Vec::new(), fds: vec![server] }));
    };
    let own = network.own_address();
    let socket = socket_with(own.address_family(), SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .or_fail("socket", card.name)?;
    set_buffers(&socket, params, card)?;
    bind(&socket, &own).or_fail("bind", card.name)?;
    let fitting = fitting_messages(&socket, shape, segment_bytes)?;
    let address = [network.ticket(&socket, card.name)?, fitting.to_be_bytes().to_vec()].concat();
    let waiting = UdpBound::Waiting { socket, network, params: params.clone(), shape, fitting };
    Ok((waiting, Ticket { address, fds: Vec::new() }))
}

/// The endpoint of whoever has bound.
pub(crate) fn accept_udp<E>(
    bound: UdpBound<E>,
    card: &Card,
    endpoint: MakeEndpoint<E>,
) -> Result<E, Failure> {
    match bound {
        UdpBound::End(client) => Ok(client),
        UdpBound::Waiting { socket, network, params, shape, fitting } => {
            let strangers = welcome(&network, &socket, card.name)?;
            let role = WindowRole { role: Role::Server, fitting: Some(fitting), strangers };
            endpoint(socket, &params, shape, role)
        }
    }
}

/// The endpoint of whoever has the ticket.
pub(crate) fn connect_udp<E>(
    trial: &TrialContext<'_>,
    ticket: Ticket,
    card: &Card,
    endpoint: MakeEndpoint<E>,
) -> Result<E, Failure> {
    let TrialContext { params, shape, network, .. } = *trial;
    let Some(network) = network else {
        let [socket] = ticket.descriptors(card.name)?;
        return endpoint(socket, params, shape, WindowRole::alike(Role::Server));
    };
    let (port, fitting) = ticket
        .address
        .split_last_chunk::<4>()
        .ok_or_else(|| Failure::from_errno("take the ticket of", card.name, Errno::INVAL))?;
    let fitting = Some(u32::from_be_bytes(*fitting));
    let server = network.address_of(port, card.name)?;
    let socket = socket_with(server.address_family(), SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .or_fail("socket", card.name)?;
    set_buffers(&socket, params, card)?;
    greet(&network, &socket, &server, card.name)?;
    endpoint(socket, params, shape, WindowRole { role: Role::Client, fitting, strangers: 0 })
}

/// Two sockets of the mechanism with `card`, each connected to the other.
pub(crate) fn connected_pair(params: &Params, card: &Card) -> Result<(OwnedFd, OwnedFd), Failure> {
    let socket = || inet_socket(SocketType::DGRAM, None, card.name);
    let (client, server) = (socket()?, socket()?);
    set_buffers(&client, params, card)?;
    set_buffers(&server, params, card)?;
    let (client_port, server_port) =
        (bind_to_loopback(&client, card.name)?, bind_to_loopback(&server, card.name)?);
    for (socket, port) in [(&client, server_port), (&server, client_port)] {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        connect(socket, &address).or_fail("connect", address)?;
    }
    Ok((client, server))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// One endpoint, and its role in the window.
#[derive(Debug)]
pub(crate) struct UdpEndpoint {
    endpoint: DescriptorEndpoint,
    role: Role,
    window: Option<Window>,
}

/// At most so much is unacknowledged, in what messages are charged to the receive buffer: those of a scenario differ in size, and many short
/// ones fill it as a long one does.
#[derive(Debug)]
struct Window {
    most_bytes: usize,
    /// After how much the server acknowledges.
    step_bytes: usize,
    segment_bytes: usize,
    /// In the client: what was sent since the last acknowledgement that it received. In the server: what was received since the last
    /// that it sent.
    open_bytes: usize,
}

impl Window {
    /// Adds what was transferred.
    #[inline(always)]
    fn add(&mut self, count: usize) {
        self.open_bytes += charge(count, self.segment_bytes);
    }

    /// Whether an acknowledgement is due.
    #[inline(always)]
    fn is_step_full(&self) -> bool {
        self.open_bytes >= self.step_bytes
    }

    /// Whether a message of `length` must wait for an acknowledgement, which comes.
    #[inline(always)]
    fn is_closed_to(&self, length: usize) -> bool {
        self.is_step_full() && self.open_bytes + charge(length, self.segment_bytes) > self.most_bytes
    }
}

impl UdpEndpoint {
    /// An endpoint of the mechanism with `card`, whose messages travel in datagrams of at most `segment_bytes`.
    pub(crate) fn new(
        socket: OwnedFd,
        params: &Params,
        shape: Shape,
        WindowRole { role, fitting, strangers }: WindowRole,
        card: &Card,
        segment_bytes: usize,
    ) -> Result<Self, Failure> {
        let mut settings = set_buffers(&socket, params, card)?;
        settings.extend(set_busy_polling(&socket, params, card)?);
        settings.extend(strangers_setting(strangers));
        let window = if shape.workload == Workload::Throughput {
            let asked = params.count(card, WINDOW.name);
            let fitting = fitting.map_or_else(|| fitting_messages(&socket, shape, segment_bytes), Ok)?;
            let wanted = asked.unwrap_or(fitting).max(1);
            // An acknowledgement comes every half window, so that the client need not stop if at least two messages
            // may be in flight.
            let step = (wanted / 2).max(1);
            let most = wanted.min(2 * step);
            settings.push(Setting {
                name: "window (messages)".to_owned(),
                asked: asked.map(|count| count.to_string()),
                got: most.to_string(),
                clamped: asked.is_some_and(|count| count != most),
                usual: None,
            });
            let of_message = charge(shape.size_bytes, segment_bytes);
            Some(Window {
                most_bytes: most as usize * of_message,
                step_bytes: step as usize * of_message,
                segment_bytes,
                open_bytes: 0,
            })
        } else {
            None
        };
        let endpoint = DescriptorEndpoint::new(Fds::both_ways(socket, card.name)?, params, card, settings)?;
        Ok(Self { endpoint, role, window })
    }
}

/// How many messages certainly fit in the receive buffer of `socket`.
fn fitting_messages(socket: &OwnedFd, shape: Shape, segment_bytes: usize) -> Result<u32, Failure> {
    let fitting = buffer_bytes(socket)? / 2 / charge(shape.size_bytes, segment_bytes);
    Ok(u32::try_from(fitting).unwrap_or(u32::MAX))
}

/// The most that a message of `size_bytes`, in datagrams of at most `segment_bytes`, is charged to the receive
/// buffer.
///
/// The kernel charges a datagram with the true size of its memory, which is less than twice its length plus a
/// kilobyte. It returns what was read only in portions of up to a quarter of the buffer (`udp_rmem_release`). So
/// several messages can rely on half of the buffer. An empty message is a datagram, too.
pub(crate) fn charge(size_bytes: usize, segment_bytes: usize) -> usize {
    2 * size_bytes + 1024 * size_bytes.div_ceil(segment_bytes).max(1)
}

/// The size of the receive buffer of `socket`.
pub(crate) fn buffer_bytes(socket: &OwnedFd) -> Result<usize, Failure> {
    sockopt::socket_recv_buffer_size(socket).or_fail("getsockopt(SO_RCVBUF)", "udp")
}

impl Endpoint for UdpEndpoint {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if self.role == Role::Client
            && let Some(window) = &mut self.window
        {
            while window.is_closed_to(bytes.len()) {
                self.endpoint.receive(&mut [0])?;
                window.open_bytes -= window.step_bytes;
            }
            let sent = self.endpoint.send(bytes)?;
            window.add(sent);
            return Ok(sent);
        }
        self.endpoint.send(bytes)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match (&mut self.window, self.role) {
            (Some(window), Role::Client) => {
                // Acknowledgements that the server has sent come before its answer.
                while window.is_step_full() {
                    self.endpoint.receive(&mut [0])?;
                    window.open_bytes -= window.step_bytes;
                }
                self.endpoint.receive(into)
            }
            (Some(window), Role::Server) => {
                let count = self.endpoint.receive(into)?;
                window.add(count);
                while window.is_step_full() {
                    window.open_bytes -= window.step_bytes;
                    self.endpoint.send(&[0])?;
                }
                Ok(count)
            }
            (None, _) => self.endpoint.receive(into),
        }
    }

    fn settings(&self) -> Vec<Setting> {
        self.endpoint.settings()
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        self.endpoint.input()
    }

    fn network_socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.endpoint.output())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The server receives as late as it may: when the client waits for an acknowledgement.
        #[test]
        fn messages_of_any_sizes_fit_in_the_window_and_nobody_waits_for_ever(
            wanted in 1..40_usize,
            sizes in prop::collection::vec(prop_oneof![Just(1), Just(5000), 1..5000_usize], 1..400),
        ) {
            const LARGEST: usize = 5000;
            const SEGMENT: usize = 65_507;
            let step = (wanted / 2).max(1);
            let new = || Window {
                most_bytes: wanted.min(2 * step) * charge(LARGEST, SEGMENT),
                step_bytes: step * charge(LARGEST, SEGMENT),
                segment_bytes: SEGMENT,
                open_bytes: 0,
            };
            let (mut client, mut server) = (new(), new());
            let (mut in_buffer, mut charged) = (std::collections::VecDeque::new(), 0);
            for size in sizes {
                while client.is_closed_to(size) {
                    while !server.is_step_full() {
                        let received = in_buffer.pop_front();
                        prop_assert!(received.is_some(), "both wait");
                        charged -= charge(received.unwrap(), SEGMENT);
                        server.add(received.unwrap());
                    }
                    server.open_bytes -= server.step_bytes;
                    client.open_bytes -= client.step_bytes;
                }
                client.add(size);
                in_buffer.push_back(size);
                charged += charge(size, SEGMENT);
                // A window of one message has no half by which it could be acknowledged.
                let most = client.most_bytes.max(2 * charge(LARGEST, SEGMENT));
                prop_assert!(charged <= most, "{charged} of {most}");
            }
        }
    }
}
