//! Two System V semaphores, one for each direction.

use crate::contract::{Mechanism, Ticket, Trial};
use crate::names::{Registered, names_have_a_place};
use crate::wake::{WAKE_UP, WakeEnd, Waker};
use model::card::{Card, Reach, Support};
use model::{Domain, Param, Params};
use sys::name::ObjectName;
use sys::sysv::{SysvKey, SysvSemaphores};
use sys::{Errno, Failure};

/// `SEM_UNDO`, semop(2).
pub(crate) const UNDO: Param = Param {
    name: "undo",
    summary: "have the kernel undo what a process did when it ends (SEM_UNDO)",
    domain: Domain::Choice(&["off", "on"]),
    default: Some("off"),
};

/// semop(2).
#[derive(Debug)]
pub struct SysvSem;

/// An end that raises one semaphore and lowers the other.
#[derive(Debug)]
pub struct SemaphoreEnd {
    semaphores: SysvSemaphores,
    raises: u16,
    lowers: u16,
    /// Client's, which removes the set.
    _registered: Option<Registered>,
}

impl Mechanism for SysvSem {
    const CARD: Card = Card {
        name: "sysv-sem",
        summary: "System V semaphores, one for each direction",
        reach: Reach::Host,
        params: &[UNDO],
        limits: "sets and semaphores as kernel.sem allows",
        man: &["semop(2)", "semget(2)", "sysvipc(7)"],
        ..WAKE_UP
    };
    type Bound = WakeEnd<SemaphoreEnd>;
    type End = WakeEnd<SemaphoreEnd>;

    fn probe(_: &Params) -> Support {
        names_have_a_place()
    }

    fn bind(trial: &Trial<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let key = SysvKey::of(trial.path());
        let registered = trial.register(ObjectName::SysvSem(key))?;
        let semaphores = SysvSemaphores::create(key, 2, undo(trial, &Self::CARD))?;
        let end = SemaphoreEnd { semaphores, raises: 0, lowers: 1, _registered: Some(registered) };
        Ok((WakeEnd(end), Ticket::default()))
    }

    fn accept(bound: Self::Bound) -> Result<Self::End, Failure> {
        Ok(bound)
    }

    fn connect(trial: &Trial<'_>, _: Ticket) -> Result<Self::End, Failure> {
        let semaphores = SysvSemaphores::open(SysvKey::of(trial.path()), 2, undo(trial, &Self::CARD))?;
        Ok(WakeEnd(SemaphoreEnd { semaphores, raises: 1, lowers: 0, _registered: None }))
    }
}

/// Whether `trial` of the row with `card` asks for it.
pub(crate) fn undo(trial: &Trial<'_>, card: &Card) -> bool {
    trial.params.text(card, UNDO.name) == Some("on")
}

impl Waker for SemaphoreEnd {
    #[inline(always)]
    fn wake(&mut self) -> Result<(), Errno> {
        self.semaphores.add(self.raises, 1)
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Errno> {
        self.semaphores.add(self.lowers, -1)
    }
}
