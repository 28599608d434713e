//! What a comparison comes to: verdicts, ratios and totals, as reports show them.

use super::options::ComparisonOptions;
use super::run_variance::{RunVariance, RunVarianceSource};
use crate::missed_settings::MissedSetting;
use model::case::Case;
use model::estimate::Estimate;
use model::units::Percent;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// What can be said of B compared with A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonVerdict {
    /// B takes less time.
    Faster,
    /// B takes more time.
    Slower,
    /// Any difference is within the margin.
    NoDifference,
    /// The trials allow neither.
    Undecided,
}

impl fmt::Display for ComparisonVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ComparisonVerdict::Faster => "faster",
            ComparisonVerdict::Slower => "slower",
            ComparisonVerdict::NoDifference => "no difference",
            ComparisonVerdict::Undecided => "undecided",
        })
    }
}

/// What a gate says that allows B to be slower by some percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// No case is slower by more than that.
    Passes,
    /// None is known to be, and at least one may be.
    Undecided,
    /// At least one is.
    Fails,
}

impl Gate {
    /// What the gates of all cases come to.
    pub(super) fn worst(cases: impl Iterator<Item = Gate>) -> Self {
        cases.max().unwrap_or(Gate::Passes)
    }
}

/// Two sides, of one run or more each: A before, B after.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// What counts as the same.
    pub options: ComparisonOptions,
    /// By how much one run differs from the next.
    pub run_deviation: RunDeviation,
    /// In what the runs differ that bears on results: kernels, processors, builds.
    pub differences: Vec<Difference>,
    /// The cases of both runs, in the order of A.
    pub cases: Vec<ComparedCase>,
    /// The floors of both runs: the speed of the host. They do not count as cases.
    pub floors: Vec<ComparedCase>,
    /// The keys of the cases that only A has.
    pub only_in_a: Vec<String>,
    /// The keys of the cases that only B has.
    pub only_in_b: Vec<String>,
    /// The settings of A that are not as asked, or not as usual.
    pub missed_in_a: Vec<MissedSetting>,
    /// The settings of B that are not.
    pub missed_in_b: Vec<MissedSetting>,
    /// All cases together.
    pub totals: ComparisonTotals,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// The standard deviation of a case between two runs of one side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RunDeviation {
    /// Of its time.
    pub time: Percent,
    /// Of its multiple of the floor.
    pub adjusted: Percent,
    /// Where both are from.
    pub source: RunVarianceSource,
}

impl RunDeviation {
    pub(super) fn new(times: RunVariance, multiples: RunVariance) -> Self {
        let percent = |runs: RunVariance| Percent(runs.variance.sqrt());
        Self { time: percent(times), adjusted: percent(multiples), source: times.source }
    }
}

/// A fact about the runs that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// Which.
    pub what: String,
    /// What it is in A.
    pub a: String,
    /// What it is in B.
    pub b: String,
}

/// One case, or one floor, in both runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedCase {
    /// The text that pairs them.
    pub key: String,
    /// The case as A has it.
    pub case: Case,
    /// What A measured.
    pub a: RunMedian,
    /// What B measured.
    pub b: RunMedian,
    /// B's time over A's; absent with too few trials.
    pub ratio: Option<Ratio>,
    /// The same as multiples of a floor in the same rounds; absent where no floor ran in both.
    pub adjusted: Option<AdjustedRatio>,
    /// The smallest difference that is found with a chance of 80%; absent with too few trials.
    pub finds: Option<Percent>,
    /// What follows.
    pub verdict: ComparisonVerdict,
    /// Whether the times differ only because the floors do: the host changed, not the mechanism.
    pub floors_differ: bool,
    /// Why it cannot be told, or what the verdict rests on where that is not obvious.
    pub reason: Option<String>,
}

/// What the runs of one side measured of a case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RunMedian {
    /// What the summary of the run says, in nanoseconds per iteration, at the state of the host that it was in; of several runs the
    /// median. Absent without summaries.
    pub median_ns: Option<f64>,
    /// How many runs.
    pub runs: u32,
    /// How many trials they had together.
    pub trials: u32,
}

/// B over A. A ratio of 1.1 is 10% more time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// The ratio: the geometric mean over each run's batches of trials, each batch by its median.
    pub ratio: f64,
    /// The interval by which a case is called different, with the variance between runs in it. Its level is such that of the
    /// cases that are called at most the share [`ComparisonOptions::false_discoveries`] is false.
    pub interval: (f64, f64),
    /// The 95% interval of this case alone, with the variance between runs in it, by which no difference is found.
    pub own_interval: (f64, f64),
}

/// A ratio of multiples of a floor, or of what stands in for one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AdjustedRatio {
    /// What they are multiples of.
    pub by: String,
    /// The ratio.
    pub ratio: Ratio,
}

/// All cases together.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonTotals {
    /// How many cases have enough trials in both sides.
    pub compared: u32,
    /// How many are faster in B.
    pub faster: u32,
    /// How many are slower in B.
    pub slower: u32,
    /// In how many no difference was found.
    pub no_difference: u32,
    /// Of how many it cannot be told.
    pub undecided: u32,
    /// The geometric mean of the ratios, with a 95% interval that holds however the cases are correlated.
    pub ratio: Option<Estimate>,
    /// The same of the adjusted ratios.
    pub adjusted: Option<Estimate>,
    /// The same of the floors: the speed of the host.
    pub floors: Option<Estimate>,
}
