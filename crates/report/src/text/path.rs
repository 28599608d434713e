//! The critical path of an iteration in words and tables: its segments, what observing them cost, how samples split them, what
//! makes iterations slow, and how control cases check single terms.

use super::grid::Grid;
use crate::quantity::{count, mean_time, percent, signed_mean_time, time, time_or_signed, whole_interval};
use crate::words::clean;
use analysis::explain::{CrossCheck, Explanation};
use analysis::interval::MeanEstimate;
use analysis::path::{
    CallSplit, DoseSwitches, PathSum, RateTrials, SegmentPlace, SegmentSum, SlowIterations, TwoGroups,
};
use model::estimate::Estimate;
use model::units::three_digits;
use std::collections::BTreeMap;

/// The reasons that are put into words.
const REASONS: usize = 3;
/// A residual whose interval does not come within this share of the iteration is explained.
const LARGE_RESIDUAL: f64 = 0.1;
/// How many tasks are named.
const TASKS: usize = 3;

/// What no segment stands for.
pub(crate) const RESIDUAL: &str = "residual";
/// The segments that are too short for a line each.
pub(crate) const MINOR: &str = "shorter segments together";

/// The names of calls by their numbers.
pub(crate) type CallNames = BTreeMap<u32, String>;

/// `place` in words.
pub(crate) fn place_name(place: SegmentPlace, calls: &CallNames) -> String {
    clean(&place.name(|call| calls.get(&call).cloned().unwrap_or_else(|| format!("call {call}"))))
}

/// All tables of the path of `explanation`.
pub(crate) fn tables(explanation: &Explanation) -> Vec<Grid> {
    let Some(path) = &explanation.path else { return Vec::new() };
    let calls = &explanation.call_names;
    let optional = [
        (!explanation.splits.is_empty()).then(|| splits(&explanation.splits, &explanation.sampling_rates)),
        explanation.slow.as_ref().map(|slow| slow_iterations(slow, calls)),
        explanation.groups.as_ref().map(|groups| two_groups(groups, calls)),
        (!explanation.checks.is_empty()).then(|| checks(&explanation.checks)),
    ];
    let own = [segments(path, calls, heading(path)), costs(path)];
    own.into_iter().chain(optional.into_iter().flatten()).collect()
}

/// The largest segments, in words.
pub(crate) fn reasons(path: &PathSum, calls: &CallNames) -> Vec<String> {
    let mut largest: Vec<(SegmentPlace, &SegmentSum)> =
        path.segments.iter().filter_map(|line| Some((line.place?, line))).collect();
    largest.sort_by(|(_, a), (_, b)| b.corrected_ns.mean.total_cmp(&a.corrected_ns.mean));
    let reason = |(at, (place, line)): (usize, (SegmentPlace, &SegmentSum))| {
        format!(
            "{}. {} of an iteration, {}: {}.",
            at + 1,
            percent(line.share),
            mean_time(line.corrected_ns).unwrap_or_default(),
            place_name(place, calls)
        )
    };
    let sure = largest.into_iter().filter(|(_, line)| line.corrected_ns.is_above(0.0));
    sure.take(REASONS).enumerate().map(reason).collect()
}

/// The largest segments of `path` alone.
pub(crate) fn brief(path: &PathSum, explanation: &Explanation) -> Grid {
    let mut large = path.clone();
    large.segments = path.brief();
    let mut grid = segments(&large, &explanation.call_names, heading(path));
    // How it was recorded is for who wants all of it.
    grid.below.truncate(1);
    grid
}

fn heading(path: &PathSum) -> String {
    format!("where the time goes: {} per iteration", time(path.bare_ns.mean).unwrap_or_default())
}

