//! What the tests of the rules share: a host that no rule has anything against, and changes to it.

use super::finding::{Finding, Severity};
use super::here::Here;
use crate::host::speed::CpuReadings;
use model::record::{Fact, Host};
use model::topology::{Cpu, Topology};
use std::collections::BTreeMap;
use tempfile::TempDir;

/// A rule of the doctor.
type Rule = fn(&Here<'_>) -> Option<Finding>;

/// A bare host of two idle CPUs that no rule has anything against.
pub(super) fn good() -> Host {
    let known = |text: &str| Fact::Known(text.to_owned());
    let limits = [
        ("kernel/perf_event_paranoid", "1"),
        ("fs/pipe-max-size", "1048576"),
        ("net/core/rmem_max", "4194304"),
        ("net/core/wmem_max", "4194304"),
        ("net/unix/max_dgram_qlen", "512"),
        ("RLIMIT_NOFILE", "1024/524288"),
    ];
    let cpu = |id| Cpu { id, package: 0, core: id, llc: Some(0), node: 0 };
    Host {
        name: known("host"),
        kernel: known("6.12.0 #1 SMP"),
        arch: "x86_64".to_owned(),
        cpu: known("Some processor"),
        topology: Topology { cpus: vec![cpu(0), cpu(1)], unknown: None },
        caches_bytes: Fact::Unknown(String::new()),
        cache_line_bytes: Fact::Unknown(String::new()),
        governor: Fact::Unknown(String::new()),
        smt: Fact::Known(false),
        mitigations: Fact::Known(BTreeMap::new()),
        virtualisation: known("none"),
        clocksource: known("tsc"),
        transparent_huge_pages: known("madvise"),
        tick_ns: Fact::Known(4_000_000),
        load: Fact::Known(0.1),
        memory_bytes: Fact::Known(1 << 30),
        limits: limits.into_iter().map(|(name, value)| (name.to_owned(), known(value))).collect(),
        pipe_bytes: Fact::Known(65536),
        control_group: Fact::Unknown(String::new()),
        queueing: Fact::Unknown(String::new()),
        security_modules: Fact::Unknown(String::new()),
        bpf_programs: Fact::Unknown(String::new()),
    }
}

/// Of two CPUs whose speed does not change.
pub(super) fn readings() -> [CpuReadings; 2] {
    [0, 1].map(|cpu| CpuReadings { cpu, readings_ns: vec![5000.0; 50] })
}

pub(super) const STATUS: &str = "Name:\tipcmark\nTracerPid:\t0\nUid:\t1000\t1000\t1000\t1000\n\
                      CapEff:\t0000000000000000\nSeccomp:\t0\nSeccomp_filters:\t0\n";

/// The files of that host, then `files` over them.
pub(super) fn root(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let good = [
        ("proc/self/status", STATUS),
        ("proc/self/cgroup", "0::/user.slice\n"),
        ("proc/self/personality", "00000000\n"),
        ("proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu constant_tsc nonstop_tsc\n"),
        ("proc/stat", "cpu  900 0 100 5000 0 0 0 0 0 0\n"),
        ("proc/meminfo", "MemAvailable: 900 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"),
        ("proc/sys/kernel/randomize_va_space", "2\n"),
        ("proc/sys/kernel/arch", "x86_64\n"),
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("sys/devices/system/cpu/nohz_full", "0-1\n"),
        ("sys/devices/system/cpu/isolated", "\n"),
        ("sys/bus/event_source/devices/cpu/type", "4\n"),
        ("sys/fs/cgroup/cpu.stat", "nr_throttled 0\n"),
    ];
    for (path, content) in good.iter().chain(files) {
        let file = root.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
    root
}

/// What `rule` finds on the good host once `change`d and with `files` over its own.
pub(super) fn finding(rule: Rule, change: impl FnOnce(&mut Host), files: &[(&str, &str)]) -> Option<Finding> {
    let mut host = good();
    change(&mut host);
    let root = root(files);
    rule(&Here { host: &host, root: root.path(), readings: &readings() })
}

#[track_caller]
pub(super) fn assert_finds(found: Option<Finding>, severity: Severity, what: &str, command: Option<&str>) {
    let found = found.expect("the rule says nothing");
    assert_eq!(found.severity, severity, "{found:?}");
    assert!(found.what.contains(what), "{found:?}");
    assert_eq!(found.command.as_deref(), command, "{found:?}");
}

pub(super) const AS_IS: fn(&mut Host) = |_| ();

pub(super) fn limit(name: &'static str, value: &'static str) -> impl FnOnce(&mut Host) {
    move |host| {
        host.limits.insert(name.to_owned(), Fact::Known(value.to_owned()));
    }
}
