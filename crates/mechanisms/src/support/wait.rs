//! How an endpoint made of descriptors waits. Not a mechanism itself.

use crate::contract::{NoTrace, StepTrace};
use model::card::Card;
use model::{Domain, Param, Params};
use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::read;
use sys::{Errno, Failure, OrFail};

/// The parameter that says how endpoints made of descriptors wait.
pub(crate) const WAIT: Param = Param {
    name: "wait",
    summary: "how an endpoint waits: asleep in the call; by calling again at once; or asleep in epoll_wait",
    domain: Domain::Choice(&["block", "spin", "epoll"]),
    default: Some("block"),
};

/// How an endpoint waits for its descriptors.
#[derive(Debug)]
pub(crate) enum Wait {
    /// Asleep in the call itself.
    Block,
    /// By calling again at once.
    Spin,
    /// Asleep in epoll_wait(2), as an event loop: always before a read, and before a write that found no room.
    Epoll { readable: OwnedFd, writable: OwnedFd },
}

impl Wait {
    /// Waits as `params` say. Watches nothing yet.
    pub(crate) fn new(params: &Params, card: &Card) -> Result<Self, Failure> {
        let instance = || epoll::create(epoll::CreateFlags::CLOEXEC).or_fail("epoll_create1", card.name);
        Ok(match params.text(card, WAIT.name) {
            Some("spin") => Wait::Spin,
            Some("epoll") => Wait::Epoll { readable: instance()?, writable: instance()? },
            _ => Wait::Block,
        })
    }

    /// Whether the descriptors must block.
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

    /// From now on there is nothing to read from `input`. An event loop removes a descriptor before it closes it,
    /// because a copy in a forked child would keep it watched.
    #[inline(always)]
    pub(crate) fn expect_no_more(&self, input: &OwnedFd) -> Result<(), Errno> {
        match self {
            Wait::Epoll { readable, .. } => epoll::delete(readable, input),
            _ => Ok(()),
        }
    }

    /// From now on there may be room in `output`.
    pub(crate) fn expect_room(&self, output: &OwnedFd) -> Result<(), Errno> {
        match self {
            Wait::Epoll { writable, .. } => watch(writable, output, epoll::EventFlags::OUT),
            _ => Ok(()),
        }
    }

    /// Waits until `socket` may be connected.
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

    /// Calls `write` until it no longer reports that there is no room.
    #[inline(always)]
    pub(crate) fn until_written(&self, write: impl FnMut() -> Result<usize, Errno>) -> Result<usize, Errno> {
        self.until_written_traced(write, &mut NoTrace)
    }

    /// The same, and tells `trace` of a wait that was a call of its own.
    #[inline(always)]
    pub(crate) fn until_written_traced(
        &self,
        mut write: impl FnMut() -> Result<usize, Errno>,
        trace: &mut impl StepTrace,
    ) -> Result<usize, Errno> {
        loop {
            let errno = match write() {
                Ok(bytes) => return Ok(bytes),
                Err(errno) => errno,
            };
            match (errno, self) {
                (Errno::AGAIN, Wait::Spin) => std::hint::spin_loop(),
                (Errno::AGAIN, Wait::Epoll { writable, .. }) => {
                    sleep_until_ready(writable)?;
                    trace.step_ended("epoll_wait, for room");
                }
                (Errno::INTR, _) => {}
                _ => return Err(errno),
            }
        }
    }

    /// Calls `read` until it no longer reports that there is nothing.
    #[inline(always)]
    pub(crate) fn until_read<T>(&self, read: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
        self.until_read_traced(read, &mut NoTrace)
    }

    /// The same, and tells `trace` of a wait that was a call of its own.
    #[inline(always)]
    pub(crate) fn until_read_traced<T>(
        &self,
        mut read: impl FnMut() -> Result<T, Errno>,
        trace: &mut impl StepTrace,
    ) -> Result<T, Errno> {
        loop {
            if let Wait::Epoll { readable, .. } = self {
                sleep_until_ready(readable)?;
                trace.step_ended("epoll_wait");
            }
            let errno = match read() {
                Ok(received) => return Ok(received),
                Err(errno) => errno,
            };
            match (errno, self) {
                (Errno::AGAIN, Wait::Spin) => std::hint::spin_loop(),
                (Errno::AGAIN, Wait::Epoll { .. }) | (Errno::INTR, _) => {}
                _ => return Err(errno),
            }
        }
    }
}

/// Adds `fd` to the epoll instance for `events` (epoll(7)).
#[inline(always)]
fn watch(instance: &OwnedFd, fd: &OwnedFd, events: epoll::EventFlags) -> Result<(), Errno> {
    epoll::add(instance, fd, epoll::EventData::new_u64(0), events)
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

/// Reads `input` once more after it has reported that its peer closed.
///
/// A sequenced-packet socket that does not block checks its queue first and its peer second. If the peer sends and
/// closes in between, the socket once reports that there is nothing more, while the last message is in the queue. A
/// pseudo-terminal does the same, and reports it by `EIO`.
#[cold]
pub(crate) fn read_after_hangup(input: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
    match read(input, into) {
        Ok(0) | Err(Errno::IO) => Err(Errno::PIPE),
        received => received,
    }
}
