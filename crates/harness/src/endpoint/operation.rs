//! A trial of an operation: it has one endpoint, and no phases to agree on.

use super::injected::InjectedDelay;
use super::loop_error::LoopError;
use super::sample::{sample, usage_between};
use super::session::{LEAST_WARM_UP_ITERATIONS, Outcome, WARM_UP_SHARE, observed_iterations};
use crate::clock::Clock;
use crate::protocol::orders::{Orders, Sizing};
use mechanisms::{Operation, TimerKind};
use model::observation::{Observation, ProbeRequest};
use model::record::{ClockSource, Sample, TimerSample, Usage};
use std::ops::Range;
use std::time::Duration;
use sys::Errno;
use sys::usage::of_this_thread;

/// A trial of `cost`.
pub(crate) fn cost(orders: &Orders, mut operation: impl Operation) -> Result<Sample, LoopError> {
    let delay = injected(orders);
    let (iterations, warm_up_iterations) = warm_up(orders, delay, &mut operation)?;
    let (elapsed_ns, client) = timed(orders, delay, &mut operation, iterations)?;
    Ok(Sample {
        trial_iterations: warm_up_iterations + iterations,
        ..sample(iterations, elapsed_ns, client, None)
    })
}

/// A trial of `cost` with a probe: its sample is of the observed iterations.
pub(crate) fn observed_cost(
    orders: &Orders,
    mut operation: impl Operation,
    request: &ProbeRequest,
) -> Outcome<(Sample, Option<Observation>)> {
    let delay = injected(orders);
    let (iterations, _) = warm_up(orders, delay, &mut operation)?;
    let iterations = observed_iterations(iterations, orders.size, request);
    let clock = Clock::new(orders.clock);
    let mut probe = observe::attach(request, 0..0)?;
    probe.begin()?;
    let start = clock.now();
    repeat(&mut operation, 0..iterations, delay)?;
    let elapsed_ns = clock.ns_between(start, clock.now());
    probe.end()?;
    let client = probe.observation()?;
    let observation =
        Observation { iterations, elapsed_ns, iteration_ends_ns: Vec::new(), client, server: None };
    Ok((sample(iterations, elapsed_ns, Usage::default(), None), Some(observation)))
}

/// Repeats the operation until it is warm. Returns how many iterations the trial is to have, and how many there were.
fn warm_up(
    orders: &Orders,
    delay: Option<InjectedDelay>,
    operation: &mut impl Operation,
) -> Result<(u64, u64), LoopError> {
    match orders.size {
        Sizing::Iterations(iterations) => {
            timed(orders, delay, operation, iterations).map(|_| (iterations, iterations))
        }
        Sizing::Slice { slice_ns, .. } => {
            let enough_ns = slice_ns as f64 * WARM_UP_SHARE;
            let (mut iterations, mut trial_iterations) = (LEAST_WARM_UP_ITERATIONS, 0);
            loop {
                let (elapsed_ns, _) = timed(orders, delay, operation, iterations)?;
                trial_iterations += iterations;
                if elapsed_ns >= enough_ns {
                    let fitting = iterations as f64 * slice_ns as f64 / elapsed_ns;
                    return Ok(((fitting as u64).max(1), trial_iterations));
                }
                iterations *= 2;
            }
        }
    }
}

/// How long `iterations` took, and what they used.
fn timed(
    orders: &Orders,
    delay: Option<InjectedDelay>,
    operation: &mut impl Operation,
    iterations: u64,
) -> Result<(f64, Usage), LoopError> {
    let clock = Clock::new(orders.clock);
    let before = of_this_thread();
    let start = clock.now();
    repeat(operation, 0..iterations, delay)?;
    let end = clock.now();
    Ok((clock.ns_between(start, end), usage_between(before, of_this_thread())))
}

/// What is injected in each iteration, if anything is.
fn injected(orders: &Orders) -> Option<InjectedDelay> {
    orders.inject_ns.map(|ns| InjectedDelay::new(ns, &Clock::new(orders.clock)))
}

/// The iterations of `cost`, with `delay` in each. Without one they are the same code as without the parameter.
#[inline(always)]
fn repeat(
    operation: &mut impl Operation,
    iterations: Range<u64>,
    delay: Option<InjectedDelay>,
) -> Result<(), LoopError> {
    let mut call = || operation.call().map_err(|errno| LoopError::Call { name: "call", errno });
    match delay {
        None => {
            for _ in iterations {
                call()?;
            }
        }
        Some(delay) => {
            for _ in iterations {
                delay.wait();
                call()?;
            }
        }
    }
    Ok(())
}

/// How long the intervals of `accuracy` are: about as long as in the study that it comes from (Wisconsin, table 2).
const INTERVAL: Duration = Duration::from_millis(1);
/// The fewest intervals of a trial: of fewer the deviation says little.
const LEAST_INTERVALS: u64 = 10;

