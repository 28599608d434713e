//! The contract that every row of the table keeps, and that the conformance tests check.

use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Workload};
use rustix::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use sys::{Errno, Failure};

/// What the endpoints are going to carry; a mechanism may size its kernel objects by it.
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
    /// What will be carried.
    pub shape: Shape,
    /// The directory of the run, for names in the file system. It is removed with all in it on every way out.
    pub directory: &'a Path,
    /// The number of this trial in the run.
    pub number: u64,
}

impl TrialContext<'_> {
    /// A path in the run's directory whose name no other trial begins its names with.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(self.number.to_string())
    }
}

/// What client hands to server so that server can connect: address bytes and descriptors.
///
/// It crosses a Unix socket, so that anonymous, named and network mechanisms look alike.
#[derive(Debug, Default)]
pub struct Ticket {
    /// At most 4 KiB, in a form of the mechanism's own.
    pub address: Vec<u8>,
    /// At most 8 descriptors.
    pub fds: Vec<OwnedFd>,
}

impl Ticket {
    /// Exactly `N` descriptors, or the failure of a ticket that lost some on its way.
    pub(crate) fn descriptors<const N: usize>(self, name: &str) -> Result<[OwnedFd; N], Failure> {
        self.fds.try_into().map_err(|fds: Vec<OwnedFd>| {
            let answer = format!("{} descriptors arrived instead of {N}", fds.len());
            Failure::new("take the ticket of", name, answer, "raise 'ulimit -n'")
        })
    }

    /// As [`descriptors`](Self::descriptors), where a mechanism has several facilities: the first `N`, which leave
    /// the ticket.
    pub(crate) fn next_descriptors<const N: usize>(&mut self, name: &str) -> Result<[OwnedFd; N], Failure> {
        let rest = self.fds.split_off(N.min(self.fds.len()));
        let fds = std::mem::replace(&mut self.fds, rest);
        Self { address: Vec::new(), fds }.descriptors(name)
    }
}

/// A way to move bytes, or a wake-up, between two endpoints.
///
/// Client calls [`bind`](Self::bind), sends the ticket to server, and calls [`accept`](Self::accept);
/// server calls [`connect`](Self::connect) with the ticket. `accept` and `connect` may wait for each
/// other. When either end is dropped, or its process dies, the other's calls must not wait forever
/// where the kernel can tell; where it cannot (spinning on shared memory), the coordinator's
/// deadline ends them.
pub trait Mechanism {
    /// What it declares about itself.
    const CARD: Card;
    /// What client holds between `bind` and `accept`.
    type Bound;
    /// A connected end.
    type End: Endpoint;

    /// Whether it works on this host with `params`, by trying, and its largest message.
    fn probe(params: &Params) -> Support;

    /// Makes the kernel objects, and the ticket that lets server connect to them. Client's side.
    fn bind(trial: &TrialContext<'_>) -> Result<(Self::Bound, Ticket), Failure>;

    /// Client's end, once server holds the ticket. Names in the file system are unlinked here.
    fn accept(bound: Self::Bound) -> Result<Self::End, Failure>;

    /// Server's end.
    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<Self::End, Failure>;
}

/// A connected end. Calls happen inside the measured loop: no allocation, no clock, no `dyn`, and
/// `#[inline(always)]`, so that an iteration is one piece of code.
pub trait Endpoint {
    /// Whether an end of this kind can lend memory; the loops of the others are compiled without that.
    const IN_PLACE: bool = false;
    /// Whether messages may be lost: server's [`receive`](Self::receive) then says `Errno::NODATA` when client waits for server's
    /// word, and nothing of what client has sent before will come any more. Only where client is never answered but by that.
    const LOSES: bool = false;
    /// Whether an end of this kind has [`send_with`](Self::send_with) and [`receive_with`](Self::receive_with); likewise.
    const PASSES_FDS: bool = false;

    /// Hands over a first part of `bytes`; waits as the end's `wait` says. They are not empty, unless the card says that
    /// a message may be.
    ///
    /// Returns how many bytes were taken, at least 1 if there are any. Where the card's framing is `message`, all
    /// are. A message of the workload is over when all its bytes were taken: an end that gathers
    /// bytes must hand them over by then.
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno>;

    /// Receives at least 1 byte, or an empty message where the card has them, into `into`, which is never empty; waits
    /// likewise.
    ///
    /// Returns how many bytes arrived. Where the card's framing is `message`, one whole message.
    /// When the peer has closed, `Errno::PIPE`: 0 is an empty message and nothing else.
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno>;

