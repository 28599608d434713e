//! What rows of sockets that listen and connect share: how both ends come by one connection that lasts, or client by the
//! address and server by the listener of those of the workload `connect`. Not a mechanism itself.

use crate::connecting::{Client, Server};
use crate::contract::{Arrived, Endpoint, InPlace, Mechanism, Shape, Steps, Ticket, TrialContext};
use crate::descriptor::{Fds, OverDescriptors};
use crate::socket::{BUSY_POLL, Buffers, set_busy_polling};
use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Workload};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, Protocol, SocketAddrAny, SocketFlags, SocketType, accept_with, bind, connect, getsockname,
    listen, socket_with, sockopt,
};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::Duration;
use sys::socket_option::set_busy_poll;
use sys::{Errno, Failure, OrFail, address};

/// `TCP_NODELAY`, tcp(7).
pub(crate) const NODELAY: Param = Param {
    name: "nodelay",
    summary: "send small segments at once (TCP_NODELAY)",
    domain: Domain::Choice(&["on", "off"]),
    default: Some("on"),
};

/// How many connections may wait to be accepted: more than one client ever has.
const BACKLOG: i32 = 128;

/// A kind of sockets that listen and connect.
pub trait Connection {
    /// What it declares about itself.
    const CARD: Card;
    /// The family of its addresses.
    const FAMILY: AddressFamily;
    /// How its sockets frame.
    const TYPE: SocketType;
    /// The protocol; `None` is the first of the family.
    const PROTOCOL: Option<Protocol>;
    /// The ends of a connection that lasts.
    type End: OverDescriptors;

    /// Whether it works with `params`, by trying.
    fn probe(params: &Params) -> Support;

    /// Where a listener of `trial` is to be.
    fn place(trial: &TrialContext<'_>) -> Result<Place, Failure>;

    /// Both ends of a connection that lasts, where that takes no listener.
    fn pair(_params: &Params) -> Option<Result<Ends, Failure>> {
        None
    }
}

/// Client's end, server's end, and what was set on both.
pub(crate) type Ends = (OwnedFd, OwnedFd, Vec<Setting>);

/// Where a listener is to be.
#[derive(Debug)]
pub struct Place {
    /// The address that it asks for; the kernel completes it.
    pub(crate) address: SocketAddrAny,
    /// The name in the file system that it makes.
    pub(crate) file: Option<SocketFile>,
    /// What is to be said of it.
    pub(crate) setting: Option<Setting>,
}

impl From<SocketAddrAny> for Place {
    fn from(address: SocketAddrAny) -> Self {
        Self { address, file: None, setting: None }
    }
}

/// The name of a socket in the file system, which is removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile(pub(crate) PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may never have been made. If it stays, it goes with the run's directory.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What each new socket is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    buffers: Buffers,
    nodelay: Option<bool>,
    busy_poll: Duration,
}

impl Options {
    pub(crate) fn asked(params: &Params, card: &Card) -> Self {
        let nodelay = params.text(card, NODELAY.name).map(|nodelay| nodelay == "on");
        let busy_poll = params.duration(card, BUSY_POLL.name);
        Self { buffers: Buffers::asked(params, card), nodelay, busy_poll }
    }

    #[inline(always)]
    fn set(&self, socket: &OwnedFd) -> Result<(), Errno> {
        self.buffers.set(socket)?;
        if !self.busy_poll.is_zero() {
            set_busy_poll(socket, self.busy_poll)?;
        }
        self.nodelay.map_or(Ok(()), |nodelay| sockopt::set_tcp_nodelay(socket, nodelay))
    }
}

/// A fresh socket of `C`, with the options that must be set before it connects.
#[inline(always)]
pub(crate) fn fresh_socket<C: Connection>(flags: SocketFlags, options: &Options) -> Result<OwnedFd, Errno> {
    let socket = socket_with(C::FAMILY, C::TYPE, flags | SocketFlags::CLOEXEC, C::PROTOCOL)?;
    options.set(&socket)?;
    Ok(socket)
}

/// A listening socket, and what is known of it.
#[derive(Debug)]
struct Listener {
    socket: OwnedFd,
    /// Where it is connected to.
    address: SocketAddrAny,
    file: Option<SocketFile>,
    settings: Vec<Setting>,
}

