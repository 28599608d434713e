//! The clock of a recording: the one that programs in the kernel can read. Not that of measurements.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How long it is since [`now_ns`] said `start_ns`.
pub(super) fn since(start_ns: u64) -> Duration {
    Duration::from_nanos(now_ns().saturating_sub(start_ns))
}
