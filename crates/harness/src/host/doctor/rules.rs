//! All rules of the doctor, and what they find on a host.
//!
//! Each rule is one function from the host to at most one finding, in the file of its subsystem. Rules read the recorded
//! [`Host`], speed readings that the caller took, and what else the kernel shows in files; they change nothing, measure nothing and read no clock. A rule that cannot
//! decide finds nothing: it does not guess.

use super::finding::Finding;
use super::here::Here;
use super::{
    clock, cpu, devices, ipc_limits, memory, network, observation, power, security, speed, virtualisation,
};
use crate::host::speed::CpuReadings;
use model::record::Host;
use std::path::Path;

/// What bears on measurements on `host`, of whose CPUs there are `readings` and whose files lie below `root` (`/` but in tests),
/// the worst first.
pub fn findings(host: &Host, readings: &[CpuReadings], root: &Path) -> Vec<Finding> {
    let here = Here { host, root, readings };
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|rule| rule(&here)).collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

type Rule = fn(&Here<'_>) -> Option<Finding>;

const RULES: [Rule; 50] = [
    virtualisation::emulation,
    virtualisation::kernel_imitation,
    observation::tracer,
    virtualisation::steal,
    virtualisation::virtualisation,
    cpu::cpu_quota,
    cpu::load,
    speed::speed,
    power::battery,
    power::governor,
    power::turbo,
    power::idle_states,
    cpu::smt,
    cpu::core_kinds,
    observation::proc_missing,
    cpu::topology_unknown,
    cpu::affinity,
    cpu::isolated,
    memory::numa_balancing,
    clock::clock_source,
    clock::tsc,
    clock::cpu_split,
    observation::perf_events,
    observation::hardware_counters,
    memory::address_layout,
    memory::huge_pages,
    memory::reserved_huge_pages,
    memory::swap,
    security::seccomp,
    security::mitigations,
    security::modules,
    security::programs,
    cpu::autogroup,
    ipc_limits::pipe_pages,
    ipc_limits::pipe_size,
    ipc_limits::message_queues,
    network::loopback,
    network::loopback_queue,
    network::congestion_control,
    network::default_buffers,
    network::socket_buffers,
    network::connection_queue,
    network::datagram_queue,
    ipc_limits::open_files,
    ipc_limits::locked_memory,
    ipc_limits::processes,
    memory::group_memory,
    devices::shared_memory,
    devices::message_queue_names,
    devices::pseudo_terminals,
];

#[cfg(test)]
mod tests {
    use super::super::finding::Severity;
    use super::super::testing::{good, readings, root};
    use super::*;
    use model::record::Fact;

    #[test]
    fn a_good_host_has_nothing_against_it() {
        let findings = findings(&good(), &readings(), root(&[]).path());
        let bad: Vec<_> = findings.iter().filter(|finding| finding.severity != Severity::Fine).collect();
        assert!(bad.is_empty(), "{bad:#?}");
        let fine: Vec<&str> = findings.iter().map(|finding| finding.subject.as_str()).collect();
        let expected = [
            "virtualisation",
            "speed",
            "clock-source",
            "cpu-split",
            "perf-events",
            "address-layout",
            "mitigations",
        ];
        assert_eq!(fine, expected);
    }

    #[test]
    fn of_a_host_that_shows_nothing_only_that_is_found() {
        let mut host = good();
        host.topology = crate::host::topology::read(Path::new("/nowhere"), &[0, 1]);
        host.limits.clear();
        (host.virtualisation, host.clocksource) =
            (Fact::Unknown(String::new()), Fact::Unknown(String::new()));
        (host.load, host.smt) = (Fact::Unknown(String::new()), Fact::Unknown(String::new()));
        (host.mitigations, host.tick_ns) = (Fact::Unknown(String::new()), Fact::Unknown(String::new()));
        host.transparent_huge_pages = Fact::Unknown(String::new());
        let root = tempfile::tempdir().unwrap();
        let found = findings(&host, &[], root.path());
        let subjects: Vec<&str> = found.iter().map(|finding| finding.subject.as_str()).collect();
        assert_eq!(subjects, ["proc", "topology", "cpu-split"]);
        assert_eq!(found[0].command.as_deref(), Some("sudo mount -t proc proc /proc"));
        assert_eq!(found[1].command.as_deref(), Some("sudo mount -t sysfs sysfs /sys"));
    }

    #[test]
    fn the_worst_comes_first() {
        let mut host = good();
        host.load = Fact::Known(7.0);
        host.smt = Fact::Known(true);
        let severities: Vec<_> =
            findings(&host, &readings(), root(&[]).path()).iter().map(|found| found.severity).collect();
        assert!(severities.is_sorted() && severities.first() == Some(&Severity::Spoils), "{severities:?}");
    }
}
