//! The contract that every entry of the registry keeps. The conformance suite checks it.

use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, HostAddress, Param, Params, Workload};
use rustix::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use sys::{Errno, Failure};

/// What the endpoints will carry. A mechanism may size its kernel objects by it.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The size of a message, in bytes.
    pub size_bytes: usize,
    /// What the endpoints do.
    pub workload: Workload,
}

/// What one trial gives its mechanism.
#[derive(Debug, Clone, Copy)]
pub struct TrialContext<'a> {
    /// The parameters, checked against the card.
    pub params: &'a Params,
    /// What the endpoints will carry.
    pub shape: Shape,
    /// The directory of the run, for names in the file system. It is removed, with all that is in it, however the run
    /// ends.
    pub directory: &'a Path,
    /// The number of this trial in the run.
    pub number: u64,
    /// How the endpoints find each other where they may be on two hosts.
    pub network: Option<Network>,
}

/// What the client of a trial shows to the server, so that the server takes nobody else.
pub type NetworkToken = [u8; 16];

/// How two endpoints find each other that may be on two hosts.
#[derive(Debug, Clone, Copy)]
pub struct Network {
    /// The address of the server, as the client reaches it.
    pub server: HostAddress,
    /// What the client shows.
    pub token: NetworkToken,
}

impl TrialContext<'_> {
    /// A path in the directory of the run. No name of another trial begins with it.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(self.number.to_string())
    }
}

/// What the client sends to the server so that the server can connect: address bytes and descriptors.
///
/// It travels over a Unix socket, which makes anonymous, named and network mechanisms alike. Where the endpoints may be on two
/// hosts, the server sends it to the client, and it has no descriptors.
#[derive(Debug, Default)]
pub struct Ticket {
    /// At most 4 KiB, in a format that is the mechanism's own.
    pub address: Vec<u8>,
    /// At most 8 descriptors.
    pub fds: Vec<OwnedFd>,
}

impl Ticket {
    /// Exactly `N` descriptors. Fails when some were lost on the way.
    pub(crate) fn descriptors<const N: usize>(self, name: &str) -> Result<[OwnedFd; N], Failure> {
        self.fds.try_into().map_err(|fds: Vec<OwnedFd>| {
            let answer = format!("{} descriptors arrived instead of {N}", fds.len());
            Failure::new("take the ticket of", name, answer, "raise 'ulimit -n'")
        })
    }

    /// Takes the first `N` descriptors out of the ticket, for a mechanism that is made of several parts.
    pub(crate) fn next_descriptors<const N: usize>(&mut self, name: &str) -> Result<[OwnedFd; N], Failure> {
        let rest = self.fds.split_off(N.min(self.fds.len()));
        let fds = std::mem::replace(&mut self.fds, rest);
        Self { address: Vec::new(), fds }.descriptors(name)
    }
}

/// A way to move bytes, or a wake-up, between two endpoints.
///
/// The client calls [`bind`](Self::bind), sends the ticket to the server, and calls [`accept`](Self::accept). The
/// server calls [`connect`](Self::connect) with the ticket. `accept` and `connect` may wait for each other.
///
/// If the card's reach is `network` or `guest`, [`TrialContext::network`] may be set. Then the server binds and the client connects, the
/// ticket has no descriptors, and the server takes nobody who does not show the token.
///
/// When an endpoint is dropped, or its process dies, the calls of its peer must not wait forever where the kernel can
/// tell. Where it cannot (an endpoint that spins on shared memory), the coordinator's deadline ends them.
pub trait Mechanism {
    /// What the mechanism declares about itself.
    const CARD: Card;
    /// What the client holds between `bind` and `accept`.
    type Bound;
    /// A connected endpoint.
    type End: Endpoint + 'static;

    /// Whether the mechanism works on this host with `params`, and its largest message. Tries it for real.
    fn probe(params: &Params) -> Support;

