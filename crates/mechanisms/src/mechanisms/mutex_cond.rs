//! A robust mutex with a condition variable in shared memory, which protect a count of wake-ups.

use crate::contract::{Mechanism, Ticket, TrialContext};
use crate::support::cards::WAKE_UP;
use crate::support::probe::support_of;
use crate::support::wake::{WakeEndpoint, Waker};
use model::Params;
use model::card::{Card, Support};
use model::semantics::{Loss, Semantics};
use sys::posix_sync::GuardedCount;
use sys::{Errno, Failure};

/// pthread_cond_wait(3p) under a mutex of pthread_mutexattr_setrobust(3).
#[derive(Debug)]
pub(crate) struct MutexCond;

/// An endpoint that counts how often either endpoint was woken.
#[derive(Debug)]
pub(crate) struct MutexCondEndpoint {
    count: GuardedCount,
    wake_ups: u32,
}

impl Mechanism for MutexCond {
    const CARD: Card = Card {
        name: "mutex-cond",
        summary: "a robust mutex and a condition variable in shared memory",
        limits: "carries nothing but the wake-up; the next lock reports an owner that died, a sleeper does not",
        // A condition variable remembers nothing: what it guards says that it was signalled, once.
        semantics: Semantics { loss: Loss::Merged, ..WAKE_UP.semantics },
        man: &["pthread_mutexattr_setrobust(3)", "pthread_cond_init(3)"],
        ..WAKE_UP
    };
    type Bound = WakeEndpoint<MutexCondEndpoint>;
    type End = WakeEndpoint<MutexCondEndpoint>;

    fn probe(_: &Params) -> Support {
        support_of(GuardedCount::create())
    }

    fn bind(_: &TrialContext<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let (count, fd) = GuardedCount::create()?;
        let ticket = Ticket { address: Vec::new(), fds: vec![fd] };
        Ok((WakeEndpoint(MutexCondEndpoint { count, wake_ups: 0 }), ticket))
    }

    fn accept(bound: Self::Bound) -> Result<Self::End, Failure> {
        Ok(bound)
    }

    fn connect(_: &TrialContext<'_>, ticket: Ticket) -> Result<Self::End, Failure> {
        let [fd] = ticket.descriptors("mutex-cond")?;
        Ok(WakeEndpoint(MutexCondEndpoint { count: GuardedCount::open(fd)?, wake_ups: 0 }))
    }
}

impl Waker for MutexCondEndpoint {
    #[inline(always)]
    fn wake(&mut self) -> Result<(), Errno> {
        self.wake_ups = self.wake_ups.wrapping_add(1);
        self.count.set(self.wake_ups)
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Errno> {
        self.wake_ups = self.wake_ups.wrapping_add(1);
        self.count.wait_for(self.wake_ups)
    }
}
