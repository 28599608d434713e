//! A pair of connected Unix sockets of type `SOCK_STREAM`.

use crate::connecting::SERVER;
use crate::connection::{Connection, Ends, Place};
use crate::contract::Trial;
use crate::descriptor::{DescriptorEnd, WAIT};
use crate::socket::{RCVBUF, SNDBUF};
use crate::unix_name::{self, NAME};
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::{Params, Session, Workload};
use rustix::net::{AddressFamily, Protocol, SocketType};
use sys::Failure;

/// unix(7), `SOCK_STREAM`.
#[derive(Debug)]
pub struct UnixStream;

impl Connection for UnixStream {
    const FAMILY: AddressFamily = AddressFamily::UNIX;
    const TYPE: SocketType = SocketType::STREAM;
    const PROTOCOL: Option<Protocol> = None;
    type End = DescriptorEnd;
    const CARD: Card = Card {
        name: "unix-stream",
        kind: CardKind::Mechanism,
        summary: "connected Unix stream sockets",
        framing: Framing::Stream,
        reach: Reach::Host,
        payload: Payload::Bytes,
        fds: true,
        hangup: true,
        polled: true,
        one_endpoint: false,
        empty: false,
        params: &[NAME, SNDBUF, RCVBUF, WAIT, SERVER],
        workloads: &[
            Workload::Latency,
            Workload::Throughput,
            Workload::Transfer,
            Workload::Connect,
            Workload::Session(Session::DEFAULT),
        ],
        sized: true,
        limits: "any message size",
        man: &["unix(7)", "socketpair(2)", "connect(2)"],
    };

    fn probe(params: &Params) -> Support {
        unix_name::probe::<Self>(params)
    }

    fn place(trial: &Trial<'_>) -> Result<Place, Failure> {
        unix_name::place::<Self>(trial)
    }

    fn pair(params: &Params) -> Option<Result<Ends, Failure>> {
        unix_name::pair::<Self>(params)
    }
}
