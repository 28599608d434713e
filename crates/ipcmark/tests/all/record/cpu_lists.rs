//! A host whose list of CPUs says what cannot be, or is not there.

use super::{Place, WAYS, may, read};
use crate::common::run;
use crate::common::skip;
use crate::restricted::{in_namespace, in_own_mounts, open_place, root};

/// So much memory may be mapped, in KiB: several times what a recording maps.
const MOST_KIB: u32 = 4 << 20;
const PIPELINE: [&str; 4] = ["--", "sh", "-c", "seq 1 9999 | cat >/dev/null"];

#[test]
fn a_list_of_cpus_without_end_fills_no_memory() {
    let place = open_place();
    place.file("online", "0-4294967295\n");
    let setup = format!("mount --bind online /sys/devices/system/cpu/online && ulimit -v {MOST_KIB}");
    let arguments = [["record", "-o", "scenario.toml"].as_slice(), &PIPELINE].concat();
    let Some(mut command) = in_namespace(&place, &setup, &arguments) else { return };
    run(&mut command).expect(0);
    assert!(read(&place).flows.iter().any(|flow| flow.mechanism.name == "pipe"));
}

/// Slow: it records a program by each way.
#[test]
fn without_a_list_of_cpus_a_command_is_followed_wherever_it_runs() {
    const TIMES: usize = 10;
    if !root() {
        return skip(
            "it takes root to record by tracepoints in a namespace",
            "recording without a list of CPUs",
        );
    }
    for way in WAYS.into_iter().filter(|way| may(way)) {
        for time in 0..TIMES {
            let place = Place::new();
            let setup = "mkdir empty && mount --bind empty /sys/devices/system/cpu";
            let arguments = [["record", "--by", way, "-o", "scenario.toml"].as_slice(), &PIPELINE].concat();
            let Some(mut command) = in_own_mounts(&place, setup, &arguments) else { return };
            run(&mut command).expect(0);
            let scenario = read(&place);
            assert!(
                scenario.flows.iter().any(|flow| flow.mechanism.name == "pipe"),
                "{way}, {time}: {scenario:#?}"
            );
        }
    }
}
