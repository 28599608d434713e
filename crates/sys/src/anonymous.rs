//! Private memory that is mapped, touched and unmapped.

use crate::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Maps `size_bytes` of private memory, writes one byte to each page of `touch_every_bytes` if that is given, and
/// unmaps it (mmap(2)).
#[inline(always)]
pub fn map_and_unmap(size_bytes: usize, touch_every_bytes: Option<usize>) -> Result<(), Errno> {
    // SAFETY: the kernel chooses the address, so that no existing mapping is touched; the bytes written lie inside;
    // the mapping is this function's own and nothing refers to it when it is unmapped.
    unsafe {
        let base = mmap_anonymous(
            std::ptr::null_mut(),
            size_bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )?;
        for at in touch_every_bytes.into_iter().flat_map(|step| (0..size_bytes).step_by(step)) {
            base.cast::<u8>().add(at).write_volatile(1);
        }
        munmap(base, size_bytes)
    }
}
