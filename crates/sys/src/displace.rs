//! Code and memory that a program goes through between two messages, so that its caches hold something else afterwards. It
//! measures nothing.

use std::cell::RefCell;

/// The code that is run, and the memory that is written: each half of a second-level cache of 1 MiB.
const CODE_LINES: usize = 8192;
const DATA_BYTES: usize = 512 * 1024;
const LINE_BYTES: usize = 64;

thread_local! {
    /// Each thread has memory of its own, which it keeps: to give it back to the kernel after each slice would have RCU at work in the
    /// next ones, which keeps CPUs from stopping their tick.
    static DATA: RefCell<Vec<u8>> = RefCell::new(vec![1; DATA_BYTES]);
}

/// Runs 512 KiB of code, where the processor is one for which there is some, and writes to each line of 512 KiB of memory.
///
/// It takes some ten microseconds, and longer the first time.
pub fn fill_caches() {
    run_code();
    DATA.with_borrow_mut(|data| {
        for byte in data.iter_mut().step_by(LINE_BYTES) {
            *byte = std::hint::black_box(byte.wrapping_add(1));
        }
    });
}

/// Jumps from each of [`CODE_LINES`] lines to the next.
#[inline(never)]
fn run_code() {
    // SAFETY: it jumps within itself, and touches neither memory nor registers.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        std::arch::asm!(
            ".rept {lines}",
            "jmp 2f",
            ".p2align 6",
            "2:",
            ".endr",
            lines = const CODE_LINES,
            options(nomem, nostack, preserves_flags)
        );
    }
    // SAFETY: as above.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    unsafe {
        std::arch::asm!(
            ".rept {lines}",
            "b 2f",
            ".p2align 6",
            "2:",
            ".endr",
            lines = const CODE_LINES,
            options(nomem, nostack, preserves_flags)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_memory_is_written_each_time() {
        fill_caches();
        fill_caches();
        let written =
            DATA.with_borrow(|data| data.iter().step_by(LINE_BYTES).filter(|byte| **byte == 3).count());
        assert_eq!(written, DATA_BYTES / LINE_BYTES);
    }
}
