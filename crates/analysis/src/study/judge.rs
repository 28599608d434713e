//! Whether the conclusions of a study hold here: from the numbers of their tests to verdicts.
//!
//! A conclusion holds when all of its numbers do, so that each may stand on its own 95% interval: calling it true wrongly
//! takes a mistake in the very number that is wrong. One number alone refutes it, and the more there are the more often one
//! does so by chance: of fourteen 95% intervals one lies beyond its bound in every fourth run, though the claim is true. So
//! what refutes is an interval that holds for all numbers of the conclusion together (Bonferroni).

use super::estimate::{CONFIDENCE, FEWEST, Number, measure};
use super::evaluated::{EvaluatedConclusion, EvaluatedTest, StudyVerdict, TestedNumber};
use super::formula_value::is_sampled;
use super::select::{At, Selector};
use super::words::{grouped, note_once, with_interval};
use crate::stats;
use model::estimate::Estimate;
use model::study::formula::MeasureKind;
use model::study::{Literal, StudyConclusion, StudyTest};
use model::units::Unit;

/// The numbers of a test, as they are shown, and why others are missing.
struct TestNumbers {
    known: Vec<(At, Number)>,
    missing: Vec<String>,
}

/// `conclusion` with its verdict and what that stands on.
pub(super) fn conclusion(selector: &Selector<'_>, conclusion: &StudyConclusion) -> EvaluatedConclusion {
    let numbers: Vec<TestNumbers> =
        conclusion.tests.iter().map(|test| test_numbers(selector, test)).collect();
    let count = numbers.iter().map(|of_test| of_test.known.len()).sum();
    let tests = conclusion.tests.iter().zip(numbers);
    let (tests, verdicts): (Vec<EvaluatedTest>, Vec<StudyVerdict>) =
        tests.map(|(test, numbers)| evaluated_test(selector, test, numbers, count)).unzip();
    let verdict = match &conclusion.absent {
        Some(why) => StudyVerdict::NotMeasured(why.clone()),
        None => verdict_of_all(&verdicts),
    };
    EvaluatedConclusion { claim: conclusion.claim.clone(), verdict, tests }
}

/// The numbers of `test`: one, or one at each size, and why others are missing.
fn test_numbers(selector: &Selector<'_>, test: &StudyTest) -> TestNumbers {
    let nothing = |why| TestNumbers { known: Vec::new(), missing: vec![why] };
    let (sizes, not_measured) = match selector.sizes(&test.of.formula) {
        Ok(sizes) => sizes,
        Err(why) => return nothing(why),
    };
    let not_measured = not_measured.into_iter().filter(|(size, _)| test.is_of(*size));
    let mut missing: Vec<String> = not_measured.map(|(_, why)| why).collect();
    if test.of.kind != MeasureKind::Value || (sizes.is_empty() && missing.is_empty()) {
        return match measure(selector, &test.of, At::Nothing, CONFIDENCE) {
            Ok(number) => TestNumbers { known: vec![(At::Nothing, number)], missing: Vec::new() },
            Err(why) => nothing(why),
        };
    }
    let mut known = Vec::new();
    for at in sizes.into_iter().filter(|size| test.is_of(*size)).map(At::Size) {
        match measure(selector, &test.of, at, CONFIDENCE) {
            Ok(number) => known.push((at, number)),
            Err(why) => missing.push(why),
        }
    }
    if known.is_empty() && missing.is_empty() {
        missing.push("none of its sizes was asked for in this run".to_owned());
    }
    TestNumbers { known, missing }
}

/// `test` with its `numbers`, and whether it holds, in a conclusion with `count` numbers in all.
fn evaluated_test(
    selector: &Selector<'_>,
    test: &StudyTest,
    numbers: TestNumbers,
    count: usize,
) -> (EvaluatedTest, StudyVerdict) {
    let name = test.name.clone().unwrap_or_else(|| test.of.to_string());
    let unit = test.of.unit().unwrap_or(Unit::Number);
    let mut words = vec![in_words(&numbers.known, unit)];
    if numbers.known.iter().any(|(_, number)| number.apart) {
        words.push("not of the same rounds".to_owned());
    }
    let (mut verdicts, mut refuted, mut doubts) = (Vec::new(), Vec::new(), Vec::new());
    for (at, number) in &numbers.known {
        let (verdict, doubt) = verdict(selector, test, *at, number.estimate, count);
        if verdict == StudyVerdict::DoesNotHold {
            refuted.push(*at);
        }
        verdicts.push(verdict);
        doubt.into_iter().for_each(|doubt| note_once(&mut doubts, doubt));
    }
    if refuted.is_empty() {
        words.extend(doubts);
    } else if count > 1 {
        words.push(refuted_at(&refuted));
    }
    verdicts.extend(numbers.missing.first().cloned().map(StudyVerdict::NotMeasured));
    words.extend(grouped(numbers.missing).into_iter().map(|why| format!("not measured: {why}")));
    words.retain(|words| !words.is_empty());
    let tested = |(at, number): &(At, Number)| TestedNumber {
        size_bytes: if let At::Size(size) = at { Some(*size) } else { None },
        number: number.estimate,
    };
    let value = |literal: &Option<Literal>| literal.as_ref().map(|literal| literal.value);
    let evaluated = EvaluatedTest {
        evidence: format!("{name}: {}; wanted {}", words.join("; "), wanted(test)),
        name,
        unit,
        at_least: value(&test.at_least),
        at_most: value(&test.at_most),
        published: value(&test.published),
        numbers: numbers.known.iter().map(tested).collect(),
    };
    (evaluated, verdict_of_all(&verdicts))
}

