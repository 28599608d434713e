//! `ipcmark compare`: from the request to two results files, or to two mechanisms measured side by side, and to the verdicts.

use crate::cli::CompareArguments;
use crate::exit::{Error, Exit};
use crate::output::{print, style};
use crate::planning::{nothing_left, plan_here, requested};
use crate::progress::{Doing, Progress};
use crate::request::{CompareRequest, RatioRequest, Sides};
use crate::session::RunSession;
use crate::{results_file, rules};
use analysis::compare::{
    ComparisonOptions, ComparisonVerdict, PairedRatios, compare_paired, failures, round_log_ratios,
};
use harness::clock::Timer;
use harness::coordinator::compare::{self, CasePair};
use harness::coordinator::schedule::TimeBudget;
use harness::coordinator::slices::slice_for;
use model::plan::Plan;
use model::{Case, Invalid, Percent, Sample};
use std::path::{Path, PathBuf};

/// Compares the files, or the mechanisms, that are named.
pub fn run(arguments: CompareArguments) -> Result<Exit, Error> {
    let CompareRequest { sides, fail_above, json } = CompareRequest::new(arguments)?;
    match sides {
        Sides::Files(paths) => compare_files(&paths, fail_above, json),
        Sides::Mechanisms(request) => compare_mechanisms(&request, fail_above, json),
    }
}

fn compare_files(
    [before, after]: &[PathBuf; 2],
    fail_above: Option<Percent>,
    json: bool,
) -> Result<Exit, Error> {
    let before = results_file::read(before)?;
    let after = results_file::read(after)?;
    let comparison = analysis::compare::compare(&before, &after, ComparisonOptions::default());
    print(&match json {
        true => format!("{:#}\n", serde_json::json!(comparison)),
        false => report::comparison(&comparison, &style()),
    })?;
    let slower = fail_above.is_some_and(|above| !failures(&comparison, above).is_empty());
    Ok(if slower { Exit::Slower } else { Exit::Success })
}

fn compare_mechanisms(
    request: &RatioRequest,
    fail_above: Option<Percent>,
    json: bool,
) -> Result<Exit, Error> {
    let mut pairs = pairs_here(request)?;
    let session = RunSession::open()?;
    measure(&mut pairs, request, &session);

    let log_ratios = |pair: &CasePair| PairedRatios {
        name: pair_name(pair),
        log_ratios: round_log_ratios(&pair.samples[0], &pair.samples[1]),
    };
    let mut compared =
        compare_paired(&pairs.iter().map(log_ratios).collect::<Vec<_>>(), ComparisonOptions::default());
    for (pair, compared) in pairs.iter().zip(&mut compared) {
        compared.reason = pair.failure.clone().or(compared.reason.take());
    }
    print(&match json {
        true => format!("{:#}\n", serde_json::json!(compared)),
        false => report::paired(&compared, &style()),
    })?;
    let above = 1.0 + fail_above.map_or(f64::INFINITY, |above| above.0);
    let slower = compared.iter().any(|pair| {
        pair.verdict == ComparisonVerdict::Slower && pair.ratio.is_some_and(|ratio| ratio.median > above)
    });
    Ok(match () {
        () if session.is_stopped() => Exit::Interrupted,
        () if pairs.iter().any(|pair| pair.failure.is_some()) => Exit::CaseFailed,
        () if slower => Exit::Slower,
        () => Exit::Success,
    })
}

/// The pairs of cases that this host can measure, refused where there is none.
fn pairs_here(request: &RatioRequest) -> Result<Vec<CasePair>, Invalid> {
    let topology = harness::host::facts::read(Path::new("/")).topology;
    let [before, after] =
        request.blocks.each_ref().map(|blocks| plan_here(blocks, request.endpoints, &topology));
    let after = match request.inject {
        Some(inject) => after.injected(inject),
        None => after,
    };
    let pairs = pairs_of(&before, &after);
    if pairs.is_empty() { Err(nothing_left(&[before.dropped, after.dropped].concat())) } else { Ok(pairs) }
}

/// The cases of both plans that differ by nothing but the mechanism, and what is injected in it.
fn pairs_of(before: &Plan, after: &Plan) -> Vec<CasePair> {
    let pair = |a: &Case| {
        let is_same = |b: &&Case| Case { spec: a.spec.clone(), inject: a.inject, ..(*b).clone() } == *a;
        requested(after).find(is_same).map(|b| CasePair::new(a.clone(), b.clone()))
    };
    requested(before).filter_map(pair).collect()
}

fn measure(pairs: &mut [CasePair], request: &RatioRequest, session: &RunSession) {
    let RatioRequest { time, precision, timeout, .. } = *request;
    let slice = slice_for(time, 4 * pairs.len());
    let settled = |before: &[Sample], after: &[Sample]| rules::is_ratio_settled(before, after, precision.0);
    let trials = session.trials(false, timeout);
    let budget = TimeBudget { clock: &Timer::start(), time };
    let mut progress = Progress::new();
    compare::measure(pairs, [&trials, &trials], budget, slice, &settled, |reached| {
        progress.show(Doing::Pairs, reached);
    });
    progress.finish();
}

fn pair_name(pair: &CasePair) -> String {
    let [a, b] = &pair.cases;
    let inject = b.inject.map(|inject| format!(" inject={inject}")).unwrap_or_default();
    format!("{}{inject} against {a}", b.spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Size, floor};

    #[test]
    fn cases_are_paired_that_differ_by_the_mechanism_alone() {
        let case = |name: &str, size: u64| Case { size_bytes: Some(Size(size)), ..floor::operation(name, 1) };
        let plan = |cases: Vec<Case>| Plan { cases, ..Plan::default() };
        let before = plan(vec![case("memcpy", 1), case("memcpy", 2), case("memcpy", 3)]);
        let after = plan(vec![case("memset", 3), case("memset", 1)]);
        let names: Vec<String> = pairs_of(&before, &after).iter().map(pair_name).collect();
        assert_eq!(
            names,
            ["memset against memcpy cost 1 same-core", "memset against memcpy cost 3 same-core"]
        );
        let delayed = plan(vec![case("memcpy", 2)]).injected(model::Inject::Ns(5));
        let names: Vec<String> = pairs_of(&before, &delayed).iter().map(pair_name).collect();
        assert_eq!(names, ["memcpy inject=5ns against memcpy cost 2 same-core"]);
    }
}
