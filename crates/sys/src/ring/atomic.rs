//! The atomic types of the ring. In `under_loom` those of loom are in their place. Nothing else.

pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Whether loom checks every interleaving, of which there are to be few.
pub(super) const UNDER_LOOM: bool = false;

/// A pause between two polls. On x86 it also stops the processor from starting the loads of the next polls ahead of
/// time: it would have to throw them away, at a cost, when the line arrives.
#[inline(always)]
pub(super) fn relax() {
    std::hint::spin_loop();
}