/// What follows from `shown`, one of `count` numbers of a conclusion, and why nothing does where that is not plain to see.
fn verdict(
    selector: &Selector<'_>,
    test: &StudyTest,
    at: At,
    shown: Estimate,
    count: usize,
) -> (StudyVerdict, Option<String>) {
    let (least, most) = test.bounds();
    let is_within = |(low, high): (f64, f64)| low >= least && high <= most;
    let is_beyond = |(low, high): (f64, f64)| high < least || low > most;
    match shown.interval {
        Some(interval) if is_within(interval) => return (StudyVerdict::Holds, None),
        Some(interval) if !is_beyond(interval) => return (StudyVerdict::Undecided, None),
        _ => {}
    }
    let confidence = 1.0 - (1.0 - CONFIDENCE) / count as f64;
    let judged = match count {
        1 => "it".to_owned(),
        count => format!("one of {count} numbers"),
    };
    let number = measure(selector, &test.of, at, confidence);
    match number.ok().and_then(|number| number.estimate.interval) {
        Some(interval) if is_beyond(interval) => (StudyVerdict::DoesNotHold, None),
        Some(_) => (StudyVerdict::Undecided, Some(format!("too near a bound to judge {judged}"))),
        None => {
            let fewest = if is_sampled(&test.of.formula) { FEWEST } else { stats::fewest_values(confidence) };
            let few = format!("too few trials to judge {judged}: it takes {fewest} of each case");
            (StudyVerdict::Undecided, Some(few))
        }
    }
}

/// All hold, or one does not, or it is not known.
fn verdict_of_all(verdicts: &[StudyVerdict]) -> StudyVerdict {
    let not_measured = verdicts.iter().find(|verdict| matches!(verdict, StudyVerdict::NotMeasured(_)));
    if verdicts.contains(&StudyVerdict::DoesNotHold) {
        StudyVerdict::DoesNotHold
    } else if let Some(not_measured) = not_measured {
        not_measured.clone()
    } else if verdicts.iter().all(|verdict| *verdict == StudyVerdict::Holds) {
        StudyVerdict::Holds
    } else {
        StudyVerdict::Undecided
    }
}

/// The numbers of a test: one, or the lowest and the highest of several.
fn in_words(numbers: &[(At, Number)], unit: Unit) -> String {
    let by = |a: &&(At, Number), b: &&(At, Number)| a.1.estimate.median.total_cmp(&b.1.estimate.median);
    let one = |(at, number): &(At, Number)| match at {
        At::Size(size) => format!("{} at {size}", with_interval(number.estimate, unit)),
        _ => with_interval(number.estimate, unit),
    };
    match (numbers.iter().min_by(by), numbers.iter().max_by(by)) {
        (Some(low), Some(high)) if numbers.len() > 1 => {
            format!("from {} to {}, {} sizes", one(low), one(high), numbers.len())
        }
        (Some(only), _) => one(only),
        _ => String::new(),
    }
}

/// That a test fails, and at which sizes, if it goes over any.
fn refuted_at(places: &[At]) -> String {
    let size = |at: &At| if let At::Size(size) = at { Some(size.to_string()) } else { None };
    let sizes: Vec<String> = places.iter().filter_map(size).collect();
    if sizes.is_empty() { "refuted".to_owned() } else { format!("refuted at {}", sizes.join(", ")) }
}

/// The bounds of `test` in words.
fn wanted(test: &StudyTest) -> String {
    let bounds = match (&test.at_least, &test.at_most) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => "anything".to_owned(),
    };
    test.published.as_ref().map_or(bounds.clone(), |published| format!("{bounds}, published {published}"))
}
