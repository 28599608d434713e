//! Whether freed memory is returned to the kernel. It is a program of its own, because other tests would use memory meanwhile.
#![cfg(target_env = "gnu")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

use std::fs::read_to_string;

/// What this process has in memory.
fn resident_kib() -> u64 {
    let status = read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    size.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

/// Blocks that lie in the heap, 6.25 MiB together.
fn use_blocks() {
    drop((0..64).map(|_| vec![1_u8; 100 << 10]).collect::<Vec<_>>());
}

#[test]
fn memory_that_was_used_once_is_returned() {
    // Such a block has a mapping of its own. When it is freed, the C library begins to keep twice as much.
    let of_own = || drop(std::hint::black_box(vec![1_u8; 8 << 20]));
    let before = resident_kib();
    of_own();
    use_blocks();
    let kept = resident_kib() - before;
    assert!(kept > 4096, "by itself the allocator keeps what was freed: {kept} KiB");
    sys::allocator::keep_little();
    use_blocks();
    let kept = resident_kib().saturating_sub(before);
    assert!(kept < 1024, "{kept} KiB are kept");
}
