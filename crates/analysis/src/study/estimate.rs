//! From trials to the number of a formula, with its interval.
//!
//! A formula is evaluated **within each round** in which all its cases have a slice. Its value is the median over those
//! rounds; of a ratio it is the median of its logarithms. So a host that drifts does so on both sides of a ratio. The interval is
//! over trials, because slices of one trial resemble each other: over those of the case that has the fewest. The kernel splits
//! user from system time by its tick, which is too coarse for one trial: a formula with them is evaluated over all trials
//! together, and its interval is by the jackknife over trials. Where cases share rounds of too few trials, each is estimated by
//! itself; the interval is then the widest that theirs allow.
//!
//! Trials with probes have rounds of their own: all cases and probes share them, and no trial without probes does.

use super::formula_value::{is_ratio, is_sampled, range, value};
use super::select::{At, Operand, Round, Selector};
use crate::interval::median_over_trials_at_confidence;
use crate::stats::{self, student_quantile};
use model::estimate::Estimate;
use model::study::Measure;
use model::study::formula::{Formula, MeasureKind};
use model::units::{Percent, Size, Unit};
use std::collections::BTreeMap;

/// With how much confidence an interval that is shown holds its number.
pub(super) const CONFIDENCE: f64 = 0.95;
/// The fewest trials for a jackknife.
pub(super) const FEWEST: usize = 6;

/// The number of a measure.
#[derive(Clone, Copy)]
pub(super) struct Number {
    pub(super) estimate: Estimate,
    /// Whether its cases share too few rounds, so that each was estimated by itself.
    pub(super) apart: bool,
    /// Of how many trials it is; 0 where it is not of trials, as a constant or a size.
    pub(super) trials: usize,
}

impl Number {
    fn of(estimate: Estimate) -> Self {
        Self { estimate, apart: false, trials: 0 }
    }

    fn of_trials(trials: usize, estimate: Estimate) -> Self {
        Self { trials, ..Self::of(estimate) }
    }

    fn exact(value: f64) -> Self {
        Self::of(Estimate { median: value, interval: None })
    }
}

/// The number of `measure` at `at`.
pub(super) fn measure(
    selector: &Selector<'_>,
    measure: &Measure,
    at: At,
    confidence: f64,
) -> Result<Number, String> {
    let formula = &measure.formula;
    match measure.kind {
        MeasureKind::Value => formula_number(selector, formula, at, confidence),
        MeasureKind::Peak => peak(selector, formula, confidence),
        MeasureKind::Flat(within) => flat(selector, formula, within, confidence),
    }
}

/// The number of `formula` at `at`.
pub(super) fn formula_number(
    selector: &Selector<'_>,
    formula: &Formula,
    at: At,
    confidence: f64,
) -> Result<Number, String> {
    number(selector, &[(formula, at)], is_ratio(formula), confidence, |values| values[0])
}

/// The number of `a` over that of `b`, within rounds that both share.
pub(super) fn ratio(
    selector: &Selector<'_>,
    a: (&Formula, At),
    b: (&Formula, At),
    confidence: f64,
) -> Result<Number, String> {
    number(selector, &[a, b], true, confidence, |values| values[0] / values[1])
}

