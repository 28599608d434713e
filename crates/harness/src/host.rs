//! The host as far as it bears on a result: read once at start, recorded with the run, never assumed.
//!
//! It only reads. What a fact means for a measurement is said in `doctor`. What the kernel shows in files is
//! read below a root, `/` but in tests; what it tells only the process that asks (`uname(2)`,
//! `getrlimit(2)`, `clock_getres(2)`, `sched_getaffinity(2)`) is asked of it whatever the root.

use crate::topology::{self, CPUS};
use model::record::{Fact, Host};
use model::topology::Topology;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_getres};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

/// The limits below `/proc/sys` that bear on some mechanism: `proc(5)`, `socket(7)`, `tcp(7)`,
/// `mq_overview(7)`, and the kernel's `Documentation/admin-guide/sysctl`.
const SYSCTLS: [&str; 19] = [
    "fs/mqueue/msg_max",
    "fs/mqueue/msgsize_max",
    "fs/pipe-max-size",
    "fs/pipe-user-pages-soft",
    "kernel/io_uring_disabled",
    "kernel/msgmax",
    "kernel/msgmnb",
    "kernel/perf_event_paranoid",
    "kernel/sem",
    "kernel/shmmax",
    "kernel/yama/ptrace_scope",
    "net/core/rmem_default",
    "net/core/rmem_max",
    "net/core/wmem_default",
    "net/core/wmem_max",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/unix/max_dgram_qlen",
    "vm/overcommit_memory",
];

const RLIMITS: [(&str, Resource); 4] = [
    ("RLIMIT_MEMLOCK", Resource::Memlock),
    ("RLIMIT_MSGQUEUE", Resource::Msgqueue),
    ("RLIMIT_NOFILE", Resource::Nofile),
    ("RLIMIT_NPROC", Resource::Nproc),
];

/// Everything that is recorded of the host whose files lie below `root`, which is `/` but in tests.
///
/// Never fails: what cannot be had is `Fact::Unknown` with the reason.
pub fn read(root: &Path) -> Host {
    let uname = rustix::system::uname();
    let topology = topology::read(root, &topology::allowed());
    Host {
        name: Fact::Known(uname.nodename().to_string_lossy().into_owned()),
        kernel: Fact::Known(format!(
            "{} {}",
            uname.release().to_string_lossy(),
            uname.version().to_string_lossy()
        )),
        arch: uname.machine().to_string_lossy().into_owned(),
        cpu: fact(cpu_name(root)),
        caches_bytes: fact(of_first(&topology, |cpu| caches(root, cpu))),
        governor: fact(of_first(&topology, |cpu| governor(root, cpu))),
        smt: fact(smt(root)),
        mitigations: fact(mitigations(root)),
        virtualisation: fact(virtualisation(root)),
        clocksource: fact(text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource")),
        transparent_huge_pages: fact(transparent_huge_pages(root)),
        tick_ns: fact(tick_ns()),
        load: fact(load(root)),
        memory_bytes: fact(meminfo_bytes(root, "MemTotal")),
        limits: limits(root),
        topology,
    }
}

/// Processor time since boot that the hypervisor took from this guest, and all processor time including it
/// and idleness: `(steal, total)` in clock ticks, summed over all CPUs.
///
/// The share stolen during a run is the difference of the first over the difference of the second. `None`
/// where `/proc/stat` does not tell; `proc_stat(5)`. A hypervisor need not tell its guests: no steal time does
/// not prove that none was taken.
pub fn steal_ticks(root: &Path) -> Option<(u64, u64)> {
    Ticks::read(root).map(|ticks| (ticks.steal, ticks.steal + ticks.busy + ticks.idle))
}

/// Processor time since boot in clock ticks, summed over all CPUs.
pub(crate) struct Ticks {
    pub(crate) steal: u64,
    pub(crate) busy: u64,
    pub(crate) idle: u64,
}

impl Ticks {
    pub(crate) fn read(root: &Path) -> Option<Self> {
        let stat = text(root, "proc/stat").ok()?;
        let cpu = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = cpu.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        // Guest time, in the columns after steal, is part of user and nice already.
        let &[user, nice, system, idle, iowait, irq, softirq, steal] = ticks.first_chunk()?;
        Some(Ticks { steal, busy: user + nice + system + irq + softirq, idle: idle + iowait })
    }
}

/// What the file at `path`, relative to `root`, says, without white space around it; or why it says nothing.
pub(crate) fn text(root: &Path, path: &str) -> Result<String, String> {
    match std::fs::read(root.join(path)) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(format!("/{path}: no such file")),
        Err(error) => Err(format!("/{path}: {error}")),
    }
}

