//! Intervals and probabilities that hold at whatever time one looks, for a comparison that stops when it knows enough.
//!
//! An interval of 95% that is asked for after every trial misses far more often than once in 20, for whoever stops when it
//! first excludes 0 picks the moment at which chance was strongest. The mixture of likelihood ratios over a normal prior
//! (Robbins, *Statistical methods related to the law of the iterated logarithm*, 1970; Johari and others, *Always valid
//! inference*, 2022) bounds the probability of ever excluding the truth. It knows the variance; here it is estimated, so that
//! the normal quantile that the bound gives is exchanged for Student's of the same probability. Simulations test the sum.

use crate::stats::student_tail;
use statrs::distribution::{ContinuousCDF, Normal};

/// After how many blocks the interval is narrowest beside one that is asked for once; decisions are made at some tens of blocks.
const PRIOR_BLOCKS: f64 = 6.0;

/// The probability on each side of the interval after `blocks` blocks, so that the chance that any interval up to then, or
/// after, misses is at most `miss`.
pub(super) fn tail_at_any_time(miss: f64, blocks: f64) -> f64 {
    let grown = (blocks + PRIOR_BLOCKS) / PRIOR_BLOCKS;
    let z = ((blocks + PRIOR_BLOCKS) / blocks * (grown.ln() - 2.0 * miss.ln())).sqrt();
    standard_normal().sf(z)
}

/// The smallest `miss` for which the interval after `blocks` blocks excludes 0, where an estimate lies `errors` standard errors
/// of `degrees` degrees of freedom from 0.
pub(super) fn p_at_any_time(errors: f64, degrees: f64, blocks: f64) -> f64 {
    let z = standard_normal().inverse_cdf(student_tail(errors.abs(), degrees).max(f64::MIN_POSITIVE));
    let grown = (blocks + PRIOR_BLOCKS) / PRIOR_BLOCKS;
    (grown.sqrt() * (-0.5 * z * z * blocks / (blocks + PRIOR_BLOCKS)).exp()).min(1.0)
}

fn standard_normal() -> Normal {
    Normal::standard()
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
            let errors = student_quantile(tail_at_any_time(miss, blocks), degrees);
            let p = p_at_any_time(errors, degrees, blocks);
            assert!((p / miss - 1.0).abs() < 1e-3, "{miss} {degrees} {blocks}: {p}");
        }
        assert_eq!(p_at_any_time(0.0, 10.0, 20.0), 1.0);
        assert!(p_at_any_time(1e6, 10.0, 20.0) > 0.0);
    }

    #[test]
    fn to_look_at_any_time_costs_at_most_twice_the_width() {
        for blocks in [8.0, 20.0, 50.0, 200.0] {
            let wider = student_quantile(tail_at_any_time(0.01, blocks), 1e4) / student_quantile(0.005, 1e4);
            assert!((1.0..2.0).contains(&wider), "{blocks}: {wider}");
        }
    }
}