/// The number of what `combine` makes of the values of `parts`, within rounds that all of them share.
fn number(
    selector: &Selector<'_>,
    parts: &[(&Formula, At)],
    is_ratio: bool,
    confidence: f64,
    combine: impl Fn(&[f64]) -> f64,
) -> Result<Number, String> {
    let metrics =
        parts.iter().flat_map(|(formula, at)| formula.metrics().into_iter().map(|of_case| (of_case, *at)));
    let operands =
        metrics.map(|(of_case, at)| selector.operand(of_case, at)).collect::<Result<Vec<_>, _>>()?;
    let combined = |of: &dyn Fn(&Operand<'_>) -> Option<f64>| {
        let mut next = operands.iter();
        let values = parts.iter().map(|(formula, _)| value(formula, &mut |_| next.next().and_then(of)));
        let combined = combine(&values.collect::<Option<Vec<f64>>>()?);
        combined.is_finite().then_some(combined)
    };
    let Some(first) = operands.first() else {
        return combined(&|_| None).map(Number::exact).ok_or_else(|| "the formula has no value".to_owned());
    };
    let varies = |operand: &&Operand<'_>| !operand.is_constant();
    let decides = operands.iter().find(varies).unwrap_or(first);
    let is_shared =
        |round: &Round| operands.iter().filter(varies).all(|operand| operand.rounds.contains_key(round));
    let shared: Vec<Round> = decides.rounds.keys().copied().filter(is_shared).collect();
    let trials = by_trial(&operands, &shared);
    let no_value = || why_no_value(&operands);
    if parts.iter().any(|(formula, _)| is_sampled(formula)) {
        if trials.len() < FEWEST {
            let number = combined(&|operand| operand.in_all()).map(Number::exact).ok_or_else(no_value)?;
            return Ok(Number { trials: trials.len(), ..number });
        }
        let whole = combined(&|operand| operand.in_rounds(&shared)).ok_or_else(no_value)?;
        let others = |at: usize| [&trials[..at], &trials[at + 1..]].concat().concat();
        let without = (0..trials.len()).filter_map(|at| combined(&|operand| operand.in_rounds(&others(at))));
        let interval = jackknife(whole, &without.collect::<Vec<_>>(), confidence);
        return Ok(Number::of_trials(trials.len(), Estimate { median: whole, interval }));
    }
    let in_rounds = |rounds: &Vec<Round>| -> Vec<f64> {
        rounds.iter().filter_map(|round| combined(&|operand| operand.in_round(*round))).collect()
    };
    let mut values: Vec<Vec<f64>> = trials.iter().map(in_rounds).collect();
    values.retain(|of_trial| !of_trial.is_empty());
    let fewest = stats::fewest_values(confidence);
    let has_enough = |operand: &Operand<'_>| operand.trials(operand.rounds.keys().copied()) >= fewest;
    if values.len() < fewest
        && operands.iter().all(has_enough)
        && let [(formula, _)] = parts
    {
        let estimates =
            operands.iter().map(|operand| operand.estimate(confidence)).collect::<Option<Vec<_>>>();
        return estimates.and_then(|estimates| apart(formula, &estimates)).ok_or_else(no_value);
    }
    let estimate = if is_ratio && values.iter().flatten().all(|value| *value > 0.0) {
        let logs: Vec<Vec<f64>> =
            values.iter().map(|of_trial| of_trial.iter().map(|value| value.ln()).collect()).collect();
        median_over_trials_at_confidence(&logs, confidence).map(|logs| logs.map(f64::exp))
    } else {
        median_over_trials_at_confidence(&values, confidence)
    };
    estimate.map(|estimate| Number::of_trials(values.len(), estimate)).ok_or_else(no_value)
}

