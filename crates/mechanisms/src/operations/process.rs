//! A process that does nothing is made, and its end awaited.

use crate::contract::{Operation, TrialContext};
use crate::support::probe::support_of;
use model::card::{Card, Support};
use model::{Domain, Param, Params};
use std::path::Path;
use sys::fork::{ChildStack, Program, fork_and_wait};
use sys::{Errno, Failure};

/// fork(2), vfork(2) or posix_spawn(3), and waitpid(2).
#[derive(Debug)]
pub(crate) enum Process {
    /// A copy of this process.
    Fork,
    /// A child in the memory of this process.
    Vfork(ChildStack),
    /// Another program.
    Spawn(Program),
}

/// The program that is spawned.
const TRUE: &str = "/bin/true";

impl Operation for Process {
    const CARD: Card = Card {
        name: "process",
        summary: "make a process that ends at once, and wait for its end",
        params: &[Param {
            name: "by",
            summary: "fork: a copy of this process; vfork: a child in its memory (clone with CLONE_VFORK); posix-spawn: /bin/true by posix_spawn, which shares memory until the exec",
            domain: Domain::Choice(&["fork", "vfork", "posix-spawn"]),
            default: Some("fork"),
        }],
        limits: "'ulimit -u'; a fork copies the page tables of a small process",
        man: &["fork(2)", "vfork(2)", "clone(2)", "posix_spawn(3)", "waitpid(2)"],
        ..Card::OPERATION
    };

    fn probe(params: &Params) -> Support {
        match params.text(&Self::CARD, "by") {
            Some("posix-spawn") => {
                support_of(Program::at(Path::new(TRUE)).and_then(|program| program.probe()))
            }
            _ => Support::UNLIMITED,
        }
    }

    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure> {
        Ok(match trial.params.text(&Self::CARD, "by") {
            Some("vfork") => Self::Vfork(ChildStack::new()),
            Some("posix-spawn") => Self::Spawn(Program::at(Path::new(TRUE))?),
            _ => Self::Fork,
        })
    }

    #[inline(always)]
    fn call(&mut self) -> Result<(), Errno> {
        match self {
            Self::Fork => fork_and_wait(),
            Self::Vfork(stack) => stack.share_and_wait(),
            Self::Spawn(program) => program.spawn_and_wait(),
        }
    }
}
