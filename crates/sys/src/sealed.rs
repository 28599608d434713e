//! A memfd that nobody can change any more, mapped for reading. Memory that two processes write is in
//! `shared_memory`.

use crate::Errno;
use rustix::fd::AsFd;
use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ptr::NonNull;

/// The seals with which the bytes of a file can never change again (fcntl(2), F_ADD_SEALS).
pub const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);

/// The bytes of a sealed file. Unmapped on drop.
#[derive(Debug)]
pub struct SealedMemory {
    base: NonNull<u8>,
    len_bytes: usize,
}

impl SealedMemory {
    /// Maps the whole of `fd`. `Errno::BADMSG` when the file is empty or not sealed.
    #[inline(always)]
    pub fn map(fd: impl AsFd) -> Result<Self, Errno> {
        let len_bytes = usize::try_from(fstat(&fd)?.st_size).map_err(|_| Errno::BADMSG)?;
        if len_bytes == 0 || !fcntl_get_seals(&fd)?.contains(SEALS) {
            return Err(Errno::BADMSG);
        }
        // SAFETY: the kernel chooses the address, so that no existing mapping is touched. The mapping is private,
        // because older kernels refuse a shared one of a file that is sealed against writing.
        let base =
            unsafe { mmap(std::ptr::null_mut(), len_bytes, ProtFlags::READ, MapFlags::PRIVATE, fd, 0) }?;
        NonNull::new(base.cast()).map(|base| Self { base, len_bytes }).ok_or(Errno::INVAL)
    }

    /// The bytes of the file.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self` lives, and sealed: nobody can write or truncate the file.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len_bytes) }
    }
}

impl Drop for SealedMemory {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this value mapped these bytes, and no reference into them outlives it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len_bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};
    use rustix::io::write;

    #[test]
    fn only_a_file_that_cannot_change_is_mapped() {
        let file = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        assert_eq!(SealedMemory::map(&file).unwrap_err(), Errno::BADMSG);
        assert_eq!(write(&file, b"fixed"), Ok(5));
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        assert_eq!(SealedMemory::map(&file).unwrap_err(), Errno::BADMSG);
        fcntl_add_seals(&file, SEALS).unwrap();
        assert_eq!(SealedMemory::map(&file).unwrap().bytes(), b"fixed");
        assert_eq!(write(&file, b"x"), Err(Errno::PERM));
    }
}
