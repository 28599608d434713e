//! Whether the conclusions of a study hold here: from the numbers of their tests to verdicts.
//!
//! A conclusion holds when all of its numbers do, so that each may stand on its own 95% interval: calling it true wrongly
//! takes a mistake in the very number that is wrong. One number alone refutes it, and the more there are the more often one
//! does so by chance: of fourteen 95% intervals one lies beyond its bound in every fourth run, though the claim is true. So
//! what refutes is an interval that holds for all numbers of the conclusion together (Bonferroni).

use super::estimate::{Number, formula_number, measure};
use super::evaluated::{EvaluatedConclusion, EvaluatedTest, StudyVerdict, TestedNumber};
use super::longer::{Lack, sentence};
use super::missing::{Cause, Missing};
use super::select::{At, Selector};
use super::words::{grouped, note_once, with_interval};
use crate::interval::{CONFIDENCE, FEWEST_TRIALS};
use model::estimate::Estimate;
use model::study::formula::MeasureKind;
use model::study::{Literal, StudyConclusion, StudyTest};
use model::units::{Size, Unit};

/// The numbers of a test, as they are shown, and why others are missing.
struct TestNumbers {
    known: Vec<(At, Number)>,
    missing: Vec<Missing>,
}

/// `conclusion` with its verdict and what that stands on.
pub(super) fn conclusion(selector: &Selector<'_>, conclusion: &StudyConclusion) -> EvaluatedConclusion {
    let numbers: Vec<TestNumbers> =
        conclusion.tests.iter().map(|test| test_numbers(selector, test)).collect();
    let count = numbers.iter().map(|of_test| of_test.known.len()).sum();
    let mut lacks = Vec::new();
    let tests = conclusion.tests.iter().zip(numbers);
    let (tests, verdicts): (Vec<EvaluatedTest>, Vec<StudyVerdict>) =
        tests.map(|(test, numbers)| evaluated_test(selector, test, numbers, count, &mut lacks)).unzip();
    let verdict = match &conclusion.absent {
        Some(why) => StudyVerdict::CannotBeMeasured(why.clone()),
        None => verdict_of_all(&verdicts),
    };
    let longer = match verdict {
        StudyVerdict::NotTestedLongEnough => sentence(selector, &lacks),
        _ => None,
    };
    EvaluatedConclusion { claim: conclusion.claim.clone(), verdict, tests, longer }
}

/// The numbers of `test`: one, or one at each size, and why others are missing.
fn test_numbers(selector: &Selector<'_>, test: &StudyTest) -> TestNumbers {
    let nothing = |why| TestNumbers { known: Vec::new(), missing: vec![why] };
    let (sizes, not_measured) = match selector.sizes(&test.of.formula) {
        Ok(sizes) => sizes,
        Err(why) => return nothing(why),
    };
    let not_measured = not_measured.into_iter().filter(|(size, _)| test.is_of(*size));
    let mut missing: Vec<Missing> = not_measured.map(|(_, why)| why).collect();
    // A size at which a formula is best cannot be told without all of them.
    let without = |size: &Size| formula_number(selector, &test.of.formula, At::Size(*size), CONFIDENCE).err();
    if test.of.kind != MeasureKind::Value
        && let Some(why) = sizes.iter().find_map(without)
    {
        return nothing(why);
    }
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
        missing.push(Missing::not_asked("none of its sizes was asked for in this run"));
    }
    TestNumbers { known, missing }
}

