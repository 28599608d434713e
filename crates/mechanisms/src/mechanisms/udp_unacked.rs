//! Two connected UDP sockets. The client sends as fast as it can, without acknowledgements: what finds no room in the
//! server's buffer is lost, and the server finds that out from the numbers of what arrived. `udp` loses nothing.
//!
//! After its last message the client sends a request for the answer over another socket, where nothing is lost. On one host that
//! is a pair of Unix sockets. By then everything that can arrive has arrived: over loopback a datagram is in the server's
//! buffer, or dropped, when its send returns.
//!
//! Between hosts the request and the answer go over a TCP connection. A datagram may come later than the request that was sent
//! after it: the server takes what comes until nothing has come for a while.

use crate::contract::{Endpoint, Mechanism, Network, Ticket, TrialContext};
use crate::mechanisms::udp::{Udp, connected_pair};
use crate::support::network::{admit, greet, introduce, is_readable, strangers_setting, welcome};
use crate::support::socket::{RCVBUF, SNDBUF, largest_message, set_buffers};
use model::card::{Card, Reach, Support};
use model::record::Setting;
use model::{Params, Workload};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{read, retry_on_intr, write};
use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, bind, listen, recv, socket_with, socketpair,
};
use std::time::Duration;
use sys::{Errno, Failure, OrFail};

/// How long nothing has come when everything that can arrive between two hosts has arrived.
const LATE: Duration = Duration::from_millis(50);

/// udp(7) on 127.0.0.1.
#[derive(Debug)]
pub(crate) struct UdpUnacked;

impl Mechanism for UdpUnacked {
    const CARD: Card = Card {
        name: "udp-unacked",
        summary: "UDP over loopback, as fast as it can be sent; losses are counted",
        reach: Reach::Network,
        polled: false,
        params: &[SNDBUF, RCVBUF],
        workloads: &[Workload::Throughput],
        limits: "65507 bytes a datagram (IPv4), and SO_SNDBUF less the kernel's overhead; the buffer of net.core.rmem_default bytes holds what waits",
        man: &["udp(7)"],
        ..Udp::CARD
    };
    type Bound = UnackedBound;
    type End = UdpUnackedEndpoint;

