//! POSIX semaphores, and a robust mutex with a condition variable, in memory that two processes share.
//!
//! Each lies at the start of a [`SharedMemory`] of its own. The client initialises it, the server only maps it.

use crate::libc_call::checked;
use crate::shared_memory::SharedMemory;
use crate::{Errno, Failure, OrFail};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::retry_on_intr;
use std::mem::{MaybeUninit, offset_of};
use std::ptr::{NonNull, addr_of_mut};

/// The size of that memory: one page.
const MEMORY_BYTES: usize = 4096;

/// Semaphores of sem_overview(7), all zero at first.
#[derive(Debug)]
pub struct PosixSemaphores<const N: usize>(SharedMemory);

impl<const N: usize> PosixSemaphores<N> {
    /// Makes them, and the descriptor with which a peer can [`open`](Self::open) them (sem_init(3)).
    pub fn create() -> Result<(Self, OwnedFd), Failure> {
        const { assert!(N * size_of::<libc::sem_t>() <= MEMORY_BYTES) };
        let (memory, fd) = SharedMemory::create("ipcmark-posix-sem", MEMORY_BYTES)?;
        let semaphores = Self(memory);
        for at in 0..N {
            // SAFETY: the semaphore lies in the mapping, and nobody else refers to it yet.
            checked(unsafe { libc::sem_init(semaphores.at(at), 1, 0) })
                .or_fail("sem_init", "shared memory")?;
        }
        Ok((semaphores, fd))
    }

    /// Maps what a peer has made.
    pub fn open(fd: impl AsFd) -> Result<Self, Failure> {
        SharedMemory::open(fd, MEMORY_BYTES).map(Self)
    }

    #[inline(always)]
    fn at(&self, at: usize) -> *mut libc::sem_t {
        assert!(at < N);
        // SAFETY: inside the mapping, which is aligned to a page, by the checks here and in `create`.
        unsafe { self.0.base().cast::<libc::sem_t>().as_ptr().add(at) }
    }

    /// Raises semaphore `at` by one (sem_post(3)).
    #[inline(always)]
    pub fn post(&self, at: usize) -> Result<(), Errno> {
        // SAFETY: the semaphore was initialised by `create` and lives as long as the mapping.
        checked(unsafe { libc::sem_post(self.at(at)) }).map(drop)
    }

    /// Lowers semaphore `at` by one; sleeps while it is zero (sem_wait(3)).
    #[inline(always)]
    pub fn wait(&self, at: usize) -> Result<(), Errno> {
        // SAFETY: as in `post`.
        retry_on_intr(|| checked(unsafe { libc::sem_wait(self.at(at)) })).map(drop)
    }
}

/// A count that a robust mutex guards, with a condition variable that is signalled when it has changed.
#[derive(Debug)]
pub struct GuardedCount(SharedMemory);

/// The locked mutex of a [`GuardedCount`]. Unlocked on drop.
#[derive(Debug)]
pub struct CountGuard<'a>(&'a GuardedCount);

#[repr(C)]
struct Layout {
    mutex: libc::pthread_mutex_t,
    changed: libc::pthread_cond_t,
    count: u32,
}

const _: () = assert!(size_of::<Layout>() <= MEMORY_BYTES && offset_of!(Layout, mutex) == 0);

/// The error number that a pthread function returned, as a result.
fn pthread_result(error: libc::c_int) -> Result<(), Errno> {
    if error == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(error)) }
}

impl GuardedCount {
    /// Makes it, with a count of 0, and the descriptor with which a peer can [`open`](Self::open) it
    /// (pthread_mutexattr_setrobust(3), pthread_mutexattr_setpshared(3), pthread_condattr_setpshared(3p)).
    pub fn create() -> Result<(Self, OwnedFd), Failure> {
        let (memory, fd) = SharedMemory::create("ipcmark-mutex-cond", MEMORY_BYTES)?;
        let guarded = Self(memory);
        let layout = guarded.layout().as_ptr();
        let mut mutex_attributes = MaybeUninit::uninit();
        let mut changed_attributes = MaybeUninit::uninit();
        // SAFETY: the attributes are initialised before they are set and used, and destroyed after. The mutex and the
        // condition variable lie in the mapping, and nobody else refers to them yet.
        let created = unsafe {
            let (mutex, changed) = (mutex_attributes.as_mut_ptr(), changed_attributes.as_mut_ptr());
            let created = pthread_result(libc::pthread_mutexattr_init(mutex))
                .and_then(|()| {
                    pthread_result(libc::pthread_mutexattr_setpshared(mutex, libc::PTHREAD_PROCESS_SHARED))
                })
                .and_then(|()| {
                    pthread_result(libc::pthread_mutexattr_setrobust(mutex, libc::PTHREAD_MUTEX_ROBUST))
                })
                .and_then(|()| pthread_result(libc::pthread_mutex_init(addr_of_mut!((*layout).mutex), mutex)))
                .and_then(|()| pthread_result(libc::pthread_condattr_init(changed)))
                .and_then(|()| {
                    pthread_result(libc::pthread_condattr_setpshared(changed, libc::PTHREAD_PROCESS_SHARED))
                })
                .and_then(|()| {
                    pthread_result(libc::pthread_cond_init(addr_of_mut!((*layout).changed), changed))
                });
            libc::pthread_mutexattr_destroy(mutex);
            created
        };
        created.or_fail("pthread_mutex_init", "a robust mutex in shared memory")?;
        Ok((guarded, fd))
    }

