//! Memory that processes can share, of each kind that Linux has: made, attached, touched, detached and removed, step
//! by step. Also memory that one process keeps for itself, of the same kinds. What two processes really share is in
//! [`crate::shared_memory`].

use crate::anonymous::{map, touch};
use crate::sysv::SysvKey;
use crate::sysv::segment::{self as sysv_segment, SysvSegment};
use crate::{Errno, Failure, OrFail};
use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, fallocate, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::shm;
use std::ptr::NonNull;

/// By which call memory is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SegmentSource {
    /// memfd_create(2), which needs no name.
    Memfd,
    /// shm_open(3), under this name.
    Posix(String),
    /// shmget(2), under this key.
    Sysv(SysvKey),
}

/// Memory that exists, whether or not it is attached.
#[derive(Debug)]
pub struct MemorySegment {
    object: Object,
    len_bytes: usize,
}

#[derive(Debug)]
enum Object {
    File(OwnedFd),
    Sysv(SysvSegment),
}

impl SegmentSource {
    /// Makes `len_bytes` of zeroes, which nobody else has. All but System V memory needs ftruncate(2) too.
    #[inline(always)]
    pub fn create(&self, len_bytes: usize) -> Result<MemorySegment, Errno> {
        let fd = match self {
            SegmentSource::Sysv(key) => {
                let segment = SysvSegment::create(*key, len_bytes)?;
                return Ok(MemorySegment { object: Object::Sysv(segment), len_bytes });
            }
            SegmentSource::Memfd => memfd_create("ipcmark-segment", MemfdFlags::CLOEXEC)?,
            SegmentSource::Posix(name) => {
                let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
                shm::open(name.as_str(), flags, Mode::RUSR | Mode::WUSR)?
            }
        };
        ftruncate(&fd, len_bytes as u64)?;
        Ok(MemorySegment { object: Object::File(fd), len_bytes })
    }

    /// Removes `segment`, which this source made, and its name: close(2), shm_unlink(3), shmctl(2).
    #[inline(always)]
    pub fn remove(&self, segment: MemorySegment) -> Result<(), Errno> {
        match (segment.object, self) {
            (Object::Sysv(segment), _) => segment.remove(),
            (Object::File(fd), SegmentSource::Posix(name)) => {
                drop(fd);
                shm::unlink(name.as_str())
            }
            (Object::File(_), _) => Ok(()),
        }
    }
}

impl MemorySegment {
    /// Reserves all of its pages, or fails if there is no room for them (fallocate(2)). Without that, touching a page
    /// for which there is no room would end the process by `SIGBUS`. The kernel reserves System V memory when it
    /// makes it.
    pub fn reserve(&self) -> Result<(), Failure> {
        match &self.object {
            Object::Sysv(_) => Ok(()),
            Object::File(fd) => fallocate(fd, FallocateFlags::empty(), 0, self.len_bytes as u64)
                .or_fail("fallocate", format!("{} bytes of shared memory", self.len_bytes)),
        }
    }

    /// Attaches it, writes one byte in every `touch_every_bytes` if that is given, and detaches it: mmap(2) and
    /// munmap(2), or shmat(2) and shmdt(2).
    #[inline(always)]
    pub fn attach_and_detach(&mut self, touch_every_bytes: Option<usize>) -> Result<(), Errno> {
        let base = self.attach()?;
        // SAFETY: it was attached for this function, which alone has this segment, and which does not use it
        // afterwards.
        unsafe {
            touch(base, self.len_bytes, touch_every_bytes);
            match self.object {
                Object::File(_) => munmap(base.as_ptr().cast(), self.len_bytes),
                Object::Sysv(_) => sysv_segment::detach(base),
            }
        }
    }

    /// Attaches it for as long as the returned value lives.
    pub fn into_mapped(self) -> Result<MappedMemory, Errno> {
        let base = self.attach()?;
        let is_sysv = matches!(self.object, Object::Sysv(_));
        Ok(MappedMemory { base, len_bytes: self.len_bytes, is_sysv })
    }

