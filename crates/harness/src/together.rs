//! What several clients did at the same time, put together into one sample. Nothing is measured here.
//!
//! Nears begin together, each as soon as it runs, and end one after the other. What counts is the window in which all
//! were at work: from the last beginning to the first end.

use crate::client::each;
use crate::endpoint::{Outcome, Yield};
use crate::measure::{Clock, Stamp};
use crate::workload::{IterationLog, Watch};
use model::record::{Sample, Usage};
use model::{Case, Peers};
use serde::{Deserialize, Serialize};

/// When the iterations of one client were over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Course {
    /// When the first began.
    pub(crate) start: Stamp,
    /// How long each took: the next begins where one ends.
    pub(crate) ticks: Vec<u64>,
    /// Of how many iterations each of `ticks` is.
    pub(crate) stride: u64,
}

/// Notes when the messages of a stream came, in memory that was set aside before: of many, every so many-th alone.
pub(crate) struct CourseLog {
    log: IterationLog,
    stride: u64,
    left: u64,
}

impl CourseLog {
    pub(crate) fn new(clock: Clock, iterations: u64) -> Self {
        let stride = iterations.div_ceil(IterationLog::CAPACITY).max(1);
        Self { log: IterationLog::new(clock, iterations / stride), stride, left: stride }
    }

    pub(crate) fn start(&mut self) {
        self.log.start();
    }

    #[inline(always)]
    pub(crate) fn arrived(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.log.after();
            self.left = self.stride;
        }
    }

    pub(crate) fn course(self) -> Course {
        Course { start: self.log.start, ticks: self.log.ticks, stride: self.stride }
    }
}

impl Course {
    fn end(&self) -> Stamp {
        self.start.after(self.ticks.iter().sum())
    }

    /// What the iterations took that ended after `from`, and not after `until`.
    fn between(&self, from: Stamp, until: Stamp) -> Vec<u64> {
        let ends = self.ticks.iter().scan(self.start, |end, ticks| {
            *end = end.after(*ticks);
            Some((*end, *ticks))
        });
        ends.filter(|(end, _)| (from..=until).contains(end) && *end != from).map(|(_, ticks)| ticks).collect()
    }
}

/// What the clients of `case` measured, as one sample of the window that they have in common.
///
/// Where iterations are answered the time is that of an iteration as each client sees it; in a stream, the time from one message to
/// the next of all streams together. What passes between two parts of one client is no part of its time.
pub(crate) fn together(case: &Case, clock: &Clock, yields: Vec<Yield>) -> Outcome<Yield> {
    let begun = yields.iter().map(|one| one.courses.first().map(|course| course.start));
    let ended = yields.iter().map(|one| one.courses.last().map(Course::end));
    let (from, until) = match (begun.max().flatten(), ended.min().flatten()) {
        (Some(from), Some(until)) if from < until => (from, until),
        _ => return Err("the peers were never at work at the same time; try fewer".to_owned()),
    };
    let own: Vec<Own> = yields.iter().map(|one| Own::of(one, clock, from, until)).collect();
    let iterations: u64 = own.iter().map(|own| own.iterations).sum();
    if iterations == 0 {
        return Err("no client had an iteration while all were at work; try fewer peers".to_owned());
    }
    // A stream's courses are of what came; its iterations are of what was sent.
    let lost_of = |(one, own): (&Yield, &Own)| {
        let came = one.sample.iterations.saturating_sub(one.sample.lost?);
        Some(one.sample.lost? * own.iterations / came.max(1))
    };
    let lost: Option<Vec<u64>> = yields.iter().zip(&own).map(lost_of).collect();
    let lost = lost.map(|lost| lost.iter().sum::<u64>());
    let is_answered = case.workload.is_answered();
    let elapsed_ns = if is_answered {
        own.iter().map(|own| own.busy_ns).sum()
    } else {
        iterations as f64 / own.iter().map(Own::iterations_per_ns).sum::<f64>()
    };
    let server_of = |one: &Yield| one.sample.server.unwrap_or_default();
    let server: Usage = match case.peers {
        // One server told every client what it used in all while that had its parts: it is the mean of what they say.
        Peers::FanIn(count) => {
            let count = f64::from(count);
            let at_work_ns = if is_answered { elapsed_ns / count } else { elapsed_ns };
            yields.iter().map(|one| server_of(one).scaled(at_work_ns / one.sample.elapsed_ns / count)).sum()
        }
        _ => yields.iter().zip(&own).map(|(one, own)| server_of(one).scaled(own.share_of_iterations)).sum(),
    };
    let sample = Sample {
        iterations: iterations + lost.unwrap_or(0),
        lost,
        trial_iterations: yields.iter().map(|one| one.sample.trial_iterations).sum(),
        elapsed_ns,
        each: is_answered
            .then(|| each(clock, &own.iter().flat_map(|own| own.ticks.clone()).collect::<Vec<_>>())),
        client: yields
            .iter()
            .zip(&own)
            .map(|(one, own)| one.sample.client.scaled(own.share_of_iterations))
            .sum(),
        server: Some(server),
        shares: Some(own.iter().map(|own| own.iterations).collect()),
        ..yields[0].sample.clone()
    };
    let settings = yields.into_iter().next().map(|first| first.settings).unwrap_or_default();
    Ok(Yield { sample, settings, courses: Vec::new(), observation: None })
}

