//! The measured cases that predictions rest on, as costs by size: how long an iteration takes, and what it costs each end.

use crate::missed_settings::{MissedSetting, missed_in_records};
use crate::run::RunModel;
use crate::summary::summarise;
use model::record::{Outcome, Record};
use model::{Case, Endpoints, Pace, Peers, Placement, Spec, Workload};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Where client and server of a case run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndPlace {
    /// On one CPU.
    OneCpu,
    /// Each on its own.
    TwoCpus,
}

impl fmt::Display for EndPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EndPlace::OneCpu => "on one CPU",
            EndPlace::TwoCpus => "on two CPUs",
        })
    }
}

/// What a round trip takes, or a message of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct MessageCost {
    /// How long, in nanoseconds.
    pub elapsed_ns: f64,
    /// The CPU time of the sender.
    pub client_ns: f64,
    /// That of the receiver.
    pub server_ns: f64,
    /// By how much the time may be off, as a standard deviation; CPU times by the same share.
    pub error_ns: f64,
}

impl MessageCost {
    /// So much of it.
    pub(super) fn times(self, share: f64) -> Self {
        Self {
            elapsed_ns: share * self.elapsed_ns,
            client_ns: share * self.client_ns,
            server_ns: share * self.server_ns,
            error_ns: share * self.error_ns,
        }
    }

    /// Both, which are off alike.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            elapsed_ns: self.elapsed_ns + other.elapsed_ns,
            client_ns: self.client_ns + other.client_ns,
            server_ns: self.server_ns + other.server_ns,
            error_ns: self.error_ns + other.error_ns,
        }
    }

    /// By which share of it all three may be off.
    pub(super) fn error(self) -> f64 {
        if self.elapsed_ns > 0.0 { self.error_ns / self.elapsed_ns } else { 0.0 }
    }
}

/// What cases have in common that differ in the size alone.
type CostKey = (Spec, Workload, EndPlace);

/// The costs of cases, by what they have in common and by size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredCosts {
    cases: BTreeMap<CostKey, BTreeMap<u64, MessageCost>>,
    missed: Vec<MissedSetting>,
}

impl MeasuredCosts {
    /// Adds the costs that `records` of one run tell, in the place of those that were known before.
    pub fn add_run(&mut self, records: &[Record]) {
        let model =
            RunModel::of_records(records.iter().map(|record| (&record.case, record.samples.as_slice())));
        let measured = records.iter().filter(|record| !matches!(record.outcome, Outcome::Failed { .. }));
        let priced: Vec<(CostKey, &Record)> =
            measured.filter_map(|record| Some((key(&record.case)?, record))).collect();
        for (key, record) in &priced {
            if let Some(cost) = cost(record, &model) {
                let bytes = record.case.size_bytes.map_or(0, |size| size.0);
                self.add(key.clone(), bytes, cost);
            }
        }
        for missed in missed_in_records(priced.into_iter().map(|(_, record)| record)) {
            if !self.missed.contains(&missed) {
                self.missed.push(missed);
            }
        }
    }

    /// Whether `case` was measured.
    pub fn has(&self, case: &Case) -> bool {
        let bytes = case.size_bytes.map_or(0, |size| size.0);
        key(case).and_then(|key| self.cases.get(&key)).is_some_and(|sizes| sizes.contains_key(&bytes))
    }

    /// Adds what an iteration of `bytes` costs.
    pub(super) fn add(&mut self, key: CostKey, bytes: u64, cost: MessageCost) {
        self.cases.entry(key).or_default().insert(bytes, cost);
    }

    /// The settings of `specs` that are not as asked, or not as usual, in what was measured.
    pub(super) fn missed(&self, specs: &[&Spec]) -> Vec<MissedSetting> {
        self.missed.iter().filter(|missed| specs.contains(&&missed.mechanism)).cloned().collect()
    }

    /// The sizes at which iterations were measured, ascending.
    pub(super) fn sizes(&self, key: &CostKey) -> Vec<u64> {
        self.cases.get(key).map(|sizes| sizes.keys().copied().collect()).unwrap_or_default()
    }

    /// What an iteration of `bytes` costs: on the straight line through the measured sizes next to it. `None` where none was measured.
    pub(super) fn at(&self, key: &CostKey, bytes: f64) -> Option<MessageCost> {
        let sizes = self.cases.get(key)?;
        let points: Vec<(f64, MessageCost)> =
            sizes.iter().map(|(size, cost)| (*size as f64, *cost)).collect();
        let next = points.partition_point(|(size, _)| *size < bytes).clamp(1, points.len().max(2) - 1);
        let [(from, low), (until, high)] = match points.get(next - 1..=next) {
            Some([low, high]) => [*low, *high],
            // One size costs what any does.
            _ => return points.first().map(|(_, cost)| *cost),
        };
        // Smaller than what was measured costs as much.
        let share = ((bytes - from) / (until - from)).max(0.0);
        Some(low.times(1.0 - share).and(high.times(share)))
    }
}

/// What `case` is a cost of; `None` of a case on which no prediction rests.
fn key(case: &Case) -> Option<CostKey> {
    let is_plain = case.pace == Pace::BackToBack
        && case.inject.is_none()
        && case.endpoints == Endpoints::Processes
        && case.peers == Peers::Pair
        && case.placement != Placement::Unpinned;
    let cpus = case.cpus.filter(|_| is_plain)?;
    let place = if cpus.client == cpus.server { EndPlace::OneCpu } else { EndPlace::TwoCpus };
    let is_priced = matches!(case.workload, Workload::Latency | Workload::Throughput);
    is_priced.then(|| (case.spec.clone(), case.workload, place))
}

fn cost(record: &Record, model: &RunModel) -> Option<MessageCost> {
    /// Half the width of a 95% interval, in standard deviations.
    const NORMAL: f64 = 1.96;
    let summary = summarise(&record.case, &record.samples, model)?;
    let elapsed_ns = summary.iteration_ns.median;
    Some(MessageCost {
        elapsed_ns,
        client_ns: summary.client.cpu_ns,
        server_ns: summary.server.map_or(0.0, |server| server.cpu_ns),
        // What has no interval may be off by all of it.
        error_ns: elapsed_ns * summary.iteration_ns.half_width().unwrap_or(1.0) / NORMAL,
    })
}
