//! A [`Connection`] as a mechanism: one connection that lasts, or a new one for each iteration of the workload `connect`.

use crate::contract::{
    Arrived, Endpoint, InPlace, Mechanism, Network, Shape, StepTrace, Ticket, TrialContext,
};
use crate::support::connect_each::{AcceptingServer, ConnectingClient};
use crate::support::connection::{Connection, Listener, Options, open, set_nodelay};
use crate::support::descriptor::{Fds, OverDescriptors};
use crate::support::network::{admit, host_of, introduce, strangers_setting};
use crate::support::socket::set_busy_polling;
use model::card::{Card, Support};
use model::record::Setting;
use model::{HostAddress, Params, Workload};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{connect, getpeername};
use std::marker::PhantomData;
use sys::{Errno, Failure, OrFail, address};

/// A [`Connection`] as a mechanism.
#[derive(Debug)]
pub(crate) struct Connected<C>(PhantomData<C>);

/// What the client holds until the server has connected.
#[derive(Debug)]
pub(crate) enum Bound<C: Connection> {
    /// A listener, for a connection that lasts.
    Listening(Box<Listening>),
    /// The client's endpoint, which is complete.
    End(ConnectionEndpoint<C>),
}

/// A listener, and what the connection that it accepts is set up with.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: Listener,
    params: Params,
    shape: Shape,
    /// Who is taken, where the endpoints may be on two hosts.
    network: Option<Network>,
}

impl Listening {
    /// The endpoint of the connection that it accepts.
    fn accept<C: Connection>(self) -> Result<ConnectionEndpoint<C>, Failure> {
        let Self { listener, params, shape, network } = self;
        let Some(network) = network else {
            let socket = listener.accept(&C::CARD)?;
            return lasting_endpoint(socket, &params, shape, listener.settings);
        };
        let (socket, strangers) = admit(&network, &listener.socket, C::CARD.name)?;
        if shape.workload == Workload::Connect {
            let client = client_of(&socket, C::CARD.name)?;
            let server = AcceptingServer::new(listener.socket, Some(client), &params, &C::CARD);
            return server.map(ConnectionEndpoint::Server);
        }
        let settings = listener.settings.into_iter().chain(strangers_setting(strangers)).collect();
        network_endpoint(socket, &params, shape, settings)
    }
}

impl<C: Connection> Mechanism for Connected<C> {
    const CARD: Card = C::CARD;
    type Bound = Bound<C>;
    type End = ConnectionEndpoint<C>;

