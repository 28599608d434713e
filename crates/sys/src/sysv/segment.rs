//! System V shared memory segments: made, opened, attached, detached and removed. What they are used for is not known
//! here.

use super::key::{CREATE, SysvKey, check_ours};
use crate::Errno;
use crate::libc_call::checked;
use std::ptr::NonNull;

/// A segment of shared memory, attached or not.
#[derive(Debug)]
pub(crate) struct SysvSegment {
    id: libc::c_int,
}

impl SysvSegment {
    /// Makes the segment `key` of `len_bytes` of zeroes (shmget(2)).
    pub(crate) fn create(key: SysvKey, len_bytes: usize) -> Result<Self, Errno> {
        // SAFETY: the call takes numbers only.
        checked(unsafe { libc::shmget(key.0, len_bytes, CREATE) }).map(|id| Self { id })
    }

    /// Opens the segment `key`, which must have at least `len_bytes` (shmget(2)).
    pub(crate) fn open(key: SysvKey, len_bytes: usize) -> Result<Self, Errno> {
        // SAFETY: the call takes numbers only.
        checked(unsafe { libc::shmget(key.0, len_bytes, 0) }).map(|id| Self { id })
    }

    /// Attaches all of it until [`detach`], and returns where (shmat(2)).
    pub(crate) fn attach(&self) -> Result<NonNull<u8>, Errno> {
        // SAFETY: the kernel chooses the address, so that no existing mapping is touched.
        let base = unsafe { libc::shmat(self.id, std::ptr::null(), 0) };
        // On failure it returns -1 as a pointer.
        checked(base as isize)?;
        NonNull::new(base.cast()).ok_or(Errno::FAULT)
    }

    /// Refuses a segment that another user made, or that was there before `since_s` (shmctl(2), `IPC_STAT`).
    pub(crate) fn check_ours(&self, since_s: i64) -> Result<(), Errno> {
        // SAFETY: a zeroed shmid_ds is valid.
        let mut status: libc::shmid_ds = unsafe { std::mem::zeroed() };
        // SAFETY: the status is valid for writes through the call.
        checked(unsafe { libc::shmctl(self.id, libc::IPC_STAT, &raw mut status) })?;
        check_ours(&status.shm_perm, status.shm_ctime, since_s)
    }

    /// Removes its name. The segment itself lives until everybody has detached it (shmctl(2), `IPC_RMID`).
    pub(crate) fn remove(self) -> Result<(), Errno> {
        // SAFETY: the call takes numbers; IPC_RMID ignores the buffer.
        checked(unsafe { libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) }).map(drop)
    }
}

/// Detaches what was attached at `base` (shmdt(2)).
///
/// # Safety
///
/// [`SysvSegment::attach`] returned `base`, it was not detached since, and nothing refers to its bytes.
pub(crate) unsafe fn detach(base: NonNull<u8>) -> Result<(), Errno> {
    // SAFETY: by contract.
    checked(unsafe { libc::shmdt(base.as_ptr().cast()) }).map(drop)
}
