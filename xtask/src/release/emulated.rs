//! The tests of the machine types that are not this machine's, under an emulator. What it does not emulate is named and left out.

use super::files::said;
use super::platform::PLATFORMS;
use crate::notes::Notes;
use crate::steps::step;
use std::process::Command;

/// What QEMU's user emulation does not have of Linux, and the tests that are about it.
const NOT_EMULATED: [(&str, &[&str]); 11] = [
    ("perf_event_open(2)", &["perf_event::tests::"]),
    ("bpf(2)", &["bpf::tests::", "bpf_redirect::tests::"]),
    ("io_uring(7)", &["uring::tests::"]),
    ("seccomp(2)", &["seccomp::tests::calls_that_a_filter_kills_are_found_without_dying"]),
    ("process_vm_readv(2) and process_vm_writev(2)", &["process_vm::tests::"]),
    ("set_robust_list(2)", &["posix_sync::tests::"]),
    (
        "the speed of a link by ioctl(2)",
        &["link::tests::loopback_has_no_speed_and_what_is_not_there_is_refused"],
    ),
    (
        "completions of MSG_ZEROCOPY in the queue of errors",
        &[
            "send_completion::tests::",
            "zero_copy_tests::loopback_copies_what_is_sent_with_zerocopy_and_says_so",
        ],
    ),
    (
        "a program of its machine type that starts itself again",
        &["leaks::trials_leak_no_descriptor_and_no_mapping"],
    ),
    ("TCGETS2 of ioctl_tty(2)", &["peers::the_last_message_of_a_peer_that_closes_is_not_lost"]),
    ("SO_MEMINFO", &["socket_option::tests::what_finds_no_room_is_counted_by_the_socket_that_dropped_it"]),
];

/// The mechanisms whose conformance is tested: those whose code depends on the machine type, by its order of memory or its system calls, and two
/// that users take most. All of them keep an emulator busy for a quarter of an hour.
const MECHANISMS: &str =
    "shm-ring,shm-queue,futex,mutex-cond,posix-sem,sysv-msg,sigqueue,memfd-pass,pipe,unix-stream";

/// Runs the unit tests of every other machine type, and the conformance suite of [`MECHANISMS`].
pub fn run(notes: &Notes) -> Result<(), String> {
    for other in PLATFORMS.iter().filter(|platform| !platform.is_native()) {
        let (emulator, package) = other.emulator;
        let is_here = said(Command::new(emulator).arg("--version")).is_some();
        let lack = if is_here { other.lack() } else { Some(format!("{emulator}; install {package}")) };
        if let Some(lack) = lack {
            notes.tool_is_missing(&format!("{} is not tested: this machine lacks {lack}", other.triple))?;
            continue;
        }
        // What `analysis` computes does not depend on the machine type, and its simulations take an emulator ten minutes.
        let packages = ["model", "sys", "mechanisms", "report"].map(|name| ["--package", name]);
        let tests = [&["test", "--no-fail-fast", "--lib", "--test", "conformance"][..], &packages.concat()];
        let mut tests = other.cargo(&tests.concat());
        tests.arg("--").env("IPCMARK_TEST_MECHANISMS", MECHANISMS);
        println!("{emulator} has not:");
        for (lack, names) in NOT_EMULATED {
            println!("  {lack}; left out: {}", names.join(", "));
            tests.args(names.iter().flat_map(|name| ["--skip", name]));
        }
        step(&format!("tests of {} under {emulator}", other.triple), notes.noted_by(&mut tests))?;
    }
    Ok(())
}
