//! Ends made of file descriptors, and the ways in which they wait. Not a mechanism itself.

use crate::contract::{Arrived, Endpoint, Mechanism, Shape, Steps, Ticket, TrialContext};
use crate::fd_message::{MOST_FDS, receive_message, send_message};
use crate::socket::set_buffers;
use arrayvec::ArrayVec;
use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, Param, Params, Workload};
use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{read, write};
use std::marker::PhantomData;
use std::path::Path;
use sys::{Errno, Failure, OrFail};

/// The parameter by which ends made of descriptors wait.
pub(crate) const WAIT: Param = Param {
    name: "wait",
    summary: "how an endpoint waits: asleep in the call, by calling again, or asleep in epoll_wait",
    domain: Domain::Choice(&["block", "spin", "epoll"]),
    default: Some("block"),
};

/// How an end waits for its descriptors.
#[derive(Debug)]
pub(crate) enum Wait {
    /// In the call itself.
    Block,
    /// By calling again.
    Spin,
    /// In epoll_wait(2), as an event loop does: always before a read, and before a write that found no room.
    Epoll { readable: OwnedFd, writable: OwnedFd },
}

impl Wait {
    /// As `params` say; of nothing yet.
    pub(crate) fn new(params: &Params, card: &Card) -> Result<Self, Failure> {
        let instance = || epoll::create(epoll::CreateFlags::CLOEXEC).or_fail("epoll_create1", card.name);
        Ok(match params.text(card, WAIT.name) {
            Some("spin") => Wait::Spin,
            Some("epoll") => Wait::Epoll { readable: instance()?, writable: instance()? },
            _ => Wait::Block,
        })
    }

    /// Whether the descriptors are to block.
    pub(crate) fn blocks(&self) -> bool {
        matches!(self, Wait::Block)
    }

    /// From now on there may be something to read from `input`.
    #[inline(always)]
    pub(crate) fn expect_input(&self, input: &OwnedFd) -> Result<(), Errno> {
        match self {
            Wait::Epoll { readable, .. } => watch(readable, input, epoll::EventFlags::IN),
            _ => Ok(()),
        }
    }

    /// From now on there is nothing to read from `input`, which an event loop says before it closes it: a copy of
    /// the descriptor in a forked child would keep it watched.
    #[inline(always)]
    pub(crate) fn expect_no_more(&self, input: &OwnedFd) -> Result<(), Errno> {
        match self {
            Wait::Epoll { readable, .. } => epoll::delete(readable, input),
            _ => Ok(()),
        }
    }

    /// From now on there may be room in `output`.
    fn expect_room(&self, output: &OwnedFd) -> Result<(), Errno> {
        match self {
            Wait::Epoll { writable, .. } => watch(writable, output, epoll::EventFlags::OUT),
            _ => Ok(()),
        }
    }

    /// Waits until `socket`, which is about to be connected, may be.
    pub(crate) fn until_connected(&self, socket: &OwnedFd) -> Result<(), Errno> {
        match self {
            Wait::Block => match poll(&mut [PollFd::new(socket, PollFlags::OUT)], None) {
                Err(Errno::INTR) => Ok(()),
                other => other.map(drop),
            },
            Wait::Spin => {
                std::hint::spin_loop();
                Ok(())
            }
            Wait::Epoll { writable, .. } => {
                self.expect_room(socket)?;
                sleep_until_ready(writable)?;
                epoll::delete(writable, socket)
            }
        }
    }

    /// Calls `write` until it says something else than that there is no room.
    #[inline(always)]
    pub(crate) fn until_written(
        &self,
        mut write: impl FnMut() -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        loop {
            match (write(), self) {
                (Err(Errno::AGAIN), Wait::Spin) => std::hint::spin_loop(),
                (Err(Errno::AGAIN), Wait::Epoll { writable, .. }) => sleep_until_ready(writable)?,
                (Err(Errno::INTR), _) => {}
                (answer, _) => return answer,
            }
        }
    }

    /// Calls `read` until it says something else than that there is nothing.
    #[inline(always)]
    pub(crate) fn until_read<T>(&self, mut read: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
        loop {
            if let Wait::Epoll { readable, .. } = self {
                sleep_until_ready(readable)?;
            }
            match (read(), self) {
                (Err(Errno::AGAIN), Wait::Spin) => std::hint::spin_loop(),
                (Err(Errno::AGAIN), Wait::Epoll { .. }) | (Err(Errno::INTR), _) => {}
                (answer, _) => return answer,
            }
        }
    }
}

/// Has the epoll instance watch `fd`, level-triggered (epoll(7)).
#[inline(always)]
fn watch(instance: &OwnedFd, fd: &OwnedFd, events: epoll::EventFlags) -> Result<(), Errno> {
    epoll::add(instance, fd, epoll::EventData::new_u64(0), events)
}

