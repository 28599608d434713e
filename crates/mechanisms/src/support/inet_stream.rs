//! Connections between IP addresses, those of loopback unless the endpoints may be on two hosts. Not a mechanism itself.

use crate::contract::TrialContext;
use crate::support::connected::Connected;
use crate::support::connection::{Connection, ListenerAddress, connected_pair};
use crate::support::descriptor::OverDescriptors;
use crate::support::probe::try_message;
use crate::support::socket::largest_message;
use model::Params;
use model::card::{Card, Framing, Support};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, Protocol, SocketAddrAny, SocketFlags, SocketType, bind, getsockname, socket_with,
};
use std::net::{Ipv4Addr, SocketAddrV4};
use sys::{Errno, Failure, OrFail};

/// A protocol of connections between IP addresses.
pub(crate) trait InetStream: 'static {
    /// What the mechanism declares about itself.
    const CARD: Card;
    /// The protocol; `None` is TCP.
    const PROTOCOL: Option<Protocol>;
    /// The endpoints of a connection that lasts.
    type End: OverDescriptors;
}

/// Any free port of 127.0.0.1.
const LOOPBACK: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

impl<I: InetStream> Connection for I {
    const CARD: Card = I::CARD;
    const TYPE: SocketType = SocketType::STREAM;
    const PROTOCOL: Option<Protocol> = I::PROTOCOL;
    type End = I::End;

    fn probe(params: &Params) -> Support {
        match try_message::<Connected<Self>>(params) {
            Support::Yes { .. } if I::CARD.framing == Framing::Message => {
                largest_message(|| connected_pair::<Self>(SocketAddrAny::from(LOOPBACK).into(), params))
            }
            tried => tried,
        }
    }

    fn listener_address(trial: &TrialContext<'_>) -> Result<ListenerAddress, Failure> {
        Ok(match trial.network {
            None => SocketAddrAny::from(LOOPBACK).into(),
            Some(network) => network.own_address().into(),
        })
    }
}

/// A new IPv4 socket.
pub(crate) fn inet_socket(
    kind: SocketType,
    protocol: Option<Protocol>,
    name: &str,
) -> Result<OwnedFd, Failure> {
    socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, protocol).or_fail("socket", name)
}

/// Binds `socket` to a free port of 127.0.0.1, and returns the port.
pub(crate) fn bind_to_loopback(socket: &OwnedFd, name: &str) -> Result<u16, Failure> {
    bind(socket, &LOOPBACK).or_fail("bind", format!("{name} 127.0.0.1"))?;
    let address: SocketAddrAny = getsockname(socket).or_fail("getsockname", name)?;
    let address = SocketAddrV4::try_from(address)
        .map_err(|_| Failure::from_errno("getsockname", name, Errno::AFNOSUPPORT))?;
    Ok(address.port())
}
