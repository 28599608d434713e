//! Private memory from the kernel: mapped, touched and unmapped as an operation, or mapped as long as a value lives.
//! It is not an allocator.

use crate::{Errno, Failure, OrFail};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ptr::NonNull;

/// Zeroed memory of this process alone, in whole pages. Unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len_bytes: usize,
}

impl Mapping {
    /// Maps `len_bytes` and populates every page, so that no page fault falls into an iteration (mmap(2)).
    pub(crate) fn new(len_bytes: usize) -> Result<Self, Failure> {
        // SAFETY: the kernel chooses the address, so that no existing mapping is touched.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                len_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::POPULATE,
            )
        };
        let base =
            base.map(|base| NonNull::new(base.cast())).or_fail("mmap", format!("{len_bytes} bytes"))?;
        let base = base.ok_or_else(|| Failure::from_errno("mmap", "memory at address 0", Errno::FAULT))?;
        Ok(Self { base, len_bytes })
    }

    /// Its first byte, aligned to a page.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Its length in bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.len_bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value mapped these bytes, and no reference into them outlives it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len_bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

/// Maps `size_bytes` of private memory, writes one byte in every `touch_every_bytes` if that is given, and unmaps it
/// (mmap(2)).
#[inline(always)]
pub fn map_and_unmap(size_bytes: usize, touch_every_bytes: Option<usize>) -> Result<(), Errno> {
    let base = map(size_bytes)?;
    // SAFETY: this function alone has these bytes, and nothing refers to them when they are unmapped.
    unsafe {
        touch(base, size_bytes, touch_every_bytes);
        munmap(base.as_ptr().cast(), size_bytes)
    }
}

/// Maps `size_bytes` of private memory (mmap(2)).
#[inline(always)]
pub(crate) fn map(size_bytes: usize) -> Result<NonNull<u8>, Errno> {
    // SAFETY: the kernel chooses the address, so that no existing mapping is touched.
    let base = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            size_bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    }?;
    NonNull::new(base.cast()).ok_or(Errno::FAULT)
}

/// Writes one byte in every `every_bytes`, if that is given.
///
/// # Safety
///
/// The `size_bytes` at `base` are mapped for writing, and nothing refers to them.
#[inline(always)]
pub(crate) unsafe fn touch(base: NonNull<u8>, size_bytes: usize, every_bytes: Option<usize>) {
    for at in every_bytes.into_iter().flat_map(|step| (0..size_bytes).step_by(step)) {
        // SAFETY: inside, by contract.
        unsafe { base.add(at).write_volatile(1) };
    }
}
