//! From trials to the number of a formula, with its interval.
//!
//! What is made of times and rates alone is for the model of the run to say: the cases of a ratio are taken at one state of the host. Any other
//! formula is evaluated **within each round** in which all its cases have a slice, so that a host that drifts does so on
//! both sides; its value is the mean over trials of the medians over their rounds, of a ratio by logarithms. Trials are
//! those of the case that has the fewest. A formula of what is used up, as CPU time is, is evaluated over all trials together, as the sum of
//! iterations, and its interval is by the jackknife over trials. Where cases share no two trials, each is estimated by itself, and their errors add up.
//!
//! Trials with probes have rounds of their own: all cases and probes share them, and no trial without probes does.

use super::formula_value::{is_product, is_ratio, is_used_up, value};
use super::missing::Missing;
use super::select::{At, Operand, Round, Selector};
use crate::interval::{CONFIDENCE, MeanError, over_trials, ratio_over_trials};
use crate::run::RunModel;
use crate::stats::{self, student_quantile};
use model::estimate::Estimate;
use model::study::Measure;
use model::study::formula::{Formula, MeasureKind};
use model::units::{Percent, Size, Unit};
use std::collections::BTreeMap;

/// With fewer trials there is no interval.
const FEWEST: usize = 2;

/// The number of a measure.
#[derive(Clone, Copy)]
pub(super) struct Number {
    pub(super) estimate: Estimate,
    /// Of how many trials it is; 0 where it is not of trials, as a constant or a size.
    pub(super) trials: usize,
}

impl Number {
    fn exact(value: f64) -> Self {
        Self { estimate: Estimate { median: value, interval: None }, trials: 0 }
    }
}

/// The number of `measure` at `at`.
pub(super) fn measure(
    selector: &Selector<'_>,
    measure: &Measure,
    at: At,
    confidence: f64,
) -> Result<Number, Missing> {
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
) -> Result<Number, Missing> {
    number(selector, &[(formula, at)], is_ratio(formula), confidence)
}

/// The number of `a` over that of `b`.
pub(super) fn ratio(
    selector: &Selector<'_>,
    a: (&Formula, At),
    b: (&Formula, At),
    confidence: f64,
) -> Result<Number, Missing> {
    number(selector, &[a, b], true, confidence)
}

/// The number of the only one of `parts`, or of the first over the second.
fn number(
    selector: &Selector<'_>,
    parts: &[(&Formula, At)],
    is_ratio: bool,
    confidence: f64,
) -> Result<Number, Missing> {
    let metrics =
        parts.iter().flat_map(|(formula, at)| formula.metrics().into_iter().map(|of_case| (of_case, *at)));
    let operands =
        metrics.map(|(of_case, at)| selector.operand(of_case, at)).collect::<Result<Vec<_>, _>>()?;
    let formulas: Vec<&Formula> = parts.iter().map(|(formula, _)| *formula).collect();
    let combination = Combination { formulas, operands, is_ratio, confidence };
    let number = if combination.operands.is_empty() {
        combination.at(&[]).map(Number::exact)
    } else if combination.operands.iter().all(Operand::is_modelled) {
        combination.modelled(selector)
    } else if combination.formulas.iter().any(|formula| is_used_up(formula)) {
        combination.over_all()
    } else {
        combination.over_rounds()
    };
    number.ok_or_else(|| combination.why_no_value())
}

/// A formula, or one over another, with its operands.
struct Combination<'a> {
    formulas: Vec<&'a Formula>,
    /// In the order in which the formulas have them.
    operands: Vec<Operand<'a>>,
    is_ratio: bool,
    confidence: f64,
}

