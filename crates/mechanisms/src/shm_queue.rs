//! A pair of byte queues in shared memory under a lock, one for each direction: the plain form, as programs write it
//! themselves. The ring of `shm_ring` is the fast one.
//!
//! An end that finds its queue empty, or full, says so in the memory, gives the lock up and sleeps: on the condition
//! variable of a mutex; under the other locks, which have none, on an eventfd of its own, because that is the least
//! with which the kernel wakes who has a descriptor. Its peer sees what it said, and enters the kernel to wake it only
//! then.

use crate::backing::{MEMORY, Memory, Pending};
use crate::contract::{Endpoint, Mechanism, Ticket, Trial};
use crate::descriptor::supported;
use crate::names::{Registered, names_have_a_place};
use crate::sleeper::Sleeper;
use model::card::{Card, CardKind, Framing, Payload, Reach, Support};
use model::{Domain, Param, Params, Size, Workload};
use sys::byte_queue::{Does, End};
use sys::name::Name;
use sys::posix_sync::{self, Turnstile};
use sys::record_lock::{self, RecordLocks};
use sys::ring::{Side, Wait};
use sys::sysv::{Key, Semaphores};
use sys::{Errno, Failure, OrFail};

/// Queues over `sys::byte_queue`.
#[derive(Debug)]
pub struct ShmQueue;

/// One end of the pair.
#[derive(Debug)]
pub struct ShmQueueEnd {
    queue: End,
    lock: Lock,
    /// Whether the lock is taken around every part, or only to wait.
    always: bool,
}

impl Mechanism for ShmQueue {
    const CARD: Card = Card {
        name: "shm-queue",
        kind: CardKind::Mechanism,
        summary: "byte queues in shared memory under a lock, one for each direction",
        framing: Framing::Stream,
        reach: Reach::Related,
        payload: Payload::Bytes,
        fds: false,
        hangup: true,
        polled: false,
        one_endpoint: false,
        empty: false,
        params: &[
            Param {
                name: "capacity",
                summary: "bytes that each direction holds",
                domain: Domain::Size,
                default: Some("256K"),
            },
            Param {
                name: "lock",
                summary: "a record lock of an open file, a robust mutex, or a System V semaphore with SEM_UNDO; one for each direction",
                domain: Domain::Choice(&["fcntl", "mutex", "sysv-sem"]),
                default: Some("fcntl"),
            },
            Param {
                name: "locking",
                summary: "around everything, or only when the queue looks empty or full: one writer and one reader need no more",
                domain: Domain::Choice(&["always", "when-needed"]),
                default: Some("always"),
            },
            MEMORY,
        ],
        workloads: &[Workload::Latency, Workload::Throughput, Workload::Transfer],
        sized: true,
        limits: "any message size: what there is no room for goes in parts; memory=huge as vm.nr_hugepages allows, \
                 memory=sysv as kernel.shmmax and kernel.shmall do, lock=sysv-sem as kernel.sem does",
        man: &[
            "mmap(2)",
            "fcntl(2)",
            "eventfd(2)",
            "pthread_mutexattr_setrobust(3)",
            "pthread_cond_init(3)",
            "semop(2)",
            "memfd_create(2)",
            "shm_open(3)",
            "shmget(2)",
        ],
    };
    type Bound = (ShmQueueEnd, Pending);
    type End = ShmQueueEnd;

    fn probe(params: &Params) -> Support {
        match Lock::probe(params) {
            Support::Yes { .. } => memory(params).probe(),
            lacking => lacking,
        }
    }

    fn bind(trial: &Trial<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let mut ticket = Ticket::default();
        let (memory, pending) = memory(trial.params).bind(trial, &mut ticket)?;
        let queue = End::claim(memory, capacity_bytes(trial.params), Side::Client)?;
        let lock = Lock::bind(trial, &mut ticket)?;
        Ok(((ShmQueueEnd { queue, lock, always: always(trial.params) }, pending), ticket))
    }

    fn accept((end, pending): Self::Bound) -> Result<ShmQueueEnd, Failure> {
        pending.server_has_it()?;
        Ok(end)
    }

