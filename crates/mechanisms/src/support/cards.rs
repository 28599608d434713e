//! Base cards: what most mechanisms of a kind declare, so that a card says only what is special about it.
//!
//! A base has no name, summary or manual page. The base of an operation is `Card::OPERATION`, which is in `model`
//! because tests of other crates take it too.

use model::card::{Card, CardKind, Framing, Payload, Reach};
use model::{Session, Workload};

/// What can be measured of whatever carries bytes both ways.
pub(crate) const EXCHANGES: &[Workload] = &[Workload::Latency, Workload::Throughput, Workload::Transfer];

/// Likewise, where the message may carry descriptors.
pub(crate) const EXCHANGES_AND_SESSION: &[Workload] =
    &[Workload::Latency, Workload::Throughput, Workload::Transfer, Workload::Session(Session::DEFAULT)];

/// Likewise, where a Unix socket connects and its messages may carry descriptors.
pub(crate) const EXCHANGES_CONNECT_AND_SESSION: &[Workload] = &[
    Workload::Latency,
    Workload::Throughput,
    Workload::Transfer,
    Workload::Connect,
    Workload::Session(Session::DEFAULT),
];

/// A stream of bytes over descriptors that one process inherits or is sent, such as a pipe.
pub(crate) const STREAM: Card = Card {
    name: "",
    kind: CardKind::Mechanism,
    summary: "",
    framing: Framing::Stream,
    reach: Reach::Related,
    payload: Payload::Bytes,
    fds: false,
    hangup: true,
    polled: true,
    one_endpoint: false,
    empty: false,
    params: &[],
    workloads: EXCHANGES,
    sized: true,
    limits: "any message size",
    man: &[],
};

/// A stream socket that listens at a network address and connects to it.
pub(crate) const CONNECTION: Card = Card {
    reach: Reach::Network,
    workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer, Workload::Connect],
    ..STREAM
};

/// A stream of bytes that nothing can poll for: shared memory, or descriptors that io_uring reads.
pub(crate) const UNPOLLED_STREAM: Card = Card { polled: false, ..STREAM };

/// Whole messages, empty ones too, between processes of one host that agree on a name.
pub(crate) const MESSAGE: Card = Card {
    framing: Framing::Message,
    reach: Reach::Host,
    hangup: false,
    polled: false,
    empty: true,
    ..STREAM
};

/// Messages that lie in a file of their own, whose descriptor is sent over a Unix socket.
pub(crate) const FILE_PER_MESSAGE: Card =
    Card { fds: true, empty: false, workloads: EXCHANGES_AND_SESSION, ..MESSAGE };

/// A token of up to four bytes, and a wake-up with it.
pub(crate) const TOKEN: Card = Card {
    framing: Framing::Token,
    hangup: false,
    polled: false,
    workloads: &[Workload::Latency],
    limits: "4 bytes",
    ..STREAM
};

/// A wake-up that carries nothing.
pub(crate) const WAKE_UP: Card =
    Card { payload: Payload::None, sized: false, limits: "carries nothing but the wake-up", ..TOKEN };

/// A signal to a thread that the sender knows by its number.
pub(crate) const SIGNAL: Card = Card {
    reach: Reach::Host,
    one_endpoint: true,
    limits: "a signal that arrives while one is pending is merged with it; the same user only",
    ..WAKE_UP
};

/// A floor: the least that this machine allows for a hand-over between two endpoints.
pub(crate) const FLOOR: Card = Card { kind: CardKind::Floor, ..TOKEN };

/// An operation that reads a timer, whose accuracy can be measured too.
pub(crate) const TIMER: Card = Card { workloads: &[Workload::Cost, Workload::Accuracy], ..Card::OPERATION };
