//! One SCTP association over the loopback interface, used like a connection.

use crate::contract::{Endpoint, Shape};
use crate::mechanisms::tcp::Tcp;
use crate::support::cards::OF_NETWORK;
use crate::support::connect_each::SERVER;
use crate::support::connection::NODELAY;
use crate::support::descriptor::{DescriptorEndpoint, Fds, OverDescriptors};
use crate::support::inet_stream::InetStream;
use crate::support::socket::{RCVBUF, SNDBUF};
use crate::support::wait::WAIT;
use model::Params;
use model::card::{Card, Framing};
use model::record::Setting;
use model::semantics::{Atomic, Semantics};
use rustix::fd::BorrowedFd;
use rustix::io::IoSliceMut;
use rustix::net::{Protocol, RecvAncillaryBuffer, RecvFlags, ReturnFlags, ipproto, recvmsg};
use sys::{Errno, Failure};

/// sctp(7), one-to-one style.
#[derive(Debug)]
pub(crate) struct Sctp;

impl InetStream for Sctp {
    const PROTOCOL: Option<Protocol> = Some(ipproto::SCTP);
    const CARD: Card = Card {
        name: "sctp",
        summary: "an SCTP association over loopback",
        framing: Framing::Message,
        params: &[NODELAY, SNDBUF, RCVBUF, WAIT, SERVER],
        limits: "a message fits in SO_SNDBUF; what finds no room in the receive buffer is sent again after a second; CONFIG_IP_SCTP: 'modprobe sctp'",
        semantics: Semantics { atomic: Atomic::Message, ..OF_NETWORK },
        man: &["sctp(7)", "RFC 9260"],
        ..Tcp::CARD
    };
    type End = SctpEndpoint;
}

/// An endpoint that receives whole messages. The kernel delivers one that fills the receive buffer in pieces, and only recvmsg(2) says
/// which of them is the last (RFC 6458, 6.1.7).
#[derive(Debug)]
pub(crate) struct SctpEndpoint(DescriptorEndpoint);

impl OverDescriptors for SctpEndpoint {
    fn over(
        fds: Fds,
        params: &Params,
        _: Shape,
        card: &Card,
        settings: Vec<Setting>,
    ) -> Result<Self, Failure> {
        DescriptorEndpoint::new(fds, params, card, settings).map(Self)
    }
}

impl Endpoint for SctpEndpoint {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.0.send(bytes)
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let mut bytes = 0;
        loop {
            let piece = self.0.receive_by(|input| {
                let mut room = [IoSliceMut::new(&mut into[bytes..])];
                recvmsg(input, &mut room, &mut RecvAncillaryBuffer::default(), RecvFlags::empty())
            });
            match piece {
                // There are no empty messages: the peer has closed, or left something unread.
                Ok(piece) if piece.bytes == 0 => return Err(Errno::PIPE),
                Err(Errno::CONNRESET) => return Err(Errno::PIPE),
                Err(errno) => return Err(errno),
                Ok(piece) => {
                    bytes += piece.bytes;
                    if piece.flags.contains(ReturnFlags::EOR) || bytes == into.len() {
                        return Ok(bytes);
                    }
                }
            }
        }
    }

    fn settings(&self) -> Vec<Setting> {
        self.0.settings()
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        self.0.input()
    }
}