/// `test` with its `numbers`, and whether it holds, in a conclusion with `count` numbers in all. Adds to `lacks` what its numbers
/// lack to be decided.
fn evaluated_test(
    selector: &Selector<'_>,
    test: &StudyTest,
    numbers: TestNumbers,
    count: usize,
    lacks: &mut Vec<Option<Lack>>,
) -> (EvaluatedTest, StudyVerdict) {
    let name = test.name.clone().unwrap_or_else(|| test.of.to_string());
    let unit = test.of.unit().unwrap_or(Unit::Number);
    let mut words = vec![in_words(&numbers.known, unit)];
    let (mut verdicts, mut refuted, mut doubts) = (Vec::new(), Vec::new(), Vec::new());
    for (at, number) in &numbers.known {
        let Judged { verdict, doubt, lack } = verdict(selector, test, *at, number, count);
        match verdict {
            StudyVerdict::NotTestedLongEnough => lacks.push(lack),
            StudyVerdict::DoesNotHold => refuted.push(*at),
            _ => {}
        }
        verdicts.push(verdict);
        doubt.into_iter().for_each(|doubt| note_once(&mut doubts, doubt));
    }
    if refuted.is_empty() {
        words.extend(doubts);
    } else if count > 1 {
        words.push(refuted_at(&refuted));
    }
    let untried = numbers.missing.iter().filter(|missing| missing.cause == Cause::Time);
    lacks.extend(untried.map(|_| Lack::of_untried(&test.of, selector.results)));
    verdicts.extend(numbers.missing.iter().rev().max_by_key(|missing| missing.cause).map(without));
    let missing = numbers.missing.into_iter().map(String::from).collect();
    words.extend(grouped(missing).into_iter().map(|why| format!("not measured: {why}")));
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

/// What follows from a number.
struct Judged {
    verdict: StudyVerdict,
    /// Why nothing follows, where that is not plain to see.
    doubt: Option<String>,
    /// What it lacks to be decided, where that can be told.
    lack: Option<Lack>,
}

/// The confidence of an interval that refutes, where a conclusion is tested by `count` numbers.
fn refuting_confidence(count: usize) -> f64 {
    1.0 - (1.0 - CONFIDENCE) / count.max(1) as f64
}

/// What follows from `shown`, one of `count` numbers of a conclusion.
fn verdict(selector: &Selector<'_>, test: &StudyTest, at: At, shown: &Number, count: usize) -> Judged {
    let (least, most) = test.bounds();
    let is_within = |(low, high): (f64, f64)| low >= least && high <= most;
    let is_beyond = |(low, high): (f64, f64)| high < least || low > most;
    let decided = |verdict| Judged { verdict, doubt: None, lack: None };
    // The interval of a size reaches over whole sizes: how many trials narrow it cannot be told.
    let width = |judged: Estimate| match test.of.kind {
        MeasureKind::Value => Lack::of_width(&test.of, judged, (least, most)),
        MeasureKind::Peak | MeasureKind::Flat(_) => None,
    };
    let open = |doubt, lack| Judged { verdict: StudyVerdict::NotTestedLongEnough, doubt, lack };
    match shown.estimate.interval {
        Some(interval) if is_within(interval) => return decided(StudyVerdict::Holds),
        Some(interval) if !is_beyond(interval) => return open(None, width(shown.estimate)),
        _ => {}
    }
    let confidence = refuting_confidence(count);
    let judged = match count {
        1 => "it".to_owned(),
        count => format!("one of {count} numbers"),
    };
    let number = measure(selector, &test.of, at, confidence);
    match number.ok().map(|number| number.estimate) {
        Some(Estimate { interval: Some(interval), .. }) if is_beyond(interval) => {
            decided(StudyVerdict::DoesNotHold)
        }
        Some(estimate @ Estimate { interval: Some(_), .. }) => {
            open(Some(format!("too near a bound to judge {judged}")), width(estimate))
        }
        _ => {
            let few = format!("too few trials to judge {judged}: it takes {FEWEST_TRIALS} of each case");
            let refutes = shown.estimate.median < least || shown.estimate.median > most;
            let lack =
                (shown.trials > 0).then(|| Lack::of_trials(&test.of, refutes, shown.trials, FEWEST_TRIALS));
            open(Some(few), lack)
        }
    }
}

/// What follows where a number is `missing`.
fn without(missing: &Missing) -> StudyVerdict {
    let why = missing.why.clone();
    match missing.cause {
        Cause::Time => StudyVerdict::NotTestedLongEnough,
        Cause::NotAsked => StudyVerdict::NotAskedFor(why),
        Cause::Host => StudyVerdict::CannotBeMeasured(why),
    }
}

/// All hold, or one does not, or it is not known: for what no time helps against, if there is that, else for want of time.
fn verdict_of_all(verdicts: &[StudyVerdict]) -> StudyVerdict {
    let decides = |verdict: &StudyVerdict| match verdict {
        StudyVerdict::Holds => 0,
        StudyVerdict::NotTestedLongEnough => 1,
        StudyVerdict::NotAskedFor(_) => 2,
        StudyVerdict::CannotBeMeasured(_) => 3,
        StudyVerdict::DoesNotHold => 4,
    };
    // Of several alike the first.
    let first = verdicts.iter().rev().max_by_key(|verdict| decides(verdict));
    first.cloned().unwrap_or(StudyVerdict::NotTestedLongEnough)
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
