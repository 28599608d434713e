//! A system call that does next to nothing and that no library answers from memory.

use crate::contract::{Launch, Operation};
use model::card::{Card, Framing, Kind, Payload, Reach, Support};
use model::{Params, Workload};
use sys::{Errno, Failure};

/// getppid(2).
#[derive(Debug)]
pub struct Syscall;

impl Operation for Syscall {
    const CARD: Card = Card {
        name: "syscall",
        kind: Kind::Operation,
        summary: "a bare system call: into the kernel and back",
        framing: Framing::None,
        reach: Reach::Process,
        payload: Payload::None,
        fds: false,
        params: &[],
        workloads: &[Workload::Cost],
        sized: false,
        limits: "none",
        man: &["getppid(2)"],
    };

    fn probe(_: &Params) -> Support {
        Support::UNLIMITED
    }

    fn prepare(_: &Launch<'_>) -> Result<Self, Failure> {
        Ok(Self)
    }

    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        std::hint::black_box(rustix::process::getppid());
        Ok(())
    }
}
