//! One TCP connection over the loopback interface.

use crate::support::cards::CONNECTION;
use crate::support::cold::MESSAGE_MEMORY;
use crate::support::connect_each::SERVER;
use crate::support::connection::NODELAY;
use crate::support::descriptor::DescriptorEndpoint;
use crate::support::inet_stream::InetStream;
use crate::support::socket::{BUSY_POLL, RCVBUF, SNDBUF};
use crate::support::wait::WAIT;
use model::card::Card;
use rustix::net::Protocol;

/// tcp(7) on 127.0.0.1.
#[derive(Debug)]
pub(crate) struct Tcp;

impl InetStream for Tcp {
    const PROTOCOL: Option<Protocol> = None;
    const CARD: Card = Card {
        name: "tcp",
        summary: "a TCP connection over loopback (127.0.0.1)",
        params: &[NODELAY, SNDBUF, RCVBUF, WAIT, SERVER, BUSY_POLL, MESSAGE_MEMORY],
        limits: "any message size; the kernel tunes buffers within net.ipv4.tcp_wmem and tcp_rmem unless they are set",
        man: &["tcp(7)", "ip(7)"],
        ..CONNECTION
    };
    type End = DescriptorEndpoint;
}