    fn probe(params: &Params) -> Support {
        largest_message(|| connected_pair(params, &Self::CARD))
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(UnackedBound, Ticket), Failure> {
        if let Some(network) = trial.network {
            return bind_between_hosts(trial.params, network);
        }
        let (client, server) = connected_pair(trial.params, &Self::CARD)?;
        let (sends, requests) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .or_fail("socketpair", Self::CARD.name)?;
        let endpoint = UdpUnackedEndpoint::new(client, RequestSocket::Sends(sends), trial.params)?;
        Ok((UnackedBound::End(endpoint), Ticket { address: Vec::new(), fds: vec![server, requests] }))
    }

    fn accept(bound: UnackedBound) -> Result<UdpUnackedEndpoint, Failure> {
        match bound {
            UnackedBound::End(endpoint) => Ok(endpoint),
            UnackedBound::Waiting { socket, listener, network, params } => {
                let (requests, strangers) = admit(&network, &listener, Self::CARD.name)?;
                let strangers = strangers + welcome(&network, &socket, Self::CARD.name)?;
                let requests = RequestSocket::Receives(requests);
                let mut endpoint = UdpUnackedEndpoint::new(socket, requests, &params)?;
                endpoint.is_between_hosts = true;
                endpoint.settings.extend(strangers_setting(strangers));
                Ok(endpoint)
            }
        }
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<UdpUnackedEndpoint, Failure> {
        if let Some(network) = &trial.network {
            return connect_between_hosts(trial.params, network, &ticket);
        }
        let [socket, requests] = ticket.descriptors(Self::CARD.name)?;
        UdpUnackedEndpoint::new(socket, RequestSocket::Receives(requests), trial.params)
    }
}

/// What is held between `bind` and `accept`.
#[derive(Debug)]
pub(crate) enum UnackedBound {
    /// The client's endpoint, which is complete.
    End(UdpUnackedEndpoint),
    /// The server's sockets, for messages and for requests, which wait for a client that may be on another host.
    Waiting { socket: OwnedFd, listener: OwnedFd, network: Network, params: Params },
}

/// The server's sockets, and the ports of both as its ticket.
fn bind_between_hosts(params: &Params, network: Network) -> Result<(UnackedBound, Ticket), Failure> {
    let (name, own) = (UdpUnacked::CARD.name, network.own_address());
    let bound = |kind| {
        let socket = socket_with(own.address_family(), kind, SocketFlags::CLOEXEC, None);
        let socket = socket.or_fail("socket", name)?;
        bind(&socket, &own).or_fail("bind", name)?;
        Ok(socket)
    };
    let (socket, listener) = (bound(SocketType::DGRAM)?, bound(SocketType::STREAM)?);
    set_buffers(&socket, params, &UdpUnacked::CARD)?;
    listen(&listener, 1).or_fail("listen", name)?;
    let address = [network.ticket(&socket, name)?, network.ticket(&listener, name)?].concat();
    let waiting = UnackedBound::Waiting { socket, listener, network, params: params.clone() };
    Ok((waiting, Ticket { address, fds: Vec::new() }))
}

/// The client's endpoint to the server of `ticket`.
fn connect_between_hosts(
    params: &Params,
    network: &Network,
    ticket: &Ticket,
) -> Result<UdpUnackedEndpoint, Failure> {
    let name = UdpUnacked::CARD.name;
    let (messages, requests) = ticket
        .address
        .split_at_checked(size_of::<u16>())
        .ok_or_else(|| Failure::from_errno("take the ticket of", name, Errno::INVAL))?;
    let (messages, requests) = (network.address_of(messages, name)?, network.address_of(requests, name)?);
    let socket = |kind| {
        socket_with(messages.address_family(), kind, SocketFlags::CLOEXEC, None).or_fail("socket", name)
    };
    let (stream, datagrams) = (socket(SocketType::STREAM)?, socket(SocketType::DGRAM)?);
    set_buffers(&datagrams, params, &UdpUnacked::CARD)?;
    introduce(network, &stream, &requests, name)?;
    greet(network, &datagrams, &messages, name)?;
    let mut endpoint = UdpUnackedEndpoint::new(datagrams, RequestSocket::Sends(stream), params)?;
    endpoint.is_between_hosts = true;
    Ok(endpoint)
}

/// One endpoint.
#[derive(Debug)]
pub(crate) struct UdpUnackedEndpoint {
    socket: OwnedFd,
    request_socket: RequestSocket,
    /// The answer goes where the request came from, and datagrams may come late.
    is_between_hosts: bool,
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
        Ok(Self { socket, request_socket, is_between_hosts: false, settings })
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
            if self.is_between_hosts {
                return retry_on_intr(|| write(requests, bytes));
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
                let answers = if self.is_between_hosts { sends } else { &self.socket };
                return match retry_on_intr(|| read(answers, &mut *into)) {
                    Ok(0) if self.is_between_hosts => Err(Errno::PIPE),
                    answer => answer,
                };
            }
        };
        let mut requested = false;
        loop {
            match recv(&self.socket, &mut *into, RecvFlags::DONTWAIT) {
                // What has not arrived by the client's request, or a while after it, never will.
                Err(Errno::AGAIN) if requested => {
                    if !self.is_between_hosts || !is_readable(self.socket.as_fd(), LATE)? {
                        return Err(Errno::NODATA);
                    }
                }
                Err(Errno::AGAIN) => {
                    let mut either =
                        [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(requests, PollFlags::IN)];
                    match poll(&mut either, None) {
                        Err(Errno::INTR) => {}
                        ready => drop(ready?),
                    }
                    requested = !either[1].revents().is_empty();
                    if self.is_between_hosts && either[1].revents().contains(PollFlags::HUP) {
                        return Err(Errno::PIPE);
                    }
                }
                Err(Errno::INTR) => {}
                received => return received.map(|(count, _)| count),
            }
        }
    }

    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }

    fn network_socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}