/// The segments of `path`, their sum, and the iteration without an instrument.
pub(crate) fn segments(path: &PathSum, calls: &CallNames, heading: String) -> Grid {
    let row = |line: &SegmentSum| {
        let name = line.place.map_or_else(|| MINOR.to_owned(), |place| place_name(place, calls));
        let cells = [
            time(line.observed_ns.mean),
            count(line.events),
            signed_or_time(line.corrected_ns),
            Some(percent(line.share)),
        ];
        (name, cells.map(Option::unwrap_or_default).to_vec())
    };
    let whole = |name: &str, observed: Option<MeanEstimate>, corrected: Option<String>, share: String| {
        let observed = observed.and_then(|of| time(of.mean)).unwrap_or_default();
        (name.to_owned(), vec![observed, String::new(), corrected.unwrap_or_default(), share])
    };
    let bare = path.bare_ns.mean;
    let rows = path.segments.iter().map(row).chain([
        whole(
            "sum",
            Some(path.observed_ns),
            mean_time(path.corrected_ns),
            percent(path.corrected_ns.mean / bare),
        ),
        whole("iteration without probes", None, mean_time(path.bare_ns), percent(1.0)),
        whole(
            RESIDUAL,
            None,
            signed_mean_time(path.residual_ns),
            signed_percent(path.residual_ns.mean / bare),
        ),
    ]);
    Grid {
        heading,
        columns: ["observed", "events", "corrected", "share"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
        below: notes(path),
    }
}

/// A time with its interval; below 0 with its sign.
fn signed_or_time(of: MeanEstimate) -> Option<String> {
    if of.mean < 0.0 { signed_mean_time(of) } else { mean_time(of) }
}

fn signed_percent(share: f64) -> String {
    let sign = if share < 0.0 { '-' } else { '+' };
    format!("{sign}{}", percent(share.abs()))
}

fn notes(path: &PathSum) -> Vec<String> {
    let left_out = match path.rounds_left_out {
        0 => String::new(),
        rounds => format!("; {rounds} more were disturbed and left out"),
    };
    let mut notes = vec![format!(
        "The path of {} iterations in {} trials{left_out}. Observed segments add up to exactly the observed iteration. \
         Corrected: less what recording the events in a segment cost.",
        path.iterations, path.rounds
    )];
    if path.residual_ns.interval.is_none() {
        notes.push("There were too few rounds for intervals: give it more with --time.".to_owned());
    }
    notes.push(match path.is_tested {
        true => {
            "The costs come from other trials than those that they are taken from: the residual is a test."
                .to_owned()
        }
        false => "The costs come from the same trials that they are taken from: the residual tests nothing."
            .to_owned(),
    });
    if path.unfollowed > 0 {
        notes.push(format!(
            "In {} of these iterations it is not known throughout whom the server served: what it did for other clients may be \
             among its own segments.",
            path.unfollowed
        ));
    }
    notes.extend(schedule_changes(path));
    let bound = LARGE_RESIDUAL * path.bare_ns.mean;
    if path.residual_ns.interval.is_some_and(|(low, high)| low > bound || high < -bound) {
        notes.push(
            "The residual is large: recording all sets at once costs more or less than each alone, or changes what is \
             recorded, as when an endpoint finds its peer still awake."
                .to_owned(),
        );
    }
    if !path.merged.is_empty() {
        notes.push(format!("Not distinguished: {}.", path.merged.join("; ")));
    }
    let tasks = path.tasks.iter().take(TASKS);
    let tasks: Vec<String> =
        tasks.map(|(name, ns)| format!("{} {}", clean(name), time(*ns).unwrap_or_default())).collect();
    if !tasks.is_empty() {
        notes.push(format!(
            "Other tasks that had the CPU of an endpoint that could run: {}.",
            tasks.join(", ")
        ));
    }
    notes
}

/// What recording does to the schedule, if it changes it.
fn schedule_changes(path: &PathSum) -> Option<String> {
    let (changes, bare) = (path.schedule_changes(), path.bare_switches()?);
    let dose = |of: &&DoseSwitches| {
        let sets = of.dose.iter().flatten().map(|set| set.name());
        let sets: Vec<&str> = sets.collect();
        let recorded = if sets.is_empty() {
            "an instrument that records nothing".to_owned()
        } else {
            sets.join(" and ")
        };
        format!("{} with {recorded}", three_digits(of.switches.mean))
    };
    let doses: Vec<String> = changes.iter().map(dose).collect();
    (!doses.is_empty()).then(|| {
        format!(
            "Recording changes the schedule: an iteration has {} context switches without probes, and {}. What further \
             switches take is not counted as a cost of events.",
            three_digits(bare.mean),
            doses.join(", ")
        )
    })
}

/// What recording cost.
fn costs(path: &PathSum) -> Grid {
    let mut rows: Vec<(String, Vec<String>)> = path
        .costs
        .iter()
        .map(|cost| {
            let cells = [
                signed_mean_time(cost.iteration_ns),
                count(cost.events),
                cost.event_ns.and_then(signed_mean_time),
            ];
            (cost.set.name().to_owned(), cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned())).to_vec())
        })
        .collect();
    let once = |name: &str, ns| {
        let cost = signed_mean_time(ns).unwrap_or_default();
        (name.to_owned(), vec![cost, "-".to_owned(), "-".to_owned()])
    };
    let ahead = [Some(once("none", path.base_ns)), path.common_ns.map(|ns| once("in common, once", ns))];
    rows.splice(0..0, ahead.into_iter().flatten());
    Grid {
        heading: "what recording events costs, by dose".to_owned(),
        columns: ["per iteration", "events on the path", "one event"].map(str::to_owned).to_vec(),
        rows,
        below: vec![
            "Nothing is taken from the path for a set with fewer than one event in ten iterations: its cost cannot be placed.".to_owned(),
        ],
    }
}

