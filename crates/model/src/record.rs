//! The results file: JSON Lines. A header, samples as they are taken, one record per case as it ends, one profile per trial with a
//! probe, and an end.
//!
//! The file is the only way from measuring to reporting. Reading and writing it is not done here.

use crate::case::Case;
use crate::elsewhere::Elsewhere;
use crate::observation::profile::ProfileRecord;
use crate::precision::Precision;
use crate::spec::Spec;
use crate::study::Study;
use crate::summary::Summary;
use crate::topology::Topology;
use crate::units::Size;
use crate::warning::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use crate::fact::Fact;
pub use crate::plan::Dropped;
pub use crate::sample::{
    CallCounts, Each, Sample, ScheduleSample, StepSample, StepSamples, TimedCalls, TimerSample, Usage,
};

/// What the first line of a results file says that it is.
pub const FORMAT: &str = "ipcmark-results";
/// The version of the format that this build writes, and the only one that it reads.
pub const VERSION: u32 = 1;

/// One line of a results file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Line {
    /// The first line.
    Header(Box<Header>),
    /// One slice of a case that has not ended.
    Sample(Box<SampleLine>),
    /// The result of one case, after its samples.
    Record(Box<Record>),
    /// A trial with a probe, after all records.
    Profile(Box<ProfileRecord>),
    /// The last line. A file without it was cut off.
    End(RunEnd),
}

/// What was to be measured, by what, on what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// Always `ipcmark-results`.
    pub format: String,
    /// The version of this format.
    pub version: u32,
    /// What made the file.
    pub tool: Tool,
    /// The run's id, which is also in the name of everything that it made.
    pub run: String,
    /// When the run began, in RFC 3339.
    pub started_at: String,
    /// The command line, as typed.
    pub command: Vec<String>,
    /// The host.
    pub host: Host,
    /// The clock that timed everything, but for sides that were reached by commands.
    pub clock: ClockRecord,
    /// The sides that were reached by commands, if any were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteSides>,
    /// For how long, and how precisely.
    pub settings: Settings,
    /// The cases to measure.
    pub plan: PlanRecord,
    /// The floors as first measured; every round measures them again.
    pub floors: Vec<FloorReading>,
    /// What the suite wants drawn of the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<Study>,
}

/// The sides of a run that were reached by commands, on other hosts or in other namespaces. A side that is absent is the host of
/// the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemoteSides {
    /// Where the client was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<RemoteSide>,
    /// Where the server was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<RemoteSide>,
    /// The address of the server, as the client reached it.
    pub server_address: String,
}

/// A side that was reached by a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemoteSide {
    /// The command.
    pub via: String,
    /// Its host.
    pub host: Host,
    /// The clock that timed it.
    pub clock: ClockRecord,
}

/// What made a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Always `ipcmark`.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// How it was built, such as `release` or `debug`.
    pub profile: String,
    /// The target it was built for.
    pub target: String,
    /// How it was linked to the C library: `dynamic` or `static`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub linked: String,
}

