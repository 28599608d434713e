//! Probes, what they observe of a trial, and what a results file keeps of that.

pub mod cpu_trace;
pub mod probe;
pub mod profile;
pub mod subsystem;
pub mod trial;

pub use self::cpu_trace::{CpuEvent, CpuEventKind, CpuTrace, EventSet, RecordingWay, ServedOn, TracedClient};
pub use self::probe::{Probe, ProbeRequest, SamplingRate, parse_probe};
pub use self::trial::{
    Counter, EndpointEvent, EndpointObservation, EventKind, Observation, SampledStack, StackFrame,
};
