//! What the rules are given: the recorded facts of the host, speed readings, and what else the kernel shows in files.

use crate::host::files::text;
use crate::host::speed::CpuReadings;
use crate::host::topology::{CPUS, cpulist};
use model::record::Host;
use std::path::Path;

/// The host as the rules see it: the facts that are recorded, the files below the root, and what was read of each CPU's speed.
pub(super) struct Here<'a> {
    pub(super) host: &'a Host,
    pub(super) root: &'a Path,
    pub(super) readings: &'a [CpuReadings],
}

impl Here<'_> {
    pub(super) fn text(&self, path: &str) -> Option<String> {
        text(self.root, path).ok()
    }

    pub(super) fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    pub(super) fn limit<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.host.limits.get(name)?.known()?.parse().ok()
    }

    /// The soft and the hard limit; what is unlimited is the largest number.
    pub(super) fn rlimit(&self, name: &str) -> Option<(u64, u64)> {
        let (soft, hard) = self.host.limits.get(name)?.known()?.split_once('/')?;
        let number = |text: &str| if text == "unlimited" { Some(u64::MAX) } else { text.parse().ok() };
        Some((number(soft)?, number(hard)?))
    }

    /// A field of `/proc/self/status`: `proc_pid_status(5)`.
    pub(super) fn status(&self, key: &str) -> Option<String> {
        let status = self.text("proc/self/status")?;
        let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some(value.trim().to_owned())
    }

    /// Where this process may do as root does there is often no sudo, as in containers.
    pub(super) fn sudo(&self) -> &'static str {
        let effective = self.status("Uid").and_then(|ids| Some(ids.split_whitespace().nth(1)? == "0"));
        if effective == Some(true) { "" } else { "sudo " }
    }

    pub(super) fn as_root(&self, command: &str) -> String {
        format!("{}{command}", self.sudo())
    }

    pub(super) fn write(&self, value: &str, path: &str) -> String {
        format!("echo {value} | {}tee /{path}", self.sudo())
    }

    pub(super) fn allowed(&self) -> Vec<u32> {
        self.host.topology.cpus.iter().map(|cpu| cpu.id).collect()
    }

    pub(super) fn online(&self) -> Option<Vec<u32>> {
        cpulist(self.root, &format!("{CPUS}/online")).ok()
    }

    pub(super) fn is_guest(&self) -> bool {
        self.host.virtualisation.known().is_some_and(|name| name != "none")
    }

    /// The groups of this process under `controller`, its own first, then what contains it: `cgroups(7)`.
    pub(super) fn control_groups(&self, controller: &str) -> Vec<String> {
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

/// A processor runs the 32-bit programs of its own family by itself.
pub(super) fn family(arch: &str) -> &str {
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

/// The file is there with `CONFIG_NO_HZ_FULL`, and says `(null)` on some kernels when no CPU is meant.
pub(super) fn without_tick(here: &Here) -> Vec<u32> {
    cpulist(here.root, &format!("{CPUS}/nohz_full")).unwrap_or_default()
}
