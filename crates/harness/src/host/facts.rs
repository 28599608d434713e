//! The facts of the host that bear on a result: read once at start, recorded with the run, never assumed.
//!
//! It only reads. What a fact means for a measurement is said in `doctor`. What the kernel shows in files is read below a
//! root, `/` but in tests. What the kernel tells only the process that asks (`uname(2)`, `getrlimit(2)`, `clock_getres(2)`,
//! `sched_getaffinity(2)`, `pipe(2)`, `netlink(7)`, `bpf(2)`) is asked of it whatever the root.

use super::files::{Ticks, cpuinfo, meminfo_bytes, names, text};
use super::topology::{self, CPUS};
use super::{limits as host_limits, queueing};
use model::record::{Fact, Host};
use model::topology::Topology;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_getres};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

/// The limits and defaults below `/proc/sys` that bear on some mechanism: `proc(5)`, `socket(7)`, `tcp(7)`,
/// `mq_overview(7)`, and the kernel's `Documentation/admin-guide/sysctl`.
const SYSCTLS: [&str; 23] = [
    "fs/mqueue/msg_max",
    "fs/mqueue/msgsize_max",
    "fs/pipe-max-size",
    "fs/pipe-user-pages-hard",
    "fs/pipe-user-pages-soft",
    "kernel/io_uring_disabled",
    "kernel/msgmax",
    "kernel/msgmnb",
    "kernel/perf_event_paranoid",
    "kernel/sem",
    "kernel/shmmax",
    "kernel/yama/ptrace_scope",
    "net/core/default_qdisc",
    "net/core/rmem_default",
    "net/core/rmem_max",
    "net/core/somaxconn",
    "net/core/wmem_default",
    "net/core/wmem_max",
    "net/ipv4/tcp_congestion_control",
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
        cache_line_bytes: fact(of_first(&topology, |cpu| cache_line_bytes(root, cpu))),
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
        pipe_bytes: fact(pipe_bytes()),
        control_group: fact(control_group(root)),
        queueing: fact(queueing::disciplines(root)),
        security_modules: fact(text(root, "sys/kernel/security/lsm")),
        bpf_programs: fact(bpf_programs(root)),
        topology,
    }
}

/// Processor time since boot that the hypervisor took from this guest, and all processor time with it and with idle time: `(steal, total)` in clock ticks, summed over all CPUs.
///
/// The share stolen during a run is the difference of the first over the difference of the second. `None`
/// where `/proc/stat` does not say; `proc_stat(5)`. A hypervisor need not tell its guests: no steal time does
/// not prove that none was taken.
pub fn steal_ticks(root: &Path) -> Option<(u64, u64)> {
    Ticks::read(root).map(|ticks| (ticks.steal, ticks.steal + ticks.busy + ticks.idle))
}

fn fact<T>(found: Result<T, String>) -> Fact<T> {
    found.map_or_else(Fact::Unknown, Fact::Known)
}

fn of_first<T>(topology: &Topology, of: impl Fn(u32) -> Result<T, String>) -> Result<T, String> {
    let first = topology.cpus.first().ok_or("it is not known which CPUs this process may use")?;
    of(first.id)
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
    for cache in topology::caches(root, cpu)? {
        let path = format!("{}/size", cache.path);
        let size = text(root, &path)?;
        let bytes = cache_bytes(&size).ok_or_else(|| format!("/{path}: '{size}' is not a size"))?;
        caches.insert(format!("L{}{}", cache.level, cache.holds.letter()), bytes);
    }
    if caches.is_empty() {
        return Err(format!("/{CPUS}/cpu{cpu}/cache: no cache that holds data"));
    }
    Ok(caches)
}

