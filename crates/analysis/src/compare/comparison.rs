//! The runs of two sides compared, case by case.

use super::case_shifts::CaseShifts;
use super::chosen_pair::{ChosenPair, side_models};
use super::common_drift::common_drift;
use super::discoveries::levels;
use super::options::ComparisonOptions;
use super::pairing::{CasePair, pair};
use super::references::{Neighbours, Reference, shifts_beside_others};
use super::result::{ComparedCase, Comparison, ComparisonVerdict, Gate, RunDeviation};
use super::run_estimate::{run_variance, run_variance_of_multiples};
use super::statistics::{Caution, Shift};
use super::totals::{differences, notes, totals};
use super::verdict::{JudgedCase, judge_case, judge_floor};
use crate::missed_settings::missed_in_records;
use model::record::Results;
use model::units::Percent;

/// Compares the runs `b`, which are alike, with the runs `a`, which are alike; there is at least one of each. Cases are paired by
/// `Case::key`, and where several share one, by CPUs.
pub fn compare(a: &[Results], b: &[Results], options: ComparisonOptions) -> Comparison {
    let (pairs, only_in_a, only_in_b) = pair(a, b);
    let models = side_models([a, b]);
    let (floors, cases): (Vec<CasePair<'_>>, Vec<CasePair<'_>>) =
        pairs.into_iter().partition(CasePair::is_floor);
    let references: Vec<Reference<'_>> = floors.iter().filter_map(Reference::from_pair).collect();
    let cases: Vec<ChosenPair<'_>> = cases.iter().map(|pair| ChosenPair::from_pair(pair, &models)).collect();
    let floors: Vec<ChosenPair<'_>> =
        floors.iter().map(|pair| ChosenPair::from_pair(pair, &models)).collect();
    let shifts_of = |pairs: &[ChosenPair<'_>]| -> Vec<Option<CaseShifts<'_>>> {
        let beside_others = shifts_beside_others(pairs, &models);
        pairs
            .iter()
            .zip(beside_others)
            .map(|(pair, beside)| CaseShifts::from_pair(pair, beside, &references))
            .collect()
    };
    let (of_cases, of_floors) = (shifts_of(&cases), shifts_of(&floors));

    let times: Vec<Shift> = of_cases.iter().flatten().map(|shifts| shifts.time).collect();
    let multiples: Vec<Shift> =
        of_cases.iter().flatten().filter_map(|shifts| Some(shifts.adjusted?.1)).collect();
    let placed = cases.iter().zip(&of_cases);
    let drift =
        common_drift(placed.filter_map(|(pair, shifts)| {
            Some((pair.case.placement.to_string(), &shifts.as_ref()?.multiples))
        }));
    let times = run_variance(&times, options);
    let multiples = run_variance_of_multiples(&multiples, drift, options);
    let of_floor_times: Vec<Shift> = of_floors.iter().flatten().map(|shifts| shifts.time).collect();
    let floor_times = run_variance(&of_floor_times, options);

    let caution = |level| Caution { level, times, multiples, options };
    let p = |shifts: &CaseShifts<'_>| shifts.p(times, multiples);
    let case_levels = levels_of(&cases, &of_cases, &p, options);
    let judged_by_time = |shifts: &CaseShifts<'_>| Some(shifts.time.p(floor_times));
    let floor_levels = levels_of(&floors, &of_floors, &judged_by_time, options);
    let moved = cases.iter().zip(&of_cases);
    let neighbours =
        Neighbours::from_times(moved.filter_map(|(pair, shifts)| Some((pair.case, shifts.as_ref()?.time))));

    let judged_case = |((pair, shifts), level): ((&ChosenPair<'_>, &Option<CaseShifts<'_>>), f64)| {
        judge_case(pair, shifts.as_ref(), &neighbours, caution(level))
    };
    let judged_floor = |((pair, shifts), level): ((&ChosenPair<'_>, &Option<CaseShifts<'_>>), f64)| {
        judge_floor(pair, shifts.as_ref(), Caution { times: floor_times, ..caution(level) })
    };
    let cases: Vec<JudgedCase> = cases.iter().zip(&of_cases).zip(case_levels).map(judged_case).collect();
    let floors: Vec<JudgedCase> = floors.iter().zip(&of_floors).zip(floor_levels).map(judged_floor).collect();
    let totals = totals(&cases, &floors, [times, multiples, floor_times]);
    let missed = |runs: &[Results]| missed_in_records(runs.iter().flat_map(|run| &run.records));
    Comparison {
        options,
        missed_in_a: missed(a),
        missed_in_b: missed(b),
        run_deviation: RunDeviation::new(times, multiples),
        differences: differences(a, b),
        notes: notes(a, b, &cases),
        cases: cases.into_iter().map(|judged| judged.compared).collect(),
        floors: floors.into_iter().map(|judged| judged.compared).collect(),
        only_in_a,
        only_in_b,
        totals,
    }
}

/// The level of each case, from its mechanism and its probability.
fn levels_of(
    pairs: &[ChosenPair<'_>],
    shifts: &[Option<CaseShifts<'_>>],
    p: &dyn Fn(&CaseShifts<'_>) -> Option<f64>,
    options: ComparisonOptions,
) -> Vec<f64> {
    let mechanism_and_p = |(pair, shifts): (&ChosenPair<'_>, &Option<CaseShifts<'_>>)| {
        (pair.case.spec.name.clone(), shifts.as_ref().and_then(p))
    };
    let probabilities: Vec<(String, Option<f64>)> = pairs.iter().zip(shifts).map(mechanism_and_p).collect();
    let probabilities: Vec<(&str, Option<f64>)> =
        probabilities.iter().map(|(mechanism, p)| (mechanism.as_str(), *p)).collect();
    levels(&probabilities, options.false_discoveries.0)
}

/// What a gate says that allows B to be slower by `above`: whether any case is slower than that, or else may be.
///
/// A case fails when it is called slower *and* its ratio is above 1 + `above`, both as measured and
/// against its floor: the gate is for the mechanism, not for the host. The ratio itself counts, not the
/// low end of its interval: that B is slower at all is already beyond doubt, and a gate on the low
/// end would let pass twice the slow-down that it names. What is undecided fails nothing, and passes nothing that it may exceed.
pub fn gate(comparison: &Comparison, above: Percent) -> Gate {
    let limit = 1.0 + above.0;
    let of_case = |case: &ComparedCase| {
        let ratios = || case.ratio.iter().chain(case.adjusted.iter().map(|adjusted| &adjusted.ratio));
        match case.verdict {
            ComparisonVerdict::Slower if ratios().all(|ratio| ratio.ratio > limit) => Gate::Fails,
            ComparisonVerdict::Slower | ComparisonVerdict::Faster => Gate::Passes,
            _ if ratios().all(|ratio| ratio.own_interval.1 > limit) => Gate::Undecided,
            _ => Gate::Passes,
        }
    };
    Gate::worst(comparison.cases.iter().map(of_case))
}