/// The names in the directory at `path`, relative to `root`, sorted.
pub(crate) fn names(root: &Path, path: &str) -> Result<Vec<String>, String> {
    let refuse = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => format!("/{path}: no such directory"),
        _ => format!("/{path}: {error}"),
    };
    let entries = std::fs::read_dir(root.join(path)).map_err(refuse)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<Result<_, _>>().map_err(refuse)?;
    names.sort_unstable();
    Ok(names)
}

fn fact<T>(found: Result<T, String>) -> Fact<T> {
    found.map_or_else(Fact::Unknown, Fact::Known)
}

fn of_first<T>(topology: &Topology, of: impl Fn(u32) -> Result<T, String>) -> Result<T, String> {
    let first = topology.cpus.first().ok_or("it is not known which CPUs this process may use")?;
    of(first.id)
}

/// The values of `key` in `/proc/cpuinfo`, one a CPU where the kernel gives it for each.
pub(crate) fn cpuinfo<'a>(cpuinfo: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    cpuinfo.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some(value.trim())
    })
}

/// `model name` is of x86 and s390; ARM gives numbers; POWER `cpu`; RISC-V `uarch` or `isa`.
fn cpu_name(root: &Path) -> Result<String, String> {
    let info = text(root, "proc/cpuinfo")?;
    let named = |key| cpuinfo(&info, key).next().map(str::to_owned);
    named("model name")
        .or_else(|| arm_name(&info))
        .or_else(|| named("cpu"))
        .or_else(|| named("uarch"))
        .or_else(|| named("isa"))
        .ok_or_else(|| "/proc/cpuinfo: no name that ipcmark knows".to_owned())
}

/// The kinds of ARM cores by number; a big.LITTLE processor has two or three.
fn arm_name(info: &str) -> Option<String> {
    let cores = cpuinfo(info, "CPU implementer").zip(cpuinfo(info, "CPU part"));
    let kinds: BTreeSet<String> =
        cores.map(|(implementer, part)| format!("implementer {implementer} part {part}")).collect();
    (!kinds.is_empty()).then(|| format!("ARM {}", kinds.into_iter().collect::<Vec<_>>().join(", ")))
}

fn caches(root: &Path, cpu: u32) -> Result<BTreeMap<String, u64>, String> {
    let mut caches = BTreeMap::new();
    for cache in topology::data_caches(root, cpu)? {
        let path = format!("{}/size", cache.path);
        let size = text(root, &path)?;
        let bytes = cache_bytes(&size).ok_or_else(|| format!("/{path}: '{size}' is not a size"))?;
        let data = if cache.unified { "" } else { "d" };
        caches.insert(format!("L{}{data}", cache.level), bytes);
    }
    if caches.is_empty() {
        return Err(format!("/{CPUS}/cpu{cpu}/cache: no cache that holds data"));
    }
    Ok(caches)
}

/// The kernel writes cache sizes in KiB: `512K`.
fn cache_bytes(size: &str) -> Option<u64> {
    size.strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)
}

fn governor(root: &Path, cpu: u32) -> Result<String, String> {
    let cpufreq = format!("{CPUS}/cpu{cpu}/cpufreq");
    if !root.join(&cpufreq).exists() {
        return Err(format!(
            "/{cpufreq}: no such directory: this kernel does not set the frequency, as in most virtual machines"
        ));
    }
    text(root, &format!("{cpufreq}/scaling_governor"))
}

fn smt(root: &Path) -> Result<bool, String> {
    let path = format!("{CPUS}/smt/active");
    match text(root, &path)?.as_str() {
        "1" => Ok(true),
        "0" => Ok(false),
        other => Err(format!("/{path}: '{other}' is neither 0 nor 1")),
    }
}

fn mitigations(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let directory = format!("{CPUS}/vulnerabilities");
    let one = |name: String| text(root, &format!("{directory}/{name}")).map(|state| (name, state));
    names(root, &directory)?.into_iter().map(one).collect()
}

/// Words in the DMI names of virtual machines, and what makes the machine.
const VIRTUAL_PRODUCTS: [(&str, &str); 14] = [
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("Xen", "xen"),
    ("Parallels Virtual", "parallels"),
    ("Microsoft Corporation Virtual Machine", "hyper-v"),
    ("Apple Virtualization", "apple"),
    ("BHYVE", "bhyve"),
    ("OpenStack", "openstack"),
    ("Bochs", "bochs"),
    ("KVM", "kvm"),
    ("QEMU", "qemu"),
    ("Amazon EC2", "kvm"),
    ("Google Compute Engine", "kvm"),
];

