//! Waits of a given length. They read the time for that alone, and report it to nobody.

use crate::Errno;
use rustix::io::retry_on_intr;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// Spins for `delay` by `CLOCK_MONOTONIC` (clock_gettime(2)). That is not the clock that times iterations: when the
/// measured time contains the delay, the two clocks agree.
#[inline]
pub fn burn(delay: Duration) {
    let end_ns = now_ns() + delay.as_nanos();
    while now_ns() < end_ns {
        std::hint::spin_loop();
    }
}

/// Sleeps until the time that is now plus `delay` (clock_nanosleep(2), `TIMER_ABSTIME`).
#[inline(always)]
pub fn sleep_absolute(delay: Duration) -> Result<(), Errno> {
    const SECOND_NS: u128 = 1_000_000_000;
    let end_ns = now_ns() + delay.as_nanos();
    let end = Timespec { tv_sec: (end_ns / SECOND_NS) as i64, tv_nsec: (end_ns % SECOND_NS) as i64 };
    retry_on_intr(|| clock_nanosleep_absolute(ClockId::Monotonic, &end))
}

#[inline]
fn now_ns() -> u128 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u128 * 1_000_000_000 + now.tv_nsec as u128
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn no_wait_is_shorter_than_its_delay() {
        let delay = Duration::from_micros(300);
        for _ in 0..20 {
            let start_ns = now_ns();
            sleep_absolute(delay).unwrap();
            let slept_ns = now_ns();
            burn(delay);
            let burned_ns = now_ns();
            assert!(slept_ns - start_ns >= delay.as_nanos() && burned_ns - slept_ns >= delay.as_nanos());
        }
    }
}
