//! Two connected UDP sockets over the loopback interface, with a window, so that nothing is lost.
//!
//! The kernel drops a datagram that finds no room in the receive buffer and tells nobody. A stream
//! of messages therefore has at most `window` of them unacknowledged; server acknowledges every half
//! window with a datagram of one byte. The other workloads answer each message and need no window.

use crate::contract::{Endpoint, Mechanism, Ticket, Trial};
use crate::descriptor::{DescriptorEnd, Fds, WAIT};
use crate::inet_stream::{bind_to_loopback, inet_socket};
use crate::socket::{BUSY_POLL, RCVBUF, SNDBUF, largest_message, set_buffers, set_busy_polling};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Workload};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::net::{SocketType, connect, sockopt};
use std::net::{Ipv4Addr, SocketAddrV4};
use sys::{Errno, Failure, OrFail};

/// udp(7) on 127.0.0.1.
#[derive(Debug)]
pub struct Udp;

/// How many messages may be under way.
pub(crate) const WINDOW: Param = Param {
    name: "window",
    summary: "messages that may be unacknowledged in a throughput workload; by default what surely fits the receive buffer",
    domain: Domain::Count,
    default: None,
};

impl Mechanism for Udp {
    const CARD: Card = Card {
        name: "udp",
        kind: CardKind::Mechanism,
        summary: "UDP over loopback, in a window so that nothing is lost",
        framing: Framing::Message,
        reach: Reach::Network,
        payload: Payload::Bytes,
        fds: false,
        hangup: false,
        polled: true,
        one_endpoint: false,
        empty: true,
        params: &[WINDOW, SNDBUF, RCVBUF, WAIT, BUSY_POLL],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: "65507 bytes a datagram (IPv4), and SO_SNDBUF less the kernel's overhead",
        man: &["udp(7)", "ip(7)"],
    };
    type Bound = UdpEnd;
    type End = UdpEnd;

    fn probe(params: &Params) -> Support {
        largest_message(|| connected_pair(params, &Self::CARD))
    }

    fn bind(trial: &Trial<'_>) -> Result<(UdpEnd, Ticket), Failure> {
        // Client makes both sockets, so that each is connected to the other before the first datagram.
        let (client, server) = connected_pair(trial.params, &Self::CARD)?;
        Ok((
            UdpEnd::new(client, trial, Role::Client, &Self::CARD, usize::MAX)?,
            Ticket { address: Vec::new(), fds: vec![server] },
        ))
    }

    fn accept(bound: UdpEnd) -> Result<UdpEnd, Failure> {
        Ok(bound)
    }

    fn connect(trial: &Trial<'_>, ticket: Ticket) -> Result<UdpEnd, Failure> {
        let [socket] = ticket.descriptors("udp")?;
        UdpEnd::new(socket, trial, Role::Server, &Self::CARD, usize::MAX)
    }
}

/// Two sockets of a row with `card`, each connected to the other.
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

/// One end, and its part in the window.
#[derive(Debug)]
pub struct UdpEnd {
    end: DescriptorEnd,
    role: Role,
    window: Option<Window>,
}

/// At most `most` messages are unacknowledged; server acknowledges every `step` of them.
#[derive(Debug)]
struct Window {
    most: u32,
    step: u32,
    /// Of a message, and of that under way which server has by now.
    size_bytes: usize,
    bytes: usize,
    /// Client: messages sent since the last acknowledgement that was taken. Server: received since the last one sent.
    messages: u32,
}

impl UdpEnd {
    /// An end of a row with `card`, whose messages travel in datagrams of at most `segment_bytes`.
    pub(crate) fn new(
        socket: OwnedFd,
        trial: &Trial<'_>,
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
            // An acknowledgement every half window, so that client need not stop where it may have two under way.
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
        let end = DescriptorEnd::new(Fds::both_ways(socket, card.name)?, params, card, settings)?;
        Ok(Self { end, role, window })
    }
}

/// What a message of `size_bytes` in datagrams of at most `segment_bytes` is charged in the receive buffer, at most.
///
/// The kernel charges a datagram the true size of its memory, which is below twice its length and a kilobyte more, and gives
/// back what was read only in portions of up to a quarter of the buffer (`udp_rmem_release`): of several messages, half of
/// the buffer can be relied upon. An empty message is a datagram, too.
pub(crate) fn charge(size_bytes: usize, segment_bytes: usize) -> usize {
    2 * size_bytes + 1024 * size_bytes.div_ceil(segment_bytes).max(1)
}

/// The receive buffer of `socket`.
pub(crate) fn buffer_bytes(socket: &OwnedFd) -> Result<usize, Failure> {
    sockopt::socket_recv_buffer_size(socket).or_fail("getsockopt(SO_RCVBUF)", "udp")
}

impl Endpoint for UdpEnd {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if self.role == Role::Client
            && let Some(window) = &mut self.window
        {
            if window.bytes == 0 && window.messages == window.most {
                self.end.receive(&mut [0])?;
                window.messages -= window.step;
            }
            let sent = self.end.send(bytes)?;
            window.bytes += sent;
            if window.bytes >= window.size_bytes {
                window.bytes -= window.size_bytes;
                window.messages += 1;
            }
            return Ok(sent);
        }
        self.end.send(bytes)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match (&mut self.window, self.role) {
            (Some(window), Role::Client) => {
                // Acknowledgements that server has sent come before its answer.
                while window.messages >= window.step {
                    self.end.receive(&mut [0])?;
                    window.messages -= window.step;
                }
                self.end.receive(into)
            }
            (Some(window), Role::Server) => {
                let count = self.end.receive(into)?;
                window.bytes += count;
                if window.bytes >= window.size_bytes {
                    window.bytes -= window.size_bytes;
                    window.messages += 1;
                }
                if window.messages == window.step {
                    window.messages = 0;
                    self.end.send(&[0])?;
                }
                Ok(count)
            }
            (None, _) => self.end.receive(into),
        }
    }

    fn settings(&self) -> Vec<Setting> {
        self.end.settings()
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        self.end.input()
    }
}
