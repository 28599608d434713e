//! Sockets that listen and connect: what they declare, and how a connection comes about. Not a mechanism itself.

use crate::contract::TrialContext;
use crate::support::descriptor::OverDescriptors;
use crate::support::socket::{BUSY_POLL, Buffers};
use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, Param, Params};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, Protocol, SocketAddrAny, SocketFlags, SocketType, accept_with, bind, connect, getsockname,
    ipproto, listen, socket_with, sockopt,
};
use std::path::PathBuf;
use std::time::Duration;
use sys::socket_option::{set_busy_poll, set_sctp_nodelay};
use sys::{Errno, Failure, OrFail};

/// `TCP_NODELAY`, tcp(7), or `SCTP_NODELAY`, sctp(7).
pub(crate) const NODELAY: Param = Param {
    name: "nodelay",
    summary: "send small segments at once (TCP_NODELAY, SCTP_NODELAY)",
    domain: Domain::Choice(&["on", "off"]),
    default: Some("on"),
};

/// How many connections may wait to be accepted: more than one client ever opens.
const BACKLOG: i32 = 128;

/// A kind of sockets that listen and connect.
pub(crate) trait Connection: 'static {
    /// What the mechanism declares about itself.
    const CARD: Card;
    /// The type of its sockets.
    const TYPE: SocketType;
    /// The protocol; `None` means the default of the family.
    const PROTOCOL: Option<Protocol>;
    /// The endpoints of a connection that lasts.
    type End: OverDescriptors;

    /// Whether the mechanism works with `params`. Tries it for real.
    fn probe(params: &Params) -> Support;

    /// The address at which a listener of `trial` shall be bound.
    fn listener_address(trial: &TrialContext<'_>) -> Result<ListenerAddress, Failure>;

    /// Both sockets of a connection that lasts, if that takes no listener.
    fn pair(_params: &Params) -> Option<Result<Ends, Failure>> {
        None
    }
}

/// The client's socket, the server's socket, and what was set on both.
pub(crate) type Ends = (OwnedFd, OwnedFd, Vec<Setting>);

/// The address at which a listener shall be bound.
#[derive(Debug)]
pub(crate) struct ListenerAddress {
    /// The address to ask for. The kernel completes it.
    pub(crate) address: SocketAddrAny,
    /// The name in the file system that binding makes.
    pub(crate) file: Option<SocketFile>,
    /// A setting that the record shall show.
    pub(crate) setting: Option<Setting>,
}

impl From<SocketAddrAny> for ListenerAddress {
    fn from(address: SocketAddrAny) -> Self {
        Self { address, file: None, setting: None }
    }
}

/// The name of a socket in the file system, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile(pub(crate) PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The name may not exist. If it remains, it is removed with the directory of the run.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The options of each new socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    buffers: Buffers,
    pub(crate) nodelay: Option<bool>,
    busy_poll: Duration,
}

impl Options {
    pub(crate) fn from_params(params: &Params, card: &Card) -> Self {
        let nodelay = params.text(card, NODELAY.name).map(|nodelay| nodelay == "on");
        let busy_poll = params.duration(card, BUSY_POLL.name);
        Self { buffers: Buffers::from_params(params, card), nodelay, busy_poll }
    }

    #[inline(always)]
    fn set<C: Connection>(&self, socket: &OwnedFd) -> Result<(), Errno> {
        self.buffers.set(socket)?;
        if !self.busy_poll.is_zero() {
            set_busy_poll(socket, self.busy_poll)?;
        }
        self.nodelay.map_or(Ok(()), |nodelay| set_nodelay::<C>(socket, nodelay))
    }
}

/// Makes `socket` send small segments at once, or not, by the option of its protocol.
#[inline(always)]
pub(crate) fn set_nodelay<C: Connection>(socket: &OwnedFd, nodelay: bool) -> Result<(), Errno> {
    match C::PROTOCOL == Some(ipproto::SCTP) {
        true => set_sctp_nodelay(socket, nodelay),
        false => sockopt::set_tcp_nodelay(socket, nodelay),
    }
}

/// A new socket of `C` for addresses of `family`, with the options that must be set before it connects.
#[inline(always)]
pub(crate) fn fresh_socket<C: Connection>(
    family: AddressFamily,
    flags: SocketFlags,
    options: &Options,
) -> Result<OwnedFd, Errno> {
    let socket = socket_with(family, C::TYPE, flags | SocketFlags::CLOEXEC, C::PROTOCOL)?;
    options.set::<C>(&socket)?;
    Ok(socket)
}

/// A listening socket, and what is known of it.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: OwnedFd,
    /// The address to connect to.
    pub(crate) address: SocketAddrAny,
    pub(crate) file: Option<SocketFile>,
    pub(crate) settings: Vec<Setting>,
}

impl Listener {
    pub(crate) fn new<C: Connection>(at: ListenerAddress, params: &Params) -> Result<Self, Failure> {
        let name = C::CARD.name;
        let (socket, settings) = open::<C>(at.address.address_family(), params)?;
        bind(&socket, &at.address).or_fail("bind", name)?;
        listen(&socket, BACKLOG).or_fail("listen", name)?;
        let address = getsockname(&socket).or_fail("getsockname", name)?;
        let settings = at.setting.into_iter().chain(settings).collect();
        Ok(Self { socket, address, file: at.file, settings })
    }

    pub(crate) fn accept(&self, card: &Card) -> Result<OwnedFd, Failure> {
        accept_with(&self.socket, SocketFlags::CLOEXEC).or_fail("accept4", card.name)
    }
}

/// A socket that will listen, or will be an endpoint of a connection that lasts. Its buffers are set here, because
/// the kernel fixes the window by them when it connects.
pub(crate) fn open<C: Connection>(
    family: AddressFamily,
    params: &Params,
) -> Result<(OwnedFd, Vec<Setting>), Failure> {
    let socket = socket_with(family, C::TYPE, SocketFlags::CLOEXEC, C::PROTOCOL);
    let socket = socket.or_fail("socket", C::CARD.name)?;
    let settings = C::End::set_buffers(&socket, params, &C::CARD)?;
    Ok((socket, settings))
}

/// Makes a connection of `C` at `address`, and closes it.
pub(crate) fn try_connection<C: Connection>(
    address: ListenerAddress,
    params: &Params,
) -> Result<(), Failure> {
    connected_pair::<C>(address, params).map(drop)
}

/// Both sockets of a connection of `C` at `address`.
pub(crate) fn connected_pair<C: Connection>(
    address: ListenerAddress,
    params: &Params,
) -> Result<(OwnedFd, OwnedFd), Failure> {
    let listener = Listener::new::<C>(address, params)?;
    let (socket, _) = open::<C>(listener.address.address_family(), params)?;
    connect(&socket, &listener.address).or_fail("connect", C::CARD.name)?;
    Ok((socket, listener.accept(&C::CARD)?))
}
