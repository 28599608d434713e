//! A robust mutex with a condition variable in shared memory, over a count of iterations.

use crate::contract::{Mechanism, Ticket, Trial};
use crate::descriptor::supported;
use crate::wake::{WAKE_UP, WakeEnd, Waker};
use model::Params;
use model::card::{Card, Support};
use sys::posix_sync::GuardedCount;
use sys::{Errno, Failure};

/// pthread_cond_wait(3p) under a mutex of pthread_mutexattr_setrobust(3).
#[derive(Debug)]
pub struct MutexCond;

/// An end that knows how often either was woken.
#[derive(Debug)]
pub struct TurnstileEnd {
    turnstile: GuardedCount,
    wake_ups: u32,
}

impl Mechanism for MutexCond {
    const CARD: Card = Card {
        name: "mutex-cond",
        summary: "a robust mutex and a condition variable in shared memory",
        limits: "carries nothing but the wake-up; an owner that died is seen by the next lock, not by who sleeps",
        man: &["pthread_mutexattr_setrobust(3)", "pthread_cond_init(3)"],
        ..WAKE_UP
    };
    type Bound = WakeEnd<TurnstileEnd>;
    type End = WakeEnd<TurnstileEnd>;

    fn probe(_: &Params) -> Support {
        supported(GuardedCount::create())
    }

    fn bind(_: &Trial<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let (turnstile, fd) = GuardedCount::create()?;
        let ticket = Ticket { address: Vec::new(), fds: vec![fd] };
        Ok((WakeEnd(TurnstileEnd { turnstile, wake_ups: 0 }), ticket))
    }

    fn accept(bound: Self::Bound) -> Result<Self::End, Failure> {
        Ok(bound)
    }

    fn connect(_: &Trial<'_>, ticket: Ticket) -> Result<Self::End, Failure> {
        let [fd] = ticket.descriptors("mutex-cond")?;
        Ok(WakeEnd(TurnstileEnd { turnstile: GuardedCount::open(fd)?, wake_ups: 0 }))
    }
}

impl Waker for TurnstileEnd {
    #[inline(always)]
    fn wake(&mut self) -> Result<(), Errno> {
        self.wake_ups = self.wake_ups.wrapping_add(1);
        self.turnstile.set(self.wake_ups)
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Errno> {
        self.wake_ups = self.wake_ups.wrapping_add(1);
        self.turnstile.wait_for(self.wake_ups)
    }
}
