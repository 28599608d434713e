//! The recommendation: the candidates in their order, and all that a reader needs to trust it or to take another.

use super::measured::{Measured, cpu_ns, is_usable, measured, record_of};
use super::ranking::{CLOSE, best_of, over};
use super::sizes::{SizeChange, size_changes};
use crate::missed_settings::{MissedSetting, missed_in_records};
use model::estimate::Estimate;
use model::need::{Cause, Exclusion, Need, Objective, Pattern};
use model::record::Record;
use model::scenario::HeldBack;
use model::{Outcome, Pace, Spec};
use serde::Serialize;

/// What is recommended for a need, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// The need.
    pub need: Need,
    /// Where the processes ran.
    pub placement: String,
    /// The candidates with their parameters at their defaults, the best first.
    pub ranked: Vec<Ranked>,
    /// Whether the best is told from all that are more than 5% worse.
    pub told_apart: bool,
    /// What was not offered, and why.
    pub excluded: Vec<Exclusion>,
    /// The sizes at which the answer changes, ascending.
    pub changes: Vec<SizeChange>,
    /// The sizes at which that was measured, in bytes.
    pub sizes_tried: Vec<u64>,
    /// What settings of the best change.
    pub knobs: Vec<Knob>,
    /// What it costs to take the second.
    pub second: Option<CostOfAnother>,
    /// What it costs to take the last.
    pub worst: Option<CostOfAnother>,
    /// The settings with which something of it was measured that are not as asked, or not as usual.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<MissedSetting>,
    /// How long, and how often, the flow of a recorded program that it is for waits for acknowledgements, which is no matter of the
    /// mechanism; absent where it does not, and of no flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
}

/// A candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    /// What was measured.
    #[serde(flatten)]
    pub measured: Measured,
    /// What is optimised, over that of the best.
    pub over_best: Estimate,
    /// How it stands to the best.
    pub standing: Standing,
    /// Whether no other candidate is better in something and nowhere worse.
    pub on_front: bool,
}

/// How a candidate stands to the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It is the best.
    Best,
    /// It cannot be told from the best.
    NotToldApart,
    /// It is within 5% of the best.
    Close,
    /// It is worse.
    Worse,
}

/// What a setting changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Knob {
    /// The mechanism with the setting.
    pub spec: Spec,
    /// The time with the setting over that without, of messages that follow one another at once.
    pub time_ratio: Estimate,
    /// CPU time likewise.
    pub cpu_ratio: Option<Estimate>,
}

/// What it costs to take another candidate than the best.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostOfAnother {
    /// The candidate.
    pub spec: Spec,
    /// What is optimised, over that of the best.
    pub over_best: Estimate,
}

/// What to take for `need`, of `candidates` that were measured as `records` say. `excluded` were not measured.
pub fn recommend(
    need: &Need,
    placement: &str,
    candidates: &[Spec],
    records: &[Record],
    excluded: Vec<Exclusion>,
) -> Recommendation {
    let mut excluded = excluded;
    let mut times: Vec<(Measured, Estimate)> = Vec::new();
    for spec in candidates {
        match measured_or_cause(need, spec, records) {
            Ok(candidate) => times.push(candidate),
            Err((cause, reason)) => {
                excluded.push(Exclusion { mechanism: spec.to_string(), cause, reason });
            }
        }
    }
    times.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
    best_first(&mut times);
    plainest_first(&mut times, candidates);
    let ranked = ranked(&times);
    let told_apart = !ranked.is_empty()
        && ranked.iter().skip(1).all(|candidate| match candidate.standing {
            Standing::NotToldApart => false,
            Standing::Best | Standing::Close | Standing::Worse => true,
        });
    let cost = |candidate: &Ranked| CostOfAnother {
        spec: candidate.measured.spec.clone(),
        over_best: candidate.over_best,
    };
    let workload = need.workload();
    let compared = compared(candidates, records, need);
    let mut sizes_tried: Vec<u64> = records
        .iter()
        .filter(|record| compared.contains(&record.case.spec) && record.case.workload == workload)
        .filter_map(|record| record.case.size_bytes.map(|size| size.0))
        .collect();
    sizes_tried.sort_unstable();
    sizes_tried.dedup();
    let usable = records.iter().filter(|record| is_usable(&record.outcome));
    let is_sized = need.pattern != Pattern::Signal && compared.len() > 1 && sizes_tried.len() > 1;
    Recommendation {
        need: need.clone(),
        placement: placement.to_owned(),
        told_apart,
        changes: if is_sized { size_changes(&compared, workload, records) } else { Vec::new() },
        sizes_tried: if is_sized { sizes_tried } else { Vec::new() },
        knobs: knobs(need, candidates, records),
        second: ranked.get(1).map(cost),
        worst: worst(&ranked).filter(|_| ranked.len() > 2).map(cost),
        ranked,
        excluded,
        settings: missed_in_records(usable),
        held_back: None,
    }
}

