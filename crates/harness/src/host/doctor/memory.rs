//! Rules about memory: what moves pages, or lays them out, between trials.

use super::finding::{Finding, Severity};
use super::here::Here;
use crate::host::files::meminfo_bytes;
use crate::host::limits;
use model::units::Size;
use std::collections::BTreeSet;

/// `Documentation/admin-guide/sysctl/kernel.rst`, "numa_balancing".
pub(super) fn numa_balancing(here: &Here<'_>) -> Option<Finding> {
    let nodes: BTreeSet<u32> = here.host.topology.cpus.iter().map(|cpu| cpu.node).collect();
    here.number::<u32>("proc/sys/kernel/numa_balancing").filter(|mode| *mode != 0 && nodes.len() > 1)?;
    let why = "the kernel unmaps pages to see who uses them, and moves them: faults come at any time";
    let finding =
        Finding::new(Severity::Limits, "numa-balancing", "the kernel balances memory between nodes", why);
    Some(finding.mended_by(here.as_root("sysctl -w kernel.numa_balancing=0")))
}

/// `Documentation/admin-guide/sysctl/kernel.rst`, "randomize_va_space"; `personality(2)`, `ADDR_NO_RANDOMIZE`.
pub(super) fn address_layout(here: &Here<'_>) -> Option<Finding> {
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
    let why = "this is wanted: trials differ as two runs do, so that intervals are honest. Leave it on";
    Some(Finding::new(Severity::Fine, "address-layout", "address layout is random", why))
}

/// `Documentation/admin-guide/mm/transhuge.rst`.
pub(super) fn huge_pages(here: &Here<'_>) -> Option<Finding> {
    here.host.transparent_huge_pages.known().filter(|mode| *mode == "always")?;
    let why = "large buffers are in huge pages in some trials and not in others, as memory happens to be \
               free: the trials fall into two modes";
    let finding =
        Finding::new(Severity::Limits, "huge-pages", "transparent huge pages are given always", why);
    Some(finding.mended_by(here.write("madvise", "sys/kernel/mm/transparent_hugepage/enabled")))
}

/// `Documentation/admin-guide/mm/hugetlbpage.rst`.
pub(super) fn reserved_huge_pages(here: &Here<'_>) -> Option<Finding> {
    let number = |name: &str| here.number::<u64>(&format!("proc/sys/vm/{name}"));
    let reserved = number("nr_hugepages")?;
    if reserved + number("nr_overcommit_hugepages").unwrap_or(0) > 0 {
        return None;
    }
    let why = "shared memory of huge pages (memory=huge) cannot be had; a ring needs one page, and more for large messages";
    let finding = Finding::new(Severity::Limits, "reserved-huge-pages", "no huge pages are reserved", why);
    Some(finding.mended_by(here.as_root("sysctl -w vm.nr_hugepages=16")))
}

/// `memory.max` of `cgroups(7)`.
pub(super) fn group_memory(here: &Here<'_>) -> Option<Finding> {
    const ENOUGH: u64 = 512 << 20;
    let most = limits::memory_bytes(here.root).filter(|bytes| *bytes < ENOUGH)?;
    let what = format!("a control group may have {} of memory", Size(most >> 20 << 20));
    let why = "fewer trials are alive at once, so that cases are measured one after the other; what fills it waits for \
               memory, or is killed";
    Some(Finding::new(Severity::Limits, "group-memory", what, why))
}

pub(super) fn swap(here: &Here<'_>) -> Option<Finding> {
    let bytes = |key| meminfo_bytes(here.root, key).ok();
    let used = bytes("SwapTotal")?.saturating_sub(bytes("SwapFree")?);
    if used == 0 {
        return None;
    }
    let what = format!("{} MiB are swapped out", used.div_ceil(1 << 20));
    let why = "memory was short: an endpoint that touches a swapped page waits for I/O; the record counts these as \
               major faults";
    // Without room to bring everything in, swapoff(8) would only make memory shorter.
    let fits = bytes("MemAvailable").is_some_and(|available| available > used);
    let command = fits.then(|| here.as_root("swapoff -a"));
    Some(Finding::new(Severity::Limits, "swap", what, why).mended_by(command))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{AS_IS, assert_finds, finding};
    use super::*;
    use model::record::Fact;
    use model::record::Host;

    #[test]
    fn balancing_matters_between_nodes() {
        let nodes = |host: &mut Host| host.topology.cpus[1].node = 1;
        let on = [("proc/sys/kernel/numa_balancing", "1\n")];
        let command = Some("sudo sysctl -w kernel.numa_balancing=0");
        assert_finds(finding(numa_balancing, nodes, &on), Severity::Limits, "between nodes", command);
        assert_eq!(finding(numa_balancing, AS_IS, &on), None);
        assert_eq!(finding(numa_balancing, nodes, &[("proc/sys/kernel/numa_balancing", "0\n")]), None);
    }

    #[test]
    fn random_layouts_are_wanted() {
        let mode = |mode| [("proc/sys/kernel/randomize_va_space", mode)];
        let command = Some("sudo sysctl -w kernel.randomize_va_space=2");
        assert_finds(finding(address_layout, AS_IS, &mode("0\n")), Severity::Spoils, "not wholly", command);
        assert_finds(finding(address_layout, AS_IS, &mode("2\n")), Severity::Fine, "is random", None);
        let personality = [("proc/self/personality", "00040000\n")];
        assert_finds(finding(address_layout, AS_IS, &personality), Severity::Spoils, "setarch -R", None);
    }

    #[test]
    fn huge_pages_matter_when_given_always() {
        let always = |host: &mut Host| host.transparent_huge_pages = Fact::Known("always".to_owned());
        let command = Some("echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
        assert_finds(finding(huge_pages, always, &[]), Severity::Limits, "always", command);
    }

    #[test]
    fn huge_pages_are_wanted_where_none_is_reserved() {
        let none = [("proc/sys/vm/nr_hugepages", "0\n")];
        let command = Some("sudo sysctl -w vm.nr_hugepages=16");
        assert_finds(finding(reserved_huge_pages, AS_IS, &none), Severity::Limits, "no huge pages", command);
        assert_eq!(finding(reserved_huge_pages, AS_IS, &[("proc/sys/vm/nr_hugepages", "3\n")]), None);
        let on_demand = [none[0], ("proc/sys/vm/nr_overcommit_hugepages", "4\n")];
        assert_eq!(finding(reserved_huge_pages, AS_IS, &on_demand), None);
        assert_eq!(finding(reserved_huge_pages, AS_IS, &[]), None);
    }

    #[test]
    fn little_memory_of_a_control_group_is_found() {
        let most = |most| [("sys/fs/cgroup/user.slice/memory.max", most)];
        let found = finding(group_memory, AS_IS, &most("67108864\n"));
        assert_finds(found, Severity::Limits, "64M of memory", None);
        assert_eq!(finding(group_memory, AS_IS, &most("max\n")), None);
    }

    #[test]
    fn swap_is_emptied_only_where_it_fits() {
        let used = |available: &str| {
            format!("MemAvailable: {available} kB\nSwapTotal: 9000 kB\nSwapFree: 4904 kB\n")
        };
        let found = finding(swap, AS_IS, &[("proc/meminfo", &used("8000"))]);
        assert_finds(found, Severity::Limits, "4 MiB", Some("sudo swapoff -a"));
        let found = finding(swap, AS_IS, &[("proc/meminfo", &used("80"))]);
        assert_finds(found, Severity::Limits, "4 MiB", None);
    }
}
