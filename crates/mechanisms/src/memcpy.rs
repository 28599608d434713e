//! A copy of n bytes, source and destination in cache if they fit: the floor of every copy.

use crate::contract::{Launch, Operation};
use model::card::{Card, Framing, Kind, Payload, Reach, Support};
use model::{Params, Workload};
use sys::{Errno, Failure};

/// memcpy(3).
#[derive(Debug)]
pub struct Memcpy {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Operation for Memcpy {
    const CARD: Card = Card {
        name: "memcpy",
        kind: Kind::Operation,
        summary: "a copy of n bytes from memory to memory of one process",
        framing: Framing::None,
        reach: Reach::Process,
        payload: Payload::None,
        fds: false,
        params: &[],
        workloads: &[Workload::Cost],
        sized: true,
        limits: "none",
        man: &["memcpy(3)"],
    };

    fn probe(_: &Params) -> Support {
        Support::UNLIMITED
    }

    fn prepare(launch: &Launch<'_>) -> Result<Self, Failure> {
        let size_bytes = launch.shape.size_bytes;
        // Written, not just reserved: an untouched source would be the kernel's one page of zeros.
        Ok(Self { from: vec![1; size_bytes], to: vec![2; size_bytes] })
    }

    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        self.to.copy_from_slice(std::hint::black_box(&self.from));
        std::hint::black_box(&mut self.to);
        Ok(())
    }
}
