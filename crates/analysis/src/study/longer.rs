//! How long a run would decide what this one left open.
//!
//! An interval narrows with the square root of the number of trials. From how far its end is from the median, and how far the
//! median is from the bound, follows how many times as many trials put the end at the bound. What had no trial at all is
//! tested once all cases have as many as an interval takes.

use super::select::Selector;
use crate::interval::FEWEST_TRIALS;
use model::estimate::Estimate;
use model::record::{Record, Results};
use model::study::Measure;
use std::collections::BTreeSet;
use std::time::Duration;

/// What one number lacks to be decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Lack {
    /// How many times as many trials would decide it.
    pub(super) times: f64,
    /// Whether it would then refute its conclusion.
    pub(super) refutes: bool,
    /// Whether its trials are those with probes.
    pub(super) probed: bool,
}

impl Lack {
    /// Of the number of `measure`, whose `judged` interval does not decide whether it lies from `least` to `most`.
    pub(super) fn of_width(measure: &Measure, judged: Estimate, (least, most): (f64, f64)) -> Option<Self> {
        let Estimate { median, interval: Some((low, high)) } = judged else { return None };
        let square = |width: f64, room: f64| if room > 0.0 { (width / room).powi(2) } else { f64::INFINITY };
        let (times, refutes) = if median < least {
            (square(high - median, least - median), true)
        } else if median > most {
            (square(median - low, median - most), true)
        } else {
            (square(median - low, median - least).max(square(high - median, most - median)), false)
        };
        Some(Self { times: times.max(1.0), refutes, probed: is_probed(measure) })
    }

    /// Of the number of `measure`, of which there are `trials` and it takes `fewest`.
    pub(super) fn of_trials(measure: &Measure, refutes: bool, trials: usize, fewest: usize) -> Self {
        Self { times: fewest as f64 / trials.max(1) as f64, refutes, probed: is_probed(measure) }
    }

    /// Of the number of `measure`, a case of which had no trial in `results`; `None` where that case wants probes, of whose trials
    /// results do not say how many were to come.
    pub(super) fn of_untried(measure: &Measure, results: &Results) -> Option<Self> {
        let trials = |record: &Record| {
            record.samples.iter().map(|sample| sample.trial).collect::<BTreeSet<_>>().len() as f64
        };
        let (records, planned) = (results.records.len(), results.header.plan.cases.len());
        let done: f64 = results.records.iter().map(trials).sum();
        let times = ((FEWEST_TRIALS * records.max(planned)) as f64 / done.max(1.0)).max(1.0);
        (!is_probed(measure)).then_some(Self { times, refutes: false, probed: false })
    }
}

fn is_probed(measure: &Measure) -> bool {
    measure.formula.metrics().iter().any(|of_case| of_case.metric.probe().is_some())
}

/// How long a run would decide a conclusion whose open numbers have `lacks`, in one sentence, where that can be told.
pub(super) fn sentence(selector: &Selector<'_>, lacks: &[Option<Lack>]) -> Option<String> {
    /// Nobody waits longer, and the host would not stay the same.
    const LONGEST: Duration = Duration::from_secs(24 * 3600);
    /// A run that is only just long enough decides in half of the cases.
    const SPARE: f64 = 1.5;

    // One number refutes; to hold takes all of them.
    let by = |a: &&Lack, b: &&Lack| a.times.total_cmp(&b.times);
    let known = || lacks.iter().flatten();
    let all = || known().max_by(by).filter(|_| lacks.iter().all(Option::is_some));
    let decides = known().filter(|lack| lack.refutes).min_by(by).or_else(all)?;
    let (settings, end) = (&selector.results.header.settings, selector.results.end.as_ref());
    let (option, so_far_ns) = match decides.probed {
        true => ("--observe", settings.observe_ns),
        false => ("--time", end.map_or(settings.time_ns, |end| end.elapsed_ns)),
    };
    let seconds = so_far_ns as f64 / 1e9 * decides.times * SPARE;
    if seconds.is_nan() || seconds > LONGEST.as_secs_f64() {
        return Some("it lies so near a bound that no run of a day would decide it".to_owned());
    }
    let time = in_words(seconds);
    let is_limit = |rounds: u32| end.is_some_and(|end| end.rounds >= rounds);
    let rounds = settings
        .rounds
        .filter(|rounds| !decides.probed && is_limit(*rounds))
        .map(|rounds| format!(" --rounds {}", (f64::from(rounds) * decides.times * SPARE).ceil()));
    Some(format!("a run with {option} {time}{} would probably decide it", rounds.unwrap_or_default()))
}

/// `seconds`, rounded up as one says them: `40s`, `7m`, `3h`.
fn in_words(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{}s", (seconds / 10.0).ceil().max(1.0) * 10.0),
        ..5400.0 => format!("{}m", (seconds / 60.0).ceil()),
        _ => format!("{}h", (seconds / 3600.0).ceil()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lack(interval: (f64, f64), median: f64, bounds: (f64, f64)) -> Lack {
        let measure: Measure = "time of a".parse().unwrap();
        Lack::of_width(&measure, Estimate { median, interval: Some(interval) }, bounds).unwrap()
    }

    #[test]
    fn half_the_width_takes_four_times_the_trials() {
        let no_bound = f64::INFINITY;
        assert_eq!(
            lack((8.0, 14.0), 10.0, (9.0, no_bound)),
            Lack { times: 4.0, refutes: false, probed: false }
        );
        // The nearer bound is the one that counts.
        assert_eq!(lack((8.0, 14.0), 10.0, (9.0, 11.0)).times, 16.0);
        assert_eq!(
            lack((8.0, 14.0), 10.0, (-no_bound, 9.0)),
            Lack { times: 4.0, refutes: true, probed: false }
        );
        assert_eq!(lack((8.0, 12.0), 10.0, (10.0, no_bound)).times, f64::INFINITY);
    }

    #[test]
    fn times_are_round() {
        assert_eq!([3.0, 41.0, 100.0, 6000.0].map(in_words), ["10s", "50s", "2m", "2h"]);
    }
}
