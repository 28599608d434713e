//! Memory that two processes map: a memfd of normal or huge pages, or a file. [`crate::sysv`] makes values of the
//! same type of its segments. What lies in the memory is not known here, nor how a file gets its name.
//!
//! It is not an allocator, and it orders nothing: its users say who may access which byte when.

use crate::sysv::segment::detach;
use crate::{Errno, Failure, OrFail};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate,
    memfd_create,
};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// What the kernel must forbid for ever. With `SEAL` nobody can add seals either.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Memory that this process shares with every other process that maps it. Unmapped on drop.
///
/// A memfd is sealed against shrinking, so that no access within the checked length can raise `SIGBUS`, whatever the
/// peer does. A System V segment cannot shrink. A file has no seals, and a POSIX shared memory object is a file: any
/// process that may write it can truncate it, and then an access beyond its new end raises `SIGBUS`.
#[derive(Debug)]
pub struct SharedMemory {
    base: NonNull<u8>,
    len_bytes: usize,
    origin: Origin,
}

/// How memory was mapped, which says how it is unmapped.
#[derive(Debug)]
pub(crate) enum Origin {
    /// By mmap(2), with its length.
    Mapped { len_bytes: usize },
    /// By shmat(2).
    Attached,
}

// SAFETY: the mapping belongs to the process, not to a thread, and stays where it is until drop.
unsafe impl Send for SharedMemory {}
// SAFETY: safe code gets only atomics through a shared reference. The copies are unsafe, and their contract forbids
// races.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Makes `len_bytes` of zeroed memory, and the descriptor with which a peer can [`open`](Self::open) it. `name`
    /// is visible in /proc only. See memfd_create(2), fcntl(2) on seals, mmap(2).
    pub fn create(name: &str, len_bytes: usize) -> Result<(Self, OwnedFd), Failure> {
        let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .or_fail("memfd_create", name)?;
        ftruncate(&fd, len_bytes as u64)
            .or_fail("ftruncate", format!("{len_bytes} bytes of memfd {name}"))?;
        fcntl_add_seals(&fd, SEALS).or_fail("fcntl(F_ADD_SEALS)", format!("memfd {name}"))?;
        Ok((Self::map(&fd, len_bytes)?, fd))
    }

    /// Maps what a peer has created. Refuses a file of another length, or one that could still shrink.
    pub fn open(fd: impl AsFd, len_bytes: usize) -> Result<Self, Failure> {
        check_seals(&fd)?;
        check_length(&fd, len_bytes)?;
        Self::map(&fd, len_bytes)
    }

    /// As [`create`](Self::create), of huge pages, as many as `len_bytes` need. The peer maps them with
    /// [`open_huge`](Self::open_huge). The host must have reserved so many (`vm.nr_hugepages`).
    pub fn create_huge(name: &str, len_bytes: usize) -> Result<(Self, OwnedFd), Failure> {
        let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB)
            .or_fail("memfd_create(MFD_HUGETLB)", name)?;
        let page_bytes = page_bytes(&fd)?;
        let file_bytes = len_bytes.next_multiple_of(page_bytes);
        ftruncate(&fd, file_bytes as u64)
            .or_fail("ftruncate", format!("{file_bytes} bytes of memfd {name}"))?;
        fcntl_add_seals(&fd, SEALS).or_fail("fcntl(F_ADD_SEALS)", format!("memfd {name}"))?;
        let memory = Self::map_huge(&fd, len_bytes, page_bytes)?;
        Ok((memory, fd))
    }

    /// Maps what a peer has created of huge pages.
    pub fn open_huge(fd: impl AsFd, len_bytes: usize) -> Result<Self, Failure> {
        check_seals(&fd)?;
        let page_bytes = page_bytes(&fd)?;
        check_length(&fd, len_bytes.next_multiple_of(page_bytes))?;
        Self::map_huge(&fd, len_bytes, page_bytes)
    }

    fn map_huge(fd: &impl AsFd, len_bytes: usize, page_bytes: usize) -> Result<Self, Failure> {
        let mapped = Self::map(fd, len_bytes.next_multiple_of(page_bytes));
        let mut memory = mapped.map_err(|failure| {
            let needed = len_bytes.div_ceil(page_bytes) as u64;
            let kib = page_bytes >> 10;
            let free =
                std::fs::read_to_string(format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/free_hugepages"));
            let free = free.ok().and_then(|free| free.trim().parse().ok()).unwrap_or(0_u64);
            let total = crate::sysctl::number("vm/nr_hugepages").unwrap_or(0);
            Failure {
                answer: format!("{}: {free} huge pages are free, {needed} are needed", failure.answer),
                next: format!("sysctl vm.nr_hugepages={}", total + needed.saturating_sub(free)),
                ..failure
            }
        })?;
        memory.len_bytes = len_bytes;
        Ok(memory)
    }

    /// Extends the empty file or POSIX shared memory object `fd` to `len_bytes` of zeroes, and maps it. All of its
    /// space is reserved now, because a file system that is full later would raise `SIGBUS` (fallocate(2)).
    pub fn create_file(fd: impl AsFd, len_bytes: usize) -> Result<Self, Failure> {
        fallocate(&fd, FallocateFlags::empty(), 0, len_bytes as u64)
            .or_fail("fallocate", format!("{len_bytes} bytes of shared memory"))?;
        Self::open_file(fd, len_bytes)
    }

    /// Maps a file that a peer has made. Refuses a file of another length.
    pub fn open_file(fd: impl AsFd, len_bytes: usize) -> Result<Self, Failure> {
        check_length(&fd, len_bytes)?;
        let memory = Self::map(&fd, len_bytes)?;
        memory.populate();
        Ok(memory)
    }

    /// Maps all of `fd` and populates every page, so that no page fault falls into an iteration.
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
            Failure::new("mmap", "shared memory", "the kernel mapped it at address 0", "report this bug")
        })?;
        Ok(Self { base, len_bytes, origin: Origin::Mapped { len_bytes } })
    }

    /// Takes over memory that was mapped elsewhere.
    ///
    /// # Safety
    ///
    /// The `len_bytes` at `base`, which is aligned to a page, are shared and mapped for reading and writing. Nobody
    /// but this value unmaps them, as `origin` says.
    pub(crate) unsafe fn new(base: NonNull<u8>, len_bytes: usize, origin: Origin) -> Self {
        Self { base, len_bytes, origin }
    }

    /// Populates every page for writing, so that no page fault falls into an iteration (madvise(2),
    /// `MADV_POPULATE_WRITE`). It is for memory of which mapping populates no pages, or for reading only. Kernels
    /// before 5.14 do not have it; with them the warm-up touches the pages.
    pub(crate) fn populate(&self) {
        // SAFETY: all of it is mapped, and the advice changes no byte.
        let _: Result<(), Errno> =
            unsafe { madvise(self.base.as_ptr().cast(), self.len_bytes, Advice::LinuxPopulateWrite) };
    }

    /// The length of the memory in bytes.
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// The first byte, aligned to a page.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// The 8 bytes at `at` as an atomic.
    ///
    /// # Panics
    ///
    /// When `at` is not a multiple of 8, or when the 8 bytes are not all inside.
    #[inline(always)]
    pub fn u64_at(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at.checked_add(8).is_some_and(|end| end <= self.len_bytes));
        // SAFETY: in bounds and aligned, by the check, because the base is aligned to a page. Mapped as long as
        // `self` lives. Non-atomic access to the same bytes needs the unsafe copies, whose contract forbids a race.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// The 4 bytes at `at` as an atomic, such as a futex needs.
    ///
    /// # Panics
    ///
    /// When `at` is not a multiple of 4, or when the 4 bytes are not all inside.
    #[inline(always)]
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
        // SAFETY: in bounds, by contract. `from` is private memory, so that they cannot overlap.
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
        // SAFETY: in bounds, by contract. `into` is private memory, so that they cannot overlap.
        unsafe { std::ptr::copy_nonoverlapping(self.base.as_ptr().add(at), into.as_mut_ptr(), into.len()) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        let base = self.base.as_ptr().cast();
        // SAFETY: this value mapped these bytes, and no reference into them outlives it.
        let unmapped = unsafe {
            match self.origin {
                Origin::Mapped { len_bytes } => munmap(base, len_bytes),
                Origin::Attached => detach(self.base),
            }
        };
        debug_assert!(unmapped.is_ok());
    }
}

