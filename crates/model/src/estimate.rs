//! What a number is worth: a median with its interval, and the two groups that slices may fall into.
//!
//! Only the types. How they are worked out of trials is in `analysis`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A median and its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// The 95% interval, low and high; absent with fewer than six values, which allow none.
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// The estimate of `of(x)`, for a monotonic function; the bounds of the interval are put in order.
    pub fn map(self, of: impl Fn(f64) -> f64) -> Self {
        let interval = self.interval.map(|(low, high)| (of(low), of(high)));
        Self { median: of(self.median), interval: interval.map(|(a, b)| (a.min(b), a.max(b))) }
    }

    /// Half the interval's width as a fraction of the median.
    pub fn half_width(self) -> Option<f64> {
        self.interval.map(|(low, high)| (high - low) / 2.0 / self.median.abs())
    }
}

/// Two groups of slices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Modes {
    /// The median of the fast group.
    pub fast: f64,
    /// The median of the slow group.
    pub slow: f64,
    /// The fraction of slices in the fast group.
    pub fast_share: f64,
    /// The host's speed beside the slow group over that beside the fast one, where the speed readings explain the groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_speed: Option<f64>,
}
