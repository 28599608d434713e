//! A pair of connected Unix sockets of type `SOCK_DGRAM`.

use crate::coded::CODEC;
use crate::descriptor::{Fds, Pair, WAIT};
use crate::socket::{RCVBUF, SNDBUF, largest_message, unix_pair};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::record::Setting;
use model::{Params, Session, Workload};
use rustix::net::SocketType;
use sys::Failure;

/// unix(7), `SOCK_DGRAM`.
#[derive(Debug)]
pub struct UnixDgram;

impl Pair for UnixDgram {
    const CARD: Card = Card {
        name: "unix-dgram",
        kind: CardKind::Mechanism,
        summary: "connected Unix datagram sockets",
        framing: Framing::Message,
        reach: Reach::Host,
        payload: Payload::Bytes,
        fds: true,
        hangup: false,
        polled: true,
        one_endpoint: false,
        empty: true,
        params: &[SNDBUF, RCVBUF, WAIT, CODEC],
        workloads: &[
            Workload::Latency,
            Workload::Throughput,
            Workload::Transfer,
            Workload::Session(Session::DEFAULT),
        ],
        sized: true,
        limits: "a message fits in SO_SNDBUF less the kernel's overhead: raise sndbuf, and net.core.wmem_max above it; a connected pair queues what its buffers hold",
        man: &["unix(7)", "socketpair(2)"],
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
