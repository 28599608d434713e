//! A system call that does almost nothing, and that no library answers from memory.

use crate::contract::{Operation, TrialContext};
use model::card::Card;
use sys::{Errno, Failure};

/// getppid(2).
#[derive(Debug)]
pub(crate) struct Syscall;

impl Operation for Syscall {
    const CARD: Card = Card {
        name: "syscall",
        summary: "a bare system call: into the kernel and back",
        man: &["getppid(2)"],
        ..Card::OPERATION
    };

    fn prepare(_: &TrialContext<'_>) -> Result<Self, Failure> {
        Ok(Self)
    }

    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        std::hint::black_box(rustix::process::getppid());
        Ok(())
    }
}
