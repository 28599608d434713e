//! When candidates can be told apart, and when one need not be measured any longer.

use model::estimate::Estimate;

/// Within this of the best, it does not matter which is taken.
pub const CLOSE: f64 = 0.05;
/// What is slower than the best by more than this factor is not measured any longer.
const HOPELESS: f64 = 1.5;

/// How many times `a` is `b`. The interval is that of two independent numbers, each log-normal.
pub fn over(a: Estimate, b: Estimate) -> Estimate {
    let half = |of: Estimate| of.interval.map(|(low, high)| (high / low).ln() / 2.0);
    let median = a.median / b.median;
    let interval = half(a).zip(half(b)).map(|(a, b)| a.hypot(b)).filter(|half| half.is_finite());
    Estimate { median, interval: interval.map(|half| (median * (-half).exp(), median * half.exp())) }
}

/// Which of `times` is the best: the least of those with an interval, else the least. What a few trials say, too few for an interval,
/// is chance to a great part: of some twenty candidates one would be the best by it.
pub fn best_of(times: &[Estimate]) -> Option<usize> {
    let order = |a: &Estimate, b: &Estimate| {
        a.interval.is_none().cmp(&b.interval.is_none()).then(a.median.total_cmp(&b.median))
    };
    (0..times.len()).min_by(|a, b| order(&times[*a], &times[*b]))
}

/// Whether the best of `times` is known: every other is surely greater, or surely within [`CLOSE`] of it.
pub fn are_told_apart(times: &[Estimate]) -> bool {
    let Some(at) = best_of(times) else { return false };
    let others = times.iter().enumerate().filter(|(other, _)| *other != at);
    times[at].interval.is_some() && others.map(|(_, other)| over(*other, times[at])).all(is_decided)
}

/// Whether a ratio to the best says enough.
fn is_decided(ratio: Estimate) -> bool {
    ratio.interval.is_some_and(|(low, high)| low > 1.0 || high <= 1.0 + CLOSE)
}

/// Whether a candidate of `time` is surely more than [`CLOSE`] worse than the best, which takes `best`.
pub fn is_surely_worse(time: Estimate, best: Estimate) -> bool {
    over(time, best).interval.is_some_and(|(low, _)| low > 1.0 + CLOSE)
}

/// Whether a candidate of `time` need not be measured any longer where the best takes `best`. It is asked after its first trials, so
/// that there need be no interval.
pub fn is_hopeless(time: Estimate, best: f64) -> bool {
    time.interval.map_or(time.median, |(low, _)| low) > HOPELESS * best
}
