//! A lock that is taken and given up, with nobody else who wants it.

use crate::contract::{Operation, Trial};
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
pub enum Lock {
    /// Of the process.
    Fcntl(OwnedFd),
    /// Of the open file description.
    Ofd(RecordLocks),
    /// Likewise, but of the whole file always.
    Flock(OwnedFd),
    /// Robust, in shared memory.
    Mutex(GuardedCount),
}

impl Operation for Lock {
    const CARD: Card = Card {
        name: "lock",
        summary: "take a lock that nobody else wants, and give it up",
        params: &[Param {
            name: "by",
            summary: "a memfd, by fcntl, by fcntl for the open file description (one byte of it), or by flock; or a robust mutex in shared memory, without a system call",
            domain: Domain::Choice(&["fcntl", "ofd", "flock", "mutex"]),
            default: Some("fcntl"),
        }],
        man: &["fcntl(2)", "flock(2)", "pthread_mutex_lock(3p)", "pthread_mutexattr_setrobust(3)"],
        ..Card::OPERATION
    };

    fn prepare(trial: &Trial<'_>) -> Result<Self, Failure> {
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
