//! One multipath TCP connection over the loopback interface, with a single path.

use crate::mechanisms::tcp::Tcp;
use crate::support::descriptor::DescriptorEndpoint;
use crate::support::inet_stream::InetStream;
use model::card::Card;
use rustix::net::{Protocol, ipproto};

/// socket(2) with `IPPROTO_MPTCP` (Linux 5.6).
#[derive(Debug)]
pub(crate) struct Mptcp;

impl InetStream for Mptcp {
    const PROTOCOL: Option<Protocol> = Some(ipproto::MPTCP);
    const CARD: Card = Card {
        name: "mptcp",
        summary: "a multipath TCP connection over loopback, with a single path",
        limits: "any message size; CONFIG_MPTCP and net.mptcp.enabled=1",
        man: &["https://docs.kernel.org/networking/mptcp.html", "RFC 8684"],
        ..Tcp::CARD
    };
    type End = DescriptorEndpoint;
}
