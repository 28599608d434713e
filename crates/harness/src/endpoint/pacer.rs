//! When the client begins its iterations, where that is not at once: the idle think time and the open loop.
//!
//! The client waits awake, on the clock, so that what an iteration costs is the peer's sleep and not its own. Each iteration is
//! timed: after a think time from its beginning, in an open loop from when it was due.

use super::meters::Watch;
use crate::clock::{Clock, Stamp};
use model::Pace;
use model::pace::Arrivals;
use model::record::ScheduleSample;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Paces iterations and times each.
pub(crate) struct Pacer {
    clock: Clock,
    waits: Waits,
    began: Stamp,
    /// What each iteration took, in memory set aside before the iterations.
    pub(crate) ticks: Vec<u64>,
}

enum Waits {
    /// For so many ticks after the last iteration.
    ThinkTime(u64),
    /// Until the next iteration is due.
    Due(Due),
}

/// A schedule that was fixed beforehand. Its ticks are fractions, so that no rounding adds up.
struct Due {
    interval_ticks: f64,
    /// From one due iteration to the next, in intervals; used over again from the beginning.
    distances: Vec<f64>,
    iteration: usize,
    start: Stamp,
    due_ticks: f64,
    /// How late each iteration began, in memory set aside before the iterations.
    late_ticks: Vec<u64>,
}

/// How many random distances are drawn before the iterations: to draw them within would take time of the iterations.
const DISTANCES: usize = 1 << 14;

impl Pacer {
    /// A pacer of `iterations` iterations; `None` when they are to go back to back. `seed` tells trials apart.
    pub(crate) fn new(pace: Pace, clock: Clock, iterations: u64, seed: u64) -> Option<Self> {
        let now = clock.now();
        let waits = match pace {
            Pace::BackToBack => return None,
            Pace::ThinkTime(ns) => Waits::ThinkTime(clock.ticks(ns as f64)),
            Pace::Rate(rate) => Waits::Due(Due {
                interval_ticks: clock.ticks_per_ns() * rate.interval_ns(),
                distances: distances(rate.arrivals, seed),
                iteration: 0,
                start: now,
                due_ticks: 0.0,
                late_ticks: set_aside(iterations),
            }),
        };
        let ticks = set_aside(iterations);
        Some(Self { clock, waits, began: now, ticks })
    }

    /// How long the schedule was and how late its last iteration began; `None` without a schedule.
    pub(crate) fn schedule(&self) -> Option<ScheduleSample> {
        match &self.waits {
            Waits::ThinkTime(_) => None,
            Waits::Due(due) => Some(ScheduleSample {
                span_ns: self.clock.ns(due.due_ticks as u64),
                late_ns: self.clock.ns(due.late_ticks.last().copied().unwrap_or(0)),
                backlog_slope: backlog_slope(&due.late_ticks, due.due_ticks),
            }),
        }
    }
}

/// What one iteration takes on the clock at `pace` if back to back it takes `iteration_ns`.
pub(crate) fn wall_ns(pace: Pace, iteration_ns: f64) -> f64 {
    match pace {
        Pace::BackToBack => iteration_ns,
        Pace::ThinkTime(think_time_ns) => iteration_ns + think_time_ns as f64,
        Pace::Rate(rate) => iteration_ns.max(rate.interval_ns()),
    }
}

/// Room for `count` values, with every page of it touched.
fn set_aside(count: u64) -> Vec<u64> {
    let mut room = vec![1; count as usize];
    room.clear();
    room
}

/// By how much later iterations began for each tick of a schedule of `span_ticks`: between the medians of the first and the last
/// third of `late_ticks`, which are two thirds of the schedule apart.
fn backlog_slope(late_ticks: &[u64], span_ticks: f64) -> Option<f64> {
    const LEAST_ITERATIONS: usize = 6;
    let third = late_ticks.len() / 3;
    let median = |late: &[u64]| {
        let mut sorted = late.to_vec();
        sorted.sort_unstable();
        sorted[sorted.len() / 2] as f64
    };
    let between = || median(&late_ticks[late_ticks.len() - third..]) - median(&late_ticks[..third]);
    let distance = 1.0 - third as f64 / late_ticks.len().max(1) as f64;
    (late_ticks.len() >= LEAST_ITERATIONS).then(|| between() / (span_ticks * distance))
}

fn distances(arrivals: Arrivals, seed: u64) -> Vec<f64> {
    let mut random = SmallRng::seed_from_u64(seed);
    match arrivals {
        Arrivals::Uniform => vec![1.0],
        // The inverse of the exponential distribution; the argument of the logarithm is never 0.
        Arrivals::Poisson => (0..DISTANCES).map(|_| -(1.0 - random.random::<f64>()).ln()).collect(),
    }
}

impl Watch for Pacer {
    /// The first iteration is due one distance from now.
    fn start(&mut self) {
        if let Waits::Due(due) = &mut self.waits {
            due.start = self.clock.now();
        }
    }