    fn connect(trial: &Trial<'_>, mut ticket: Ticket) -> Result<ShmQueueEnd, Failure> {
        let memory = memory(trial.params).connect(trial, &mut ticket)?;
        let queue = End::claim(memory, capacity_bytes(trial.params), Side::Server)?;
        let lock = Lock::connect(trial, &mut ticket)?;
        Ok(ShmQueueEnd { queue, lock, always: always(trial.params) })
    }
}

fn memory(params: &Params) -> Memory<'_> {
    let kind = params.text(&ShmQueue::CARD, MEMORY.name);
    Memory { kind, name: ShmQueue::CARD.name, len_bytes: End::memory_bytes(capacity_bytes(params)) }
}

fn capacity_bytes(params: &Params) -> usize {
    // The card has a default, so that there is always a size.
    params.size(&ShmQueue::CARD, "capacity").map_or(0, Size::as_usize)
}

fn always(params: &Params) -> bool {
    params.text(&ShmQueue::CARD, "locking") == Some("always")
}

/// The locks of both queues, and how one waits under them.
#[derive(Debug)]
enum Lock {
    Fcntl { locks: RecordLocks, sleeper: Sleeper },
    SystemV { semaphores: Semaphores, sleeper: Sleeper, _registered: Option<Registered> },
    Mutex([Turnstile; 2]),
}

/// The lock of one queue, held until this is dropped.
#[derive(Debug)]
enum Held<'a> {
    Fcntl { _locked: record_lock::Locked<'a> },
    SystemV { semaphores: &'a Semaphores, at: u16 },
    Mutex(posix_sync::Locked<'a>),
}

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Held::SystemV { semaphores, at } = self {
            // Where the set is gone, so is the peer.
            let _ = semaphores.add(*at, 1);
        }
    }
}

impl Lock {
    fn probe(params: &Params) -> Support {
        match params.text(&ShmQueue::CARD, "lock") {
            Some("sysv-sem") => names_have_a_place(),
            Some("mutex") => supported(Turnstile::create()),
            _ => supported(RecordLocks::create().and_then(|(_, fd)| RecordLocks::open(fd))),
        }
    }

    fn bind(trial: &Trial<'_>, ticket: &mut Ticket) -> Result<Self, Failure> {
        Ok(match trial.params.text(&ShmQueue::CARD, "lock") {
            Some("sysv-sem") => {
                let key = Key::of(trial.path());
                let registered = trial.register(Name::SysvSem(key))?;
                // Free at first, which must not be undone when client ends.
                let fresh = Semaphores::create(key, 2, false)?;
                for at in 0..2 {
                    fresh.add(at, 1).or_fail("semop", format!("key {key}"))?;
                }
                Lock::SystemV {
                    semaphores: Semaphores::open(key, 2, true)?,
                    sleeper: Sleeper::bind_eventfds(ticket)?,
                    _registered: Some(registered),
                }
            }
            Some("mutex") => {
                let [(a, a_fd), (b, b_fd)] = [Turnstile::create()?, Turnstile::create()?];
                ticket.fds.extend([a_fd, b_fd]);
                Lock::Mutex([a, b])
            }
            _ => {
                let (locks, fd) = RecordLocks::create()?;
                ticket.fds.push(fd);
                Lock::Fcntl { locks, sleeper: Sleeper::bind_eventfds(ticket)? }
            }
        })
    }

    fn connect(trial: &Trial<'_>, ticket: &mut Ticket) -> Result<Self, Failure> {
        let card = &ShmQueue::CARD;
        Ok(match trial.params.text(card, "lock") {
            Some("sysv-sem") => Lock::SystemV {
                semaphores: Semaphores::open(Key::of(trial.path()), 2, true)?,
                sleeper: Sleeper::connect_eventfds(card, ticket)?,
                _registered: None,
            },
            Some("mutex") => {
                let [a, b] = ticket.next_descriptors(card.name)?;
                Lock::Mutex([Turnstile::open(a)?, Turnstile::open(b)?])
            }
            _ => {
                let [fd] = ticket.next_descriptors(card.name)?;
                let locks = RecordLocks::open(fd)?;
                Lock::Fcntl { locks, sleeper: Sleeper::connect_eventfds(card, ticket)? }
            }
        })
    }

