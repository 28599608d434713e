//! Two mechanisms that one run measured in turn.

use super::result::{ComparisonOptions, ComparisonVerdict};
use super::statistics::{Caution, FEWEST_TRIALS};
use crate::stats;
use model::estimate::Estimate;
use model::sample::Sample;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Two cases measured in turn in every round of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedRatios {
    /// What is compared, such as `pipe against unix-stream, latency 64`.
    pub name: String,
    /// One log-ratio a round, in order, from [`round_log_ratios`].
    pub log_ratios: Vec<f64>,
}

/// The comparison of two cases measured in turn.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PairedComparison {
    /// What is compared.
    pub name: String,
    /// How many rounds had both.
    pub rounds: u32,
    /// B's time over A's: the median round, with an interval of 95% for all pairs together; absent with no rounds.
    pub ratio: Option<Estimate>,
    /// What follows.
    pub verdict: ComparisonVerdict,
    /// Why it cannot be told.
    pub reason: Option<String>,
}

/// The log-ratio of every round in which both have a trial: the mean logarithm of B's trials less
/// that of A's. In the order A B B A a drift that is linear over the round drops out.
pub fn round_log_ratios(a: &[Sample], b: &[Sample]) -> Vec<f64> {
    let logs_by_round = |samples: &[Sample]| {
        let mut logs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for sample in samples {
            logs.entry(sample.round).or_default().push(sample.iteration_ns().ln());
        }
        logs
    };
    let of_b = logs_by_round(b);
    let in_both = logs_by_round(a).into_iter().filter_map(|(round, a)| Some((a, of_b.get(&round)?)));
    in_both.map(|(a, b)| stats::mean(b) - stats::mean(&a)).collect()
}

/// Compares two mechanisms, in one or more cases, that one run measured in turn.
///
/// Both sides of a round had the same host, so that nothing has to be adjusted: the ratio is that of
/// the median round, its interval is of order statistics and holds for all pairs together
/// (Bonferroni). Every round has fresh endpoints, so that what differs from run to run differs from
/// round to round and is in the interval. It assumes that the *ratio* of one round says nothing of
/// the next.
pub fn compare_paired(pairs: &[PairedRatios], options: ComparisonOptions) -> Vec<PairedComparison> {
    let together = pairs.iter().filter(|pair| pair.log_ratios.len() >= FEWEST_TRIALS).count();
    let caution = Caution { together, options };
    pairs.iter().map(|pair| judge_paired(pair, caution)).collect()
}

fn judge_paired(pair: &PairedRatios, caution: Caution) -> PairedComparison {
    let estimate = stats::median_interval_at(&pair.log_ratios, 1.0 - 2.0 * caution.tail());
    let margin = caution.options.margin;
    let (verdict, reason) = match estimate.and_then(|estimate| estimate.interval) {
        None => {
            let why =
                format!("{} rounds are too few for {} pairs", pair.log_ratios.len(), caution.together.max(1));
            (ComparisonVerdict::CannotTell, Some(why))
        }
        Some((low, _)) if low > 0.0 => (ComparisonVerdict::Slower, None),
        Some((_, high)) if high < 0.0 => (ComparisonVerdict::Faster, None),
        Some((low, high)) if caution.within_margin(low, 0.0) && caution.within_margin(high, 0.0) => {
            (ComparisonVerdict::NoDifference, None)
        }
        Some(_) => (
            ComparisonVerdict::CannotTell,
            Some(format!("its interval reaches beyond ±{margin}: give it more time")),
        ),
    };
    PairedComparison {
        name: pair.name.clone(),
        rounds: u32::try_from(pair.log_ratios.len()).unwrap_or(u32::MAX),
        ratio: estimate.map(|estimate| estimate.map(f64::exp)),
        verdict,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::Random;
    use super::*;
    use model::testing;

    #[test]
    fn drift_within_a_round_drops_out_of_abba() {
        // A B B A under a drift of 2% a trial; B takes 10% more.
        let trial = |round: u32, place: u32, ns: f64| {
            let drift = (0.02 * f64::from(4 * round + place)).exp();
            Sample { started_ns: u64::from(4 * round + place), ..testing::sample(round, ns * drift, None) }
        };
        let a: Vec<Sample> =
            (0..12).flat_map(|round| [trial(round, 0, 100.0), trial(round, 3, 100.0)]).collect();
        let mut b: Vec<Sample> =
            (0..12).flat_map(|round| [trial(round, 1, 110.0), trial(round, 2, 110.0)]).collect();
        b.truncate(22);
        let ratios = round_log_ratios(&a, &b);
        assert_eq!(ratios.len(), 11);
        assert!(ratios.iter().all(|log| (log - 1.1f64.ln()).abs() < 1e-9), "{ratios:?}");
    }

    fn paired(log_ratios: Vec<f64>) -> PairedRatios {
        PairedRatios { name: "pipe against fifo".to_owned(), log_ratios }
    }

    #[test]
    fn paired_verdicts_come_from_the_median_round() {
        let around = |centre: f64, spread: f64, n: u32| {
            paired(
                (0..n).map(|nth| centre + spread * (f64::from(nth * 7 % n) / f64::from(n) - 0.5)).collect(),
            )
        };
        let verdicts = |pairs: &[PairedRatios]| -> Vec<ComparisonVerdict> {
            compare_paired(pairs, ComparisonOptions::default()).iter().map(|pair| pair.verdict).collect()
        };
        assert_eq!(
            verdicts(&[
                around(0.1, 0.05, 20),
                around(-0.1, 0.05, 20),
                around(0.0, 0.05, 20),
                around(0.0, 0.5, 20),
                around(0.1, 0.0, 4),
            ]),
            [
                ComparisonVerdict::Slower,
                ComparisonVerdict::Faster,
                ComparisonVerdict::NoDifference,
                ComparisonVerdict::CannotTell,
                ComparisonVerdict::CannotTell
            ]
        );
        let alone = compare_paired(&[around(0.1, 0.05, 8)], ComparisonOptions::default());
        assert_eq!(alone[0].verdict, ComparisonVerdict::Slower);
        assert!((alone[0].ratio.unwrap().median - 1.1).abs() < 0.01);
        // Eight rounds allow one interval of 95%, and not twenty that hold together.
        let many = compare_paired(&vec![around(0.1, 0.05, 8); 20], ComparisonOptions::default());
        assert_eq!(many[0].verdict, ComparisonVerdict::CannotTell);
        assert_eq!(many[0].reason.as_deref(), Some("8 rounds are too few for 20 pairs"));
        assert_eq!(verdicts(&[paired(Vec::new())]), [ComparisonVerdict::CannotTell]);
    }

    #[test]
    fn paired_intervals_hold_together() {
        let mut random = Random(11);
        let mut any = 0;
        for _ in 0..300 {
            let pairs: Vec<PairedRatios> =
                (0..10).map(|_| paired((0..30).map(|_| 0.05 * random.normal()).collect())).collect();
            let called = |pair: &PairedComparison| {
                matches!(pair.verdict, ComparisonVerdict::Faster | ComparisonVerdict::Slower)
            };
            any += usize::from(compare_paired(&pairs, ComparisonOptions::default()).iter().any(called));
        }
        assert!(any <= 21, "{any} of 300 families have a false call");
    }
}
