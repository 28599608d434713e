//! A pair of connected Unix sockets of type `SOCK_DGRAM`.

use crate::coded::CODEC;
use crate::descriptor::WAIT;
use crate::socket::{RCVBUF, SNDBUF, UnixPair};
use model::card::{Card, Framing, Kind, Payload, Reach};
use model::{Session, Workload};
use rustix::net::SocketType;

/// unix(7), `SOCK_DGRAM`.
#[derive(Debug)]
pub struct UnixDgram;

impl UnixPair for UnixDgram {
    const TYPE: SocketType = SocketType::DGRAM;
    const CARD: Card = Card {
        name: "unix-dgram",
        kind: Kind::Mechanism,
        summary: "connected Unix datagram sockets",
        framing: Framing::Message,
        reach: Reach::Host,
        payload: Payload::Bytes,
        fds: true,
        hangup: false,
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
}
