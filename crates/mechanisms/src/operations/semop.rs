//! A System V semaphore is raised and lowered again, and nobody waits for it.

use crate::contract::{Operation, TrialContext};
use crate::support::names::{Registered, probe_sysv};
use crate::support::undo::{UNDO, undo};
use model::Params;
use model::card::{Card, Support};
use sys::name::ObjectName;
use sys::sysv::{SysvKey, SysvKind, SysvSemaphores};
use sys::{Errno, Failure};

/// semop(2).
#[derive(Debug)]
pub(crate) struct Semop {
    semaphores: SysvSemaphores,
    _registered: Registered,
}

impl Operation for Semop {
    const CARD: Card = Card {
        name: "semop",
        summary: "a System V semaphore raised and lowered: two calls that never wait",
        params: &[UNDO],
        limits: "sets and semaphores as kernel.sem allows",
        man: &["semop(2)", "semget(2)"],
        ..Card::OPERATION
    };

    fn probe(_: &Params) -> Support {
        probe_sysv(SysvKind::Semaphores)
    }

    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure> {
        let key = SysvKey::hashed(trial.path());
        let (semaphores, registered) = trial.make_named(ObjectName::SysvSem(key), || {
            SysvSemaphores::create(key, 1, undo(trial, &Self::CARD))
        })?;
        Ok(Self { semaphores, _registered: registered })
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        self.semaphores.add(0, 1)?;
        self.semaphores.add(0, -1)
    }
}
