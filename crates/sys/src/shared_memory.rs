//! Memory that two processes map: a memfd. What is laid out in it is not known here.
//!
//! The file is sealed against shrinking, so that no access within the checked length can raise
//! `SIGBUS`, whatever the peer does. It is not an allocator, and it orders nothing: who may touch
//! which byte when is for the layout's owner to say.

use crate::{Failure, OrFail};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// What the kernel is asked to forbid for ever. Without `SEAL` the peer could not undo these either.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A mapping of a memfd, shared with whoever maps it too. Unmapped on drop.
#[derive(Debug)]
pub struct SharedMemory {
    base: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and stays where it is until drop.
unsafe impl Send for SharedMemory {}
// SAFETY: through a shared reference only atomics are handed out safely; the copies are unsafe and
// their contract forbids races.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Makes `len_bytes` of zeroed memory, and the descriptor with which a peer can [`open`](Self::open) it.
    /// `name` is seen in /proc only. See memfd_create(2), fcntl(2) on seals, mmap(2).
    pub fn create(name: &str, len_bytes: usize) -> Result<(Self, OwnedFd), Failure> {
        let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .or_fail("memfd_create", name)?;
        ftruncate(&fd, len_bytes as u64)
            .or_fail("ftruncate", format!("{len_bytes} bytes of memfd {name}"))?;
        fcntl_add_seals(&fd, SEALS).or_fail("fcntl(F_ADD_SEALS)", format!("memfd {name}"))?;
        Ok((Self::map(&fd, len_bytes)?, fd))
    }

    /// Maps what a peer created. Refuses a file of another length, or one that could still shrink.
    pub fn open(fd: impl AsFd, len_bytes: usize) -> Result<Self, Failure> {
        let refuse = |why: String| {
            Failure::new("mmap", "the peer's memory", why, "both ends must be of one version of ipcmark")
        };
        let seals = fcntl_get_seals(&fd).or_fail("fcntl(F_GET_SEALS)", "the peer's memory")?;
        if !seals.contains(SEALS) {
            return Err(refuse(format!("its seals are {seals:?}, so that it could shrink")));
        }
        let size = fstat(&fd).or_fail("fstat", "the peer's memory")?.st_size;
        if u64::try_from(size) != Ok(len_bytes as u64) {
            return Err(refuse(format!("it has {size} bytes, not {len_bytes}")));
        }
        Self::map(&fd, len_bytes)
    }

    /// Every page is populated now, so that no page fault falls into a turn.
    fn map(fd: &impl AsFd, len_bytes: usize) -> Result<Self, Failure> {
        // SAFETY: the kernel chooses the address, so that no existing mapping is touched.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                len_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                fd,
                0,
            )
        }
        .or_fail("mmap", format!("{len_bytes} bytes of shared memory"))?;
        let base = NonNull::new(base.cast::<u8>()).ok_or_else(|| {
            Failure::new("mmap", "shared memory", "the kernel mapped it at address 0", "see 'ipcmark doctor'")
        })?;
        Ok(Self { base, len_bytes })
    }

    /// Its length in bytes.
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Its first byte, aligned to a page.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// The 8 bytes at `at` as an atomic.
    ///
    /// # Panics
    ///
    /// When `at` is not a multiple of 8, or when the 8 bytes are not all inside.
    pub fn u64_at(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at.checked_add(8).is_some_and(|end| end <= self.len_bytes));
        // SAFETY: in bounds and aligned, by the check (the base is aligned to a page); mapped as long
        // as `self` lives. Non-atomic access to the same bytes needs the unsafe copies of this crate,
        // whose contract forbids a race.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// The 4 bytes at `at` as an atomic, such as a futex needs.
    ///
    /// # Panics
    ///
    /// When `at` is not a multiple of 4, or when the 4 bytes are not all inside.
    pub fn u32_at(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at.checked_add(4).is_some_and(|end| end <= self.len_bytes));
        // SAFETY: as in `u64_at`.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// Copies `from` to `at`.
    ///
    /// # Safety
    ///
    /// `at + from.len()` is at most [`len_bytes`](Self::len_bytes), and nobody else in this process
    /// or, by the protocol, in the peer accesses those bytes at the same time.
    pub unsafe fn write(&self, at: usize, from: &[u8]) {
        debug_assert!(at + from.len() <= self.len_bytes);
        // SAFETY: in bounds by the caller's word; `from` is private memory, so that they cannot overlap.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.base.as_ptr().add(at), from.len()) }
    }

    /// Copies the bytes at `at` to `into`.
    ///
    /// # Safety
    ///
    /// `at + into.len()` is at most [`len_bytes`](Self::len_bytes), and nobody else in this process
    /// or, by the protocol, in the peer writes those bytes at the same time.
    pub unsafe fn read(&self, at: usize, into: &mut [u8]) {
        debug_assert!(at + into.len() <= self.len_bytes);
        // SAFETY: in bounds by the caller's word; `into` is private memory, so that they cannot overlap.
        unsafe { std::ptr::copy_nonoverlapping(self.base.as_ptr().add(at), into.as_mut_ptr(), into.len()) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: this value mapped these bytes, and no reference into them outlives it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len_bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::sync::atomic::Ordering;

    #[test]
    fn two_mappings_show_the_same_bytes() {
        let (near, fd) = SharedMemory::create("test", 10_000).unwrap();
        let far = SharedMemory::open(&fd, 10_000).unwrap();
        near.u64_at(8).store(7, Ordering::Relaxed);
        assert_eq!(far.u64_at(8).load(Ordering::Relaxed), 7);
        assert_eq!(far.u32_at(8).load(Ordering::Relaxed), 7);
        let mut got = [0; 5];
        // SAFETY: in bounds, and this thread alone holds both mappings.
        unsafe {
            near.write(9_995, b"hello");
            far.read(9_995, &mut got);
        }
        assert_eq!(&got, b"hello");
    }

    #[test]
    fn its_size_can_never_change() {
        let (_memory, fd) = SharedMemory::create("test", 4096).unwrap();
        assert_eq!(ftruncate(&fd, 0), Err(Errno::PERM));
        assert_eq!(ftruncate(&fd, 8192), Err(Errno::PERM));
        assert_eq!(fcntl_add_seals(&fd, SealFlags::WRITE), Err(Errno::PERM));
    }

    #[test]
    fn a_file_that_could_shrink_or_has_another_size_is_refused() {
        let open = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&open, 4096).unwrap();
        assert!(SharedMemory::open(&open, 4096).unwrap_err().to_string().contains("could shrink"));
        let (_memory, fd) = SharedMemory::create("test", 4096).unwrap();
        let refusal = SharedMemory::open(&fd, 8192).unwrap_err().to_string();
        assert!(refusal.contains("4096 bytes, not 8192"), "{refusal}");
    }

    #[test]
    #[should_panic]
    fn an_atomic_outside_is_refused() {
        let (memory, _fd) = SharedMemory::create("test", 4096).unwrap();
        memory.u64_at(4096);
    }

    #[test]
    #[should_panic]
    fn an_unaligned_atomic_is_refused() {
        let (memory, _fd) = SharedMemory::create("test", 4096).unwrap();
        memory.u32_at(2);
    }
}
