//! The one interval of a median of slices, for stopping and for reporting: slices of a trial resemble each other, and so do
//! trials that are near in time.
//!
//! Values come on a scale on which their differences are alike, which for times is the logarithm. Which slices they are of is
//! said in `host_view`.

use crate::stats::{self, student_quantile};
use model::estimate::Estimate;

/// The median of all values with its 95% interval, from the values of each trial in the order of time; `None` of no value.
pub fn median_over_trials(trials: &[Vec<f64>]) -> Option<Estimate> {
    let all: Vec<f64> = trials.iter().flatten().copied().collect();
    let median = stats::median(&all)?;
    let medians: Vec<f64> = trials.iter().filter_map(|trial| stats::median(trial)).collect();
    let count = medians.len() as f64;
    let interval = (medians.len() >= LEAST_SECTIONS).then(|| {
        let squares: f64 = medians.iter().map(|m| (m - median).powi(2)).sum();
        let half = student_quantile(0.025, count - 1.0) * (squares / (count - 1.0) / count).sqrt();
        (median - half, median + half)
    });
    Some(Estimate { median, interval })
}

/// With fewer sections the spread between them is a matter of chance.
pub const LEAST_SECTIONS: usize = 6;