/// What was measured of `spec` and what of it is optimised; or why it is not offered.
fn measured_or_cause(
    need: &Need,
    spec: &Spec,
    records: &[Record],
) -> Result<(Measured, Estimate), (Cause, String)> {
    let workload = need.pattern.workload();
    let bare = record_of(records, spec, workload, need.size, Pace::BackToBack);
    let paced = record_of(records, spec, workload, need.size, need.pace());
    for record in [bare, paced].into_iter().flatten() {
        match &record.outcome {
            Outcome::Failed { error } => {
                let first = error.lines().next().unwrap_or_default();
                return Err((Cause::Failed, format!("failed: {first}")));
            }
            Outcome::Missed { achieved } => {
                return Err((Cause::Rate, format!("holds {:.0}% of the rate", achieved * 100.0)));
            }
            _ => {}
        }
    }
    let bare_ns = bare.and_then(|record| record.summary.as_ref()).map(|summary| summary.iteration_ns);
    if let Some((rate, bare_ns)) = need.rate.zip(bare_ns) {
        let least_ns = bare_ns.interval.map_or(bare_ns.median, |(low, _)| low);
        if least_ns > rate.interval_ns() {
            let what = if need.pattern == Pattern::Stream { "a message" } else { "a round trip" };
            return Err((Cause::Rate, format!("{what} takes longer than the rate leaves for one")));
        }
    }
    if paced.is_none() && bare_ns.is_some() {
        return Err((Cause::Slower, "slower without a pause than those tried at the rate".to_owned()));
    }
    let Some(measured) = measured(need, spec, records) else {
        return Err((Cause::Failed, "was not measured in the time".to_owned()));
    };
    match measured.time(need.objective) {
        Some(time) => Ok((measured, time)),
        None => Err((Cause::Pattern, format!("has no number for {}", need.objective))),
    }
}

/// Puts the best first.
fn best_first(times: &mut [(Measured, Estimate)]) {
    let all: Vec<Estimate> = times.iter().map(|(_, time)| *time).collect();
    if let Some(best) = best_of(&all) {
        times[..=best].rotate_right(1);
    }
}

/// Of those that cannot be told from the best, or are within 5% of it, puts the plainest first: the first of `candidates`, which are in the
/// order of the registry, that is no other way of doing what another does, as `pipe-vmsplice` is of `pipe`.
fn plainest_first(times: &mut [(Measured, Estimate)], candidates: &[Spec]) {
    let Some((_, best)) = times.first() else { return };
    let is_variant = |spec: &Spec| {
        candidates
            .iter()
            .any(|other| spec.name.strip_prefix(&other.name).is_some_and(|end| end.starts_with('-')))
    };
    let is_as_good = |at: usize, time: Estimate| {
        time.interval.is_some() && !matches!(standing(at, over(time, *best)), Standing::Worse)
    };
    let rank = |spec: &Spec| (is_variant(spec), candidates.iter().position(|candidate| candidate == spec));
    let as_good = times.iter().enumerate().filter(|(at, (_, time))| *at == 0 || is_as_good(*at, *time));
    if let Some((at, _)) = as_good.min_by_key(|(_, (measured, _))| rank(&measured.spec)) {
        times[..=at].rotate_right(1);
    }
}