/// An end that reads one descriptor and writes another, which may be the same.
#[derive(Debug)]
pub struct DescriptorEnd {
    input: OwnedFd,
    output: OwnedFd,
    wait: Wait,
    /// What says that it received nothing has received an empty message; else its peer has closed.
    empty: bool,
    settings: Vec<Setting>,
}

/// The two descriptors of an end: what it reads and what it writes.
#[derive(Debug)]
pub struct Fds {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
}

impl Fds {
    /// An end that reads and writes one descriptor.
    pub(crate) fn both_ways(fd: OwnedFd, name: &str) -> Result<Self, Failure> {
        let input = rustix::io::fcntl_dupfd_cloexec(&fd, 0).or_fail("dup", name)?;
        Ok(Self { input, output: fd })
    }
}

impl DescriptorEnd {
    /// The end over `fds` of a row with `card`, waiting as `params` say.
    pub(crate) fn new(
        fds: Fds,
        params: &Params,
        card: &Card,
        settings: Vec<Setting>,
    ) -> Result<Self, Failure> {
        let Fds { input, output } = fds;
        let wait = Wait::new(params, card)?;
        wait.expect_input(&input).or_fail("epoll_ctl", card.name)?;
        wait.expect_room(&output).or_fail("epoll_ctl", card.name)?;
        for fd in [&input, &output] {
            set_blocking(fd, wait.blocks()).or_fail("fcntl(F_SETFL)", card.name)?;
        }
        Ok(Self { input, output, wait, empty: card.empty, settings })
    }

    /// What it writes, for ends that hand over bytes by other calls than write(2).
    pub(crate) fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }
}

/// An end over descriptors that are connected, however they came to be.
pub trait OverDescriptors: Endpoint + std::fmt::Debug + Sized {
    /// Sets the buffers of a socket that is to be connected, and says what it has.
    fn set_buffers(socket: &OwnedFd, params: &Params, card: &Card) -> Result<Vec<Setting>, Failure> {
        set_buffers(socket, params, card)
    }

    /// The end over `fds` of a row with `card`, set as `params` say, for what `shape` says.
    fn over(
        fds: Fds,
        params: &Params,
        shape: Shape,
        card: &Card,
        settings: Vec<Setting>,
    ) -> Result<Self, Failure>;
}

impl OverDescriptors for DescriptorEnd {
    fn over(
        fds: Fds,
        params: &Params,
        _: Shape,
        card: &Card,
        settings: Vec<Setting>,
    ) -> Result<Self, Failure> {
        Self::new(fds, params, card, settings)
    }
}

pub(crate) fn set_blocking(fd: &OwnedFd, blocking: bool) -> Result<(), Errno> {
    let mut flags = fcntl_getfl(fd)?;
    flags.set(OFlags::NONBLOCK, !blocking);
    fcntl_setfl(fd, flags)
}

/// Sleeps until a descriptor of `instance` is ready.
#[inline]
fn sleep_until_ready(instance: impl AsFd) -> Result<(), Errno> {
    let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }];
    loop {
        match epoll::wait(&instance, &mut events, None) {
            Err(Errno::INTR) => {}
            other => return other.map(drop),
        }
    }
}

impl DescriptorEnd {
    /// Receives a message and gives the descriptors that came with it to `take`.
    #[inline(always)]
    pub(crate) fn receive_message(
        &self,
        into: &mut [u8],
        mut take: impl FnMut(OwnedFd),
    ) -> Result<Arrived, Errno> {
        let (bytes, fds) = self.wait.until_read(|| receive_message(&self.input, &mut *into, &mut take))?;
        if bytes == 0 && fds == 0 && !self.empty { Err(Errno::PIPE) } else { Ok(Arrived { bytes, fds }) }
    }
}

impl Endpoint for DescriptorEnd {
    const PASSES_FDS: bool = true;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.wait.until_written(|| write(&self.output, bytes))
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match self.wait.until_read(|| read(&self.input, &mut *into)) {
            Ok(0) if self.empty => Ok(0),
            Ok(0) | Err(Errno::IO) => last_word(&self.input, into),
            // As some protocols say that the peer has closed, and all when it left something unread.
            Err(Errno::CONNRESET) => Err(Errno::PIPE),
            received => received,
        }
    }

    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        Some(self.input.as_fd())
    }

    #[inline(always)]
    fn send_with(
        &mut self,
        bytes: &[u8],
        fds: &[BorrowedFd<'_>],
        steps: &mut impl Steps,
    ) -> Result<usize, Errno> {
        let sent = self.wait.until_written(|| send_message(&self.output, bytes, fds))?;
        steps.done("sendmsg");
        Ok(sent)
    }

    #[inline(always)]
    fn receive_with(&mut self, into: &mut [u8], steps: &mut impl Steps) -> Result<Arrived, Errno> {
        let mut came = ArrayVec::<OwnedFd, MOST_FDS>::new();
        let arrived = self.receive_message(into, |fd| came.push(fd))?;
        steps.done("recvmsg");
        if arrived.fds > 0 {
            drop(came);
            steps.done("close, all passed");
        }
        Ok(arrived)
    }
}

