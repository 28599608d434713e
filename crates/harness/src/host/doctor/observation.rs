//! Rules about what can be observed: procfs, performance events, and tracers that observe already.

use super::finding::{Finding, Severity};
use super::here::Here;
use crate::host::files::names;
use model::record::Fact;

pub(super) fn tracer(here: &Here<'_>) -> Option<Finding> {
    let tracer = here.status("TracerPid").filter(|pid| pid != "0")?;
    let name = here.text(&format!("proc/{tracer}/comm")).map_or(String::new(), |name| format!(" ({name})"));
    let what = format!("process {tracer}{name} traces this one");
    let why = "a debugger or tracer stops the endpoints at signals, and maybe at every system call";
    Some(Finding::new(Severity::Spoils, "tracer", what, why))
}

pub(super) fn proc_missing(here: &Here<'_>) -> Option<Finding> {
    if here.root.join("proc/self/status").exists() {
        return None;
    }
    let why = "limits, load, memory and steal time are unknown, and most checks here cannot be made";
    let finding = Finding::new(Severity::Limits, "proc", "there is no /proc", why);
    Some(finding.mended_by(here.as_root("mount -t proc proc /proc")))
}

/// `perf_event_open(2)` and `Documentation/admin-guide/perf-security.rst`. Levels above 2 are Debian's and Ubuntu's.
pub(super) fn perf_events(here: &Here<'_>) -> Option<Finding> {
    const CAP_SYS_ADMIN: u64 = 1 << 21;
    const CAP_PERFMON: u64 = 1 << 38;
    let name = "kernel/perf_event_paranoid";
    let unknown = here.host.limits.get(name).is_some_and(|limit| matches!(limit, Fact::Unknown(_)));
    if unknown && here.root.join("proc/sys/kernel").exists() {
        let why = "the kernel is built without performance events: nothing can be observed, only timed";
        return Some(Finding::new(Severity::Limits, "perf-events", "there are no performance events", why));
    }
    let level: i64 = here.limit(name)?;
    let capabilities =
        here.status("CapEff").and_then(|bits| u64::from_str_radix(&bits, 16).ok()).unwrap_or(0);
    if level <= 1 || capabilities & (CAP_SYS_ADMIN | CAP_PERFMON) != 0 {
        let what =
            format!("performance events of user and kernel mode are allowed (perf_event_paranoid {level})");
        return Some(Finding::new(
            Severity::Fine,
            "perf-events",
            what,
            "what is counted includes the kernel's part of a message",
        ));
    }
    let (what, why) = match level {
        2 => (
            "perf_event_paranoid 2 allows counting user mode alone",
            "counters miss what the kernel does for a message, which is most of it",
        ),
        _ => ("perf_event_paranoid forbids performance events", "nothing can be counted, only timed"),
    };
    let command = here.as_root("sysctl -w kernel.perf_event_paranoid=1");
    Some(Finding::new(Severity::Limits, "perf-events", what, why).mended_by(command))
}

/// A processor's counters are a device `cpu`, one for each kind of core, or named after the ARM core.
pub(super) fn hardware_counters(here: &Here<'_>) -> Option<Finding> {
    let devices = names(here.root, "sys/bus/event_source/devices").ok()?;
    let counts = |name: &String| {
        ["cpu", "cpu_core", "cpu_atom", "cpum_cf"].contains(&name.as_str())
            || ["armv", "apple_"].iter().any(|prefix| name.starts_with(prefix))
    };
    if devices.iter().any(counts) {
        return None;
    }
    let whose = if here.is_guest() { "; the hypervisor would have to offer them" } else { "" };
    let why = format!("cycles, instructions and cache misses cannot be observed{whose}");
    Some(Finding::new(Severity::Limits, "hardware-counters", "there are no hardware counters", why))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{AS_IS, STATUS, assert_finds, finding, good, limit, root};
    use super::*;
    use model::record::Fact;
    use model::record::Host;

    #[test]
    fn a_tracer_is_named() {
        let status = STATUS.replace("TracerPid:\t0", "TracerPid:\t42");
        let files = [("proc/self/status", status.as_str()), ("proc/42/comm", "strace\n")];
        assert_finds(finding(tracer, AS_IS, &files), Severity::Spoils, "42 (strace)", None);
    }

    #[test]
    fn events_are_allowed_by_level_or_capability() {
        let level = |level| limit("kernel/perf_event_paranoid", level);
        let command = Some("sudo sysctl -w kernel.perf_event_paranoid=1");
        assert_finds(finding(perf_events, level("2"), &[]), Severity::Limits, "user mode alone", command);
        assert_finds(finding(perf_events, level("4"), &[]), Severity::Limits, "forbids", command);
        assert_finds(finding(perf_events, level("-1"), &[]), Severity::Fine, "allowed", None);
        let status = STATUS.replace("CapEff:\t0000000000000000", "CapEff:\t0000004000000000");
        let found = finding(perf_events, level("2"), &[("proc/self/status", &status)]);
        assert_finds(found, Severity::Fine, "allowed", None);
        let without = |host: &mut Host| {
            host.limits
                .insert("kernel/perf_event_paranoid".to_owned(), Fact::Unknown("no such file".to_owned()));
        };
        assert_finds(finding(perf_events, without, &[]), Severity::Limits, "no performance events", None);
    }

    #[test]
    fn counters_are_found_by_their_device() {
        let devices = |name: &str| {
            let root = root(&[(&format!("sys/bus/event_source/devices/{name}/type"), "8\n")]);
            std::fs::remove_dir_all(root.path().join("sys/bus/event_source/devices/cpu")).unwrap();
            hardware_counters(&Here { host: &good(), root: root.path(), readings: &[] })
        };
        assert_finds(devices("software"), Severity::Limits, "no hardware counters", None);
        for name in ["cpu_atom", "armv8_cortex_a72", "apple_icestorm_pmu"] {
            assert_eq!(devices(name), None);
        }
    }
}
