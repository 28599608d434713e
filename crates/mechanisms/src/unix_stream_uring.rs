//! A pair of connected Unix sockets of type `SOCK_STREAM`, used through io_uring.

use crate::socket::{RCVBUF, SNDBUF, UnixPair};
use crate::unix_stream::UnixStream;
use crate::uring::{BUFFERS, LIMITS, RECEIVE, SQPOLL};
use model::Workload;
use model::card::Card;
use rustix::net::SocketType;

/// unix(7) with `IORING_OP_SEND` and `IORING_OP_RECV`, io_uring_enter(2).
#[derive(Debug)]
pub struct UnixStreamUring;

impl UnixPair for UnixStreamUring {
    const TYPE: SocketType = SocketType::STREAM;
    const CARD: Card = Card {
        name: "unix-stream-uring",
        summary: "connected Unix stream sockets, used through io_uring",
        // Ends of this row send no descriptors.
        fds: false,
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        params: &[RECEIVE, BUFFERS, SQPOLL, SNDBUF, RCVBUF],
        limits: LIMITS,
        man: &["unix(7)", "io_uring(7)", "io_uring_enter(2)"],
        ..<UnixStream as UnixPair>::CARD
    };
}
