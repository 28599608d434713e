//! One SCTP association over the loopback interface, used like a connection.

use crate::mechanisms::tcp::Tcp;
use crate::support::cards::OF_NETWORK;
use crate::support::connect_each::SERVER;
use crate::support::descriptor::DescriptorEndpoint;
use crate::support::inet_stream::InetStream;
use crate::support::socket::{RCVBUF, SNDBUF};
use crate::support::wait::WAIT;
use model::card::{Card, Framing};
use model::semantics::{Atomic, Semantics};
use rustix::net::{Protocol, ipproto};

/// sctp(7), one-to-one style.
#[derive(Debug)]
pub(crate) struct Sctp;

impl InetStream for Sctp {
    const PROTOCOL: Option<Protocol> = Some(ipproto::SCTP);
    const CARD: Card = Card {
        name: "sctp",
        summary: "an SCTP association over loopback",
        framing: Framing::Message,
        // SCTP has its own option in place of TCP_NODELAY, and sends small messages at once on loopback.
        params: &[SNDBUF, RCVBUF, WAIT, SERVER],
        limits: "a message fits in SO_SNDBUF; CONFIG_IP_SCTP: 'modprobe sctp'",
        semantics: Semantics { atomic: Atomic::Message, ..OF_NETWORK },
        man: &["sctp(7)", "RFC 9260"],
        ..Tcp::CARD
    };
    type End = DescriptorEndpoint;
}
