//! Two connected UDP sockets whose sender passes many datagrams to the kernel in one call (`UDP_SEGMENT`), as QUIC
//! implementations do. `udp` says what is lost and how that is avoided.

use crate::contract::{Endpoint, Mechanism, Shape, Ticket, TrialContext};
use crate::mechanisms::udp::{
    Udp, UdpBound, UdpEndpoint, WINDOW, WindowRole, accept_udp, bind_udp, buffer_bytes, charge, connect_udp,
    connected_pair,
};
use crate::support::probe::{largest_below, support_of, try_message};
use crate::support::socket::{RCVBUF, SNDBUF};
use crate::support::wait::WAIT;
use model::card::{Card, Framing, Support};
use model::record::Setting;
use model::semantics::{Atomic, Semantics};
use model::{Domain, Param, Params, Size};
use rustix::fd::{BorrowedFd, OwnedFd};
use sys::socket_option::{set_udp_gro, set_udp_segment};
use sys::{Errno, Failure, OrFail};

/// udp(7), `UDP_SEGMENT` and `UDP_GRO`.
#[derive(Debug)]
pub(crate) struct UdpGso;

const SEGMENT: Param = Param {
    name: "segment",
    summary: "the size of the datagrams that the kernel makes of one send; 1472 bytes fit in an Ethernet frame",
    domain: Domain::Size,
    default: Some("1472"),
};

const GRO: Param = Param {
    name: "gro",
    summary: "let the kernel join the datagrams of one send again for the receiver (UDP_GRO)",
    domain: Domain::Choice(&["off", "on"]),
    default: Some("off"),
};

/// The most datagrams that the kernel makes of one send (`UDP_MAX_SEGMENTS`: 64 before Linux 6.9, 128 since).
const MOST_SEGMENTS: usize = 64;
/// The most bytes of one send: an IPv4 packet less its headers.
const MOST_BYTES: usize = 65_507;

impl Mechanism for UdpGso {
    const CARD: Card = Card {
        name: "udp-gso",
        summary: "UDP over loopback, many datagrams in one send (UDP_SEGMENT)",
        framing: Framing::Stream,
        empty: false,
        params: &[SEGMENT, GRO, WINDOW, SNDBUF, RCVBUF, WAIT],
        limits: "what certainly fits in the receive buffer (rcvbuf=, net.core.rmem_max); 65507 bytes and 64 datagrams a send",
        semantics: Semantics { atomic: Atomic::Nothing, most_bytes: None, ..Udp::CARD.semantics },
        man: &["udp(7)"],
        ..Udp::CARD
    };
    type Bound = UdpBound<UdpGsoEndpoint>;
    type End = UdpGsoEndpoint;

    fn probe(params: &Params) -> Support {
        match try_message::<Self>(params) {
            Support::Yes { .. } => {}
            no => return no,
        }
        // If a part of a message were lost, nobody would notice: all of it must fit in the buffer.
        let segment = segment_bytes(params);
        let largest = connected_pair(params, &Self::CARD).and_then(|(socket, _)| {
            let buffer = buffer_bytes(&socket)?;
            largest_below(buffer, |size| Ok(charge(size, segment) <= buffer))
        });
        match largest {
            Ok(largest) => Support::Yes { largest_bytes: Some(largest as u64) },
            failed => support_of(failed),
        }
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        bind_udp(trial, &Self::CARD, segment_bytes(trial.params), UdpGsoEndpoint::new)
    }

    fn accept(bound: Self::Bound) -> Result<UdpGsoEndpoint, Failure> {
        accept_udp(bound, &Self::CARD, UdpGsoEndpoint::new)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<UdpGsoEndpoint, Failure> {
        connect_udp(trial, ticket, &Self::CARD, UdpGsoEndpoint::new)
    }
}

fn segment_bytes(params: &Params) -> usize {
    // The card has a default, so that there is always a size.
    params.size(&UdpGso::CARD, SEGMENT.name).map_or(1, Size::as_usize)
}

/// An endpoint of `udp`, which sends as much as one call takes.
#[derive(Debug)]
pub(crate) struct UdpGsoEndpoint {
    endpoint: UdpEndpoint,
    most_bytes: usize,
}

impl UdpGsoEndpoint {
    fn new(socket: OwnedFd, params: &Params, shape: Shape, role: WindowRole) -> Result<Self, Failure> {
        let card = &UdpGso::CARD;
        let segment = segment_bytes(params);
        let too_large = || Failure::from_errno("set the segment of", card.name, Errno::MSGSIZE);
        let size_bytes = u16::try_from(segment).map_err(|_| too_large())?;
        set_udp_segment(&socket, size_bytes).or_fail("setsockopt(UDP_SEGMENT)", card.name)?;
        if params.text(card, GRO.name) == Some("on") {
            set_udp_gro(&socket).or_fail("setsockopt(UDP_GRO)", card.name)?;
        }
        let most_bytes = (MOST_SEGMENTS * segment).min(MOST_BYTES / segment * segment).max(1);
        Ok(Self { endpoint: UdpEndpoint::new(socket, params, shape, role, card, segment)?, most_bytes })
    }
}

impl Endpoint for UdpGsoEndpoint {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.endpoint.send(&bytes[..bytes.len().min(self.most_bytes)])
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.endpoint.receive(into)
    }

    fn settings(&self) -> Vec<Setting> {
        self.endpoint.settings()
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        self.endpoint.input()
    }

    fn network_socket(&self) -> Option<BorrowedFd<'_>> {
        self.endpoint.network_socket()
    }
}
