//! What can spoil a result, each with advice. Warnings are kept in the record and shown under the table.

use crate::elsewhere::Elsewhere;
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
    /// The slices fall into two groups, as on a machine that changes speed.
    TwoModes {
        /// The median of the fast group, in nanoseconds per iteration.
        fast_ns: f64,
        /// The median of the slow group, in nanoseconds per iteration.
        slow_ns: f64,
        /// The fraction of slices in the fast group.
        fast_share: f64,
        /// The host's speed beside the slow group over that beside the fast one, where the speed readings explain the groups.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slow_speed: Option<f64>,
    },
    /// Slices stood still for long.
    Stalled {
        /// How many.
        slices: u32,
        /// Of how many.
        of: u32,
        /// For how long the slowest did, in nanoseconds.
        longest_ns: f64,
    },
    /// All slices together differ from their median, which says what one of them takes.
    Totals {
        /// The median, in nanoseconds per iteration.
        median_ns: f64,
        /// All of them, in nanoseconds per iteration.
        total_ns: f64,
        /// Payload bytes per second of all of them, one way; only for `throughput` and `transfer`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes_per_s: Option<f64>,
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
    /// Nothing was asked of the kernel, and it gave something else than it usually does.
    Unusual {
        /// What was left to the kernel.
        name: String,
        /// What it usually gives.
        usual: String,
        /// What it gave.
        got: String,
    },
    /// Slices did not run on the CPUs of the placement, and do not count.
    Elsewhere(Elsewhere),
    /// An endpoint that spins lost its CPU.
    Preempted {
        /// Involuntary context switches per iteration, both endpoints together.
        per_iteration: f64,
    },
    /// Reading the clock each iteration changed what was measured.
    InstrumentEffect {
        /// The mean iteration of the `each` phase over that of the `total` phase.
        ratio: f64,
    },
    /// The kernel splits CPU time into user and system by its tick.
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
                "unsettled: the 95% interval is ±{:.1}%, and ±{:.1}% was asked for",
                reached * 100.0,
                asked * 100.0
            ),
            Warning::Unsettled { reached: None, .. } => {
                f.write_str("unsettled: too few trials for an interval")
            }
            Warning::TwoModes { fast_ns, slow_ns, fast_share, slow_speed } => {
                write!(
                    f,
                    "two modes: {} in {:.0}% of slices, {} in the others",
                    crate::units::format_ns(*fast_ns),
                    fast_share * 100.0,
                    crate::units::format_ns(*slow_ns)
                )?;
                slow_speed.map_or(Ok(()), |speed| {
                    write!(
                        f,
                        "; the host was slower in those, at {:.0}% of its speed in the first",
                        speed * 100.0
                    )
                })
            }
            Warning::Stalled { slices, of, longest_ns } => {
                write!(
                    f,
                    "{slices} of {of} slices stalled, the longest for {}",
                    crate::units::format_ns(*longest_ns)
                )
            }
            Warning::Totals { median_ns, total_ns, bytes_per_s } => {
                write!(
                    f,
                    "all slices together take {} an iteration, and the median one {}",
                    crate::units::format_ns(*total_ns),
                    crate::units::format_ns(*median_ns)
                )?;
                let rate = bytes_per_s
                    .map(|rate| format!("; together they reach {}", crate::units::format_rate(rate)));
                f.write_str(&rate.unwrap_or_default())
            }
            Warning::Clamped { name, asked, got } => write!(f, "{name}: asked for {asked}, got {got}"),
            Warning::Unusual { name, usual, got } => write!(f, "{name}: usually {usual}, here {got}"),
            Warning::Elsewhere(elsewhere) => write!(f, "{elsewhere}: they do not count"),
            Warning::Preempted { per_iteration } => {
                write!(f, "an endpoint that spins lost its CPU {per_iteration:.4} times per iteration")
            }
            Warning::InstrumentEffect { ratio } => write!(
                f,
                "with the clock read in every iteration they took {}; the percentiles include that",
                crate::units::format_time_ratio(*ratio)
            ),
            Warning::SampledCpuSplit { tick_ns } => write!(
                f,
                "the kernel splits user from system CPU time by a tick of {}: the sum is exact, the split is not",
                crate::units::format_ns(*tick_ns as f64)
            ),
        }
    }
}

impl Warning {
    /// Whether it follows from the summary and the settings of its case.
    pub fn is_of_summary(&self) -> bool {
        !matches!(self, Warning::Elsewhere(_) | Warning::SampledCpuSplit { .. })
    }

    /// What a reader can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Warning::Unsettled { .. } => "give it more --time, or measure fewer cases",
            Warning::TwoModes { .. } => {
                "the fast mode is the mechanism undisturbed; quiet the host, or run again"
            }
            Warning::Stalled { .. } => {
                "what stands still waits for a timer, as of a retransmission, or for a CPU that many want: quiet the host, and see what was lost"
            }
            Warning::Totals { .. } => {
                "for what a long transfer reaches take the total; the median is what most slices are like"
            }
            Warning::Clamped { .. } => "ask for less, or raise the limit that 'ipcmark list NAME' names",
            Warning::Unusual { .. } => "'ipcmark doctor' names the limit of this host that is behind it",
            Warning::Elsewhere(_) => {
                "see who moves the endpoints: taskset, a cpuset, or a CPU that goes offline"
            }
            Warning::Preempted { .. } => "give the endpoints idle CPUs of their own",
            Warning::InstrumentEffect { .. } => {
                "trust the median of the `total` phase; read percentiles as upper bounds"
            }
            Warning::SampledCpuSplit { .. } => {
                "use the sum; for the split take many trials, or boot with nohz_full= for these CPUs"
            }
        }
    }
}