/// The hypervisor; `guest` when it hides its name; `none` on bare hardware.
///
/// On x86 the processor itself says whether it is virtual: CPUID's bit `hypervisor`. Elsewhere names may
/// tell that it is, and nothing tells that it is not.
fn virtualisation(root: &Path) -> Result<String, String> {
    let info = text(root, "proc/cpuinfo")?;
    let flags = cpuinfo(&info, "flags").next();
    let guest = flags.map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let xen = text(root, "sys/hypervisor/type").ok().filter(|kind| !kind.is_empty());
    match (guest, xen) {
        // The kernel that manages Xen's guests is a guest too, though its processor may look bare.
        (_, Some(xen)) => Ok(xen),
        (Some(false), None) => Ok("none".to_owned()),
        (Some(true), None) => Ok(hypervisor_name(root).unwrap_or_else(|| "guest".to_owned())),
        (None, None) => hypervisor_name(root)
            .ok_or_else(|| "neither processor nor firmware names a hypervisor; there may be one".to_owned()),
    }
}

fn hypervisor_name(root: &Path) -> Option<String> {
    let within = |text: String, known: &[(&str, &str)]| {
        let found = known.iter().find(|(words, _)| text.contains(words));
        found.map(|(_, name)| (*name).to_owned())
    };
    let product = || within(dmi(root)?, &VIRTUAL_PRODUCTS);
    let clock = || {
        let clocks = text(root, "sys/devices/system/clocksource/clocksource0/available_clocksource").ok()?;
        within(clocks, &[("kvm-clock", "kvm"), ("hyperv_clocksource", "hyper-v"), ("xen", "xen")])
    };
    // `linux,dummy-virt` is the machine `virt` of QEMU.
    let device_tree = || {
        let hypervisor = text(root, "proc/device-tree/hypervisor/compatible").unwrap_or_default();
        let machine = text(root, "proc/device-tree/compatible").unwrap_or_default();
        let known = [("xen", "xen"), ("kvm", "kvm"), ("vmware", "vmware"), ("dummy-virt", "qemu")];
        within(format!("{hypervisor} {machine}"), &known)
    };
    product().or_else(clock).or_else(device_tree)
}

/// Vendor and product in one line; `None` where the firmware has no DMI, as on most boards, and where it
/// names a bare machine of a vendor that lets virtual ones too (`Amazon EC2 m6g.metal`).
fn dmi(root: &Path) -> Option<String> {
    let vendor = text(root, "sys/class/dmi/id/sys_vendor").ok()?;
    let product = text(root, "sys/class/dmi/id/product_name").unwrap_or_default();
    (!product.ends_with(".metal")).then(|| format!("{vendor} {product}"))
}

/// The mode in force is the word in brackets: `always [madvise] never`.
fn transparent_huge_pages(root: &Path) -> Result<String, String> {
    let path = "sys/kernel/mm/transparent_hugepage/enabled";
    let modes = text(root, path)?;
    let mode = modes.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    mode.map(|(mode, _)| mode.to_owned()).ok_or_else(|| format!("/{path}: no word in brackets: '{modes}'"))
}

/// The coarse clocks step once a tick: `clock_getres(2)`.
fn tick_ns() -> Result<u64, String> {
    let tick = clock_getres(ClockId::RealtimeCoarse);
    let (seconds, ns) = (u64::try_from(tick.tv_sec).ok(), u64::try_from(tick.tv_nsec).ok());
    let tick = seconds.zip(ns).map(|(seconds, ns)| seconds * 1_000_000_000 + ns);
    tick.filter(|ns| *ns > 0).ok_or_else(|| "clock_getres(CLOCK_REALTIME_COARSE): no resolution".to_owned())
}

fn load(root: &Path) -> Result<f64, String> {
    let averages = text(root, "proc/loadavg")?;
    let minute = averages.split_whitespace().next().and_then(|load| load.parse().ok());
    minute.ok_or_else(|| format!("/proc/loadavg: '{averages}' does not begin with a load"))
}

/// An entry of `/proc/meminfo`, which is in KiB whatever it says: `proc_meminfo(5)`.
pub(crate) fn meminfo_bytes(root: &Path, key: &str) -> Result<u64, String> {
    let info = text(root, "proc/meminfo")?;
    let value = info.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let kib = value.and_then(|value| value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.and_then(|kib| kib.checked_mul(1024)).ok_or_else(|| format!("/proc/meminfo: no {key}"))
}

fn limits(root: &Path) -> BTreeMap<String, Fact<String>> {
    let sysctls = SYSCTLS.iter().map(|name| {
        // The files with several numbers have tabs between them.
        let value = text(root, &format!("proc/sys/{name}"));
        let value = value.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "));
        ((*name).to_owned(), fact(value))
    });
    let rlimits = RLIMITS.iter().map(|(name, resource)| {
        let limit = getrlimit(*resource);
        let word = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
        ((*name).to_owned(), Fact::Known(format!("{}/{}", word(limit.current), word(limit.maximum))))
    });
    sysctls.chain(rlimits).collect()
}
