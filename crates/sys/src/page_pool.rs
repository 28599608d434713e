//! Memory from which the kernel sends bytes without copying them: it keeps references to the pages instead.
//!
//! The kernel may read these pages long after the call has returned. An owner that writes too early changes what
//! arrives, and must not. Memory safety is not at risk: the kernel counts its references, so that a page outlives the
//! pool if it must, and the kernel only reads.
//!
//! The memory is a memfd and its mapping, so that one pool serves calls that take addresses and calls that take a
//! file. When bytes may be written again is not known here.

use crate::shared_memory::SharedMemory;
use crate::{Errno, Failure};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::sendfile;
use rustix::net::{SendFlags, send};
use rustix::pipe::{IoSliceRaw, SpliceFlags, splice, vmsplice};
use std::ops::Range;

/// Pages that are mapped as long as this lives. It keeps the file to itself, so that nobody else can write to them.
#[derive(Debug)]
pub struct PagePool {
    memory: SharedMemory,
    file: OwnedFd,
}

/// What vmsplice(2) says to the kernel about the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmspliceMode {
    /// The process keeps them.
    Loan,
    /// The process gives them away (`SPLICE_F_GIFT`). The manual asks for whole, aligned pages.
    Gift,
}

impl PagePool {
    /// Makes `len_bytes` of zeroed memory. `name` is visible in /proc only.
    pub fn create(name: &str, len_bytes: usize) -> Result<Self, Failure> {
        let (memory, file) = SharedMemory::create(name, len_bytes)?;
        Ok(Self { memory, file })
    }

    /// The bytes in `range`, for writing. The kernel may still read what they held.
    ///
    /// # Panics
    ///
    /// When `range` is not all inside.
    #[inline(always)]
    pub fn reserve(&mut self, range: Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.memory.len_bytes());
        // SAFETY: in bounds by the check, and mapped as long as `self` lives. Nobody else in this process refers to
        // these bytes, because `self` is borrowed exclusively. No other process can write to them, because the file
        // is private to `self`, and pipes and sockets hold pages for reading. The kernel may read them at any time,
        // but Rust's rule does not bind it: it finds one value or another, and memory stays intact.
        unsafe {
            let start = self.memory.base().as_ptr().add(range.start);
            std::slice::from_raw_parts_mut(start, range.len())
        }
    }

    /// Puts a first part of the bytes in `range` into `pipe`, and returns how many (vmsplice(2)). Sleeps while the
    /// pipe is full. The pipe refers to their pages until somebody has read them.
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
        // SAFETY: the bytes are borrowed exclusively. So even the read end of a pipe does no harm, from which this
        // call would write to them; the kernel keeps no reference for writing when the call returns. The kernel may
        // move a gift into a file only while nobody else refers to its page, but the mapping of `self` does as long
        // as `self` lives. So a later write cannot end up in a file.
        unsafe { vmsplice(pipe, &bytes, flags) }
    }

    /// Puts a first part of the bytes in `range` into `pipe` as bytes of the file, and returns how many (splice(2)).
    /// Sleeps while the pipe is full. The pipe refers to their pages until somebody has read them.
    #[inline(always)]
    pub fn splice(&self, range: Range<usize>, pipe: impl AsFd) -> Result<usize, Errno> {
        let mut offset = range.start as u64;
        splice(&self.file, Some(&mut offset), pipe, None, range.len(), SpliceFlags::empty())
    }

    /// Sends a first part of the bytes in `range` to `socket` as bytes of the file, and returns how many
    /// (sendfile(2)). Sleeps while the socket's buffer is full. The connection refers to their pages until they are
    /// acknowledged and, on the same host, until the peer has read them.
    #[inline(always)]
    pub fn sendfile(&self, range: Range<usize>, socket: impl AsFd) -> Result<usize, Errno> {
        let mut offset = range.start as u64;
        sendfile(socket, &self.file, Some(&mut offset), range.len())
    }

    /// Sends a first part of the bytes in `range` to `socket`, and returns how many (send(2)). `flags` say whether
    /// the kernel copies them.
    #[inline(always)]
    pub fn send(&mut self, range: Range<usize>, socket: impl AsFd, flags: SendFlags) -> Result<usize, Errno> {
        send(socket, self.reserve(range), flags)
    }
}

#[cfg(all(test, not(miri)))]
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
    fn a_pipe_refers_to_the_page_and_not_to_a_copy() {
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
    fn bytes_in_a_pipe_outlive_the_pool() {
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
