//! Two POSIX semaphores in shared memory, one for each direction.

use crate::contract::{Mechanism, Ticket, Trial};
use crate::descriptor::supported;
use crate::wake::{WAKE_UP, WakeEnd, Waker};
use model::Params;
use model::card::{Card, Support};
use sys::posix_sync::PosixSemaphores;
use sys::{Errno, Failure};

/// sem_post(3) and sem_wait(3).
#[derive(Debug)]
pub struct PosixSem;

/// An end that raises one semaphore and lowers the other.
#[derive(Debug)]
pub struct SemaphoreEnd {
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
    type Bound = WakeEnd<SemaphoreEnd>;
    type End = WakeEnd<SemaphoreEnd>;

    fn probe(_: &Params) -> Support {
        supported(PosixSemaphores::<2>::create())
    }

    fn bind(_: &Trial<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let (semaphores, fd) = PosixSemaphores::create()?;
        let end = SemaphoreEnd { semaphores, raises: 0, lowers: 1 };
        Ok((WakeEnd(end), Ticket { address: Vec::new(), fds: vec![fd] }))
    }

    fn accept(bound: Self::Bound) -> Result<Self::End, Failure> {
        Ok(bound)
    }

    fn connect(_: &Trial<'_>, ticket: Ticket) -> Result<Self::End, Failure> {
        let [fd] = ticket.descriptors("posix-sem")?;
        Ok(WakeEnd(SemaphoreEnd { semaphores: PosixSemaphores::open(fd)?, raises: 1, lowers: 0 }))
    }
}

impl Waker for SemaphoreEnd {
    #[inline(always)]
    fn wake(&mut self) -> Result<(), Errno> {
        self.semaphores.post(self.raises)
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Errno> {
        self.semaphores.wait(self.lowers)
    }
}