    #[inline(always)]
    fn attach(&self) -> Result<NonNull<u8>, Errno> {
        let fd = match &self.object {
            Object::Sysv(segment) => return segment.attach(),
            Object::File(fd) => fd,
        };
        let (address, protection) = (std::ptr::null_mut(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: the kernel chooses the address, so that no existing mapping is touched.
        let base = unsafe { mmap(address, self.len_bytes, protection, MapFlags::SHARED, fd, 0) }?;
        NonNull::new(base.cast()).ok_or(Errno::FAULT)
    }
}

/// Memory of one process, aligned to a page. Unmapped or detached on drop.
#[derive(Debug)]
pub struct MappedMemory {
    base: NonNull<u8>,
    len_bytes: usize,
    is_sysv: bool,
}

impl MappedMemory {
    /// Private memory (mmap(2)).
    pub fn private(len_bytes: usize) -> Result<Self, Errno> {
        Ok(Self { base: map(len_bytes)?, len_bytes, is_sysv: false })
    }

    /// Writes `byte` to every byte, as memset(3) does.
    #[inline(always)]
    pub fn fill(&mut self, byte: u8) {
        // SAFETY: attached as long as `self` lives. Nobody else has it: whoever makes a segment is the first to have
        // it, and `into_mapped` takes the segment away.
        unsafe { self.base.write_bytes(byte, self.len_bytes) };
    }

    /// Reads every byte, and returns the exclusive-or of all.
    #[inline(always)]
    pub fn fold(&self) -> u8 {
        // SAFETY: as in `fill`. The kernel made all of it zeroes at first.
        let bytes = unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len_bytes) };
        // There is no early exit, so that it reads as fast as the memory allows.
        bytes.iter().fold(0, |all, byte| all ^ byte)
    }
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        // SAFETY: this value attached these bytes, and no reference into them outlives it.
        let detached = unsafe {
            if self.is_sysv {
                sysv_segment::detach(self.base)
            } else {
                munmap(self.base.as_ptr().cast(), self.len_bytes)
            }
        };
        debug_assert!(detached.is_ok());
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::name::ObjectName;

    /// Each source, and the name by which it can be found.
    fn sources(test: &str) -> [(SegmentSource, Option<ObjectName>); 3] {
        let key = SysvKey::hashed((std::process::id(), test));
        let name = format!("/ipcmark-test-{}-{test}", std::process::id());
        [
            (SegmentSource::Memfd, None),
            (SegmentSource::Posix(name.clone()), Some(ObjectName::PosixShm(name))),
            (SegmentSource::Sysv(key), Some(ObjectName::SysvShm(key))),
        ]
    }

    #[test]
    fn touched_pages_keep_their_bytes_until_the_next_attach() {
        for (touch_every_bytes, left) in [(None, 0), (Some(4096), 1)] {
            for (source, name) in sources("touch") {
                let mut segment = source.create(2 * 4096 + 1).unwrap();
                segment.reserve().unwrap();
                segment.attach_and_detach(touch_every_bytes).unwrap();
                let memory = segment.into_mapped().unwrap();
                name.iter().for_each(|name| name.remove().unwrap());
                // A one in each of three pages makes a one.
                assert_eq!(memory.fold(), left, "{source:?}");
            }
        }
    }

    #[test]
    fn a_name_can_be_used_again_after_removal() {
        for (source, _) in sources("remove") {
            for _ in 0..3 {
                let segment = source.create(100).unwrap();
                assert!(
                    source.create(100).is_err() || source == SegmentSource::Memfd,
                    "{source:?} was made twice"
                );
                source.remove(segment).unwrap();
            }
        }
    }

    #[test]
    fn every_byte_is_written_and_read() {
        let mut memories = vec![MappedMemory::private(1001).unwrap()];
        for (source, name) in sources("memory") {
            memories.push(source.create(1001).unwrap().into_mapped().unwrap());
            name.iter().for_each(|name| name.remove().unwrap());
        }
        for mut memory in memories {
            assert_eq!(memory.fold(), 0);
            memory.fill(0x5a);
            // The number of bytes is odd.
            assert_eq!(memory.fold(), 0x5a);
        }
    }
}
