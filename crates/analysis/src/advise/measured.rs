//! What was measured of a mechanism, as far as a need asks for it.

use model::estimate::Estimate;
use model::need::{Need, Objective, Pattern};
use model::record::Record;
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
    pub cpu_ns: Option<f64>,
    /// The time of a message in a stream, in nanoseconds.
    pub message_ns: Option<Estimate>,
}

impl Measured {
    /// What is to be small for `objective`.
    pub fn time(&self, objective: Objective) -> Option<Estimate> {
        match objective {
            Objective::Latency => self.round_trip_ns,
            Objective::Cpu => self.cpu_ns.map(|median| Estimate { median, interval: None }),
            Objective::Throughput => self.message_ns,
        }
    }

    /// Whether it is nowhere better than `other`, and somewhere worse. What was not measured is worse than anything.
    pub fn is_dominated_by(&self, other: &Measured) -> bool {
        let all = |of: &Measured| {
            Objective::ALL.map(|objective| of.time(objective).map_or(f64::INFINITY, |time| time.median))
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
    let summary = |record: Option<&Record>| {
        record.filter(|record| is_usable(&record.outcome)).and_then(|record| record.summary.clone())
    };
    let (round_trips, stream) = (summary(round_trips), summary(stream));
    let first = if is_stream { &stream } else { &round_trips };
    let first = first.as_ref()?;
    Some(Measured {
        spec: spec.clone(),
        round_trip_ns: round_trips.as_ref().map(|summary| summary.iteration_ns),
        cpu_ns: Some(first.cpu_ns()).filter(|cpu| *cpu > 0.0),
        message_ns: stream.as_ref().map(|summary| summary.iteration_ns),
    })
}

/// Whether the numbers of a case that ended so may be used.
pub(super) fn is_usable(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Failed { .. } | Outcome::Missed { .. })
}