/// What one client did in the window.
struct Own {
    /// What its iterations took, or so many of them as the stride is.
    ticks: Vec<u64>,
    iterations: u64,
    busy_ns: f64,
    /// These turns over all that it had.
    share_of_iterations: f64,
}

impl Own {
    fn of(one: &Yield, clock: &Clock, from: Stamp, until: Stamp) -> Self {
        let ticks: Vec<u64> = one.courses.iter().flat_map(|course| course.between(from, until)).collect();
        let stride = one.courses.first().map_or(1, |course| course.stride);
        let iterations = ticks.len() as u64 * stride;
        let busy_ns = clock.ns(ticks.iter().sum());
        Self {
            iterations,
            busy_ns,
            share_of_iterations: iterations as f64 / one.sample.iterations as f64,
            ticks,
        }
    }

    fn iterations_per_ns(&self) -> f64 {
        if self.iterations == 0 { 0.0 } else { self.iterations as f64 / self.busy_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::ClockSource;
    use model::{Workload, floor};

    const CLOCK: ClockSource = ClockSource::MonotonicRaw;

    fn case(workload: Workload, peers: Peers) -> Case {
        Case { workload, peers, ..floor::operation("pipe", 0) }
    }

    /// A client that began `start` ns after the first and whose iterations took `ticks` ns each; its CPU was busy throughout.
    fn client(origin: Stamp, start: u64, iterations: usize, ticks: u64) -> Yield {
        let elapsed_ns = iterations as f64 * ticks as f64;
        let busy = Usage { cpu_ns: elapsed_ns as u64, ..Usage::default() };
        Yield {
            sample: crate::workload::sample(iterations as u64, elapsed_ns, busy, Some(busy)),
            settings: Vec::new(),
            observation: None,
            courses: vec![Course { start: origin.after(start), ticks: vec![ticks; iterations], stride: 1 }],
        }
    }

    #[test]
    fn only_what_all_did_at_the_same_time_counts() {
        let origin = Clock::new(CLOCK).now();
        // The first has 10 iterations from 0 to 1000, the second 40 from 500 to 2500: the window is from 500 to 1000.
        let yields = || vec![client(origin, 0, 10, 100), client(origin, 500, 40, 50)];
        let of =
            |workload, peers| together(&case(workload, peers), &Clock::new(CLOCK), yields()).unwrap().sample;
        let asked = of(Workload::Latency, Peers::Pairs(2));
        assert_eq!(
            (asked.shares.clone(), asked.iterations, asked.trial_iterations),
            (Some(vec![5, 10]), 15, 50)
        );
        // As each client sees it: 5 iterations of 100 ns and 10 of 50 ns.
        assert_eq!(asked.elapsed_ns, 1000.0);
        assert_eq!((asked.client.cpu_ns, asked.server.unwrap().cpu_ns), (1000, 1000));
        assert_eq!(asked.each.unwrap().mean_ns, 1000.0 / 15.0);
        let streamed = of(Workload::Throughput, Peers::Pairs(2));
        assert_eq!((streamed.iterations, streamed.each), (15, None));
        assert!((streamed.elapsed_ns - 500.0).abs() < 1e-9, "{}", streamed.elapsed_ns);
        // One server told both clients that it was busy all the time.
        assert_eq!(of(Workload::Latency, Peers::FanIn(2)).server.unwrap().cpu_ns, 500);
        assert_eq!(of(Workload::Throughput, Peers::FanIn(2)).server.unwrap().cpu_ns, 500);
    }

    #[test]
    fn what_passes_between_two_parts_is_no_part_of_a_client() {
        let origin = Clock::new(CLOCK).now();
        let mut paused = client(origin, 0, 10, 100);
        paused.courses.push(Course { start: origin.after(1500), ..paused.courses[0].clone() });
        paused.sample.iterations = 20;
        let yields = vec![paused, client(origin, 0, 25, 100)];
        let sample =
            together(&case(Workload::Latency, Peers::Pairs(2)), &Clock::new(CLOCK), yields).unwrap().sample;
        assert_eq!((sample.shares.as_deref(), sample.iteration_ns()), (Some(&[20, 25][..]), 100.0));
    }

    #[test]
    fn of_a_long_stream_every_so_many_messages_are_noted() {
        let clock = Clock::new(CLOCK);
        for iterations in
            [1, 1000, IterationLog::CAPACITY, IterationLog::CAPACITY + 1, 10 * IterationLog::CAPACITY]
        {
            let mut log = CourseLog::new(clock, iterations);
            log.start();
            (0..iterations).for_each(|_| log.arrived());
            let course = log.course();
            let noted = course.ticks.len() as u64;
            assert!(
                noted <= IterationLog::CAPACITY
                    && (noted * course.stride).abs_diff(iterations) < course.stride
            );
        }
    }

    #[test]
    fn peers_that_took_turns_are_no_measurement() {
        let origin = Clock::new(CLOCK).now();
        let yields = vec![client(origin, 0, 10, 100), client(origin, 1000, 10, 100)];
        let error =
            together(&case(Workload::Latency, Peers::Pairs(2)), &Clock::new(CLOCK), yields).unwrap_err();
        assert!(error.contains("never at work at the same time"), "{error}");
    }
}
