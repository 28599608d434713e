//! Rules about the CPUs: how they hang together, who else uses them, and how much of them this process may use.

use super::finding::{Finding, Severity};
use super::here::{Here, without_tick};
use crate::host::topology::{CPUS, cpulist};
use model::cpu_list::format_cpulist;
use std::collections::BTreeMap;

/// The bandwidth limit of the CPU controller: `Documentation/admin-guide/cgroup-v2.rst`, "cpu.max", and
/// `Documentation/scheduler/sched-bwc.rst` for `cpu.cfs_quota_us`.
pub(super) fn cpu_quota(here: &Here<'_>) -> Option<Finding> {
    let quotas = here.control_groups("cpu").into_iter().filter_map(|group| Quota::read(here, &group));
    let least = quotas.min_by(|a, b| a.cpus.total_cmp(&b.cpus))?;
    // Two endpoints that spin want two CPUs.
    let severity = if least.cpus < 2.0 { Severity::Spoils } else { Severity::Limits };
    let what = format!("a control group may use {:.2} CPUs{}", least.cpus, least.stopped);
    let why =
        "when the quota of a period is used up, every process in the group stands until the next period";
    Some(Finding::new(severity, "cpu-quota", what, why).mended_by(least.lift))
}

struct Quota {
    cpus: f64,
    /// How often it took effect, in words.
    stopped: String,
    lift: String,
}

impl Quota {
    fn read(here: &Here<'_>, group: &str) -> Option<Self> {
        let (quota, period, lift) = match here.text(&format!("{group}/cpu.max")) {
            Some(max) => {
                let (quota, period) = max.split_once(' ')?;
                (quota.to_owned(), period.to_owned(), here.write("max", &format!("{group}/cpu.max")))
            }
            None => {
                let quota = format!("{group}/cpu.cfs_quota_us");
                let period = here.text(&format!("{group}/cpu.cfs_period_us"))?;
                (here.text(&quota)?, period, here.write("-1", &quota))
            }
        };
        // Where there is no limit the quota is `max` or -1, which are no such numbers.
        let (quota, period) = (quota.parse::<u32>().ok()?, period.parse::<u32>().ok().filter(|us| *us > 0)?);
        let stat = here.text(&format!("{group}/cpu.stat")).unwrap_or_default();
        let throttled = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        let stopped = throttled.filter(|times| *times != "0");
        let stopped = stopped.map_or(String::new(), |times| format!("; it was stopped {times} times"));
        Some(Quota { cpus: f64::from(quota) / f64::from(period), stopped, lift })
    }
}

pub(super) fn load(here: &Here<'_>) -> Option<Finding> {
    let load = *here.host.load.known()?;
    let cpus = here.online().map_or(here.host.topology.cpus.len(), |online| online.len());
    if load <= cpus as f64 * 0.2 {
        return None;
    }
    let what = format!("the load is {load:.2} on {cpus} CPUs");
    let why =
        "other processes take the endpoints' processors, caches and memory bandwidth; 'top' shows which";
    Some(Finding::new(Severity::Spoils, "load", what, why))
}

pub(super) fn smt(here: &Here<'_>) -> Option<Finding> {
    here.host.smt.known().filter(|active| **active)?;
    let control = format!("{CPUS}/smt/control");
    let can_switch = here.text(&control).is_some_and(|state| state == "on");
    let why = "what else runs on the sibling of an endpoint's CPU takes a part of its core. The placement \
               smt needs it on";
    let finding = Finding::new(Severity::Limits, "smt", "hardware threads share cores", why);
    Some(finding.mended_by(can_switch.then(|| here.write("off", &control))))
}

/// Hybrid x86 has one counter device for each kind of core; elsewhere the capacities tell:
/// `Documentation/scheduler/sched-capacity.rst`.
pub(super) fn core_kinds(here: &Here<'_>) -> Option<Finding> {
    let allowed = here.allowed();
    let mut kinds: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for device in ["cpu_core", "cpu_atom", "cpu_lowpower"] {
        let cpus = cpulist(here.root, &format!("sys/devices/{device}/cpus")).unwrap_or_default();
        let cpus: Vec<u32> = cpus.into_iter().filter(|cpu| allowed.contains(cpu)).collect();
        if !cpus.is_empty() {
            kinds.insert(device.to_owned(), cpus);
        }
    }
    if kinds.is_empty() {
        for cpu in allowed {
            let capacity = here.text(&format!("{CPUS}/cpu{cpu}/cpu_capacity"))?;
            kinds.entry(format!("capacity {capacity}")).or_default().push(cpu);
        }
    }
    if kinds.len() < 2 {
        return None;
    }
    let kinds: Vec<String> =
        kinds.iter().map(|(kind, cpus)| format!("{} ({kind})", format_cpulist(cpus))).collect();
    let what = format!("the cores are of {} kinds: CPUs {}", kinds.len(), kinds.join(", "));
    let why = "a placement takes the highest-numbered CPUs that fit, so its result is of their kind; name \
               CPUs of the other kind with cpus=A,B; unpinned may use either kind";
    Some(Finding::new(Severity::Limits, "core-kinds", what, why))
}

