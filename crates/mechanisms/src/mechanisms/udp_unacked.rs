//! Two connected UDP sockets. The client sends as fast as it can, without acknowledgements: what finds no room in the
//! server's buffer is lost, and the server finds that out from the numbers of what arrived. `udp` loses nothing.
//!
//! After its last message the client sends a request for the answer over a pair of Unix sockets, where nothing is
//! lost. By then everything that can arrive has arrived: over loopback a datagram is in the server's buffer, or
//! dropped, when its send returns.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::mechanisms::udp::{Udp, connected_pair};
use crate::support::socket::{RCVBUF, SNDBUF, largest_message, set_buffers};
use model::card::{Card, Reach, Support};
use model::record::Setting;
use model::{Params, Workload};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::{read, retry_on_intr, write};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
use sys::{Errno, Failure, OrFail};

/// udp(7) on 127.0.0.1.
#[derive(Debug)]
pub(crate) struct UdpUnacked;

impl Mechanism for UdpUnacked {
    const CARD: Card = Card {
        name: "udp-unacked",
        summary: "UDP over loopback, as fast as it can be sent; losses are counted",
        // Its requests go over a pair of Unix sockets.
        reach: Reach::Related,
        polled: false,
        params: &[SNDBUF, RCVBUF],
        workloads: &[Workload::Throughput],
        limits: "65507 bytes a datagram (IPv4), and SO_SNDBUF less the kernel's overhead; the buffer of net.core.rmem_default bytes holds what waits",
        man: &["udp(7)"],
        ..Udp::CARD
    };
    type Bound = UdpUnackedEndpoint;
    type End = UdpUnackedEndpoint;

    fn probe(params: &Params) -> Support {
        largest_message(|| connected_pair(params, &Self::CARD))
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(UdpUnackedEndpoint, Ticket), Failure> {
        let (client, server) = connected_pair(trial.params, &Self::CARD)?;
        let (sends, requests) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .or_fail("socketpair", Self::CARD.name)?;
        let endpoint = UdpUnackedEndpoint::new(client, RequestSocket::Sends(sends), trial.params)?;
        Ok((endpoint, Ticket { address: Vec::new(), fds: vec![server, requests] }))
    }

    fn accept(bound: UdpUnackedEndpoint) -> Result<UdpUnackedEndpoint, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<UdpUnackedEndpoint, Failure> {
        let [socket, requests] = ticket.descriptors(Self::CARD.name)?;
        UdpUnackedEndpoint::new(socket, RequestSocket::Receives(requests), trial.params)
    }
}

/// One endpoint.
#[derive(Debug)]
pub(crate) struct UdpUnackedEndpoint {
    socket: OwnedFd,
    request_socket: RequestSocket,
    settings: Vec<Setting>,
}

/// The socket for the request.
#[derive(Debug)]
enum RequestSocket {
    /// In the client, which sends the request.
    Sends(OwnedFd),
    /// In the server, which receives it.
    Receives(OwnedFd),
}

impl UdpUnackedEndpoint {
    fn new(socket: OwnedFd, request_socket: RequestSocket, params: &Params) -> Result<Self, Failure> {
        let settings = set_buffers(&socket, params, &UdpUnacked::CARD)?;
        Ok(Self { socket, request_socket, settings })
    }
}

impl Endpoint for UdpUnackedEndpoint {
    const LOSES: bool = true;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if let RequestSocket::Receives(requests) = &self.request_socket {
            match retry_on_intr(|| read(requests, &mut [0])) {
                Ok(0) => return Err(Errno::PIPE),
                request => drop(request?),
            }
        }
        retry_on_intr(|| write(&self.socket, bytes))
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let requests = match &self.request_socket {
            RequestSocket::Receives(requests) => requests,
            RequestSocket::Sends(sends) => {
                retry_on_intr(|| write(sends, &[1]))?;
                return retry_on_intr(|| read(&self.socket, &mut *into));
            }
        };
        let mut requested = false;
        loop {
            match recv(&self.socket, &mut *into, RecvFlags::DONTWAIT) {
                // What has not arrived by the client's request never will.
                Err(Errno::AGAIN) if requested => return Err(Errno::NODATA),
                Err(Errno::AGAIN) => {
                    let mut either =
                        [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(requests, PollFlags::IN)];
                    match poll(&mut either, None) {
                        Err(Errno::INTR) => {}
                        ready => drop(ready?),
                    }
                    requested = !either[1].revents().is_empty();
                }
                Err(Errno::INTR) => {}
                received => return received.map(|(count, _)| count),
            }
        }
    }

    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }
}
