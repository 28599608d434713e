//! The only clock. Everything that is timed is timed here; nothing else reads one.

use model::record::{ClockRecord, ClockSource};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock reading, in ticks of the clock that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp(u64);

impl Stamp {
    /// In ticks; of `CLOCK_MONOTONIC_RAW`, nanoseconds.
    pub fn ticks(self) -> u64 {
        self.0
    }

    /// The reading that is due `ticks` after this one.
    #[inline(always)]
    pub fn after(self, ticks: u64) -> Self {
        Self(self.0.saturating_add(ticks))
    }

    /// The reading of the same clock that has so many ticks.
    pub(crate) fn at_ticks(self, ticks: u64) -> Self {
        Self(ticks)
    }
}

/// The clock of a run. Readings are comparable within one thread; between processes to within the little by which the
/// counters of two CPUs differ.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    source: ClockSource,
}

impl Clock {
    /// The clock over `source`, which the coordinator chose.
    pub fn new(source: ClockSource) -> Self {
        Self { source }
    }

    /// The one that every endpoint has without calibration, `CLOCK_MONOTONIC_RAW`.
    pub(crate) const fn raw() -> Self {
        Self { source: ClockSource::MonotonicRaw }
    }

    /// Reads the clock, after everything in front of it.
    #[inline(always)]
    pub fn now(&self) -> Stamp {
        Stamp(match self.source {
            ClockSource::Tsc { .. } => sys::tsc::read(),
            ClockSource::MonotonicRaw => raw_ns(),
        })
    }

    /// Works, awake, for `interval`.
    pub fn work_for(&self, interval: Duration) {
        let start = self.now();
        while self.ns_between(start, self.now()) < interval.as_nanos() as f64 {
            std::hint::spin_loop();
        }
    }

    /// Nanoseconds from `start` to `end`. A counter that ran backwards counts as no time.
    #[inline]
    pub fn ns_between(&self, start: Stamp, end: Stamp) -> f64 {
        self.ns(end.0.saturating_sub(start.0))
    }

    /// Ticks from `start` to `end`, to be converted off the measured path by [`Self::ns`].
    #[inline(always)]
    pub fn ticks_between(start: Stamp, end: Stamp) -> u64 {
        end.0.saturating_sub(start.0)
    }

    /// How many ticks a nanosecond has.
    pub fn ticks_per_ns(&self) -> f64 {
        1.0 / self.ns(1)
    }

    /// `ns` nanoseconds in ticks.
    pub fn ticks(&self, ns: f64) -> u64 {
        (ns * self.ticks_per_ns()) as u64
    }

    /// `ticks` in nanoseconds.
    pub fn ns(&self, ticks: u64) -> f64 {
        match self.source {
            ClockSource::Tsc { ns_per_tick } => ticks as f64 * ns_per_tick,
            ClockSource::MonotonicRaw => ticks as f64,
        }
    }
}

/// `CLOCK_MONOTONIC_RAW`, which no time daemon slews (clock_gettime(2)).
fn raw_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicRaw);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// One instant on both clocks.
#[derive(Debug, Clone, Copy)]
struct Pairing {
    ticks: u64,
    raw_ns: u64,
}

impl Pairing {
    /// The pair of readings of several tries whose bracket was tightest.
    fn take() -> Self {
        let tries = (0..32).map(|_| {
            let before = sys::tsc::read();
            let raw_ns = raw_ns();
            let after = sys::tsc::read();
            (after - before, Self { ticks: before.midpoint(after), raw_ns })
        });
        // The range is not empty, so that there is always a tightest one.
        tries.min_by_key(|(bracket, _)| *bracket).map_or(Self { ticks: 0, raw_ns: 0 }, |(_, pairing)| pairing)
    }

    fn ns_per_tick_until(self, end: Pairing) -> f64 {
        (end.raw_ns - self.raw_ns) as f64 / (end.ticks - self.ticks) as f64
    }
}

/// The clock of a run with what is known of it, and where its calibration began.
#[derive(Debug)]
pub struct Calibration {
    /// The clock.
    pub clock: Clock,
    /// What the results say of it.
    pub record: ClockRecord,
    start: Option<Pairing>,
}