    /// Makes the kernel objects, and the ticket with which the server connects to them. The client calls it.
    fn bind(trial: &TrialContext<'_>) -> Result<(Self::Bound, Ticket), Failure>;

    /// The client's endpoint. The client calls it after the server got the ticket. Names in the file system are unlinked
    /// here.
    fn accept(bound: Self::Bound) -> Result<Self::End, Failure>;

    /// The server's endpoint.
    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<Self::End, Failure>;
}

/// A connected endpoint.
///
/// Its calls are made inside the measured loop: they do not allocate, read no clock and use no `dyn`. They are
/// `#[inline(always)]`, so that an iteration is one piece of code.
pub trait Endpoint {
    /// Whether this kind of endpoint can give in-place access to its messages. The loops of other kinds are compiled
    /// without it.
    const IN_PLACE: bool = false;
    /// Whether messages may be lost. The server's [`receive`](Self::receive) then returns `Errno::NODATA` once the
    /// client waits for an answer and nothing of what it has sent before can still arrive. Only where the server
    /// answers nothing else.
    const LOSES: bool = false;
    /// Whether this kind of endpoint has [`send_with`](Self::send_with) and [`receive_with`](Self::receive_with). The
    /// loops of other kinds are compiled without them.
    const PASSES_FDS: bool = false;

    /// Sends a first part of `bytes`, and waits as the parameter `wait` says. `bytes` is empty only if the card allows
    /// empty messages.
    ///
    /// Returns how many bytes were taken: at least 1 if there are any, and all of them if the card's framing is
    /// `message`. A message of the workload is complete when all its bytes were taken. An endpoint that collects bytes
    /// must have sent them by then.
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno>;

    /// Receives at least 1 byte, or an empty message where the card allows it, into `into`, and waits likewise. `into`
    /// is never empty.
    ///
    /// Returns how many bytes arrived: one whole message if the card's framing is `message`. Returns `Errno::PIPE` when
    /// the peer has closed; 0 means an empty message and nothing else.
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno>;

    /// What the kernel was asked for this endpoint, and what it gave. Called before and after the iterations, never
    /// during them.
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    /// The descriptor that poll(2) finds readable as soon as a first part of a message can be received without waiting,
    /// and not before. Only mechanisms whose card says `polled` have it.
    fn input(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The socket to the peer, where that may be on another host: its counters tell what the network did. A mechanism that
    /// makes a connection in each iteration has none.
    fn network_socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// In which memory messages are written and read. Asked only where [`IN_PLACE`](Self::IN_PLACE) is true.
    fn in_place(&self) -> InPlace {
        InPlace::default()
    }

    /// Room for the next part of a message: 1 to `most_bytes` bytes that the peer no longer reads.
    ///
    /// If the card's framing is `message`, all of `most_bytes`. The room may hold any bytes at first.
    fn reserve(&mut self, _most_bytes: usize) -> Result<&mut [u8], Errno> {
        Err(Errno::OPNOTSUPP)
    }

    /// Sends the first `bytes` of what [`reserve`](Self::reserve) returned, all of them.
    fn commit(&mut self, _bytes: usize) -> Result<(), Errno> {
        Err(Errno::OPNOTSUPP)
    }

    /// The next part of a message, where it lies: 1 to `most_bytes` bytes. `Errno::PIPE` when the peer has closed.
    fn peek(&mut self, _most_bytes: usize) -> Result<&[u8], Errno> {
        Err(Errno::OPNOTSUPP)
    }

    /// Gives back the first `bytes` of what [`peek`](Self::peek) returned, all of them.
    fn release(&mut self, _bytes: usize) -> Result<(), Errno> {
        Err(Errno::OPNOTSUPP)
    }

    /// Sends as [`send`](Self::send) does, with copies of `fds`, which may be none. Tells `trace` of each system call
    /// as it ends. Only mechanisms whose card says `fds` have it.
    fn send_with(
        &mut self,
        _bytes: &[u8],
        _fds: &[BorrowedFd<'_>],
        _trace: &mut impl StepTrace,
    ) -> Result<usize, Errno> {
        Err(Errno::OPNOTSUPP)
    }

    /// Receives as [`receive`](Self::receive) does, takes the descriptors that came with the bytes, and closes them.
    fn receive_with(&mut self, _into: &mut [u8], _trace: &mut impl StepTrace) -> Result<Arrived, Errno> {
        Err(Errno::OPNOTSUPP)
    }
}

/// The parameter that says in which memory messages are written and read, and whether all of it is touched.
pub(crate) const ACCESS: Param = Param {
    name: "access",
    summary: "copy: each message is copied from and to the endpoint's own memory; in-place: every byte is written and read where it travels; none: likewise, but only the message's number is touched",
    domain: Domain::Choice(&["copy", "in-place", "none"]),
    default: Some("copy"),
};

/// In which memory the messages of an endpoint are written and read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InPlace {
    /// Outgoing messages are written in memory that [`Endpoint::reserve`] returns. If not, the endpoint copies them.
    pub outgoing: bool,
    /// Incoming messages are read in memory that [`Endpoint::peek`] returns. If not, the endpoint copies them.
    pub incoming: bool,
    /// Every byte of a message in place is written or read (`access=in-place`). If not, only its sequence number is.
    pub touched: bool,
}

impl InPlace {
    /// What the parameter [`ACCESS`] says, for both directions.
    pub(crate) fn from_params(params: &Params, card: &Card) -> Self {
        let access = params.text(card, ACCESS.name);
        let in_place = access != Some("copy");
        Self { outgoing: in_place, incoming: in_place, touched: access == Some("in-place") }
    }

