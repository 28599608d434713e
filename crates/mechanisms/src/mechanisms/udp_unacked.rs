//! Two connected UDP sockets, sent to as fast as the client can, without an acknowledgement: what finds no room in server's
//! buffer is lost, and the server counts it by the numbers of what came. Its sibling that loses nothing is [`crate::udp`].
//!
//! When the client has sent everything it asks for the server's word over a pair of Unix sockets beside, where nothing is lost: by
//! then what has come has come, for over loopback a datagram is in the server's buffer, or dropped, when its send returns.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::mechanisms::udp::{Udp, connected_pair};
use crate::support::socket::{RCVBUF, SNDBUF, largest_message, set_buffers};
use model::card::{Card, Support};
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
        polled: false,
        params: &[SNDBUF, RCVBUF],
        workloads: &[Workload::Throughput],
        limits: "65507 bytes a datagram (IPv4), and SO_SNDBUF less the kernel's overhead; net.core.rmem_default holds what waits",
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
        let (asks, is_asked) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .or_fail("socketpair", Self::CARD.name)?;
        let end = UdpUnackedEndpoint::new(client, Beside::Asks(asks), trial.params)?;
        Ok((end, Ticket { address: Vec::new(), fds: vec![server, is_asked] }))
    }

    fn accept(bound: UdpUnackedEndpoint) -> Result<UdpUnackedEndpoint, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<UdpUnackedEndpoint, Failure> {
        let [socket, is_asked] = ticket.descriptors(Self::CARD.name)?;
        UdpUnackedEndpoint::new(socket, Beside::IsAsked(is_asked), trial.params)
    }
}

/// One end.
#[derive(Debug)]
pub(crate) struct UdpUnackedEndpoint {
    socket: OwnedFd,
    beside: Beside,
    settings: Vec<Setting>,
}

/// An end's socket beside.
#[derive(Debug)]
enum Beside {
    /// The client's.
    Asks(OwnedFd),
    /// The server's.
    IsAsked(OwnedFd),
}

impl UdpUnackedEndpoint {
    fn new(socket: OwnedFd, beside: Beside, params: &Params) -> Result<Self, Failure> {
        let settings = set_buffers(&socket, params, &UdpUnacked::CARD)?;
        Ok(Self { socket, beside, settings })
    }
}

impl Endpoint for UdpUnackedEndpoint {
    const LOSES: bool = true;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if let Beside::IsAsked(is_asked) = &self.beside {
            match retry_on_intr(|| read(is_asked, &mut [0])) {
                Ok(0) => return Err(Errno::PIPE),
                asked => drop(asked?),
            }
        }
        retry_on_intr(|| write(&self.socket, bytes))
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let is_asked = match &self.beside {
            Beside::IsAsked(is_asked) => is_asked,
            Beside::Asks(asks) => {
                retry_on_intr(|| write(asks, &[1]))?;
                return retry_on_intr(|| read(&self.socket, &mut *into));
            }
        };
        let mut asked = false;
        loop {
            match recv(&self.socket, &mut *into, RecvFlags::DONTWAIT) {
                // What is not there when the client has asked will not come.
                Err(Errno::AGAIN) if asked => return Err(Errno::NODATA),
                Err(Errno::AGAIN) => {
                    let mut either =
                        [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(is_asked, PollFlags::IN)];
                    match poll(&mut either, None) {
                        Err(Errno::INTR) => {}
                        ready => drop(ready?),
                    }
                    asked = !either[1].revents().is_empty();
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