impl Calibration {
    /// Chooses the clock of this host and measures its rate, precision and cost in some 20 ms.
    ///
    /// The counter is sound where the processor calls it invariant and the kernel, which watches
    /// it against other clocks and compares it between CPUs, keeps time by it.
    pub fn choose(root: &Path) -> Self {
        let clocksource = std::fs::read_to_string(
            root.join("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        );
        let doubt = match clocksource {
            _ if !sys::tsc::is_invariant() => {
                Some("the processor has no invariant time-stamp counter".to_owned())
            }
            Ok(name) if name.trim() == "tsc" => None,
            Ok(name) => {
                Some(format!("the kernel keeps time by {}, so that it may distrust the counter", name.trim()))
            }
            Err(error) => Some(format!("the kernel does not say by which clock it keeps time: {error}")),
        };
        match doubt {
            None => Self::of_tsc(),
            Some(reason) => Self::with(ClockSource::MonotonicRaw, reason, None),
        }
    }

    fn of_tsc() -> Self {
        const BASELINE: Duration = Duration::from_millis(20);
        let start = Pairing::take();
        std::thread::sleep(BASELINE);
        let ns_per_tick = start.ns_per_tick_until(Pairing::take());
        let reason = "the counter is invariant and the kernel keeps time by it".to_owned();
        Self::with(ClockSource::Tsc { ns_per_tick }, reason, Some(start))
    }

    fn with(source: ClockSource, reason: String, start: Option<Pairing>) -> Self {
        let clock = Clock::new(source);
        let (precision_ns, cost_ns) = precision_and_cost(&clock);
        Self { clock, record: ClockRecord { source, reason, precision_ns, cost_ns }, start }
    }

    /// How far the clock's rate over the whole run so far is from the rate in use, as a fraction.
    pub fn drift(&self) -> f64 {
        match (self.start, self.clock.source) {
            (Some(start), ClockSource::Tsc { ns_per_tick }) => {
                start.ns_per_tick_until(Pairing::take()) / ns_per_tick - 1.0
            }
            _ => 0.0,
        }
    }
}

/// The smallest step between readings that differ, and the mean cost of one, both in nanoseconds.
fn precision_and_cost(clock: &Clock) -> (f64, f64) {
    const READINGS: usize = 20_000;
    let start = clock.now();
    let mut last = start;
    let mut smallest = u64::MAX;
    for _ in 0..READINGS {
        let now = clock.now();
        match Clock::ticks_between(last, now) {
            0 => {}
            step => smallest = smallest.min(step),
        }
        last = now;
    }
    (clock.ns(smallest), clock.ns_between(start, last) / READINGS as f64)
}

/// The time of day as RFC 3339 has it, for the results to say when they were measured. Nothing is timed by it.
pub fn wall_clock() -> String {
    moment(SystemTime::now())
}

/// `at` as RFC 3339 has it, if it has a form of it: a clock that was never set may be in any year.
fn moment(at: SystemTime) -> String {
    /// The first second of the year 10,000.
    const END_S: u64 = 253_402_300_800;
    match at.duration_since(UNIX_EPOCH) {
        Ok(since) if since.as_secs() < END_S => humantime::format_rfc3339(at).to_string(),
        Ok(since) => format!("{} s after 1970, by the clock of this host", since.as_secs()),
        Err(before) => format!("{} s before 1970, by the clock of this host", before.duration().as_secs()),
    }
}

/// A deadline or a budget of the coordinator, by the system's monotonic clock. No result comes from it.
#[derive(Debug, Clone, Copy)]
pub struct Timer {
    start: Instant,
}

impl Timer {
    /// A timer that starts now.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The time that is left of `limit`.
    pub fn left_of(&self, limit: Duration) -> Duration {
        limit.saturating_sub(self.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_TICKS_A_NS: ClockSource = ClockSource::Tsc { ns_per_tick: 0.5 };

    #[test]
    fn ticks_and_nanoseconds_are_converted_by_the_rate_of_the_clock() {
        let counter = Clock::new(TWO_TICKS_A_NS);
        assert_eq!((counter.ns(10), counter.ticks(10.0), counter.ticks_per_ns()), (5.0, 20, 2.0));
        let raw = Clock::new(ClockSource::MonotonicRaw);
        assert_eq!((raw.ns(10), raw.ticks(10.0), raw.ticks_per_ns()), (10.0, 10, 1.0));
    }

    #[test]
    fn a_counter_that_runs_backwards_counts_as_no_time() {
        let (early, late) = (Stamp(100), Stamp(100).after(40));
        // What is due after the last reading that there can be is due then.
        assert_eq!(early.after(u64::MAX).ticks(), u64::MAX);
        assert_eq!(Clock::ticks_between(early, late), 40);
        assert_eq!(Clock::ticks_between(late, early), 0);
        let clock = Clock::new(TWO_TICKS_A_NS);
        assert_eq!((clock.ns_between(early, late), clock.ns_between(late, early)), (20.0, 0.0));
    }

    #[test]
    fn readings_ascend_and_work_takes_at_least_its_time() {
        let clock = Clock::new(ClockSource::MonotonicRaw);
        let start = clock.now();
        clock.work_for(Duration::from_millis(1));
        let end = clock.now();
        assert!(end > start && clock.ns_between(start, end) >= 1e6);
    }

    #[test]
    fn the_rate_of_a_counter_is_its_ticks_over_the_time_that_passed() {
        let start = Pairing { ticks: 1000, raw_ns: 50 };
        assert_eq!(start.ns_per_tick_until(Pairing { ticks: 5000, raw_ns: 2050 }), 0.5);
    }

    #[test]
    fn a_host_that_names_no_clock_source_is_timed_by_the_kernel_and_says_why() {
        let root = tempfile::tempdir().unwrap();
        let calibration = Calibration::choose(root.path());
        assert_eq!(calibration.record.source, ClockSource::MonotonicRaw);
        assert!(!calibration.record.reason.is_empty());
        assert!(calibration.record.precision_ns > 0.0 && calibration.record.cost_ns > 0.0);
        assert_eq!(calibration.drift(), 0.0);
    }

    #[test]
    fn a_clock_in_any_year_is_told() {
        let at = |s: u64| UNIX_EPOCH + Duration::from_secs(s);
        assert_eq!(moment(at(1_735_689_600)), "2025-01-01T00:00:00Z");
        assert_eq!(moment(at(253_402_300_799)), "9999-12-31T23:59:59Z");
        assert_eq!(moment(at(253_402_300_800)), "253402300800 s after 1970, by the clock of this host");
        assert_eq!(moment(UNIX_EPOCH - Duration::from_secs(5)), "5 s before 1970, by the clock of this host");
    }

    #[test]
    fn of_a_limit_that_is_over_nothing_is_left() {
        let timer = Timer::start();
        assert_eq!(timer.left_of(Duration::ZERO), Duration::ZERO);
        assert!(timer.left_of(Duration::MAX) > Duration::from_secs(1 << 40));
    }
}