impl Combination<'_> {
    /// Its value, given those of its operands.
    fn at(&self, values: &[f64]) -> Option<f64> {
        let mut values = values.iter().copied();
        let mut next = |formula: &&Formula| value(formula, &mut |_| values.next());
        let of_formulas = self.formulas.iter().map(&mut next).collect::<Option<Vec<f64>>>()?;
        let combined = of_formulas.into_iter().reduce(|a, b| a / b)?;
        combined.is_finite().then_some(combined)
    }

    /// Its value where each operand has the value that `of` gives.
    fn evaluate_by(&self, of: impl Fn(&Operand<'_>) -> Option<f64>) -> Option<f64> {
        self.at(&self.operands.iter().map(of).collect::<Option<Vec<f64>>>()?)
    }

    /// How it follows each operand at `values`.
    fn slopes(&self, values: &[f64]) -> Option<Vec<f64>> {
        const STEP: f64 = 1e-6;
        let slope = |at: usize| {
            let step = STEP * values[at].abs().max(f64::MIN_POSITIVE.sqrt());
            let moved = |by: f64| {
                let mut moved = values.to_vec();
                moved[at] += by;
                self.at(&moved)
            };
            Some((moved(step)? - moved(-step)?) / (2.0 * step))
        };
        (0..values.len()).map(slope).collect()
    }

    /// By the model of the run.
    fn modelled(&self, selector: &Selector<'_>) -> Option<Number> {
        let known: Option<Vec<(f64, f64)>> =
            self.operands.iter().map(|operand| operand.modelled(selector.model)).collect();
        let (values, powers): (Vec<f64>, Vec<f64>) = known?.into_iter().unzip();
        let value = self.at(&values)?;
        let slopes = self.slopes(&values)?;
        // What the value changes by, for each logarithm of a time that changes by 1.
        let share = |at: usize| (&self.operands[at].record.case, slopes[at] * values[at] * powers[at]);
        let shares: Vec<_> = (0..values.len()).map(share).filter(|(_, share)| *share != 0.0).collect();
        let error = selector.model.log_sum(&shares)?;
        let trials = self.operands.iter().filter(|operand| !operand.is_constant());
        let trials = trials.map(|operand| operand.trials(operand.rounds.keys().copied()));
        let is_product = self.formulas.iter().all(|formula| is_product(formula));
        let estimate = self.with_error(value, RunModel::known(error), is_product);
        Some(Number { estimate, trials: trials.min().unwrap_or_default() })
    }

    /// `value` with the interval of `error`, if it has one: of a ratio, and of what `is_product`, by logarithms.
    fn with_error(&self, value: f64, error: Option<MeanError>, is_product: bool) -> Estimate {
        let interval = error.map(|MeanError { variance, degrees, .. }| {
            let half = student_quantile((1.0 - self.confidence) / 2.0, degrees) * variance.sqrt();
            if (self.is_ratio || is_product) && value > 0.0 {
                (value * (-half / value).exp(), value * (half / value).exp())
            } else {
                (value - half, value + half)
            }
        });
        Estimate { median: value, interval: interval.filter(|(low, high)| (high - low).is_finite()) }
    }

    /// Over all trials together, by the jackknife.
    fn over_all(&self) -> Option<Number> {
        let shared = self.shared();
        let trials = self.by_trial(&shared);
        if trials.len() < FEWEST {
            let number = Number::exact(self.evaluate_by(|operand| operand.in_all())?);
            return Some(Number { trials: trials.len(), ..number });
        }
        let whole = self.evaluate_by(|operand| operand.in_rounds(&shared))?;
        let others = |at: usize| [&trials[..at], &trials[at + 1..]].concat().concat();
        let without =
            (0..trials.len()).filter_map(|at| self.evaluate_by(|operand| operand.in_rounds(&others(at))));
        let interval = jackknife(whole, &without.collect::<Vec<_>>(), self.confidence);
        Some(Number { estimate: Estimate { median: whole, interval }, trials: trials.len() })
    }

    /// Within rounds, or of each operand by itself where they share too few.
    fn over_rounds(&self) -> Option<Number> {
        let in_rounds = |rounds: &Vec<Round>| {
            let values =
                rounds.iter().filter_map(|round| self.evaluate_by(|operand| operand.in_round(*round)));
            stats::median(&values.collect::<Vec<_>>())
        };
        let values: Vec<f64> = self.by_trial(&self.shared()).iter().filter_map(in_rounds).collect();
        if values.len() < FEWEST
            && let Some(number) = self.apart()
        {
            return Some(number);
        }
        let is_above_0 = values.iter().all(|value| *value > 0.0);
        let of_trials = if self.is_ratio && is_above_0 { ratio_over_trials } else { over_trials };
        of_trials(&values, self.confidence).map(|estimate| Number { estimate, trials: values.len() })
    }

    /// Of operands that have no rounds in common: their errors add up.
    fn apart(&self) -> Option<Number> {
        let known: Vec<MeanError> = self.operands.iter().map(Operand::by_itself).collect::<Option<_>>()?;
        let values: Vec<f64> = known.iter().map(|known| known.mean).collect();
        let value = self.at(&values)?;
        let slopes = self.slopes(&values)?;
        let errors = known.iter().zip(slopes);
        let errors =
            errors.map(|(known, slope)| MeanError { variance: known.variance * slope * slope, ..*known });
        Some(Number { estimate: self.with_error(value, Some(MeanError::of_sum(errors)), false), trials: 0 })
    }

    /// The rounds in which all operands were measured.
    fn shared(&self) -> Vec<Round> {
        let varies = |operand: &&Operand<'_>| !operand.is_constant();
        let Some(decides) = self.operands.iter().find(varies).or(self.operands.first()) else {
            return Vec::new();
        };
        let is_shared = |round: &Round| {
            self.operands.iter().filter(varies).all(|operand| operand.rounds.contains_key(round))
        };
        decides.rounds.keys().copied().filter(is_shared).collect()
    }

    /// `rounds` by the trials of the operand that has the fewest in them, in the order of time.
    fn by_trial(&self, rounds: &[Round]) -> Vec<Vec<Round>> {
        let varying = self.operands.iter().filter(|operand| !operand.is_constant());
        let fewest = varying.min_by_key(|operand| operand.trials(rounds.iter().copied()));
        let Some(fewest) = fewest.or(self.operands.first()) else { return Vec::new() };
        let mut trials: BTreeMap<Option<u32>, Vec<Round>> = BTreeMap::new();
        rounds.iter().for_each(|round| trials.entry(fewest.trial(*round)).or_default().push(*round));
        trials.into_values().collect()
    }

    fn why_no_value(&self) -> Missing {
        let empty = self.operands.iter().find(|operand| operand.in_all().is_none());
        let Some(operand) = empty.or(self.operands.first()) else {
            return Missing::host("the formula has no value");
        };
        let reason = operand.absence().unwrap_or_else(|| format!("it has no {}", operand.of_case.metric));
        Missing::host(format!("{}: {reason}", operand.record.case))
    }
}

