//! What connections over the loopback interface share: a listener, and both ends. Not a mechanism itself.

use crate::contract::{Launch, Mechanism, Shape, Ticket};
use crate::descriptor::{Fds, OverDescriptors, tried};
use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, Param, Params};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, Protocol, SocketAddrAny, SocketFlags, SocketType, accept_with, bind, connect, getsockname,
    listen, socket_with, sockopt,
};
use std::marker::PhantomData;
use std::net::{Ipv4Addr, SocketAddrV4};
use sys::{Errno, Failure, OrFail};

/// `TCP_NODELAY`, tcp(7).
pub(crate) const NODELAY: Param = Param {
    name: "nodelay",
    summary: "send small segments at once (TCP_NODELAY)",
    domain: Domain::Choice(&["on", "off"]),
    default: Some("on"),
};

/// A protocol of connections over IPv4.
pub trait InetStream {
    /// What it declares about itself.
    const CARD: Card;
    /// The protocol; `None` is TCP.
    const PROTOCOL: Option<Protocol>;
    /// Its ends.
    type End: OverDescriptors;
}

/// An [`InetStream`] as a row of the table.
#[derive(Debug)]
pub struct Loopback<I>(PhantomData<I>);

/// A listening socket and how its connection is to be set.
#[derive(Debug)]
pub struct Bound {
    listener: OwnedFd,
    settings: Vec<Setting>,
    params: Params,
    shape: Shape,
}

impl<I: InetStream> Mechanism for Loopback<I> {
    const CARD: Card = I::CARD;
    type Bound = Bound;
    type End = I::End;

    fn probe(params: &Params) -> Support {
        tried::<Self>(params)
    }

    fn bind(launch: &Launch<'_>) -> Result<(Bound, Ticket), Failure> {
        let (listener, settings) = Self::open(launch.params)?;
        let port = Self::listen_on(&listener)?;
        let ticket = Ticket { address: port.to_be_bytes().to_vec(), fds: Vec::new() };
        let Launch { params, shape, .. } = *launch;
        Ok((Bound { listener, settings, params: params.clone(), shape }, ticket))
    }

    fn accept(bound: Bound) -> Result<I::End, Failure> {
        let Bound { listener, settings, params, shape } = bound;
        let connection = accept_with(&listener, SocketFlags::CLOEXEC).or_fail("accept4", I::CARD.name)?;
        Self::end(connection, &params, shape, settings)
    }

    fn connect(launch: &Launch<'_>, ticket: Ticket) -> Result<I::End, Failure> {
        let (socket, settings) = Self::open(launch.params)?;
        let port = ticket.address.as_slice().try_into().map(u16::from_be_bytes);
        let port = port.map_err(|_| Failure::of("take the ticket of", I::CARD.name, Errno::INVAL))?;
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        connect(&socket, &address).or_fail("connect", address)?;
        Self::end(socket, launch.params, launch.shape, settings)
    }
}

impl<I: InetStream> Loopback<I> {
    /// A socket with its buffers set: the kernel fixes the window by them when it connects.
    fn open(params: &Params) -> Result<(OwnedFd, Vec<Setting>), Failure> {
        let socket = inet_socket(SocketType::STREAM, I::PROTOCOL, I::CARD.name)?;
        let settings = I::End::set_buffers(&socket, params, &I::CARD)?;
        Ok((socket, settings))
    }

    fn listen_on(socket: &OwnedFd) -> Result<u16, Failure> {
        let port = bind_to_loopback(socket, I::CARD.name)?;
        listen(socket, 1).or_fail("listen", I::CARD.name)?;
        Ok(port)
    }

    fn end(
        socket: OwnedFd,
        params: &Params,
        shape: Shape,
        settings: Vec<Setting>,
    ) -> Result<I::End, Failure> {
        if let Some(nodelay) = params.text(&I::CARD, NODELAY.name) {
            sockopt::set_tcp_nodelay(&socket, nodelay == "on")
                .or_fail("setsockopt(TCP_NODELAY)", I::CARD.name)?;
        }
        I::End::over(Fds::both_ways(socket, I::CARD.name)?, params, shape, &I::CARD, settings)
    }
}

/// A fresh IPv4 socket.
pub(crate) fn inet_socket(
    kind: SocketType,
    protocol: Option<Protocol>,
    name: &str,
) -> Result<OwnedFd, Failure> {
    socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, protocol).or_fail("socket", name)
}

/// Binds `socket` to a free port of 127.0.0.1 and says which.
pub(crate) fn bind_to_loopback(socket: &OwnedFd, name: &str) -> Result<u16, Failure> {
    bind(socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).or_fail("bind", format!("{name} 127.0.0.1"))?;
    let address: SocketAddrAny = getsockname(socket).or_fail("getsockname", name)?;
    let address =
        SocketAddrV4::try_from(address).map_err(|_| Failure::of("getsockname", name, Errno::AFNOSUPPORT))?;
    Ok(address.port())
}
