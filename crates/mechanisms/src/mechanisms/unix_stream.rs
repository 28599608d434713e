//! A pair of connected Unix sockets of type `SOCK_STREAM`.

use crate::contract::TrialContext;
use crate::support::cards::OF_UNIX_SOCKET;
use crate::support::cards::{EXCHANGES_CONNECT_AND_SESSION, STREAM};
use crate::support::cold::MESSAGE_MEMORY;
use crate::support::connect_each::SERVER;
use crate::support::connection::{Connection, Ends, ListenerAddress};
use crate::support::descriptor::DescriptorEndpoint;
use crate::support::socket::{RCVBUF, SNDBUF};
use crate::support::unix_name::{self, NAME};
use crate::support::wait::WAIT;
use model::Params;
use model::card::{ByName, Card, Reach, Support};
use rustix::net::{Protocol, SocketType};
use sys::Failure;

/// unix(7), `SOCK_STREAM`.
#[derive(Debug)]
pub(crate) struct UnixStream;

impl Connection for UnixStream {
    const TYPE: SocketType = SocketType::STREAM;
    const PROTOCOL: Option<Protocol> = None;
    type End = DescriptorEndpoint;
    const CARD: Card = Card {
        name: "unix-stream",
        summary: "connected Unix stream sockets",
        reach: Reach::Host,
        by_name: ByName::As(NAME.name),
        fds: true,
        params: &[NAME, SNDBUF, RCVBUF, WAIT, SERVER, MESSAGE_MEMORY],
        workloads: EXCHANGES_CONNECT_AND_SESSION,
        semantics: OF_UNIX_SOCKET,
        man: &["unix(7)", "socketpair(2)", "connect(2)"],
        ..STREAM
    };

    fn probe(params: &Params) -> Support {
        unix_name::probe::<Self>(params)
    }

    fn listener_address(trial: &TrialContext<'_>) -> Result<ListenerAddress, Failure> {
        unix_name::listener_address::<Self>(trial)
    }

    fn pair(params: &Params) -> Option<Result<Ends, Failure>> {
        unix_name::pair::<Self>(params)
    }
}
