//! What tests of filters start: it becomes a program under a seccomp filter of one system call, which kills who makes it or answers with an
//! errno. It is no part of what users install.
//!
//! under_filter CALL-NUMBER kill|ERRNO PROGRAM [ARGUMENT…]
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a program that cannot go on fails by panicking")]

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::os::unix::process::CommandExt;
use std::process::Command;

fn main() {
    let mut words = std::env::args_os().skip(1);
    let call = words.next().and_then(|call| call.to_str()?.parse().ok()).unwrap();
    let answer = words.next().unwrap();
    let errno = answer.to_str().and_then(|errno| errno.parse().ok());
    let action = errno.map_or(SeccompAction::KillProcess, SeccompAction::Errno);
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    let rules = [(call, Vec::new())].into();
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
    panic!("{}", command.exec());
}
