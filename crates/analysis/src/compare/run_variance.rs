//! How much a case differs from run to run for reasons that trials within a run do not show: physical pages, the state of the
//! host. How it is estimated is in `run_estimate`.

use schemars::JsonSchema;
use serde::Serialize;

/// The variance between runs of one case, on logarithms.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunVariance {
    pub(super) variance: f64,
    pub(super) degrees: f64,
    pub(super) source: RunVarianceSource,
}

/// Where the variance between runs is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunVarianceSource {
    /// From several runs of one side.
    Replicates,
    /// From the differences of all cases, most of which are taken not to differ.
    Differences,
    /// It is assumed: there are too few cases and runs.
    Assumed,
}

impl RunVariance {
    /// Of two quantities that each differ so.
    pub(super) fn doubled(self) -> Self {
        Self { variance: 2.0 * self.variance, ..self }
    }
}
