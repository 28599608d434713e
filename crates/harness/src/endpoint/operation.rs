//! A trial of an operation: it has one endpoint, and no phases to agree on.

use super::injected::InjectedDelay;
use super::loop_error::LoopError;
use super::meters::{IterationLog, Watch};
use super::phase_iterations::{LEAST_WARM_UP_ITERATIONS, growing_pieces};
use super::session::{Outcome, Session, WARM_UP_SHARE, observed_iterations};
use super::speed::SpeedReader;
use super::usage::usage_between;
use crate::clock::Clock;
use crate::protocol::message::EndpointMessage;
use crate::protocol::orders::{MOST_RECORDED_ITERATIONS, Singly, Sizing};
use crate::protocol::report::SliceReport;
use mechanisms::{Operation, TimerKind};
use model::observation::{Observation, ProbeRequest};
use model::record::{ClockSource, Sample, TimerSample, Usage};
use model::speed::{SpeedReading, SpeedReadings};
use model::{EndpointRole, Workload};
use std::ops::Range;
use std::time::Duration;
use sys::Errno;
use sys::usage::of_this_thread;

/// A trial of an operation.
pub(crate) struct OperationTrial<'a, O> {
    session: &'a Session,
    clock: Clock,
    speed: SpeedReader,
    operation: O,
    /// What is injected in each iteration, if anything is.
    delay: Option<InjectedDelay>,
    /// How many iterations there were since the last slice.
    iterations_so_far: u64,
    /// What an iteration took when it was last timed; absent until the trial is warm.
    iteration_ns: Option<f64>,
}

impl<'a, O: Operation> OperationTrial<'a, O> {
    pub(crate) fn new(session: &'a Session, operation: O) -> Outcome<Self> {
        let clock = Clock::new(session.orders.clock);
        let speed = SpeedReader::new(clock, None);
        let delay = InjectedDelay::from_orders(&session.orders, EndpointRole::Client, &clock)?;
        Ok(Self { session, clock, speed, operation, delay, iterations_so_far: 0, iteration_ns: None })
    }

    /// Measures one slice after the other until the coordinator wants no more.
    pub(crate) fn serve(mut self) -> Outcome<()> {
        self.session.tell(&EndpointMessage::Connected)?;
        while let Some(orders) = self.session.next_slice()? {
            let before = self.session.elsewhere();
            let report = match (self.session.workload(), &self.session.orders.probe) {
                (Workload::Accuracy, _) => SliceReport::from_sample(self.accuracy(orders.size)?),
                (_, None) if orders.singly == Singly::Throughout => self.logged_cost(orders.size)?,
                (_, None) => SliceReport::from_sample(self.cost(orders.size)?),
                (_, Some(request)) => self.observed_cost(orders.size, request)?,
            };
            let elsewhere = before.or(self.session.elsewhere());
            self.session.tell(&EndpointMessage::Slice(Box::new(SliceReport { elsewhere, ..report })))?;
        }
        Ok(())
    }

    /// A slice of `cost`.
    fn cost(&mut self, size: Sizing) -> Outcome<Sample> {
        let iterations = self.iterations(size)?;
        let before_ns = self.speed.cpu_ns();
        let (elapsed_ns, client) = self.time(iterations)?;
        let client_speed = SpeedReading { before_ns, after_ns: self.speed.cpu_ns() };
        let speed = SpeedReadings { client: client_speed, server: None, pair: None };
        Ok(Sample {
            trial_iterations: std::mem::take(&mut self.iterations_so_far),
            speed: self.session.reads_speed().then_some(speed),
            ..Sample::new(iterations, elapsed_ns, client, None)
        })
    }

    /// A slice of `cost` during which the CPU is recorded, and when each iteration ended.
    fn logged_cost(&mut self, size: Sizing) -> Outcome<SliceReport> {
        let iterations = self.iterations(size)?.min(MOST_RECORDED_ITERATIONS);
        self.iterations_so_far += iterations;
        let mut log = IterationLog::new(Clock::new(ClockSource::MonotonicRaw), iterations);
        let before = of_this_thread();
        log.start();
        for iteration in 0..iterations {
            repeat(&mut self.operation, iteration..iteration + 1, self.delay)?;
            log.after();
        }
        let usage = usage_between(before, of_this_thread());
        // By that clock, ticks are nanoseconds.
        let elapsed_ns = log.ticks.iter().sum::<u64>() as f64;
        let sample = Sample {
            trial_iterations: std::mem::take(&mut self.iterations_so_far),
            ..Sample::new(iterations, elapsed_ns, usage, None)
        };
        Ok(SliceReport { iteration_times: vec![log.times()], ..SliceReport::from_sample(sample) })
    }

