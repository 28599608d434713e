//! The topology of this host's CPUs as sysfs shows it: which share a core, a cache, a node.
//!
//! It only reads. How far apart two CPUs are and which pair a placement takes is decided in `model`.
//! The files are described in the kernel's `Documentation/ABI/stable/sysfs-devices-system-cpu`,
//! `Documentation/admin-guide/cputopology.rst` and `Documentation/ABI/stable/sysfs-devices-node`.

use super::files::{names, text};
use model::cpu_list::parse_cpulist;
use model::topology::{Cpu, Topology};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(crate) const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";

/// The CPUs that this process may run on, ascending: `sched_getaffinity(2)`.
///
/// Empty where the kernel does not say.
pub fn allowed() -> Vec<u32> {
    match sched_getaffinity(None) {
        Ok(set) => {
            let ids = (0..CpuSet::MAX_CPU).filter(|&id| set.is_set(id));
            ids.filter_map(|id| u32::try_from(id).ok()).collect()
        }
        // The set has 1024 CPUs, and the call fails with EINVAL on a kernel that has more. /proc has no such limit.
        Err(_) => allowed_in_proc(Path::new("/")),
    }
}

fn allowed_in_proc(root: &Path) -> Vec<u32> {
    let status = text(root, "proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.and_then(|list| parse_cpulist(list).ok()).unwrap_or_default()
}

/// How the `allowed` CPUs hang together, by the sysfs below `root`, which is `/` but in tests.
///
/// CPUs that are offline are left out. A kernel without NUMA has no node directory: all CPUs are then of
/// node 0, as they are to that kernel. Where the kernel knows no package (-1), it is 0.
pub fn read(root: &Path, allowed: &[u32]) -> Topology {
    let ids = online(root, allowed);
    if ids.is_empty() {
        let why = "the kernel does not say which CPUs this process may use";
        return Topology { cpus: Vec::new(), unknown: Some(why.to_owned()) };
    }
    // One CPU of unknown place could be the sibling of any other, so that no placement would hold what it says.
    structure(root, &ids).unwrap_or_else(|why| Topology {
        cpus: ids.iter().map(|&id| Cpu { id, package: 0, core: id, llc: None, node: 0 }).collect(),
        unknown: Some(why),
    })
}

/// Those of the `allowed` CPUs that run, ascending.
fn online(root: &Path, allowed: &[u32]) -> Vec<u32> {
    let allowed: BTreeSet<u32> = allowed.iter().copied().collect();
    match cpulist(root, &format!("{CPUS}/online")) {
        Ok(online) => allowed.into_iter().filter(|id| online.contains(id)).collect(),
        Err(_) => allowed.into_iter().collect(),
    }
}

fn structure(root: &Path, ids: &[u32]) -> Result<Topology, String> {
    if !root.join(CPUS).is_dir() {
        return Err(format!("/{CPUS}: no such directory; is sysfs mounted?"));
    }
    let nodes = nodes(root)?;
    let (mut cpus, mut unknown) = (Vec::with_capacity(ids.len()), None);
    for &id in ids {
        // Many virtual machines show cores and nodes but no caches: what they show is still good.
        let llc = last_level_cache(root, id).inspect_err(|why| {
            unknown.get_or_insert_with(|| why.clone());
        });
        let node = match &nodes {
            Some(nodes) => nodes
                .get(&id)
                .copied()
                .or_else(|| own_node(root, id))
                .ok_or_else(|| format!("/{NODES}: no node has CPU {id}"))?,
            None => 0,
        };
        cpus.push(Cpu { id, package: package(root, id)?, core: core(root, id)?, llc: llc.ok(), node });
    }
    Ok(Topology { cpus, unknown })
}

/// The lowest CPU of the core. `core_cpus_list` is what kernels since 5.3 call `thread_siblings_list`.
fn core(root: &Path, id: u32) -> Result<u32, String> {
    lowest_sharing(root, &format!("{CPUS}/cpu{id}/topology/core_cpus_list"), id)
        .or_else(|_| lowest_sharing(root, &format!("{CPUS}/cpu{id}/topology/thread_siblings_list"), id))
}

fn package(root: &Path, id: u32) -> Result<u32, String> {
    let path = format!("{CPUS}/cpu{id}/topology/physical_package_id");
    let number: i64 = text(root, &path)?.parse().map_err(|_| format!("/{path}: not a number"))?;
    Ok(u32::try_from(number).unwrap_or(0))
}

/// The lowest CPU that shares the cache of the highest level that holds data.
fn last_level_cache(root: &Path, id: u32) -> Result<u32, String> {
    let last = data_caches(root, id)?.into_iter().max_by_key(|cache| cache.level);
    let last = last.ok_or_else(|| format!("/{CPUS}/cpu{id}/cache: no cache that holds data"))?;
    lowest_sharing(root, &format!("{}/shared_cpu_list", last.path), id)
}

/// A cache of a CPU.
pub(crate) struct CpuCache {
    /// The level: 1 is nearest to the core.
    pub(crate) level: u32,
    /// What it holds.
    pub(crate) holds: CacheContent,
    /// Its directory, relative to the root.
    pub(crate) path: String,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheContent {
    Data,
    Instructions,
    Both,
}

impl CacheContent {
    /// What stands behind the level in the name of a cache: `L1d`.
    pub(crate) fn letter(self) -> &'static str {
        match self {
            CacheContent::Data => "d",
            CacheContent::Instructions => "i",
            CacheContent::Both => "",
        }
    }
}

/// The caches that hold data, alone or with instructions.
pub(crate) fn data_caches(root: &Path, id: u32) -> Result<Vec<CpuCache>, String> {
    let mut caches = caches(root, id)?;
    caches.retain(|cache| cache.holds != CacheContent::Instructions);
    Ok(caches)
}

/// All caches of CPU `id`.
pub(crate) fn caches(root: &Path, id: u32) -> Result<Vec<CpuCache>, String> {
    let directory = format!("{CPUS}/cpu{id}/cache");
    let mut caches = Vec::new();
    for index in names(root, &directory)?.iter().filter(|name| name.starts_with("index")) {
        let path = format!("{directory}/{index}");
        let level = text(root, &format!("{path}/level"))?;
        let level = level.parse().map_err(|_| format!("/{path}/level: not a number"))?;
        let holds = match text(root, &format!("{path}/type"))?.as_str() {
            "Instruction" => CacheContent::Instructions,
            "Unified" => CacheContent::Both,
            _ => CacheContent::Data,
        };
        caches.push(CpuCache { level, holds, path });
    }
    Ok(caches)
}

/// The node of every CPU, or `None` on a kernel without NUMA.
fn nodes(root: &Path) -> Result<Option<BTreeMap<u32, u32>>, String> {
    if !root.join(NODES).exists() {
        return Ok(None);
    }
    let mut nodes = BTreeMap::new();
    for name in names(root, NODES)? {
        let Some(node) = node_number(&name) else { continue };
        let cpus = cpulist(root, &format!("{NODES}/{name}/cpulist"))?;
        nodes.extend(cpus.into_iter().map(|cpu| (cpu, node)));
    }
    Ok(Some(nodes))
}

/// The node that the CPU's directory links to. A node whose memory is offline has no directory of its own.
fn own_node(root: &Path, id: u32) -> Option<u32> {
    names(root, &format!("{CPUS}/cpu{id}")).ok()?.iter().find_map(|name| node_number(name))
}

fn node_number(name: &str) -> Option<u32> {
    name.strip_prefix("node")?.parse().ok()
}

/// The lowest CPU of the list at `path`, which is one of those that share something with CPU `id`.
fn lowest_sharing(root: &Path, path: &str, id: u32) -> Result<u32, String> {
    let sharing = cpulist(root, path)?;
    match sharing.first() {
        Some(&lowest) if sharing.contains(&id) => Ok(lowest),
        _ => Err(format!("/{path}: does not name CPU {id} itself")),
    }
}

pub(crate) fn cpulist(root: &Path, path: &str) -> Result<Vec<u32>, String> {
    parse_cpulist(&text(root, path)?).map_err(|why| format!("/{path}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_affinity_is_within_that_of_proc() {
        // /proc names CPUs that are offline too.
        let in_proc = allowed_in_proc(Path::new("/"));
        assert!(!allowed().is_empty());
        assert!(allowed().iter().all(|cpu| in_proc.contains(cpu)));
    }
}
