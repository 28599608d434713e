//! Intervals and probabilities that hold at whatever time one looks, for a comparison that stops when it knows enough.
//!
//! An interval of 95% that is asked for after every trial misses far more often than once in 20, for whoever stops when it
//! first excludes 0 picks the moment at which chance was strongest. The likelihood of what was seen if there is a difference,
//! averaged over a prior of differences, over that if there is none, exceeds 1/p with probability p at most, ever. Differences
//! are in standard deviations of a block, and the unknown deviation is integrated out, so that the ratio depends on Student's t
//! alone (Lai, *On confidence sequences*, 1976; Wang and Ramdas, *Anytime-valid t-tests and confidence sequences for Gaussian
//! means with unknown variance*, 2024). Blocks that resemble their neighbours have fewer degrees of freedom; simulations test
//! what that costs.

/// The prior: normal distributions of differences, each with its precision (the inverse of its variance, in blocks that say as
/// much), and its weight. They expect differences of 1, 3, 10 and 30 standard deviations of a block: after eight blocks no
/// single one of them could tell a large difference among many cases.
const PRIOR: [(f64, f64); 4] = [(1.0, 0.5), (0.1, 0.25), (0.01, 0.125), (0.001, 0.125)];

/// How many standard errors of `degrees` degrees of freedom an interval reaches to each side after `blocks` blocks, so that the
/// chance that any up to then, or after, misses is at most `miss`. Infinite where so few blocks cannot say it.
pub(super) fn errors_at_any_time(miss: f64, degrees: f64, blocks: f64) -> f64 {
    const MOST: f64 = 1e9;
    const STEPS: usize = 40;
    let is_enough = |errors: f64| log_evidence(errors, degrees, blocks) >= -miss.ln();
    if !is_enough(MOST) {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0_f64, MOST.ln());
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if is_enough(middle.exp()) { high = middle } else { low = middle }
    }
    high.exp()
}

/// The smallest `miss` for which the interval after `blocks` blocks excludes 0, where an estimate lies `errors` standard errors
/// of `degrees` degrees of freedom from 0.
pub(super) fn p_at_any_time(errors: f64, degrees: f64, blocks: f64) -> f64 {
    (-log_evidence(errors, degrees, blocks)).exp().clamp(f64::MIN_POSITIVE, 1.0)
}

/// The logarithm of the likelihood ratio.
fn log_evidence(errors: f64, degrees: f64, blocks: f64) -> f64 {
    let of_prior = PRIOR.map(|(precision, weight)| {
        let shrinks = precision / (blocks + precision);
        let squares = errors * errors;
        let likelihood = ((degrees + squares) / (degrees + squares * shrinks)).ln();
        weight.ln() + 0.5 * shrinks.ln() + 0.5 * (degrees + 1.0) * likelihood
    });
    let greatest = of_prior.into_iter().fold(f64::NEG_INFINITY, f64::max);
    greatest + of_prior.iter().map(|log| (log - greatest).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::student_quantile;

    #[test]
    fn the_probability_is_that_of_the_interval_whose_end_is_at_zero() {
        for (miss, degrees, blocks) in
            [(0.05, 9.0, 10.0), (0.01, 20.0, 40.0), (1e-4, 100.0, 200.0), (0.01, 4.0, 8.0)]
        {
            let errors = errors_at_any_time(miss, degrees, blocks);
            let p = p_at_any_time(errors, degrees, blocks);
            assert!((p / miss - 1.0).abs() < 1e-6, "{miss} {degrees} {blocks}: {p}");
        }
        assert_eq!(p_at_any_time(0.0, 10.0, 20.0), 1.0);
        assert!(p_at_any_time(1e6, 10.0, 20.0) > 0.0);
        assert_eq!(errors_at_any_time(1e-12, 4.0, 8.0), f64::INFINITY);
    }

    #[test]
    fn the_prior_is_a_distribution() {
        assert_eq!(PRIOR.iter().map(|(_, weight)| weight).sum::<f64>(), 1.0);
    }

    #[test]
    fn to_look_at_any_time_costs_two_and_a_half_times_the_width_at_most() {
        for (blocks, degrees) in [(8.0, 4.0), (8.0, 7.0), (20.0, 10.0), (50.0, 18.0), (200.0, 50.0)] {
            let wider = errors_at_any_time(0.05, degrees, blocks) / student_quantile(0.025, degrees);
            assert!((1.0..2.5).contains(&wider), "{blocks}: {wider}");
        }
    }
}
