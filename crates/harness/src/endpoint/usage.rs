//! What a thread used between two readings of its accounting, for a sample.

use model::record::Usage;
use sys::usage::ThreadUsage;

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