/// The calls on the path, split by samples.
fn splits(splits: &[CallSplit], rates: &[RateTrials]) -> Grid {
    let mut rows = Vec::new();
    for split in splits {
        let name = format!("{}: {}", split.of.name(), clean(&split.call));
        rows.push((
            name,
            vec![
                mean_time(split.path_ns).unwrap_or_default(),
                format!("{} samples", split.samples),
                String::new(),
            ],
        ));
        rows.extend(split.parts.iter().map(|part| {
            let cells = [
                time(part.ns).unwrap_or_default(),
                percent(part.share.mean),
                part.share.interval.map(whole_interval).unwrap_or_default(),
            ];
            (format!("  {}", part.subsystem.name()), cells.to_vec())
        }));
    }
    Grid {
        heading: "what calls on the path are spent on, by samples".to_owned(),
        columns: ["on the path", "share", "interval"].map(str::to_owned).to_vec(),
        rows,
        below: vec![
            extrapolated(rates),
            "A sample is in a call, and does not say in which segment of it. On two CPUs, what a call does off the path is in \
             its shares too."
                .to_owned(),
        ],
    }
}

/// From which rates shares are extrapolated, and what they are otherwise.
pub(crate) fn extrapolated(rates: &[RateTrials]) -> String {
    let at = |of: &RateTrials| format!("{} at {}", of.trials, of.rate.name());
    let trials: Vec<String> = rates.iter().map(at).collect();
    format!(
        "Shares are extrapolated to no samples, by a line through trials: {} of the highest rate. A share without an interval \
         is that of all samples: there are too few trials for a line, or none differs from another.",
        trials.join(", ")
    )
}

/// What makes the slowest iterations slow.
fn slow_iterations(slow: &SlowIterations, calls: &CallNames) -> Grid {
    let rows = slow.segments.iter().map(|segment| {
        let in_many = format!("{} of {}", segment.count, slow.count);
        (place_name(segment.place, calls), vec![in_many, time_or_signed(segment.grew_ns)])
    });
    Grid {
        heading: "what makes slow iterations slow".to_owned(),
        columns: ["grew most in", "by"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
        below: vec![format!(
            "Of each trial the slowest hundredth: {} iterations, as observed, of {} in the mean, where the others take {}.",
            slow.count,
            time(slow.mean_ns).unwrap_or_default(),
            time(slow.others_ns).unwrap_or_default()
        )],
    }
}

/// What differs between two groups of iterations.
fn two_groups(groups: &TwoGroups, calls: &CallNames) -> Grid {
    let rows = groups.segments.iter().map(|segment| {
        let cell = |ns: f64, share: f64| format!("{} in {}", time(ns).unwrap_or_default(), percent(share));
        let cells =
            vec![cell(segment.fast_ns, segment.fast_share), cell(segment.slow_ns, segment.slow_share)];
        (place_name(segment.place, calls), cells)
    });
    Grid {
        heading: "two groups of iterations, and what differs".to_owned(),
        columns: ["fast", "slow"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
        below: vec![format!(
            "{} of the iterations take {}, the others {}, as observed; {} of {} trials have both. A time is of a segment in the \
             mean of the group, a share that of its iterations that have the segment.",
            percent(groups.fast_share),
            time(groups.fast_ns).unwrap_or_default(),
            time(groups.slow_ns).unwrap_or_default(),
            groups.mixed_trials,
            groups.trials
        )],
    }
}

/// Differences of control cases beside the path.
fn checks(checks: &[CrossCheck]) -> Grid {
    let as_mean = |of: Estimate| MeanEstimate { mean: of.median, interval: of.interval };
    let row = |check: &CrossCheck| {
        let verdict = if check.agrees { "agree" } else { "do not agree" };
        let cells = [
            mean_time(check.by_path_ns).unwrap_or_default(),
            signed_or_time(as_mean(check.by_difference_ns)).unwrap_or_default(),
            verdict.to_owned(),
        ];
        (check.term.name().to_owned(), cells.to_vec())
    };
    let differences =
        checks.iter().map(|check| format!("{}: {}", check.term.name(), clean(&check.difference)));
    Grid {
        heading: "checked by differences of cases".to_owned(),
        columns: ["path and samples", "difference", ""].map(str::to_owned).to_vec(),
        rows: checks.iter().map(row).collect(),
        below: vec![
            format!("Differences: {}.", differences.collect::<Vec<_>>().join("; ")),
            "A control case differs in more than what it leaves out: an endpoint that does not sleep keeps its caches.".to_owned(),
        ],
    }
}
