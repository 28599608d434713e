//! A busy wait of known length, to inject a known delay. It measures nothing.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Burns the processor for `delay` by `CLOCK_MONOTONIC`, which is not the clock that times turns:
/// a delay that is recovered shows that the two agree. See clock_gettime(2).
#[inline]
pub fn burn(delay: Duration) {
    let end_ns = now_ns() + delay.as_nanos();
    while now_ns() < end_ns {
        std::hint::spin_loop();
    }
}

fn now_ns() -> u128 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u128 * 1_000_000_000 + now.tv_nsec as u128
}
