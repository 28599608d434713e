//! Numbers as charts of the page take them.

use model::estimate::Estimate;
use serde::Serialize;

/// A number for a chart.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Number {
    Alone(f64),
    Between([f64; 3]),
}

impl Number {
    /// To five digits: more cannot be seen, and would be most of the page.
    pub(crate) fn from_estimate(estimate: Estimate) -> Option<Self> {
        let short = |value: f64| format!("{value:.4e}").parse().unwrap_or(value);
        match estimate.interval {
            _ if !estimate.median.is_finite() => None,
            Some((low, high)) if low.is_finite() && high.is_finite() => {
                Some(Number::Between([estimate.median, low, high].map(short)))
            }
            _ => Some(Number::Alone(short(estimate.median))),
        }
    }
}
