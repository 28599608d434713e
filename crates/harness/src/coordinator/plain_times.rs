//! What cases take without the delay that is injected in them, which a delay in percent is a share of. Each case is measured
//! once. How a trial is made is not known here.

use model::Case;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How many trials are made of each case.
const TRIALS: u32 = 8;

/// What cases take without a delay, in nanoseconds per iteration, as far as it was asked for.
#[derive(Debug, Default)]
pub struct PlainTimes(Mutex<HashMap<Case, f64>>);

impl PlainTimes {
    /// What an iteration of `plain` takes. `measure` makes a short trial of it, given what an iteration took in the one
    /// before, and a number that no other trial has had from here.
    pub(crate) fn ns<E>(
        &self,
        plain: &Case,
        measure: impl Fn(Option<f64>, u64) -> Result<f64, E>,
    ) -> Result<f64, E> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ns) = known.get(plain) {
            return Ok(*ns);
        }
        let first = known.len() as u64 * u64::from(TRIALS);
        let mut times = Vec::new();
        for trial in 0..u64::from(TRIALS) {
            times.push(measure(times.last().copied(), first + trial)?);
        }
        let ns = median(times);
        known.insert(plain.clone(), ns);
        Ok(ns)
    }
}

/// The median of [`TRIALS`] `times`. A delay in percent is a share of what the case takes on this host, as disturbed as it is: of
/// the fastest trials it came out as less of what was measured afterwards.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    f64::midpoint(times[(times.len() - 1) / 2], times[times.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::floor;
    use std::cell::RefCell;

    #[test]
    fn each_case_is_measured_once_and_one_trial_that_is_off_counts_little() {
        let times = PlainTimes::default();
        let numbers = RefCell::new(Vec::new());
        let measure = |hint: Option<f64>, number: u64| {
            assert_eq!(hint.is_none(), number.is_multiple_of(8));
            numbers.borrow_mut().push(number);
            Ok::<f64, ()>(if number % 8 == 5 { 100.0 } else { 104.0 + number as f64 })
        };
        let [a, b] = ["a", "b"].map(|name| floor::operation(name, 0));
        assert_eq!(times.ns(&a, measure), Ok(106.5));
        assert_eq!(times.ns(&a, measure), Ok(106.5));
        assert_eq!(times.ns(&b, measure), Ok(114.5));
        assert_eq!(numbers.into_inner(), (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_is_passed_on_and_the_case_is_tried_again() {
        let times = PlainTimes::default();
        let case = floor::operation("a", 0);
        assert_eq!(times.ns(&case, |_, _| Err("no")), Err("no"));
        assert_eq!(times.ns(&case, |_, _| Ok::<f64, ()>(3.0)), Ok(3.0));
    }
}
