//! What the endpoints of a ring sleep on: a futex, or one object for each endpoint that keeps a wake-up. Not a
//! mechanism itself.
//!
//! A sleep on the futex ends after 100 ms at the latest; the endpoint then polls and sleeps again. The other sleeps have
//! no timeout: an endpoint that closes wakes its peer, and an object that keeps a wake-up cannot lose it. A peer that is
//! killed wakes nobody. In both cases it is the coordinator that ends the wait, by its deadline.

use crate::contract::{Ticket, Trial};
use crate::names::{Registered, names_have_a_place};
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

/// The parameter by which ends in shared memory wait.
pub(crate) const WAIT: Param = Param {
    name: "wait",
    summary: "how an endpoint waits: asleep on one of these, by looking again, or by looking and then asleep on a futex",
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

/// How often `wait=spin-then-block` looks before it sleeps.
pub(crate) const LOOKS: Param = Param {
    name: "looks",
    summary: "how often wait=spin-then-block looks, a pause between two looks, before it sleeps",
    domain: Domain::Count,
    default: Some("1000"),
};

/// What one end sleeps on and on what it wakes its peer.
#[derive(Debug)]
pub(crate) enum Sleeper {
    /// The futex of the ring, after some looks.
    Futex { looks: u32 },
    /// A counter in the kernel for each end.
    Eventfd { own: OwnedFd, peers: OwnedFd },
    /// A semaphore of a set for each end.
    SystemV { semaphores: sysv::SysvSemaphores, own: u16, _registered: Option<Registered> },
    /// A semaphore in shared memory for each end.
    Posix { semaphores: posix_sync::PosixSemaphores<2>, own: usize },
    /// A bit for each end under a mutex, with one condition variable.
    Mutex { turnstile: GuardedCount, own: u32 },
}

/// The bits of [`Sleeper::Mutex`].
const CLIENT: u32 = 1;
const SERVER: u32 = 2;

impl Sleeper {
    /// Whether there is what `params` ask for.
    pub(crate) fn probe(params: &Params, card: &Card) -> Support {
        let wait = params.text(card, WAIT.name);
        if wait != Some("spin-then-block") && params.text(card, LOOKS.name) != LOOKS.default {
            return Support::No {
                reason: format!("nothing but wait=spin-then-block counts {}", LOOKS.name),
                remedy: format!("leave out {}, or add wait=spin-then-block", LOOKS.name),
            };
        }
        if wait == Some("sysv-sem") { names_have_a_place() } else { Support::UNLIMITED }
    }

    /// Client's; adds to `ticket` what server needs for its own.
    pub(crate) fn bind(trial: &Trial<'_>, card: &Card, ticket: &mut Ticket) -> Result<Self, Failure> {
        Ok(match trial.params.text(card, WAIT.name) {
            Some("eventfd") => Self::bind_eventfds(ticket)?,
            Some("sysv-sem") => {
                let key = SysvKey::of(trial.path());
                let registered = Some(trial.register(ObjectName::SysvSem(key))?);
                let semaphores = sysv::SysvSemaphores::create(key, 2, false)?;
                Sleeper::SystemV { semaphores, own: 0, _registered: registered }
            }
            Some("posix-sem") => {
                let (semaphores, fd) = posix_sync::PosixSemaphores::create()?;
                ticket.fds.push(fd);
                Sleeper::Posix { semaphores, own: 0 }
            }
            Some("mutex") => {
                let (turnstile, fd) = GuardedCount::create()?;
                ticket.fds.push(fd);
                Sleeper::Mutex { turnstile, own: CLIENT }
            }
            _ => Sleeper::Futex { looks: looks(trial.params, card) },
        })
    }

    /// Client's over two eventfds; adds both to `ticket`.
    pub(crate) fn bind_eventfds(ticket: &mut Ticket) -> Result<Self, Failure> {
        let (own, peers) = (counter()?, counter()?);
        for fd in [&peers, &own] {
            ticket.fds.push(fd.try_clone().or_fail("dup", "eventfd")?);
        }
        Ok(Sleeper::Eventfd { own, peers })
    }

    /// Server's over the two eventfds that client added to `ticket`.
    pub(crate) fn connect_eventfds(card: &Card, ticket: &mut Ticket) -> Result<Self, Failure> {
        let [own, peers] = ticket.next_descriptors(card.name)?;
        Ok(Sleeper::Eventfd { own, peers })
    }

    /// Server's, with what client added to `ticket`.
    pub(crate) fn connect(trial: &Trial<'_>, card: &Card, ticket: &mut Ticket) -> Result<Self, Failure> {
        Ok(match trial.params.text(card, WAIT.name) {
            Some("eventfd") => Self::connect_eventfds(card, ticket)?,
            Some("sysv-sem") => {
                let semaphores = sysv::SysvSemaphores::open(SysvKey::of(trial.path()), 2, false)?;
                Sleeper::SystemV { semaphores, own: 1, _registered: None }
            }
            Some("posix-sem") => {
                let [fd] = ticket.next_descriptors(card.name)?;
                Sleeper::Posix { semaphores: posix_sync::PosixSemaphores::open(fd)?, own: 1 }
            }
            Some("mutex") => {
                let [fd] = ticket.next_descriptors(card.name)?;
                Sleeper::Mutex { turnstile: GuardedCount::open(fd)?, own: SERVER }
            }
            _ => Sleeper::Futex { looks: looks(trial.params, card) },
        })
    }
}

fn counter() -> Result<OwnedFd, Failure> {
    eventfd(0, EventfdFlags::CLOEXEC).or_fail("eventfd", "a counter of 0")
}

fn looks(params: &Params, card: &Card) -> u32 {
    params.count(card, LOOKS.name).unwrap_or(0)
}

impl WaitStrategy for Sleeper {
    const SLEEPS: bool = true;

    fn polls(&self) -> u32 {
        if let Sleeper::Futex { looks } = self { *looks } else { 0 }
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
            Sleeper::Mutex { turnstile, own } => {
                let mut locked = turnstile.lock()?;
                while *locked.count() & own == 0 {
                    locked.wait()?;
                }
                *locked.count() &= !own;
                Ok(())
            }
        }
    }

    /// A wake-up fails when the peer is gone, whom nobody needs to wake, or when so many are kept already that one
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
            Sleeper::Mutex { turnstile, own } => turnstile.lock().and_then(|mut locked| {
                *locked.count() |= CLIENT ^ SERVER ^ own;
                // Woken with the mutex still held, the peer would sleep again, for that.
                drop(locked);
                turnstile.notify()
            }),
        };
    }
}
