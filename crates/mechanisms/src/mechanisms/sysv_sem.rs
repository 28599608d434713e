//! Two System V semaphores, one for each direction.

use crate::contract::{Mechanism, Ticket, TrialContext};
use crate::support::cards::OF_WAKE_UP;
use crate::support::cards::WAKE_UP;
use crate::support::names::{Registered, probe_sysv};
use crate::support::undo::{UNDO, undo};
use crate::support::wake::{WakeEndpoint, Waker};
use model::Params;
use model::card::{ByName, Card, Reach, Support};
use model::semantics::{Credentials, Lifetime, Namespace, Naming, OtherUsers, Semantics};
use sys::name::ObjectName;
use sys::sysv::{SysvKey, SysvKind, SysvSemaphores};
use sys::{Errno, Failure};

/// semop(2).
#[derive(Debug)]
pub(crate) struct SysvSem;

/// An endpoint that raises one semaphore and lowers the other.
#[derive(Debug)]
pub(crate) struct SemaphoreEndpoint {
    semaphores: SysvSemaphores,
    raises: u16,
    lowers: u16,
    /// Only in the client, which removes the set.
    _registered: Option<Registered>,
}

impl Mechanism for SysvSem {
    const CARD: Card = Card {
        name: "sysv-sem",
        summary: "System V semaphores, one for each direction",
        reach: Reach::Host,
        by_name: ByName::Always,
        params: &[UNDO],
        limits: "sets and semaphores as kernel.sem allows",
        semantics: Semantics {
            credentials: Credentials::LastUser,
            naming: Naming::Key,
            other_users: OtherUsers::ByPermission,
            namespace: Namespace::Ipc,
            lifetime: Lifetime::UntilRemoved,
            ..OF_WAKE_UP
        },
        man: &["semop(2)", "semget(2)", "sysvipc(7)"],
        ..WAKE_UP
    };
    type Bound = WakeEndpoint<SemaphoreEndpoint>;
    type End = WakeEndpoint<SemaphoreEndpoint>;

    fn probe(_: &Params) -> Support {
        probe_sysv(SysvKind::Semaphores)
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let key = SysvKey::hashed(trial.path());
        let (semaphores, registered) = trial.make_named(ObjectName::SysvSem(key), || {
            SysvSemaphores::create(key, 2, undo(trial, &Self::CARD))
        })?;
        let endpoint = SemaphoreEndpoint { semaphores, raises: 0, lowers: 1, _registered: Some(registered) };
        Ok((WakeEndpoint(endpoint), Ticket::default()))
    }

    fn accept(bound: Self::Bound) -> Result<Self::End, Failure> {
        Ok(bound)
    }

    fn connect(trial: &TrialContext<'_>, _: Ticket) -> Result<Self::End, Failure> {
        let semaphores = SysvSemaphores::open(SysvKey::hashed(trial.path()), 2, undo(trial, &Self::CARD))?;
        Ok(WakeEndpoint(SemaphoreEndpoint { semaphores, raises: 1, lowers: 0, _registered: None }))
    }
}

impl Waker for SemaphoreEndpoint {
    #[inline(always)]
    fn wake(&mut self) -> Result<(), Errno> {
        self.semaphores.add(self.raises, 1)
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Errno> {
        self.semaphores.add(self.lowers, -1)
    }
}
