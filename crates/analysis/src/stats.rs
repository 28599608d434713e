//! The statistics of timing: medians with intervals that assume no distribution, spreads, and two modes. General statistics (the t distribution) come from `statrs`.

use model::estimate::{Estimate, Modes};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The median of `values` with its 95% interval by order statistics; `None` of nothing.
///
/// The interval is the narrowest pair of order statistics, symmetric in rank, that covers the
/// median with a probability of at least 95% for any continuous distribution (Hahn and Meeker,
/// *Statistical Intervals*, 5.2).
pub fn median_interval(values: &[f64]) -> Option<Estimate> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = lower_rank(sorted.len(), 0.025);
    let interval = rank.map(|rank| (sorted[rank], sorted[sorted.len() - 1 - rank]));
    Some(Estimate { median: median_of_sorted(&sorted)?, interval })
}

/// The median of `values`; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

/// The value of which a `share` of `sorted` lies below, between two of them if need be; `None` of nothing.
pub fn quantile_of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(low + (high - low) * place.fract())
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The largest 0-based rank r for which [x(r), x(n-1-r)] misses the median with at most `tail` on each side.
///
/// What is missed on one side is P(B ≤ r) with B binomial(n, ½); the sum is built in logarithms so that
/// it holds for any n.
fn lower_rank(n: usize, most_tail: f64) -> Option<usize> {
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = log_term.exp();
    if tail > most_tail {
        return None;
    }
    for rank in 1.. {
        log_term += ((n - rank + 1) as f64 / rank as f64).ln();
        tail += log_term.exp();
        if tail > most_tail {
            return Some(rank - 1);
        }
    }
    None
}

/// The two groups into which `values` fall, if they do.
///
/// The split is the one that leaves the least variance within the groups (on logarithms). It counts
/// as two modes when each group holds a fifth of the values and at least three, the slow median is
/// 10% above the fast one, and Ashman's D, the distance of the means in units of spread, is above what the best split of
/// `independent` values of one mode has by chance in 2 of 100 cases: 4 of many (a uniform distribution split in half
/// has 3.5, a normal one 2.7), and more of few. Values that resemble each other within trials are as independent as the trials.
pub fn two_modes(values: &[f64], independent: usize) -> Option<Modes> {
    let least_d = 4.0 + 50.0 / independent as f64;
    const LEAST_RATIO: f64 = 1.1;

    let n = values.len();
    let least = (n / 5).max(3);
    if n < 2 * least || values.iter().any(|v| *v <= 0.0) {
        return None;
    }
    let mut logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    logs.sort_unstable_by(f64::total_cmp);
    // The split with the least variance within is the one with the most between.
    let sums: Vec<f64> = logs
        .iter()
        .scan(0.0, |sum, log| {
            *sum += log - logs[0];
            Some(*sum)
        })
        .collect();
    let between = |at: usize| {
        let (fast, all) = (sums[at - 1], sums[n - 1]);
        fast * fast / at as f64 + (all - fast).powi(2) / (n - at) as f64
    };
    let split = (least..=n - least).max_by(|a, b| between(*a).total_cmp(&between(*b)))?;
    let (fast, slow) = logs.split_at(split);
    let spread = squares(fast) / fast.len() as f64 + squares(slow) / slow.len() as f64;
    let d = std::f64::consts::SQRT_2 * (mean(slow) - mean(fast)) / spread.sqrt();
    let (fast_ns, slow_ns) = (median_of_sorted(fast)?.exp(), median_of_sorted(slow)?.exp());
    (d > least_d && slow_ns / fast_ns > LEAST_RATIO).then(|| Modes {
        fast: fast_ns,
        slow: slow_ns,
        fast_share: fast.len() as f64 / n as f64,
        slow_speed: None,
    })
}

/// The mean of `values`.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sum of squared distances of `values` from their mean.
pub fn squares(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|v| (v - centre).powi(2)).sum()
}

/// The standard deviation of `values` as a sample, of at least two.
pub fn deviation(values: &[f64]) -> f64 {
    (squares(values) / (values.len() as f64 - 1.0)).sqrt()
}

/// The point that a Student variable of `degrees` of freedom exceeds with probability `tail`.
pub(crate) fn student_quantile(tail: f64, degrees: f64) -> f64 {
    /// From here on it is the normal one to four digits; NaN is of no variance at all.
    const AS_GOOD_AS_NORMAL: f64 = 1e4;
    let degrees = if degrees.is_nan() { AS_GOOD_AS_NORMAL } else { degrees.clamp(1.0, AS_GOOD_AS_NORMAL) };
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::INFINITY, |t| -t.inverse_cdf(tail))
}

/// The probability that a Student variable of `degrees` of freedom exceeds `value`.
pub(crate) fn student_tail(value: f64, degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees.clamp(1.0, 1e4)).map_or(1.0, |t| t.sf(value))
}

/// The standard deviation of a normal variable over the median of its distance from the mean.
pub const DEVIATION_OF_MEDIAN: f64 = 1.4826;

