//! System V shared memory segments: made, opened, attached, detached and removed. What they are used for is not known here.

use super::key::{CREATE, SysvKey};
use crate::Errno;
use crate::libc_call::checked;
use std::ptr::NonNull;

/// A segment of shared memory, which need not be attached.
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

    /// The segment `key`, which has at least `len_bytes` (shmget(2)).
    pub(crate) fn open(key: SysvKey, len_bytes: usize) -> Result<Self, Errno> {
        // SAFETY: the call takes numbers only.
        checked(unsafe { libc::shmget(key.0, len_bytes, 0) }).map(|id| Self { id })
    }

    /// Where all of it is attached now (shmat(2)), until [`detach`] is called on that.
    pub(crate) fn attach(&self) -> Result<NonNull<u8>, Errno> {
        // SAFETY: the kernel chooses the address, so that no existing mapping is touched.
        let base = unsafe { libc::shmat(self.id, std::ptr::null(), 0) };
        // It answers -1 as a pointer.
        checked(base as isize)?;
        NonNull::new(base.cast()).ok_or(Errno::FAULT)
    }

    /// Removes it, which lives on until it is detached everywhere (shmctl(2), `IPC_RMID`).
    pub(crate) fn remove(self) -> Result<(), Errno> {
        // SAFETY: the call takes numbers; IPC_RMID ignores the buffer.
        checked(unsafe { libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) }).map(drop)
    }
}

/// Detaches what was attached at `base` (shmdt(2)).
///
/// # Safety
///
/// [`SysvSegment::attach`] returned `base`, it was not detached since, and nothing refers to its bytes any more.
pub(crate) unsafe fn detach(base: NonNull<u8>) -> Result<(), Errno> {
    // SAFETY: by the caller's word.
    checked(unsafe { libc::shmdt(base.as_ptr().cast()) }).map(drop)
}