/// The failure that the memory is not what a peer of this version makes.
fn refusal(why: String) -> Failure {
    Failure::new("mmap", "the peer's memory", why, "both endpoints must be of one version of ipcmark")
}

fn check_seals(fd: &impl AsFd) -> Result<(), Failure> {
    let seals = fcntl_get_seals(fd).or_fail("fcntl(F_GET_SEALS)", "the peer's memory")?;
    if seals.contains(SEALS) {
        return Ok(());
    }
    Err(refusal(format!("its seals are {seals:?}, so that it could shrink")))
}

fn check_length(fd: &impl AsFd, len_bytes: usize) -> Result<(), Failure> {
    let size = fstat(fd).or_fail("fstat", "the peer's memory")?.st_size;
    if u64::try_from(size) == Ok(len_bytes as u64) {
        return Ok(());
    }
    Err(refusal(format!("it has {size} bytes, not {len_bytes}")))
}

/// The page size of a file of huge pages, which is its block size.
fn page_bytes(fd: &impl AsFd) -> Result<usize, Failure> {
    let bytes = fstat(fd).or_fail("fstat", "memory of huge pages")?.st_blksize;
    Ok(usize::try_from(bytes).unwrap_or(0).max(1))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn two_mappings_show_the_same_bytes() {
        let (client, fd) = SharedMemory::create("test", 10_000).unwrap();
        let server = SharedMemory::open(&fd, 10_000).unwrap();
        client.u64_at(8).store(7, Ordering::Relaxed);
        assert_eq!(server.u64_at(8).load(Ordering::Relaxed), 7);
        assert_eq!(server.u32_at(8).load(Ordering::Relaxed), 7);
        let mut got = [0; 5];
        // SAFETY: in bounds, and this thread alone holds both mappings.
        unsafe {
            client.write(9_995, b"hello");
            server.read(9_995, &mut got);
        }
        assert_eq!(&got, b"hello");
    }

    #[test]
    fn a_file_is_mapped_at_the_length_that_it_was_made_with() {
        let file = tempfile();
        let client = SharedMemory::create_file(&file, 10_000).unwrap();
        let server = SharedMemory::open_file(&file, 10_000).unwrap();
        client.u64_at(9_992).store(7, Ordering::Relaxed);
        assert_eq!(server.u64_at(9_992).load(Ordering::Relaxed), 7);
        let refusal = SharedMemory::open_file(&file, 4096).unwrap_err().to_string();
        assert!(refusal.contains("10000 bytes, not 4096"), "{refusal}");
        // A file can shrink, and so is no substitute for a memfd.
        assert!(SharedMemory::open(&file, 10_000).is_err());
    }

    #[test]
    fn a_file_for_which_there_is_no_room_is_refused() {
        let refusal = SharedMemory::create_file(tempfile(), 1 << 60).unwrap_err();
        assert_eq!(refusal.operation, "fallocate", "{refusal}");
    }

    /// A file without a name.
    fn tempfile() -> OwnedFd {
        use rustix::fs::{Mode, OFlags, open};
        open("/dev/shm", OFlags::TMPFILE | OFlags::RDWR, Mode::RUSR | Mode::WUSR).expect("tmpfs")
    }

    #[test]
    fn huge_pages_are_mapped_or_the_failure_says_how_many_are_free() {
        match SharedMemory::create_huge("test", 10_000) {
            Ok((client, fd)) => {
                let server = SharedMemory::open_huge(&fd, 10_000).unwrap();
                assert_eq!([client.len_bytes(), server.len_bytes()], [10_000; 2]);
                client.u64_at(8).store(7, Ordering::Relaxed);
                assert_eq!(server.u64_at(8).load(Ordering::Relaxed), 7);
                assert!(SharedMemory::open_huge(&fd, 1 << 30).is_err());
                assert_eq!(ftruncate(&fd, 0), Err(Errno::PERM));
            }
            Err(failure) => {
                assert!(failure.answer.contains("are needed"), "{failure}");
                assert!(failure.next.starts_with("sysctl vm.nr_hugepages="), "{failure}");
            }
        }
    }

    #[test]
    fn the_size_of_a_memfd_can_never_change() {
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
