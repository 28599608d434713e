//! A pair of connected Unix sockets of type `SOCK_STREAM`.

use crate::descriptor::WAIT;
use crate::socket::{RCVBUF, SNDBUF, UnixPair};
use model::card::{Card, Framing, Kind, Payload, Reach};
use model::{Session, Workload};
use rustix::net::SocketType;

/// unix(7), `SOCK_STREAM`.
#[derive(Debug)]
pub struct UnixStream;

impl UnixPair for UnixStream {
    const TYPE: SocketType = SocketType::STREAM;
    const CARD: Card = Card {
        name: "unix-stream",
        kind: Kind::Mechanism,
        summary: "connected Unix stream sockets",
        framing: Framing::Stream,
        reach: Reach::Host,
        payload: Payload::Bytes,
        fds: true,
        hangup: true,
        params: &[SNDBUF, RCVBUF, WAIT],
        workloads: &[
            Workload::Latency,
            Workload::Throughput,
            Workload::Transfer,
            Workload::Session(Session::DEFAULT),
        ],
        sized: true,
        limits: "any message size",
        man: &["unix(7)", "socketpair(2)"],
    };
}
