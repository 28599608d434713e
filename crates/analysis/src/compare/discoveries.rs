//! Which of many cases are called different, so that of those called few are false, over the hierarchy mechanism and case.
//!
//! An interval that holds for a hundred cases together finds little in any one of them. What a reader needs is that most of the
//! cases that are called different are. Cases of one mechanism often change for one reason, so that the question is asked of
//! mechanisms first (Simes' test of all their cases, then Benjamini and Hochberg over mechanisms), and of the cases of those
//! found after that, at a level that pays for the choice (Benjamini and Bogomolov, *Selective inference on multiple families of
//! hypotheses*, 2014). It assumes what Benjamini and Hochberg do: cases that are independent, or that err in the same direction.

use std::collections::BTreeMap;

/// The level of each case: the case is called different if its probability `p` is at most that, and the interval of that level
/// is the one to print, for it excludes 0 if and only if the case is called.
///
/// `cases` gives the mechanism and the probability of each, `None` for what cannot be tested; `rate` is the expected share of
/// false calls among all.
pub(super) fn levels(cases: &[(&str, Option<f64>)], rate: f64) -> Vec<f64> {
    let mut families: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (family, p) in cases {
        families.entry(family).or_default().extend(*p);
    }
    families.retain(|_, ps| !ps.is_empty());
    let simes: Vec<f64> = families.values().map(|ps| simes(ps)).collect();
    let of_families = benjamini_hochberg(&simes, rate);
    let levels: BTreeMap<&str, f64> =
        families.into_iter().map(|(family, ps)| (family, benjamini_hochberg(&ps, of_families))).collect();
    cases.iter().map(|(family, _)| levels.get(family).copied().unwrap_or(rate)).collect()
}

/// The largest probability that is called at `rate` by Benjamini and Hochberg's rule, as a level: `rate` times the share called, and
/// that of one call where none is.
fn benjamini_hochberg(ps: &[f64], rate: f64) -> f64 {
    let mut sorted = ps.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let level = |called: usize| rate * called as f64 / sorted.len() as f64;
    let called = (1..=sorted.len()).rev().find(|&called| sorted[called - 1] <= level(called));
    level(called.unwrap_or(1))
}

/// The probability that none of the hypotheses with these probabilities is false (Simes).
fn simes(ps: &[f64]) -> f64 {
    let mut sorted = ps.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let adjusted = |(rank, p): (usize, &f64)| p * sorted.len() as f64 / (rank + 1) as f64;
    sorted.iter().enumerate().map(adjusted).fold(1.0, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Random;
    use statrs::distribution::{ContinuousCDF, Normal};

    #[test]
    fn levels_are_those_of_the_published_rules() {
        // Benjamini and Hochberg 1995, their example of 15 probabilities: four are called at 5%.
        let ps = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
            0.6528, 0.7590, 1.0,
        ];
        assert!((benjamini_hochberg(&ps, 0.05) - 0.05 * 4.0 / 15.0).abs() < 1e-12);
        assert!((simes(&[0.01, 0.04, 0.5]) - 0.03).abs() < 1e-12);
        assert!((simes(&[0.9]) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn one_case_alone_has_the_whole_rate_and_what_cannot_be_tested_costs_nothing() {
        assert_eq!(levels(&[("pipe", Some(0.2))], 0.05), [0.05]);
        assert_eq!(levels(&[("pipe", Some(0.2)), ("pipe", None), ("tcp", None)], 0.05), [0.05; 3]);
        assert_eq!(levels(&[], 0.05), [0.0; 0]);
    }

    /// Of `runs` families of 20 mechanisms in 5 sizes, of which `changed` mechanisms are shifted by `shift` standard errors in
    /// every size: the share of false calls among the calls on average, and the share of changed cases that are called, by this
    /// rule and by Bonferroni's.
    fn rates(changed: usize, shift: f64, common: f64) -> (f64, f64, f64) {
        const RUNS: usize = 300;
        let (mechanisms, sizes) = (20, 5);
        let names: Vec<String> = (0..mechanisms).map(|nth| format!("m{nth}")).collect();
        let mut random = Random(17);
        let normal = Normal::standard();
        let (mut false_share, mut found, mut found_by_bonferroni) = (0.0, 0, 0);
        for _ in 0..RUNS {
            let host = random.normal();
            let mut cases = Vec::new();
            for (nth, name) in names.iter().enumerate() {
                for _ in 0..sizes {
                    let z = common.sqrt() * host
                        + (1.0 - common).sqrt() * random.normal()
                        + if nth < changed { shift } else { 0.0 };
                    cases.push((name.as_str(), Some(2.0 * normal.sf(z.abs()))));
                }
            }
            let levels = levels(&cases, 0.05);
            let p = |at: usize| cases[at].1.unwrap();
            let is_called: Vec<bool> = (0..cases.len()).map(|at| p(at) <= levels[at]).collect();
            let called = is_called.iter().filter(|called| **called).count();
            let right = is_called[..changed * sizes].iter().filter(|called| **called).count();
            false_share += (called - right) as f64 / called.max(1) as f64;
            found += right;
            found_by_bonferroni +=
                (0..changed * sizes).filter(|at| p(*at) <= 0.05 / cases.len() as f64).count();
        }
        let share = |count: usize| count as f64 / (RUNS * changed * sizes).max(1) as f64;
        (false_share / RUNS as f64, share(found), share(found_by_bonferroni))
    }

    #[test]
    fn false_calls_stay_below_their_rate_and_more_is_found_than_by_one_correction_for_all() {
        for (changed, common) in [(0, 0.0), (0, 0.5), (2, 0.0), (2, 0.5), (10, 0.0), (10, 0.3)] {
            let (false_share, ..) = rates(changed, 3.0, common);
            assert!(false_share <= 0.06, "{changed} changed, {common} common: {false_share}");
        }
        for (changed, least) in [(2, 1.3), (10, 1.7)] {
            let (_, found, by_bonferroni) = rates(changed, 3.0, 0.0);
            assert!(found >= least * by_bonferroni, "{changed}: {found} against {by_bonferroni}");
        }
    }
}