/// The host, as far as it bears on a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// The host's name.
    pub name: Fact<String>,
    /// The kernel's release and version.
    pub kernel: Fact<String>,
    /// The machine's architecture.
    pub arch: String,
    /// The processor's name.
    pub cpu: Fact<String>,
    /// The CPUs that this run may use, and what they share.
    pub topology: Topology,
    /// Cache sizes in bytes by level: `L1d`, `L1i`, `L2`, `L3`.
    pub caches_bytes: Fact<BTreeMap<String, u64>>,
    /// The size of a cache line in bytes.
    #[serde(default)]
    pub cache_line_bytes: Fact<u64>,
    /// The frequency governor of the first CPU.
    pub governor: Fact<String>,
    /// Whether hardware threads share cores.
    pub smt: Fact<bool>,
    /// Processor vulnerabilities and what the kernel does about each.
    pub mitigations: Fact<BTreeMap<String, String>>,
    /// The hypervisor, if the host is a guest; `none` on bare hardware.
    pub virtualisation: Fact<String>,
    /// The kernel's clock source.
    pub clocksource: Fact<String>,
    /// Transparent huge pages: the mode in force.
    pub transparent_huge_pages: Fact<String>,
    /// The period of the scheduler's tick, by which CPU time is split into user and system.
    pub tick_ns: Fact<u64>,
    /// The load average of the last minute at start.
    pub load: Fact<f64>,
    /// Memory in bytes.
    pub memory_bytes: Fact<u64>,
    /// Limits and defaults of the kernel, by the name of the file under /proc/sys or of the rlimit.
    pub limits: BTreeMap<String, Fact<String>>,
    /// What a new pipe of the user of the run holds, in bytes.
    #[serde(default)]
    pub pipe_bytes: Fact<u64>,
    /// What the control groups of the run leave it: `cpus`, `memory_bytes`, `processes`, each a number or `unlimited`.
    #[serde(default)]
    pub control_group: Fact<BTreeMap<String, String>>,
    /// The queueing discipline of each network interface, `lo` among them.
    #[serde(default)]
    pub queueing: Fact<BTreeMap<String, String>>,
    /// The security modules of the kernel, in their order.
    #[serde(default)]
    pub security_modules: Fact<String>,
    /// How many BPF programs there are: `loaded`, all of the kernel, and `control_group`, those that run for the control group of the
    /// run.
    #[serde(default)]
    pub bpf_programs: Fact<BTreeMap<String, u64>>,
}

/// The clock that timed a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockRecord {
    /// What is read.
    pub source: ClockSource,
    /// Why it was chosen.
    pub reason: String,
    /// The smallest step between two readings that differ, in nanoseconds.
    pub precision_ns: f64,
    /// What one reading costs, in nanoseconds.
    pub cost_ns: f64,
}

/// A clock that can time iterations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClockSource {
    /// The processor's invariant time-stamp counter, calibrated against `CLOCK_MONOTONIC_RAW`.
    Tsc {
        /// Nanoseconds per tick.
        ns_per_tick: f64,
    },
    /// `clock_gettime(CLOCK_MONOTONIC_RAW)`.
    MonotonicRaw,
}

/// For how long, and how precisely.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// The suite's name; absent when the cases were given by hand.
    pub suite: Option<String>,
    /// The half-width of the 95% interval at which a case is settled.
    #[serde(flatten)]
    pub precision: Precision,
    /// The time that the run may take, in nanoseconds.
    pub time_ns: u64,
    /// The rounds that the run may take; absent when only time limits it.
    pub rounds: Option<u32>,
    /// The time that one trial is to measure, in nanoseconds.
    pub slice_ns: u64,
    /// Whether every payload byte is checked in the timed phases too.
    pub check: bool,
    /// How many bytes a trial of `throughput` sends; absent when it sends as many as fill its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<Size>,
    /// The time for trials with probes once all cases are measured, in nanoseconds.
    #[serde(default)]
    pub observe_ns: u64,
}

/// The plan as the header records it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRecord {
    /// The cases to measure, floors first.
    pub cases: Vec<Case>,
    /// The cases that cannot be had here.
    pub dropped: Vec<Dropped>,
}

/// A floor as first measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FloorReading {
    /// Which.
    pub case: Case,
    /// Nanoseconds per iteration; absent when it failed.
    pub iteration_ns: Option<f64>,
}