/// What `input` says after it has said that its peer closed.
///
/// A sequenced-packet socket that does not block looks at its queue first and at its peer second: a peer that sends and
/// closes in between makes it say that there is nothing more, once, with the last message in the queue. So does a
/// pseudoterminal, which says it by `EIO`.
#[cold]
pub(crate) fn last_word(input: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
    match read(input, into) {
        Ok(0) | Err(Errno::IO) => Err(Errno::PIPE),
        received => received,
    }
}

/// A mechanism whose four descriptors all exist from the start: server's are sent in the ticket.
pub(crate) trait Pair {
    /// What it declares about itself.
    const CARD: Card;

    /// Whether it works with `params`.
    fn probe(params: &Params) -> Support;

    /// The descriptors of client and of server, and what was set on them.
    fn open(params: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure>;
}

impl<P: Pair> Mechanism for P {
    const CARD: Card = P::CARD;
    type Bound = DescriptorEnd;
    type End = DescriptorEnd;

    fn probe(params: &Params) -> Support {
        P::probe(params)
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(DescriptorEnd, Ticket), Failure> {
        bind_pair::<P, _>(trial)
    }

    fn accept(bound: DescriptorEnd) -> Result<DescriptorEnd, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<DescriptorEnd, Failure> {
        connect_pair::<P, _>(trial, ticket)
    }
}

/// A [`Pair`] as a row of the table whose ends are `E`.
#[derive(Debug)]
pub struct PairWith<P, E>(PhantomData<(P, E)>);

impl<P: Pair, E: OverDescriptors> Mechanism for PairWith<P, E> {
    const CARD: Card = P::CARD;
    type Bound = E;
    type End = E;

    fn probe(params: &Params) -> Support {
        match P::probe(params) {
            Support::Yes { .. } => tried::<Self>(params),
            no => no,
        }
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(E, Ticket), Failure> {
        bind_pair::<P, E>(trial)
    }

    fn accept(bound: E) -> Result<E, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<E, Failure> {
        connect_pair::<P, E>(trial, ticket)
    }
}

fn bind_pair<P: Pair, E: OverDescriptors>(trial: &TrialContext<'_>) -> Result<(E, Ticket), Failure> {
    let (client, server, settings) = P::open(trial.params)?;
    let end = E::over(client, trial.params, trial.shape, &P::CARD, settings)?;
    Ok((end, Ticket { address: Vec::new(), fds: vec![server.input, server.output] }))
}

fn connect_pair<P: Pair, E: OverDescriptors>(trial: &TrialContext<'_>, ticket: Ticket) -> Result<E, Failure> {
    let [input, output] = ticket.descriptors(P::CARD.name)?;
    E::over(Fds { input, output }, trial.params, trial.shape, &P::CARD, Vec::new())
}

/// Whether a byte that client sends by `M` arrives at server, where server need not answer to be connected.
pub(crate) fn tried<M: Mechanism>(params: &Params) -> Support {
    let shape = Shape { size_bytes: 1, workload: Workload::Latency };
    let trial = TrialContext { params, shape, directory: Path::new(""), number: 0 };
    let trial = || {
        let (bound, ticket) = M::bind(&trial)?;
        let mut server = M::connect(&trial, ticket)?;
        let mut client = M::accept(bound)?;
        client.send(&[1]).or_fail("send by", M::CARD.name)?;
        server.receive(&mut [0]).or_fail("receive by", M::CARD.name)
    };
    supported(trial())
}

/// The support of a mechanism that worked when it was tried.
pub(crate) fn supported<T>(tried: Result<T, Failure>) -> Support {
    match tried {
        Ok(_) => Support::UNLIMITED,
        Err(failure) => Support::No {
            reason: format!("{} {}: {}", failure.operation, failure.object, failure.answer),
            remedy: failure.next,
        },
    }
}

/// The largest size below `refused_bytes` that `takes` takes, found by bisection; 0 when it takes none.
pub(crate) fn largest_below(
    refused_bytes: usize,
    takes: impl Fn(usize) -> Result<bool, Failure>,
) -> Result<usize, Failure> {
    let (mut taken, mut refused) = (0, refused_bytes);
    while refused - taken > 1 {
        let middle = taken.midpoint(refused);
        if takes(middle)? { taken = middle } else { refused = middle }
    }
    Ok(taken)
}