    fn probe(params: &Params) -> Support {
        C::probe(params)
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(Bound<C>, Ticket), Failure> {
        let TrialContext { params, shape, network, .. } = *trial;
        if let Some(over) = network {
            let listener = Listener::new::<C>(C::listener_address(trial)?, params)?;
            let ticket = Ticket { address: over.ticket(&listener.socket, C::CARD.name)?, fds: Vec::new() };
            let listening = Listening { listener, params: params.clone(), shape, network };
            return Ok((Bound::Listening(Box::new(listening)), ticket));
        }
        if trial.shape.workload != Workload::Connect
            && let Some(pair) = C::pair(params)
        {
            let (client, server, settings) = pair?;
            let client = lasting_endpoint(client, params, trial.shape, settings)?;
            return Ok((Bound::End(client), Ticket { address: Vec::new(), fds: vec![server] }));
        }
        let listener = Listener::new::<C>(C::listener_address(trial)?, params)?;
        if trial.shape.workload == Workload::Connect {
            // In this workload the server accepts. The client makes the listener for it, so that it knows the address
            // before the first iteration.
            let Listener { socket, address, file, settings } = listener;
            let client = ConnectingClient::new(address, file, params, settings)?;
            return Ok((
                Bound::End(ConnectionEndpoint::Client(Box::new(client))),
                Ticket { address: Vec::new(), fds: vec![socket] },
            ));
        }
        let ticket = Ticket { address: address::to_bytes(&listener.address), fds: Vec::new() };
        let listening = Listening { listener, params: params.clone(), shape, network };
        Ok((Bound::Listening(Box::new(listening)), ticket))
    }

    fn accept(bound: Bound<C>) -> Result<ConnectionEndpoint<C>, Failure> {
        match bound {
            Bound::End(endpoint) => Ok(endpoint),
            Bound::Listening(listening) => listening.accept(),
        }
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<ConnectionEndpoint<C>, Failure> {
        let params = trial.params;
        if let Some(network) = &trial.network {
            let server = network.address_of(&ticket.address, C::CARD.name)?;
            let (socket, settings) = open::<C>(server.address_family(), params)?;
            introduce(network, &socket, &server, C::CARD.name)?;
            if trial.shape.workload == Workload::Connect {
                let client = ConnectingClient::new(server, None, params, settings)?;
                return Ok(ConnectionEndpoint::Client(Box::new(client)));
            }
            return network_endpoint(socket, params, trial.shape, settings);
        }
        if trial.shape.workload == Workload::Connect {
            let [listener] = ticket.descriptors(C::CARD.name)?;
            return AcceptingServer::new(listener, None, params, &C::CARD).map(ConnectionEndpoint::Server);
        }
        if ticket.address.is_empty() {
            let [socket] = ticket.descriptors(C::CARD.name)?;
            return lasting_endpoint(socket, params, trial.shape, Vec::new());
        }
        let address = address::from_bytes(&ticket.address)
            .ok_or_else(|| Failure::from_errno("take the ticket of", C::CARD.name, Errno::INVAL))?;
        let (socket, settings) = open::<C>(address.address_family(), params)?;
        connect(&socket, &address).or_fail("connect", C::CARD.name)?;
        lasting_endpoint(socket, params, trial.shape, settings)
    }
}

/// The address of the client that `socket` is connected to.
fn client_of(socket: &OwnedFd, name: &str) -> Result<HostAddress, Failure> {
    let client = getpeername(socket).or_fail("getpeername", name)?;
    client
        .as_ref()
        .and_then(host_of)
        .ok_or_else(|| Failure::from_errno("getpeername", name, Errno::AFNOSUPPORT))
}

/// An endpoint of a connection that lasts.
fn lasting_endpoint<C: Connection>(
    socket: OwnedFd,
    params: &Params,
    shape: Shape,
    settings: Vec<Setting>,
) -> Result<ConnectionEndpoint<C>, Failure> {
    if let Some(nodelay) = Options::from_params(params, &C::CARD).nodelay {
        // Accepted connections need not inherit the options of their listener.
        set_nodelay::<C>(&socket, nodelay).or_fail("setsockopt(NODELAY)", C::CARD.name)?;
    }
    let busy_polling = set_busy_polling(&socket, params, &C::CARD)?;
    let settings = settings.into_iter().chain(busy_polling).collect();
    let fds = Fds::both_ways(socket, C::CARD.name)?;
    C::End::over(fds, params, shape, &C::CARD, settings)
        .map(|endpoint| ConnectionEndpoint::Lasting(endpoint, None))
}

/// The same of a connection to a peer that may be on another host.
fn network_endpoint<C: Connection>(
    socket: OwnedFd,
    params: &Params,
    shape: Shape,
    settings: Vec<Setting>,
) -> Result<ConnectionEndpoint<C>, Failure> {
    let counted = rustix::io::fcntl_dupfd_cloexec(&socket, 0).or_fail("dup", C::CARD.name)?;
    match lasting_endpoint(socket, params, shape, settings)? {
        ConnectionEndpoint::Lasting(endpoint, _) => Ok(ConnectionEndpoint::Lasting(endpoint, Some(counted))),
        other => Ok(other),
    }
}

/// An endpoint of one connection that lasts, or of a new one in each iteration.
#[derive(Debug)]
pub(crate) enum ConnectionEndpoint<C: Connection> {
    /// Of a connection that lasts; and its socket, where the peer may be on another host.
    Lasting(C::End, Option<OwnedFd>),
    /// The client's, in the workload `connect`.
    Client(Box<ConnectingClient<C>>),
    /// The server's, likewise.
    Server(AcceptingServer),
}

impl<C: Connection> Endpoint for ConnectionEndpoint<C> {
    const IN_PLACE: bool = C::End::IN_PLACE;
    const PASSES_FDS: bool = C::CARD.fds;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Lasting(endpoint, _) => endpoint.send(bytes),
            Self::Client(client) => client.ask(bytes),
            Self::Server(server) => server.answer(bytes),
        }
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Self::Lasting(endpoint, _) => endpoint.receive(into),
            Self::Client(client) => client.take_answer(into),
            Self::Server(server) => server.serve(into),
        }
    }

    fn settings(&self) -> Vec<Setting> {
        match self {
            Self::Lasting(endpoint, _) => endpoint.settings(),
            Self::Client(client) => client.settings.clone(),
            Self::Server(_) => Vec::new(),
        }
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Lasting(endpoint, _) => endpoint.input(),
            Self::Client(_) | Self::Server(_) => None,
        }
    }

    fn network_socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Lasting(_, socket) => socket.as_ref().map(AsFd::as_fd),
            Self::Client(_) | Self::Server(_) => None,
        }
    }

    fn in_place(&self) -> InPlace {
        match self {
            Self::Lasting(endpoint, _) => endpoint.in_place(),
            Self::Client(_) | Self::Server(_) => InPlace::default(),
        }
    }

    #[inline(always)]
    fn reserve(&mut self, most_bytes: usize) -> Result<&mut [u8], Errno> {
        match self {
            Self::Lasting(endpoint, _) => endpoint.reserve(most_bytes),
            Self::Client(_) | Self::Server(_) => Err(Errno::OPNOTSUPP),
        }
    }

    #[inline(always)]
    fn commit(&mut self, bytes: usize) -> Result<(), Errno> {
        match self {
            Self::Lasting(endpoint, _) => endpoint.commit(bytes),
            Self::Client(_) | Self::Server(_) => Err(Errno::OPNOTSUPP),
        }
    }

    #[inline(always)]
    fn send_with(
        &mut self,
        bytes: &[u8],
        fds: &[BorrowedFd<'_>],
        trace: &mut impl StepTrace,
    ) -> Result<usize, Errno> {
        match self {
            Self::Lasting(endpoint, _) => endpoint.send_with(bytes, fds, trace),
            Self::Client(_) | Self::Server(_) => Err(Errno::OPNOTSUPP),
        }
    }

    #[inline(always)]
    fn receive_with(&mut self, into: &mut [u8], trace: &mut impl StepTrace) -> Result<Arrived, Errno> {
        match self {
            Self::Lasting(endpoint, _) => endpoint.receive_with(into, trace),
            Self::Client(_) | Self::Server(_) => Err(Errno::OPNOTSUPP),
        }
    }
}
