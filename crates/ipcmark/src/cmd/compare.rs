//! `ipcmark compare`: from the request to results files, or to two mechanisms or builds measured interleaved, and to the verdicts.

use crate::cli::{AnswerOptions, CompareArguments, UndecidedOption};
use crate::exit::{Error, Exit};
use crate::output::{check_files, give_answer, give_answer_and_page, style};
use crate::planning::{nothing_left, plan_with, requested};
use crate::progress::{Doing, Progress};
use crate::request::{CompareRequest, GateRequest, RatioRequest, Sides};
use crate::results_file;
use crate::session::RunSession;
use analysis::compare::{
    ComparisonOptions, Gate, PairedRatios, compare_paired, gate, gate_paired, is_paired_verdict_reached,
    plan_paired,
};
use analysis::missed_settings::{MissedSetting, missed_settings};
use harness::clock::Timer;
use harness::coordinator::address_layout::why_random;
use harness::coordinator::compare::{self, CasePair};
use harness::coordinator::other_build;
use harness::coordinator::schedule::TimeBudget;
use harness::coordinator::trials::EndpointTrials;
use model::plan::Plan;
use model::record::Results;
use model::{Case, Invalid, Percent};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Compares the files, the mechanisms or the builds that are named.
pub fn run(arguments: CompareArguments) -> Result<Exit, Error> {
    let request = CompareRequest::new(arguments)?;
    check_files(&request.answer)?;
    match &request.sides {
        Sides::Files(paths) => compare_files(paths, &request),
        Sides::Interleaved(ratios) => compare_interleaved(ratios, &request),
    }
}

fn compare_files([before, after]: &[Vec<PathBuf>; 2], request: &CompareRequest) -> Result<Exit, Error> {
    let read = |paths: &[PathBuf]| -> Result<Vec<Results>, Error> {
        paths.iter().map(|path| results_file::read(path)).collect()
    };
    let comparison = analysis::compare::compare(&read(before)?, &read(after)?, ComparisonOptions::default());
    let page = |command: &[String]| report::comparison_html(&comparison, command);
    let text = report::comparison(&comparison, &style());
    give_answer_and_page(&request.answer, page, &text, &comparison, &["cases"])?;
    Ok(request.gate.map_or(Exit::Success, |limit| limit.exit(gate(&comparison, limit.above))))
}

fn compare_interleaved(request: &RatioRequest, whole: &CompareRequest) -> Result<Exit, Error> {
    let mut pairs = pairs_here(request)?;
    if let Some(program) = &request.against {
        other_build::check(program)??;
    }
    let session = RunSession::open()?;
    let elapsed = measure(&mut pairs, request, &session);

    let ratios: Vec<PairedRatios> = pairs.iter().map(ratios_of).collect();
    let gated = match request.find {
        Some(find) => plan(&pairs, &ratios, find, request, &whole.answer).map(|()| Exit::Success)?,
        None => judge(&pairs, &ratios, elapsed, request, whole)?,
    };
    Ok(match () {
        () if session.is_stopped() => Exit::Interrupted,
        () if pairs.iter().any(|pair| pair.failure.is_some()) => Exit::CaseFailed,
        () => gated,
    })
}

/// Prints the verdicts, and says how the gate of `whole` ends.
fn judge(
    pairs: &[CasePair],
    ratios: &[PairedRatios],
    elapsed: Duration,
    request: &RatioRequest,
    whole: &CompareRequest,
) -> Result<Exit, Error> {
    let mut compared = compare_paired(ratios, elapsed.as_nanos() as f64, options(request));
    let by_chance = why_random().map(|errno| format!("personality: {errno}"));
    for (pair, compared) in pairs.iter().zip(&mut compared) {
        compared.reason = pair.failure.clone().or(compared.reason.take());
        compared.elsewhere = (!pair.elsewhere.is_nothing()).then(|| pair.elsewhere.clone());
        compared.settings = missed(pair);
        compared.addresses_by_chance.clone_from(&by_chance);
    }
    let text = report::paired(&compared, request.margin, &style()) + &address_note(by_chance.as_deref());
    let page = |command: &[String]| report::paired_html(&compared, request.margin, command);
    give_answer_and_page(&whole.answer, page, &text, &compared, &[])?;
    Ok(whole.gate.map_or(Exit::Success, |limit| limit.exit(gate_paired(&compared, limit.above))))
}

impl GateRequest {
    /// How a command ends whose gate says `gate`.
    fn exit(self, gate: Gate) -> Exit {
        match gate {
            Gate::Fails => Exit::Slower,
            Gate::Undecided if self.undecided == UndecidedOption::Fail => Exit::Undecided,
            Gate::Undecided | Gate::Passes => Exit::Success,
        }
    }
}

/// The settings of both sides of which a reader must know.
fn missed(pair: &CasePair) -> Vec<MissedSetting> {
    let sides = pair.cases.iter().zip(&pair.settings);
    missed_settings(sides.map(|(case, settings)| (&case.spec, settings.as_slice())))
}

/// What is to be said where both sides cannot have their memory at the same addresses, and why.
fn address_note(by_chance: Option<&str>) -> String {
    by_chance.map_or_else(String::new, |why| {
        format!(
            "  addresses  endpoints have theirs by chance: the kernel refused to fix them\n             \
             ({why}). Intervals are\n             \
             wider by that: allow the container personality(2)\n"
        )
    })
}

