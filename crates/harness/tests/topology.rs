//! Topologies of known machines, and the CPUs that every named placement becomes on each.
//!
//! The machines are in `topologies/*.txt`: one line a file, `path: content`, where `{0-3,8}` in the path stands
//! for each of these numbers, and `{}` in the content for the one at hand. A test unpacks one below a temporary
//! root. Most are written after a machine and not recorded on it, as the first line of each says.
#![expect(clippy::unwrap_used, reason = "clippy knows the tests, but not what they share, as test code")]

use harness::host::topology::read;
use model::Placement;
use model::cpu_list::parse_cpulist;
use model::topology::{CpuPair, Topology};
use std::path::Path;
use tempfile::TempDir;

fn unpack(machine: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for line in machine.lines().filter(|line| !line.starts_with('#')) {
        let (path, content) = line.split_once(": ").unwrap();
        for (path, number) in expand(path) {
            write(root.path(), &path, &content.replace("{}", &number));
        }
    }
    root
}

fn write(root: &Path, path: &str, content: &str) {
    let file = root.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, format!("{content}\n")).unwrap();
}

/// The paths that `path` stands for, each with the number in it.
fn expand(path: &str) -> Vec<(String, String)> {
    let Some((before, rest)) = path.split_once('{') else { return vec![(path.to_owned(), String::new())] };
    let (list, after) = rest.split_once('}').unwrap();
    let numbers = parse_cpulist(list).unwrap();
    numbers.iter().map(|number| (format!("{before}{number}{after}"), number.to_string())).collect()
}

macro_rules! machine {
    ($name:literal) => {
        unpack(include_str!(concat!("topologies/", $name, ".txt")))
    };
}

/// What `same-core`, `smt`, `same-llc`, `cross-llc` and `cross-node` become; `None` where the host has no such CPUs.
type Pairs = [Option<(u32, u32)>; 5];

#[track_caller]
fn assert_places(topology: &Topology, expected: Pairs) {
    let placements = Placement::NAMED.into_iter().filter(|placement| *placement != Placement::Unpinned);
    for (placement, expected) in placements.zip(expected) {
        let expected = expected.map(|(client, server)| Some(CpuPair { client, server }));
        assert_eq!(topology.place(placement).ok(), expected, "{placement}");
    }
    assert_eq!(topology.place(Placement::Unpinned), Ok(None));
}

fn cpus(count: u32) -> Vec<u32> {
    (0..count).collect()
}

#[test]
fn two_cores_of_a_virtual_machine_share_their_l3() {
    let topology = read(machine!("vm-2-cores-shared-l3").path(), &cpus(2));
    assert_eq!(topology.unknown, None);
    assert_places(&topology, [Some((1, 1)), None, Some((1, 0)), None, None]);
}

#[test]
fn a_hybrid_laptop_has_siblings_among_its_p_cores_alone() {
    let topology = read(machine!("laptop-hybrid-intel").path(), &cpus(16));
    assert_eq!(topology.unknown, None);
    assert_places(&topology, [Some((15, 15)), Some((7, 6)), Some((15, 14)), None, None]);
    assert!(
        topology.cpus.iter().all(|cpu| cpu.llc == Some(0)),
        "the L2 of an E-cluster is not its last level"
    );
}

#[test]
fn the_two_dies_of_a_zen_desktop_have_an_l3_each() {
    let topology = read(machine!("desktop-zen-2-ccds").path(), &cpus(32));
    assert_eq!(topology.unknown, None);
    assert_places(&topology, [Some((31, 31)), Some((31, 15)), Some((31, 30)), Some((31, 23)), None]);
}

#[test]
fn the_sockets_of_a_server_are_nodes() {
    let topology = read(machine!("server-2-sockets").path(), &cpus(16));
    assert_eq!(topology.unknown, None);
    assert_places(&topology, [Some((15, 15)), Some((15, 7)), Some((15, 13)), None, Some((15, 14))]);
    assert!(topology.cpus.iter().all(|cpu| cpu.package == cpu.id % 2 && cpu.node == cpu.package));
}

#[test]
fn the_last_level_of_a_board_is_its_l2() {
    let topology = read(machine!("board-arm-shared-l2").path(), &cpus(4));
    assert_eq!(topology.unknown, None);
    assert_places(&topology, [Some((3, 3)), None, Some((3, 2)), None, None]);
}

#[test]
fn the_clusters_of_a_board_have_a_last_level_each() {
    let topology = read(machine!("board-arm-two-clusters").path(), &cpus(6));
    assert_eq!(topology.unknown, None);
    assert_places(&topology, [Some((5, 5)), None, Some((5, 4)), Some((5, 3)), None]);
}

