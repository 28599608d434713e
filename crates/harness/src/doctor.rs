//! What on this host spoils or limits measurements, why, and the command that mends it.
//!
//! Each rule is one function from the host to at most one finding. Rules read the recorded [`Host`] and what
//! else the kernel shows in files; they change nothing, measure nothing and read no clock. A rule that cannot
//! tell says nothing: it does not guess.

use crate::host::{Ticks, cpuinfo, meminfo_bytes, names, text};
use crate::topology::{CPUS, cpulist, format_cpulist};
use model::record::{Fact, Host};
use model::units::{Size, format_ns};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Results vary, or are of something else than they claim.
    Spoils,
    /// Something cannot be measured here, or only with a reservation.
    Limits,
    /// As it should be, and worth knowing.
    Fine,
}

/// One thing about the host that bears on measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about, in one word that does not change: `governor`.
    pub subject: String,
    /// What was found.
    pub what: String,
    /// What it does to measurements.
    pub why: String,
    /// What to type to mend it; absent where no one command does.
    pub command: Option<String>,
}

impl Finding {
    fn new(severity: Severity, subject: &str, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { severity, subject: subject.to_owned(), what: what.into(), why: why.into(), command: None }
    }

    fn mended_by(self, command: impl Into<Option<String>>) -> Self {
        Self { command: command.into(), ..self }
    }
}

/// What bears on measurements on `host`, whose files lie below `root` (`/` but in tests), the worst first.
pub fn findings(host: &Host, root: &Path) -> Vec<Finding> {
    let here = Here { host, root };
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|rule| rule(&here)).collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

type Rule = fn(&Here) -> Option<Finding>;

const RULES: [Rule; 33] = [
    emulation,
    kernel_imitation,
    tracer,
    steal,
    virtualisation,
    cpu_quota,
    load,
    battery,
    governor,
    turbo,
    idle_states,
    smt,
    core_kinds,
    proc_missing,
    topology_unknown,
    affinity,
    isolated,
    numa_balancing,
    clock_source,
    tsc,
    cpu_split,
    perf_events,
    hardware_counters,
    address_layout,
    huge_pages,
    swap,
    seccomp,
    mitigations,
    autogroup,
    pipe_size,
    socket_buffers,
    datagram_queue,
    open_files,
];

/// The host as the rules see it.
struct Here<'a> {
    host: &'a Host,
    root: &'a Path,
}

impl Here<'_> {
    fn text(&self, path: &str) -> Option<String> {
        text(self.root, path).ok()
    }

    fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    fn limit<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.host.limits.get(name)?.known()?.parse().ok()
    }

    /// The soft and the hard limit; what is unlimited is the largest number.
    fn rlimit(&self, name: &str) -> Option<(u64, u64)> {
        let (soft, hard) = self.host.limits.get(name)?.known()?.split_once('/')?;
        let number = |text: &str| if text == "unlimited" { Some(u64::MAX) } else { text.parse().ok() };
        Some((number(soft)?, number(hard)?))
    }

    /// A field of `/proc/self/status`: `proc_pid_status(5)`.
    fn status(&self, key: &str) -> Option<String> {
        let status = self.text("proc/self/status")?;
        let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some(value.trim().to_owned())
    }

    /// Where this process may do as root does there is often no sudo, as in containers.
    fn sudo(&self) -> &'static str {
        let effective = self.status("Uid").and_then(|ids| Some(ids.split_whitespace().nth(1)? == "0"));
        if effective == Some(true) { "" } else { "sudo " }
    }

    fn as_root(&self, command: &str) -> String {
        format!("{}{command}", self.sudo())
    }

    fn write(&self, value: &str, path: &str) -> String {
        format!("echo {value} | {}tee /{path}", self.sudo())
    }

    fn allowed(&self) -> Vec<u32> {
        self.host.topology.cpus.iter().map(|cpu| cpu.id).collect()
    }

    fn online(&self) -> Option<Vec<u32>> {
        cpulist(self.root, &format!("{CPUS}/online")).ok()
    }

    fn is_guest(&self) -> bool {
        self.host.virtualisation.known().is_some_and(|name| name != "none")
    }

    /// The groups of this process under `controller`, its own first, then what contains it: `cgroups(7)`.
    fn control_groups(&self, controller: &str) -> Vec<String> {
        let groups = self.text("proc/self/cgroup").unwrap_or_default();
        let mut directories = Vec::new();
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let mount = if controllers.is_empty() {
                "sys/fs/cgroup".to_owned()
            } else if controllers.split(',').any(|one| one == controller) {
                format!("sys/fs/cgroup/{controller}")
            } else {
                continue;
            };
            // Inside a container the path may lead out of what is mounted: only the mount itself is then visible.
            let path = if path.contains("..") { "" } else { path.trim_matches('/') };
            let up = Path::new(path).ancestors().map(|group| format!("{mount}/{}", group.display()));
            directories.extend(up.map(|directory| directory.trim_end_matches('/').to_owned()));
        }
        directories
    }
}

/// A kernel that reports another architecture than `uname(2)` runs this program through a translator.
/// `/proc/sys/kernel/arch` is there since Linux 6.1.
fn emulation(here: &Here) -> Option<Finding> {
    let info = here.text("proc/cpuinfo").unwrap_or_default();
    let kernel = here.text("proc/sys/kernel/arch");
    let foreign = kernel.filter(|kernel| family(kernel) != family(&here.host.arch));
    let cpu = here.host.cpu.known().map_or("", String::as_str);
    let what = if let Some(kernel) = foreign {
        format!("this {} program is emulated on {kernel}", here.host.arch)
    } else if cpuinfo(&info, "vendor_id").next() == Some("VirtualApple") {
        "this program is translated by Rosetta".to_owned()
    } else if cpu.contains("QEMU TCG") {
        "the processor is emulated by QEMU".to_owned()
    } else {
        return None;
    };
    let why = "every instruction is translated: the times are the emulator's, not the mechanisms'";
    Some(Finding::new(Severity::Spoils, "emulation", what, why))
}

