//! Base cards: what most mechanisms of a kind declare, so that a card says only what is special about it.
//!
//! A base has no name, summary or manual page. The base of an operation is `Card::OPERATION`, which is in `model`
//! because tests of other crates take it too.

use model::card::{ByName, Card, CardKind, Framing, Payload, Reach};
use model::semantics::{
    Atomic, Credentials, Lifetime, Loss, Namespace, Naming, Order, OtherUsers, Semantics, WhenFull,
};
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

/// Of bytes over descriptors that one process inherits or is sent.
pub(crate) const BY_DESCRIPTOR: Semantics = Semantics {
    connected: true,
    order: Order::Kept,
    loss: Loss::Never,
    when_full: WhenFull::Blocks,
    credentials: Credentials::None,
    naming: Naming::Inherited,
    other_users: OtherUsers::Anyone,
    namespace: Namespace::None,
    atomic: Atomic::Nothing,
    most_bytes: None,
    lifetime: Lifetime::LastUser,
    privileges: "",
};

/// Of a pipe.
pub(crate) const OF_PIPE: Semantics = Semantics { atomic: Atomic::PipeBuf, ..BY_DESCRIPTOR };

/// Of a Unix socket that has a path. Datagrams and sequenced packets arrive whole.
pub(crate) const OF_UNIX_SOCKET: Semantics = Semantics {
    credentials: Credentials::OfMessage,
    naming: Naming::Path,
    other_users: OtherUsers::ByPermission,
    namespace: Namespace::Mount,
    // The path stays when the socket is closed: unlink(2).
    lifetime: Lifetime::NameStays,
    ..BY_DESCRIPTOR
};

/// Of a socket of the network.
pub(crate) const OF_NETWORK: Semantics =
    Semantics { naming: Naming::Address, namespace: Namespace::Net, ..BY_DESCRIPTOR };

/// Of a queue of messages that stays until it is removed.
pub(crate) const OF_QUEUE: Semantics = Semantics {
    connected: false,
    other_users: OtherUsers::ByPermission,
    namespace: Namespace::Ipc,
    atomic: Atomic::Message,
    lifetime: Lifetime::UntilRemoved,
    ..BY_DESCRIPTOR
};

/// Of a wake-up by something that both have mapped or opened. Wake-ups are counted.
pub(crate) const OF_WAKE_UP: Semantics = Semantics {
    connected: false,
    order: Order::Nothing,
    when_full: WhenFull::NeverFull,
    most_bytes: Some(0),
    ..BY_DESCRIPTOR
};

/// A stream of bytes over descriptors that one process inherits or is sent, such as a pipe.
pub(crate) const STREAM: Card = Card {
    name: "",
    kind: CardKind::Mechanism,
    summary: "",
    framing: Framing::Stream,
    reach: Reach::Related,
    by_name: ByName::Never,
    payload: Payload::Bytes,
    fds: false,
    hangup: true,
    polled: true,
    one_endpoint: false,
    empty: false,
    params: &[],
    workloads: EXCHANGES,
    sized: true,
    semantics: BY_DESCRIPTOR,
    limits: "any message size",
    man: &[],
};

/// A stream socket that listens at a network address and connects to it.
pub(crate) const CONNECTION: Card = Card {
    reach: Reach::Network,
    semantics: OF_NETWORK,
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
    semantics: OF_QUEUE,
    ..STREAM
};

/// Messages that lie in a file of their own, whose descriptor is sent over a Unix socket.
pub(crate) const FILE_PER_MESSAGE: Card = Card {
    fds: true,
    empty: false,
    workloads: EXCHANGES_AND_SESSION,
    semantics: Semantics { atomic: Atomic::Message, ..OF_UNIX_SOCKET },
    ..MESSAGE
};

/// A token of up to four bytes, and a wake-up with it.
pub(crate) const TOKEN: Card = Card {
    framing: Framing::Token,
    hangup: false,
    polled: false,
    workloads: &[Workload::Latency],
    semantics: Semantics { order: Order::Kept, atomic: Atomic::Message, most_bytes: Some(4), ..OF_WAKE_UP },
    limits: "4 bytes",
    ..STREAM
};

/// A wake-up that carries nothing.
pub(crate) const WAKE_UP: Card = Card {
    payload: Payload::None,
    sized: false,
    semantics: OF_WAKE_UP,
    limits: "carries nothing but the wake-up",
    ..TOKEN
};

/// A signal to a thread that the sender knows by its number.
pub(crate) const SIGNAL: Card = Card {
    reach: Reach::Host,
    one_endpoint: true,
    semantics: Semantics {
        loss: Loss::Merged,
        credentials: Credentials::OfSignal,
        naming: Naming::ProcessId,
        other_users: OtherUsers::SameUser,
        namespace: Namespace::Pid,
        ..OF_WAKE_UP
    },
    limits: "a signal that arrives while one is pending is merged with it; the same user only",
    ..WAKE_UP
};

/// A floor: the least that this machine allows for a hand-over between two endpoints.
pub(crate) const FLOOR: Card = Card { kind: CardKind::Floor, ..TOKEN };

/// An operation that reads a timer, whose accuracy can be measured too.
pub(crate) const TIMER: Card = Card { workloads: &[Workload::Cost, Workload::Accuracy], ..Card::OPERATION };
