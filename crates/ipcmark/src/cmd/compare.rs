//! `ipcmark compare`: two results files, or two mechanisms measured in turn.

use super::run::{by_hand, launcher, nothing_left, restrict, row, watch_signals};
use crate::cli::Compare;
use crate::collector;
use crate::exit::{Error, Exit};
use crate::output::{print, style};
use crate::progress::Progress;
use crate::results_file;
use analysis::compare::{
    ComparisonOptions, ComparisonVerdict, PairedRatios, compare, compare_paired, failures, round_log_ratios,
};
use harness::in_turn::{self, Pair};
use harness::run::slice_for;
use harness::run_directory::RunDirectory;
use mechanisms::registry::{self, CARDS};
use model::plan::{Plan, plan};
use model::{Case, Invalid, Sample, Spec};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The precision of a ratio, and the time for it, when none are given.
const PRECISION: f64 = 0.01;
const TIME: Duration = Duration::from_secs(30);

/// Compares the files, or the mechanisms, that `arguments` name.
pub fn run(arguments: &Compare) -> Result<Exit, Error> {
    match (spec(&arguments.before), spec(&arguments.after)) {
        (Some(before), Some(after)) => mechanisms_in_turn(arguments, &before?, &after?),
        (None, None) => files(arguments),
        _ => Err(Invalid::new(
            format!("'{}' and '{}' are not of one kind", arguments.before, arguments.after),
            "name two results files, or two mechanisms",
        )
        .into()),
    }
}

/// The row that `text` names, unless it is the name of a file; `None` for files.
fn spec(text: &str) -> Option<Result<Spec, Invalid>> {
    let name = text.split(':').next().unwrap_or(text);
    let is_row = registry::card(name).is_some() && !Path::new(text).exists();
    is_row.then(|| Spec::parse(text, CARDS))
}

fn files(arguments: &Compare) -> Result<Exit, Error> {
    let before = results_file::read(Path::new(&arguments.before))?;
    let after = results_file::read(Path::new(&arguments.after))?;
    let comparison = compare(&before, &after, ComparisonOptions::default());
    print(&match arguments.json {
        true => format!("{:#}\n", serde_json::json!(comparison)),
        false => report::comparison(&comparison, &style()),
    })?;
    let slower = arguments.fail_above.is_some_and(|above| !failures(&comparison, above).is_empty());
    Ok(if slower { Exit::Slower } else { Exit::Success })
}

fn mechanisms_in_turn(arguments: &Compare, before: &Spec, after: &Spec) -> Result<Exit, Error> {
    let [before_plan, after_plan] = [planned(arguments, before)?, planned(arguments, after)?];
    let mut pairs = paired(&before_plan, &after_plan);
    if pairs.is_empty() {
        let dropped = [before_plan.dropped, after_plan.dropped].concat();
        return Err(nothing_left(&Plan { dropped, ..Plan::default() }).into());
    }
    let time = arguments.effort.time.unwrap_or(TIME);
    let precision = arguments.effort.precision.map_or(PRECISION, |precision| precision.0);
    let interrupted = watch_signals()?;
    let directory = RunDirectory::create()?;
    let launcher = launcher(&directory, &interrupted, arguments.effort.timeout);
    let mut progress = Progress::new();
    let (slice, of) = (slice_for(time, 4 * pairs.len()), pairs.len());
    let settled = |before: &[Sample], after: &[Sample]| collector::is_ratio_settled(before, after, precision);
    in_turn::measure(&mut pairs, &launcher, slice, &settled, time, |reached| {
        progress.show(reached.round, reached.settled, of, reached.share, reached.left);
    });
    progress.finish();

    let log_ratios = |pair: &Pair| PairedRatios {
        name: pair_name(pair),
        log_ratios: round_log_ratios(&pair.samples[0], &pair.samples[1]),
    };
    let mut compared =
        compare_paired(&pairs.iter().map(log_ratios).collect::<Vec<_>>(), ComparisonOptions::default());
    for (pair, compared) in pairs.iter().zip(&mut compared) {
        compared.reason = pair.failure.clone().or(compared.reason.take());
    }
    print(&match arguments.json {
        true => format!("{:#}\n", serde_json::json!(compared)),
        false => report::paired(&compared, &style()),
    })?;
    let above = 1.0 + arguments.fail_above.map_or(f64::INFINITY, |above| above.0);
    let slower = compared.iter().any(|pair| {
        pair.verdict == ComparisonVerdict::Slower && pair.ratio.is_some_and(|ratio| ratio.median > above)
    });
    Ok(match () {
        () if interrupted.load(Ordering::Relaxed) => Exit::Interrupted,
        () if pairs.iter().any(|pair| pair.failure.is_some()) => Exit::CaseFailed,
        () if slower => Exit::Slower,
        () => Exit::Success,
    })
}

fn planned(arguments: &Compare, spec: &Spec) -> Result<Plan, Invalid> {
    let mut suite = by_hand(&[spec.to_string()], &arguments.axes.workloads)?;
    restrict(&mut suite, &arguments.axes)?;
    let topology = harness::host::read(Path::new("/")).topology;
    Ok(plan(
        &suite.blocks,
        arguments.effort.endpoints.map(model::Endpoints::from).unwrap_or_default(),
        &topology,
        row,
    ))
}

/// The cases of both plans that differ by nothing but the row.
fn paired(before: &Plan, after: &Plan) -> Vec<Pair> {
    let pair = |a: &Case| {
        let same = |b: &&Case| Case { spec: a.spec.clone(), ..(*b).clone() } == *a;
        asked_for(after).find(same).map(|b| Pair::new(a.clone(), b.clone()))
    };
    asked_for(before).filter_map(pair).collect()
}

fn asked_for(plan: &Plan) -> impl Iterator<Item = &Case> {
    plan.cases.iter().chain(&plan.awaited)
}

fn pair_name(pair: &Pair) -> String {
    let [a, b] = &pair.cases;
    format!("{} against {a}", b.spec)
}
