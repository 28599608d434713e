//! The atomic types of the ring as loom has them.

pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Whether loom checks every interleaving, of which there are to be few.
pub(super) const UNDER_LOOM: bool = true;

/// Another thread may run.
pub(super) fn relax() {
    loom::thread::yield_now();
}
