//! What counts as the same, and how many false differences are allowed.

use model::units::Percent;
use schemars::JsonSchema;
use serde::Serialize;

/// What counts as the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonOptions {
    /// Ratios within 1 ± this are no difference worth the name.
    pub margin: Percent,
    /// The standard deviation by which one run of a case differs from the next for reasons that trials within a run do not show:
    /// physical pages, the state of the host. It is assumed where there are neither replicates nor ten cases to estimate it
    /// from. Multiples of floors are assumed to deviate by half of it at the least, or by what they move by together within a run.
    pub repeatability: Percent,
    /// The expected share of false ones among the cases that are called different.
    pub false_discoveries: Percent,
}

impl Default for ComparisonOptions {
    /// For runs that are compared after the event.
    fn default() -> Self {
        Self { margin: Percent(0.05), repeatability: Percent(0.01), false_discoveries: Percent(0.02) }
    }
}

impl ComparisonOptions {
    /// For cases that one run measures interleaved: what differs from run to run differs from trial to trial, and is in the
    /// interval.
    pub fn interleaved() -> Self {
        Self { margin: Percent(0.01), repeatability: Percent(0.0), false_discoveries: Percent(0.01) }
    }
}