    #[inline(always)]
    fn before(&mut self) {
        match &mut self.waits {
            Waits::ThinkTime(ticks) => {
                let idle_since = self.clock.now();
                self.began = idle_since;
                while Clock::ticks_between(idle_since, self.began) < *ticks {
                    std::hint::spin_loop();
                    self.began = self.clock.now();
                }
            }
            Waits::Due(due) => {
                due.due_ticks += due.interval_ticks * due.distances[due.iteration % due.distances.len()];
                due.iteration += 1;
                let is_due = due.start.after(due.due_ticks as u64);
                let mut now = self.clock.now();
                while Clock::ticks_between(is_due, now) == 0 {
                    std::hint::spin_loop();
                    now = self.clock.now();
                }
                due.late_ticks.push(Clock::ticks_between(is_due, now));
                self.began = is_due;
            }
        }
    }

    #[inline(always)]
    fn after(&mut self) {
        self.ticks.push(Clock::ticks_between(self.began, self.clock.now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::pace::Rate;
    use model::record::ClockSource;
    use std::time::Duration;

    fn paced(pace: Pace, iterations: usize, iteration: impl Fn(usize)) -> Pacer {
        let mut pacer =
            Pacer::new(pace, Clock::new(ClockSource::MonotonicRaw), iterations as u64, 1).unwrap();
        pacer.start();
        for number in 0..iterations {
            pacer.before();
            iteration(number);
            pacer.after();
        }
        pacer
    }

    fn rate(per_s: u32, arrivals: Arrivals) -> Pace {
        Pace::Rate(Rate { per_s, arrivals })
    }

    #[test]
    fn a_think_time_is_no_part_of_an_iteration() {
        let clock = Clock::new(ClockSource::MonotonicRaw);
        let start = clock.now();
        let pacer = paced(Pace::ThinkTime(2_000_000), 10, |_| {});
        assert!(clock.ns_between(start, clock.now()) >= 20e6);
        assert_eq!(pacer.ticks.len(), 10);
        assert!(pacer.schedule().is_none());
        // The fastest is not disturbed by other load, and holds none of the 2 ms of the think time.
        assert!(*pacer.ticks.iter().min().unwrap() < 1_000_000);
    }

    #[test]
    fn an_iteration_that_a_slow_one_delays_is_timed_from_when_it_was_due() {
        // Due every 2 ms; the first takes 20 ms, so that the second, due 18 ms before that is over, took 18 ms and more.
        let slow_first = |number| {
            if number == 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        let pacer = paced(rate(500, Arrivals::Uniform), 3, slow_first);
        assert!(pacer.ticks[0] >= 20_000_000 && pacer.ticks[1] >= 18_000_000 && pacer.ticks[2] >= 16_000_000);
        let schedule = pacer.schedule().unwrap();
        assert!((schedule.span_ns - 6e6).abs() < 1e3 && schedule.late_ns >= 16e6);
    }

    #[test]
    fn a_queue_that_grows_has_a_slope_and_one_slow_iteration_has_none() {
        // Due every 100 ticks; each takes 102, so that each begins 2 later than the one before.
        let growing: Vec<u64> = (0..3000).map(|iteration| 2 * iteration).collect();
        let slope = backlog_slope(&growing, 300_000.0).unwrap();
        assert!((slope - 0.02).abs() < 1e-4, "{slope}");
        let late = |slow: std::ops::Range<usize>| {
            let late: Vec<u64> = (0..3000).map(|at| if slow.contains(&at) { 50_000 } else { 5 }).collect();
            backlog_slope(&late, 300_000.0).unwrap()
        };
        assert_eq!((late(0..0), late(2700..3000), late(0..300)), (0.0, 0.0, 0.0));
        assert_eq!(backlog_slope(&[1; 5], 500.0), None);
    }

    /// A slice was as short as any other, and what its last iteration was late by passed for one slow iteration.
    #[test]
    fn an_overload_of_two_percent_is_seen() {
        let clock = Clock::new(ClockSource::MonotonicRaw);
        let overloaded =
            paced(rate(10_000, Arrivals::Uniform), 2000, |_| clock.work_for(Duration::from_micros(102)));
        let achieved = overloaded.schedule().unwrap().achieved();
        assert!(achieved < 0.985, "{achieved}");
    }

    #[test]
    fn random_arrivals_come_as_often_as_asked() {
        let distances = distances(Arrivals::Poisson, 7);
        let mean = distances.iter().sum::<f64>() / distances.len() as f64;
        let square = distances.iter().map(|d| d * d).sum::<f64>() / distances.len() as f64;
        // An exponential distribution has mean 1 and mean square 2: five standard errors are allowed.
        assert!((mean - 1.0).abs() < 0.04 && (square - 2.0).abs() < 0.2, "{mean} {square}");
    }

    #[test]
    fn back_to_back_needs_no_pacer() {
        assert!(Pacer::new(Pace::BackToBack, Clock::new(ClockSource::MonotonicRaw), 1, 1).is_none());
    }
}