/// A processor runs the 32-bit programs of its own family by itself.
fn family(arch: &str) -> &str {
    const FAMILIES: [(&str, &str); 11] = [
        ("x86", "x86"),
        ("i386", "x86"),
        ("i486", "x86"),
        ("i586", "x86"),
        ("i686", "x86"),
        ("aarch64", "arm"),
        ("arm", "arm"),
        ("ppc", "power"),
        ("s390", "s390"),
        ("mips", "mips"),
        ("sparc", "sparc"),
    ];
    FAMILIES.iter().find(|(prefix, _)| arch.starts_with(prefix)).map_or(arch, |(_, family)| family)
}

/// gVisor's release ends in `-gvisor`; that of the first WSL in `-Microsoft`, while the second has a true kernel.
fn kernel_imitation(here: &Here) -> Option<Finding> {
    let kernel = here.host.kernel.known()?;
    let name = if kernel.contains("gvisor") {
        "gVisor"
    } else if kernel.contains("-Microsoft") {
        "WSL 1"
    } else {
        return None;
    };
    let what = format!("{name} answers the system calls, not Linux");
    let why = "the results hold for programs under it and say nothing about a Linux kernel";
    Some(Finding::new(Severity::Limits, "kernel", what, why))
}

fn tracer(here: &Here) -> Option<Finding> {
    let tracer = here.status("TracerPid").filter(|pid| pid != "0")?;
    let name = here.text(&format!("proc/{tracer}/comm")).map_or(String::new(), |name| format!(" ({name})"));
    let what = format!("process {tracer}{name} traces this one");
    let why = "a debugger or tracer stops the endpoints at signals, and maybe at every system call";
    Some(Finding::new(Severity::Spoils, "tracer", what, why))
}

/// A guest seldom uses all its time, so what was stolen is set against what it used or would have used.
fn steal(here: &Here) -> Option<Finding> {
    let ticks = Ticks::read(here.root)?;
    let share = ticks.steal as f64 / (ticks.steal + ticks.busy).max(1) as f64;
    if share < 0.01 {
        return None;
    }
    let what = format!("{:.1}% of the processor time wanted since boot was stolen", share * 100.0);
    let why = "the hypervisor ran something else meanwhile: times wander. Trust multiples of the floor more \
               than absolute times, or measure on a dedicated host";
    Some(Finding::new(Severity::Spoils, "steal", what, why))
}

fn virtualisation(here: &Here) -> Option<Finding> {
    let hypervisor = here.host.virtualisation.known()?;
    if hypervisor == "none" {
        return Some(Finding::new(
            Severity::Fine,
            "virtualisation",
            "bare hardware",
            "no hypervisor steals time",
        ));
    }
    let what = format!("the host is a virtual machine ({hypervisor})");
    let why = "waking another CPU, halting and timers may go through the hypervisor, which may also take \
               the processor away without telling";
    Some(Finding::new(Severity::Limits, "virtualisation", what, why))
}

