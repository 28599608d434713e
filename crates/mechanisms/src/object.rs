//! Endpoints of any mechanism behind one type, for processes that have several at once. A call of such an endpoint is a virtual
//! call: loops that are timed iteration by iteration are compiled for each kind of endpoint instead.

use crate::contract::{Arrived, Endpoint, InPlace, Mechanism, NoTrace, Operation, Ticket, TrialContext};
use crate::registry::{Visitor, visit};
use model::record::Setting;
use rustix::fd::BorrowedFd;
use sys::{Errno, Failure};

/// A connected endpoint of some mechanism.
pub trait ObjectEndpoint {
    /// As [`Endpoint::send`], with copies of `fds`, which are none where the card does not say `fds`.
    fn send(&mut self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<usize, Errno>;
    /// As [`Endpoint::receive`]. Descriptors are taken and closed where `with_fds` says that some come.
    fn receive(&mut self, into: &mut [u8], with_fds: bool) -> Result<Arrived, Errno>;
    /// As [`Endpoint::settings`].
    fn settings(&self) -> Vec<Setting>;
    /// As [`Endpoint::input`].
    fn input(&self) -> Option<BorrowedFd<'_>>;
    /// As [`Endpoint::LOSES`].
    fn loses(&self) -> bool;
}

/// An endpoint whose type is known here alone.
struct Object<E> {
    endpoint: E,
    in_place: InPlace,
}

impl<E: Endpoint + 'static> Object<E> {
    fn boxed(endpoint: E) -> Box<dyn ObjectEndpoint> {
        let in_place = if E::IN_PLACE { endpoint.in_place() } else { InPlace::default() };
        Box::new(Self { endpoint, in_place })
    }
}

impl<E: Endpoint> ObjectEndpoint for Object<E> {
    fn send(&mut self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<usize, Errno> {
        if E::PASSES_FDS && !fds.is_empty() {
            return self.endpoint.send_with(bytes, fds, &mut NoTrace);
        }
        if self.in_place.outgoing && !bytes.is_empty() {
            let room = self.endpoint.reserve(bytes.len())?;
            let count = room.len();
            room.copy_from_slice(&bytes[..count]);
            return self.endpoint.commit(count).map(|()| count);
        }
        self.endpoint.send(bytes)
    }

    fn receive(&mut self, into: &mut [u8], with_fds: bool) -> Result<Arrived, Errno> {
        if E::PASSES_FDS && with_fds {
            return self.endpoint.receive_with(into, &mut NoTrace);
        }
        let bytes = if self.in_place.incoming {
            let part = self.endpoint.peek(into.len())?;
            let count = part.len();
            into[..count].copy_from_slice(part);
            self.endpoint.release(count)?;
            count
        } else {
            self.endpoint.receive(into)?
        };
        Ok(Arrived { bytes, fds: 0 })
    }

    fn settings(&self) -> Vec<Setting> {
        self.endpoint.settings()
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        self.endpoint.input()
    }

    fn loses(&self) -> bool {
        E::LOSES
    }
}

/// The client's endpoint of the mechanism `name`. `give` takes the ticket to the server. `None` if there is no such mechanism.
pub fn client<F: From<Failure>>(
    name: &str,
    trial: &TrialContext<'_>,
    give: impl FnOnce(Ticket) -> Result<(), F>,
) -> Option<Result<Box<dyn ObjectEndpoint>, F>> {
    struct Client<'a, G>(&'a TrialContext<'a>, G);
    impl<F: From<Failure>, G: FnOnce(Ticket) -> Result<(), F>> Visitor for Client<'_, G> {
        type Output = Option<Result<Box<dyn ObjectEndpoint>, F>>;
        fn mechanism<M: Mechanism>(self) -> Self::Output {
            let Self(trial, give) = self;
            let connect = || {
                let (bound, ticket) = M::bind(trial)?;
                give(ticket)?;
                Ok(Object::boxed(M::accept(bound)?))
            };
            Some(connect())
        }
        fn operation<O: Operation>(self) -> Self::Output {
            None
        }
    }
    visit(name, Client(trial, give)).flatten()
}

/// The server's endpoint of the mechanism `name`, which connects with `ticket`. `None` if there is no such mechanism.
pub fn server(
    name: &str,
    trial: &TrialContext<'_>,
    ticket: Ticket,
) -> Option<Result<Box<dyn ObjectEndpoint>, Failure>> {
    struct Server<'a>(&'a TrialContext<'a>, Ticket);
    impl Visitor for Server<'_> {
        type Output = Option<Result<Box<dyn ObjectEndpoint>, Failure>>;
        fn mechanism<M: Mechanism>(self) -> Self::Output {
            Some(M::connect(self.0, self.1).map(Object::boxed))
        }
        fn operation<O: Operation>(self) -> Self::Output {
            None
        }
    }
    visit(name, Server(trial, ticket)).flatten()
}
