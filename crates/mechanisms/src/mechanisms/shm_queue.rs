//! A pair of byte queues in shared memory under a lock, one for each direction: the plain form, as many programs have
//! it. The fast form is the ring of `shm_ring`.
//!
//! An endpoint that finds its queue empty, or full, says so in the memory, releases the lock and sleeps: on the
//! condition variable of a mutex; with other locks, which have none, on an eventfd of its own, because an eventfd is
//! the least by which the kernel wakes the holder of a descriptor. The peer reads in the memory that the endpoint
//! sleeps, and enters the kernel to wake it only then.

use crate::contract::{Endpoint, Mechanism, Ticket, TrialContext};
use crate::support::backing::{MEMORY, MemoryRequest, Pending};
use crate::support::cards::UNPOLLED_STREAM;
use crate::support::names::{Registered, probe_sysv};
use crate::support::probe::support_of;
use crate::support::sleeper::Sleeper;
use model::card::{Card, Support};
use model::{Domain, Param, Params, Size};
use sys::byte_queue::{ByteQueueEndpoint, QueueOperation};
use sys::name::ObjectName;
use sys::posix_sync::{self, GuardedCount};
use sys::record_lock::{self, RecordLocks};
use sys::ring::WaitStrategy;
use sys::side::MemorySide;
use sys::sysv::{SysvKey, SysvKind, SysvSemaphores};
use sys::{Errno, Failure, OrFail};

/// Queues over `sys::byte_queue`.
#[derive(Debug)]
pub(crate) struct ShmQueue;

/// One endpoint of the pair.
#[derive(Debug)]
pub(crate) struct ShmQueueEndpoint {
    queue: ByteQueueEndpoint,
    lock: Lock,
    /// Whether the lock is taken around every access, or only to wait.
    always: bool,
}

impl Mechanism for ShmQueue {
    const CARD: Card = Card {
        name: "shm-queue",
        summary: "byte queues in shared memory under a lock, one for each direction",
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
                summary: "always: around every access; when-needed: only when the queue is found empty or full, which is enough for one writer and one reader",
                domain: Domain::Choice(&["always", "when-needed"]),
                default: Some("always"),
            },
            MEMORY,
        ],
        limits: "any message size: a message larger than the queue goes in parts; memory=huge as vm.nr_hugepages allows, \
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
        ..UNPOLLED_STREAM
    };
    type Bound = (ShmQueueEndpoint, Pending);
    type End = ShmQueueEndpoint;

    fn probe(params: &Params) -> Support {
        match Lock::probe(params) {
            Support::Yes { .. } => memory(params).probe(),
            no => no,
        }
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let mut ticket = Ticket::default();
        let (memory, pending) = memory(trial.params).bind(trial, &mut ticket)?;
        let queue = ByteQueueEndpoint::claim(memory, capacity_bytes(trial.params), MemorySide::Client)?;
        let lock = Lock::bind(trial, &mut ticket)?;
        Ok(((ShmQueueEndpoint { queue, lock, always: always(trial.params) }, pending), ticket))
    }

    fn accept((endpoint, pending): Self::Bound) -> Result<ShmQueueEndpoint, Failure> {
        pending.wait_for_server()?;
        Ok(endpoint)
    }

    fn connect(trial: &TrialContext<'_>, mut ticket: Ticket) -> Result<ShmQueueEndpoint, Failure> {
        let memory = memory(trial.params).connect(trial, &mut ticket)?;
        let queue = ByteQueueEndpoint::claim(memory, capacity_bytes(trial.params), MemorySide::Server)?;
        let lock = Lock::connect(trial, &mut ticket)?;
        Ok(ShmQueueEndpoint { queue, lock, always: always(trial.params) })
    }
}

fn memory(params: &Params) -> MemoryRequest<'_> {
    let kind = params.text(&ShmQueue::CARD, MEMORY.name);
    MemoryRequest {
        kind,
        name: ShmQueue::CARD.name,
        len_bytes: ByteQueueEndpoint::memory_bytes(capacity_bytes(params)),
    }
}

fn capacity_bytes(params: &Params) -> usize {
    // The card has a default, so that there is always a size.
    params.size(&ShmQueue::CARD, "capacity").map_or(0, Size::as_usize)
}

fn always(params: &Params) -> bool {
    params.text(&ShmQueue::CARD, "locking") == Some("always")
}

/// The locks of both queues, and what an endpoint sleeps on.
#[derive(Debug)]
enum Lock {
    Fcntl { locks: RecordLocks, sleeper: Sleeper },
    SystemV { semaphores: SysvSemaphores, sleeper: Sleeper, _registered: Option<Registered> },
    Mutex([GuardedCount; 2]),
}

/// The lock of one queue, held until this is dropped.
#[derive(Debug)]
enum Held<'a> {
    Fcntl { _locked: record_lock::RecordLockGuard<'a> },
    SystemV { semaphores: &'a SysvSemaphores, at: u16 },
    Mutex(posix_sync::CountGuard<'a>),
}

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Held::SystemV { semaphores, at } = self {
            // If the set is gone, so is the peer.
            let _ = semaphores.add(*at, 1);
        }
    }
}

