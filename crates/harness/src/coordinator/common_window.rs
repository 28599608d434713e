//! What several clients did at the same time, as one sample. Nothing is measured here.
//!
//! The clients begin together, each as soon as it runs, and end one after the other. What counts is the window in which all
//! were at work: from the last beginning to the first end.

use super::trial_error::TrialError;
use crate::clock::{Clock, Stamp};
use crate::endpoint::meters::each;
use crate::protocol::report::{IterationTimes, SliceReport};
use model::record::{Sample, Usage};
use model::{Case, Peers};

impl IterationTimes {
    fn end(&self) -> Stamp {
        self.start.after(self.ticks.iter().sum())
    }

    /// How long each of those iterations took that ended after `from`, and not after `until`.
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
/// Where iterations are answered, the time is that of an iteration as each client sees it; in a stream, the time from one
/// message to the next of all streams together. What passes between two phases of one client does not count.
pub(crate) fn in_common_window(
    case: &Case,
    clock: &Clock,
    reports: Vec<SliceReport>,
) -> Result<SliceReport, TrialError> {
    let begun = reports.iter().map(|one| one.iteration_times.first().map(|times| times.start));
    let ended = reports.iter().map(|one| one.iteration_times.last().map(IterationTimes::end));
    let (from, until) = match (begun.max().flatten(), ended.min().flatten()) {
        (Some(from), Some(until)) if from < until => (from, until),
        _ => return Err(TrialError::NeverTogether),
    };
    let own: Vec<InWindow> = reports.iter().map(|one| InWindow::new(one, clock, from, until)).collect();
    let iterations: u64 = own.iter().map(|own| own.iterations).sum();
    if iterations == 0 {
        return Err(TrialError::NothingTogether);
    }
    // The times of a stream are of messages that came; its iterations are of messages that were sent.
    let lost_of = |(one, own): (&SliceReport, &InWindow)| {
        let came = one.sample.iterations.saturating_sub(one.sample.lost?);
        Some(one.sample.lost? * own.iterations / came.max(1))
    };
    let lost: Option<Vec<u64>> = reports.iter().zip(&own).map(lost_of).collect();
    let lost = lost.map(|lost| lost.iter().sum::<u64>());
    let is_answered = case.workload.is_answered();
    let elapsed_ns = if is_answered {
        own.iter().map(|own| own.busy_ns).sum()
    } else {
        iterations as f64 / own.iter().map(InWindow::iterations_per_ns).sum::<f64>()
    };
    let server_of = |one: &SliceReport| one.sample.server.unwrap_or_default();
    let server: Usage = match case.peers {
        // One server said to every client what it used during that client's phases: it used the mean of that.
        Peers::FanIn(count) => {
            let count = f64::from(count);
            let at_work_ns = if is_answered { elapsed_ns / count } else { elapsed_ns };
            reports.iter().map(|one| server_of(one).scaled(at_work_ns / one.sample.elapsed_ns / count)).sum()
        }
        _ => reports.iter().zip(&own).map(|(one, own)| server_of(one).scaled(own.share_of_iterations)).sum(),
    };
    let sample = Sample {
        iterations: iterations + lost.unwrap_or(0),
        lost,
        trial_iterations: reports.iter().map(|one| one.sample.trial_iterations).sum(),
        elapsed_ns,
        each: is_answered
            .then(|| each(clock, &own.iter().flat_map(|own| own.ticks.clone()).collect::<Vec<_>>())),
        client: reports
            .iter()
            .zip(&own)
            .map(|(one, own)| one.sample.client.scaled(own.share_of_iterations))
            .sum(),
        server: Some(server),
        shares: Some(own.iter().map(|own| own.iterations).collect()),
        ..reports[0].sample.clone()
    };
    let settings = reports.into_iter().next().map(|first| first.settings).unwrap_or_default();
    Ok(SliceReport { settings, ..SliceReport::from_sample(sample) })
}

/// What one client did in the window.
struct InWindow {
    /// How long its iterations took; where the stride is not 1, so many of them together.
    ticks: Vec<u64>,
    iterations: u64,
    busy_ns: f64,
    /// These iterations over all that it measured.
    share_of_iterations: f64,
}

impl InWindow {
    fn new(one: &SliceReport, clock: &Clock, from: Stamp, until: Stamp) -> Self {
        let ticks: Vec<u64> =
            one.iteration_times.iter().flat_map(|times| times.between(from, until)).collect();
        let stride = one.iteration_times.first().map_or(1, |times| times.stride);
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

    /// The report of a client that began `start` ns after the first and whose iterations took `ticks` ns each, with its CPU busy
    /// throughout.
    fn client(origin: Stamp, start: u64, iterations: usize, ticks: u64) -> SliceReport {
        let elapsed_ns = iterations as f64 * ticks as f64;
        let busy = Usage { cpu_ns: elapsed_ns as u64, ..Usage::default() };
        SliceReport {
            iteration_times: vec![IterationTimes {
                start: origin.after(start),
                ticks: vec![ticks; iterations],
                stride: 1,
            }],
            ..SliceReport::from_sample(Sample::new(iterations as u64, elapsed_ns, busy, Some(busy)))
        }
    }

    #[test]
    fn only_what_all_did_at_the_same_time_counts() {
        let origin = Clock::new(CLOCK).now();
        // The first has 10 iterations from 0 to 1000, the second 40 from 500 to 2500: the window is from 500 to 1000.
        let reports = || vec![client(origin, 0, 10, 100), client(origin, 500, 40, 50)];
        let sample_of = |workload, peers| {
            in_common_window(&case(workload, peers), &Clock::new(CLOCK), reports()).unwrap().sample
        };
        let asked = sample_of(Workload::Latency, Peers::Pairs(2));
        assert_eq!(
            (asked.shares.clone(), asked.iterations, asked.trial_iterations),
            (Some(vec![5, 10]), 15, 50)
        );
        // As each client sees it: 5 iterations of 100 ns and 10 of 50 ns.
        assert_eq!(asked.elapsed_ns, 1000.0);
        assert_eq!((asked.client.cpu_ns, asked.server.unwrap().cpu_ns), (1000, 1000));
        assert_eq!(asked.each.unwrap().mean_ns, 1000.0 / 15.0);
        let streamed = sample_of(Workload::Throughput, Peers::Pairs(2));
        assert_eq!((streamed.iterations, streamed.each), (15, None));
        assert!((streamed.elapsed_ns - 500.0).abs() < 1e-9, "{}", streamed.elapsed_ns);
        // One server told both clients that it was busy all the time.
        assert_eq!(sample_of(Workload::Latency, Peers::FanIn(2)).server.unwrap().cpu_ns, 500);
        assert_eq!(sample_of(Workload::Throughput, Peers::FanIn(2)).server.unwrap().cpu_ns, 500);
    }

    #[test]
    fn what_passes_between_two_phases_does_not_count() {
        let origin = Clock::new(CLOCK).now();
        let mut paused = client(origin, 0, 10, 100);
        paused
            .iteration_times
            .push(IterationTimes { start: origin.after(1500), ..paused.iteration_times[0].clone() });
        paused.sample.iterations = 20;
        let reports = vec![paused, client(origin, 0, 25, 100)];
        let sample = in_common_window(&case(Workload::Latency, Peers::Pairs(2)), &Clock::new(CLOCK), reports)
            .unwrap()
            .sample;
        assert_eq!((sample.shares.as_deref(), sample.iteration_ns()), (Some(&[20, 25][..]), 100.0));
    }

    #[test]
    fn peers_that_were_never_at_work_together_are_no_measurement() {
        let origin = Clock::new(CLOCK).now();
        let reports = vec![client(origin, 0, 10, 100), client(origin, 1000, 10, 100)];
        let error = in_common_window(&case(Workload::Latency, Peers::Pairs(2)), &Clock::new(CLOCK), reports)
            .unwrap_err();
        assert!(error == TrialError::NeverTogether, "{error}");
    }
}
