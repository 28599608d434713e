//! One TCP connection over the loopback interface.

use crate::contract::{Launch, Mechanism, Ticket};
use crate::descriptor::{DescriptorEnd, Fds, WAIT, supported};
use crate::socket::{RCVBUF, SNDBUF, set_buffers};
use model::card::{Card, Framing, Kind, Payload, Reach, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Workload};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketFlags, SocketType, accept_with, bind, connect, getsockname, listen,
    socket_with, sockopt,
};
use std::net::{Ipv4Addr, SocketAddrV4};
use sys::{Errno, Failure, OrFail};

/// tcp(7) on 127.0.0.1.
#[derive(Debug)]
pub struct Tcp;

/// A listening socket and how its connection is to be set.
#[derive(Debug)]
pub struct Bound {
    listener: OwnedFd,
    settings: Vec<Setting>,
    params: Params,
}

impl Mechanism for Tcp {
    const CARD: Card = Card {
        name: "tcp",
        kind: Kind::Mechanism,
        summary: "a TCP connection over loopback (127.0.0.1)",
        framing: Framing::Stream,
        reach: Reach::Network,
        payload: Payload::Bytes,
        fds: false,
        params: &[
            Param {
                name: "nodelay",
                summary: "send small segments at once (TCP_NODELAY)",
                domain: Domain::Choice(&["on", "off"]),
                default: Some("on"),
            },
            SNDBUF,
            RCVBUF,
            WAIT,
        ],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: "any message size; buffers tune themselves within net.ipv4.tcp_wmem and tcp_rmem unless set",
        man: &["tcp(7)", "ip(7)"],
    };
    type Bound = Bound;
    type End = DescriptorEnd;

    fn probe(params: &Params) -> Support {
        supported(open(params).and_then(|(listener, _)| listen_on(&listener)))
    }

    fn bind(launch: &Launch<'_>) -> Result<(Bound, Ticket), Failure> {
        let (listener, settings) = open(launch.params)?;
        let port = listen_on(&listener)?;
        let ticket = Ticket { address: port.to_be_bytes().to_vec(), fds: Vec::new() };
        Ok((Bound { listener, settings, params: launch.params.clone() }, ticket))
    }

    fn accept(bound: Bound) -> Result<DescriptorEnd, Failure> {
        let connection = accept_with(&bound.listener, SocketFlags::CLOEXEC).or_fail("accept4", "tcp")?;
        end(connection, &bound.params, bound.settings)
    }

    fn connect(launch: &Launch<'_>, ticket: Ticket) -> Result<DescriptorEnd, Failure> {
        let (socket, settings) = open(launch.params)?;
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port_of(&ticket, "tcp")?);
        connect(&socket, &address).or_fail("connect", address)?;
        end(socket, launch.params, settings)
    }
}

/// A socket with its buffers set: the kernel fixes the window by them when it connects.
fn open(params: &Params) -> Result<(OwnedFd, Vec<Setting>), Failure> {
    let socket = inet_socket(SocketType::STREAM, "tcp")?;
    let settings = set_buffers(&socket, params, &Tcp::CARD)?;
    Ok((socket, settings))
}

fn listen_on(socket: &OwnedFd) -> Result<u16, Failure> {
    let port = bind_to_loopback(socket, "tcp")?;
    listen(socket, 1).or_fail("listen", "tcp")?;
    Ok(port)
}

fn end(socket: OwnedFd, params: &Params, settings: Vec<Setting>) -> Result<DescriptorEnd, Failure> {
    let nodelay = params.text(&Tcp::CARD, "nodelay") == Some("on");
    sockopt::set_tcp_nodelay(&socket, nodelay).or_fail("setsockopt(TCP_NODELAY)", "tcp")?;
    DescriptorEnd::new(Fds::both_ways(socket, "tcp")?, params, &Tcp::CARD, settings)
}

/// A fresh IPv4 socket.
pub(crate) fn inet_socket(kind: SocketType, name: &str) -> Result<OwnedFd, Failure> {
    socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None).or_fail("socket", name)
}

/// Binds `socket` to a free port of 127.0.0.1 and says which.
pub(crate) fn bind_to_loopback(socket: &OwnedFd, name: &str) -> Result<u16, Failure> {
    bind(socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).or_fail("bind", format!("{name} 127.0.0.1"))?;
    let address: SocketAddrAny = getsockname(socket).or_fail("getsockname", name)?;
    let address =
        SocketAddrV4::try_from(address).map_err(|_| Failure::of("getsockname", name, Errno::AFNOSUPPORT))?;
    Ok(address.port())
}

/// The port in `ticket`.
pub(crate) fn port_of(ticket: &Ticket, name: &str) -> Result<u16, Failure> {
    let bytes = ticket.address.as_slice().try_into();
    bytes.map(u16::from_be_bytes).map_err(|_| Failure::of("take the ticket of", name, Errno::INVAL))
}
