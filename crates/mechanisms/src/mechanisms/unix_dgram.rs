//! A pair of connected Unix sockets of type `SOCK_DGRAM`.

use crate::support::cards::OF_UNIX_SOCKET;
use crate::support::cards::{EXCHANGES_AND_SESSION, MESSAGE};
use crate::support::coded::CODEC;
use crate::support::descriptor::Fds;
use crate::support::pair::Pair;
use crate::support::socket::{RCVBUF, SNDBUF, largest_message, unix_pair};
use crate::support::wait::WAIT;
use model::Params;
use model::card::{Card, Support};
use model::record::Setting;
use model::semantics::{Atomic, Semantics};
use rustix::net::SocketType;
use sys::Failure;

/// unix(7), `SOCK_DGRAM`.
#[derive(Debug)]
pub(crate) struct UnixDgram;

impl Pair for UnixDgram {
    const CARD: Card = Card {
        name: "unix-dgram",
        summary: "connected Unix datagram sockets",
        fds: true,
        polled: true,
        params: &[SNDBUF, RCVBUF, WAIT, CODEC],
        workloads: EXCHANGES_AND_SESSION,
        limits: "a message fits in SO_SNDBUF less the kernel's overhead: raise sndbuf, and net.core.wmem_max above it; a connected pair queues what its buffers hold",
        semantics: Semantics { connected: false, atomic: Atomic::Message, ..OF_UNIX_SOCKET },
        man: &["unix(7)", "socketpair(2)"],
        ..MESSAGE
    };

    fn probe(params: &Params) -> Support {
        largest_message(|| {
            unix_pair(SocketType::DGRAM, params, &Self::CARD).map(|(client, server, _)| (client, server))
        })
    }

    fn open(params: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure> {
        let (client, server, settings) = unix_pair(SocketType::DGRAM, params, &Self::CARD)?;
        Ok((Fds::both_ways(client, Self::CARD.name)?, Fds::both_ways(server, Self::CARD.name)?, settings))
    }
}
