//! What connections over the loopback interface share: a listener, and both ends. Not a mechanism itself.

use crate::contract::{Launch, Mechanism, Shape, Ticket};
use crate::descriptor::{DescriptorEnd, Fds, OverDescriptors, supported};
use crate::socket::set_buffers;
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
}

/// An [`InetStream`] as a row of the table, whose ends are `E`.
#[derive(Debug)]
pub struct Loopback<I, E = DescriptorEnd>(PhantomData<(I, E)>);

/// A listening socket and how its connection is to be set.
#[derive(Debug)]
pub struct Bound {
    listener: OwnedFd,
    settings: Vec<Setting>,
    params: Params,
    shape: Shape,
}

impl<I: InetStream, E: OverDescriptors> Mechanism for Loopback<I, E> {
    const CARD: Card = I::CARD;
    type Bound = Bound;
    type End = E;

    fn probe(params: &Params) -> Support {
        match Self::open(params).and_then(|(listener, _)| Self::listen_on(&listener)) {
            Ok(_) => E::probe(params, &I::CARD, || Self::connected(params)),
            refused => supported(refused),
        }
    }

    fn bind(launch: &Launch<'_>) -> Result<(Bound, Ticket), Failure> {
        let (listener, settings) = Self::open(launch.params)?;
        let port = Self::listen_on(&listener)?;
        let ticket = Ticket { address: port.to_be_bytes().to_vec(), fds: Vec::new() };
        let Launch { params, shape, .. } = *launch;
        Ok((Bound { listener, settings, params: params.clone(), shape }, ticket))
    }

    fn accept(bound: Bound) -> Result<E, Failure> {
        let Bound { listener, settings, params, shape } = bound;
        E::over(Self::accept_on(&listener, &params)?, &params, shape, &I::CARD, settings)
    }

    fn connect(launch: &Launch<'_>, ticket: Ticket) -> Result<E, Failure> {
        let port = ticket.address.as_slice().try_into().map(u16::from_be_bytes);
        let port = port.map_err(|_| Failure::of("take the ticket of", I::CARD.name, Errno::INVAL))?;
        let (fds, settings) = Self::connect_to(port, launch.params)?;
        E::over(fds, launch.params, launch.shape, &I::CARD, settings)
    }
}

impl<I: InetStream, E> Loopback<I, E> {
    /// A socket with its buffers set: the kernel fixes the window by them when it connects.
    fn open(params: &Params) -> Result<(OwnedFd, Vec<Setting>), Failure> {
        let socket = inet_socket(SocketType::STREAM, I::PROTOCOL, I::CARD.name)?;
        let settings = set_buffers(&socket, params, &I::CARD)?;
        Ok((socket, settings))
    }

    fn listen_on(socket: &OwnedFd) -> Result<u16, Failure> {
        let port = bind_to_loopback(socket, I::CARD.name)?;
        listen(socket, 1).or_fail("listen", I::CARD.name)?;
        Ok(port)
    }

    fn accept_on(listener: &OwnedFd, params: &Params) -> Result<Fds, Failure> {
        let connection = accept_with(listener, SocketFlags::CLOEXEC).or_fail("accept4", I::CARD.name)?;
        Self::fds(connection, params)
    }

    fn connect_to(port: u16, params: &Params) -> Result<(Fds, Vec<Setting>), Failure> {
        let (socket, settings) = Self::open(params)?;
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        connect(&socket, &address).or_fail("connect", address)?;
        Ok((Self::fds(socket, params)?, settings))
    }

    fn fds(socket: OwnedFd, params: &Params) -> Result<Fds, Failure> {
        if let Some(nodelay) = params.text(&I::CARD, NODELAY.name) {
            sockopt::set_tcp_nodelay(&socket, nodelay == "on")
                .or_fail("setsockopt(TCP_NODELAY)", I::CARD.name)?;
        }
        Fds::both_ways(socket, I::CARD.name)
    }

    /// Both ends of a connection, in one thread.
    fn connected(params: &Params) -> Result<(Fds, Fds), Failure> {
        let (listener, _) = Self::open(params)?;
        let (far, _) = Self::connect_to(Self::listen_on(&listener)?, params)?;
        Ok((Self::accept_on(&listener, params)?, far))
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
