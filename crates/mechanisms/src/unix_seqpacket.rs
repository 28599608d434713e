//! A pair of connected Unix sockets of type `SOCK_SEQPACKET`.

use crate::coded::CODEC;
use crate::descriptor::WAIT;
use crate::socket::{RCVBUF, SNDBUF, UnixPair};
use model::card::{Card, Framing, Kind, Payload, Reach};
use model::{Session, Workload};
use rustix::net::SocketType;

/// unix(7), `SOCK_SEQPACKET`.
#[derive(Debug)]
pub struct UnixSeqpacket;

impl UnixPair for UnixSeqpacket {
    const TYPE: SocketType = SocketType::SEQPACKET;
    const CARD: Card = Card {
        name: "unix-seqpacket",
        kind: Kind::Mechanism,
        summary: "connected Unix sequenced-packet sockets",
        framing: Framing::Message,
        reach: Reach::Host,
        payload: Payload::Bytes,
        fds: true,
        hangup: true,
        params: &[SNDBUF, RCVBUF, WAIT, CODEC],
        workloads: &[
            Workload::Latency,
            Workload::Throughput,
            Workload::Transfer,
            Workload::Session(Session::DEFAULT),
        ],
        sized: true,
        limits: "a message fits in SO_SNDBUF less the kernel's overhead: raise sndbuf, and net.core.wmem_max above it",
        man: &["unix(7)", "socketpair(2)"],
    };
}