/// Prints how long it takes to find a difference of `find`, by what the pilot measured and how long its trials took.
fn plan(
    pairs: &[CasePair],
    ratios: &[PairedRatios],
    find: Percent,
    request: &RatioRequest,
    answer: &AnswerOptions,
) -> Result<(), Error> {
    let started =
        || pairs.iter().flat_map(|pair| pair.samples.iter().flatten()).map(|sample| sample.started_ns);
    let span_ns = started().max().unwrap_or(0) - started().min().unwrap_or(0);
    let trial_pairs: usize = ratios.iter().map(|pair| pair.trial_pairs.len()).sum();
    let trial_pair_ns = span_ns as f64 / trial_pairs.max(1) as f64;
    let plan = plan_paired(ratios, find, trial_pair_ns, options(request));
    give_answer(answer, &report::planned(&plan, &style()), &plan, &["pairs"])
}

fn options(request: &RatioRequest) -> ComparisonOptions {
    ComparisonOptions { margin: request.margin, ..ComparisonOptions::interleaved() }
}

fn ratios_of(pair: &CasePair) -> PairedRatios {
    let [a, b] = &pair.samples;
    PairedRatios::new(pair_name(pair), pair.cases.each_ref(), [a, b])
}

/// The pairs of cases that this host can measure, refused where there is none.
fn pairs_here(request: &RatioRequest) -> Result<Vec<CasePair>, Invalid> {
    let topology = harness::host::facts::read(Path::new("/")).topology;
    let [before, after] = request
        .blocks
        .each_ref()
        .map(|blocks| plan_with(blocks, request.endpoints, &topology, &request.drivers));
    let after = match request.inject {
        Some(inject) => after.injected(inject),
        None => after,
    };
    let pairs = pairs_of(&before, &after);
    if pairs.is_empty() { Err(nothing_left(&[before.dropped, after.dropped].concat())) } else { Ok(pairs) }
}

/// The cases of both plans that differ by nothing but what is injected, or else by the mechanism too.
fn pairs_of(before: &Plan, after: &Plan) -> Vec<CasePair> {
    let pair = |a: &Case| {
        let differs_by_mechanism =
            |b: &&Case| Case { spec: a.spec.clone(), inject: a.inject, ..(*b).clone() } == *a;
        let is_same = |b: &&Case| b.spec == a.spec && differs_by_mechanism(b);
        let b = requested(after).find(is_same).or_else(|| requested(after).find(differs_by_mechanism))?;
        Some(CasePair::new(a.clone(), b.clone()))
    };
    requested(before).filter_map(pair).collect()
}

/// How long the slices are. Whoever switches first is favoured for some milliseconds on a CPU that both endpoints share, so that
/// many short slices tell more than few long ones.
const SLICE: Duration = Duration::from_millis(1);

/// Measures `pairs`, and says how long that took.
fn measure(pairs: &mut [CasePair], request: &RatioRequest, session: &RunSession) -> Duration {
    let RatioRequest { time, timeout, find, .. } = *request;
    // What the verdict on a pair depends on beside the pair: how many mechanisms there are, and how many cases of its own.
    let mechanisms: Vec<String> = pairs.iter().map(|pair| pair.cases[1].spec.name.clone()).collect();
    let different = mechanisms.iter().collect::<BTreeSet<_>>().len();
    let settled = |pair: &CasePair| {
        let alike = mechanisms.iter().filter(|name| **name == pair.cases[1].spec.name).count();
        // A pilot takes all its time.
        find.is_none() && is_paired_verdict_reached(&ratios_of(pair), different * alike, options(request))
    };
    let trials = [request.against.as_deref(), None].map(|program| EndpointTrials {
        drivers: Some(&request.drivers),
        ..session.trials_of(program, false, timeout)
    });
    let timer = Timer::start();
    let budget = TimeBudget { clock: &timer, time };
    let mut progress = Progress::new();
    compare::measure(pairs, [&trials[0], &trials[1]], budget, SLICE, &settled, |reached| {
        progress.show(Doing::Pairs, reached);
    });
    progress.finish();
    timer.elapsed()
}

fn pair_name(pair: &CasePair) -> String {
    let [a, b] = &pair.cases;
    // Of two builds the case is the same.
    if a == b {
        return a.to_string();
    }
    let inject = b.inject.map(|inject| format!(" inject={inject}")).unwrap_or_default();
    format!("{}{inject} against {a}", b.spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Size, floor};

    #[test]
    fn of_two_builds_each_mechanism_is_paired_with_itself() {
        let case = |name: &str, size: u64| Case { size_bytes: Some(Size(size)), ..floor::operation(name, 1) };
        let cases = vec![case("memcpy", 1), case("memset", 1), case("memset", 2)];
        let plan = Plan { cases, ..Plan::default() };
        let names: Vec<String> = pairs_of(&plan, &plan).iter().map(pair_name).collect();
        assert_eq!(names, ["memcpy cost 1 same-core", "memset cost 1 same-core", "memset cost 2 same-core"]);
    }

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
        let delayed = plan(vec![case("memcpy", 2)])
            .injected(model::Inject::of_client(model::inject::InjectedAmount::Ns(5)));
        let names: Vec<String> = pairs_of(&before, &delayed).iter().map(pair_name).collect();
        assert_eq!(names, ["memcpy inject=5ns against memcpy cost 2 same-core"]);
    }
}
