//! Why one case, or the endpoints of one build, are slower than others: the events of both recorded in the same rounds, and the difference of their paths.

use crate::doses;
use crate::exit::{Error, Exit};
use crate::explanation::unexplainable;
use crate::explanation_files;
use crate::output::{check_files, give_answer, style};
use crate::request::ExplanationRequest;
use crate::session::RunSession;
use crate::streams::complain;
use analysis::missed_settings::missed_settings;
use analysis::path::ExplainedDifference;
use harness::coordinator::schedule::Trials;
use model::Case;
use report::Style;
use std::path::Path;
use std::time::Duration;

/// The time that each pair may take when none is given.
const TIME_OF_A_PAIR: Duration = Duration::from_secs(40);

/// The cases of `first`, each with that of `second` that differs in the mechanism, or an injected delay, alone; or in the size too, where `second` has one
/// size only.
pub fn pairs(first: &[Case], second: &[Case]) -> Vec<[Case; 2]> {
    let is_one_size = second.windows(2).all(|cases| cases[0].size_bytes == cases[1].size_bytes);
    let is_alike = |a: &Case, b: &Case| {
        let like_a = Case { spec: a.spec.clone(), size_bytes: a.size_bytes, inject: a.inject, ..b.clone() };
        *b != *a && like_a == *a
    };
    let pair = |a: &Case| {
        let of_its_size = second.iter().find(|b| is_alike(a, b) && b.size_bytes == a.size_bytes);
        let of_another = || second.iter().find(|b| is_alike(a, b) && is_one_size);
        of_its_size.or_else(of_another).map(|b| [a.clone(), b.clone()])
    };
    first.iter().filter_map(pair).collect()
}

/// Explains each of `pairs`, and prints what was found. The second of each has endpoints of `other`, if that is another build.
pub fn explain_pairs(
    pairs: &[[Case; 2]],
    other: Option<&Path>,
    request: &ExplanationRequest,
    session: &RunSession,
) -> Result<Exit, Error> {
    if let Some(invalid) = pairs.iter().flatten().find_map(unexplainable) {
        return Err(invalid.into());
    }
    // Before the work is done: something else may be where the page is to go.
    check_files(&request.answer)?;
    let time =
        request.time.map_or(TIME_OF_A_PAIR, |time| time / u32::try_from(pairs.len()).unwrap_or(u32::MAX));
    let trials = [None, other].map(|program| session.trials_of(program, false, request.timeout));
    let trials = trials.each_ref().map(|trials| trials as &dyn Trials);
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for cases in pairs {
        let dosed = doses::record(cases, request.iterations, &trials, time);
        let sums: Vec<_> = dosed.iter().filter_map(|dosed| dosed.sum()).collect();
        let settings = dosed.iter().map(|dosed| dosed.settings.as_slice());
        let settings = missed_settings(cases.iter().map(|case| &case.spec).zip(settings));
        let difference = <[_; 2]>::try_from(sums).ok().and_then(|sums| {
            ExplainedDifference::between(cases.clone(), other, settings, sums, observe::call_name)
        });
        match difference {
            Some(difference) => found.push(difference),
            None => {
                let reasons: Vec<String> = dosed.iter().flat_map(|dosed| dosed.unavailable()).collect();
                missing.push((cases, reasons));
            }
        }
    }
    // The page is made even if whoever reads the text closes it early, and the text is printed even if the page cannot be made.
    let made = explanation_files::make_of_differences(&request.answer.page, &found);
    let document = serde_json::json!({ "differences": found });
    let rows = ["differences", "difference", "segments"];
    let style = Style { detail: request.detail, ..style() };
    give_answer(&request.answer, &report::differences(&found, &style), &document, &rows)?;
    // Standard output may be read by a program.
    complain(&made?);
    for ([first, second], reasons) in &missing {
        let why =
            if reasons.is_empty() { "no round of both was whole; give it more with --time" } else { "" };
        let reasons = reasons.join("; ");
        complain(&format!("{first} against {second}: not explained: {why}{reasons}\n"));
    }
    Ok(match () {
        () if session.is_stopped() => Exit::Interrupted,
        () if !missing.is_empty() => Exit::CaseFailed,
        () => Exit::Success,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Size, floor};

    #[test]
    fn cases_are_paired_that_differ_in_the_mechanism_or_the_size_alone() {
        let case = |name: &str, size: u64| Case { size_bytes: Some(Size(size)), ..floor::operation(name, 1) };
        let names = |first: &[Case], second: &[Case]| -> Vec<String> {
            pairs(first, second).iter().map(|[a, b]| format!("{}-{}", a.key(), b.key())).collect()
        };
        let both = [case("memcpy", 1), case("memcpy", 64)];
        assert_eq!(
            names(&both, &[case("memset", 64), case("memset", 1)]),
            [
                "memcpy cost 1 same-core-memset cost 1 same-core",
                "memcpy cost 64 same-core-memset cost 64 same-core"
            ]
        );
        assert_eq!(names(&both[1..], &both[..1]), ["memcpy cost 64 same-core-memcpy cost 1 same-core"]);
        assert!(names(&both[..1], &both[..1]).is_empty(), "it is the same");
        assert!(names(&both[..1], &[case("memset", 2), case("memset", 3)]).is_empty());
    }
}
