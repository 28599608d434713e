//! A pair of connected Unix sockets of type `SOCK_SEQPACKET`.

use crate::contract::TrialContext;
use crate::support::cards::OF_UNIX_SOCKET;
use crate::support::cards::{EXCHANGES_CONNECT_AND_SESSION, MESSAGE};
use crate::support::coded::CODEC;
use crate::support::connect_each::SERVER;
use crate::support::connection::{Connection, Ends, ListenerAddress};
use crate::support::descriptor::DescriptorEndpoint;
use crate::support::socket::{RCVBUF, SNDBUF};
use crate::support::unix_name::{self, NAME};
use crate::support::wait::WAIT;
use model::Params;
use model::card::{ByName, Card, Support};
use model::semantics::{Atomic, Semantics};
use rustix::net::{Protocol, SocketType};
use sys::Failure;

/// unix(7), `SOCK_SEQPACKET`.
#[derive(Debug)]
pub(crate) struct UnixSeqpacket;

impl Connection for UnixSeqpacket {
    const TYPE: SocketType = SocketType::SEQPACKET;
    const PROTOCOL: Option<Protocol> = None;
    type End = DescriptorEndpoint;
    const CARD: Card = Card {
        name: "unix-seqpacket",
        summary: "connected Unix sequenced-packet sockets",
        by_name: ByName::As(NAME.name),
        fds: true,
        hangup: true,
        polled: true,
        empty: false,
        params: &[NAME, SNDBUF, RCVBUF, WAIT, CODEC, SERVER],
        workloads: EXCHANGES_CONNECT_AND_SESSION,
        limits: "a message fits in SO_SNDBUF less the kernel's overhead: raise sndbuf, and net.core.wmem_max above it",
        semantics: Semantics { atomic: Atomic::Message, ..OF_UNIX_SOCKET },
        man: &["unix(7)", "socketpair(2)", "connect(2)"],
        ..MESSAGE
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