impl Listener {
    fn new<C: Connection>(place: Place, params: &Params) -> Result<Self, Failure> {
        let name = C::CARD.name;
        let (socket, settings) = open::<C>(params)?;
        bind(&socket, &place.address).or_fail("bind", name)?;
        listen(&socket, BACKLOG).or_fail("listen", name)?;
        let address = getsockname(&socket).or_fail("getsockname", name)?;
        let settings = place.setting.into_iter().chain(settings).collect();
        Ok(Self { socket, address, file: place.file, settings })
    }

    fn accept(&self, card: &Card) -> Result<OwnedFd, Failure> {
        accept_with(&self.socket, SocketFlags::CLOEXEC).or_fail("accept4", card.name)
    }
}

/// A socket that listens, or is one end of a connection that lasts, with its buffers set: the kernel fixes the window by
/// them when it connects.
fn open<C: Connection>(params: &Params) -> Result<(OwnedFd, Vec<Setting>), Failure> {
    let socket = socket_with(C::FAMILY, C::TYPE, SocketFlags::CLOEXEC, C::PROTOCOL);
    let socket = socket.or_fail("socket", C::CARD.name)?;
    let settings = C::End::set_buffers(&socket, params, &C::CARD)?;
    Ok((socket, settings))
}

/// A connection of `C` at `place`, from end to end.
pub(crate) fn try_connection<C: Connection>(place: Place, params: &Params) -> Result<(), Failure> {
    let listener = Listener::new::<C>(place, params)?;
    connect(&open::<C>(params)?.0, &listener.address).or_fail("connect", C::CARD.name)?;
    listener.accept(&C::CARD).map(drop)
}

/// A `Connection` as a row of the table.
#[derive(Debug)]
pub struct Connected<C>(PhantomData<C>);

/// What client has before server has connected.
#[derive(Debug)]
pub enum Bound<C: Connection> {
    /// The listener of the one connection.
    Listening(Listening),
    /// Its end.
    End(ConnectionEnd<C>),
}

/// The listener of the one connection.
#[derive(Debug)]
pub struct Listening {
    listener: Listener,
    params: Params,
    shape: Shape,
}

impl<C: Connection> Mechanism for Connected<C> {
    const CARD: Card = C::CARD;
    type Bound = Bound<C>;
    type End = ConnectionEnd<C>;