/// The line of the cache that is nearest to the core.
fn cache_line_bytes(root: &Path, cpu: u32) -> Result<u64, String> {
    let nearest = topology::data_caches(root, cpu)?.into_iter().min_by_key(|cache| cache.level);
    let nearest = nearest.ok_or_else(|| format!("/{CPUS}/cpu{cpu}/cache: no cache that holds data"))?;
    let path = format!("{}/coherency_line_size", nearest.path);
    let bytes = text(root, &path)?;
    bytes.parse().map_err(|_| format!("/{path}: '{bytes}' is not a number"))
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

/// Words in the DMI names that only virtual machines have, and what makes the machine.
const VIRTUAL_PRODUCTS: [(&str, &str); 12] = [
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("HVM domU", "xen"),
    ("Parallels Virtual", "parallels"),
    ("Microsoft Corporation Virtual Machine", "hyper-v"),
    ("Apple Virtualization", "apple"),
    ("BHYVE", "bhyve"),
    ("OpenStack Nova", "openstack"),
    ("Bochs", "bochs"),
    ("KVM", "kvm"),
    ("QEMU", "qemu"),
];

/// Words that bare machines of a cloud have too.
const CLOUD_PRODUCTS: [(&str, &str); 2] = [("Amazon EC2", "kvm"), ("Google Compute Engine", "kvm")];

/// The hypervisor; `guest` when it hides its name; `none` on bare hardware.
///
/// On x86 the processor itself says whether it is virtual, by CPUID's bit `hypervisor`, which few hypervisors
/// hide. Elsewhere names may show that it is, and nothing shows that it is not.
fn virtualisation(root: &Path) -> Result<String, String> {
    let info = text(root, "proc/cpuinfo")?;
    let flags = cpuinfo(&info, "flags").next();
    let guest = flags.map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    // The kernel that manages Xen's guests is a guest too, though its processor may look bare.
    let xen = text(root, "sys/hypervisor/type").ok().filter(|kind| !kind.is_empty());
    let certain = xen.or_else(|| among(&VIRTUAL_PRODUCTS, &dmi(root)?));
    match (certain, guest) {
        (Some(name), _) => Ok(name),
        (None, Some(false)) => Ok("none".to_owned()),
        (None, Some(true)) => Ok(hypervisor_name(root).unwrap_or_else(|| "guest".to_owned())),
        (None, None) => hypervisor_name(root)
            .ok_or_else(|| "neither processor nor firmware names a hypervisor; there may be one".to_owned()),
    }
}

/// The name of the hypervisor of what is a guest, or cannot say that it is not.
fn hypervisor_name(root: &Path) -> Option<String> {
    let clock = || {
        let clocks = text(root, "sys/devices/system/clocksource/clocksource0/available_clocksource").ok()?;
        among(&[("kvm-clock", "kvm"), ("hyperv_clocksource", "hyper-v"), ("xen", "xen")], &clocks)
    };
    // `linux,dummy-virt` is the machine `virt` of QEMU.
    let device_tree = || {
        let hypervisor = text(root, "proc/device-tree/hypervisor/compatible").unwrap_or_default();
        let machine = text(root, "proc/device-tree/compatible").unwrap_or_default();
        let known = [("xen", "xen"), ("kvm", "kvm"), ("vmware", "vmware"), ("dummy-virt", "qemu")];
        among(&known, &format!("{hypervisor} {machine}"))
    };
    dmi(root).and_then(|dmi| among(&CLOUD_PRODUCTS, &dmi)).or_else(clock).or_else(device_tree)
}

fn among(known: &[(&str, &str)], text: &str) -> Option<String> {
    known.iter().find(|(words, _)| text.contains(words)).map(|(_, name)| (*name).to_owned())
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
    let ask = || clock_getres(ClockId::RealtimeCoarse);
    if !sys::seccomp::outlives(|| _ = ask()) {
        return Err(sys::seccomp::cause());
    }
    let tick = ask();
    let (seconds, ns) = (u64::try_from(tick.tv_sec).ok(), u64::try_from(tick.tv_nsec).ok());
    let tick = seconds.zip(ns).map(|(seconds, ns)| seconds * 1_000_000_000 + ns);
    tick.filter(|ns| *ns > 0).ok_or_else(|| "clock_getres(CLOCK_REALTIME_COARSE): no resolution".to_owned())
}

fn load(root: &Path) -> Result<f64, String> {
    let averages = text(root, "proc/loadavg")?;
    let minute = averages.split_whitespace().next().and_then(|load| load.parse().ok());
    minute.ok_or_else(|| format!("/proc/loadavg: '{averages}' does not begin with a load"))
}

/// What a new pipe holds is less than usual for a user whose pipes have more than pipe-user-pages-soft together (pipe(7)).
fn pipe_bytes() -> Result<u64, String> {
    let (pipe, _other_end) = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| format!("pipe2: {errno}"))?;
    let bytes = fcntl_getpipe_size(&pipe).map_err(|errno| format!("fcntl(F_GETPIPE_SZ): {errno}"))?;
    Ok(bytes as u64)
}