    /// What was asked of the kernel for this end and what it gave. Read before and after the iterations, never within.
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    /// What poll(2) finds readable as soon as a first part of a message can be received without waiting, and not
    /// before. Only ends of rows whose card says `polled` have it.
    fn input(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// In which memory messages are made and read. Only where [`IN_PLACE`](Self::IN_PLACE) is it asked for.
    fn in_place(&self) -> InPlace {
        InPlace::default()
    }

    /// Where a next part of a message is to be made: 1 to `most_bytes` bytes that the peer is done with.
    ///
    /// Where the card's framing is `message`, all of `most_bytes`. What these bytes hold is undefined.
    fn reserve(&mut self, _most_bytes: usize) -> Result<&mut [u8], Errno> {
        Err(Errno::OPNOTSUPP)
    }

    /// Hands over the first `bytes` of what [`reserve`](Self::reserve) lent, all of them.
    fn commit(&mut self, _bytes: usize) -> Result<(), Errno> {
        Err(Errno::OPNOTSUPP)
    }

    /// A next part of a message, where it lies: 1 to `most_bytes` bytes. When the peer has closed, `Errno::PIPE`.
    fn peek(&mut self, _most_bytes: usize) -> Result<&[u8], Errno> {
        Err(Errno::OPNOTSUPP)
    }

    /// Gives back the first `bytes` of what [`peek`](Self::peek) lent, all of them.
    fn release(&mut self, _bytes: usize) -> Result<(), Errno> {
        Err(Errno::OPNOTSUPP)
    }

    /// As [`send`](Self::send), with copies of `fds` beside the bytes, which may be none. Tells `steps` of each
    /// system call that it makes. Only ends of rows whose card says `fds` have it.
    fn send_with(
        &mut self,
        _bytes: &[u8],
        _fds: &[BorrowedFd<'_>],
        _steps: &mut impl Steps,
    ) -> Result<usize, Errno> {
        Err(Errno::OPNOTSUPP)
    }

    /// As [`receive`](Self::receive), and takes the descriptors that came with the bytes and closes them.
    fn receive_with(&mut self, _into: &mut [u8], _steps: &mut impl Steps) -> Result<Arrived, Errno> {
        Err(Errno::OPNOTSUPP)
    }
}

/// The parameter by which ends that lend memory say who touches it (`InPlace`).
pub(crate) const ACCESS: Param = Param {
    name: "access",
    summary: "copied from and to an endpoint's own memory; made and read, every byte, where it travels; or not touched but for its number",
    domain: Domain::Choice(&["copy", "in-place", "none"]),
    default: Some("copy"),
};

/// In which memory an end's messages are made and read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InPlace {
    /// Outgoing messages are made in memory that [`Endpoint::reserve`] lends; else the end copies them.
    pub outgoing: bool,
    /// Incoming messages are read in memory that [`Endpoint::peek`] lends; else the end copies them.
    pub incoming: bool,
    /// In lent memory every byte is written, or read: `access=in-place`. Else the sequence number alone is.
    pub touched: bool,
}

impl InPlace {
    /// As the parameter [`ACCESS`] says, of both directions.
    pub(crate) fn asked(params: &Params, card: &Card) -> Self {
        let access = params.text(card, ACCESS.name);
        let in_place = access != Some("copy");
        Self { outgoing: in_place, incoming: in_place, touched: access == Some("in-place") }
    }

    /// Of outgoing messages alone: incoming ones are copied whatever was asked.
    pub(crate) fn outgoing(self) -> Self {
        Self { incoming: false, ..self }
    }
}

/// What came with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Bytes.
    pub bytes: usize,
    /// Descriptors, which are closed by now.
    pub fds: usize,
}

/// Who is told of the steps of a message that takes several system calls, as each ends.
pub trait Steps {
    /// The step `name`, a system call, is over.
    fn done(&mut self, name: &'static str);
}

/// Nobody.
#[derive(Debug, Clone, Copy)]
pub struct Unnoted;

impl Steps for Unnoted {
    #[inline(always)]
    fn done(&mut self, _: &'static str) {}
}

/// One primitive that needs no peer, timed alone.
pub trait Operation: Sized {
    /// What it declares about itself.
    const CARD: Card;

    /// Whether it works on this host with `params`, by trying; unless it is said here, everywhere.
    fn probe(_params: &Params) -> Support {
        Support::UNLIMITED
    }

    /// Makes ready what [`call`](Self::call) needs.
    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure>;

    /// Does it once. Its result must be kept alive, so that the compiler keeps the work.
    fn call(&mut self) -> Result<(), Errno>;

    /// What [`read`](Self::read) counts, where the operation reads a timer: only those have the workload `accuracy`.
    fn timer(&self) -> Option<Timer> {
        None
    }

    /// Reads the timer, in its own ticks.
    fn read(&mut self) -> Result<u64, Errno> {
        Err(Errno::OPNOTSUPP)
    }
}

/// What a timer counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timer {
    /// The unit of its readings, in nanoseconds; `None` for the time-stamp counter's, which is found by calibration.
    pub tick_ns: Option<f64>,
    /// It goes on while the process sleeps; else it counts CPU time alone.
    pub counts_sleep: bool,
}

impl Timer {
    /// A timer of real time in ticks of `tick_ns`.
    pub(crate) const fn wall(tick_ns: f64) -> Option<Self> {
        Some(Self { tick_ns: Some(tick_ns), counts_sleep: true })
    }

    /// A timer of CPU time in ticks of `tick_ns`.
    pub(crate) const fn cpu(tick_ns: f64) -> Option<Self> {
        Some(Self { tick_ns: Some(tick_ns), counts_sleep: false })
    }
}

/// The workloads of an operation that reads a timer.
pub(crate) const OF_TIMERS: &[Workload] = &[Workload::Cost, Workload::Accuracy];
