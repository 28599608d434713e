//! What the protocol needs of memory. The real one is in `mapping`; tests have others.

use super::atomic::{AtomicU32, AtomicU64};

/// Memory that both endpoints share, zero at first.
///
/// Offsets count from its beginning. Words and flags are at the beginnings of lines; a second word may follow 8 bytes
/// above.
pub(super) trait Memory {
    /// The word at `at`.
    ///
    /// # Safety
    ///
    /// `at` is a multiple of 8 and inside.
    unsafe fn word(&self, at: usize) -> &AtomicU64;

    /// The flag at `at`, which is 0 or 1 and which an endpoint can sleep on.
    ///
    /// # Safety
    ///
    /// `at` is a multiple of 4 and inside.
    unsafe fn flag(&self, at: usize) -> &AtomicU32;

    /// Copies `from` to `at`.
    ///
    /// # Safety
    ///
    /// All bytes are inside, and nobody else accesses them at the same time.
    unsafe fn write(&self, at: usize, from: &[u8]);

    /// Copies the bytes at `at` to `into`.
    ///
    /// # Safety
    ///
    /// All bytes are inside, and nobody writes them at the same time.
    unsafe fn read(&self, at: usize, into: &mut [u8]);

    /// Writes into each line that begins within the `length_bytes` at `at`.
    ///
    /// # Safety
    ///
    /// As for [`write`](Self::write).
    unsafe fn dirty_lines(&self, at: usize, length_bytes: usize);

    /// Asks for the lines of the `length_bytes` at `at`, to be read and then written. It may do nothing.
    ///
    /// # Safety
    ///
    /// All bytes are inside.
    unsafe fn fetch_lines(&self, at: usize, length_bytes: usize);

    /// Sleeps while the flag at `at` is 1. May return early, and without a reason.
    ///
    /// # Safety
    ///
    /// As for [`flag`](Self::flag).
    unsafe fn sleep(&self, at: usize);

    /// Wakes whoever sleeps on the flag at `at`.
    ///
    /// # Safety
    ///
    /// As for [`flag`](Self::flag).
    unsafe fn wake(&self, at: usize);
}