    /// The same for outgoing messages alone. Incoming messages are copied.
    pub(crate) fn outgoing(self) -> Self {
        Self { incoming: false, ..self }
    }
}

/// What came with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// The number of bytes.
    pub bytes: usize,
    /// The number of descriptors, which are closed by now.
    pub fds: usize,
}

/// Is told when each step of a message ends, where a message takes several system calls.
pub trait StepTrace {
    /// The step `name`, a system call, has ended.
    fn step_ended(&mut self, name: &'static str);
}

/// Ignores every step.
#[derive(Debug, Clone, Copy)]
pub struct NoTrace;

impl StepTrace for NoTrace {
    #[inline(always)]
    fn step_ended(&mut self, _: &'static str) {}
}

/// One primitive that needs no peer, timed alone.
pub trait Operation: Sized {
    /// What the operation declares about itself.
    const CARD: Card;

    /// Whether the operation works on this host with `params`. Tries it for real, unless it works everywhere.
    fn probe(_params: &Params) -> Support {
        Support::UNLIMITED
    }

    /// Prepares what [`call`](Self::call) needs.
    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure>;

    /// Performs the operation once. Passes its result to `black_box`, so that the compiler does not remove the work.
    fn call(&mut self) -> Result<(), Errno>;

    /// What [`read`](Self::read) counts, if the operation reads a timer. Only such operations have the workload
    /// `accuracy`.
    fn timer(&self) -> Option<TimerKind> {
        None
    }

    /// Reads the timer, in ticks of its own.
    fn read(&mut self) -> Result<u64, Errno> {
        Err(Errno::OPNOTSUPP)
    }
}

/// What a timer counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimerKind {
    /// The length of a tick in nanoseconds. `None` for the time-stamp counter, whose tick is found by calibration.
    pub tick_ns: Option<f64>,
    /// The timer runs while the process sleeps. If not, it counts CPU time only.
    pub counts_sleep: bool,
}

impl TimerKind {
    /// A timer of real time in ticks of `tick_ns`.
    pub(crate) const fn wall(tick_ns: f64) -> Option<Self> {
        Some(Self { tick_ns: Some(tick_ns), counts_sleep: true })
    }

    /// A timer of CPU time in ticks of `tick_ns`.
    pub(crate) const fn cpu(tick_ns: f64) -> Option<Self> {
        Some(Self { tick_ns: Some(tick_ns), counts_sleep: false })
    }
}
