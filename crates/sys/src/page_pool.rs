//! Memory from which the kernel is handed bytes without copying them: it keeps references to the pages instead.
//!
//! The kernel may read these pages long after the call that handed them over has returned. That is a hazard for
//! what arrives, which the pool's owner must exclude by not writing too early, and none for memory: the kernel
//! counts its references, so that a page outlives the pool where it must. It only ever reads.
//!
//! The memory is a memfd and its mapping, so that one pool serves calls that take addresses and calls that take
//! a file. When bytes may be written again is not known here.

use crate::shared_memory::SharedMemory;
use crate::{Errno, Failure};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::sendfile;
use rustix::net::{SendFlags, send};
use rustix::pipe::{IoSliceRaw, SpliceFlags, splice, vmsplice};
use std::ops::Range;

/// Pages that are mapped as long as this lives. The file never leaves it: nobody else can write to them.
#[derive(Debug)]
pub struct PagePool {
    memory: SharedMemory,
    file: OwnedFd,
}

/// What the kernel is told of the pages that it is handed by vmsplice(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmspliceMode {
    /// They are lent.
    Loan,
    /// They are a gift (`SPLICE_F_GIFT`). The manual wants them whole and aligned.
    Gift,
}

impl PagePool {
    /// Makes `len_bytes` of zeroed memory; `name` is seen in /proc only.
    pub fn create(name: &str, len_bytes: usize) -> Result<Self, Failure> {
        let (memory, file) = SharedMemory::create(name, len_bytes)?;
        Ok(Self { memory, file })
    }

    /// The bytes in `range`, to be written. The kernel may still be reading what they held.
    ///
    /// # Panics
    ///
    /// When `range` is not all inside.
    #[inline(always)]
    pub fn reserve(&mut self, range: Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.memory.len_bytes());
        // SAFETY: in bounds by the check, and mapped as long as `self` lives. Nobody else in this process refers to
        // these bytes, because `self` is borrowed alone; no other process can write to them, because the file is
        // private to `self` and pipes and sockets hold pages for reading; and the kernel, which may read them at any
        // time, is no party to Rust's rule: it finds one value or another, and memory stays intact.
        unsafe {
            let start = self.memory.base().as_ptr().add(range.start);
            std::slice::from_raw_parts_mut(start, range.len())
        }
    }

    /// Hands a first part of the bytes in `range` to `pipe`, and says how many they are (vmsplice(2)).
    /// Sleeps while the pipe is full. The pipe refers to their pages until they were read.
    #[inline(always)]
    pub fn vmsplice(
        &mut self,
        range: Range<usize>,
        pipe: impl AsFd,
        mode: VmspliceMode,
    ) -> Result<usize, Errno> {
        let flags = match mode {
            VmspliceMode::Loan => SpliceFlags::empty(),
            VmspliceMode::Gift => SpliceFlags::GIFT,
        };
        let bytes = [IoSliceRaw::from_slice_mut(self.reserve(range))];
        // SAFETY: the bytes are borrowed alone, so that even a reading end, from which this call would write to
        // them, does no harm; it keeps no reference for writing when it returns. A gift may be moved into a file
        // only while nobody else refers to its page, and the mapping of `self` does as long as `self` lives: what
        // is written to it later cannot be in a file.
        unsafe { vmsplice(pipe, &bytes, flags) }
    }

    /// Hands a first part of the bytes in `range` to `pipe` as bytes of the file, and says how many they are
    /// (splice(2)). Sleeps while the pipe is full. The pipe refers to their pages until they were read.
    #[inline(always)]
    pub fn splice(&self, range: Range<usize>, pipe: impl AsFd) -> Result<usize, Errno> {
        let mut offset = range.start as u64;
        splice(&self.file, Some(&mut offset), pipe, None, range.len(), SpliceFlags::empty())
    }

    /// Hands a first part of the bytes in `range` to `socket` as bytes of the file, and says how many they are
    /// (sendfile(2)). Sleeps while the socket's buffer is full. The connection refers to their pages until they were
    /// acknowledged and, on the same host, until the peer has read them.
    #[inline(always)]
    pub fn sendfile(&self, range: Range<usize>, socket: impl AsFd) -> Result<usize, Errno> {
        let mut offset = range.start as u64;
        sendfile(socket, &self.file, Some(&mut offset), range.len())
    }

    /// Hands a first part of the bytes in `range` to `socket` (send(2)), and says how many they are. Whether the
    /// kernel copies them is in `flags`.
    #[inline(always)]
    pub fn send(&mut self, range: Range<usize>, socket: impl AsFd, flags: SendFlags) -> Result<usize, Errno> {
        send(socket, self.reserve(range), flags)
    }
}

#[cfg(all(test, not(miri), not(loom)))]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use super::*;
    use rustix::io::read;
    use rustix::pipe::pipe;

    fn pool() -> PagePool {
        let mut pool = PagePool::create("test", 8192).unwrap();
        pool.reserve(0..5).copy_from_slice(b"hello");
        pool
    }

    fn read_5(pipe: impl AsFd) -> [u8; 5] {
        let mut got = [0; 5];
        assert_eq!(read(pipe, &mut got), Ok(5));
        got
    }

    #[test]
    fn a_pipe_refers_to_the_page_that_it_was_handed() {
        for way in [
            |pool: &mut PagePool, pipe: &OwnedFd| pool.vmsplice(0..5, pipe, VmspliceMode::Loan),
            |pool: &mut PagePool, pipe: &OwnedFd| pool.vmsplice(0..5, pipe, VmspliceMode::Gift),
            |pool: &mut PagePool, pipe: &OwnedFd| pool.splice(0..5, pipe),
        ] {
            let (input, output) = pipe().unwrap();
            let mut pool = pool();
            assert_eq!(way(&mut pool, &output), Ok(5));
            pool.reserve(1..2).copy_from_slice(b"a");
            assert_eq!(&read_5(&input), b"hallo");
        }
    }

    #[test]
    fn what_was_handed_over_outlives_the_pool() {
        let (input, output) = pipe().unwrap();
        let mut pool = pool();
        assert_eq!(pool.vmsplice(0..5, &output, VmspliceMode::Loan), Ok(5));
        drop(pool);
        assert_eq!(&read_5(&input), b"hello");
    }

    #[test]
    fn the_wrong_end_of_a_pipe_writes_to_the_pool_and_nowhere_else() {
        let (input, output) = pipe().unwrap();
        rustix::io::write(&output, b"world").unwrap();
        let mut pool = pool();
        assert_eq!(pool.vmsplice(0..5, &input, VmspliceMode::Loan), Ok(5));
        assert_eq!(pool.reserve(0..5), b"world");
    }

    #[test]
    #[should_panic]
    fn a_range_outside_is_refused() {
        pool().reserve(8190..8193);
    }
}