#[test]
fn without_caches_cores_are_known_and_shared_caches_are_not_claimed() {
    let topology = read(machine!("vm-without-caches").path(), &cpus(4));
    assert!(topology.unknown.as_ref().unwrap().contains("cpu0/cache: no such directory"), "{topology:?}");
    assert_places(&topology, [Some((3, 3)), None, None, None, None]);
    let refusal = topology.place(Placement::SameLlc).unwrap_err();
    assert!(refusal.contains("cache") && refusal.contains("cpus=A,B"), "{refusal}");
}

#[test]
fn a_single_cpu_has_one_placement() {
    let topology = read(machine!("vm-1-cpu").path(), &cpus(1));
    assert_eq!(topology.unknown, None);
    assert_places(&topology, [Some((0, 0)), None, None, None, None]);
}

#[test]
fn without_sysfs_only_one_cpu_can_be_placed() {
    let root = tempfile::tempdir().unwrap();
    let topology = read(root.path(), &[0, 1, 5]);
    assert!(topology.unknown.as_ref().unwrap().contains("is sysfs mounted?"));
    assert!(topology.cpus.iter().all(|cpu| cpu.core == cpu.id && cpu.llc.is_none()));
    assert_places(&topology, [Some((5, 5)), None, None, None, None]);
}

#[test]
fn offline_and_forbidden_cpus_are_left_out() {
    // The affinity is 1,4,5,7: CPU 4 is offline, and the sibling of 7 is forbidden.
    let topology = read(machine!("laptop-cpu4-offline").path(), &[7, 5, 4, 1]);
    assert_eq!(topology.unknown, None);
    assert_eq!(
        topology.cpus.iter().map(|cpu| (cpu.id, cpu.core)).collect::<Vec<_>>(),
        [(1, 1), (5, 1), (7, 3)]
    );
    assert_places(&topology, [Some((7, 7)), Some((5, 1)), Some((7, 5)), None, None]);
}

#[test]
fn one_cpu_of_unknown_place_leaves_all_unplaced() {
    let root = machine!("desktop-zen-2-ccds");
    write(root.path(), "sys/devices/system/cpu/cpu9/topology/core_cpus_list", "garbage");
    let topology = read(root.path(), &cpus(32));
    assert!(topology.unknown.as_ref().unwrap().contains("cpu9/topology"), "{topology:?}");
    assert_places(&topology, [Some((31, 31)), None, None, None, None]);
}

#[test]
fn a_cpu_of_no_node_leaves_all_unplaced() {
    let root = machine!("server-2-sockets");
    write(root.path(), "sys/devices/system/node/node1/cpulist", "1,3,5,7,9,11,13");
    let topology = read(root.path(), &cpus(16));
    assert!(topology.unknown.as_ref().unwrap().contains("no node has CPU 15"), "{topology:?}");
    assert_places(&topology, [Some((15, 15)), None, None, None, None]);
}

#[test]
fn a_node_without_a_directory_is_known_from_its_cpus() {
    let root = machine!("server-2-sockets");
    std::fs::remove_dir_all(root.path().join("sys/devices/system/node/node1")).unwrap();
    for cpu in (1..16).step_by(2) {
        let link = format!("sys/devices/system/cpu/cpu{cpu}/node1");
        std::fs::create_dir(root.path().join(link)).unwrap();
    }
    let topology = read(root.path(), &cpus(16));
    assert_eq!(topology.unknown, None);
    assert_places(&topology, [Some((15, 15)), Some((15, 7)), Some((15, 13)), None, Some((15, 14))]);
}

#[test]
fn a_garbled_cache_costs_one_cpu_its_cache_alone() {
    let root = machine!("desktop-zen-2-ccds");
    write(root.path(), "sys/devices/system/cpu/cpu31/cache/index3/shared_cpu_list", "8-15,24-30");
    let topology = read(root.path(), &cpus(32));
    assert!(topology.unknown.as_ref().unwrap().contains("does not name CPU 31 itself"), "{topology:?}");
    assert_places(&topology, [Some((31, 31)), Some((31, 15)), Some((30, 29)), Some((30, 23)), None]);
}

#[test]
fn this_host_is_read() {
    let topology = read(Path::new("/"), &harness::host::topology::allowed());
    assert!(!topology.cpus.is_empty());
    assert!(topology.place(Placement::SameCore).is_ok());
}
