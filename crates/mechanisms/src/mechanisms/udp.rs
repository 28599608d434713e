//! Two connected UDP sockets over the loopback interface, with a window, so that nothing is lost.
//!
//! The kernel drops a datagram that finds no room in the receive buffer, and reports it to nobody. In a stream of
//! messages at most `window` of them are therefore unacknowledged: the server acknowledges every half window with a
//! datagram of one byte. The other workloads answer each message and need no window.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::support::cards::MESSAGE;
use crate::support::descriptor::{DescriptorEndpoint, Fds};
use crate::support::inet_stream::{bind_to_loopback, inet_socket};
use crate::support::socket::{BUSY_POLL, RCVBUF, SNDBUF, largest_message, set_buffers, set_busy_polling};
use crate::support::wait::WAIT;
use model::card::{Card, Reach, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Workload};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::net::{SocketType, connect, sockopt};
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
        man: &["udp(7)", "ip(7)"],
        ..MESSAGE
    };
    type Bound = UdpEndpoint;
    type End = UdpEndpoint;

    fn probe(params: &Params) -> Support {
        largest_message(|| connected_pair(params, &Self::CARD))
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(UdpEndpoint, Ticket), Failure> {
        // The client makes both sockets, so that each is connected to the other before the first datagram.
        let (client, server) = connected_pair(trial.params, &Self::CARD)?;
        Ok((
            UdpEndpoint::new(client, trial, Role::Client, &Self::CARD, usize::MAX)?,
            Ticket { address: Vec::new(), fds: vec![server] },
        ))
    }

    fn accept(bound: UdpEndpoint) -> Result<UdpEndpoint, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<UdpEndpoint, Failure> {
        let [socket] = ticket.descriptors("udp")?;
        UdpEndpoint::new(socket, trial, Role::Server, &Self::CARD, usize::MAX)
    }
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

/// At most `most` messages are unacknowledged. The server acknowledges every `step` of them.
#[derive(Debug)]
struct Window {
    most: u32,
    step: u32,
    /// The size of a message.
    size_bytes: usize,
    /// How much of the current message was transferred.
    bytes: usize,
    /// In the client: messages sent since the last acknowledgement that it received. In the server: messages received
    /// since the last acknowledgement that it sent.
    messages: u32,
}

impl UdpEndpoint {
    /// An endpoint of the mechanism with `card`, whose messages travel in datagrams of at most `segment_bytes`.
    pub(crate) fn new(
        socket: OwnedFd,
        trial: &TrialContext<'_>,
        role: Role,
        card: &Card,
        segment_bytes: usize,
    ) -> Result<Self, Failure> {
        let params = trial.params;
        let mut settings = set_buffers(&socket, params, card)?;
        settings.extend(set_busy_polling(&socket, params, card)?);
        let size_bytes = trial.shape.size_bytes;
        let window = if trial.shape.workload == Workload::Throughput {
            let asked = params.count(card, WINDOW.name);
            let fitting = buffer_bytes(&socket)? / 2 / charge(size_bytes, segment_bytes);
            let wanted = asked.unwrap_or(u32::try_from(fitting).unwrap_or(u32::MAX)).max(1);
            // An acknowledgement comes every half window, so that the client need not stop if at least two messages
            // may be in flight.
            let step = (wanted / 2).max(1);
            let most = wanted.min(2 * step);
            settings.push(Setting {
                name: "window (messages)".to_owned(),
                asked: asked.map(|count| count.to_string()),
                got: most.to_string(),
                clamped: asked.is_some_and(|count| count != most),
            });
            Some(Window { most, step, size_bytes, bytes: 0, messages: 0 })
        } else {
            None
        };
        let endpoint = DescriptorEndpoint::new(Fds::both_ways(socket, card.name)?, params, card, settings)?;
        Ok(Self { endpoint, role, window })
    }
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
            if window.bytes == 0 && window.messages == window.most {
                self.endpoint.receive(&mut [0])?;
                window.messages -= window.step;
            }
            let sent = self.endpoint.send(bytes)?;
            window.bytes += sent;
            if window.bytes >= window.size_bytes {
                window.bytes -= window.size_bytes;
                window.messages += 1;
            }
            return Ok(sent);
        }
        self.endpoint.send(bytes)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match (&mut self.window, self.role) {
            (Some(window), Role::Client) => {
                // Acknowledgements that the server has sent come before its answer.
                while window.messages >= window.step {
                    self.endpoint.receive(&mut [0])?;
                    window.messages -= window.step;
                }
                self.endpoint.receive(into)
            }
            (Some(window), Role::Server) => {
                let count = self.endpoint.receive(into)?;
                window.bytes += count;
                if window.bytes >= window.size_bytes {
                    window.bytes -= window.size_bytes;
                    window.messages += 1;
                }
                if window.messages == window.step {
                    window.messages = 0;
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
}
