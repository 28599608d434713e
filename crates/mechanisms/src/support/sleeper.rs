//! What endpoints in shared memory sleep on: a futex, or an object for each endpoint that remembers a wake-up. Not a
//! mechanism itself.
//!
//! No sleep has a timeout: an endpoint that closes wakes its peer, the futex's flag is set before the last poll, and an
//! object that remembers a wake-up cannot lose it. A peer that is killed wakes nobody; the coordinator's deadline ends
//! that wait.

use crate::contract::{Ticket, TrialContext};
use crate::support::names::{Registered, probe_sysv};
use crate::support::probe::support_of;
use model::card::{Card, Support};
use model::{Domain, Param, Params};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::{read, retry_on_intr, write};
use sys::name::ObjectName;
use sys::posix_sync::{self, GuardedCount};
use sys::ring::WaitStrategy;
use sys::sysv::{self, SysvKey};
use sys::{Errno, Failure, OrFail};

/// The parameter that says how endpoints in shared memory wait.
pub(crate) const WAIT: Param = Param {
    name: "wait",
    summary: "how an endpoint waits: asleep on one of these; spinning; or spinning, and then asleep on a futex",
    domain: Domain::Choice(&[
        "futex",
        "spin",
        "spin-then-block",
        "eventfd",
        "sysv-sem",
        "posix-sem",
        "mutex",
    ]),
    default: Some("futex"),
};

/// The parameter that says how often `wait=spin-then-block` spins before it sleeps.
pub(crate) const SPINS: Param = Param {
    name: "spins",
    summary: "how often wait=spin-then-block checks for a message, with a pause in between, before it sleeps",
    domain: Domain::Count,
    default: Some("1000"),
};

/// What an endpoint sleeps on, and what it wakes its peer by.
#[derive(Debug)]
pub(crate) enum Sleeper {
    /// The futex of the ring, after some spinning.
    Futex { spins: u32 },
    /// A counter in the kernel for each endpoint.
    Eventfd { own: OwnedFd, peers: OwnedFd },
    /// A semaphore of a set for each endpoint.
    SystemV { semaphores: sysv::SysvSemaphores, own: u16, _registered: Option<Registered> },
    /// A semaphore in shared memory for each endpoint.
    Posix { semaphores: posix_sync::PosixSemaphores<2>, own: usize },
    /// A bit for each endpoint under a mutex, with one condition variable.
    Mutex { count: GuardedCount, own: u32 },
}

/// The bits of [`Sleeper::Mutex`].
const CLIENT: u32 = 1;
const SERVER: u32 = 2;

impl Sleeper {
    /// Whether what `params` ask for exists here.
    pub(crate) fn probe(params: &Params, card: &Card) -> Support {
        let wait = params.text(card, WAIT.name);
        if wait != Some("spin-then-block") && params.text(card, SPINS.name) != SPINS.default {
            return Support::No {
                reason: format!("{} means nothing unless wait=spin-then-block", SPINS.name),
                remedy: format!("leave out {}, or add wait=spin-then-block", SPINS.name),
            };
        }
        match wait {
            Some("sysv-sem") => probe_sysv(sysv::SysvKind::Semaphores),
            Some("posix-sem") => support_of(posix_sync::PosixSemaphores::<2>::create()),
            Some("mutex") => support_of(GuardedCount::create()),
            _ => Support::UNLIMITED,
        }
    }

    /// Makes the client's. Adds to `ticket` what the server needs to make its own.
    pub(crate) fn bind(trial: &TrialContext<'_>, card: &Card, ticket: &mut Ticket) -> Result<Self, Failure> {
        Ok(match trial.params.text(card, WAIT.name) {
            Some("eventfd") => Self::bind_eventfds(ticket)?,
            Some("sysv-sem") => {
                let key = SysvKey::hashed(trial.path());
                let (semaphores, registered) = trial
                    .make_named(ObjectName::SysvSem(key), || sysv::SysvSemaphores::create(key, 2, false))?;
                Sleeper::SystemV { semaphores, own: 0, _registered: Some(registered) }
            }
            Some("posix-sem") => {
                let (semaphores, fd) = posix_sync::PosixSemaphores::create()?;
                ticket.fds.push(fd);
                Sleeper::Posix { semaphores, own: 0 }
            }
            Some("mutex") => {
                let (count, fd) = GuardedCount::create()?;
                ticket.fds.push(fd);
                Sleeper::Mutex { count, own: CLIENT }
            }
            _ => Sleeper::Futex { spins: spins(trial.params, card) },
        })
    }