/// The standard deviation of most of `values`: of normal ones it is theirs, and a few that are no such values count for nothing. `None`
/// of no value.
pub fn deviation_of_most(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&distances).map(|distance| DEVIATION_OF_MEDIAN * distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Random;
    use proptest::prelude::*;

    #[test]
    fn the_deviation_of_most_knows_no_outlier() {
        let mut values: Vec<f64> = (-500..=500).map(|n| f64::from(n) / 500.0).collect();
        let of_uniform = deviation_of_most(&values).unwrap();
        assert!((of_uniform - 0.5 * DEVIATION_OF_MEDIAN).abs() < 0.01, "{of_uniform}");
        values.extend([1e9; 5]);
        assert!((deviation_of_most(&values).unwrap() - of_uniform).abs() < 0.01);
        assert_eq!(deviation_of_most(&[]), None);
    }

    #[test]
    fn a_deviation_is_that_of_a_sample() {
        assert!(
            (deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]) - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12
        );
    }

    #[test]
    fn the_ranks_are_those_of_the_tables() {
        // Ranks of the 95% interval of a median (1-based lower rank in the literature, minus one).
        for (n, rank) in [
            (5, None),
            (6, Some(0)),
            (8, Some(0)),
            (9, Some(1)),
            (20, Some(5)),
            (50, Some(17)),
            (100, Some(39)),
        ] {
            assert_eq!(lower_rank(n, 0.025), rank, "n = {n}");
        }
        assert!(lower_rank(100_000, 0.025).is_some_and(|rank| (49_600..49_800).contains(&rank)));
    }

    #[test]
    fn two_modes_are_seen_and_one_is_not() {
        let two: Vec<f64> =
            (0..40).map(|i| if i % 3 == 0 { 4.3 } else { 2.8 } + f64::from(i) * 0.001).collect();
        let modes = two_modes(&two, two.len()).unwrap();
        assert!((modes.fast - 2.8).abs() < 0.1 && (modes.slow - 4.3).abs() < 0.1, "{modes:?}");
        let uniform: Vec<f64> = (0..40).map(|i| 2.8 + f64::from(i) * 0.04).collect();
        assert_eq!(two_modes(&uniform, 40), None);
        assert_eq!(two_modes(&[1.0; 40], 40), None);
    }

    #[test]
    fn one_mode_is_seldom_called_two() {
        type Shape = fn(&mut Random) -> f64;
        // On logarithms: normal is the lognormal, exponential has a power law for a tail.
        let shapes: [(&str, Shape); 6] = [
            ("lognormal", |random| 0.3 * random.normal()),
            ("uniform", |random| random.unit()),
            ("a floor with a lognormal tail", |random| (10.0 + 5.0 * random.normal().exp()).ln()),
            ("power law", |random| random.exponential(0.3)),
            ("Gumbel", |random| -0.3 * random.exponential(1.0).ln()),
            ("one in twenty late", |random| {
                0.02 * random.normal() + if random.unit() < 0.05 { random.exponential(0.5) } else { 0.0 }
            }),
        ];
        let mut random = Random(5);
        for n in [6, 7, 8, 10, 12, 16, 20, 30, 60, 150, 500] {
            for (name, shape) in shapes {
                let runs = if n < 100 { 3000 } else { 300 };
                let called = (0..runs)
                    .filter(|_| {
                        let values: Vec<f64> = (0..n).map(|_| 100.0 * shape(&mut random).exp()).collect();
                        two_modes(&values, n).is_some()
                    })
                    .count();
                assert!(called as f64 <= 0.02 * f64::from(runs), "{name}, {n} values: {called} of {runs}");
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
        for (tail, degrees, value) in [
            (0.025, 1.0, 12.706),
            (0.025, 2.0, 4.303),
            (0.025, 10.0, 2.228),
            (0.025, 18.0, 2.101),
            (0.001, 4.0, 7.173),
            (0.001, 100.0, 3.174),
            (0.025, 1e4, 1.960),
        ] {
            let found = student_quantile(tail, degrees);
            assert!((found - value).abs() < 0.001, "{tail} {degrees}: {found}");
        }
        let mut last = 0.0;
        for together in [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6] {
            let now = student_quantile(0.025 / together, 20.0);
            assert!(now > last && now.is_finite());
            last = now;
        }
        for hundredths in 100..5000u32 {
            let degrees = f64::from(hundredths) / 100.0;
            let found = student_quantile(0.025 / 20.0, degrees);
            assert!(found > 3.0 && found < 700.0, "{degrees}: {found}");
        }
    }

    proptest! {
        #[test]
        fn the_median_lies_in_its_interval(values in proptest::collection::vec(0.1..1e9f64, 1..200)) {
            let estimate = median_interval(&values).unwrap();
            prop_assert_eq!(estimate.interval.is_some(), values.len() >= 6);
            if let Some((low, high)) = estimate.interval {
                prop_assert!(low <= estimate.median && estimate.median <= high);
            }
        }

        #[test]
        fn order_does_not_matter(mut values in proptest::collection::vec(0.1..1e9f64, 1..50)) {
            let before = (median_interval(&values), two_modes(&values, values.len()));
            values.reverse();
            prop_assert_eq!(before, (median_interval(&values), two_modes(&values, values.len())));
        }
    }
}
