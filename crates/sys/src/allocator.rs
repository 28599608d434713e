//! The C library's allocator: how much freed memory it keeps instead of returning it to the kernel. What it allocates is not
//! its concern.

/// Beyond this, free memory at the end of the heap is returned to the kernel: what glibc starts with.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: libc::c_int = 128 * 1024;

/// Keeps glibc from raising these 128 KiB by itself, to twice the largest block that was freed (mallopt(3), `M_TRIM_THRESHOLD`). A process that
/// mostly sleeps would keep most of what it ever used. Other allocators return memory anyway.
pub fn keep_little() {
    // SAFETY: mallopt takes two numbers and touches nothing but the allocator's own parameters, which it locks. A number that it does not
    // take leaves everything as it was.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
    }
}