impl Lock {
    fn probe(params: &Params) -> Support {
        match params.text(&ShmQueue::CARD, "lock") {
            Some("sysv-sem") => probe_sysv(SysvKind::Semaphores),
            Some("mutex") => support_of(GuardedCount::create()),
            _ => support_of(RecordLocks::create().and_then(|(_, fd)| RecordLocks::open(fd))),
        }
    }

    fn bind(trial: &TrialContext<'_>, ticket: &mut Ticket) -> Result<Self, Failure> {
        Ok(match trial.params.text(&ShmQueue::CARD, "lock") {
            Some("sysv-sem") => {
                let key = SysvKey::hashed(trial.path());
                // The locks are free at first. That must not be undone when the client ends.
                let (fresh, registered) =
                    trial.make_named(ObjectName::SysvSem(key), || SysvSemaphores::create(key, 2, false))?;
                for at in 0..2 {
                    fresh.add(at, 1).or_fail("semop", format!("key {key}"))?;
                }
                Lock::SystemV {
                    semaphores: SysvSemaphores::open(key, 2, true)?,
                    sleeper: Sleeper::bind_eventfds(ticket)?,
                    _registered: Some(registered),
                }
            }
            Some("mutex") => {
                let [(a, a_fd), (b, b_fd)] = [GuardedCount::create()?, GuardedCount::create()?];
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

    fn connect(trial: &TrialContext<'_>, ticket: &mut Ticket) -> Result<Self, Failure> {
        let card = &ShmQueue::CARD;
        Ok(match trial.params.text(card, "lock") {
            Some("sysv-sem") => Lock::SystemV {
                semaphores: SysvSemaphores::open(SysvKey::hashed(trial.path()), 2, true)?,
                sleeper: Sleeper::connect_eventfds(card, ticket)?,
                _registered: None,
            },
            Some("mutex") => {
                let [a, b] = ticket.next_descriptors(card.name)?;
                Lock::Mutex([GuardedCount::open(a)?, GuardedCount::open(b)?])
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
            Lock::Mutex(mutexes) => mutexes[queue].lock().map(Held::Mutex),
        }
    }

    /// Releases the lock of `queue`, sleeps until the peer wakes this endpoint, and takes the lock again. It may wake
    /// early.
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

    /// Wakes the peer, which sleeps for `queue` or is about to. The lock must not be held: the peer would wait for it
    /// next.
    #[cold]
    #[inline(never)]
    fn wake(&self, queue: usize) {
        match self {
            Lock::Fcntl { sleeper, .. } | Lock::SystemV { sleeper, .. } => sleeper.wake(|| ()),
            Lock::Mutex(mutexes) => {
                // Once the lock could be taken, a peer that was about to sleep does sleep. If it cannot be taken, the
                // peer died with it, and needs no wake-up.
                let _ = mutexes[queue].lock().map(drop).and_then(|()| mutexes[queue].notify());
            }
        }
    }
}

impl ShmQueueEndpoint {
    /// Repeats `step`, which puts or takes as `does` says and returns how many bytes, until it is more than 0.
    #[inline(always)]
    fn pass(
        &mut self,
        does: QueueOperation,
        mut step: impl FnMut(&mut ByteQueueEndpoint) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let count = if self.always { 0 } else { step(&mut self.queue)? };
        let count = if count > 0 { count } else { self.pass_locked(does, step)? };
        if self.queue.peer_sleeps(does) {
            self.lock.wake(self.queue.queue(does));
        }
        Ok(count)
    }

    /// QueueOperation what [`pass`](Self::pass) does, under the lock. What the peer put before it closed is still there, even
    /// if the lock is gone.
    #[inline(always)]
    fn pass_locked(
        &mut self,
        does: QueueOperation,
        mut step: impl FnMut(&mut ByteQueueEndpoint) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        match self.pass_or_sleep(does, &mut step) {
            Err(Errno::PIPE) => match step(&mut self.queue)? {
                0 => Err(Errno::PIPE),
                count => Ok(count),
            },
            answer => answer,
        }
    }

    /// QueueOperation what [`pass`](Self::pass) does, under the lock. `Errno::PIPE` when the peer has closed.
    #[inline(always)]
    fn pass_or_sleep(
        &mut self,
        does: QueueOperation,
        step: &mut impl FnMut(&mut ByteQueueEndpoint) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let queue = self.queue.queue(does);
        let mut held = self.lock.take(queue)?;
        let mut count = step(&mut self.queue)?;
        while count == 0 {
            self.queue.announce_sleep(does);
            count = step(&mut self.queue)?;
            if count > 0 {
                self.queue.revoke_sleep(does);
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

impl Drop for ShmQueueEndpoint {
    fn drop(&mut self) {
        self.queue.close();
        for queue in 0..2 {
            self.lock.wake(queue);
        }
    }
}

impl Endpoint for ShmQueueEndpoint {
    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.pass(QueueOperation::Put, |queue| queue.put(bytes))
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.pass(QueueOperation::Take, |queue| queue.take(into))
    }
}
