//! One TCP connection over the loopback interface.

use crate::connecting::SERVER;
use crate::connection::NODELAY;
use crate::descriptor::{DescriptorEnd, WAIT};
use crate::inet_stream::InetStream;
use crate::socket::{BUSY_POLL, RCVBUF, SNDBUF};
use model::Workload;
use model::card::{Card, CardKind, Framing, Payload, Reach};
use rustix::net::Protocol;

/// tcp(7) on 127.0.0.1.
#[derive(Debug)]
pub struct Tcp;

impl InetStream for Tcp {
    const PROTOCOL: Option<Protocol> = None;
    const CARD: Card = Card {
        name: "tcp",
        kind: CardKind::Mechanism,
        summary: "a TCP connection over loopback (127.0.0.1)",
        framing: Framing::Stream,
        reach: Reach::Network,
        payload: Payload::Bytes,
        fds: false,
        hangup: true,
        polled: true,
        one_endpoint: false,
        empty: false,
        params: &[NODELAY, SNDBUF, RCVBUF, WAIT, SERVER, BUSY_POLL],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer, Workload::Connect],
        sized: true,
        limits: "any message size; buffers tune themselves within net.ipv4.tcp_wmem and tcp_rmem unless set",
        man: &["tcp(7)", "ip(7)"],
    };
    type End = DescriptorEnd;
}