    /// Takes the lock of `queue`.
    #[inline(always)]
    fn take(&self, queue: usize) -> Result<Held<'_>, Errno> {
        match self {
            Lock::Fcntl { locks, .. } => locks.lock(queue as u32).map(|_locked| Held::Fcntl { _locked }),
            Lock::SystemV { semaphores, .. } => {
                semaphores.add(queue as u16, -1)?;
                Ok(Held::SystemV { semaphores, at: queue as u16 })
            }
            Lock::Mutex(turnstiles) => turnstiles[queue].lock().map(Held::Mutex),
        }
    }

    /// Gives up the lock of `queue`, sleeps until the peer wakes this end, or a little shorter, and takes it again.
    fn wait<'a>(&'a self, queue: usize, mut held: Held<'a>) -> Result<Held<'a>, Errno> {
        match self {
            Lock::Fcntl { sleeper, .. } | Lock::SystemV { sleeper, .. } => {
                drop(held);
                sleeper.sleep(|| ())?;
                self.take(queue)
            }
            Lock::Mutex(_) => {
                if let Held::Mutex(locked) = &mut held {
                    locked.wait()?;
                }
                Ok(held)
            }
        }
    }

    /// Wakes the peer, which sleeps for `queue`, or is about to. Not with the lock held, for which it would wait next.
    #[cold]
    #[inline(never)]
    fn wake(&self, queue: usize) {
        match self {
            Lock::Fcntl { sleeper, .. } | Lock::SystemV { sleeper, .. } => sleeper.wake(|| ()),
            Lock::Mutex(turnstiles) => {
                // Who was about to wait under it waits as soon as it can be taken. Where it cannot, the peer died with
                // it and needs no waking.
                let _ = turnstiles[queue].lock().map(drop).and_then(|()| turnstiles[queue].notify());
            }
        }
    }
}

impl ShmQueueEnd {
    /// Does `step`, which puts or takes as `does` says and answers how many bytes, until it is more than none.
    #[inline(always)]
    fn pass(
        &mut self,
        does: Does,
        mut step: impl FnMut(&mut End) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let count = if self.always { 0 } else { step(&mut self.queue)? };
        let count = if count > 0 { count } else { self.pass_locked(does, step)? };
        if self.queue.peer_sleeps(does) {
            self.lock.wake(self.queue.queue(does));
        }
        Ok(count)
    }

    /// As [`pass`](Self::pass), under the lock. What the peer put before it closed is there, though the lock may have
    /// gone with it.
    #[inline(always)]
    fn pass_locked(
        &mut self,
        does: Does,
        mut step: impl FnMut(&mut End) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        match self.pass_or_sleep(does, &mut step) {
            Err(Errno::PIPE) => match step(&mut self.queue)? {
                0 => Err(Errno::PIPE),
                count => Ok(count),
            },
            answer => answer,
        }
    }

    /// As [`pass`](Self::pass), under the lock; `Errno::PIPE` when the peer has closed.
    #[inline(always)]
    fn pass_or_sleep(
        &mut self,
        does: Does,
        step: &mut impl FnMut(&mut End) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let queue = self.queue.queue(does);
        let mut held = self.lock.take(queue)?;
        let mut count = step(&mut self.queue)?;
        while count == 0 {
            self.queue.falls_asleep(does);
            count = step(&mut self.queue)?;
            if count > 0 {
                self.queue.is_awake(does);
            } else if self.queue.peer_has_closed() {
                return Err(Errno::PIPE);
            } else {
                held = self.lock.wait(queue, held)?;
            }
        }
        drop(held);
        Ok(count)
    }
}

impl Drop for ShmQueueEnd {
    fn drop(&mut self) {
        self.queue.close();
        for queue in 0..2 {
            self.lock.wake(queue);
        }
    }
}

impl Endpoint for ShmQueueEnd {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.pass(Does::Put, |queue| queue.put(bytes))
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.pass(Does::Take, |queue| queue.take(into))
    }
}