/// One slice of a case, written once the floors after it have been measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleLine {
    /// The case: its place in `plan.cases` of the header, from 0.
    pub case: u32,
    /// What was measured.
    pub sample: Sample,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// What was measured.
    pub case: Case,
    /// Whether the case is a floor, of which every round has a trial whether settled or not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub floor: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// One sample a slice, in the order in which they were taken. In a file they stand in lines of their own before the record; a
    /// record that has them itself has no such lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
    /// What the samples say; absent when there are none. It can be recomputed from them.
    pub summary: Option<Summary>,
    /// What the endpoints set, and what the kernel made of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
    /// The slices that did not run on the CPUs of the placement, if any did not. They are not among the samples.
    #[serde(default, skip_serializing_if = "Elsewhere::is_nothing")]
    pub elsewhere: Elsewhere,
    /// What a reader must know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

impl Record {
    /// Of what was measured and no more.
    pub fn bare(case: Case, floor: bool, outcome: Outcome, samples: Vec<Sample>) -> Self {
        Self {
            case,
            floor,
            outcome,
            samples,
            summary: None,
            settings: Vec::new(),
            elsewhere: Elsewhere::default(),
            warnings: Vec::new(),
        }
    }
}

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Its interval became narrow enough.
    Settled,
    /// The rounds or the time ran out first.
    Unsettled,
    /// The rate asked for was not achieved: the times measured are those of another load, and grow with time.
    Missed {
        /// The part of the rate that was achieved in the median trial.
        achieved: f64,
    },
    /// The run was interrupted first.
    Interrupted,
    /// A trial failed.
    Failed {
        /// The operation, the object, the kernel's answer, and what to do.
        error: String,
    },
}

/// What was asked of the kernel and what it gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// What was set, such as `SO_SNDBUF`.
    pub name: String,
    /// What was asked for; absent when the kernel's default was left.
    pub asked: Option<String>,
    /// What was got.
    pub got: String,
    /// Whether `got` differs from what was asked in a way that a reader must know.
    pub clamped: bool,
    /// What the kernel gives as it comes, where nothing is asked for and no limit of the host says otherwise; absent where something was
    /// asked for or the kernel has no one value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual: Option<String>,
}

impl Setting {
    /// What the kernel usually gives, where it gave something else.
    pub fn missed_usual(&self) -> Option<&str> {
        self.usual.as_deref().filter(|usual| *usual != self.got)
    }

    /// What a reader must know of it, if anything: that the kernel clamped it, or that it is not as it usually is.
    pub fn warning(&self) -> Option<Warning> {
        let (name, got) = (self.name.clone(), self.got.clone());
        if self.clamped {
            return Some(Warning::Clamped { name, asked: self.asked.clone().unwrap_or_default(), got });
        }
        self.missed_usual().map(|usual| Warning::Unusual { name, usual: usual.to_owned(), got })
    }
}

/// The last line of a results file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEnd {
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// How many rounds there were.
    pub rounds: u32,
    /// How long measuring took, in nanoseconds, without the trials with probes after it.
    pub elapsed_ns: u64,
    /// How much of that starting and ending trials took, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_ns: Option<u64>,
    /// The fraction of processor time that the hypervisor took during the run.
    pub stolen: Fact<f64>,
    /// How far the clock drifted against `CLOCK_MONOTONIC_RAW` over the run, as a fraction.
    pub clock_drift: f64,
}

/// A whole results file in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The first line.
    pub header: Header,
    /// The records, in file order.
    pub records: Vec<Record>,
    /// The trials with probes, in file order.
    pub profiles: Vec<ProfileRecord>,
    /// The last line; absent when the run was cut off.
    pub end: Option<RunEnd>,
    /// What was wrong with the file though it could be read, such as a truncated last line.
    pub notes: Vec<String>,
}

impl Results {
    /// The message sizes that occur, ascending.
    pub fn sizes(&self) -> Vec<Size> {
        let mut sizes: Vec<Size> = self.records.iter().filter_map(|record| record.case.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The specs that occur, in file order.
    pub fn specs(&self) -> Vec<&Spec> {
        let mut specs: Vec<&Spec> = Vec::new();
        for record in &self.records {
            if !specs.contains(&&record.case.spec) {
                specs.push(&record.case.spec);
            }
        }
        specs
    }
}
