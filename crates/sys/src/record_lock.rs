//! Record locks of a file that belong to whoever opened it, not to a process (fcntl(2), open file description locks).
//!
//! So they hold between threads too, and the kernel gives them up when the last descriptor of the opening is closed,
//! in whatever way its process ended. They guard nothing by themselves: who takes which is for the caller to say.

use crate::libc_call::checked;
use crate::{Errno, Failure, OrFail};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::io::retry_on_intr;

/// A file without a name, opened for one end to lock bytes of.
#[derive(Debug)]
pub struct RecordLocks(OwnedFd);

/// A lock, held until this is dropped.
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

    /// Opens the file that a peer made once more: locks through its own descriptor would be the peer's too.
    pub fn open(fd: impl AsFd) -> Result<Self, Failure> {
        let path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
        open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).or_fail("open", path).map(Self)
    }

    /// Locks the byte at `at`; sleeps while the peer has it locked (fcntl(2), `F_OFD_SETLKW`).
    #[inline(always)]
    pub fn lock(&self, at: u32) -> Result<RecordLockGuard<'_>, Errno> {
        retry_on_intr(|| self.set(libc::F_OFD_SETLKW, libc::F_WRLCK, at))?;
        Ok(RecordLockGuard { locks: self, at })
    }

    #[inline(always)]
    fn set(&self, command: libc::c_int, kind: libc::c_int, at: u32) -> Result<(), Errno> {
        // SAFETY: a zeroed flock is a valid one, and its process must be 0 here.
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

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Whether `locks` could have `at` at once.
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
    fn one_of_two_openings_has_a_byte_locked_at_a_time() {
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
        let iterations = |locks: &RecordLocks| {
            for _ in 0..1000 {
                let _held = locks.lock(0).unwrap();
                // Two steps: without a lock, iterations would be lost.
                let seen = count.load(Ordering::Relaxed);
                count.store(seen + 1, Ordering::Relaxed);
            }
        };
        std::thread::scope(|threads| {
            threads.spawn(|| iterations(&server));
            iterations(&client);
        });
        assert_eq!(count.into_inner(), 2000);
    }

    #[test]
    fn a_lock_goes_with_the_last_descriptor_of_who_holds_it() {
        let (client, fd) = RecordLocks::create().unwrap();
        let server = RecordLocks::open(&fd).unwrap();
        std::mem::forget(server.lock(0).unwrap());
        assert!(!is_free(&client, 0));
        drop(server);
        assert!(is_free(&client, 0));
    }
}
