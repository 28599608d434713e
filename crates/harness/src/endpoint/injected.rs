//! A delay in every iteration of an endpoint, inside what is timed: a number of dependent multiplications, calibrated once
//! for each endpoint, or a sleep. How long the delay is to be is for the coordinator to say.

use super::meters::{IterationLog, Watch};
use crate::clock::Clock;
use crate::protocol::orders::Orders;
use model::EndpointRole;
use rustix::thread::set_current_timer_slack;
use std::hint::black_box;
use std::num::NonZeroU64;
use std::thread::sleep;
use std::time::Duration;
use sys::Failure;
use sys::busy::multiply;

/// The delay of each iteration.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InjectedDelay {
    /// So many multiplications.
    Busy {
        /// How many.
        steps: u64,
    },
    /// So long asleep, and as long as the kernel takes to wake the thread.
    Asleep(Duration),
}

impl InjectedDelay {
    /// The delay that `orders` has for the endpoint `side`, by `clock`, on the CPU and in the thread on which this runs.
    pub(crate) fn from_orders(
        orders: &Orders,
        side: EndpointRole,
        clock: &Clock,
    ) -> Result<Option<Self>, Failure> {
        let inject = orders.case.inject.filter(|inject| inject.side == side);
        let Some((inject, ns)) = inject.zip(orders.inject_ns) else { return Ok(None) };
        if !inject.is_asleep {
            return Ok(Some(Self::busy(ns, clock)));
        }
        // The kernel may end sleeps later by this much, 50 µs at first, so as to end several at once.
        set_current_timer_slack(NonZeroU64::new(1)).map_err(|error| {
            Failure::new(
                "set the timer slack of",
                "an endpoint",
                error.to_string(),
                "give a delay without sleep:",
            )
        })?;
        Ok(Some(Self::Asleep(Duration::from_nanos(ns.round() as u64))))
    }

    /// A delay of `delay_ns` by `clock`, for the CPU on which this runs.
    fn busy(delay_ns: f64, clock: &Clock) -> Self {
        Self::Busy { steps: (delay_ns * steps_per_ns(clock)).round() as u64 }
    }

    /// Waits for `delay`, if there is one.
    ///
    /// A loop with a delay and one without are the same machine code, and what is hidden from the compiler keeps them that:
    /// compiled apart, a round trip with a delay of 1 ns differed by up to 8% from one without, either way.
    #[inline(always)]
    pub(crate) fn wait(delay: &Option<Self>) {
        match black_box(delay) {
            None => {}
            Some(Self::Busy { steps }) => multiply(*steps),
            Some(Self::Asleep(time)) => sleep(*time),
        }
    }
}

/// How many multiplications take a nanosecond: in the fastest of several tries, because nothing makes them faster than they
/// are, and much makes them slower. It takes some hundred microseconds.
pub fn steps_per_ns(clock: &Clock) -> f64 {
    const STEPS: u64 = 20_000;
    const TRIES: u32 = 25;
    let one = |_| {
        let start = clock.now();
        multiply(STEPS);
        clock.ns_between(start, clock.now())
    };
    STEPS as f64 / (0..TRIES).map(one).fold(f64::INFINITY, f64::min).max(1.0)
}

/// A [`Watch`] that delays each iteration when it has begun, if there is a delay.
pub(crate) struct Injected<'a, W> {
    pub(crate) delay: Option<InjectedDelay>,
    pub(crate) watch: &'a mut W,
}

impl<W: Watch> Watch for Injected<'_, W> {
    fn start(&mut self) {
        self.watch.start();
    }

    #[inline(always)]
    fn before(&mut self) {
        self.watch.before();
        InjectedDelay::wait(&self.delay);
    }

    #[inline(always)]
    fn after(&mut self) {
        self.watch.after();
    }

    fn log(&mut self) -> Option<&mut IterationLog> {
        self.watch.log()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::ClockSource;

    /// Whether `ratio` comes to lie in `range` within some tries: between two timings the CPU may change its speed.
    fn is_within(range: std::ops::Range<f64>, ratio: impl Fn() -> f64) {
        let seen: Vec<f64> = (0..20).map(|_| ratio()).take_while(|ratio| !range.contains(ratio)).collect();
        assert!(seen.len() < 20, "never in {range:?}: {seen:?}");
    }

    #[test]
    fn a_delay_is_as_long_as_was_asked_for() {
        let clock = Clock::new(ClockSource::MonotonicRaw);
        for delay_ns in [2_000.0, 50_000.0] {
            // The clock's own cost is in it, and interruptions only add to it.
            is_within(0.9..1.15, || {
                let delay = Some(InjectedDelay::busy(delay_ns, &clock));
                fastest_ns(500, || InjectedDelay::wait(&delay)) / delay_ns
            });
        }
    }

    /// The fastest of `tries` of `work`, in nanoseconds.
    fn fastest_ns(tries: u32, work: impl Fn()) -> f64 {
        let clock = Clock::new(ClockSource::MonotonicRaw);
        let one = |_| {
            let start = clock.now();
            work();
            clock.ns_between(start, clock.now())
        };
        (0..tries).map(one).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn twice_the_steps_take_twice_the_time_and_none_is_left_out() {
        let steps_ns = |steps| fastest_ns(200, || multiply(steps));
        is_within(1.8..2.2, || steps_ns(40_000) / steps_ns(20_000));
        // No processor multiplies faster than once a cycle, or has more than 8 cycles in a nanosecond.
        assert!(steps_ns(40_000) > 40_000.0 / 8.0);
    }

    #[test]
    fn each_iteration_is_delayed_after_it_began() {
        struct Counted(u32, u32);
        impl Watch for Counted {
            fn before(&mut self) {
                self.0 += 1;
            }
            fn after(&mut self) {
                self.1 += 1;
            }
        }
        let mut counted = Counted(0, 0);
        let mut injected = Injected { delay: Some(InjectedDelay::Busy { steps: 10 }), watch: &mut counted };
        injected.start();
        injected.before();
        injected.after();
        injected.before();
        assert!(injected.log().is_none());
        assert_eq!((counted.0, counted.1), (2, 1));
    }
}