fn control_group(root: &Path) -> Result<BTreeMap<String, String>, String> {
    // Without this file it is not known which groups there are.
    text(root, "proc/self/cgroup")?;
    let word = |limit: Option<String>| limit.unwrap_or_else(|| "unlimited".to_owned());
    let number = |limit: Option<u64>| word(limit.map(|limit| limit.to_string()));
    Ok(BTreeMap::from([
        ("cpus".to_owned(), word(host_limits::cpus(root).map(|cpus| format!("{cpus:.2}")))),
        ("memory_bytes".to_owned(), number(host_limits::memory_bytes(root))),
        ("processes".to_owned(), number(host_limits::processes(root))),
    ]))
}

fn bpf_programs(root: &Path) -> Result<BTreeMap<String, u64>, String> {
    if !sys::seccomp::outlives(|| _ = sys::bpf_count::loaded_programs()) {
        return Err(sys::seccomp::cause());
    }
    let loaded =
        sys::bpf_count::loaded_programs().map_err(|errno| format!("bpf(BPF_PROG_GET_NEXT_ID): {errno}"))?;
    let of_group = own_group(root).and_then(|group| sys::bpf_count::programs_of_group(&group).ok());
    let both = [("loaded", Some(loaded)), ("control_group", of_group)];
    Ok(both.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?))).collect())
}