/// Student's interval around `whole`, from what is left when each trial is left out.
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

/// The size at which `formula` is best. Its interval reaches over the sizes that cannot be distinguished from it.
fn peak(selector: &Selector<'_>, formula: &Formula, confidence: f64) -> Result<Number, Missing> {
    let is_rate = formula.unit().is_ok_and(|unit| unit == Unit::BytesPerS);
    let values = over_sizes(selector, formula)?;
    let better = |a: &(Size, f64), b: &(Size, f64)| {
        if is_rate { a.1.total_cmp(&b.1) } else { b.1.total_cmp(&a.1) }
    };
    let best = values
        .iter()
        .copied()
        .max_by(better)
        .ok_or_else(|| Missing::host("there is nothing to choose from"))?
        .0;
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
    Ok(Number { estimate: Estimate { median: best.0 as f64, interval }, trials: 0 })
}

/// The largest size up to which `formula` is within `within` of its value at the smallest.
fn flat(
    selector: &Selector<'_>,
    formula: &Formula,
    within: Percent,
    confidence: f64,
) -> Result<Number, Missing> {
    let values = over_sizes(selector, formula)?;
    let smallest = values.first().ok_or_else(|| Missing::host("there is nothing to start from"))?.0;
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
    Ok(Number { estimate: Estimate { median, interval }, trials: 0 })
}

/// The values of `formula` at each size that has one.
fn over_sizes(selector: &Selector<'_>, formula: &Formula) -> Result<Vec<(Size, f64)>, Missing> {
    let (sizes, missing) = selector.sizes(formula)?;
    let values = sizes.into_iter().filter_map(|size| {
        let number = formula_number(selector, formula, At::Size(size), CONFIDENCE).ok()?;
        Some((size, number.estimate.median))
    });
    let values: Vec<_> = values.collect();
    if values.is_empty() {
        let none = || Missing::not_asked("no size was measured");
        Err(missing.into_iter().next().map_or_else(none, |(_, why)| why))
    } else {
        Ok(values)
    }
}
