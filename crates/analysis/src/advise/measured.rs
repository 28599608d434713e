//! What was measured of a mechanism, as far as a need asks for it.

use crate::interval::{CONFIDENCE, ratio_over_trials};
use crate::summary::by_trial;
use model::estimate::Estimate;
use model::need::{Need, Objective, Pattern};
use model::record::{Record, Sample};
use model::{Outcome, Pace, Size, Spec, Workload};
use serde::Serialize;

/// What was measured of a mechanism at the size of a need.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The mechanism with its parameters.
    pub spec: Spec,
    /// The round trip, in nanoseconds; of a rate, timed from when each was due.
    pub round_trip_ns: Option<Estimate>,
    /// CPU time of both processes for a round trip, a message or a signal and its answer, in nanoseconds.
    pub cpu_ns: Option<Estimate>,
    /// The time of a message in a stream, in nanoseconds.
    pub message_ns: Option<Estimate>,
}

impl Measured {
    /// What is to be small for `objective`.
    pub fn time(&self, objective: Objective) -> Option<Estimate> {
        match objective {
            Objective::Latency => self.round_trip_ns,
            Objective::Cpu => self.cpu_ns,
            Objective::Throughput => self.message_ns,
        }
    }

    /// Whether it is nowhere better than `other`, and somewhere worse. What was not measured is worse than anything.
    pub fn is_dominated_by(&self, other: &Measured) -> bool {
        let all = |of: &Measured| -> Vec<f64> {
            let times = Objective::ALL.iter().map(|objective| of.time(*objective));
            times.map(|time| time.map_or(f64::INFINITY, |time| time.median)).collect()
        };
        let (own, others) = (all(self), all(other));
        let pairs = || own.iter().zip(&others);
        pairs().all(|(own, other)| other <= own) && pairs().any(|(own, other)| other < own)
    }
}

/// The record of `spec` in `workload` at the size of `need`, at `pace`: the first of several.
pub(super) fn record_of<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    spec: &Spec,
    workload: Workload,
    size: Size,
    pace: Pace,
) -> Option<&'a Record> {
    records.into_iter().find(|record| {
        let case = &record.case;
        case.spec == *spec
            && case.workload == workload
            && case.size_bytes.is_none_or(|of_case| of_case == size)
            && case.pace == pace
    })
}

/// What `records` say of `spec` for `need`; `None` where its first workload was not measured at the pace of the need.
pub fn measured(need: &Need, spec: &Spec, records: &[Record]) -> Option<Measured> {
    let is_stream = need.pattern == Pattern::Stream;
    let round_trips = record_of(records, spec, Workload::Latency, need.size, need.pace());
    let stream = record_of(records, spec, Workload::Throughput, need.size, Pace::BackToBack);
    let usable = |record: Option<&'_ Record>| {
        let record = record.filter(|record| is_usable(&record.outcome))?;
        Some((record.summary.as_ref()?.iteration_ns, cpu_ns(record)))
    };
    let (round_trips, stream) = (usable(round_trips), usable(stream));
    let (_, cpu_ns) = if is_stream { stream? } else { round_trips? };
    Some(Measured {
        spec: spec.clone(),
        round_trip_ns: round_trips.map(|(time, _)| time),
        cpu_ns,
        message_ns: stream.map(|(time, _)| time),
    })
}

/// The CPU time of both endpoints for an iteration of `record`, with its interval over trials; `None` where there is none.
pub(super) fn cpu_ns(record: &Record) -> Option<Estimate> {
    let cpu_ns = |sample: &Sample| {
        let ns = sample.client.cpu_ns.saturating_add(sample.server.map_or(0, |server| server.cpu_ns));
        (ns > 0 && sample.iterations > 0).then(|| ns as f64 / sample.iterations as f64)
    };
    ratio_over_trials(&by_trial(&record.samples, cpu_ns), CONFIDENCE)
}

/// Whether the numbers of a case that ended so may be used.
pub(super) fn is_usable(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Failed { .. } | Outcome::Missed { .. })
}
