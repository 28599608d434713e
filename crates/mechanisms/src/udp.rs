//! Two connected UDP sockets over the loopback interface, with a window, so that nothing is lost.
//!
//! The kernel drops a datagram that finds no room in the receive buffer and tells nobody. A stream
//! of messages therefore has at most `window` of them unacknowledged; far acknowledges every half
//! window with a datagram of one byte. The other workloads answer each message and need no window.

use crate::contract::{Endpoint, Launch, Mechanism, Ticket};
use crate::descriptor::{DescriptorEnd, Fds, WAIT};
use crate::inet_stream::{bind_to_loopback, inet_socket};
use crate::socket::{RCVBUF, SNDBUF, largest_message, set_buffers};
use model::card::{Card, Framing, Kind, Payload, Reach, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Workload};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::net::{SocketType, connect, sockopt};
use std::net::{Ipv4Addr, SocketAddrV4};
use sys::{Errno, Failure, OrFail};

/// udp(7) on 127.0.0.1.
#[derive(Debug)]
pub struct Udp;

impl Mechanism for Udp {
    const CARD: Card = Card {
        name: "udp",
        kind: Kind::Mechanism,
        summary: "UDP over loopback, in a window so that nothing is lost",
        framing: Framing::Message,
        reach: Reach::Network,
        payload: Payload::Bytes,
        fds: false,
        hangup: false,
        polled: true,
        params: &[
            Param {
                name: "window",
                summary: "messages that may be unacknowledged in a throughput workload; by default what surely fits the receive buffer",
                domain: Domain::Count,
                default: None,
            },
            SNDBUF,
            RCVBUF,
            WAIT,
        ],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: "65507 bytes a datagram (IPv4), and SO_SNDBUF less the kernel's overhead",
        man: &["udp(7)", "ip(7)"],
    };
    type Bound = UdpEnd;
    type End = UdpEnd;

    fn probe(params: &Params) -> Support {
        largest_message(|| connected_pair(params))
    }

    fn bind(launch: &Launch<'_>) -> Result<(UdpEnd, Ticket), Failure> {
        // Near makes both sockets, so that each is connected to the other before the first datagram.
        let (near, far) = connected_pair(launch.params)?;
        Ok((UdpEnd::new(near, launch, Role::Near)?, Ticket { address: Vec::new(), fds: vec![far] }))
    }

    fn accept(bound: UdpEnd) -> Result<UdpEnd, Failure> {
        Ok(bound)
    }

    fn connect(launch: &Launch<'_>, ticket: Ticket) -> Result<UdpEnd, Failure> {
        let [socket] = ticket.descriptors("udp")?;
        UdpEnd::new(socket, launch, Role::Far)
    }
}

fn connected_pair(params: &Params) -> Result<(OwnedFd, OwnedFd), Failure> {
    let (near, far) =
        (inet_socket(SocketType::DGRAM, None, "udp")?, inet_socket(SocketType::DGRAM, None, "udp")?);
    set_buffers(&near, params, &Udp::CARD)?;
    set_buffers(&far, params, &Udp::CARD)?;
    let (near_port, far_port) = (bind_to_loopback(&near, "udp")?, bind_to_loopback(&far, "udp")?);
    for (socket, port) in [(&near, far_port), (&far, near_port)] {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        connect(socket, &address).or_fail("connect", address)?;
    }
    Ok((near, far))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Near,
    Far,
}

/// One end, and its part in the window.
#[derive(Debug)]
pub struct UdpEnd {
    end: DescriptorEnd,
    role: Role,
    window: Option<Window>,
}

/// At most twice `half` messages are unacknowledged.
#[derive(Debug)]
struct Window {
    half: u32,
    /// Near: messages sent since the last acknowledgement that was taken. Far: received since the last one sent.
    messages: u32,
}

impl UdpEnd {
    fn new(socket: OwnedFd, launch: &Launch<'_>, role: Role) -> Result<Self, Failure> {
        let mut settings = set_buffers(&socket, launch.params, &Udp::CARD)?;
        let window = if launch.shape.workload == Workload::Throughput {
            let asked = launch.params.count(&Udp::CARD, "window");
            let half = (asked.unwrap_or(fitting(&socket, launch.shape.size_bytes)?) / 2).max(1);
            settings.push(Setting {
                name: "window (messages)".to_owned(),
                asked: asked.map(|count| count.to_string()),
                got: (2 * half).to_string(),
                clamped: asked.is_some_and(|count| count != 2 * half),
            });
            Some(Window { half, messages: 0 })
        } else {
            None
        };
        let end = DescriptorEnd::new(Fds::both_ways(socket, "udp")?, launch.params, &Udp::CARD, settings)?;
        Ok(Self { end, role, window })
    }
}

/// How many messages of `size_bytes` surely fit the receive buffer.
///
/// The kernel charges a datagram the true size of its memory, which is below twice its length and a
/// kilobyte more, and gives back what was read only in portions of up to a quarter of the buffer
/// (`udp_rmem_release`): half of the buffer can be relied upon.
fn fitting(socket: &OwnedFd, size_bytes: usize) -> Result<u32, Failure> {
    let buffer = sockopt::socket_recv_buffer_size(socket).or_fail("getsockopt(SO_RCVBUF)", "udp")?;
    Ok(u32::try_from(buffer / 2 / (2 * size_bytes + 1024)).unwrap_or(u32::MAX))
}

impl Endpoint for UdpEnd {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if self.role == Role::Near
            && let Some(window) = &mut self.window
        {
            if window.messages == 2 * window.half {
                self.end.receive(&mut [0])?;
                window.messages -= window.half;
            }
            window.messages += 1;
        }
        self.end.send(bytes)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match (&mut self.window, self.role) {
            (Some(window), Role::Near) => {
                // Acknowledgements that far has sent come before its answer.
                while window.messages >= window.half {
                    self.end.receive(&mut [0])?;
                    window.messages -= window.half;
                }
                self.end.receive(into)
            }
            (Some(window), Role::Far) => {
                let count = self.end.receive(into)?;
                window.messages += 1;
                if window.messages == window.half {
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