    /// A slice of `cost` with a probe: its sample is of the observed iterations.
    fn observed_cost(&mut self, size: Sizing, request: &ProbeRequest) -> Outcome<SliceReport> {
        let iterations = observed_iterations(self.iterations(size)?, size, request);
        let mut probe = observe::attach(request, 0..0)?;
        probe.begin()?;
        let start = self.clock.now();
        repeat(&mut self.operation, 0..iterations, self.delay)?;
        let elapsed_ns = self.clock.ns_between(start, self.clock.now());
        probe.end()?;
        let client = probe.observation()?;
        let observation =
            Observation { iterations, elapsed_ns, iteration_ends_ns: Vec::new(), client, server: None };
        let sample = Sample::new(iterations, elapsed_ns, Usage::default(), None);
        Ok(SliceReport { observation: Some(observation), ..SliceReport::from_sample(sample) })
    }

    /// How many iterations a slice is to have. The first slice of a trial begins with a warm-up.
    fn iterations(&mut self, size: Sizing) -> Outcome<u64> {
        match size {
            Sizing::Iterations(iterations) => {
                if self.iteration_ns.is_none() {
                    growing_pieces(iterations).try_for_each(|piece| self.time(piece).map(drop))?;
                }
                Ok(iterations)
            }
            Sizing::Slice { slice_ns, .. } => {
                if self.iteration_ns.is_none() {
                    self.warm_up(slice_ns as f64 * WARM_UP_SHARE)?;
                }
                let fitting = slice_ns as f64 / self.iteration_ns.unwrap_or(slice_ns as f64);
                Ok((fitting as u64).max(1))
            }
        }
    }

    /// Repeats the operation until that took `enough_ns`.
    fn warm_up(&mut self, enough_ns: f64) -> Outcome<()> {
        let mut iterations = LEAST_WARM_UP_ITERATIONS;
        while self.time(iterations)?.0 < enough_ns {
            iterations *= 2;
        }
        Ok(())
    }

    /// How long `iterations` took, and what they used.
    fn time(&mut self, iterations: u64) -> Outcome<(f64, Usage)> {
        self.iterations_so_far += iterations;
        self.session.expect(iterations, self.iteration_ns.unwrap_or(0.0))?;
        let before = of_this_thread();
        let start = self.clock.now();
        repeat(&mut self.operation, 0..iterations, self.delay)?;
        let elapsed_ns = self.clock.ns_between(start, self.clock.now());
        self.iteration_ns = Some(elapsed_ns.max(1.0) / iterations as f64);
        Ok((elapsed_ns, usage_between(before, of_this_thread())))
    }
}

/// The iterations of `cost`, with `delay` in each. Without one they do not ask for it: some operations take a few nanoseconds.
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
        Some(_) => {
            for _ in iterations {
                InjectedDelay::wait(&delay);
                call()?;
            }
        }
    }
    Ok(())
}

/// How long the intervals of `accuracy` are: thousands of microseconds, as in the study that it comes from (Wisconsin, table 2).
const INTERVAL: Duration = Duration::from_millis(5);
/// The fewest intervals of a trial: of fewer the deviation says little.
const LEAST_INTERVALS: u64 = 10;

