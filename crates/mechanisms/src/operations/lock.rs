//! A lock that is taken and released while nobody else wants it.

use crate::contract::{Operation, TrialContext};
use model::card::Card;
use model::{Domain, Param};
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, MemfdFlags, fcntl_lock, flock, memfd_create};
use rustix::io::retry_on_intr;
use sys::posix_sync::GuardedCount;
use sys::record_lock::RecordLocks;
use sys::{Errno, Failure, OrFail};

/// fcntl(2), flock(2) and pthread_mutex_lock(3p).
#[derive(Debug)]
pub(crate) enum Lock {
    /// A record lock of the process.
    Fcntl(OwnedFd),
    /// A record lock of the open file description.
    Ofd(RecordLocks),
    /// A lock of the open file description, always on the whole file.
    Flock(OwnedFd),
    /// A robust mutex in shared memory.
    Mutex(GuardedCount),
}

impl Operation for Lock {
    const CARD: Card = Card {
        name: "lock",
        summary: "take a lock that nobody else wants, and release it",
        params: &[Param {
            name: "by",
            summary: "fcntl and ofd: one byte of a memfd by fcntl, for the process or for the open file description; flock: a memfd by flock; mutex: a robust mutex in shared memory, without a system call",
            domain: Domain::Choice(&["fcntl", "ofd", "flock", "mutex"]),
            default: Some("fcntl"),
        }],
        man: &["fcntl(2)", "flock(2)", "pthread_mutex_lock(3p)", "pthread_mutexattr_setrobust(3)"],
        ..Card::OPERATION
    };

    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure> {
        let file = || memfd_create("ipcmark-lock", MemfdFlags::CLOEXEC).or_fail("memfd_create", "lock");
        Ok(match trial.params.text(&Self::CARD, "by") {
            Some("ofd") => Self::Ofd(RecordLocks::create()?.0),
            Some("flock") => Self::Flock(file()?),
            Some("mutex") => Self::Mutex(GuardedCount::create()?.0),
            _ => Self::Fcntl(file()?),
        })
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        match self {
            Self::Fcntl(file) => {
                retry_on_intr(|| fcntl_lock(&*file, FlockOperation::LockExclusive))?;
                fcntl_lock(file, FlockOperation::Unlock)
            }
            Self::Ofd(locks) => locks.lock(0).map(drop),
            Self::Flock(file) => {
                retry_on_intr(|| flock(&*file, FlockOperation::LockExclusive))?;
                flock(file, FlockOperation::Unlock)
            }
            Self::Mutex(mutex) => mutex.lock().map(drop),
        }
    }
}