pub(super) fn topology_unknown(here: &Here<'_>) -> Option<Finding> {
    let reason = here.host.topology.unknown.as_ref()?;
    let mount = !here.root.join("sys/devices").exists();
    let why = "placements by shared cores and caches cannot be found; name CPUs with cpus=A,B";
    let finding =
        Finding::new(Severity::Limits, "topology", format!("the topology is unknown: {reason}"), why);
    Some(finding.mended_by(mount.then(|| here.as_root("mount -t sysfs sysfs /sys"))))
}

pub(super) fn affinity(here: &Here<'_>) -> Option<Finding> {
    let &[only] = here.allowed().as_slice() else { return None };
    let online = here.online().unwrap_or_default();
    // What a cpuset forbids, taskset cannot give: cpuset(7).
    let sets = here.control_groups("cpuset");
    let mut sets = sets
        .iter()
        .flat_map(|group| ["cpuset.cpus.effective", "cpuset.effective_cpus"].map(|f| format!("{group}/{f}")));
    let set = sets.find_map(|path| cpulist(here.root, &path).ok());
    let others: Vec<u32> =
        online.into_iter().filter(|cpu| set.as_ref().is_none_or(|set| set.contains(cpu))).collect();
    let what = format!("this process may use CPU {only} alone");
    let why = "both endpoints run on one CPU in every placement, and one that spins keeps its peer from \
               answering for whole time slices";
    let more = (others.len() > 1).then(|| format!("taskset -pc {} $$", format_cpulist(&others)));
    Some(Finding::new(Severity::Limits, "affinity", what, why).mended_by(more))
}

/// `Documentation/admin-guide/kernel-parameters.txt`: `isolcpus=` and `nohz_full=`.
pub(super) fn isolated(here: &Here<'_>) -> Option<Finding> {
    let isolated = cpulist(here.root, &format!("{CPUS}/isolated")).ok().filter(|cpus| !cpus.is_empty())?;
    let list = format_cpulist(&isolated);
    let tickless = without_tick(here);
    let tickless = if isolated.iter().all(|cpu| tickless.contains(cpu)) { " and without tick" } else { "" };
    let what = format!("CPUs {list} are isolated{tickless}");
    let mut reachable = here.allowed();
    if isolated.iter().any(|cpu| reachable.contains(cpu)) {
        let why = "the scheduler puts nothing else on them: the quietest place for endpoints, with cpus=A,B";
        return Some(Finding::new(Severity::Fine, "isolated", what, why));
    }
    reachable.extend(isolated);
    reachable.sort_unstable();
    let why = "the scheduler puts nothing on them: the quietest place for endpoints, with cpus=A,B, once \
               this shell may use them";
    let command = format!("taskset -pc {} $$", format_cpulist(&reachable));
    Some(Finding::new(Severity::Fine, "isolated", what, why).mended_by(command))
}

