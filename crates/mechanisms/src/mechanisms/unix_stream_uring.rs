//! A pair of connected Unix sockets of type `SOCK_STREAM`, used through io_uring.

use crate::mechanisms::unix_stream::UnixStream;
use crate::support::connection::Connection;
use crate::support::descriptor::Fds;
use crate::support::pair::Pair;
use crate::support::probe::support_of;
use crate::support::socket::{RCVBUF, SNDBUF, unix_pair};
use crate::support::uring::{BUFFERS, LIMITS, RECEIVE, SQPOLL};
use model::card::{Card, Support};
use model::record::Setting;
use model::{Params, Workload};
use rustix::net::SocketType;
use sys::Failure;

/// unix(7) with `IORING_OP_SEND` and `IORING_OP_RECV`, io_uring_enter(2).
#[derive(Debug)]
pub(crate) struct UnixStreamUring;

impl Pair for UnixStreamUring {
    const CARD: Card = Card {
        name: "unix-stream-uring",
        summary: "connected Unix stream sockets, used through io_uring",
        // Endpoints over io_uring send no descriptors.
        fds: false,
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        params: &[RECEIVE, BUFFERS, SQPOLL, SNDBUF, RCVBUF],
        limits: LIMITS,
        man: &["unix(7)", "io_uring(7)", "io_uring_enter(2)"],
        polled: false,
        ..<UnixStream as Connection>::CARD
    };

    fn probe(params: &Params) -> Support {
        support_of(Self::open(params))
    }

    fn open(params: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure> {
        let (client, server, settings) = unix_pair(SocketType::STREAM, params, &Self::CARD)?;
        Ok((Fds::both_ways(client, Self::CARD.name)?, Fds::both_ways(server, Self::CARD.name)?, settings))
    }
}