/// The directory of the control group of this process, in the second version (cgroups(7)).
fn own_group(root: &Path) -> Option<File> {
    let groups = text(root, "proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    File::open(root.join("sys/fs/cgroup").join(path)).ok()
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

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A root with these files, `(path, content)`.
    fn root(files: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let file = root.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        root
    }

    #[test]
    fn an_empty_root_gives_reasons_and_no_numbers() {
        let host = read(root(&[]).path());
        let Fact::Unknown(why) = &host.load else { panic!("{:?}", host.load) };
        assert_eq!(why, "/proc/loadavg: no such file");
        assert!(host.memory_bytes.known().is_none() && host.virtualisation.known().is_none());
        assert!(host.smt.known().is_none() && host.mitigations.known().is_none());
        let Fact::Unknown(why) = &host.governor else { panic!("{:?}", host.governor) };
        assert!(why.contains("this kernel does not set the frequency"), "{why}");
        assert!(host.limits["fs/pipe-max-size"].known().is_none());
        assert!(host.limits["RLIMIT_NOFILE"].known().is_some_and(|limit| limit.contains('/')));
        assert!(steal_ticks(root(&[]).path()).is_none());
    }

    #[test]
    fn files_become_facts() {
        let root = root(&[
            ("proc/loadavg", "0.24 0.33 0.16 2/96 6424\n"),
            ("proc/meminfo", "MemTotal:       24684096 kB\nMemFree:        24260880 kB\n"),
            ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t33554432\n"),
            ("sys/devices/system/cpu/smt/active", "1\n"),
            ("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ]);
        let host = read(root.path());
        assert_eq!(host.load, Fact::Known(0.24));
        assert_eq!(host.memory_bytes, Fact::Known(24_684_096 * 1024));
        assert_eq!(host.limits["net/ipv4/tcp_rmem"], Fact::Known("4096 131072 33554432".to_owned()));
        assert_eq!(host.smt, Fact::Known(true));
        assert_eq!(host.mitigations.known().unwrap()["meltdown"], "Mitigation: PTI");
        assert_eq!(host.transparent_huge_pages, Fact::Known("madvise".to_owned()));
        assert!(
            host.tick_ns.known().is_some_and(|ns| (100_000..=100_000_000).contains(ns)),
            "{:?}",
            host.tick_ns
        );
    }

    #[test]
    fn garbled_files_are_unknown_and_quoted() {
        let root = root(&[
            ("proc/loadavg", "plenty"),
            ("proc/meminfo", "MemTotal: much kB"),
            ("sys/devices/system/cpu/smt/active", "maybe"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always"),
        ]);
        let host = read(root.path());
        assert_eq!(host.load, Fact::Unknown("/proc/loadavg: 'plenty' does not begin with a load".to_owned()));
        assert_eq!(host.memory_bytes, Fact::Unknown("/proc/meminfo: no MemTotal".to_owned()));
        assert!(host.smt.known().is_none() && host.transparent_huge_pages.known().is_none());
    }

    #[test]
    fn caches_go_by_level_and_by_what_they_hold() {
        let index = |number: u32, level: &'static str, holds: &'static str, size: &'static str| {
            let path = |file| format!("sys/devices/system/cpu/cpu7/cache/index{number}/{file}");
            [
                (path("level"), level),
                (path("type"), holds),
                (path("size"), size),
                (path("coherency_line_size"), "64\n"),
            ]
        };
        let files = [
            index(0, "1", "Data\n", "48K\n"),
            index(1, "1", "Instruction\n", "32K\n"),
            index(2, "2", "Unified\n", "1280K\n"),
            index(3, "3", "Unified\n", "12288K\n"),
        ];
        let files: Vec<(&str, &str)> =
            files.iter().flatten().map(|(path, text)| (path.as_str(), *text)).collect();
        let found = caches(root(&files).path(), 7).unwrap();
        let expected = [("L1d", 48 << 10), ("L1i", 32 << 10), ("L2", 1280 << 10), ("L3", 12_288 << 10)];
        assert_eq!(found, expected.map(|(name, bytes)| (name.to_owned(), bytes)).into());
        assert!(caches(root(&files).path(), 8).is_err());
        assert_eq!(cache_line_bytes(root(&files).path(), 7), Ok(64));
        assert!(cache_line_bytes(root(&[]).path(), 7).is_err());
    }

    #[test]
    fn processors_are_named_as_each_architecture_does() {
        let named = |info: &str| cpu_name(root(&[("proc/cpuinfo", info)]).path());
        assert_eq!(named("processor\t: 0\nmodel name\t: AMD EPYC\n"), Ok("AMD EPYC".to_owned()));
        let big_little = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd03\n\n\
                          processor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n";
        let expected = "ARM implementer 0x41 part 0xd03, implementer 0x41 part 0xd08";
        assert_eq!(named(big_little), Ok(expected.to_owned()));
        assert_eq!(named("processor: 0\nuarch: sifive,u74-mc\n"), Ok("sifive,u74-mc".to_owned()));
        assert!(named("nothing here").is_err());
    }

    #[test]
    fn guests_are_known_by_flag_and_by_name() {
        let guest = ("proc/cpuinfo", "flags\t\t: fpu hypervisor lahf_lm\n");
        let bare = ("proc/cpuinfo", "flags\t\t: fpu lahf_lm\n");
        let arm = ("proc/cpuinfo", "CPU implementer\t: 0x41\n");
        let vendor = |name| ("sys/class/dmi/id/sys_vendor", name);
        let product = |name| ("sys/class/dmi/id/product_name", name);
        let clocks =
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc kvm-clock acpi_pm");
        let named = |files: &[(&str, &str)]| virtualisation(root(files).path());
        assert_eq!(named(&[guest]), Ok("guest".to_owned()));
        assert_eq!(named(&[guest, clocks]), Ok("kvm".to_owned()));
        assert_eq!(named(&[guest, vendor("VMware, Inc."), product("VMware7,1")]), Ok("vmware".to_owned()));
        assert_eq!(named(&[guest, ("sys/hypervisor/type", "xen\n")]), Ok("xen".to_owned()));
        assert_eq!(
            named(&[bare, vendor("innotek GmbH"), product("VirtualBox")]),
            Ok("virtualbox".to_owned())
        );
        assert_eq!(
            named(&[bare, vendor("Microsoft Corporation"), product("Surface Pro")]),
            Ok("none".to_owned())
        );
        assert_eq!(named(&[bare, vendor("Google"), product("Google Compute Engine")]), Ok("none".to_owned()));
        assert_eq!(named(&[arm, vendor("Amazon EC2"), product("m6g.large")]), Ok("kvm".to_owned()));
        assert_eq!(
            named(&[arm, ("proc/device-tree/compatible", "linux,dummy-virt\0")]),
            Ok("qemu".to_owned())
        );
        assert!(named(&[arm, vendor("Amazon EC2"), product("m6g.metal")]).is_err());
        assert!(named(&[arm]).is_err() && named(&[]).is_err());
    }

    #[test]
    fn stolen_time_is_a_part_of_all_time() {
        let stat = "cpu  14914 0 4405 246577 1480 0 64 615 7 0\ncpu0 6674 0 1749 125201 104 0 9 279 0 0\n";
        let total = 14914 + 4405 + 246_577 + 1480 + 64 + 615;
        assert_eq!(steal_ticks(root(&[("proc/stat", stat)]).path()), Some((615, total)));
        assert_eq!(steal_ticks(root(&[("proc/stat", "cpu  1 2 3 4\n")]).path()), None);
    }
}
