//! How an endpoint made of descriptors waits. Not a mechanism itself.

use crate::contract::{NoTrace, StepTrace};
use model::card::Card;
use model::params::EPOLL_ROOM;
use model::{Domain, Param, Params};
use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::read;
use std::cell::Cell;
use sys::{Errno, Failure, OrFail};

/// The parameter that says how endpoints made of descriptors wait.
pub(crate) const WAIT: Param = Param {
    name: "wait",
    summary: "how an endpoint waits: asleep in the call; by calling again at once; asleep in epoll_wait; or there, with a client that is woken also when there is room (EPOLLIN, EPOLLOUT and EPOLLET)",
    domain: Domain::Choice(&["block", "spin", "epoll", EPOLL_ROOM]),
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
    /// Asleep in epoll_wait(2) until something changes, be it input or room, edge-triggered: after a call that found none.
    EpollRoom { changed: OwnedFd, may_read: Cell<bool> },
}

impl Wait {
    /// Waits as `params` say. Watches nothing yet.
    pub(crate) fn new(params: &Params, card: &Card) -> Result<Self, Failure> {
        let instance = || epoll::create(epoll::CreateFlags::CLOEXEC).or_fail("epoll_create1", card.name);
        Ok(match params.text(card, WAIT.name) {
            Some("spin") => Wait::Spin,
            Some("epoll") => Wait::Epoll { readable: instance()?, writable: instance()? },
            Some(EPOLL_ROOM) => Wait::EpollRoom { changed: instance()?, may_read: Cell::new(false) },
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
            Wait::EpollRoom { changed, .. } => {
                watch(changed, input, epoll::EventFlags::IN | epoll::EventFlags::ET)
            }
            _ => Ok(()),
        }
    }

    /// From now on there is nothing to read from `input`. An event loop removes a descriptor before it closes it,
    /// because a copy in a forked child would keep it watched.
    #[inline(always)]
    pub(crate) fn expect_no_more(&self, input: &OwnedFd) -> Result<(), Errno> {
        match self {
            Wait::Epoll { readable: instance, .. } | Wait::EpollRoom { changed: instance, .. } => {
                epoll::delete(instance, input)
            }
            _ => Ok(()),
        }
    }

    /// From now on there may be room in `output`.
    pub(crate) fn expect_room(&self, output: &OwnedFd) -> Result<(), Errno> {
        match self {
            Wait::Epoll { writable, .. } => watch(writable, output, epoll::EventFlags::OUT),
            Wait::EpollRoom { changed, .. } => {
                watch(changed, output, epoll::EventFlags::OUT | epoll::EventFlags::ET)
            }
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
            Wait::EpollRoom { changed, .. } => {
                self.expect_room(socket)?;
                self.sleep_until_changed(epoll::EventFlags::OUT)?;
                epoll::delete(changed, socket)
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
                (Errno::AGAIN, Wait::EpollRoom { .. }) => {
                    self.sleep_until_changed(epoll::EventFlags::OUT)?;
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
            match self {
                Wait::Epoll { readable, .. } => {
                    sleep_until_ready(readable)?;
                    trace.step_ended("epoll_wait");
                }
                Wait::EpollRoom { may_read, .. } if !may_read.get() => {
                    self.sleep_until_changed(epoll::EventFlags::IN)?;
                    trace.step_ended("epoll_wait");
                }
                _ => {}
            }
            let errno = match read() {
                Ok(received) => return Ok(received),
                Err(errno) => errno,
            };
            match (errno, self) {
                (Errno::AGAIN, Wait::Spin) => std::hint::spin_loop(),
                // There is nothing more: the next change is reported.
                (Errno::AGAIN, Wait::EpollRoom { may_read, .. }) => may_read.set(false),
                (Errno::AGAIN, Wait::Epoll { .. }) | (Errno::INTR, _) => {}
                _ => return Err(errno),
            }
        }
    }

    /// Sleeps until one of the `wanted` events is reported to an endpoint that waits for changes. A change that is not wanted wakes it
    /// too, and is kept in mind.
    fn sleep_until_changed(&self, wanted: epoll::EventFlags) -> Result<(), Errno> {
        let Wait::EpollRoom { changed, may_read } = self else { return Ok(()) };
        let ended = epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        let mut seen = epoll::EventFlags::empty();
        while !seen.intersects(wanted | ended) {
            // Input and output may be watched one by one.
            let mut events = [NO_EVENT; 2];
            let count = match epoll::wait(changed, &mut events, None) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            seen = events[..count].iter().fold(seen, |seen, event| seen | event.flags);
            may_read.set(may_read.get() || seen.intersects(epoll::EventFlags::IN | ended));
        }
        Ok(())
    }
}

const NO_EVENT: epoll::Event =
    epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };

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
    let mut events = [NO_EVENT];
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{CARDS, card, of_server};
    use model::Spec;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::thread::gettid;
    use std::time::Duration;

    #[test]
    fn the_server_waits_for_input_alone() {
        let card = card("unix-stream").unwrap();
        for (way, expected) in
            [("epoll-room", "epoll"), ("epoll", "epoll"), ("spin", "spin"), ("block", "block")]
        {
            let spec = of_server(Spec::plain(card.name).waiting(way, CARDS));
            assert_eq!(spec.params.text(card, WAIT.name), Some(expected), "{way}");
        }
    }

    /// How often the thread has left its CPU of its own accord.
    fn voluntary_switches() -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/self/task/{}/status", gettid().as_raw_nonzero())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        line.trim().parse().unwrap()
    }

    #[test]
    fn over_a_unix_socket_a_client_is_woken_also_when_its_message_is_taken() {
        let card = card("unix-stream").unwrap();
        let slept = |way| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (own, peer) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
            let params = Spec::plain(card.name).waiting(way, CARDS).params;
            let wait = Wait::new(&params, card).unwrap();
            // As the endpoints have them: a descriptor for each direction.
            let output = rustix::io::dup(&own).unwrap();
            wait.expect_input(&own).unwrap();
            wait.expect_room(&output).unwrap();
            // The first wait finds that there is room, without sleep.
            wait.until_written(|| rustix::io::write(&output, &[1])).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // Each time the client is asleep by then.
                    std::thread::sleep(Duration::from_millis(50));
                    read(&peer, &mut [0; 8]).unwrap();
                    std::thread::sleep(Duration::from_millis(50));
                    rustix::io::write(&peer, &[2, 3]).unwrap();
                });
                let before = voluntary_switches();
                let mut bytes = [0; 8];
                assert_eq!(wait.until_read(|| read(&own, &mut bytes)), Ok(2));
                assert_eq!(bytes[..2], [2, 3]);
                voluntary_switches() - before
            })
        };
        assert_eq!((slept("epoll"), slept("epoll-room")), (1, 2));
    }
}
