//! What counts as the same, and how many false differences are allowed.

use model::units::Percent;
use schemars::JsonSchema;
use serde::Serialize;

/// What counts as the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonOptions {
    /// Ratios within 1 ± this are no difference worth the name.
    pub margin: Percent,
    /// The standard deviation by which the time of a case differs from one run to the next for reasons that trials within a run do not show:
    /// physical pages, the state of the host. It is assumed where there are neither replicates nor ten cases to estimate it
    /// from, and has a weight in such an estimate.
    pub repeatability: Percent,
    /// The same of multiples of a floor. With 0.5%, a case alone is never called different below 1.4%.
    pub repeatability_of_multiples: Percent,
    /// The expected share of false ones among the cases that are called different.
    pub false_discoveries: Percent,
}

impl Default for ComparisonOptions {
    /// For runs that are compared after the event.
    fn default() -> Self {
        Self {
            margin: Percent(0.05),
            repeatability: Percent(0.01),
            repeatability_of_multiples: Percent(0.005),
            false_discoveries: Percent(0.02),
        }
    }
}

impl ComparisonOptions {
    /// For cases that one run measures interleaved: what differs from run to run differs from trial to trial, and is in the
    /// interval.
    pub fn interleaved() -> Self {
        let none = Percent(0.0);
        let (repeatability, repeatability_of_multiples) = (none, none);
        let (margin, false_discoveries) = (Percent(0.01), Percent(0.01));
        Self { margin, repeatability, repeatability_of_multiples, false_discoveries }
    }
}
