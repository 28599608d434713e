//! The atomic types of the ring: those of the standard library, or loom's when it checks the protocol. Nothing else.

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A pause between two polls. On x86 it also stops the processor from starting the loads of the next polls ahead of
/// time: it would have to throw them away, at a cost, when the line arrives.
#[inline(always)]
pub(super) fn relax() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}