    fn probe(params: &Params) -> Support {
        C::probe(params)
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(Bound<C>, Ticket), Failure> {
        let params = trial.params;
        if trial.shape.workload != Workload::Connect
            && let Some(pair) = C::pair(params)
        {
            let (client, server, settings) = pair?;
            let client = lasting(client, params, trial.shape, settings)?;
            return Ok((Bound::End(client), Ticket { address: Vec::new(), fds: vec![server] }));
        }
        let listener = Listener::new::<C>(C::place(trial)?, params)?;
        if trial.shape.workload == Workload::Connect {
            // Server is the server; client makes its listener, so as to know the address before the first iteration.
            let Listener { socket, address, file, settings } = listener;
            let client = Client::new(address, file, params, settings)?;
            return Ok((
                Bound::End(ConnectionEnd::Client(Box::new(client))),
                Ticket { address: Vec::new(), fds: vec![socket] },
            ));
        }
        let ticket = Ticket { address: address::to_bytes(&listener.address), fds: Vec::new() };
        let listening = Listening { listener, params: params.clone(), shape: trial.shape };
        Ok((Bound::Listening(listening), ticket))
    }

    fn accept(bound: Bound<C>) -> Result<ConnectionEnd<C>, Failure> {
        match bound {
            Bound::End(end) => Ok(end),
            Bound::Listening(Listening { listener, params, shape }) => {
                let socket = listener.accept(&C::CARD)?;
                lasting(socket, &params, shape, listener.settings)
            }
        }
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<ConnectionEnd<C>, Failure> {
        let params = trial.params;
        if trial.shape.workload == Workload::Connect {
            let [listener] = ticket.descriptors(C::CARD.name)?;
            return Server::new(listener, params, &C::CARD).map(ConnectionEnd::Server);
        }
        if ticket.address.is_empty() {
            let [socket] = ticket.descriptors(C::CARD.name)?;
            return lasting(socket, params, trial.shape, Vec::new());
        }
        let address = address::from_bytes(&ticket.address)
            .ok_or_else(|| Failure::of("take the ticket of", C::CARD.name, Errno::INVAL))?;
        let (socket, settings) = open::<C>(params)?;
        connect(&socket, &address).or_fail("connect", C::CARD.name)?;
        lasting(socket, params, trial.shape, settings)
    }
}

/// An end of the one connection.
fn lasting<C: Connection>(
    socket: OwnedFd,
    params: &Params,
    shape: Shape,
    settings: Vec<Setting>,
) -> Result<ConnectionEnd<C>, Failure> {
    if let Some(nodelay) = Options::asked(params, &C::CARD).nodelay {
        // What a listener was told its connections need not have inherited.
        sockopt::set_tcp_nodelay(&socket, nodelay).or_fail("setsockopt(TCP_NODELAY)", C::CARD.name)?;
    }
    let busy_polling = set_busy_polling(&socket, params, &C::CARD)?;
    let settings = settings.into_iter().chain(busy_polling).collect();
    let fds = Fds::both_ways(socket, C::CARD.name)?;
    C::End::over(fds, params, shape, &C::CARD, settings).map(ConnectionEnd::Lasting)
}

/// An end of one connection, or of a new one each iteration.
#[derive(Debug)]
pub enum ConnectionEnd<C: Connection> {
    /// Of one that lasts.
    Lasting(C::End),
    /// Client's, of the workload `connect`.
    Client(Box<Client<C>>),
    /// Server's.
    Server(Server),
}

impl<C: Connection> Endpoint for ConnectionEnd<C> {
    const IN_PLACE: bool = C::End::IN_PLACE;
    const PASSES_FDS: bool = C::CARD.fds;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Lasting(end) => end.send(bytes),
            Self::Client(client) => client.ask(bytes),
            Self::Server(server) => server.answer(bytes),
        }
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Self::Lasting(end) => end.receive(into),
            Self::Client(client) => client.take_answer(into),
            Self::Server(server) => server.serve(into),
        }
    }

    fn settings(&self) -> Vec<Setting> {
        match self {
            Self::Lasting(end) => end.settings(),
            Self::Client(client) => client.settings.clone(),
            Self::Server(_) => Vec::new(),
        }
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Lasting(end) => end.input(),
            Self::Client(_) | Self::Server(_) => None,
        }
    }

    fn in_place(&self) -> InPlace {
        match self {
            Self::Lasting(end) => end.in_place(),
            Self::Client(_) | Self::Server(_) => InPlace::default(),
        }
    }

    #[inline(always)]
    fn reserve(&mut self, most_bytes: usize) -> Result<&mut [u8], Errno> {
        match self {
            Self::Lasting(end) => end.reserve(most_bytes),
            Self::Client(_) | Self::Server(_) => Err(Errno::OPNOTSUPP),
        }
    }

    #[inline(always)]
    fn commit(&mut self, bytes: usize) -> Result<(), Errno> {
        match self {
            Self::Lasting(end) => end.commit(bytes),
            Self::Client(_) | Self::Server(_) => Err(Errno::OPNOTSUPP),
        }
    }

    #[inline(always)]
    fn send_with(
        &mut self,
        bytes: &[u8],
        fds: &[BorrowedFd<'_>],
        steps: &mut impl Steps,
    ) -> Result<usize, Errno> {
        match self {
            Self::Lasting(end) => end.send_with(bytes, fds, steps),
            Self::Client(_) | Self::Server(_) => Err(Errno::OPNOTSUPP),
        }
    }

    #[inline(always)]
    fn receive_with(&mut self, into: &mut [u8], steps: &mut impl Steps) -> Result<Arrived, Errno> {
        match self {
            Self::Lasting(end) => end.receive_with(into, steps),
            Self::Client(_) | Self::Server(_) => Err(Errno::OPNOTSUPP),
        }
    }
}
