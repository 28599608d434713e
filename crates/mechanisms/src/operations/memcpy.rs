//! A copy of n bytes, source and destination in cache if they fit: the floor of every copy.

use crate::contract::{Operation, TrialContext};
use model::card::Card;
use sys::{Errno, Failure};

/// memcpy(3).
#[derive(Debug)]
pub(crate) struct Memcpy {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Operation for Memcpy {
    const CARD: Card = Card {
        name: "memcpy",
        summary: "a copy of n bytes from memory to memory of one process",
        sized: true,
        man: &["memcpy(3)"],
        ..Card::OPERATION
    };

    fn prepare(trial: &TrialContext<'_>) -> Result<Self, Failure> {
        let size_bytes = trial.shape.size_bytes;
        // Written, not only reserved: an untouched source would be the kernel's single page of zeros.
        Ok(Self { from: vec![1; size_bytes], to: vec![2; size_bytes] })
    }

    #[inline]
    fn call(&mut self) -> Result<(), Errno> {
        self.to.copy_from_slice(std::hint::black_box(&self.from));
        std::hint::black_box(&mut self.to);
        Ok(())
    }
}