/// A trial of `accuracy`: a timer is read before and after intervals of a known length.
///
/// The process sleeps for each interval, as in the study, where the timer goes on meanwhile; where the timer counts CPU time,
/// the process works for the interval by the run's clock.
pub(crate) fn accuracy(orders: &Orders, mut operation: impl Operation) -> Result<Sample, LoopError> {
    let clock = Clock::new(orders.clock);
    let timer =
        operation.timer().ok_or(LoopError::Call { name: "read the timer", errno: Errno::OPNOTSUPP })?;
    let interval_ns = INTERVAL.as_nanos() as f64;
    let intervals = match orders.size {
        Sizing::Iterations(iterations) => iterations,
        Sizing::Slice { slice_ns, .. } => (slice_ns as f64 / interval_ns) as u64,
    };
    let intervals = intervals.max(LEAST_INTERVALS);
    let resolution_ticks = resolution(&mut operation, &clock)?;

    let before = of_this_thread();
    let (mut ticks, mut clock_ns) = (Vec::new(), Vec::new());
    for _ in 0..intervals {
        let start = clock.now();
        let first = read(&mut operation)?;
        if timer.counts_sleep {
            std::thread::sleep(INTERVAL);
        } else {
            clock.work_for(INTERVAL);
        }
        let last = read(&mut operation)?;
        clock_ns.push(clock.ns_between(start, clock.now()));
        ticks.push(last.wrapping_sub(first) as f64);
    }
    let usage = usage_between(before, of_this_thread());

    let tick_ns = tick_ns(timer, orders.clock, ticks.iter().sum(), clock_ns.iter().sum());
    let said_ns: Vec<f64> = ticks.iter().map(|ticks| ticks * tick_ns).collect();
    let timer = TimerSample {
        error_ns: mean(&said_ns) - interval_ns,
        deviation_ns: deviation(&said_ns),
        off_clock_ns: mean(&said_ns) - mean(&clock_ns),
        resolution_ns: resolution_ticks * tick_ns,
    };
    Ok(Sample { timer: Some(timer), ..sample(intervals, clock_ns.iter().sum(), usage, None) })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation of `values` as a sample, of at least two.
fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

fn read(operation: &mut impl Operation) -> Result<u64, LoopError> {
    operation.read().map_err(|errno| LoopError::Call { name: "read the timer", errno })
}

/// The smallest step between two readings in a row that differ, in ticks; 0 when none differed for a while.
fn resolution(operation: &mut impl Operation, clock: &Clock) -> Result<f64, LoopError> {
    const STEPS: usize = 1000;
    const LONGEST_NS: f64 = 50e6;
    let start = clock.now();
    let mut last = read(operation)?;
    let (mut smallest, mut steps) = (u64::MAX, 0);
    while steps < STEPS && clock.ns_between(start, clock.now()) < LONGEST_NS {
        let now = read(operation)?;
        if now != last {
            smallest = smallest.min(now.wrapping_sub(last));
            steps += 1;
        }
        last = now;
    }
    Ok(if steps == 0 { 0.0 } else { smallest as f64 })
}

/// A tick of `timer` in nanoseconds. Where the timer is the counter that is the run's clock, its tick is known. Where its tick
/// is not known, it is computed from these very intervals by the run's clock: then the timer's error against that clock is 0.
fn tick_ns(timer: TimerKind, clock: ClockSource, ticks: f64, clock_ns: f64) -> f64 {
    match (timer.tick_ns, clock) {
        (Some(tick_ns), _) => tick_ns,
        (None, ClockSource::Tsc { ns_per_tick }) => ns_per_tick,
        // A counter that stands still has no length of a tick, and says 0 of every interval.
        (None, ClockSource::MonotonicRaw) if ticks == 0.0 => 0.0,
        (None, ClockSource::MonotonicRaw) => clock_ns / ticks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mechanisms::TrialContext;
    use model::card::Card;
    use model::floor;
    use sys::Failure;

    /// A timer that runs at twice the speed of the run's clock, in steps of 5 us.
    struct Fast(Clock, crate::clock::Stamp);

    impl Operation for Fast {
        const CARD: Card = Card::OPERATION;

        fn prepare(_: &TrialContext<'_>) -> Result<Self, Failure> {
            let clock = Clock::new(ClockSource::MonotonicRaw);
            Ok(Self(clock, clock.now()))
        }

        fn call(&mut self) -> Result<(), Errno> {
            Ok(())
        }

        fn timer(&self) -> Option<TimerKind> {
            Some(TimerKind { tick_ns: Some(5000.0), counts_sleep: true })
        }

        fn read(&mut self) -> Result<u64, Errno> {
            Ok((2.0 * self.0.ns_between(self.1, self.0.now()) / 5000.0) as u64)
        }
    }

    #[test]
    fn a_counter_that_stands_still_says_nothing_instead_of_infinity() {
        let counter = TimerKind { tick_ns: None, counts_sleep: true };
        assert_eq!(tick_ns(counter, ClockSource::MonotonicRaw, 0.0, 1e6), 0.0);
        assert_eq!(tick_ns(counter, ClockSource::MonotonicRaw, 4e6, 1e6), 0.25);
        assert_eq!(tick_ns(counter, ClockSource::Tsc { ns_per_tick: 0.5 }, 0.0, 1e6), 0.5);
    }

    #[test]
    fn a_timer_that_runs_fast_and_in_steps_is_found_out() {
        let clock = Clock::new(ClockSource::MonotonicRaw);
        let orders = Orders {
            case: floor::operation("fast", 0),
            role: crate::protocol::orders::Role::Alone,
            clock: ClockSource::MonotonicRaw,
            directory: std::env::temp_dir(),
            number: 0,
            pair: 0,
            size: Sizing::Iterations(20),
            check: false,
            inject_ns: None,
            probe: None,
        };
        let sample = accuracy(&orders, Fast(clock, clock.now())).unwrap();
        let timer = sample.timer.unwrap();
        let slept_ns = sample.iteration_ns();
        assert_eq!((sample.iterations, timer.resolution_ns), (20, 5000.0));
        // Twice what was slept, less what was asked for; each reading is off by up to a step.
        assert!((timer.off_clock_ns - slept_ns).abs() < 10_000.0, "{timer:?} {slept_ns}");
        assert!((timer.error_ns - (2.0 * slept_ns - 1e6)).abs() < 10_000.0, "{timer:?} {slept_ns}");
        assert!(timer.deviation_ns > 0.0);
    }
}