    /// Makes the client's over two eventfds. Adds both to `ticket`.
    pub(crate) fn bind_eventfds(ticket: &mut Ticket) -> Result<Self, Failure> {
        let (own, peers) = (counter()?, counter()?);
        for fd in [&peers, &own] {
            ticket.fds.push(fd.try_clone().or_fail("dup", "eventfd")?);
        }
        Ok(Sleeper::Eventfd { own, peers })
    }

    /// Makes the server's over the two eventfds that the client added to `ticket`.
    pub(crate) fn connect_eventfds(card: &Card, ticket: &mut Ticket) -> Result<Self, Failure> {
        let [own, peers] = ticket.next_descriptors(card.name)?;
        Ok(Sleeper::Eventfd { own, peers })
    }

    /// Makes the server's, with what the client added to `ticket`.
    pub(crate) fn connect(
        trial: &TrialContext<'_>,
        card: &Card,
        ticket: &mut Ticket,
    ) -> Result<Self, Failure> {
        Ok(match trial.params.text(card, WAIT.name) {
            Some("eventfd") => Self::connect_eventfds(card, ticket)?,
            Some("sysv-sem") => {
                let semaphores = sysv::SysvSemaphores::open(SysvKey::hashed(trial.path()), 2, false)?;
                Sleeper::SystemV { semaphores, own: 1, _registered: None }
            }
            Some("posix-sem") => {
                let [fd] = ticket.next_descriptors(card.name)?;
                Sleeper::Posix { semaphores: posix_sync::PosixSemaphores::open(fd)?, own: 1 }
            }
            Some("mutex") => {
                let [fd] = ticket.next_descriptors(card.name)?;
                Sleeper::Mutex { count: GuardedCount::open(fd)?, own: SERVER }
            }
            _ => Sleeper::Futex { spins: spins(trial.params, card) },
        })
    }
}

fn counter() -> Result<OwnedFd, Failure> {
    eventfd(0, EventfdFlags::CLOEXEC).or_fail("eventfd", "a counter of 0")
}

fn spins(params: &Params, card: &Card) -> u32 {
    params.count(card, SPINS.name).unwrap_or(0)
}

impl WaitStrategy for Sleeper {
    const SLEEPS: bool = true;

    fn polls(&self) -> u32 {
        if let Sleeper::Futex { spins } = self { *spins } else { 0 }
    }

    #[inline]
    fn sleep(&self, on_flag: impl FnOnce()) -> Result<(), Errno> {
        match self {
            Sleeper::Futex { .. } => {
                on_flag();
                Ok(())
            }
            Sleeper::Eventfd { own, .. } => retry_on_intr(|| read(own, &mut [0; 8])).map(drop),
            Sleeper::SystemV { semaphores, own, .. } => semaphores.add(*own, -1),
            Sleeper::Posix { semaphores, own } => semaphores.wait(*own),
            Sleeper::Mutex { count, own } => {
                let mut locked = count.lock()?;
                while *locked.count() & own == 0 {
                    locked.wait()?;
                }
                *locked.count() &= !own;
                Ok(())
            }
        }
    }

    /// A wake-up fails when the peer is gone, which nobody needs to wake, or when so many are remembered that one
    /// more cannot be counted.
    #[inline]
    fn wake(&self, on_flag: impl FnOnce()) {
        let _ = match self {
            Sleeper::Futex { .. } => {
                on_flag();
                Ok(())
            }
            Sleeper::Eventfd { peers, .. } => retry_on_intr(|| write(peers, &1_u64.to_ne_bytes())).map(drop),
            Sleeper::SystemV { semaphores, own, .. } => semaphores.add(1 - own, 1),
            Sleeper::Posix { semaphores, own } => semaphores.post(1 - own),
            Sleeper::Mutex { count, own } => count.lock().and_then(|mut locked| {
                *locked.count() |= CLIENT ^ SERVER ^ own;
                // If the mutex were still held, the peer would wake and at once sleep for the mutex.
                drop(locked);
                count.notify()
            }),
        };
    }
}
