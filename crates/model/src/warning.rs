//! What can spoil a result, each with advice. Warnings stand in the record and under the table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing that a reader of a result must know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Warning {
    /// The interval is wider than the precision asked for.
    Unsettled {
        /// The half-width of the 95% interval reached, as a fraction; absent with too few trials for any interval.
        reached: Option<f64>,
        /// The half-width asked for, as a fraction.
        asked: f64,
    },
    /// The trials fall into two groups, as on a machine that changes speed.
    TwoModes {
        /// The median of the fast group, in nanoseconds per iteration.
        fast_ns: f64,
        /// The median of the slow group, in nanoseconds per iteration.
        slow_ns: f64,
        /// The fraction of trials in the fast group.
        fast_share: f64,
    },
    /// The kernel gave something else than was asked.
    Clamped {
        /// What was set.
        name: String,
        /// What was asked for.
        asked: String,
        /// What the kernel gave.
        got: String,
    },
    /// An endpoint that should never sleep was switched away from.
    Preempted {
        /// Involuntary context switches per iteration, both ends together.
        per_iteration: f64,
    },
    /// Reading the clock each iteration changed what was measured.
    InstrumentEffect {
        /// The mean of the `each` turns over the mean of the `total` iterations.
        ratio: f64,
    },
    /// The split of CPU time into user and system is sampled by the scheduler tick.
    SampledCpuSplit {
        /// The tick in nanoseconds.
        tick_ns: u64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Unsettled { reached: Some(reached), asked } => write!(
                f,
                "unsettled: the 95% interval is ±{:.1}%, asked for ±{:.1}%",
                reached * 100.0,
                asked * 100.0
            ),
            Warning::Unsettled { reached: None, .. } => {
                f.write_str("unsettled: too few trials for an interval")
            }
            Warning::TwoModes { fast_ns, slow_ns, fast_share } => write!(
                f,
                "two modes: {} in {:.0}% of trials, {} in the others",
                crate::units::format_ns(*fast_ns),
                fast_share * 100.0,
                crate::units::format_ns(*slow_ns)
            ),
            Warning::Clamped { name, asked, got } => write!(f, "{name}: asked for {asked}, got {got}"),
            Warning::Preempted { per_iteration } => {
                write!(f, "an endpoint that spins was switched away {per_iteration:.4} times an iteration")
            }
            Warning::InstrumentEffect { ratio } => write!(
                f,
                "reading the clock every iteration made the iterations {:.0}% {}: percentiles carry that",
                (ratio - 1.0).abs() * 100.0,
                if *ratio >= 1.0 { "slower" } else { "faster" }
            ),
            Warning::SampledCpuSplit { tick_ns } => write!(
                f,
                "user and system CPU time are split by a {} tick: their sum is exact, the split is not",
                crate::units::format_ns(*tick_ns as f64)
            ),
        }
    }
}

impl Warning {
    /// What a reader can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Warning::Unsettled { .. } => "give it more --time, or measure fewer cases",
            Warning::TwoModes { .. } => {
                "the fast mode is the mechanism undisturbed; quiet the host, or run again"
            }
            Warning::Clamped { .. } => "ask for less, or raise the limit that 'ipcmark list' names",
            Warning::Preempted { .. } => "give the endpoints idle CPUs of their own",
            Warning::InstrumentEffect { .. } => {
                "believe the median of `total`; read percentiles as upper bounds"
            }
            Warning::SampledCpuSplit { .. } => {
                "read the sum; for the split use many trials, or CPUs booted with nohz_full="
            }
        }
    }
}
