//! Times of `CLOCK_MONOTONIC`, which programs in the kernel read, by `CLOCK_MONOTONIC_RAW`, by which all else is stamped.
//!
//! Both run at nearly the same speed, for the first is slewed to keep the time of day. They are read together before and after, and what lies
//! between is found in proportion.

use crate::perf::now_ns;
use rustix::time::{ClockId, clock_gettime};

/// Of so many readings the narrowest is taken: an interrupt between two clocks makes one wide.
const READINGS: usize = 16;

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockReading {
    raw_ns: u64,
    monotonic_ns: u64,
    /// By how much one may be off the other: half of what lay between two readings of the first.
    error_ns: u64,
}

impl ClockReading {
    pub(crate) fn now() -> Self {
        let reading = |_| {
            let before_ns = now_ns();
            let monotonic = clock_gettime(ClockId::Monotonic);
            let error_ns = now_ns().saturating_sub(before_ns).div_ceil(2);
            Self {
                raw_ns: before_ns + error_ns,
                monotonic_ns: monotonic.tv_sec as u64 * 1_000_000_000 + monotonic.tv_nsec as u64,
                error_ns,
            }
        };
        let first = reading(0);
        (1..READINGS)
            .map(reading)
            .fold(first, |best, next| if next.error_ns < best.error_ns { next } else { best })
    }
}

/// When `monotonic_ns` was by the raw clock.
pub(crate) fn by_raw(monotonic_ns: u64, began: ClockReading, ended: ClockReading) -> u64 {
    let since = i128::from(monotonic_ns) - i128::from(began.monotonic_ns);
    let raw = i128::from(ended.raw_ns) - i128::from(began.raw_ns);
    let monotonic = i128::from(ended.monotonic_ns) - i128::from(began.monotonic_ns);
    let since = if monotonic > 0 { since * raw / monotonic } else { since };
    u64::try_from(i128::from(began.raw_ns) + since).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_two_readings_is_found_in_proportion() {
        let reading = |raw_ns, monotonic_ns| ClockReading { raw_ns, monotonic_ns, error_ns: 0 };
        let (began, ended) = (reading(1_000, 5_000), reading(3_000, 9_000));
        let converted = [5_000, 6_000, 9_000, 4_000, 10_000].map(|at_ns| by_raw(at_ns, began, ended));
        assert_eq!(converted, [1_000, 1_500, 3_000, 500, 3_500]);
        assert_eq!(by_raw(5_100, began, began), 1_100);
    }

    #[test]
    fn a_third_reading_lies_where_the_first_and_the_last_say() {
        let pause = || std::thread::sleep(std::time::Duration::from_millis(5));
        let began = ClockReading::now();
        pause();
        let between = ClockReading::now();
        pause();
        let ended = ClockReading::now();
        let off_ns = by_raw(between.monotonic_ns, began, ended).abs_diff(between.raw_ns);
        let allowed_ns = began.error_ns + between.error_ns + ended.error_ns;
        // The clocks may be slewed by 500 parts in a million, and that may change once meanwhile.
        assert!(off_ns <= allowed_ns + 5_000, "{off_ns} ns, {allowed_ns} ns allowed");
    }
}
