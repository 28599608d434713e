//! Two POSIX semaphores in shared memory, one for each direction.

use crate::contract::{Mechanism, Ticket, TrialContext};
use crate::support::cards::WAKE_UP;
use crate::support::probe::support_of;
use crate::support::wake::{WakeEndpoint, Waker};
use model::Params;
use model::card::{Card, Support};
use sys::posix_sync::PosixSemaphores;
use sys::{Errno, Failure};

/// sem_post(3) and sem_wait(3).
#[derive(Debug)]
pub(crate) struct PosixSem;

/// An endpoint that raises one semaphore and lowers the other.
#[derive(Debug)]
pub(crate) struct SemaphoreEndpoint {
    semaphores: PosixSemaphores<2>,
    raises: usize,
    lowers: usize,
}

impl Mechanism for PosixSem {
    const CARD: Card = Card {
        name: "posix-sem",
        summary: "POSIX semaphores in shared memory, one for each direction",
        man: &["sem_overview(7)", "sem_post(3)", "sem_wait(3)"],
        ..WAKE_UP
    };
    type Bound = WakeEndpoint<SemaphoreEndpoint>;
    type End = WakeEndpoint<SemaphoreEndpoint>;

    fn probe(_: &Params) -> Support {
        support_of(PosixSemaphores::<2>::create())
    }

    fn bind(_: &TrialContext<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let (semaphores, fd) = PosixSemaphores::create()?;
        let endpoint = SemaphoreEndpoint { semaphores, raises: 0, lowers: 1 };
        Ok((WakeEndpoint(endpoint), Ticket { address: Vec::new(), fds: vec![fd] }))
    }

    fn accept(bound: Self::Bound) -> Result<Self::End, Failure> {
        Ok(bound)
    }

    fn connect(_: &TrialContext<'_>, ticket: Ticket) -> Result<Self::End, Failure> {
        let [fd] = ticket.descriptors("posix-sem")?;
        Ok(WakeEndpoint(SemaphoreEndpoint { semaphores: PosixSemaphores::open(fd)?, raises: 1, lowers: 0 }))
    }
}

impl Waker for SemaphoreEndpoint {
    #[inline(always)]
    fn wake(&mut self) -> Result<(), Errno> {
        self.semaphores.post(self.raises)
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Errno> {
        self.semaphores.wait(self.lowers)
    }
}