/// `rounds` by the trials of the one of `operands` that has the fewest in them, in the order of time.
fn by_trial(operands: &[Operand<'_>], rounds: &[Round]) -> Vec<Vec<Round>> {
    let varying = operands.iter().filter(|operand| !operand.is_constant());
    let fewest = varying.min_by_key(|operand| operand.trials(rounds.iter().copied()));
    let Some(fewest) = fewest.or(operands.first()) else { return Vec::new() };
    let mut trials: BTreeMap<Option<u32>, Vec<Round>> = BTreeMap::new();
    rounds.iter().for_each(|round| trials.entry(fewest.trial(*round)).or_default().push(*round));
    trials.into_values().collect()
}

/// The number of `formula` from estimates that have no rounds in common: its interval holds what theirs hold.
fn apart(formula: &Formula, estimates: &[Estimate]) -> Option<Number> {
    let mut next = estimates.iter();
    let median = value(formula, &mut |_| next.next().map(|estimate| estimate.median))?;
    let mut next = estimates.iter();
    let interval = range(formula, &mut |_| next.next().and_then(|estimate| estimate.interval));
    Some(Number { estimate: Estimate { median, interval }, apart: true, trials: 0 })
}

/// Student's interval around `whole`, from what is left when each round is left out.
fn jackknife(whole: f64, without: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let n = without.len();
    if n < FEWEST {
        return None;
    }
    let variance = stats::squares(without) * (n as f64 - 1.0) / n as f64;
    let half = student_quantile((1.0 - confidence) / 2.0, n as f64 - 1.0) * variance.sqrt();
    // A time below 0 says nothing; the number may then be anything from 0.
    let low = if whole >= 0.0 { (whole - half).max(0.0) } else { whole - half };
    half.is_finite().then_some((low, whole + half))
}

/// Why a formula of `operands` has no value.
fn why_no_value(operands: &[Operand<'_>]) -> String {
    let empty = operands.iter().find(|operand| operand.in_all().is_none()).or(operands.first());
    empty.map_or_else(String::new, |operand| {
        let reason = operand.absence().unwrap_or_else(|| format!("it has no {}", operand.of_case.metric));
        format!("{}: {reason}", operand.record.case)
    })
}

/// The size at which `formula` is best. Its interval reaches over the sizes that cannot be told from it.
fn peak(selector: &Selector<'_>, formula: &Formula, confidence: f64) -> Result<Number, String> {
    let is_rate = formula.unit().is_ok_and(|unit| unit == Unit::BytesPerS);
    let values = over_sizes(selector, formula)?;
    let better = |a: &(Size, f64), b: &(Size, f64)| {
        if is_rate { a.1.total_cmp(&b.1) } else { b.1.total_cmp(&a.1) }
    };
    let best = values.iter().copied().max_by(better).ok_or("there is nothing to choose from")?.0;
    let mut equals = vec![best];
    let mut is_known = true;
    for &(size, _) in values.iter().filter(|(size, _)| *size != best) {
        let over_best = ratio(selector, (formula, At::Size(size)), (formula, At::Size(best)), confidence)?;
        match over_best.estimate.interval {
            Some((low, high)) if low <= 1.0 && 1.0 <= high => equals.push(size),
            Some(_) => {}
            None => is_known = false,
        }
    }
    let bounds = equals.iter().min().zip(equals.iter().max());
    let interval = bounds.filter(|_| is_known).map(|(low, high)| (low.0 as f64, high.0 as f64));
    Ok(Number::of(Estimate { median: best.0 as f64, interval }))
}

/// The largest size up to which `formula` is within `within` of its value at the smallest.
fn flat(
    selector: &Selector<'_>,
    formula: &Formula,
    within: Percent,
    confidence: f64,
) -> Result<Number, String> {
    let values = over_sizes(selector, formula)?;
    let smallest = values.first().ok_or("there is nothing to start from")?.0;
    let most = 1.0 + within.0;
    // The largest sizes before which all are within: surely, by the median, and possibly.
    let mut reached = [Some(smallest); 3];
    let mut ended = [false; 3];
    let mut is_known = true;
    for &(size, _) in &values[1..] {
        let growth =
            ratio(selector, (formula, At::Size(size)), (formula, At::Size(smallest)), confidence)?.estimate;
        is_known &= growth.interval.is_some();
        let (low, high) = growth.interval.unwrap_or((growth.median, growth.median));
        for (nth, value) in [high, growth.median, low].into_iter().enumerate() {
            ended[nth] |= value > most;
            if !ended[nth] {
                reached[nth] = Some(size);
            }
        }
    }
    let [surely, median, possibly] = reached.map(|size| size.map_or(0.0, |size| size.0 as f64));
    let interval = is_known.then_some((surely, possibly));
    Ok(Number::of(Estimate { median, interval }))
}

/// The values of `formula` at each size that has one.
fn over_sizes(selector: &Selector<'_>, formula: &Formula) -> Result<Vec<(Size, f64)>, String> {
    let (sizes, missing) = selector.sizes(formula)?;
    let values = sizes.into_iter().filter_map(|size| {
        let number = formula_number(selector, formula, At::Size(size), CONFIDENCE).ok()?;
        Some((size, number.estimate.median))
    });
    let values: Vec<_> = values.collect();
    if values.is_empty() {
        Err(missing.into_iter().next().map_or_else(|| "no size was measured".to_owned(), |(_, why)| why))
    } else {
        Ok(values)
    }
}
