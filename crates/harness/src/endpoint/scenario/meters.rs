//! What a process of a scenario counts: messages, bytes and round trips of its flows, for whoever asks in between.

use crate::protocol::scenario::FlowCounts;
use model::{Histogram, Scenario};
use std::sync::{Mutex, PoisonError};

/// The counts of the flows that a process counts: requests that it sends, and streams that it receives.
pub(super) struct Meters(Vec<Option<Mutex<FlowMeter>>>);

struct FlowMeter {
    counts: FlowCounts,
    /// The round trips that were not asked for yet; only of requests.
    round_trips: Option<Histogram>,
}

impl Meters {
    pub(super) fn new(scenario: &Scenario, process: usize) -> Self {
        let meter = |(flow, of): (usize, &model::scenario::Flow)| {
            let counting = if of.is_stream() { of.to } else { of.from };
            (counting == process).then(|| {
                let counts = FlowCounts { flow, ..FlowCounts::default() };
                Mutex::new(FlowMeter { counts, round_trips: (!of.is_stream()).then(Histogram::new) })
            })
        };
        Self(scenario.flows.iter().enumerate().map(meter).collect())
    }

    /// Counts a message of `flow`, and the round trip that it took.
    pub(super) fn count(&self, flow: usize, bytes: u64, round_trip_ns: Option<f64>) {
        let Some(meter) = &self.0[flow] else { return };
        let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
        meter.counts.messages += 1;
        meter.counts.bytes += bytes;
        meter.counts.round_trips_ns += round_trip_ns.unwrap_or(0.0);
        if let Some((histogram, ns)) = meter.round_trips.as_mut().zip(round_trip_ns) {
            histogram.record(ns as u64);
        }
    }

    /// All counts so far; with the round trips since the last time, if they are wanted.
    pub(super) fn read(&self, round_trips: bool) -> Vec<FlowCounts> {
        let read = |meter: &Mutex<FlowMeter>| {
            let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = meter.round_trips.as_mut().filter(|_| round_trips).map(std::mem::take);
            FlowCounts { round_trips: taken.map(|taken| taken.encode()), ..meter.counts.clone() }
        };
        self.0.iter().flatten().map(read).collect()
    }
}
