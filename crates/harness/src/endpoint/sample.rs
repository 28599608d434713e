//! A sample with what every workload has, for an endpoint, or what stands in for one, to fill in.

use model::record::{Sample, Usage};
use sys::usage::ThreadUsage;

/// A sample of `iterations` that took `elapsed_ns`. What else there is to say is for the caller.
pub fn sample(iterations: u64, elapsed_ns: f64, client: Usage, server: Option<Usage>) -> Sample {
    Sample {
        round: 0,
        started_ns: 0,
        iterations,
        trial_iterations: iterations,
        elapsed_ns,
        floor_ns: None,
        wake_floor_ns: None,
        each: None,
        client,
        server,
        calls: None,
        steps: None,
        timer: None,
        schedule: None,
        shares: None,
        lost: None,
        network: None,
        trial: 0,
        speed: None,
        stolen_ns: None,
    }
}

/// What this thread used between two readings of its accounting.
pub(crate) fn usage_between(start: ThreadUsage, end: ThreadUsage) -> Usage {
    Usage {
        cpu_ns: end.cpu_ns.saturating_sub(start.cpu_ns),
        // The split of user and system is adjusted by the kernel as it learns and may step back a little.
        user_ns: end.user_ns.saturating_sub(start.user_ns),
        system_ns: end.system_ns.saturating_sub(start.system_ns),
        voluntary_switches: end.voluntary_switches - start.voluntary_switches,
        involuntary_switches: end.involuntary_switches - start.involuntary_switches,
        minor_faults: end.minor_faults - start.minor_faults,
        major_faults: end.major_faults - start.major_faults,
    }
}
