//! What tests of filters start: it becomes a program under a seccomp filter that kills who makes one system call. It is no part of what users
//! install.
//!
//! under_filter CALL-NUMBER PROGRAM [ARGUMENT…]
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a program that cannot go on fails by panicking")]

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::os::unix::process::CommandExt;
use std::process::Command;

fn main() {
    let mut words = std::env::args_os().skip(1);
    let call = words.next().and_then(|call| call.to_str()?.parse().ok()).unwrap();
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    let rules = [(call, Vec::new())].into();
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::KillProcess, arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
    panic!("{}", command.exec());
}
