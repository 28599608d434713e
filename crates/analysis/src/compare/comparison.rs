//! Two runs compared, case by case.

use super::pairing::{RecordPair, pair};
use super::references::{Neighbours, Reference};
use super::result::{ComparedCase, Comparison, ComparisonOptions, ComparisonVerdict, Ratio};
use super::statistics::Caution;
use super::totals::{differences, notes, totals};
use super::verdict::{JudgedCase, judge_case, judge_floor};
use model::record::Results;
use model::units::Percent;

/// Compares run `b` with run `a`. Cases are paired by `Case::key`, and where several share one, by CPUs.
pub fn compare(a: &Results, b: &Results, options: ComparisonOptions) -> Comparison {
    let (pairs, only_in_a, only_in_b) = pair(&a.records, &b.records);
    let (floors, cases): (Vec<RecordPair<'_>>, Vec<RecordPair<'_>>) =
        pairs.into_iter().partition(|pair| pair.a.floor || pair.b.floor);
    let references: Vec<Reference<'_>> = floors.iter().filter_map(Reference::of).collect();
    let caution = |pairs: &[RecordPair<'_>]| Caution {
        together: pairs.iter().filter(|pair| pair.is_comparable()).count(),
        options,
    };
    let (of_cases, of_floors) = (caution(&cases), caution(&floors));
    let neighbours = Neighbours::of(&cases);
    let cases: Vec<JudgedCase> =
        cases.iter().map(|pair| judge_case(pair, &references, &neighbours, of_cases)).collect();
    let floors: Vec<JudgedCase> = floors.iter().map(|pair| judge_floor(pair, of_floors)).collect();
    let totals = totals(&cases, &floors, options);
    Comparison {
        options,
        differences: differences(&a.header, &b.header),
        notes: notes(a, b, &cases),
        cases: cases.into_iter().map(|judged| judged.compared).collect(),
        floors: floors.into_iter().map(|judged| judged.compared).collect(),
        only_in_a,
        only_in_b,
        totals,
    }
}

/// The cases for which `comparison` fails a limit of `above` on slowing down, as in a CI gate.
///
/// A case fails when it is called slower *and* its ratio is above 1 + `above`, both as measured and
/// against its floor: the gate is for the mechanism, not for the host. The ratio itself counts, not the
/// low end of its interval: that B is slower at all is already beyond doubt, and a gate on the low
/// end would let pass twice the slow-down that it names. What cannot be told does not fail; a gate
/// that must notice it checks `cannot_tell` of the totals too.
pub fn failures(comparison: &Comparison, above: Percent) -> Vec<&ComparedCase> {
    let over = |ratio: Option<&Ratio>| ratio.is_none_or(|ratio| ratio.ratio > 1.0 + above.0);
    let fails = |case: &&ComparedCase| {
        case.verdict == ComparisonVerdict::Slower
            && over(case.ratio.as_ref())
            && over(case.adjusted.as_ref().map(|adjusted| &adjusted.ratio))
    };
    comparison.cases.iter().filter(fails).collect()
}
