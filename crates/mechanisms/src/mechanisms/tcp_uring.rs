//! One TCP connection over the loopback interface, used through io_uring.

use crate::mechanisms::tcp::Tcp;
use crate::support::connection::NODELAY;
use crate::support::inet_stream::InetStream;
use crate::support::socket::{RCVBUF, SNDBUF};
use crate::support::uring::{BUFFERS, LIMITS, RECEIVE, SQPOLL, UringEndpoint};
use model::card::Card;
use rustix::net::Protocol;

/// tcp(7) on 127.0.0.1 with `IORING_OP_SEND` and `IORING_OP_RECV`, io_uring_enter(2).
#[derive(Debug)]
pub(crate) struct TcpUring;

impl InetStream for TcpUring {
    const PROTOCOL: Option<Protocol> = None;
    type End = UringEndpoint;
    const CARD: Card = Card {
        name: "tcp-uring",
        summary: "a TCP connection over loopback, used through io_uring",
        params: &[RECEIVE, BUFFERS, SQPOLL, NODELAY, SNDBUF, RCVBUF],
        limits: LIMITS,
        man: &["tcp(7)", "io_uring(7)", "io_uring_enter(2)"],
        polled: false,
        ..Tcp::CARD
    };
}