impl<O: Operation> OperationTrial<'_, O> {
    /// A slice of `accuracy`: a timer is read before and after intervals of a known length.
    ///
    /// The process sleeps for each interval, as in the study, where the timer goes on meanwhile; where the timer counts CPU time,
    /// the process works for the interval by the run's clock. The counter is judged by the kernel's clock, never by itself.
    fn accuracy(&mut self, size: Sizing) -> Result<Sample, LoopError> {
        let (clock, operation) = (self.clock, &mut self.operation);
        let timer =
            operation.timer().ok_or(LoopError::Call { name: "read the timer", errno: Errno::OPNOTSUPP })?;
        let judge = if timer.tick_ns.is_some() { clock } else { Clock::new(ClockSource::MonotonicRaw) };
        let interval_ns = INTERVAL.as_nanos() as f64;
        let intervals = match size {
            Sizing::Iterations(iterations) => iterations,
            Sizing::Slice { slice_ns, .. } => (slice_ns as f64 / interval_ns) as u64,
        };
        let intervals = intervals.max(LEAST_INTERVALS);
        let resolution_ticks = resolution(operation, &clock)?;
        let tick_ns = tick_ns(timer, self.session.orders.clock, || {
            let (start, first) = (judge.now(), read(operation)?);
            std::thread::sleep(INTERVAL);
            let last = read(operation)?;
            Ok((last.wrapping_sub(first) as f64, judge.ns_between(start, judge.now())))
        })?;

        let before = of_this_thread();
        let (mut ticks, mut clock_ns) = (Vec::new(), Vec::new());
        for _ in 0..intervals {
            let start = judge.now();
            let first = read(operation)?;
            if timer.counts_sleep {
                std::thread::sleep(INTERVAL);
            } else {
                clock.work_for(INTERVAL);
            }
            let last = read(operation)?;
            clock_ns.push(judge.ns_between(start, judge.now()));
            ticks.push(last.wrapping_sub(first) as f64);
        }
        let usage = usage_between(before, of_this_thread());

        let said_ns: Vec<f64> = ticks.iter().map(|ticks| ticks * tick_ns).collect();
        let timer = TimerSample {
            error_ns: mean(&said_ns) - interval_ns,
            deviation_ns: deviation(&said_ns),
            off_clock_ns: mean(&said_ns) - mean(&clock_ns),
            resolution_ns: resolution_ticks * tick_ns,
        };
        Ok(Sample { timer: Some(timer), ..Sample::new(intervals, clock_ns.iter().sum(), usage, None) })
    }
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
/// is not known, it is computed from an interval of which `calibrate` says the ticks and the nanoseconds.
fn tick_ns(
    timer: TimerKind,
    clock: ClockSource,
    calibrate: impl FnOnce() -> Result<(f64, f64), LoopError>,
) -> Result<f64, LoopError> {
    match (timer.tick_ns, clock) {
        (Some(tick_ns), _) => Ok(tick_ns),
        (None, ClockSource::Tsc { ns_per_tick }) => Ok(ns_per_tick),
        (None, ClockSource::MonotonicRaw) => Ok(match calibrate()? {
            // A counter that stands still has no length of a tick, and says 0 of every interval.
            (0.0, _) => 0.0,
            (ticks, ns) => ns / ticks,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::testing::session;
    use super::*;
    use crate::protocol::orders::Role;
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
        let measured_tick_ns = |clock, ticks| tick_ns(counter, clock, || Ok((ticks, 1e6))).unwrap();
        assert_eq!(measured_tick_ns(ClockSource::MonotonicRaw, 0.0), 0.0);
        assert_eq!(measured_tick_ns(ClockSource::MonotonicRaw, 4e6), 0.25);
        assert_eq!(measured_tick_ns(ClockSource::Tsc { ns_per_tick: 0.5 }, 0.0), 0.5);
    }

    #[test]
    fn a_timer_that_runs_fast_and_in_steps_is_found_out() {
        /// A busy host that takes the CPU between the readings of two clocks moves them apart: not in every try.
        const TRIES: u32 = 100;
        let clock = Clock::new(ClockSource::MonotonicRaw);
        let session = session(floor::operation("fast", 0), Role::Alone, None);
        let mut seen = Vec::new();
        let is_found = (0..TRIES).any(|_| {
            let mut trial = OperationTrial::new(&session, Fast(clock, clock.now())).unwrap();
            let sample = trial.accuracy(Sizing::Iterations(10)).unwrap();
            let timer = sample.timer.unwrap();
            let slept_ns = sample.iteration_ns();
            assert_eq!((sample.iterations, timer.resolution_ns), (10, 5000.0));
            assert!(timer.deviation_ns > 0.0);
            // Twice what was slept, less what was asked for; each reading is off by up to a step.
            let off_ns = [timer.off_clock_ns - slept_ns, timer.error_ns - (2.0 * slept_ns - 5e6)];
            seen.push(off_ns);
            off_ns.iter().all(|ns| ns.abs() < 10_000.0)
        });
        assert!(is_found, "{seen:?}");
    }

    /// A counter in nanoseconds that is said to have ticks of 0.8 ns.
    struct Counter(Clock, crate::clock::Stamp);

    impl Operation for Counter {
        const CARD: Card = Card::OPERATION;

        fn prepare(_: &TrialContext<'_>) -> Result<Self, Failure> {
            let clock = Clock::new(ClockSource::MonotonicRaw);
            Ok(Self(clock, clock.now()))
        }

        fn call(&mut self) -> Result<(), Errno> {
            Ok(())
        }

        fn timer(&self) -> Option<TimerKind> {
            Some(TimerKind { tick_ns: None, counts_sleep: true })
        }

        fn read(&mut self) -> Result<u64, Errno> {
            Ok(self.0.ns_between(self.1, self.0.now()) as u64)
        }
    }

    #[test]
    fn a_counter_that_is_the_clock_of_the_run_is_judged_by_another() {
        let mut session = session(floor::operation("counter", 0), Role::Alone, None);
        session.orders.clock = ClockSource::Tsc { ns_per_tick: 0.8 };
        let clock = Clock::new(ClockSource::MonotonicRaw);
        let mut trial = OperationTrial::new(&session, Counter(clock, clock.now())).unwrap();
        let sample = trial.accuracy(Sizing::Iterations(10)).unwrap();
        let off_share = sample.timer.unwrap().off_clock_ns / sample.iteration_ns();
        assert!((off_share + 0.2).abs() < 0.01, "{off_share}");
    }
}