/// The bandwidth limit of the CPU controller: `Documentation/admin-guide/cgroup-v2.rst`, "cpu.max", and
/// `Documentation/scheduler/sched-bwc.rst` for `cpu.cfs_quota_us`.
fn cpu_quota(here: &Here) -> Option<Finding> {
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
    fn read(here: &Here, group: &str) -> Option<Self> {
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

fn load(here: &Here) -> Option<Finding> {
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

/// Mice and headsets have batteries too; their scope is `Device`.
/// `Documentation/ABI/testing/sysfs-class-power`.
fn battery(here: &Here) -> Option<Finding> {
    let supplies = "sys/class/power_supply";
    let discharges = |name: &String| {
        let says = |file: &str, word: &str| {
            here.text(&format!("{supplies}/{name}/{file}")).is_some_and(|text| text == word)
        };
        says("type", "Battery") && says("status", "Discharging") && !says("scope", "Device")
    };
    let name = names(here.root, supplies).ok()?.into_iter().find(discharges)?;
    let what = format!("the host runs on its battery ({name})");
    let why = "on battery, firmware and power daemons lower and vary the frequency; plug it in";
    Some(Finding::new(Severity::Spoils, "battery", what, why))
}

/// `Documentation/admin-guide/pm/cpufreq.rst`.
fn governor(here: &Here) -> Option<Finding> {
    let of = |cpu: u32, file: &str| here.text(&format!("{CPUS}/cpu{cpu}/cpufreq/{file}"));
    let governors: BTreeSet<String> =
        here.allowed().into_iter().filter_map(|cpu| of(cpu, "scaling_governor")).collect();
    let varying: Vec<&str> = governors
        .iter()
        .map(String::as_str)
        .filter(|name| !["performance", "userspace"].contains(name))
        .collect();
    if governors.is_empty() {
        return None;
    }
    if varying.is_empty() {
        let all = governors.into_iter().collect::<Vec<_>>().join(", ");
        let what = format!("the frequency governor is {all}");
        return Some(Finding::new(
            Severity::Fine,
            "governor",
            what,
            "the frequency does not follow the load",
        ));
    }
    let available = here.allowed().first().and_then(|cpu| of(*cpu, "scaling_available_governors"));
    let has_performance =
        available.is_some_and(|names| names.split_whitespace().any(|one| one == "performance"));
    let what = format!("the frequency governor is {}", varying.join(", "));
    let why = "the frequency follows the load: endpoints that wait run slower than endpoints that spin, and \
               the first iterations slower than the last";
    let command = has_performance.then(|| here.as_root("cpupower frequency-set -g performance"));
    Some(Finding::new(Severity::Spoils, "governor", what, why).mended_by(command))
}

/// `Documentation/admin-guide/pm/intel_pstate.rst`, "no_turbo"; `cpufreq.rst`, "boost".
fn turbo(here: &Here) -> Option<Finding> {
    let switches =
        [(format!("{CPUS}/intel_pstate/no_turbo"), "0", "1"), (format!("{CPUS}/cpufreq/boost"), "1", "0")];
    let (path, _, off) =
        switches.iter().find(|(path, on, _)| here.text(path).is_some_and(|now| now == *on))?;
    let why = "the frequency depends on the temperature and on how many cores are busy, also with other work";
    let finding = Finding::new(Severity::Limits, "turbo", "turbo frequencies are allowed", why);
    Some(finding.mended_by(here.write(off, path)))
}

/// `Documentation/admin-guide/pm/cpuidle.rst`: `latency` is the time to leave the state, in microseconds.
fn idle_states(here: &Here) -> Option<Finding> {
    const SLOW_US: u64 = 10;
    let directory = format!("{CPUS}/cpu{}/cpuidle", here.allowed().first()?);
    let slow = |state: &String| {
        let of = |file: &str| here.number::<u64>(&format!("{directory}/{state}/{file}"));
        of("latency").filter(|us| *us >= SLOW_US && of("disable") == Some(0))
    };
    let slowest = names(here.root, &directory).ok()?.iter().filter_map(slow).max()?;
    let what = format!("idle CPUs enter states that take up to {slowest} µs to leave");
    let why = "an endpoint that blocks is woken later the longer it has waited: slow peers look slower still. \
               It is a part of the cost on this host, and varies ('cpupower idle-set -E' allows them again)";
    let command = here.as_root(&format!("cpupower idle-set -D {SLOW_US}"));
    Some(Finding::new(Severity::Limits, "idle-states", what, why).mended_by(command))
}

fn smt(here: &Here) -> Option<Finding> {
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
fn core_kinds(here: &Here) -> Option<Finding> {
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
               CPUs of the other kind with cpus=A,B, and do not mean unpinned to be either";
    Some(Finding::new(Severity::Limits, "core-kinds", what, why))
}

fn proc_missing(here: &Here) -> Option<Finding> {
    if here.root.join("proc/self/status").exists() {
        return None;
    }
    let why = "limits, load, memory and steal time are unknown, and most checks here cannot be made";
    let finding = Finding::new(Severity::Limits, "proc", "there is no /proc", why);
    Some(finding.mended_by(here.as_root("mount -t proc proc /proc")))
}

fn topology_unknown(here: &Here) -> Option<Finding> {
    let reason = here.host.topology.unknown.as_ref()?;
    let mount = !here.root.join("sys/devices").exists();
    let why = "placements by shared cores and caches cannot be found; name CPUs with cpus=A,B";
    let finding =
        Finding::new(Severity::Limits, "topology", format!("the topology is unknown: {reason}"), why);
    Some(finding.mended_by(mount.then(|| here.as_root("mount -t sysfs sysfs /sys"))))
}

fn affinity(here: &Here) -> Option<Finding> {
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
fn isolated(here: &Here) -> Option<Finding> {
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

/// The file is there with `CONFIG_NO_HZ_FULL`, and says `(null)` on some kernels when no CPU is meant.
fn without_tick(here: &Here) -> Vec<u32> {
    cpulist(here.root, &format!("{CPUS}/nohz_full")).unwrap_or_default()
}

/// `Documentation/admin-guide/sysctl/kernel.rst`, "numa_balancing".
fn numa_balancing(here: &Here) -> Option<Finding> {
    let nodes: BTreeSet<u32> = here.host.topology.cpus.iter().map(|cpu| cpu.node).collect();
    here.number::<u32>("proc/sys/kernel/numa_balancing").filter(|mode| *mode != 0 && nodes.len() > 1)?;
    let why = "the kernel unmaps pages to see who uses them, and moves them: faults come at any time";
    let finding =
        Finding::new(Severity::Limits, "numa-balancing", "the kernel balances memory between nodes", why);
    Some(finding.mended_by(here.as_root("sysctl -w kernel.numa_balancing=0")))
}

/// Which sources `clock_gettime(2)` reads without entering the kernel: `vdso(7)` and the clock source drivers.
fn clock_source(here: &Here) -> Option<Finding> {
    let directory = "sys/devices/system/clocksource/clocksource0";
    let source = here.host.clocksource.known()?.as_str();
    let what = format!("the clock source is {source}");
    let (severity, why) = match source {
        "tsc" | "arch_sys_counter" | "timebase" | "tod" | "riscv_clocksource" => {
            let why = "clock_gettime reads a counter of the processor without entering the kernel";
            return Some(Finding::new(Severity::Fine, "clock-source", what, why));
        }
        "hpet" | "acpi_pm" | "pit" | "jiffies" | "refined-jiffies" | "hyperv_clocksource_msr" => (
            Severity::Spoils,
            "every clock reading is a system call that asks a slow device, or steps by a whole tick",
        ),
        _ => (
            Severity::Limits,
            "clock readings cost more than those of the processor's counter, and may enter the kernel",
        ),
    };
    let available = here.text(&format!("{directory}/available_clocksource")).unwrap_or_default();
    let has_tsc = available.split_whitespace().any(|one| one == "tsc");
    let command = has_tsc.then(|| here.write("tsc", &format!("{directory}/current_clocksource")));
    Some(Finding::new(severity, "clock-source", what, why).mended_by(command))
}

fn tsc(here: &Here) -> Option<Finding> {
    let info = here.text("proc/cpuinfo")?;
    let flags: Vec<&str> = cpuinfo(&info, "flags").next()?.split_whitespace().collect();
    let lacking: Vec<&str> =
        ["constant_tsc", "nonstop_tsc"].into_iter().filter(|flag| !flags.contains(flag)).collect();
    if lacking.is_empty() {
        return None;
    }
    let what = format!("the time-stamp counter is not {}", lacking.join(", nor "));
    let why = "it cannot time iterations: its rate follows the frequency, or it stops in idle states. The clock is \
               then clock_gettime, which costs more";
    Some(Finding::new(Severity::Limits, "tsc", what, why))
}

/// `VIRT_CPU_ACCOUNTING_GEN` counts every change of mode, but only on CPUs without tick;
/// `VIRT_CPU_ACCOUNTING_NATIVE` of POWER and s390 does on all, and no file tells whether it is built in.
fn cpu_split(here: &Here) -> Option<Finding> {
    if ["power", "s390"].contains(&family(&here.host.arch)) {
        return None;
    }
    let tickless = without_tick(here);
    let sampled: Vec<u32> = here.allowed().into_iter().filter(|cpu| !tickless.contains(cpu)).collect();
    if sampled.is_empty() {
        let what = "user and system CPU time are told apart at every change of mode";
        return Some(Finding::new(Severity::Fine, "cpu-split", what, "both are exact, not only their sum"));
    }
    let every =
        here.host.tick_ns.known().map_or(String::new(), |ns| format!(", every {}", format_ns(*ns as f64)));
    let what = format!("user and system CPU time are told apart by the tick{every}");
    let why = "their sum is exact; the split is where the process happened to be at each tick, good only over \
               many ticks. A kernel with VIRT_CPU_ACCOUNTING_GEN counts it on CPUs booted with nohz_full=";
    Some(Finding::new(Severity::Limits, "cpu-split", what, why))
}

/// `perf_event_open(2)` and `Documentation/admin-guide/perf-security.rst`. Levels above 2 are Debian's and Ubuntu's.
fn perf_events(here: &Here) -> Option<Finding> {
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
fn hardware_counters(here: &Here) -> Option<Finding> {
    let devices = names(here.root, "sys/bus/event_source/devices").ok()?;
    let counts = |name: &String| {
        ["cpu", "cpu_core", "cpu_atom", "cpum_cf"].contains(&name.as_str())
            || ["armv", "apple_"].iter().any(|prefix| name.starts_with(prefix))
    };
    if devices.iter().any(counts) {
        return None;
    }
    let whose = if here.is_guest() { "; the hypervisor would have to lend them" } else { "" };
    let why = format!("cycles, instructions and cache misses cannot be observed{whose}");
    Some(Finding::new(Severity::Limits, "hardware-counters", "there are no hardware counters", why))
}

/// `Documentation/admin-guide/sysctl/kernel.rst`, "randomize_va_space"; `personality(2)`, `ADDR_NO_RANDOMIZE`.
fn address_layout(here: &Here) -> Option<Finding> {
    const ADDR_NO_RANDOMIZE: u32 = 0x004_0000;
    let mode: u32 = here.number("proc/sys/kernel/randomize_va_space")?;
    let personality = here.text("proc/self/personality");
    let personality = personality.and_then(|bits| u32::from_str_radix(&bits, 16).ok()).unwrap_or(0);
    let why = "every trial has the same layout: what one layout gains or loses looks like the mechanism's \
               cost, and intervals are narrower than the truth";
    if personality & ADDR_NO_RANDOMIZE != 0 {
        let what = "address layout is not random for this process (setarch -R, or a debugger)";
        return Some(Finding::new(Severity::Spoils, "address-layout", what, why));
    }
    if mode < 2 {
        let what = format!("address layout is not wholly random (randomize_va_space {mode})");
        let command = here.as_root("sysctl -w kernel.randomize_va_space=2");
        return Some(Finding::new(Severity::Spoils, "address-layout", what, why).mended_by(command));
    }
    let why = "that is wanted: trials differ as two runs would, so the intervals tell the truth. Leave it on";
    Some(Finding::new(Severity::Fine, "address-layout", "address layout is random", why))
}

/// `Documentation/admin-guide/mm/transhuge.rst`.
fn huge_pages(here: &Here) -> Option<Finding> {
    here.host.transparent_huge_pages.known().filter(|mode| *mode == "always")?;
    let why = "large buffers are in huge pages in some trials and not in others, as memory happens to be \
               free: the trials fall into two modes";
    let finding =
        Finding::new(Severity::Limits, "huge-pages", "transparent huge pages are given always", why);
    Some(finding.mended_by(here.write("madvise", "sys/kernel/mm/transparent_hugepage/enabled")))
}

fn swap(here: &Here) -> Option<Finding> {
    let bytes = |key| meminfo_bytes(here.root, key).ok();
    let used = bytes("SwapTotal")?.saturating_sub(bytes("SwapFree")?);
    if used == 0 {
        return None;
    }
    let what = format!("{} MiB are swapped out", used.div_ceil(1 << 20));
    let why = "memory was short: a page of an endpoint that is out costs an I/O when it is touched; the record \
               counts these as major faults";
    // Without room to bring everything in, swapoff(8) would only make memory shorter.
    let fits = bytes("MemAvailable").is_some_and(|available| available > used);
    let command = fits.then(|| here.as_root("swapoff -a"));
    Some(Finding::new(Severity::Limits, "swap", what, why).mended_by(command))
}

/// `seccomp(2)`: in mode 2 the kernel runs a filter before every system call. Containers have one.
fn seccomp(here: &Here) -> Option<Finding> {
    here.status("Seccomp").filter(|mode| mode == "2")?;
    let filters = here.status("Seccomp_filters").map_or(String::new(), |count| format!(" ({count})"));
    let what = format!("system calls are filtered by seccomp{filters}, as in containers");
    let why = "the filter costs time at every system call, and may forbid some; compare with hosts that have \
               none by multiples of the floor";
    Some(Finding::new(Severity::Limits, "seccomp", what, why))
}

fn mitigations(here: &Here) -> Option<Finding> {
    let states = here.host.mitigations.known()?;
    let active = states.iter().filter(|(_, state)| state.starts_with("Mitigation"));
    let active: Vec<&str> = active.map(|(name, _)| name.as_str()).collect();
    let what = match active.as_slice() {
        [] => "no processor vulnerability is mitigated".to_owned(),
        active => format!("mitigated processor vulnerabilities: {}", active.join(", ")),
    };
    let why = "mitigations are a part of what system calls and switches cost here; a host with others has other \
               costs, and so may published numbers";
    Some(Finding::new(Severity::Fine, "mitigations", what, why))
}

/// `sched(7)`, "The autogroup feature".
fn autogroup(here: &Here) -> Option<Finding> {
    here.text("proc/sys/kernel/sched_autogroup_enabled").filter(|on| on == "1")?;
    let why = "both endpoints are of one session and share alike; but nice values weigh only within a session, so \
               renicing ipcmark does not set it before the work of other sessions";
    Some(Finding::new(Severity::Fine, "autogroup", "processes are scheduled by session", why))
}

/// `pipe(7)`, "/proc files".
fn pipe_size(here: &Here) -> Option<Finding> {
    const DEFAULT: u64 = 1 << 20;
    let size: u64 = here.limit("fs/pipe-max-size").filter(|size| *size < DEFAULT)?;
    let what = format!("a pipe may hold at most {}", Size(size));
    let why = "larger capacities are refused without privilege: large messages go through in many pieces";
    let command = here.as_root(&format!("sysctl -w fs.pipe-max-size={DEFAULT}"));
    Some(Finding::new(Severity::Limits, "pipe-size", what, why).mended_by(command))
}

/// `socket(7)`: what is asked for with `SO_SNDBUF` and `SO_RCVBUF` is capped by these, then doubled.
fn socket_buffers(here: &Here) -> Option<Finding> {
    const WANTED: u64 = 4 << 20;
    const ENOUGH: u64 = 1 << 20;
    let small = |name: &&str| here.limit(&format!("net/core/{name}")).is_some_and(|max: u64| max < ENOUGH);
    let small: Vec<&str> = ["rmem_max", "wmem_max"].into_iter().filter(|name| small(name)).collect();
    let sizes: Vec<String> = small
        .iter()
        .filter_map(|name| Some(format!("{name} {}", Size(here.limit(&format!("net/core/{name}"))?))))
        .collect();
    if small.is_empty() {
        return None;
    }
    let what = format!("socket buffers are capped: {}", sizes.join(", "));
    let why = "unix datagrams and packets of more than twice wmem_max are refused, and buffers asked for above \
               the caps are cut to them";
    let settings: Vec<String> = small.iter().map(|name| format!("net.core.{name}={WANTED}")).collect();
    let command = here.as_root(&format!("sysctl -w {}", settings.join(" ")));
    Some(Finding::new(Severity::Limits, "socket-buffers", what, why).mended_by(command))
}

/// `unix_dgram_sendmsg` in the kernel's `net/unix/af_unix.c` looks at the queue's length only where the receiver
/// is not connected back to the sender. Socket pairs are, so nothing is limited unless a receiver is shared.
fn datagram_queue(here: &Here) -> Option<Finding> {
    let length: u64 = here.limit("net/unix/max_dgram_qlen").filter(|length| *length < 64)?;
    let what = format!("max_dgram_qlen is {length}");
    let why = "it binds only unix datagram sockets whose receiver is not connected back to the sender, such as a \
               server's: hardly more than these wait there, however small, then the sender does. Pairs are \
               bound by their buffers alone";
    let command = here.as_root("sysctl -w net.unix.max_dgram_qlen=512");
    Some(Finding::new(Severity::Fine, "datagram-queue", what, why).mended_by(command))
}

fn open_files(here: &Here) -> Option<Finding> {
    const WANTED: u64 = 1024;
    let (soft, hard) = here.rlimit("RLIMIT_NOFILE").filter(|(soft, _)| *soft < 64)?;
    let what = format!("a process may open {soft} files");
    let why = "mechanisms with many descriptors, and sessions that pass them, fail";
    let command = match hard {
        hard if hard > soft => format!("ulimit -n {}", hard.min(WANTED)),
        _ => here.as_root(&format!("prlimit --pid $$ --nofile={WANTED}")),
    };
    Some(Finding::new(Severity::Limits, "open-files", what, why).mended_by(command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::topology::{Cpu, Topology};
    use tempfile::TempDir;

    /// A bare host of two idle CPUs that no rule has anything against.
    fn good() -> Host {
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
        }
    }

    const STATUS: &str = "Name:\tipcmark\nTracerPid:\t0\nUid:\t1000\t1000\t1000\t1000\n\
                          CapEff:\t0000000000000000\nSeccomp:\t0\nSeccomp_filters:\t0\n";

    /// The files of that host, then `files` over them.
    fn root(files: &[(&str, &str)]) -> TempDir {
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

    /// The finding about `subject` on the good host once `change`d and with `files` over its own.
    fn finding(subject: &str, change: impl FnOnce(&mut Host), files: &[(&str, &str)]) -> Option<Finding> {
        let mut host = good();
        change(&mut host);
        findings(&host, root(files).path()).into_iter().find(|finding| finding.subject == subject)
    }

    #[track_caller]
    fn assert_finds(found: Option<Finding>, severity: Severity, what: &str, command: Option<&str>) {
        let found = found.expect("the rule says nothing");
        assert_eq!(found.severity, severity, "{found:?}");
        assert!(found.what.contains(what), "{found:?}");
        assert_eq!(found.command.as_deref(), command, "{found:?}");
    }

    const AS_IS: fn(&mut Host) = |_| ();

    fn limit(name: &'static str, value: &'static str) -> impl FnOnce(&mut Host) {
        move |host| {
            host.limits.insert(name.to_owned(), Fact::Known(value.to_owned()));
        }
    }

    #[test]
    fn a_good_host_has_nothing_against_it() {
        let findings = findings(&good(), root(&[]).path());
        let bad: Vec<_> = findings.iter().filter(|finding| finding.severity != Severity::Fine).collect();
        assert!(bad.is_empty(), "{bad:#?}");
        let fine: Vec<&str> = findings.iter().map(|finding| finding.subject.as_str()).collect();
        let expected =
            ["virtualisation", "clock-source", "cpu-split", "perf-events", "address-layout", "mitigations"];
        assert_eq!(fine, expected);
    }

    #[test]
    fn of_a_host_that_tells_nothing_only_that_is_said() {
        let mut host = good();
        host.topology = crate::topology::read(Path::new("/nowhere"), &[0, 1]);
        host.limits.clear();
        (host.virtualisation, host.clocksource) =
            (Fact::Unknown(String::new()), Fact::Unknown(String::new()));
        (host.load, host.smt) = (Fact::Unknown(String::new()), Fact::Unknown(String::new()));
        (host.mitigations, host.tick_ns) = (Fact::Unknown(String::new()), Fact::Unknown(String::new()));
        host.transparent_huge_pages = Fact::Unknown(String::new());
        let root = tempfile::tempdir().unwrap();
        let found = findings(&host, root.path());
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
            findings(&host, root(&[]).path()).iter().map(|found| found.severity).collect();
        assert!(severities.is_sorted() && severities.first() == Some(&Severity::Spoils), "{severities:?}");
    }

    #[test]
    fn root_is_told_commands_without_sudo() {
        let status = STATUS.replace("1000", "0");
        let found =
            finding("pipe-size", limit("fs/pipe-max-size", "65536"), &[("proc/self/status", &status)]);
        let command = "sysctl -w fs.pipe-max-size=1048576";
        assert_finds(found, Severity::Limits, "at most 64K", Some(command));
    }

    #[test]
    fn emulation_is_told_by_the_kernel_or_the_processor() {
        let arch = |name| [("proc/sys/kernel/arch", name)];
        assert_finds(
            finding("emulation", AS_IS, &arch("aarch64")),
            Severity::Spoils,
            "emulated on aarch64",
            None,
        );
        assert_eq!(finding("emulation", |host| host.arch = "i686".to_owned(), &arch("x86_64")), None);
        assert_eq!(finding("emulation", |host| host.arch = "armv7l".to_owned(), &arch("aarch64")), None);
        let rosetta = [("proc/cpuinfo", "vendor_id\t: VirtualApple\n")];
        assert_finds(finding("emulation", AS_IS, &rosetta), Severity::Spoils, "Rosetta", None);
        let tcg = |host: &mut Host| host.cpu = Fact::Known("QEMU TCG CPU version 2.5+".to_owned());
        assert_finds(finding("emulation", tcg, &[]), Severity::Spoils, "QEMU", None);
    }

    #[test]
    fn kernels_that_are_not_linux_are_named() {
        let kernel =
            |release: &'static str| move |host: &mut Host| host.kernel = Fact::Known(release.to_owned());
        assert_finds(finding("kernel", kernel("4.19.0-gvisor #1"), &[]), Severity::Limits, "gVisor", None);
        assert_finds(
            finding("kernel", kernel("4.4.0-19041-Microsoft"), &[]),
            Severity::Limits,
            "WSL 1",
            None,
        );
        assert_eq!(finding("kernel", kernel("5.15.90.1-microsoft-standard-WSL2"), &[]), None);
    }

    #[test]
    fn a_tracer_is_named() {
        let status = STATUS.replace("TracerPid:\t0", "TracerPid:\t42");
        let files = [("proc/self/status", status.as_str()), ("proc/42/comm", "strace\n")];
        assert_finds(finding("tracer", AS_IS, &files), Severity::Spoils, "42 (strace)", None);
    }

    #[test]
    fn steal_is_set_against_wanted_time() {
        let stat = |line| [("proc/stat", line)];
        let found = finding("steal", AS_IS, &stat("cpu  900 0 70 900000 0 0 0 30 0 0\n"));
        assert_finds(found, Severity::Spoils, "3.0%", None);
        assert_eq!(finding("steal", AS_IS, &stat("cpu  900 0 95 900000 0 0 0 5 0 0\n")), None);
    }

    #[test]
    fn a_guest_is_limited() {
        let guest = |host: &mut Host| host.virtualisation = Fact::Known("kvm".to_owned());
        assert_finds(finding("virtualisation", guest, &[]), Severity::Limits, "(kvm)", None);
    }

    #[test]
    fn quotas_count_on_every_level_and_in_both_versions() {
        let group = |max| [("sys/fs/cgroup/user.slice/cpu.max", max)];
        let lift = "echo max | sudo tee /sys/fs/cgroup/user.slice/cpu.max";
        let found = finding("cpu-quota", AS_IS, &group("150000 100000\n"));
        assert_finds(found, Severity::Spoils, "1.50 CPUs", Some(lift));
        let found = finding("cpu-quota", AS_IS, &group("400000 100000\n"));
        assert_finds(found, Severity::Limits, "4.00 CPUs", Some(lift));
        assert_eq!(finding("cpu-quota", AS_IS, &group("max 100000\n")), None);

        let above = [
            ("sys/fs/cgroup/user.slice/cpu.max", "400000 100000\n"),
            ("sys/fs/cgroup/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/cpu.stat", "nr_periods 9\nnr_throttled 7\n"),
        ];
        let lift = "echo max | sudo tee /sys/fs/cgroup/cpu.max";
        assert_finds(finding("cpu-quota", AS_IS, &above), Severity::Spoils, "stopped 7 times", Some(lift));

        let first = |quota| {
            [
                ("proc/self/cgroup", "4:cpu,cpuacct:/box\n3:memory:/elsewhere\n"),
                ("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", quota),
                ("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n"),
            ]
        };
        let lift = "echo -1 | sudo tee /sys/fs/cgroup/cpu/box/cpu.cfs_quota_us";
        assert_finds(finding("cpu-quota", AS_IS, &first("100000\n")), Severity::Spoils, "1.00", Some(lift));
        assert_eq!(finding("cpu-quota", AS_IS, &first("-1\n")), None);
    }

    #[test]
    fn load_is_set_against_all_cpus() {
        let load = |load| move |host: &mut Host| host.load = Fact::Known(load);
        assert_finds(finding("load", load(0.5), &[]), Severity::Spoils, "0.50 on 2 CPUs", None);
        assert_eq!(finding("load", load(0.5), &[("sys/devices/system/cpu/online", "0-63\n")]), None);
    }

    #[test]
    fn a_battery_counts_when_it_discharges_and_is_the_hosts() {
        let supply = |status, scope| {
            [
                ("sys/class/power_supply/BAT0/type", "Battery\n"),
                ("sys/class/power_supply/BAT0/status", status),
                ("sys/class/power_supply/BAT0/scope", scope),
            ]
        };
        let found = finding("battery", AS_IS, &supply("Discharging\n", "System\n"));
        assert_finds(found, Severity::Spoils, "(BAT0)", None);
        assert_eq!(finding("battery", AS_IS, &supply("Charging\n", "System\n")), None);
        assert_eq!(finding("battery", AS_IS, &supply("Discharging\n", "Device\n")), None);
    }

    #[test]
    fn one_varying_governor_spoils() {
        let governors = |second, available| {
            [
                ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
                ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", second),
                ("sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors", available),
            ]
        };
        let command = Some("sudo cpupower frequency-set -g performance");
        let found = finding("governor", AS_IS, &governors("schedutil\n", "performance schedutil\n"));
        assert_finds(found, Severity::Spoils, "governor is schedutil", command);
        let found = finding("governor", AS_IS, &governors("schedutil\n", "schedutil\n"));
        assert_finds(found, Severity::Spoils, "schedutil", None);
        let found = finding("governor", AS_IS, &governors("performance\n", "performance\n"));
        assert_finds(found, Severity::Fine, "performance", None);
    }

    #[test]
    fn turbo_is_switched_where_the_driver_has_its_switch() {
        let intel = |now| [("sys/devices/system/cpu/intel_pstate/no_turbo", now)];
        let command = "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo";
        assert_finds(finding("turbo", AS_IS, &intel("0\n")), Severity::Limits, "allowed", Some(command));
        assert_eq!(finding("turbo", AS_IS, &intel("1\n")), None);
        let other = |now| [("sys/devices/system/cpu/cpufreq/boost", now)];
        let command = "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost";
        assert_finds(finding("turbo", AS_IS, &other("1\n")), Severity::Limits, "allowed", Some(command));
        assert_eq!(finding("turbo", AS_IS, &other("0\n")), None);
    }

    #[test]
    fn slow_idle_states_count_unless_disabled() {
        let state = |latency, disable| {
            [
                ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "1\n"),
                ("sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "0\n"),
                ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", latency),
                ("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", disable),
            ]
        };
        let command = Some("sudo cpupower idle-set -D 10");
        assert_finds(
            finding("idle-states", AS_IS, &state("133\n", "0\n")),
            Severity::Limits,
            "133 µs",
            command,
        );
        assert_eq!(finding("idle-states", AS_IS, &state("133\n", "1\n")), None);
        assert_eq!(finding("idle-states", AS_IS, &state("2\n", "0\n")), None);
    }

    #[test]
    fn smt_is_switched_only_where_it_can_be() {
        let smt = |host: &mut Host| host.smt = Fact::Known(true);
        let control = |state| [("sys/devices/system/cpu/smt/control", state)];
        let command = "echo off | sudo tee /sys/devices/system/cpu/smt/control";
        assert_finds(finding("smt", smt, &control("on\n")), Severity::Limits, "share cores", Some(command));
        assert_finds(finding("smt", smt, &control("notsupported\n")), Severity::Limits, "share cores", None);
    }

    #[test]
    fn kinds_of_cores_are_told_by_device_or_capacity() {
        let hybrid = [("sys/devices/cpu_core/cpus", "0\n"), ("sys/devices/cpu_atom/cpus", "1-8\n")];
        let what = "of 2 kinds: CPUs 1 (cpu_atom), 0 (cpu_core)";
        assert_finds(finding("core-kinds", AS_IS, &hybrid), Severity::Limits, what, None);
        let capacity = |of_second| {
            [
                ("sys/devices/system/cpu/cpu0/cpu_capacity", "1024\n"),
                ("sys/devices/system/cpu/cpu1/cpu_capacity", of_second),
            ]
        };
        let found = finding("core-kinds", AS_IS, &capacity("485\n"));
        assert_finds(found, Severity::Limits, "0 (capacity 1024), 1 (capacity 485)", None);
        assert_eq!(finding("core-kinds", AS_IS, &capacity("1024\n")), None);
    }

    #[test]
    fn an_unknown_topology_gives_its_reason() {
        let unknown = |host: &mut Host| host.topology.unknown = Some("no caches".to_owned());
        assert_finds(finding("topology", unknown, &[]), Severity::Limits, "no caches", None);
    }

    #[test]
    fn one_cpu_is_few_and_more_are_offered_where_there_are() {
        let one = |host: &mut Host| host.topology.cpus.truncate(1);
        assert_finds(
            finding("affinity", one, &[]),
            Severity::Limits,
            "CPU 0 alone",
            Some("taskset -pc 0-1 $$"),
        );
        let single = [("sys/devices/system/cpu/online", "0\n")];
        assert_finds(finding("affinity", one, &single), Severity::Limits, "CPU 0 alone", None);
        let set = [("sys/fs/cgroup/user.slice/cpuset.cpus.effective", "0\n")];
        assert_finds(finding("affinity", one, &set), Severity::Limits, "CPU 0 alone", None);
    }

    #[test]
    fn isolated_cpus_are_offered() {
        let isolated = |list| {
            [("sys/devices/system/cpu/isolated", list), ("sys/devices/system/cpu/nohz_full", "(null)\n")]
        };
        assert_finds(
            finding("isolated", AS_IS, &isolated("1\n")),
            Severity::Fine,
            "CPUs 1 are isolated",
            None,
        );
        let command = Some("taskset -pc 0-1,4-5 $$");
        assert_finds(finding("isolated", AS_IS, &isolated("4-5\n")), Severity::Fine, "CPUs 4-5", command);
        let tickless = [("sys/devices/system/cpu/isolated", "1\n")];
        assert_finds(
            finding("isolated", AS_IS, &tickless),
            Severity::Fine,
            "isolated and without tick",
            None,
        );
    }

    #[test]
    fn balancing_matters_between_nodes() {
        let nodes = |host: &mut Host| host.topology.cpus[1].node = 1;
        let on = [("proc/sys/kernel/numa_balancing", "1\n")];
        let command = Some("sudo sysctl -w kernel.numa_balancing=0");
        assert_finds(finding("numa-balancing", nodes, &on), Severity::Limits, "between nodes", command);
        assert_eq!(finding("numa-balancing", AS_IS, &on), None);
        assert_eq!(finding("numa-balancing", nodes, &[("proc/sys/kernel/numa_balancing", "0\n")]), None);
    }

    #[test]
    fn clock_sources_have_three_grades() {
        let source =
            |name: &'static str| move |host: &mut Host| host.clocksource = Fact::Known(name.to_owned());
        let directory = "/sys/devices/system/clocksource/clocksource0";
        let available = format!("{}/available_clocksource", &directory[1..]);
        let command = format!("echo tsc | sudo tee {directory}/current_clocksource");
        let found = finding("clock-source", source("hpet"), &[(&available, "tsc hpet acpi_pm\n")]);
        assert_finds(found, Severity::Spoils, "hpet", Some(&command));
        let found = finding("clock-source", source("hpet"), &[(&available, "hpet acpi_pm\n")]);
        assert_finds(found, Severity::Spoils, "hpet", None);
        assert_finds(finding("clock-source", source("kvm-clock"), &[]), Severity::Limits, "kvm-clock", None);
        let found = finding("clock-source", source("arch_sys_counter"), &[]);
        assert_finds(found, Severity::Fine, "arch_sys_counter", None);
    }

    #[test]
    fn a_counter_that_varies_cannot_time() {
        let flags = [("proc/cpuinfo", "flags\t\t: fpu tsc constant_tsc\n")];
        assert_finds(finding("tsc", AS_IS, &flags), Severity::Limits, "not nonstop_tsc", None);
        assert_eq!(finding("tsc", AS_IS, &[("proc/cpuinfo", "CPU implementer\t: 0x41\n")]), None);
    }

    #[test]
    fn the_split_is_sampled_where_the_tick_runs() {
        let ticking = [("sys/devices/system/cpu/nohz_full", "1\n")];
        assert_finds(finding("cpu-split", AS_IS, &ticking), Severity::Limits, "every 4.00 ms", None);
        assert_eq!(finding("cpu-split", |host| host.arch = "s390x".to_owned(), &ticking), None);
    }

    #[test]
    fn events_are_allowed_by_level_or_capability() {
        let level = |level| limit("kernel/perf_event_paranoid", level);
        let command = Some("sudo sysctl -w kernel.perf_event_paranoid=1");
        assert_finds(finding("perf-events", level("2"), &[]), Severity::Limits, "user mode alone", command);
        assert_finds(finding("perf-events", level("4"), &[]), Severity::Limits, "forbids", command);
        assert_finds(finding("perf-events", level("-1"), &[]), Severity::Fine, "allowed", None);
        let status = STATUS.replace("CapEff:\t0000000000000000", "CapEff:\t0000004000000000");
        let found = finding("perf-events", level("2"), &[("proc/self/status", &status)]);
        assert_finds(found, Severity::Fine, "allowed", None);
        let without = |host: &mut Host| {
            host.limits
                .insert("kernel/perf_event_paranoid".to_owned(), Fact::Unknown("no such file".to_owned()));
        };
        assert_finds(finding("perf-events", without, &[]), Severity::Limits, "no performance events", None);
    }

    #[test]
    fn counters_are_looked_for_by_device() {
        let devices = |name: &str| {
            let root = root(&[(&format!("sys/bus/event_source/devices/{name}/type"), "8\n")]);
            std::fs::remove_dir_all(root.path().join("sys/bus/event_source/devices/cpu")).unwrap();
            let found = findings(&good(), root.path());
            found.into_iter().find(|finding| finding.subject == "hardware-counters")
        };
        assert_finds(devices("software"), Severity::Limits, "no hardware counters", None);
        for name in ["cpu_atom", "armv8_cortex_a72", "apple_icestorm_pmu"] {
            assert_eq!(devices(name), None);
        }
    }

    #[test]
    fn random_layouts_are_wanted() {
        let mode = |mode| [("proc/sys/kernel/randomize_va_space", mode)];
        let command = Some("sudo sysctl -w kernel.randomize_va_space=2");
        assert_finds(finding("address-layout", AS_IS, &mode("0\n")), Severity::Spoils, "not wholly", command);
        assert_finds(finding("address-layout", AS_IS, &mode("2\n")), Severity::Fine, "is random", None);
        let personality = [("proc/self/personality", "00040000\n")];
        assert_finds(finding("address-layout", AS_IS, &personality), Severity::Spoils, "setarch -R", None);
    }

    #[test]
    fn huge_pages_matter_when_given_always() {
        let always = |host: &mut Host| host.transparent_huge_pages = Fact::Known("always".to_owned());
        let command = Some("echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
        assert_finds(finding("huge-pages", always, &[]), Severity::Limits, "always", command);
    }

    #[test]
    fn swap_is_emptied_only_where_it_fits() {
        let used = |available: &str| {
            format!("MemAvailable: {available} kB\nSwapTotal: 9000 kB\nSwapFree: 4904 kB\n")
        };
        let found = finding("swap", AS_IS, &[("proc/meminfo", &used("8000"))]);
        assert_finds(found, Severity::Limits, "4 MiB", Some("sudo swapoff -a"));
        let found = finding("swap", AS_IS, &[("proc/meminfo", &used("80"))]);
        assert_finds(found, Severity::Limits, "4 MiB", None);
    }

    #[test]
    fn filters_of_system_calls_are_told() {
        let status = STATUS.replace("Seccomp:\t0\nSeccomp_filters:\t0", "Seccomp:\t2\nSeccomp_filters:\t3");
        let found = finding("seccomp", AS_IS, &[("proc/self/status", &status)]);
        assert_finds(found, Severity::Limits, "seccomp (3)", None);
    }

    #[test]
    fn mitigations_are_a_fact_and_not_a_fault() {
        let some = |host: &mut Host| {
            let states =
                [("mds", "Not affected"), ("meltdown", "Mitigation: PTI"), ("retbleed", "Vulnerable")];
            let states = states.map(|(name, state)| (name.to_owned(), state.to_owned()));
            host.mitigations = Fact::Known(states.into());
        };
        assert_finds(finding("mitigations", some, &[]), Severity::Fine, "vulnerabilities: meltdown", None);
        assert_finds(finding("mitigations", AS_IS, &[]), Severity::Fine, "no processor vulnerability", None);
    }

    #[test]
    fn autogroup_is_told_when_on() {
        let path = "proc/sys/kernel/sched_autogroup_enabled";
        assert_finds(finding("autogroup", AS_IS, &[(path, "1\n")]), Severity::Fine, "by session", None);
        assert_eq!(finding("autogroup", AS_IS, &[(path, "0\n")]), None);
    }

    #[test]
    fn small_socket_buffers_are_raised_where_they_are_small() {
        let found = finding("socket-buffers", limit("net/core/wmem_max", "212992"), &[]);
        let command = Some("sudo sysctl -w net.core.wmem_max=4194304");
        assert_finds(found, Severity::Limits, "capped: wmem_max 208K", command);
    }

    #[test]
    fn a_short_datagram_queue_is_told() {
        let found = finding("datagram-queue", limit("net/unix/max_dgram_qlen", "10"), &[]);
        let command = Some("sudo sysctl -w net.unix.max_dgram_qlen=512");
        assert_finds(found, Severity::Fine, "max_dgram_qlen is 10", command);
    }

    #[test]
    fn few_files_are_raised_within_the_hard_limit() {
        let files = |value| finding("open-files", limit("RLIMIT_NOFILE", value), &[]);
        assert_finds(files("32/unlimited"), Severity::Limits, "32 files", Some("ulimit -n 1024"));
        assert_finds(files("32/48"), Severity::Limits, "32 files", Some("ulimit -n 48"));
        let command = Some("sudo prlimit --pid $$ --nofile=1024");
        assert_finds(files("32/32"), Severity::Limits, "32 files", command);
        assert_eq!(files("64/64"), None);
    }
}