/// `sched(7)`, "The autogroup feature".
pub(super) fn autogroup(here: &Here<'_>) -> Option<Finding> {
    here.text("proc/sys/kernel/sched_autogroup_enabled").filter(|on| on == "1")?;
    let why = "both endpoints belong to one session, so they share it evenly. Nice values count only within a \
               session: renicing ipcmark does not favour it over other sessions";
    Some(Finding::new(Severity::Fine, "autogroup", "processes are scheduled by session", why))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{AS_IS, assert_finds, finding};
    use super::*;
    use model::record::Fact;
    use model::record::Host;

    #[test]
    fn quotas_count_on_every_level_and_in_both_versions() {
        let group = |max| [("sys/fs/cgroup/user.slice/cpu.max", max)];
        let lift = "echo max | sudo tee /sys/fs/cgroup/user.slice/cpu.max";
        let found = finding(cpu_quota, AS_IS, &group("150000 100000\n"));
        assert_finds(found, Severity::Spoils, "1.50 CPUs", Some(lift));
        let found = finding(cpu_quota, AS_IS, &group("400000 100000\n"));
        assert_finds(found, Severity::Limits, "4.00 CPUs", Some(lift));
        assert_eq!(finding(cpu_quota, AS_IS, &group("max 100000\n")), None);

        let above = [
            ("sys/fs/cgroup/user.slice/cpu.max", "400000 100000\n"),
            ("sys/fs/cgroup/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/cpu.stat", "nr_periods 9\nnr_throttled 7\n"),
        ];
        let lift = "echo max | sudo tee /sys/fs/cgroup/cpu.max";
        assert_finds(finding(cpu_quota, AS_IS, &above), Severity::Spoils, "stopped 7 times", Some(lift));

        let first = |quota| {
            [
                ("proc/self/cgroup", "4:cpu,cpuacct:/box\n3:memory:/elsewhere\n"),
                ("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", quota),
                ("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n"),
            ]
        };
        let lift = "echo -1 | sudo tee /sys/fs/cgroup/cpu/box/cpu.cfs_quota_us";
        assert_finds(finding(cpu_quota, AS_IS, &first("100000\n")), Severity::Spoils, "1.00", Some(lift));
        assert_eq!(finding(cpu_quota, AS_IS, &first("-1\n")), None);
    }

    #[test]
    fn load_is_set_against_all_cpus() {
        let loaded = |load| move |host: &mut Host| host.load = Fact::Known(load);
        assert_finds(finding(load, loaded(0.5), &[]), Severity::Spoils, "0.50 on 2 CPUs", None);
        assert_eq!(finding(load, loaded(0.5), &[("sys/devices/system/cpu/online", "0-63\n")]), None);
    }

    #[test]
    fn smt_is_switched_only_where_it_can_be() {
        let active = |host: &mut Host| host.smt = Fact::Known(true);
        let control = |state| [("sys/devices/system/cpu/smt/control", state)];
        let command = "echo off | sudo tee /sys/devices/system/cpu/smt/control";
        assert_finds(finding(smt, active, &control("on\n")), Severity::Limits, "share cores", Some(command));
        assert_finds(finding(smt, active, &control("notsupported\n")), Severity::Limits, "share cores", None);
    }

    #[test]
    fn kinds_of_cores_are_known_by_device_or_capacity() {
        let hybrid = [("sys/devices/cpu_core/cpus", "0\n"), ("sys/devices/cpu_atom/cpus", "1-8\n")];
        let what = "of 2 kinds: CPUs 1 (cpu_atom), 0 (cpu_core)";
        assert_finds(finding(core_kinds, AS_IS, &hybrid), Severity::Limits, what, None);
        let capacity = |of_second| {
            [
                ("sys/devices/system/cpu/cpu0/cpu_capacity", "1024\n"),
                ("sys/devices/system/cpu/cpu1/cpu_capacity", of_second),
            ]
        };
        let found = finding(core_kinds, AS_IS, &capacity("485\n"));
        assert_finds(found, Severity::Limits, "0 (capacity 1024), 1 (capacity 485)", None);
        assert_eq!(finding(core_kinds, AS_IS, &capacity("1024\n")), None);
    }

    #[test]
    fn an_unknown_topology_gives_its_reason() {
        let unknown = |host: &mut Host| host.topology.unknown = Some("no caches".to_owned());
        assert_finds(finding(topology_unknown, unknown, &[]), Severity::Limits, "no caches", None);
    }

    #[test]
    fn one_cpu_is_few_and_more_are_offered_where_there_are() {
        let one = |host: &mut Host| host.topology.cpus.truncate(1);
        assert_finds(
            finding(affinity, one, &[]),
            Severity::Limits,
            "CPU 0 alone",
            Some("taskset -pc 0-1 $$"),
        );
        let single = [("sys/devices/system/cpu/online", "0\n")];
        assert_finds(finding(affinity, one, &single), Severity::Limits, "CPU 0 alone", None);
        let set = [("sys/fs/cgroup/user.slice/cpuset.cpus.effective", "0\n")];
        assert_finds(finding(affinity, one, &set), Severity::Limits, "CPU 0 alone", None);
    }

    #[test]
    fn isolated_cpus_are_offered() {
        let cpus = |list| {
            [("sys/devices/system/cpu/isolated", list), ("sys/devices/system/cpu/nohz_full", "(null)\n")]
        };
        assert_finds(finding(isolated, AS_IS, &cpus("1\n")), Severity::Fine, "CPUs 1 are isolated", None);
        let command = Some("taskset -pc 0-1,4-5 $$");
        assert_finds(finding(isolated, AS_IS, &cpus("4-5\n")), Severity::Fine, "CPUs 4-5", command);
        let tickless = [("sys/devices/system/cpu/isolated", "1\n")];
        assert_finds(finding(isolated, AS_IS, &tickless), Severity::Fine, "isolated and without tick", None);
    }

    #[test]
    fn autogroup_is_found_when_on() {
        let path = "proc/sys/kernel/sched_autogroup_enabled";
        assert_finds(finding(autogroup, AS_IS, &[(path, "1\n")]), Severity::Fine, "by session", None);
        assert_eq!(finding(autogroup, AS_IS, &[(path, "0\n")]), None);
    }
}
