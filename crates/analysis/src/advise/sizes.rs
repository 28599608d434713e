//! At which sizes another mechanism becomes the best.

use super::measured::is_usable;
use super::ranking::over;
use model::estimate::Estimate;
use model::record::Record;
use model::{Pace, Size, Spec, Workload};
use serde::Serialize;
use std::collections::BTreeMap;

/// A size from which another mechanism is the best.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeChange {
    /// The best for smaller messages.
    pub below: Spec,
    /// The best for larger ones.
    pub above: Spec,
    /// The size, and its interval; without one where the times themselves have none.
    pub size_bytes: Estimate,
    /// The measured sizes between which it lies.
    pub between: (Size, Size),
}

/// The sizes at which the best of `specs` in `workload` changes. Sizes at which the best is not surely better than each other say
/// nothing. Between two that do, the logarithm of the time is taken to be a straight line over the logarithm of the size. Of
/// several records of a case the last counts.
pub fn size_changes(specs: &[Spec], workload: Workload, records: &[Record]) -> Vec<SizeChange> {
    let mut by_size: BTreeMap<Size, Vec<(&Spec, Estimate)>> = BTreeMap::new();
    for record in records {
        let case = &record.case;
        let is_meant =
            case.workload == workload && case.pace == Pace::BackToBack && is_usable(&record.outcome);
        let spec = specs.iter().find(|spec| **spec == case.spec);
        let (Some(size), Some(spec), Some(summary)) = (case.size_bytes, spec, &record.summary) else {
            continue;
        };
        if is_meant {
            let times = by_size.entry(size).or_default();
            times.retain(|(known, _)| *known != spec);
            times.push((spec, summary.iteration_ns));
        }
    }
    // Where one is missing, it cannot be known to be the best.
    let is_sure = |times: &Vec<(&Spec, Estimate)>| {
        let Some(best) = best_of(times) else { return false };
        let others = times.iter().filter(|(spec, _)| *spec != best.0);
        times.len() == specs.len()
            && others
                .map(|(_, time)| over(*time, best.1))
                .all(|ratio| ratio.interval.is_some_and(|(low, _)| low > 1.0))
    };
    let sure = by_size.iter().filter(|(_, times)| is_sure(times));
    let sizes: Vec<AtSize<'_>> = sure.map(|(size, times)| (*size, times)).collect();
    sizes.windows(2).filter_map(|pair| change(pair[0], pair[1])).collect()
}

type AtSize<'a> = (Size, &'a Vec<(&'a Spec, Estimate)>);

fn change(first: AtSize<'_>, second: AtSize<'_>) -> Option<SizeChange> {
    let (below, above) = (best_of(first.1)?.0, best_of(second.1)?.0);
    if below == above {
        return None;
    }
    let ratio = |times: &[(&Spec, Estimate)]| {
        let time_of = |spec: &Spec| times.iter().find(|(known, _)| *known == spec).map(|(_, time)| *time);
        Some(over(time_of(above)?, time_of(below)?))
    };
    // The logarithm of the ratio falls from above 0 to below it.
    let (before, after) = (ratio(first.1)?, ratio(second.1)?);
    let (from, to) = ((first.0.0 as f64).ln(), (second.0.0 as f64).ln());
    let crossing = |before: f64, after: f64| {
        let (before, after) = (before.ln(), after.ln());
        let share = if before <= 0.0 {
            0.0
        } else if after >= 0.0 {
            1.0
        } else {
            before / (before - after)
        };
        (from + share * (to - from)).exp()
    };
    let interval = before.interval.zip(after.interval);
    let interval = interval.map(|(before, after)| (crossing(before.0, after.0), crossing(before.1, after.1)));
    Some(SizeChange {
        below: below.clone(),
        above: above.clone(),
        size_bytes: Estimate { median: crossing(before.median, after.median), interval },
        between: (first.0, second.0),
    })
}

fn best_of<'a>(times: &[(&'a Spec, Estimate)]) -> Option<(&'a Spec, Estimate)> {
    times.iter().min_by(|a, b| a.1.median.total_cmp(&b.1.median)).copied()
}
