//! Record locks of a file that belong to an open file description, not to a process (fcntl(2)).
//!
//! So they exclude threads too. The kernel releases them when the last descriptor of the description is closed,
//! however its process ended. They guard nothing by themselves: what a lock stands for is for the caller to say.

use crate::libc_call::checked;
use crate::{Errno, Failure, OrFail};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::io::retry_on_intr;

/// A file without a name, of which one endpoint locks bytes.
#[derive(Debug)]
pub struct RecordLocks(OwnedFd);

/// A locked byte. Unlocked on drop.
#[derive(Debug)]
pub struct RecordLockGuard<'a> {
    locks: &'a RecordLocks,
    at: u32,
}

impl RecordLocks {
    /// Makes the file, and the descriptor with which a peer can [`open`](Self::open) it (memfd_create(2)).
    pub fn create() -> Result<(Self, OwnedFd), Failure> {
        let fd = memfd_create("ipcmark-lock", MemfdFlags::CLOEXEC).or_fail("memfd_create", "a lock")?;
        let peers = fd.try_clone().or_fail("dup", "a lock")?;
        Ok((Self(fd), peers))
    }

    /// Opens the file that a peer has made once more. Locks through the peer's own descriptor would be the peer's
    /// too.
    pub fn open(fd: impl AsFd) -> Result<Self, Failure> {
        let path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
        open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).or_fail("open", path).map(Self)
    }

    /// Locks the byte at `at`. Sleeps while the peer has it locked (fcntl(2), `F_OFD_SETLKW`).
    #[inline(always)]
    pub fn lock(&self, at: u32) -> Result<RecordLockGuard<'_>, Errno> {
        retry_on_intr(|| self.set(libc::F_OFD_SETLKW, libc::F_WRLCK, at))?;
        Ok(RecordLockGuard { locks: self, at })
    }

    #[inline(always)]
    fn set(&self, command: libc::c_int, kind: libc::c_int, at: u32) -> Result<(), Errno> {
        // SAFETY: a zeroed flock is valid, and its process must be 0 for these commands.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        lock.l_start = at.into();
        lock.l_len = 1;
        // SAFETY: the lock is valid through the call.
        checked(unsafe { libc::fcntl(self.0.as_raw_fd(), command, &raw const lock) }).map(drop)
    }
}

impl Drop for RecordLockGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let unlocked = self.locks.set(libc::F_OFD_SETLK, libc::F_UNLCK, self.at);
        debug_assert_eq!(unlocked, Ok(()));
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Whether `locks` could lock `at` without waiting.
    fn is_free(locks: &RecordLocks, at: u32) -> bool {
        match locks.set(libc::F_OFD_SETLK, libc::F_WRLCK, at) {
            Ok(()) => {
                drop(RecordLockGuard { locks, at });
                true
            }
            Err(errno) => {
                assert_eq!(errno, Errno::AGAIN);
                false
            }
        }
    }

    #[test]
    fn only_one_of_two_descriptions_has_a_byte_locked() {
        let (client, fd) = RecordLocks::create().unwrap();
        let server = RecordLocks::open(&fd).unwrap();
        let held = client.lock(1).unwrap();
        assert_eq!([0, 1].map(|at| is_free(&server, at)), [true, false]);
        drop(held);
        assert!(is_free(&server, 1));
    }

    #[test]
    fn a_lock_that_is_held_makes_the_peer_sleep() {
        let (client, fd) = RecordLocks::create().unwrap();
        let server = RecordLocks::open(&fd).unwrap();
        let count = AtomicU32::new(0);
        let count_up = |locks: &RecordLocks| {
            for _ in 0..1000 {
                let _held = locks.lock(0).unwrap();
                // In two steps: without a lock, increments would be lost.
                let before = count.load(Ordering::Relaxed);
                count.store(before + 1, Ordering::Relaxed);
            }
        };
        std::thread::scope(|threads| {
            threads.spawn(|| count_up(&server));
            count_up(&client);
        });
        assert_eq!(count.into_inner(), 2000);
    }

    #[test]
    fn a_lock_is_released_with_the_last_descriptor_of_its_holder() {
        let (client, fd) = RecordLocks::create().unwrap();
        let server = RecordLocks::open(&fd).unwrap();
        std::mem::forget(server.lock(0).unwrap());
        assert!(!is_free(&client, 0));
        drop(server);
        assert!(is_free(&client, 0));
    }
}
