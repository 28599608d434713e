//! System V semaphores: sets of them made, opened, used and removed.

use super::key::{CREATE, SysvKey, check_ours, gone};
use crate::libc_call::checked;
use crate::{Errno, Failure, OrFail};
use rustix::io::retry_on_intr;

/// A set of semaphores.
#[derive(Debug)]
pub struct SysvSemaphores {
    id: libc::c_int,
    flags: libc::c_short,
}

impl SysvSemaphores {
    /// Makes the set `key` of `count` semaphores, all zero (semget(2)). With `undo` the kernel undoes every operation
    /// of a process when the process ends (`SEM_UNDO`, semop(2)).
    pub fn create(key: SysvKey, count: u16, undo: bool) -> Result<Self, Failure> {
        Self::get(key, count, CREATE, undo)
    }

    /// Opens the set that a peer has made.
    pub fn open(key: SysvKey, count: u16, undo: bool) -> Result<Self, Failure> {
        Self::get(key, count, 0, undo)
    }

    fn get(key: SysvKey, count: u16, flags: libc::c_int, undo: bool) -> Result<Self, Failure> {
        // SAFETY: the call takes numbers only.
        let id = checked(unsafe { libc::semget(key.0, count.into(), flags) })
            .or_fail("semget", format!("key {key}"))?;
        Ok(Self { id, flags: if undo { libc::SEM_UNDO as libc::c_short } else { 0 } })
    }

    /// Adds `change` to semaphore `at`. Sleeps while that would make it negative (semop(2)).
    #[inline(always)]
    pub fn add(&self, at: u16, change: i16) -> Result<(), Errno> {
        let mut operation = libc::sembuf { sem_num: at, sem_op: change, sem_flg: self.flags };
        // SAFETY: one operation is valid through the call.
        retry_on_intr(|| checked(unsafe { libc::semop(self.id, &raw mut operation, 1) }))
            .map_err(gone)
            .map(drop)
    }
}

/// `struct semid_ds` of the 64-bit kernel (semctl(2), and `asm/sembuf.h`), which the crate libc does not have for every C library.
#[repr(C)]
struct SetStatus {
    permissions: libc::ipc_perm,
    used_s: i64,
    #[cfg(target_arch = "x86_64")]
    _unused: u64,
    changed_s: i64,
    #[cfg(target_arch = "x86_64")]
    _unused_too: u64,
    count: u64,
    _reserved: [u64; 2],
}

/// Removes the set `key`, if this user made it, and not before `since_s` (semctl(2), `IPC_STAT`, `IPC_RMID`).
pub(crate) fn remove_semaphores(key: SysvKey, since_s: i64) -> Result<(), Errno> {
    // SAFETY: a zeroed status is valid, and is valid for writes through the call; IPC_RMID needs no argument.
    unsafe {
        let id = checked(libc::semget(key.0, 0, 0))?;
        let mut status: SetStatus = std::mem::zeroed();
        checked(libc::semctl(id, 0, libc::IPC_STAT, &raw mut status))?;
        check_ours(&status.permissions, status.changed_s, since_s)?;
        checked(libc::semctl(id, 0, libc::IPC_RMID)).map(drop)
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn semaphores_count() {
        let key = SysvKey::hashed((std::process::id(), "a set"));
        let client = SysvSemaphores::create(key, 2, true).unwrap();
        let server = SysvSemaphores::open(key, 2, false).unwrap();
        client.add(1, 2).unwrap();
        server.add(1, -1).unwrap();
        server.add(1, -1).unwrap();
        remove_semaphores(key, 0).unwrap();
        assert_eq!(server.add(1, -1), Err(Errno::PIPE));
    }
}