    /// Maps what a peer has made.
    pub fn open(fd: impl AsFd) -> Result<Self, Failure> {
        SharedMemory::open(fd, MEMORY_BYTES).map(Self)
    }

    fn layout(&self) -> NonNull<Layout> {
        self.0.base().cast()
    }

    /// Sets the count to `count` under the mutex, and wakes whoever waits for it.
    #[inline(always)]
    pub fn set(&self, count: u32) -> Result<(), Errno> {
        let mut locked = self.lock()?;
        *locked.count() = count;
        self.notify()
    }

    /// Sleeps until the count is `count`.
    #[inline(always)]
    pub fn wait_for(&self, count: u32) -> Result<(), Errno> {
        let mut locked = self.lock()?;
        while *locked.count() != count {
            locked.wait()?;
        }
        Ok(())
    }

    /// Wakes the peer if it waits, with the mutex held or not (pthread_cond_signal(3p)).
    #[inline(always)]
    pub fn notify(&self) -> Result<(), Errno> {
        // SAFETY: the condition variable was initialised by `create` and lives as long as the mapping.
        pthread_result(unsafe { libc::pthread_cond_signal(addr_of_mut!((*self.layout().as_ptr()).changed)) })
    }

    /// Locks the mutex. Sleeps while the peer holds it (pthread_mutex_lock(3)).
    ///
    /// If its owner died while it held the mutex, the peer is gone: `Errno::PIPE`, this time and every time after.
    #[inline(always)]
    pub fn lock(&self) -> Result<CountGuard<'_>, Errno> {
        // SAFETY: the mutex was initialised by `create` and lives as long as the mapping.
        match pthread_result(unsafe {
            libc::pthread_mutex_lock(addr_of_mut!((*self.layout().as_ptr()).mutex))
        }) {
            Ok(()) => Ok(CountGuard(self)),
            Err(Errno::OWNERDEAD) => {
                // Unlocked in this state, nobody can lock it again.
                drop(CountGuard(self));
                Err(Errno::PIPE)
            }
            Err(Errno::NOTRECOVERABLE) => Err(Errno::PIPE),
            Err(errno) => Err(errno),
        }
    }
}

impl CountGuard<'_> {
    /// The count.
    #[inline(always)]
    pub fn count(&mut self) -> &mut u32 {
        // SAFETY: it lies in the mapping. Only the owner of the mutex accesses it, and that is this value.
        unsafe { &mut (*self.0.layout().as_ptr()).count }
    }

    /// Unlocks the mutex, sleeps until the peer notifies, and locks it again (pthread_cond_wait(3p)). It may wake
    /// without a reason.
    #[inline(always)]
    pub fn wait(&mut self) -> Result<(), Errno> {
        let layout = self.0.layout().as_ptr();
        // SAFETY: both were initialised by `create` and live as long as the mapping, and the mutex is held.
        let woken = pthread_result(unsafe {
            libc::pthread_cond_wait(addr_of_mut!((*layout).changed), addr_of_mut!((*layout).mutex))
        });
        if woken == Err(Errno::OWNERDEAD) { Err(Errno::PIPE) } else { woken }
    }
}

impl Drop for CountGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // After a wait that failed the mutex may not be locked. Then the call fails, and nothing needs to be done.
        // SAFETY: the mutex was initialised by `create` and lives as long as the mapping.
        unsafe { libc::pthread_mutex_unlock(addr_of_mut!((*self.0.layout().as_ptr()).mutex)) };
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_semaphore_counts_across_mappings() {
        let (client, fd) = PosixSemaphores::<2>::create().unwrap();
        let server = PosixSemaphores::<2>::open(&fd).unwrap();
        client.post(1).unwrap();
        client.post(1).unwrap();
        server.wait(1).unwrap();
        server.wait(1).unwrap();
    }

    #[test]
    fn a_guarded_count_wakes_whoever_waits_across_mappings() {
        let (client, fd) = GuardedCount::create().unwrap();
        let server = GuardedCount::open(&fd).unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for count in (1..100).step_by(2) {
                    server.wait_for(count).unwrap();
                    server.set(count + 1).unwrap();
                }
            });
            for count in (1..100).step_by(2) {
                client.set(count).unwrap();
                client.wait_for(count + 1).unwrap();
            }
        });
    }

    #[test]
    fn a_mutex_that_was_unlocked_can_be_locked() {
        let (client, fd) = GuardedCount::create().unwrap();
        let server = GuardedCount::open(&fd).unwrap();
        for guarded in [&client, &client, &server, &client] {
            drop(guarded.lock().unwrap());
        }
    }

    #[test]
    fn an_owner_that_dies_with_the_mutex_is_reported_as_a_closed_peer() {
        let (client, fd) = GuardedCount::create().unwrap();
        let server = GuardedCount::open(&fd).unwrap();
        std::thread::scope(|threads| threads.spawn(|| std::mem::forget(server.lock().unwrap())).join())
            .unwrap();
        assert_eq!(client.set(1), Err(Errno::PIPE));
        assert_eq!(client.wait_for(1), Err(Errno::PIPE));
    }
}