/// The candidate that takes longest.
fn worst(ranked: &[Ranked]) -> Option<&Ranked> {
    ranked.iter().max_by(|a, b| a.over_best.median.total_cmp(&b.over_best.median))
}

/// The candidates in order, each with its standing. The first of `times` is the best.
fn ranked(times: &[(Measured, Estimate)]) -> Vec<Ranked> {
    let Some((_, best)) = times.first() else { return Vec::new() };
    let rank = |(at, (measured, time)): (usize, &(Measured, Estimate))| {
        let over_best = if at == 0 { Estimate { median: 1.0, interval: None } } else { over(*time, *best) };
        Ranked {
            measured: measured.clone(),
            over_best,
            standing: standing(at, over_best),
            on_front: !times.iter().any(|(other, _)| measured.is_dominated_by(other)),
        }
    };
    times.iter().enumerate().map(rank).collect()
}

/// How a candidate stands that takes `over_best` times what the best takes.
fn standing(at: usize, over_best: Estimate) -> Standing {
    match over_best.interval {
        _ if at == 0 => Standing::Best,
        Some((_, high)) if high <= 1.0 + CLOSE => Standing::Close,
        Some((low, _)) if low > 1.0 && over_best.median <= 1.0 + CLOSE => Standing::Close,
        Some((low, _)) if low > 1.0 => Standing::Worse,
        _ => Standing::NotToldApart,
    }
}

/// The candidates that were measured at more than one size.
fn compared(candidates: &[Spec], records: &[Record], need: &Need) -> Vec<Spec> {
    let workload = need.workload();
    let has_others = |spec: &&Spec| {
        records.iter().any(|record| {
            let case = &record.case;
            case.spec == **spec
                && case.workload == workload
                && case.size_bytes.is_some_and(|size| size != need.size)
                && is_usable(&record.outcome)
                && record.summary.is_some()
        })
    };
    candidates.iter().filter(has_others).cloned().collect()
}

/// What settings change, the most useful first. A setting is compared with the candidate of its mechanism, by the record that was measured
/// beside it, the last.
fn knobs(need: &Need, candidates: &[Spec], records: &[Record]) -> Vec<Knob> {
    let workload = need.workload();
    let measured = |spec: &Spec| {
        let record = record_of(records.iter().rev(), spec, workload, need.size, Pace::BackToBack)?;
        let time = record.summary.as_ref().filter(|_| is_usable(&record.outcome))?.iteration_ns;
        Some((time, cpu_ns(record)))
    };
    let mut knobs: Vec<Knob> = Vec::new();
    for record in records.iter().filter(|record| !candidates.contains(&record.case.spec)) {
        let spec = &record.case.spec;
        let plain = candidates.iter().find(|candidate| candidate.name == spec.name);
        let (Some((time, cpu)), Some((plain_time, plain_cpu))) = (measured(spec), plain.and_then(measured))
        else {
            continue;
        };
        if knobs.iter().any(|known| known.spec == *spec) {
            continue;
        }
        let cpu_ratio = cpu.zip(plain_cpu).map(|(with, without)| over(with, without));
        let time_ratio = over(time, plain_time);
        knobs.push(Knob { spec: spec.clone(), time_ratio, cpu_ratio });
    }
    let gain = |knob: &Knob| match need.objective {
        Objective::Cpu => knob.cpu_ratio.map_or(f64::INFINITY, |ratio| ratio.median),
        Objective::Latency | Objective::Throughput => knob.time_ratio.median,
    };
    knobs.sort_by(|a, b| gain(a).total_cmp(&gain(b)));
    knobs
}
