//! Ends made of file descriptors, and the ways in which they wait. Not a mechanism itself.

use crate::contract::{Endpoint, Launch, Mechanism, Ticket};
use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, Param, Params};
use rustix::event::epoll;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{read, write};
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
enum Wait {
    /// In the call itself.
    Block,
    /// By calling again.
    Spin,
    /// In epoll_wait(2), as an event loop does: always before a read, and before a write that found no room.
    Epoll { readable: OwnedFd, writable: OwnedFd },
}

/// An end that reads one descriptor and writes another, which may be the same.
#[derive(Debug)]
pub struct DescriptorEnd {
    input: OwnedFd,
    output: OwnedFd,
    wait: Wait,
    settings: Vec<Setting>,
}

/// The two descriptors of an end: what it reads and what it writes.
#[derive(Debug)]
pub(crate) struct Fds {
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
        let wait = match params.text(card, WAIT.name) {
            Some("spin") => Wait::Spin,
            Some("epoll") => Wait::Epoll {
                readable: watch(&input, epoll::EventFlags::IN, card)?,
                writable: watch(&output, epoll::EventFlags::OUT, card)?,
            },
            _ => Wait::Block,
        };
        let blocking = matches!(wait, Wait::Block);
        for fd in [&input, &output] {
            set_blocking(fd, blocking).or_fail("fcntl(F_SETFL)", card.name)?;
        }
        Ok(Self { input, output, wait, settings })
    }
}

fn set_blocking(fd: &OwnedFd, blocking: bool) -> Result<(), Errno> {
    let mut flags = fcntl_getfl(fd)?;
    flags.set(OFlags::NONBLOCK, !blocking);
    fcntl_setfl(fd, flags)
}

/// An epoll instance that watches `fd` alone, level-triggered (epoll(7)).
fn watch(fd: &OwnedFd, events: epoll::EventFlags, card: &Card) -> Result<OwnedFd, Failure> {
    let instance = epoll::create(epoll::CreateFlags::CLOEXEC).or_fail("epoll_create1", card.name)?;
    epoll::add(&instance, fd, epoll::EventData::new_u64(0), events).or_fail("epoll_ctl", card.name)?;
    Ok(instance)
}

/// Sleeps until the descriptor of `instance` is ready.
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

impl Endpoint for DescriptorEnd {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        loop {
            match (write(&self.output, bytes), &self.wait) {
                (Err(Errno::AGAIN), Wait::Spin) => std::hint::spin_loop(),
                (Err(Errno::AGAIN), Wait::Epoll { writable, .. }) => sleep_until_ready(writable)?,
                (Err(Errno::INTR), _) => {}
                (answer, _) => return answer,
            }
        }
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        loop {
            if let Wait::Epoll { readable, .. } = &self.wait {
                sleep_until_ready(readable)?;
            }
            match (read(&self.input, &mut *into), &self.wait) {
                (Err(Errno::AGAIN), Wait::Spin) => std::hint::spin_loop(),
                (Err(Errno::AGAIN), Wait::Epoll { .. }) | (Err(Errno::INTR), _) => {}
                (Ok(0), _) => return last_word(&self.input, into),
                (answer, _) => return answer,
            }
        }
    }

    fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }
}

/// What `input` says after it has said that its peer closed.
///
/// A sequenced-packet socket that does not block looks at its queue first and at its peer second: a peer that sends and
/// closes in between makes it say that there is nothing more, once, with the last message in the queue.
#[cold]
fn last_word(input: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
    match read(input, into)? {
        0 => Err(Errno::PIPE),
        count => Ok(count),
    }
}

/// A mechanism whose four descriptors all exist from the start: far's are sent in the ticket.
pub(crate) trait Pair {
    /// What it declares about itself.
    const CARD: Card;

    /// Whether it works with `params`.
    fn probe(params: &Params) -> Support;

    /// The descriptors of near and of far, and what was set on them.
    fn open(params: &Params) -> Result<(Fds, Fds, Vec<Setting>), Failure>;
}

impl<P: Pair> Mechanism for P {
    const CARD: Card = P::CARD;
    type Bound = DescriptorEnd;
    type End = DescriptorEnd;

    fn probe(params: &Params) -> Support {
        P::probe(params)
    }

    fn bind(launch: &Launch<'_>) -> Result<(DescriptorEnd, Ticket), Failure> {
        let (near, far, settings) = P::open(launch.params)?;
        let end = DescriptorEnd::new(near, launch.params, &P::CARD, settings)?;
        Ok((end, Ticket { address: Vec::new(), fds: vec![far.input, far.output] }))
    }

    fn accept(bound: DescriptorEnd) -> Result<DescriptorEnd, Failure> {
        Ok(bound)
    }

    fn connect(launch: &Launch<'_>, ticket: Ticket) -> Result<DescriptorEnd, Failure> {
        let [input, output] = ticket.descriptors(P::CARD.name)?;
        DescriptorEnd::new(Fds { input, output }, launch.params, &P::CARD, Vec::new())
    }
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
