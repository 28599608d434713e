//! The probes: instruments that observe a trial. What they observe is in `trial`.

use crate::invalid::{Invalid, variant_named};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// An instrument that observes a trial.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Probe {
    /// Counters of the kernel and of the processor (perf_event_open(2)).
    Counters,
    /// Every system call, when it began and ended, by the kernel's tracepoints.
    Syscalls,
    /// One system call that iterations do not make, in the same way: what that costs them is all that it shows.
    OneCall,
    /// Every system call, by stopping the endpoint at each (ptrace(2)): slow, but it needs no privilege.
    Ptrace,
    /// When each endpoint slept, woke and ran, and who woke it.
    Scheduler,
    /// Page faults with their addresses.
    Faults,
    /// Where the processor is at regular intervals, with the stack of functions.
    Sampling,
    /// Calls, sleeps, wake-ups and faults together, and when each iteration ended.
    Timeline,
}

impl Probe {
    /// All of them, in the order in which they are shown.
    pub const ALL: &[Probe] = Probe::VARIANTS;

    /// Those that see something of an iteration, in the same order.
    pub fn explaining() -> Vec<Probe> {
        Probe::ALL.iter().copied().filter(|probe| *probe != Probe::OneCall).collect()
    }

    /// The name, as it is typed and shown.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The probe called `name`.
pub fn parse_probe(name: &str) -> Result<Probe, Invalid> {
    variant_named("probe", name)
}

impl std::fmt::Display for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// How often samples are taken. Trials at several rates tell what would be seen if samples cost nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SamplingRate {
    /// A quarter of the highest rate.
    Quarter,
    /// Half of it.
    Half,
    /// The highest rate.
    #[default]
    Full,
}

impl SamplingRate {
    /// All of them, the lowest first.
    pub const ALL: [SamplingRate; 3] = [SamplingRate::Quarter, SamplingRate::Half, SamplingRate::Full];

    /// How many times as long as at the highest rate the time between two samples is.
    pub fn periods(self) -> u64 {
        match self {
            SamplingRate::Quarter => 4,
            SamplingRate::Half => 2,
            SamplingRate::Full => 1,
        }
    }

    /// The rate as a share of the highest.
    pub fn share(self) -> f64 {
        1.0 / self.periods() as f64
    }

    /// In words, of the highest rate.
    pub fn name(self) -> &'static str {
        match self {
            SamplingRate::Quarter => "a quarter",
            SamplingRate::Half => "half",
            SamplingRate::Full => "all",
        }
    }
}

/// What is asked of a probe in one trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeRequest {
    /// The probe. Without one, the trial runs the same iterations in the same way, so that the cost of probes is known.
    pub probe: Option<Probe>,
    /// The counters asked for by name, beside those that are always read.
    pub counters: Vec<String>,
    /// How often samples are taken, if it takes any.
    #[serde(default)]
    pub sampling: SamplingRate,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_listed_once_each_and_named_as_they_are_written() {
        for &probe in Probe::ALL {
            assert_eq!(serde_json::to_string(&probe).unwrap(), format!("\"{probe}\""));
        }
    }

    #[test]
    fn rates_rise_to_the_highest_which_is_taken_unless_another_is_asked_for() {
        assert_eq!(SamplingRate::ALL.map(SamplingRate::share), [0.25, 0.5, 1.0]);
        assert_eq!(ProbeRequest::default().sampling, SamplingRate::Full);
    }
}
